/* groups.h - targets that draw on the same snapshots, and so share one matrix of weights. */
#ifndef SYNTH_GROUPS_H
#define SYNTH_GROUPS_H

#include "phema/plan.h"

struct group {
    size_t *targets; /* [n_targets] indices into the plan */
    size_t n_targets;
    size_t *inputs; /* [n_inputs] snapshots with a weight, in series order */
    size_t n_inputs;
    double *weights;  /* [n_inputs x n_targets] row-major */
    size_t newest;    /* the last snapshot that is not later than the targets: what is copied */
    bool sums_to_one; /* all of them: equal tensors may be copied */
};

/* A snapshot without a weight for a target takes no part in it, be it read for another target or
 * not: 0 times infinity must not reach a sum. */
PHEMA_FALLIBLE groups_make(struct group **out, size_t *n, const struct phema_plan *plan,
                           struct phema_error *err);
void groups_free(struct group *groups, size_t n);

#endif
