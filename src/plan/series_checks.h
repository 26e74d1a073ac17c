/* series_checks.h - the motion of the parameters of a series, from a sample of its tensors, and
 * whether its snapshots are what their labels say. */
#ifndef PLAN_SERIES_CHECKS_H
#define PLAN_SERIES_CHECKS_H

#include "phema/plan.h"

/* Sets plan->motion, or plan->unmoved to the reason why it is unknown. Does nothing where profiles
 * are unknown or the options exclude a sample. Sets plan->checks. Where the motion decides on the
 * weights, or weights are given, the snapshots' rounding becomes that of the sample.
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_INPUTS    the snapshots do not fit their labels, and the options make that a failure
 * PHEMA_ERR_RESOURCE  no memory, or more than max_ram_bytes would be needed */
PHEMA_FALLIBLE motion_find(struct phema_plan *plan, const struct phema_plan_options *options,
                           struct phema_error *err);

/* ---- straightness.c: targets that are least-squares lines through snapshots ---- */

/* Sets how near to a line the snapshots lie, from the sample.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE straightness_find(struct phema_plan *plan, const struct phema_sample *sample,
                                 struct phema_error *err);
/* Adds it to the predicted errors, which are unknown where it is. */
void straightness_predict(struct phema_plan *plan);

enum series_question {                    /* about a series */
                       SERIES_HAS_MOTION, /* nothing but the motion */
                       SERIES_IS_UNDAMAGED, /* whether each tensor of a snapshot is what the others predict */
                       SERIES_FITS_LABELS /* that, and whether the labels do */
};

/* Fits the motion to the sample and compares each snapshot with what the others predict. Where they
 * do not fit their labels, searches for labels that do. Sets checks; the motion is the caller's.
 *   schedule  of the learning rate; NULL: unknown
 * PHEMA_NO            no motion can be fitted; the message has the reason. Checks may be set
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE series_checks_make(struct phema_series_checks *checks, struct phema_motion *motion,
                                  const struct phema_series *series,
                                  const struct phema_schedule *schedule,
                                  const struct phema_sample *sample, enum series_question question,
                                  struct phema_error *err);

#endif
