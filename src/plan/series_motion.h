/* series_motion.h - how the parameters of a series moved, from a sample of its tensors. */
#ifndef PLAN_SERIES_MOTION_H
#define PLAN_SERIES_MOTION_H

#include "phema/plan.h"

/* Sets plan->motion, or plan->unmoved to the reason why it cannot be known; and warns in
 * plan->doubts where another update_every fits what was seen better. With keeps_rounding the
 * snapshots' rounding becomes what was seen in the sample.
 * PHEMA_ERR_FILE, PHEMA_ERR_RESOURCE as phema_sample_read */
PHEMA_FALLIBLE motion_find(struct phema_plan *plan, bool keeps_rounding, uint64_t max_ram_bytes,
                           struct phema_error *err);

#endif
