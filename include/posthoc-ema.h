/* SPDX-License-Identifier: Apache-2.0 */
/* posthoc-ema.h - averages of a training's parameters, made from its snapshots: what the command
 * posthoc-ema does, for programs that do it in their own process, such as trainers.
 *
 *   series  the snapshots of one training, as a directory, a manifest or a list names them
 *   plan    what is wanted of them: targets, their weights, the error to expect
 *   run     the plan carried out: every tensor read once, averages written
 *
 * What is recognised, what weights are and which formats are read and written is in the manual of
 * the command, posthoc-ema(1); options that are strings have the words of its options. The same
 * wishes give the same averages as there, to the last bit.
 *
 * Ownership. What arrives through `**out` is the caller's, to be closed or freed; those functions
 * take NULL. Strings and arrays inside results are borrowed and live as long as what they were
 * asked of. What is handed in is read during the call alone, but for `context`.
 *
 * Structs begin with `size`, set to sizeof by the caller: so programs that were compiled with an
 * older minor version keep working with a newer library. All else in an options struct may be 0,
 * which is the default. Options that a library does not know yet are refused where they are not 0.
 *
 * Failures. A status that is not POSTHOC_EMA_OK, and one sentence about what was expected, what was
 * found and in which file; it names options as the command does. Outputs appear whole under their
 * names or not at all, and after a failure no struct that was to be filled has changed.
 *
 * Threads. Calls on different objects may be made from different threads at once; calls on one
 * object one at a time. A run starts threads of its own and has joined them when it returns;
 * callbacks are called from the thread that called.
 *
 * The process. Nothing is printed, no signal is handled unless posthoc_ema_handle_signals is
 * called, and the process is not ended. What is shared by the whole process all the same:
 *   - The first solve for more than 700 snapshots loads libopenblas.so.0, where it is installed and
 *     the address space has room, with one thread: the calling thread is bound to one processor
 *     while it loads. OpenBLAS stays loaded. A process that has loaded it before keeps its threads,
 *     and the solve uses them.
 *   - A list of partial outputs and mapped files, for the handlers of signals; it is locked.
 *   - A run with many snapshots raises the soft limit of open files (RLIMIT_NOFILE), up to the hard
 *     one.
 *   - Snapshots are mapped where headers are read (and data, with io "mmap"), copies of checkpoints
 *     while they are written. Where such a file is cut short meanwhile, or the disk of an output is
 *     full or fails, the kernel sends SIGBUS, whose default ends the process; and SIGXFSZ at a
 *     limit on the size of files.
 *   - PHEMA_CPU in the environment is read: ref, avx2 or avx512 lowers the choice of instructions.
 * A process that was forked from one with a run under way must not call the library. */
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

/* Semantic: while MAJOR is 0 a new MINOR may change this page, and the soname changes with it. */
#define POSTHOC_EMA_VERSION_MAJOR 0
#define POSTHOC_EMA_VERSION_MINOR 1
#define POSTHOC_EMA_VERSION_PATCH 0
POSTHOC_EMA_API const char *posthoc_ema_version(void); /* of the library that runs: "0.1.0" */

/* The values are the exit statuses of the command. */
enum posthoc_ema_status {
    POSTHOC_EMA_OK = 0,
    POSTHOC_EMA_NO = 1,           /* the predicted error is above max_error */
    POSTHOC_EMA_ERR_USAGE = 2,    /* an option has no such value, or does not go with another */
    POSTHOC_EMA_ERR_FILE = 3,     /* a file is unreadable, corrupt, or holds what is refused */
    POSTHOC_EMA_ERR_INPUTS = 4,   /* the snapshots do not fit together or say too little */
    POSTHOC_EMA_ERR_TARGET = 5,   /* the target cannot be reached from these snapshots */
    POSTHOC_EMA_ERR_OUTPUT = 6,   /* an output exists, cannot be written, no space */
    POSTHOC_EMA_ERR_RESOURCE = 7, /* not enough memory within the limit, or no threads */
    POSTHOC_EMA_CANCELLED = 8,    /* progress asked for it */
    POSTHOC_EMA_BUG = 70
};

/* The caller's; NULL wherever one is taken: the sentence is not wanted. */
struct posthoc_ema_error {
    /* Lower-case, without full stop; cut with "..." when too long. Names in it can be printed:
     * control characters and others that a terminal obeys or hides are escaped. */
    char message[1024];
};

/* ---- While training ---- */

/* The exponent [1] of the power-function average of relative width sigma_rel, in (0, 0.289).
 * ERR_TARGET where there is none. */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status posthoc_ema_gamma(double *gamma, double sigma_rel,
                                                               struct posthoc_ema_error *error);
