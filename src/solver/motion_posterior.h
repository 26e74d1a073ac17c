/* motion_posterior.h - the likeliest walk within the intervals, from a sample of the snapshots. */
#ifndef SOLVER_MOTION_POSTERIOR_H
#define SOLVER_MOTION_POSTERIOR_H

#include "motion_intervals.h"

/* Sets shape to the rate of the walk in each piece, by the likelihood of the sample (N29 to N31).
 *   wander  [n_intervals] and the slopes of the work: from where to start
 *   prior   [n_intervals] log of the rate of each interval, but for what all share
 * PHEMA_NO            the snapshots depend on each other; no message, shape is unchanged
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_find_likeliest(struct phema_motion_work *work, const double *wander,
                                           const double *prior,
                                           const struct phema_motion_data *data,
                                           struct phema_error *err);

#endif
