/* train.h - The simulated training of one run of parameters, with its averages, from each stop to the
 * next. Every number depends only on the options, the parameter and the stop, so that any thread can
 * simulate runs in any order. */
#ifndef GEN_TRAIN_H
#define GEN_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/gen.h"

/* What happens to a parameter between two stops of a training, as one linear step with
 * Gaussian noise. See docs/numerics.md for the formulas. */

/* What one average does: it keeps a part of itself and takes the rest from the walk, as it was at
 * the beginning. The noise comes on top. */
struct gen_row {
    size_t average;
    double keeps, takes;
};

/* The joint noise of the walk, of the parameters on top of the walk at the end (where they are
 * shown), and of the averages, in this order, is L z: L lower triangular, z independent standard
 * normals; for parameters of scale 1. */
struct gen_interval {
    struct gen_row *rows; /* [n_rows] the averages that may change */
    size_t n_rows;
    size_t n_moves;  /* rows of L before those: 1, the walk; 2, and the parameters at the end */
    size_t *columns; /* [n_columns] of L that are not zero, ascending; each begins at its own row */
    size_t n_columns;
    double *factor; /* their numbers, one column after the other */
};

/* Parameters whose files are written together; fewer are simulated at once. */
#define GEN_RUN_ELEMS 8192

struct gen_average {
    struct phema_profile profile;
    uint64_t first, last; /* steps at which it changes */
    double *betas;        /* [last - first + 1] from step first on; 1: no change */
    bool borrows_betas;
    bool is_reset; /* at the resets of the training */
};

/* A step after which files are written, or averages reset, or both in this order. */
struct gen_stop {
    uint64_t step;
    bool shows_parameters; /* to a file or a reset */
    bool is_reset;
};

struct gen_training {
    uint64_t seed;
    double *walk_sizes; /* [steps + 1] by step: standard deviation of the motion, scale 1 */
    double jitter_size; /* of the noise on top, scale 1 */
    const struct phema_reset *resets; /* [n_resets] ascending, borrowed */
    size_t n_resets;
    struct gen_average *averages;
    size_t n_averages;
    const struct gen_stop *stops;   /* [n_stops] ascending, borrowed */
    struct gen_interval *intervals; /* [n_stops] the one that ends at each stop */
    size_t n_stops;
};

/* averages: [n], with profile, first, last and is_reset; borrowed, their betas owned. Averages of
 * the same shape with different ends, all at whole steps, share their betas.
 * PHEMA_ERR_RESOURCE  no memory; the training has to be cleared then, too */
PHEMA_FALLIBLE gen_training_init(struct gen_training *training,
                                 const struct phema_gen_options *options,
                                 struct gen_average *averages, size_t n,
                                 const struct gen_stop *stops, size_t n_stops,
                                 struct phema_error *err);
void gen_training_clear(struct gen_training *training);

/* Some parameters of one tensor. */
struct gen_run {
    uint64_t first_param; /* counted over all tensors */
    size_t n;             /* <= GEN_RUN_ELEMS */
    double mean, scale;
};

/* The state of a worker's run: rows of GEN_RUN_ELEMS doubles in one block. */
struct gen_state {
    double *drift;      /* the random walk */
    double *parameters; /* observed: with white noise added; at stops that show them */
    double *averages;   /* n_averages rows */
};
PHEMA_FALLIBLE gen_state_init(struct gen_state *state, const struct gen_training *training,
                              struct phema_error *err);
void gen_state_clear(struct gen_state *state);

void gen_run_start(struct gen_state *state, const struct gen_training *training,
                   const struct gen_run *run);
/* From the stop before (or the start) to stop i: 0, 1, ... */
void gen_run_advance(struct gen_state *state, const struct gen_training *training,
                     const struct gen_run *run, size_t i);

#endif
