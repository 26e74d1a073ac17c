/* gen.h - a simulated training whose averages are known exactly.
 * Parameters move as in real trainings: far at first, then ever slower (random walk with falling
 * step), with white noise on top. Every requested average is tracked in float64, step by step, by
 * the recurrence of its profile (phema_profile_beta): power functions with beta(c) =
 * (1 - 1/c)^(gamma+1), or with update_every U > 1, for snapshots, ema-pytorch's; exponential ones
 * and tables from the parameters before training on; windows and the like, one average for each
 * time. Integer arithmetic, IEEE +-*, sqrt and fma alone: the same bytes on every machine. */
#ifndef PHEMA_GEN_H
#define PHEMA_GEN_H

#include "phema/claims.h"
#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/profile.h"
#include "phema/span.h"

/* Any shape. The end t and the label of the profile are not looked at; tables are borrowed. */
struct phema_gen_profile {
    struct phema_profile profile;
    double sigma_rel; /* power: the width it was given by; NaN: by its exponent */
    const char *text; /* what was asked for: posthoc_ema.profile in the files */
    const char *name; /* of the shape in names of files, at most 120 bytes: ema2000 */
};

struct phema_gen_options {
    uint64_t count;             /* snapshots of each width, at times i * steps / count, > 0 */
    uint64_t steps;             /* of training, >= count */
    const double *input_sigmas; /* [n] sigma_rel of the snapshots */
    size_t n_input_sigmas;
    const double *truth_sigmas; /* [n] sigma_rel of the exact averages at the last time */
    size_t n_truth_sigmas;
    const struct phema_gen_profile *input_profiles; /* [n] snapshots of other shapes */
    size_t n_input_profiles;
    const struct phema_gen_profile *truth_profiles; /* [n] exact averages of other shapes */
    size_t n_truth_profiles;
    const uint64_t *truth_times; /* [n] steps of the exact averages; none: the last one alone */
    size_t n_truth_times;
    enum phema_dtype dtype;       /* F16, BF16, F32, F64: of the snapshots */
    enum phema_dtype truth_dtype; /* of the truths */
    uint64_t n_tensors;           /* > 0 */
    uint64_t n_params;            /* in all tensors together, >= n_tensors */
    uint64_t update_every;        /* of the power functions among the snapshots, >= 1 */
    bool hides_update_every;      /* files do not say it, as those of ema-pytorch do not */
    bool is_raw; /* raw snapshots as well, which say no profile, as those of trainers */
    uint64_t seed;
    unsigned n_threads;
    bool replaces; /* existing files */
    bool syncs;
    const struct phema_claims *claims; /* what profiles were read from; NULL: nothing is known */
};

/* Writes DIR/snapshot-TIME-KIND.safetensors and DIR/truth/truth-TIME-KIND.safetensors; KIND is the
 * sigma_rel, or the name of the shape (ema2000, window512, raw). Where a snapshot is of another
 * shape than power, DIR/manifest.json lists all of them with their profiles, and tables that were
 * read from files are beside it under the names of their shapes. DIR and DIR/truth are made when
 * missing. Nothing appears unless all of it does. Memory does not depend on n_params beyond a tile
 * for each thread.
 * PHEMA_ERR_USAGE    an option out of range
 * PHEMA_ERR_TARGET   a sigma_rel out of range
 * PHEMA_ERR_OUTPUT   a file exists, cannot be written */
PHEMA_FALLIBLE phema_gen(const char *directory, const struct phema_gen_options *options,
                         struct phema_error *err);

#endif
