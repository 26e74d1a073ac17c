/* SPDX-License-Identifier: Apache-2.0 */
/* posthoc-ema.h - averages of a training's parameters, made from its snapshots. This is the command
 * posthoc-ema as a library, for programs such as trainers.
 *
 *   series  the snapshots of one training, named by a directory, a manifest or a list
 *   plan    targets, their weights and the predicted error
 *   run     executes a plan: reads every tensor once and writes the averages
 *
 * The manual of the command, posthoc-ema(1), describes the layouts, the weights and the formats.
 * Options that are strings take the same values as the command's options. The same options give the
 * same averages as the command, to the last bit.
 *
 * Ownership. The caller owns what arrives through `**out` and closes or frees it; those functions
 * take NULL. Strings and arrays inside results are borrowed: they live as long as the object that
 * returned them. The library reads arguments only during the call, except for `context`.
 *
 * Structs begin with `size`, which the caller sets to sizeof. So programs that were compiled with
 * an older minor version keep working with a newer library. All other members of an options struct
 * may be 0, which is the default. A library refuses options that it does not know when they are not
 * 0.
 *
 * Failures. A failed call returns a status other than POSTHOC_EMA_OK. Its message is one sentence:
 * what was expected, what was found, and in which file. It names options by the
 * arguments of the package for Python: "input_sigma=". Outputs appear whole under their names or
 * not at all. A failed call changes no struct that it was to fill.
 *
 * Threads. Different threads may use different objects at the same time; only one thread at a time
 * may use an object. Functions that describe a series or plan (_info, _snapshot, _set, _left_out,
 * _target, _tensor) may be called meanwhile, also in callbacks. A run starts its own threads and joins them before it
 * returns. Callbacks run in the calling thread; they must not free, run or read their own plan.
 *
 * The process. The library prints nothing and never ends the process. It handles signals only after
 * a call of posthoc_ema_handle_signals. It does affect the whole process in these ways:
 *   - The first solve for more than 700 snapshots loads libopenblas.so.0, if it is installed and
 *     the address space has enough space. OpenBLAS is loaded with one thread: the calling thread is
 *     bound to one processor while it loads. OpenBLAS stays loaded. If the process loaded OpenBLAS
 *     before, it keeps its threads, and the solve uses them.
 *   - A locked list holds partial outputs and mapped files, for the signal handlers.
 *   - A run with many snapshots raises the soft limit of open files (RLIMIT_NOFILE), up to the hard
 *     limit.
 *   - Snapshots are mapped to read headers (and data, with io "mmap"); copies of checkpoints are
 *     mapped while they are written. If such a file is truncated meanwhile, or the disk of an
 *     output is full or fails, the kernel sends SIGBUS, which by default ends the process. At a
 *     limit on the size of files it sends SIGXFSZ.
 *   - PHEMA_CPU in the environment is read: ref, avx2 or avx512 lowers the choice of instructions.
 * A process that was forked during a run must not call the library. */
#ifndef POSTHOC_EMA_H
#define POSTHOC_EMA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define POSTHOC_EMA_API      __attribute__((visibility("default")))
#define POSTHOC_EMA_FALLIBLE POSTHOC_EMA_API __attribute__((warn_unused_result))
#else
#define POSTHOC_EMA_API
#define POSTHOC_EMA_FALLIBLE
#endif

/* Semantic versions: while MAJOR is 0, a new MINOR may change this header and changes the
 * soname. */
#define POSTHOC_EMA_VERSION_MAJOR 0
#define POSTHOC_EMA_VERSION_MINOR 1
#define POSTHOC_EMA_VERSION_PATCH 0
POSTHOC_EMA_API const char *posthoc_ema_version(void); /* of the loaded library: "0.1.0" */

