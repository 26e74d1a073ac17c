/* train.h - the simulated training: how one run of parameters moves, step by step, and its averages
 * beside it. Every number depends on the seed, the parameter and the step alone, so that runs can
 * be done in any order by any thread. */
#ifndef GEN_TRAIN_H
#define GEN_TRAIN_H

#include "phema/error.h"
#include "phema/profile.h"
#include "phema/span.h"

/* Parameters that are simulated together: the working set (four arrays or so) stays in the
 * second-level cache. */
#define GEN_RUN_ELEMS 8192

struct gen_average {
    struct phema_profile profile;
    uint64_t first, last; /* steps at which it is touched */
    double *betas;        /* [last - first + 1] from step first on; 1: not touched */
    bool borrows_betas;
};

/* Shapes that weigh nothing before a begin of their own: one average for each end. */
bool gen_has_begin(const struct phema_profile *profile);

struct gen_training {
    uint64_t seed, steps;
    double *walk_sizes; /* [steps + 1] by step: standard deviation of the motion, scale 1 */
    struct gen_average *averages;
    size_t n_averages;
};

/* averages: [n], profile, first and last filled in; borrowed, their betas owned. Those of the same
 * shape with different ends, all at whole steps, have the same betas back from there. */
PHEMA_FALLIBLE gen_training_init(struct gen_training *training, uint64_t seed, uint64_t steps,
                                 struct gen_average *averages, size_t n, struct phema_error *err);
void gen_training_clear(struct gen_training *training); /* takes the half-built */

/* Some parameters of one tensor. */
struct gen_run {
    uint64_t first_param; /* counted over all tensors */
    size_t n;             /* <= GEN_RUN_ELEMS */
    double mean, scale;
};

/* Where a worker keeps the run it is at: rows of GEN_RUN_ELEMS doubles. */
struct gen_state {
    double *drift;      /* what wanders */
    double *parameters; /* what is observed: with white noise on top */
    double *averages;   /* n_averages rows */
};
PHEMA_FALLIBLE gen_state_init(struct gen_state *state, const struct gen_training *training,
                              struct phema_error *err);
void gen_state_clear(struct gen_state *state);

void gen_run_start(struct gen_state *state, const struct gen_training *training,
                   const struct gen_run *run);
/* step: 1, 2, ... steps */
void gen_run_step(struct gen_state *state, const struct gen_training *training,
                  const struct gen_run *run, uint64_t step);

#endif
