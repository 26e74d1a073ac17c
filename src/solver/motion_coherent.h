/* motion_coherent.h - how much of a motion is coherent drift, from a sample of the snapshots. */
#ifndef SOLVER_MOTION_COHERENT_H
#define SOLVER_MOTION_COHERENT_H

#include "motion_intervals.h"

/* Sets the coherence of a walk without jitter, by the likelihood of the earliest snapshots (N36). It
 * stays 0 unless two of them end at one time: one alone does not show a direction.
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_find_coherence(struct phema_motion *motion,
                                           const struct phema_motion_work *work,
                                           const struct phema_motion_data *data,
                                           struct phema_error *err);

#endif