/* The values are the exit statuses of the command. */
enum posthoc_ema_status {
    POSTHOC_EMA_OK = 0,
    POSTHOC_EMA_NO = 1,           /* the predicted error is above max_error */
    POSTHOC_EMA_ERR_USAGE = 2,    /* an option has an invalid value, or conflicts with another */
    POSTHOC_EMA_ERR_FILE = 3,     /* a file is unreadable, corrupt, or has refused contents */
    POSTHOC_EMA_ERR_INPUTS = 4,   /* the snapshots do not agree or lack information */
    POSTHOC_EMA_ERR_TARGET = 5,   /* the target cannot be reached from these snapshots */
    POSTHOC_EMA_ERR_OUTPUT = 6,   /* an output exists, cannot be written, no space */
    POSTHOC_EMA_ERR_RESOURCE = 7, /* not enough memory within the limit, or no threads */
    POSTHOC_EMA_CANCELLED = 8,    /* the progress callback stopped the call */
    POSTHOC_EMA_BUG = 70
};

/* Owned by the caller. Every function accepts NULL instead: no message is wanted. */
struct posthoc_ema_error {
    /* Lower-case, without full stop; truncated with "..." when too long. It is safe to print:
     * control characters and others that a terminal obeys or hides are escaped. */
    char message[1024];
};

/* ---- While training ---- */

/* The exponent [1] of the power-function average of relative width sigma_rel, in (0, 0.289).
 * ERR_TARGET  no exponent has this width */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status posthoc_ema_gamma(double *gamma, double sigma_rel,
                                                               struct posthoc_ema_error *error);
POSTHOC_EMA_API double posthoc_ema_sigma_rel(double gamma); /* its inverse; gamma > -1 */

/* The factor beta of the update e = beta e + (1 - beta) theta at a step, counted from 1:
 * (1 - 1/step)^(gamma+1), 0 at the first step. Apply the update at every step. */
POSTHOC_EMA_API double posthoc_ema_beta(double gamma, uint64_t step);

/* ---- Before training: what to store ---- */

struct posthoc_ema_design;
struct posthoc_ema_plan;

struct posthoc_ema_design_options {
    size_t size;
    double until;            /* steps of the training */
    uint64_t model_elements; /* numbers of the model */
    uint64_t disk_bytes;     /* for all snapshots; 0: as much as max_error needs */
    double max_error;        /* the least disk with this worst error; 0: the best within the disk */
    const double *sigma_rels; /* [n] widths of the averages that will be wanted */
    size_t n_sigma_rels;
    const double *ats; /* [n] their times; the end is always among them */
    size_t n_ats;
    double after;       /* at any time from here on, too; 0: not */
    size_t max_widths;  /* averages to keep, 1 to 4; 0: 3 */
    const char *dtype;  /* of the snapshots: "f16", "f32", "bf16"; NULL: f16 or f32 */
    const char *motion; /* of the parameters: "walk" (default), "white", "drift", "fall" */
    int is_even;        /* save at multiples of one interval */
    double from, to;    /* a range of widths, instead of sigma_rels; to 0: no range */
    const double
        *input_sigmas; /* [n] widths that the training keeps, where they cannot be chosen */
    size_t n_input_sigmas;
    /* of another training: parameters will move as they did there; not together with motion; NULL:
     * none. Read during the call only */
    const struct posthoc_ema_plan *like;
};

/* Plans widths, times and dtype of the snapshots of a training, as the verb design does.
 * NO            the worst error stays above max_error
 * ERR_USAGE     an option is out of range
 * ERR_INPUTS    the snapshots of `like` do not show how parameters move
 * ERR_TARGET    a width that does not exist; the disk is too small */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_design_make(struct posthoc_ema_design **out,
                        const struct posthoc_ema_design_options *options,
                        struct posthoc_ema_error *error);
POSTHOC_EMA_API void posthoc_ema_design_free(struct posthoc_ema_design *design);

struct posthoc_ema_design_info {
    size_t size;
    size_t n_widths;
    const double *widths, *gammas; /* [n_widths] sigma_rel and exponent of the averages to keep */
    size_t n_times;
    const double *times; /* [n_times] steps at which to save all of them */
    const char *dtype;   /* "f16", "f32", "bf16" */
    uint64_t disk_bytes;
    double worst_error;                 /* predicted, of all wanted averages, and ... */
    double worst_sigma_rel, worst_time; /* ... of which */
};
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_design_info(const struct posthoc_ema_design *design,
                        struct posthoc_ema_design_info *info, struct posthoc_ema_error *error);