POSTHOC_EMA_API double posthoc_ema_sigma_rel(double gamma); /* its inverse; gamma > -1 */

/* What the average keeps of itself at a step, e = beta e + (1 - beta) theta, steps counted from 1:
 * (1 - 1/step)^(gamma+1), 0 at the first. To be applied at every step. */
POSTHOC_EMA_API double posthoc_ema_beta(double gamma, uint64_t step);

/* ---- Weights alone: no files ---- */

/* A power-function average of exponent gamma that ends at time t > 0 [any unit, one for all].
 * update_every: it is touched at steps 1, 1+U, 1+2U, ... only, as ema-pytorch does, and t counts
 * steps; 0 and 1: at every step. */
struct posthoc_ema_profile {
    double gamma, t;
    uint64_t update_every;
};

/* weights: [n x m] row-major, weights[k * m + j] of snapshot k in target j. metric "walk" (also for
 * NULL) or "profile" (the paper's and EDM2's).
 * ERR_INPUTS two snapshots are the same average, or one is out of range; ERR_TARGET a target is
 * later than every snapshot; ERR_RESOURCE memory, 96 n^2 bytes. From 256 snapshots on, threads
 * help as long as the call lasts; the weights do not depend on them. */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_weights(double *weights, const struct posthoc_ema_profile *snapshots, size_t n,
                    const struct posthoc_ema_profile *targets, size_t m, const char *metric,
                    struct posthoc_ema_error *error);

/* ---- Series ---- */

struct posthoc_ema_series; /* does not change once it is open */

struct posthoc_ema_series_options {
    size_t size;
    const char *layout;         /* "edm2", "ema-pytorch", ...; NULL: recognised by names */
    const char *name_regex;     /* what names say, in groups time, sigma, index */
    const char *unit;           /* a label: "steps", "images", "kimg", "tokens" */
    const char *key;            /* subtree of nested checkpoints; NULL: found, ".": all */
    const double *input_sigmas; /* [n] sigma_rel by index, where nothing else says it */
    size_t n_input_sigmas;
    const char *const *input_profiles; /* [n] the same for other shapes: "ema:half-life=2000" */
    size_t n_input_profiles;
    uint64_t update_every;
    double from, to;      /* times as names write them, both included; to 0: no end */
    uint64_t every, last; /* every so many times, the last so many; 0: all */
    const char *const *includes, *const *excludes; /* [n] expressions on names of tensors */
    size_t n_includes, n_excludes;
    const char *const
        *allow_globals; /* [n] names that pickles may have besides, as inert objects */
    size_t n_allow_globals;
};

/* snapshots: a directory, a manifest (*.json) or @list. options: NULL for none. Headers are read,
 * data are not. ERR_FILE, ERR_INPUTS, ERR_RESOURCE */
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
    const char *const *notes; /* [n_notes] sentences: what was recognised, left out, guessed */
};
struct posthoc_ema_snapshot {
    size_t size;
    const char *file;        /* relative to the directory, as weights and provenance name it */
    double named_time, time; /* as its name says; on the clock of the averages (EDM2: images) */
    double sigma_rel, gamma; /* of a power function, else NaN */
    const char *profile;     /* "power:gamma=6.94", "ema:half-life=2000", ... */
    uint64_t bytes;          /* of its files */
};
/* ERR_USAGE: size is none that the library knows, or k is not below n_snapshots. */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_series_info(const struct posthoc_ema_series *series,
                        struct posthoc_ema_series_info *info, struct posthoc_ema_error *error);
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_series_snapshot(const struct posthoc_ema_series *series, size_t k,
                            struct posthoc_ema_snapshot *snapshot, struct posthoc_ema_error *error);

/* ---- Plan ---- */

struct posthoc_ema_plan;

struct posthoc_ema_plan_options {
    size_t size;
    const double *sigma_rels; /* [n] widths of the averages to make, or ... */
    size_t n_sigma_rels;
    const char *const *profiles; /* [n] ... other shapes: "window:20k", "raw - ema:2000" */
    size_t n_profiles;
    const double *ats; /* [n] times as names write them; none: the newest snapshot */
    size_t n_ats;
    const char *const
        *rules; /* [n] "RE=SIGMA", "RE=copy": other widths for tensors of such names */
    size_t n_rules;
    const char *metric;     /* "motion" (default), "walk", "profile" */
    double max_error;       /* status NO where more is predicted; 0: no such gate */
    uint64_t max_ram_bytes; /* of anonymous memory of the process; 0: no limit */
};

