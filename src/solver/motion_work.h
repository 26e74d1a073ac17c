/* motion_work.h - how much parameters walk and jitter in each interval between snapshots: what fits
 * the distances, how likely a sample is, and the likeliest. */
#ifndef SOLVER_MOTION_WORK_H
#define SOLVER_MOTION_WORK_H

#include "phema/arena.h"
#include "phema/solver.h"

/* ---- motion_pairs.c: the expected squared distance of two snapshots, piece by piece ---- */

struct phema_motion_term {
    size_t interval; /* or piece */
    double walk;     /* integral of D^2 over it, D the difference of cumulative profiles */
    double jitter;   /* integral of d^2, d the difference of profiles */
};

struct phema_motion_terms {
    size_t n_intervals; /* or pieces */
    double *ends;       /* [n_intervals] ascending */
    size_t n_pairs;
    size_t *starts;                  /* [n_pairs + 1] in items */
    struct phema_motion_term *items; /* those of pair p: starts[p] .. starts[p+1] */
    size_t capacity;                 /* of items */
};

/* The integrals from which terms are made, of the profiles of snapshots over pieces of the
 * intervals between their times. */
struct phema_motion_table;

/* For terms of the pairs of snapshots in pairs [n_pairs], and of any two that are fewer than reach
 * places apart. Each interval is divided into n_pieces of one length. Snapshots are borrowed.
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_table_open(struct phema_motion_table **out,
                                       const struct phema_profile *snapshots, size_t n,
                                       size_t n_pieces, const struct phema_distance *pairs,
                                       size_t n_pairs, size_t reach, struct phema_error *err);
void phema_motion_table_close(struct phema_motion_table *table); /* takes NULL */

/* Terms of pairs, whose squares are not used. out is {0}, or has other terms, whose memory is used.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_terms_find(struct phema_motion_terms *out,
                                       const struct phema_motion_table *table,
                                       const struct phema_distance *pairs, size_t n_pairs,
                                       struct phema_error *err);
void phema_motion_terms_clear(struct phema_motion_terms *terms);

/* ---- What the parts of a fit share ---- */

#define PHEMA_MOTION_REACH ((size_t)16) /* snapshots whose distances are compared with each other */

struct phema_motion_work {
    struct phema_profile *kept; /* [n_kept] snapshots that distances name */
    size_t *origins;            /* [n_kept] their indices in the data */
    size_t n_kept;
    size_t n_pieces;                  /* of each interval */
    struct phema_motion_table *table; /* of the kept snapshots */
    struct phema_motion_terms pieces; /* of the distances that are used */
    struct phema_motion_terms terms;  /* the same for whole intervals */
    double *seen;                     /* [n_pairs] squared distances without the rounding */
    double *known;   /* [pieces] mean square of the learning rate, relative to its interval's */
    double *levels;  /* [n_intervals] log of that of the interval; 0 where it is not known */
    double *shape;   /* [pieces] of the walk, relative to its interval's */
    double *slopes;  /* [n_intervals] of log v, over the interval */
    double *heights; /* [n_intervals] log of the mean of v, less the level */
    double *walked, *jittered; /* [n_pairs] for an amplitude of 1 t^-q */
    double *pulls, *loads;     /* [n_intervals] */
    double *parts;             /* [n_intervals] of one pair */
    struct phema_arena memory; /* of all arrays but the pieces' */
};

/* ---- motion_intervals.c ---- */

/* Powers of time (N21). Sets all members but ends and coherence; misfit: HUGE_VAL where nothing fits. */
void phema_motion_fit_powers(struct phema_motion *motion, struct phema_motion_work *work,
                             bool only_wanders);

/* One round of (N22): a distance that is modelled too short by a factor pulls at the intervals that
 * it passes, at each by the interval's share in the distance. */
void phema_motion_scale_intervals(struct phema_motion *motion, struct phema_motion_work *work);

/* All rounds. Returns the mean |log(seen / modelled)| of the distances. */
double phema_motion_fit_intervals(struct phema_motion *motion, struct phema_motion_work *work);

/* The same on every machine. */
double phema_motion_log(double x);
double phema_motion_exp(double x); /* |x| counts as 600 at most */
double phema_motion_power(double base, int exponent);

/* ---- motion_likelihood.c: how likely a sample of the snapshots is when the parameters walk at
 * given rates, and how that changes with the rates (docs/numerics.md, N29) ---- */

/* Neighbouring snapshots, as the differences of neighbours: weights of a sum of 1 know snapshots by
 * their differences alone. */
struct phema_motion_window;

/* Elements do not move independently of each other: of so many, a likelihood counts as that of one in
 * eight, and of 50 at most. */
double phema_motion_independent(size_t n_elems);

/* All windows of a series: each snapshot is in one of them at least. */
struct phema_motion_windows {
    struct phema_motion_window *items; /* [n] */
    size_t n;
    double *derivatives; /* of one window, by level and slope of its intervals */
};

/* What the sample shows of n snapshots, and what their rounding adds to it: products of the
 * differences of neighbours, an element, as the upper half of [n - 1 x n - 1]. Differences are
 * small, and lose fewer digits than the snapshots.
 *   origins      [n] of the snapshots in the data
 *   differences  [(n - 1) x elements] scratch memory */
void phema_motion_find_seen(double *seen, double *noise, double *differences,
                            const struct phema_motion_data *data, const size_t *origins, size_t n);

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

/* ---- motion_drift.c ---- */

/* Velocities that keep their direction: those of a training that ages, beside the whole walk; those
 * of steady steps, in place of the walk or of a share of it (N33). */
enum phema_drift { PHEMA_DRIFT_STEADY, PHEMA_DRIFT_AGEING };
#define PHEMA_N_DRIFTS ((size_t)2)

struct phema_motion_coherence {
    enum phema_drift kind;
    double walk, drift; /* factors of the walk and of the drift's square */
    double evidence;    /* log likelihood of the sample, the mean over all factors */
    double gain;        /* of it, to that without drift */
};

/* By the likelihood of the earliest and of the newest snapshots (N36), beside a walk without jitter.
 *   out  [n_kinds] of the first kinds, each alone
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_find_coherence(struct phema_motion_coherence *out, size_t n_kinds,
                                           const struct phema_motion *walk,
                                           const struct phema_motion_work *work,
                                           const struct phema_motion_data *data,
                                           struct phema_error *err);

/* Makes it part of the walk that it was found for. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_motion_set_coherence(struct phema_motion *motion,
                                          const struct phema_motion_coherence *coherence,
                                          const struct phema_motion_work *work,
                                          struct phema_error *err);

/* ---- motion_posterior.c: how v falls within the intervals between snapshots, and the likeliest
 * levels and slopes of it ---- */

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