/* ---- Weights without files ---- */

/* A power-function average of exponent gamma that ends at time t > 0 [any unit, one for all].
 * update_every: the average is updated only at steps 1, 1+U, 1+2U, ..., as in ema-pytorch, and t
 * counts steps; 0 and 1: at every step. */
struct posthoc_ema_profile {
    double gamma, t;
    uint64_t update_every;
};

/* weights: [n x m] row-major, weights[k * m + j] of snapshot k in target j. metric "walk" (also for
 * NULL) or "profile" (the paper's and EDM2's). With 256 snapshots or more the call uses threads;
 * the weights do not depend on their number.
 * ERR_INPUTS    two snapshots are the same average, or one is out of range
 * ERR_TARGET    a target is later than every snapshot
 * ERR_RESOURCE  no memory: 96 n^2 bytes */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_weights(double *weights, const struct posthoc_ema_profile *snapshots, size_t n,
                    const struct posthoc_ema_profile *targets, size_t m, const char *metric,
                    struct posthoc_ema_error *error);

/* ---- Series ---- */

struct posthoc_ema_series; /* immutable */

struct posthoc_ema_series_options {
    size_t size;
    const char *layout;         /* "edm2", "ema-pytorch", ...; NULL: recognised by names */
    const char *name_regex;     /* matches names, with groups time, sigma, index */
    const char *unit;           /* a label: "steps", "images", "kimg", "tokens" */
    const char *key;            /* subtree of nested checkpoints; NULL: automatic, ".": all */
    const double *input_sigmas; /* [n] sigma_rel by index, where names and files lack it */
    size_t n_input_sigmas;
    const char *const *input_profiles; /* [n] likewise for other shapes: "ema:half-life=2000" */
    size_t n_input_profiles;
    uint64_t update_every;
    double from, to;      /* times as in names, both included; to 0: no end */
    uint64_t every, last; /* only every n-th time, only the last n; 0: all */
    const char *const *includes, *const *excludes; /* [n] expressions on names of tensors */
    size_t n_includes, n_excludes;
    const char *const
        *allow_globals; /* [n] further globals that pickles may name, read as inert objects */
    size_t n_allow_globals;
    /* [n] "T" or "T,counter": the training was resumed at T with averages that were copies of the
     * weights; counter: their step count restarted */
    const char *const *resets;
    size_t n_resets;
    double time_offset; /* the averages end so much later than the names say */
    const char *use; /* of files with raw parameters beside averages: "all" (default), "averages",
                         * "raw" */
    const char *run; /* snapshots of this run alone: an id that the recorder wrote, or its
                      * beginning; NULL: ERR_INPUTS where there are several runs */
};

/* snapshots: a directory, a manifest (*.json) or @list. options: NULL for none. Reads headers, and
 * no data but raw parameters that may be tied to averaged ones, in checkpoints that have both.
 * ERR_FILE, ERR_INPUTS, ERR_RESOURCE */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_series_open(struct posthoc_ema_series **out, const char *snapshots,
                        const struct posthoc_ema_series_options *options,
                        struct posthoc_ema_error *error);
POSTHOC_EMA_API void posthoc_ema_series_close(struct posthoc_ema_series *series);

