/* gen.h - A simulated training whose averages are known exactly.
 * Parameters move as in real trainings: fast at first, then ever slower (random walk with falling
 * step), with white noise added. Every requested average is the recurrence of its profile over the
 * parameters of every step, in float64 (phema_profile_beta). Power functions use beta(c) = (1 -
 * 1/c)^(gamma+1), or for snapshots with update_every U > 1 that of ema-pytorch. Exponential
 * averages and tables start from the parameters before training; windows and the like are one
 * average for each time. The steps between two files are taken at once: one draw from their joint
 * normal distribution (docs/numerics.md, section 13). So the training of a seed depends on the times
 * and averages that are asked for. Only integer arithmetic, IEEE +-*, sqrt and fma: the same bytes
 * on every machine. After a reset the averages of snapshots, not the exact ones, continue as copies
 * of the parameters (phema_profile_reset); files of the step of the reset are from before it. */
#ifndef PHEMA_GEN_H
#define PHEMA_GEN_H

#include "phema/claims.h"
#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/profile.h"
#include "phema/span.h"

/* Any shape. The end t and the label of the profile are ignored; tables are borrowed. */
struct phema_gen_profile {
    struct phema_profile profile;
    double sigma_rel; /* power: the given width; NaN: the exponent was given */
    const char *text; /* as requested: posthoc_ema.profile in the files */
    const char *name; /* of the shape, for names of files, at most 120 bytes: ema2000 */
};

/* Kinds of files; arrays are borrowed. */
struct phema_gen_kinds {
    const double *sigmas; /* [n_sigmas] sigma_rel of power functions */
    size_t n_sigmas;
    const struct phema_gen_profile *profiles; /* [n_profiles] other shapes */
    size_t n_profiles;
};

/* How the parameters move. Those after the first are the motions that a design expects (design.h),
 * of the same size. */
enum phema_gen_motion {
    PHEMA_GEN_SLOWING, /* a walk that slows down to a constant rate, and noise of 1 % */
    PHEMA_GEN_WALK,    /* a walk of constant rate */
    PHEMA_GEN_WHITE,   /* noise around a constant */
    PHEMA_GEN_DRIFT,   /* a walk whose rate falls as 1/t */
    PHEMA_GEN_FALL     /* a walk whose rate falls as (1 - t/T)^2 */
};

struct phema_gen_options {
    uint64_t count;        /* snapshots of each width, at times i * steps / count, > 0 */
    const uint64_t *times; /* [count] ascending, at most steps, instead; NULL: evenly spaced */
    uint64_t steps;        /* of training, >= count */
    struct phema_gen_kinds snapshots;
    struct phema_gen_kinds truths; /* exact averages */
    const uint64_t *truth_times;   /* [n] steps of the exact averages; n = 0: the last step only */
    size_t n_truth_times;
    enum phema_dtype dtype; /* F16, BF16, F32, F64: of the snapshots */
    enum phema_gen_motion motion;
    enum phema_dtype truth_dtype;     /* of the truths */
    uint64_t n_tensors;               /* > 0 */
    uint64_t n_params;                /* in all tensors together, >= n_tensors */
    uint64_t update_every;            /* of the power functions among the snapshots, >= 1 */
    bool hides_update_every;          /* omitted in the files, as in those of ema-pytorch */
    const struct phema_reset *resets; /* [n_resets] of the averages of snapshots, ascending */
    size_t n_resets;
    bool is_raw;        /* raw snapshots as well, without profile, as trainers write them */
    uint64_t raw_every; /* the same at multiples of this step; 0: none */
    uint64_t seed;
    unsigned n_threads;
    bool replaces; /* existing files */
    bool syncs;
    const struct phema_claims *claims; /* files that profiles were read from; NULL: unknown */
    /* Called about ten times a second, by one thread at a time; NULL: not called. done of total
     * intervals of all parameters are simulated. */
    void (*report)(void *context, uint64_t done, uint64_t total, double elapsed_s);
    void *context;
};

/* Writes DIR/snapshot-TIME-KIND.safetensors and DIR/truth/truth-TIME-KIND.safetensors; KIND is the
 * sigma_rel, or the name of the shape (ema2000, window512, raw). When a snapshot has another shape
 * than power, DIR/manifest.json lists all snapshots with their profiles. Tables that were read from
 * files lie next to it under the names of their shapes. DIR and DIR/truth are made when missing.
 * Either all files appear or none. Memory does not depend on n_params beyond a tile for each
 * thread.
 * PHEMA_ERR_USAGE   an option is out of range
 * PHEMA_ERR_TARGET  a sigma_rel is out of range
 * PHEMA_ERR_OUTPUT  a file exists or cannot be written */
PHEMA_FALLIBLE phema_gen(const char *directory, const struct phema_gen_options *options,
                         struct phema_error *err);

#endif
