/* train.h - The simulated training of one run of parameters, step by step, with its averages. Every
 * number depends only on the seed, the parameter and the step, so that any thread can simulate runs
 * in any order. */
#ifndef GEN_TRAIN_H
#define GEN_TRAIN_H

#include "phema/gen.h"

/* Parameters that are simulated together: the working set (four arrays or so) stays in the
 * second-level cache. */
#define GEN_RUN_ELEMS 8192

struct gen_average {
    struct phema_profile profile;
    uint64_t first, last; /* steps at which it changes */
    double *betas;        /* [last - first + 1] from step first on; 1: no change */
    bool borrows_betas;
    bool is_reset; /* at the resets of the training */
};

/* True for shapes with zero weight before a beginning: they need one average for each end. */
bool gen_has_begin(const struct phema_profile *profile);

struct gen_training {
    uint64_t seed, steps;
    double *walk_sizes; /* [steps + 1] by step: standard deviation of the motion, scale 1 */
    double jitter_size; /* of the noise on top, scale 1 */
    const struct phema_reset *resets; /* [n_resets] ascending, borrowed */
    size_t n_resets;
    struct gen_average *averages;
    size_t n_averages;
};

/* averages: [n], with profile, first, last and is_reset; borrowed, their betas owned. Averages of
 * the same shape with different ends, all at whole steps, share their betas. */
PHEMA_FALLIBLE gen_training_init(struct gen_training *training,
                                 const struct phema_gen_options *options,
                                 struct gen_average *averages, size_t n, struct phema_error *err);
void gen_training_clear(struct gen_training *training); /* takes the half-built */

/* Some parameters of one tensor. */
struct gen_run {
    uint64_t first_param; /* counted over all tensors */
    size_t n;             /* <= GEN_RUN_ELEMS */
    double mean, scale;
};

/* The state of a worker's run: rows of GEN_RUN_ELEMS doubles in one block. */
struct gen_state {
    double *drift;      /* the random walk */
    double *parameters; /* observed: with white noise added */
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

/* ---- The tensors of the model: a few large ones, more small ones, one scalar ---- */

struct gen_tensor {
    char name[40];
    unsigned rank; /* 0 to 2 */
    uint64_t shape[2];
    uint64_t n_elems;
    double mean, scale;   /* of its elements */
    uint64_t first_param; /* counted over all tensors */
    uint64_t first_run;   /* first run, counted over all tensors */
};

struct gen_model {
    struct gen_tensor *tensors; /* [n + 1]: the last one is empty and holds the totals */
    size_t n;
};

/* n_params in total, n_params >= n > 0. */
PHEMA_FALLIBLE gen_model_init(struct gen_model *model, uint64_t n, uint64_t n_params,
                              struct phema_error *err);
void gen_model_clear(struct gen_model *model);

#endif
