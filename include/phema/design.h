/* design.h - what a training should store: widths, times and dtype of snapshots for the averages
 * that will be wanted. No files, no tensors; safe from any thread. Errors are those that a solve
 * would predict for the stored snapshots (solver.h, N8), relative to |theta|. */
#ifndef PHEMA_DESIGN_H
#define PHEMA_DESIGN_H

#include "phema/dtype.h"
#include "phema/solver.h"

#define PHEMA_DESIGN_MAX_WIDTHS  4
#define PHEMA_DESIGN_MAX_TARGETS 64
#define PHEMA_DESIGN_MAX_ENDS    256

/* ---- Motion ---- */

/* How the parameters are expected to move. All but SEEN are scaled by (N24): a walk has its rate,
 * the other walks the same mean rate, white noise moves EMA 0.05 and 0.10 as far apart. */
enum phema_design_moving {
    PHEMA_MOVING_WALK,  /* a random walk of constant rate */
    PHEMA_MOVING_WHITE, /* white noise around a constant */
    PHEMA_MOVING_DRIFT, /* a walk whose rate falls as 1/t: a learning rate that falls as 1/sqrt t */
    PHEMA_MOVING_FALL,  /* a walk whose learning rate falls linearly to 0 */
    PHEMA_MOVING_SEEN   /* that of another training */
};
#define PHEMA_N_MOVING 4 /* those that need no other training */
extern const char *const phema_moving_names[PHEMA_N_MOVING + 1]; /* theirs, ended by NULL */

struct phema_design_motion {
    enum phema_design_moving moving;
    const struct phema_motion *seen; /* SEEN: borrowed; after its end the rate is b t^-q */
    double stretch;                  /* SEEN: time of this training over time of that one */
};

/* Rates of the walk and of the jitter at a time of a training until the end. */
void phema_design_rates(double *wander, double *jitter, const struct phema_design_motion *motion,
                        double until, double t);

/* ---- What is stored ---- */

/* One average, stored at each of the times. */
struct phema_design_width {
    struct phema_profile profile; /* power, EMA, ramped or raw; its end is ignored */
    double sigma_rel;             /* of a power function, else NaN */
    enum phema_dtype dtype;
};

/* Snapshots of a training. */
struct phema_design {
    struct phema_design_width widths[PHEMA_DESIGN_MAX_WIDTHS + 1]; /* raw parameters come last */
    size_t n_widths;
    double *times; /* [n_times] ascending; owned */
    size_t n_times;
    uint64_t disk_bytes;
    double worst_error;
    size_t worst_target; /* of the question */
    double worst_end;
};
void phema_design_clear(struct phema_design *design);

/* ---- The question ---- */

enum phema_design_spacing {
    PHEMA_SPACING_AUTO, /* the best of all */
    PHEMA_SPACING_EVEN, /* multiples of one interval */
};

struct phema_design_question {
    double until; /* end of the training [steps] */
    uint64_t model_elems;
    const struct phema_profile *targets; /* [n_targets] of any shape but tables; ends are ignored */
    size_t n_targets;
    const double *ends; /* [n_ends] times of the wanted averages, ascending, the last one until */
    size_t n_ends;
    double after; /* > 0: averages at any time from here on as well, where a snapshot is needed */
    struct phema_design_motion motion;
    /* restrictions */
    uint64_t disk_bytes; /* of all snapshots */
    double max_error;    /* > 0: the least disk that reaches it, at most disk_bytes */
    size_t least_widths, most_widths;
    enum phema_shape shape; /* of the averages that are kept: power or EMA */
    const double *fixed;    /* [n_fixed] their sigma_rel, rising, where they cannot be chosen */
    size_t n_fixed;
    bool has_raw;         /* each snapshot holds the raw parameters as well */
    uint64_t other_bytes; /* of each time, beside the snapshots: the state of an optimizer */
    size_t n_useless;     /* times of which the trainer stores as much, for nothing */
    double width_unit;    /* > 0: widths are multiples of it */
    enum phema_design_spacing spacing;
    double grain;                   /* > 0: even intervals are multiples of it */
    const enum phema_dtype *dtypes; /* [n_dtypes] allowed; all snapshots have one of them */
    size_t n_dtypes;
    const struct phema_profile *kept; /* [n_kept] snapshots that exist, ascending in time */
    const double *kept_rounding;      /* [n_kept] */
    size_t n_kept;
    double begun; /* > 0: the training has come to this time; new snapshots are later */
    /* Called now and then; NULL: never. share: of the work, 0 to 1 */
    void (*report)(void *context, double share);
    void *context;
};