struct posthoc_ema_series_info {
    size_t size;
    const char *layout, *unit;
    size_t n_snapshots;
    size_t n_tensors, n_averaged; /* the others are copied from the newest snapshot */
    size_t n_notes;
    const char *const *notes; /* [n_notes] sentences on recognised, skipped and guessed things */
    const char *times; /* where times were found: "names", "counter", "metadata", "manifest" */
    const char *field; /* name of the counter, or the expression for names; NULL: the layout's */
    size_t n_sets, n_left_out;
};
/* A set of tensors that are the same parameters as those of the other sets. */
struct posthoc_ema_set {
    size_t size;
    const char *name; /* its key, "" for all tensors; of files their name with # for numbers */
    const char *role; /* "average", "raw"; NULL: unknown */
    const char *by;   /* what decided that: "data", "names", "trainer", "labels" */
    double margin;    /* of "data", how clearly, from 0 to 1; else NaN */
};
/* A checkpoint file that takes no part. */
struct posthoc_ema_left_out {
    size_t size;
    const char *file, *reason;
};
struct posthoc_ema_snapshot {
    size_t size;
    const char *file;        /* relative to the directory, as in weights and provenance */
    double named_time, time; /* as in the name; on the clock of the averages (EDM2: images) */
    double sigma_rel, gamma; /* of a power function, else NaN */
    const char *profile;     /* "power:gamma=6.94", "ema:half-life=2000", ... */
    uint64_t bytes;          /* size of its files */
};
/* ERR_USAGE  size is invalid, or the index is not below n_snapshots, n_sets or n_left_out */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_series_info(const struct posthoc_ema_series *series,
                        struct posthoc_ema_series_info *info, struct posthoc_ema_error *error);
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_series_snapshot(const struct posthoc_ema_series *series, size_t k,
                            struct posthoc_ema_snapshot *snapshot, struct posthoc_ema_error *error);
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_series_set(const struct posthoc_ema_series *series, size_t i,
                       struct posthoc_ema_set *set, struct posthoc_ema_error *error);
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_series_left_out(const struct posthoc_ema_series *series, size_t i,
                            struct posthoc_ema_left_out *file, struct posthoc_ema_error *error);

/* ---- Plan ---- */

struct posthoc_ema_plan;

struct posthoc_ema_plan_options {
    size_t size;
    const double *sigma_rels; /* [n] widths of the averages to make, or ... */
    size_t n_sigma_rels;
    const char *const *profiles; /* [n] ... other shapes: "window:20k", "raw - ema:2000" */
    size_t n_profiles;
    const double *ats; /* [n] times as in names; none: the newest snapshot */
    size_t n_ats;
    const char *const
        *rules; /* [n] "RE=SIGMA", "RE=copy": other widths for tensors whose names match */
    size_t n_rules;
    const char *metric;     /* "motion" (default), "walk", "profile" */
    double max_error;       /* status NO if the predicted error is larger; 0: no limit */
    uint64_t max_ram_bytes; /* limit on anonymous memory of the process; 0: no limit */
    /* snapshots that do not fit their labels: "warn": their errors are unknown; "error":
     * ERR_INPUTS; "off": nothing is compared. NULL: "error" where raw parameters beside an average
     * refute its profile, averages differ that would be the same, or a profile was assumed, since
     * neither the options nor the files say it; else "warn". A program that scores
     * averages to find the best width should ask for "error", as search does */
    const char *checks;
    const char
        *schedule; /* of the learning rate: "cosine", "wsd:decay=10%", ..., or a file of steps
                           * and rates; NULL: unknown */
};

/* Opens the snapshots again, so it includes those that were added after the series was opened. The
 * series may be closed afterwards. Solves for the weights; metric "motion" reads some 2000 elements
 * of every snapshot. Targets: all averages at the first time, then at the next.
 * ERR_USAGE, ERR_FILE, ERR_INPUTS, ERR_TARGET, ERR_RESOURCE, NO */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_plan_make(struct posthoc_ema_plan **out, const struct posthoc_ema_series *series,
                      const struct posthoc_ema_plan_options *options,
                      struct posthoc_ema_error *error);
POSTHOC_EMA_API void posthoc_ema_plan_free(struct posthoc_ema_plan *plan);