/* Looks at the snapshots anew: those that have come since the series was opened take part, and the
 * plan does not need it any longer. Solves for the weights; with metric "motion" some 2000 elements
 * of every snapshot are read. Targets: all averages at the first time, then at the next.
 * ERR_USAGE, ERR_FILE, ERR_INPUTS, ERR_TARGET, ERR_RESOURCE, NO */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_plan_make(struct posthoc_ema_plan **out, const struct posthoc_ema_series *series,
                      const struct posthoc_ema_plan_options *options,
                      struct posthoc_ema_error *error);
POSTHOC_EMA_API void posthoc_ema_plan_free(struct posthoc_ema_plan *plan);

struct posthoc_ema_plan_info {
    size_t size;
    const char *metric; /* that was used: "walk" where it is not known how parameters moved */
    size_t n_snapshots, n_targets;
};
struct posthoc_ema_target {
    size_t size;
    double named_time, time, sigma_rel, gamma; /* as of a snapshot */
    const char *profile;
    const double *weights;  /* [n_snapshots] 0 for those that are left out */
    double predicted_error; /* of the average, relative to the norm of all parameters; or NaN */
    double profile_error;   /* of its profile, relative; NaN where there is none */
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
    size_t size;                      /* as the library knows it */
    uint64_t done_bytes, total_bytes; /* of snapshots, read */
    double elapsed_s;
    const char *tensor; /* [tensor_size] one that is being worked on; no NUL behind it */
    size_t tensor_size;
};

struct posthoc_ema_run_options {
    size_t size;
    const char *into;     /* a checkpoint that outputs are copies of; NULL: the newest snapshot */
    const char *dtype;    /* of the averages: "f32", "f16", "bf16"; NULL: as in the snapshots */
    const char *overflow; /* "error" (default), "saturate", "inf" */
    const char *io;       /* "auto" (default), "mmap", "read", "direct" */
    uint64_t
        shard_bytes;  /* a directory of safetensors files of at most this size; 0: as they are */
    int level;        /* of .safetensors.zst, 1 to 22; 0: 3 */
    int replaces;     /* existing outputs; 0: ERR_OUTPUT */
    int skips_sync;   /* do not wait until outputs are safe on disk */
    int drops_cache;  /* leave nothing of snapshots and outputs in the page cache */
    int verifies;     /* read outputs back before they get their names */
    int refuses_nan;  /* averages that are NaN or infinite: ERR_FILE */
    unsigned threads; /* 0: the processors this process may use */
    /* About ten times a second. Not 0: stop, and nothing is published; where all tensors have been
     * added up already the run ends as if that had not been asked. */
    int (*progress)(void *context, const struct posthoc_ema_progress *progress);
    void *context;
    const char *input_hash; /* by what the provenance knows snapshots again: "full" (default), of
                             * all data that were read, "sampled", of windows of them */
};

struct posthoc_ema_result {
    size_t size;
    uint64_t read_bytes, written_bytes;
    double elapsed_s;
    uint64_t n_nan, n_inf, n_overflow;       /* elements written, over all outputs */
    size_t n_averaged, n_copied, n_constant; /* tensors; constant: equal in all snapshots, copied */
    uint64_t peak_anonymous_bytes;           /* of the process, as sampled */
};

/* out: a file, whose end says what is written (.safetensors, .safetensors.zst, .pt, .pth, .ckpt,
 * .pkl); a directory; or names like "sweep/phema-{time}-{sigma}.safetensors". result: may be NULL.
 * A plan may be run again. All statuses above, and CANCELLED. */
POSTHOC_EMA_FALLIBLE enum posthoc_ema_status
posthoc_ema_run(struct posthoc_ema_plan *plan, const char *out,
                const struct posthoc_ema_run_options *options, struct posthoc_ema_result *result,
                struct posthoc_ema_error *error);

/* Where the last run that succeeded has put target j; NULL before there was one. Until the next. */
POSTHOC_EMA_API const char *posthoc_ema_output(const struct posthoc_ema_plan *plan, size_t j);

/* ---- Signals, for those who ask for it ---- */

/* Handles the signals that end a process (SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU,
 * SIGALRM, SIGUSR1, SIGUSR2) as the command does, in the whole process and for good: partial
 * outputs are removed, then the process ends by that signal. SIGBUS in a file that was mapped says
 * on standard error which one it was and ends with status 3 or 6; SIGXFSZ is ignored. Signals that
 * are ignored stay ignored. Without it a process that is killed leaves PATH.partial, which the next
 * run to PATH takes over. */
POSTHOC_EMA_API void posthoc_ema_handle_signals(void);

#ifdef __cplusplus
}
#endif

#endif
