/* motion_posterior.h - how v falls within the intervals between snapshots, and the likeliest levels
 * and slopes of it. */
#ifndef SOLVER_MOTION_POSTERIOR_H
#define SOLVER_MOTION_POSTERIOR_H

#include "motion_intervals.h"

/* The slope of log v within interval k of n, from the levels of all (N28): the smaller one of those
 * to its neighbours, so none at peaks. The motion of the first interval may only fall, and that of
 * the last only go on falling. */
double phema_motion_limited_slope(const double *levels, size_t n, size_t k);

/* The mean of (1 - x)^power over one of the pieces of [0, 1]. */
double phema_motion_end_shape(size_t piece, size_t n_pieces, int power);

/* How many pieces of an interval may have one rate, where log v changes by so much in it. */
size_t phema_motion_pieces_to_join(double range, size_t n_pieces);

/* Takes the mean square of the learning rate in each piece and interval; NULL: not known. */
void phema_motion_set_known(struct phema_motion_work *work, const struct phema_schedule *schedule);

/* Each of these sets the shape, and makes terms of whole intervals from those of their pieces:
 * constant within the intervals; that of the learning rate. */
void phema_motion_set_even(struct phema_motion_work *work);
void phema_motion_set_known_shape(struct phema_motion_work *work);

/* The shape of the slopes, times that of the learning rate; in the last interval as a power of the
 * time that is left, unless that is 0. Sets no terms. */
void phema_motion_set_shape(struct phema_motion_work *work, int end_power);

/* Fits slopes, with their shape and terms, and the rates of the intervals in turn. */
void phema_motion_fit_shape(struct phema_motion *motion, struct phema_motion_work *work,
                            int end_power);

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
