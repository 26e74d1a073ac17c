/* motion_intervals.h - how much parameters walk and jitter in each interval between snapshots. */
#ifndef SOLVER_MOTION_INTERVALS_H
#define SOLVER_MOTION_INTERVALS_H

#include "phema/arena.h"

#include "motion_pairs.h"

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

#endif
