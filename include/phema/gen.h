/* gen.h - a simulated training whose averages are known exactly.
 * Parameters move as in real trainings: far at first, then ever slower (random walk with falling
 * step), with white noise on top. Every requested power-function EMA is tracked in float64, step by
 * step, with beta(c) = (1 - 1/c)^(gamma+1); with update_every U > 1 those of the snapshots follow
 * ema-pytorch's recurrence (profile.h) while truths never do. Integer arithmetic, IEEE +-*, sqrt
 * and fma alone: the same bytes on every machine. */
#ifndef PHEMA_GEN_H
#define PHEMA_GEN_H

#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/span.h"

struct phema_gen_options {
    uint64_t count;             /* snapshots of each width, at times i * steps / count, > 0 */
    uint64_t steps;             /* of training, >= count */
    const double *input_sigmas; /* [n] sigma_rel of the snapshots */
    size_t n_input_sigmas;
    const double *truth_sigmas; /* [n] sigma_rel of the exact averages at the last time */
    size_t n_truth_sigmas;
    enum phema_dtype dtype;       /* F16, BF16, F32, F64: of the snapshots */
    enum phema_dtype truth_dtype; /* of the truths */
    uint64_t n_tensors;           /* > 0 */
    uint64_t n_params;            /* in all tensors together, >= n_tensors */
    uint64_t update_every;        /* of the snapshots' averages, >= 1 */
    bool is_raw; /* also write un-averaged snapshots, snapshot-TIME-raw.safetensors */
    uint64_t seed;
    unsigned n_threads;
    bool replaces; /* existing files */
    bool syncs;
};

/* Writes DIR/snapshot-TIME-SIGMA.safetensors and DIR/truth/truth-TIME-SIGMA.safetensors; DIR and
 * DIR/truth are made when missing. Nothing appears unless all of it does. Memory does not depend on
 * n_params beyond a tile for each thread.
 * PHEMA_ERR_USAGE    an option out of range    PHEMA_ERR_TARGET  a sigma_rel out of range
 * PHEMA_ERR_OUTPUT   a file exists, cannot be written */
PHEMA_FALLIBLE phema_gen(const char *directory, const struct phema_gen_options *options,
                         struct phema_error *err);

#endif