/* A range of widths: those that the search looks at, and those whose errors are shown. */
#define PHEMA_DESIGN_SEARCHED 16
#define PHEMA_DESIGN_SHOWN    45
/* sigma_rels  out: [n] from first to last, both included, in equal ratios; n >= 2 */
void phema_design_spread(double *sigma_rels, size_t n, double first, double last);

/* Errors of a design: fills in worst_error, worst_target and worst_end.
 *   errors  out: [n_targets x n_ends] row-major; NULL: not wanted
 * PHEMA_ERR_INPUTS    a profile that cannot be followed: a table, updates every U steps
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_design_rate(struct phema_design *design, double *errors,
                                 const struct phema_design_question *question,
                                 struct phema_error *err);

/* Snapshots of more than this are never planned: a solve takes seconds from there on. */
#define PHEMA_DESIGN_MAX_SNAPSHOTS 512

/* Bytes that are stored at one time. */
uint64_t phema_design_bytes(const struct phema_design_width *widths, size_t n_widths,
                            const struct phema_design_question *question);

/* The widths of a question as a design has them: sigma_rel of a power function, or of the EMA with
 * the standard deviation sigma_rel * until. */
PHEMA_FALLIBLE phema_design_width_make(struct phema_design_width *out, double sigma_rel,
                                       enum phema_dtype dtype,
                                       const struct phema_design_question *question,
                                       struct phema_error *err);

/* Evenly spaced snapshots of given widths, as many as the disk holds: the usual choices. Failures
 * as phema_design_find. */
PHEMA_FALLIBLE phema_design_make_even(struct phema_design *out,
                                      const struct phema_design_width *widths, size_t n_widths,
                                      const struct phema_design_question *question,
                                      struct phema_error *err);

/* What trainers store by default, evenly spaced. */
struct phema_design_usual {
    const char *name;
    double sigma_rels[2];
    size_t n_widths;
    bool has_raw;
    enum phema_dtype dtype;
};
#define PHEMA_DESIGN_N_USUAL 4
extern const struct phema_design_usual phema_design_usuals[PHEMA_DESIGN_N_USUAL];

/* The choices from small to large disk: each has a smaller worst error than those before. With
 * max_error the disk is doubled until it is enough. */
#define PHEMA_DESIGN_MAX_CHOICES 8
struct phema_design_choices {
    struct phema_design items[PHEMA_DESIGN_MAX_CHOICES];
    size_t n;
    size_t chosen; /* the last one, or the first one within max_error */
};

/* The best design within the disk. Widths and times are searched together: a grid first, then
 * smaller steps, then single times. No usual choice that the question allows is better. Uses
 * threads; the result does not depend on their number.
 * PHEMA_ERR_TARGET    the disk does not hold a snapshot at each wanted end; no interval divides all
 *                     ends
 * PHEMA_ERR_INPUTS    as phema_design_rate
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_design_find(struct phema_design *out,
                                 const struct phema_design_question *question,
                                 struct phema_error *err);
/* PHEMA_NO  no choice is within max_error; choices are filled in, and the last one is chosen */
PHEMA_FALLIBLE phema_design_choose(struct phema_design_choices *out,
                                   const struct phema_design_question *question,
                                   struct phema_error *err);
void phema_design_choices_clear(struct phema_design_choices *choices);

#endif