struct posthoc_ema_plan_info {
    size_t size;
    const char *metric; /* the one used: "walk" if the motion of parameters is unknown */
    size_t n_snapshots, n_targets;
    size_t n_tensors;
    /* Whether the snapshots are what their labels say: "unknown", "unchecked" (no
     * snapshot is odd, but files do not tell the width of a single average), "fits", "doubtful",
     * "wrong". Errors of averages of wrong labels are not predicted. */
    const char *verdict;
    const char *reason; /* of unchecked, doubtful and wrong, a part of a sentence; else NULL */
    size_t suspect;     /* the snapshot that is blamed; n_snapshots: no single one */
    size_t n_warnings;
    /* [n_warnings] sentences: averages may not be what was asked for, or their errors are large or
     * unknown. The command prints them even with --quiet */
    const char *const *warnings;
};
struct posthoc_ema_target {
    size_t size;
    double named_time, time, sigma_rel, gamma; /* as in struct posthoc_ema_snapshot */
    const char *profile;
    const double *weights;  /* [n_snapshots] 0 for those that are left out */
    double predicted_error; /* of the average, relative to the norm of all parameters; or NaN */
    double profile_error;   /* of its profile, relative; NaN without a profile */
    double norm1, norm2;    /* of the weights */
};
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_plan_info(const struct posthoc_ema_plan *plan, struct posthoc_ema_plan_info *info,
                      struct posthoc_ema_error *error);
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_plan_snapshot(const struct posthoc_ema_plan *plan, size_t k,
                          struct posthoc_ema_snapshot *snapshot, struct posthoc_ema_error *error);
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_plan_target(const struct posthoc_ema_plan *plan, size_t j,
                        struct posthoc_ema_target *target, struct posthoc_ema_error *error);

/* ---- Run ---- */

struct posthoc_ema_progress {
    size_t size;                      /* set by the library */
    uint64_t done_bytes, total_bytes; /* of snapshots, read */
    double elapsed_s;
    const char *tensor; /* [tensor_size] a tensor in work; not NUL-terminated */
    size_t tensor_size;
};

struct posthoc_ema_run_options {
    size_t size;
    const char *into; /* the checkpoint to copy and fill; NULL: the newest snapshot */
    /* of the averages: "f32", "f16", "bf16"; NULL: as in the snapshots, bf16 for fp8 with scales */
    const char *dtype;
    const char *overflow; /* "error" (default), "saturate", "inf" */
    const char *io;       /* "auto" (default), "mmap", "read", "direct" */
    uint64_t
        shard_bytes;  /* a directory of safetensors files of at most this size; 0: as they are */
    int level;        /* of .safetensors.zst, 1 to 22; 0: 3 */
    int replaces;     /* replace existing outputs; 0: ERR_OUTPUT */
    int skips_sync;   /* do not wait until outputs are safe on disk */
    int drops_cache;  /* leave no snapshots and outputs in the page cache */
    int verifies;     /* reread snapshots and outputs before outputs get their names */
    int refuses_nan;  /* averages that are NaN or infinite: ERR_FILE */
    unsigned threads; /* 0: the processors this process may use */
    /* Called about ten times a second. A result other than 0 stops the run, and nothing is
     * published. When all tensors are summed already, the run completes instead. */
    int (*progress)(void *context, const struct posthoc_ema_progress *progress);
    void *context;
    const char *input_hash; /* fingerprints of snapshots in the provenance: "full" (default), of all
                             * data that were read; "sampled", of windows of the data */
};

struct posthoc_ema_result {
    size_t size;
    uint64_t read_bytes, written_bytes;
    double elapsed_s;
    uint64_t n_nan, n_inf, n_overflow;       /* elements written, over all outputs */
    size_t n_averaged, n_copied, n_constant; /* tensors; constant: equal in all snapshots, copied */
    uint64_t peak_anonymous_bytes;           /* of the process, by sampling */
};

/* out: a file, whose extension selects the format (.safetensors, .safetensors.zst, .pt, .pth,
 * .ckpt, .pkl); a directory; or names like "sweep/phema-{time}-{sigma}.safetensors". result: may be
 * NULL. A plan may be run again. All statuses above, and CANCELLED. */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_run(struct posthoc_ema_plan *plan, const char *out,
                const struct posthoc_ema_run_options *options, struct posthoc_ema_result *result,
                struct posthoc_ema_error *error);

/* Path of target j in the last successful run; NULL before the first one. Valid until the next. */
POSTHOC_EMA_API const char *posthoc_ema_output(const struct posthoc_ema_plan *plan, size_t j);

