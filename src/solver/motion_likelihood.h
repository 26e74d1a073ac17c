/* motion_likelihood.h - how likely a sample of the snapshots is when the parameters walk at given
 * rates, and how that changes with the rates (docs/numerics.md, N29). */
#ifndef SOLVER_MOTION_LIKELIHOOD_H
#define SOLVER_MOTION_LIKELIHOOD_H

#include "motion_intervals.h"

/* Neighbouring snapshots, as the differences of neighbours: weights of a sum of 1 know snapshots by
 * their differences alone. */
struct phema_motion_window;

/* Elements do not move independently of each other: of so many, a likelihood counts as that of one in
 * eight, and of 50 at most. */
double phema_motion_independent(size_t n_elems);

/* What the sample shows of n snapshots, and what their rounding adds to it: products of the
 * differences of neighbours, an element, as the upper half of [n - 1 x n - 1].
 *   origins      [n] of the snapshots in the data
 *   differences  [(n - 1) x elements] scratch memory */
void phema_motion_find_seen(double *seen, double *noise, double *differences,
                            const struct phema_motion_data *data, const size_t *origins, size_t n);

/* All windows of a series: each snapshot is in one of them at least. */
struct phema_motion_windows {
    struct phema_motion_window *items; /* [n] */
    size_t n;
    double *derivatives; /* of one window, by level and slope of its intervals */
};

/* Finds the windows, and what the sample shows of each. All memory is the arena's.
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_windows_find(struct phema_motion_windows *windows,
                                         const struct phema_motion_work *work,
                                         const struct phema_motion_data *data,
                                         struct phema_arena *memory, struct phema_error *err);

/* The log likelihood of window w, an element; -inf: its snapshots depend on each other.
 *   v  [pieces] rates of the walk */
double phema_motion_window_rate(struct phema_motion_windows *windows, size_t w, const double *v);

/* Adds what window w, rated last with these v, tells of the unknowns: the level of log v in each
 * interval, at even places, followed by its slope.
 *   places  [pieces of an interval] where the slope is multiplied with
 *   weight  of the window
 *   score   [n_unknowns] gradient of the log likelihood
 *   fisher  [n_unknowns x n_unknowns] Fisher's information, the lower half */
void phema_motion_window_add_scores(const struct phema_motion_windows *windows, size_t w,
                                    const double *v, const double *places, double weight,
                                    double *score, double *fisher, size_t n_unknowns);

/* ---- Coherence ---- */

/* Sets the coherence of a walk without jitter, by the likelihood of the earliest snapshots (N36). It
 * stays 0 unless two of them end at one time: one alone does not show a direction.
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_find_coherence(struct phema_motion *motion,
                                           const struct phema_motion_work *work,
                                           const struct phema_motion_data *data,
                                           struct phema_error *err);

#endif
