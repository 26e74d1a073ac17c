/* advice.h - which snapshots a series could do without, and how many it should have had.
 * Errors are those that are predicted (profile.h): of the motion where it is known, else of the
 * data-free model. No files, no globals; safe from any thread. */
#ifndef PHEMA_ADVICE_H
#define PHEMA_ADVICE_H

#include "phema/profile.h"

#define PHEMA_ADVICE_MAX_SNAPSHOTS 512 /* an elimination of ten seconds */

struct phema_advice {
    size_t *removed; /* [n_removed] indices of snapshots that may go, the least useful first */
    size_t n_removed;
    double error_before, error_after; /* the worst of the targets, with all and with what is left */
};

/* Greedy backward elimination: as long as every target's predicted error stays at max_error or
 * below, the snapshot goes without which the worst target is best off; what is left is then solved
 * anew. Nothing may go where the error is larger from the start.
 * PHEMA_ERR_INPUTS  too many snapshots, and what phema_weights_solve fails with */
PHEMA_FALLIBLE phema_advice_find(struct phema_advice *out, const struct phema_problem *problem,
                                 double max_error, struct phema_error *err);
void phema_advice_clear(struct phema_advice *advice);

struct phema_saving {
    size_t n_times;    /* evenly spaced up to the last snapshot; 0: no number of them does */
    size_t n_per_time; /* profiles at each: those of the last time */
    double every;      /* time between them */
    double error;      /* the worst predicted one of the targets */
};

/* The fewest times that would give every target a predicted error of max_error or less. */
PHEMA_FALLIBLE phema_advice_saving(struct phema_saving *out, const struct phema_problem *problem,
                                   double max_error, struct phema_error *err);

#endif