/* ---- Tensors without a file ---- */

struct posthoc_ema_tensor {
    size_t size;
    const char *name; /* [name_size] as outputs have it; may contain NULs */
    size_t name_size;
    const char *dtype;     /* of the average: "F32", "BF16", "I64", ... as in safetensors */
    const uint64_t *shape; /* [rank] */
    size_t rank;
    uint64_t bytes;  /* of the average, in C order */
    int is_averaged; /* else it is copied from the newest snapshot */
    size_t same_as;  /* the first tensor that has the same storage in every snapshot, or itself */
};

/* Tensor i of the averages, below n_tensors. dtype: as in the options of a run, or NULL. */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_plan_tensor(const struct posthoc_ema_plan *plan, size_t i, const char *dtype,
                        struct posthoc_ema_tensor *tensor, struct posthoc_ema_error *error);

struct posthoc_ema_read_options {
    size_t size;
    const char *dtype, *overflow, *io; /* as in struct posthoc_ema_run_options */
    unsigned threads;                  /* 0: the processors this process may use */
    /* As in struct posthoc_ema_run_options; a result other than 0 ends the reading. */
    int (*progress)(void *context, const struct posthoc_ema_progress *progress);
    void *context;
};

/* Makes tensor i of target j in memory, with the bytes that a run writes. Reads this tensor of the
 * snapshots; those that are compressed without a seek table are decompressed up to it, so that a
 * run is faster for all tensors.
 *   data  out: [size] C order, in the dtype of posthoc_ema_plan_tensor; undefined after a failure
 *   size  the tensor's bytes
 * All statuses above, without those of outputs; CANCELLED. */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_read(const struct posthoc_ema_plan *plan, size_t j, size_t i,
                 const struct posthoc_ema_read_options *options, void *data, size_t size,
                 struct posthoc_ema_error *error);

/* Makes all tensors of n targets from target j on, in one pass over the snapshots. This is many
 * times as fast as posthoc_ema_read of each, and needs no more memory.
 *   data   [n x n_tensors] out: those of the first target, then those of the next one: each as
 *          posthoc_ema_read makes it. NULL: the tensor's same_as has its data
 *   sizes  [n_tensors] bytes of each tensor */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_read_all(const struct posthoc_ema_plan *plan, size_t j, size_t n,
                     const struct posthoc_ema_read_options *options, void *const *data,
                     const size_t *sizes, struct posthoc_ema_error *error);

/* ---- Search ---- */

/* The search of the command: first a grid of widths, then widths around the best one. */
struct posthoc_ema_search_options {
    size_t size;
    double from, to;  /* range of sigma_rel */
    size_t n_coarse;  /* widths of the grid, 2 to 1000; 0: 6, fewer where the range is narrow */
    double tolerance; /* of the best width, at least 0.001; 0: 0.005 */
    double noise;     /* standard deviation of one score; 0: none */
    int maximizes;
};

/* The widths to score next. They follow from the scores alone; a score that is not finite is worse
 * than all others.
 *   next        out: [most]
 *   n_next      out: 0 when the search is complete
 *   sigma_rels  [n] widths that were scored, and their scores
 * ERR_USAGE, ERR_TARGET, ERR_RESOURCE */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_search_next(double *next, size_t *n_next, size_t most,
                        const struct posthoc_ema_search_options *options, const double *sigma_rels,
                        const double *scores, size_t n, struct posthoc_ema_error *error);

/* ---- Signals, on request ---- */

/* Handles the signals that end a process (SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU,
 * SIGALRM, SIGUSR1, SIGUSR2) as the command does, in the whole process and permanently: the handler
 * removes partial outputs, then the process ends by that signal. SIGBUS in a mapped file prints its
 * name on standard error and ends the process with status 3 or 6; SIGXFSZ is ignored. Signals that
 * are ignored stay ignored. Without these handlers a killed process leaves PATH.partial, which the
 * next run to PATH takes over. */
POSTHOC_EMA_API void posthoc_ema_handle_signals(void);

#ifdef __cplusplus
}
#endif

#endif
