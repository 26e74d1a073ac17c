/* series_motion.h - motion of the parameters of a series, from a sample of its tensors. */
#ifndef PLAN_SERIES_MOTION_H
#define PLAN_SERIES_MOTION_H

#include "phema/plan.h"

/* Sets plan->motion, or plan->unmoved to the reason why it is unknown. Does nothing where profiles
 * are unknown or the options exclude a sample. Sets plan->checks. With keeps_rounding the
 * snapshots' rounding becomes that of the sample.
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_INPUTS    the snapshots do not fit their labels, and the options make that a failure
 * PHEMA_ERR_RESOURCE  no memory, or more than max_ram_bytes would be needed */
PHEMA_FALLIBLE motion_find(struct phema_plan *plan, const struct phema_plan_options *options,
                           bool keeps_rounding, struct phema_error *err);

#endif
