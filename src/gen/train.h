/* train.h - the simulated training: how one run of parameters moves, step by step, and its averages
 * beside it. Every number depends on the seed, the parameter and the step alone, so that runs can
 * be done in any order by any thread. */
#ifndef PHEMA_GEN_TRAIN_H
#define PHEMA_GEN_TRAIN_H

#include "phema/error.h"
#include "phema/span.h"

/* Parameters that are simulated together: the working set (four arrays or so) stays in the
 * second-level cache. */
#define GEN_RUN_ELEMS 8192

struct gen_average {
    double sigma_rel, gamma;
    uint64_t update_every;
    double *betas; /* [steps + 1] by step; 1 where the average is not touched */
};

struct gen_training {
    uint64_t seed, steps;
    double *walk_sizes; /* [steps + 1] by step: standard deviation of the motion, scale 1 */
    struct gen_average *averages;
    size_t n_averages;
};

/* averages: [n], sigma_rel, gamma and update_every filled in; borrowed, their betas owned. */
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
