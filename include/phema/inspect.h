/* inspect.h - sums over the tensors of a checkpoint or a series, by dtype, component and rule; tied
 * tensors; the times of a series: runs of equal steps, gaps, missing and duplicate snapshots. */
#ifndef PHEMA_INSPECT_H
#define PHEMA_INSPECT_H

#include "phema/arena.h"
#include "phema/ops.h"
#include "phema/plan.h"
#include "phema/series.h"

struct inspect_total {
    const char *label; /* dtype, prefix of names, or reason; borrowed, label_size bytes of it */
    size_t label_size;
    enum inspect_rule { INSPECT_AVERAGE, INSPECT_COPY, INSPECT_LEFT_OUT } rule;
    size_t first; /* tensor */
    uint64_t n_tensors, n_elems, size_bytes;
    uint64_t n_params, n_buffer_elems; /* of n_elems; buffers where the file says so */
};

struct inspect_totals {
    struct inspect_total *items;
    size_t n;
};

struct inspect_summary {
    const struct phema_tensor *tensors; /* [n_tensors] borrowed, or in the arena */
    size_t n_tensors;
    const struct phema_series *series; /* borrowed; NULL: synth cannot use it as a snapshot */
    struct phema_series *own_series;   /* of a checkpoint; NULL otherwise */
    const char *refusal;               /* why not; in the arena */
    struct inspect_totals dtypes;      /* from the widest */
    struct inspect_totals components;  /* in the order of the file */
    struct inspect_totals rules;
    bool knows_kinds; /* the file distinguishes parameters and buffers */
    size_t *ties;     /* [n_ties] indices of tensors that share storage, group by group */
    size_t *tie_ends; /* [n_groups] where each group ends in ties */
    size_t n_ties, n_groups;
    struct phema_arena arena;
};

/* Of a checkpoint, which stays open as long. options: of the series that it makes alone. The
 * tensors are those of the series, unless it is of one checkpoint (series->became).
 * PHEMA_ERR_RESOURCE  alone; where synth refuses it, the summary says why */
PHEMA_FALLIBLE inspect_summarise_checkpoint(struct inspect_summary *out,
                                            struct phema_checkpoint *checkpoint,
                                            const struct phema_series_options *options,
                                            struct phema_error *err);
/* Of a series, whose tensors the summary then owns. */
PHEMA_FALLIBLE inspect_summarise_series(struct inspect_summary *out,
                                        const struct phema_series *series, struct phema_error *err);
void inspect_summary_clear(struct inspect_summary *summary);

/* The rule of tensor i in a summary with a series. *reason: NULL for an average. */
enum inspect_rule inspect_rule_of(const struct inspect_summary *summary, size_t i,
                                  const char **reason);

/* ---- Times ---- */

/* Consecutive times with the same kinds of averages. */
struct inspect_run {
    double from, to, every; /* as named; every: 0 of uneven times, NaN of one alone */
    uint64_t kinds;         /* bit i: kind i; all kinds beyond the last bit share it */
    size_t n_snapshots;
    uint64_t size_bytes;
};

struct inspect_gap {
    double from, to; /* the times before and after it */
    size_t n;        /* times that are missing between them */
};

struct inspect_missing {
    double time;
    const char *kind; /* of the times */
};

struct inspect_duplicate {
    const char *label, *of; /* snapshots of one time and kind */
};

struct inspect_times {
    const struct phema_series *series;
    const char **kinds; /* [n_kinds] "0.05", or specs of other shapes */
    double *widths;     /* [n_kinds] sigma_rel, or NaN */
    size_t n_kinds;
    size_t n_times;
    double step; /* of most times to the next; NaN: they are uneven */
    uint64_t size_bytes;
    struct inspect_run *runs;
    size_t n_runs;
    struct inspect_gap *gaps;
    size_t n_gaps;
    struct inspect_missing *missing;
    size_t n_missing;
    struct inspect_duplicate *duplicates;
    size_t n_duplicates;
    struct phema_arena arena;
};

/* In thousandths: 0.0125, 0.0175, ... 0.2875 fill 56 columns. They avoid the widths of snapshots,
 * whose errors are rounding alone and would flatten all other bars. */
#define INSPECT_FIRST_WIDTH   12.5
#define INSPECT_BETWEEN_WIDTH 5.0
#define INSPECT_N_WIDTHS      56

/* The predicted errors of averages of any width, and whether the snapshots fit their labels. */
struct inspect_errors {
    struct phema_series_checks checks;
    double widths[INSPECT_N_WIDTHS], values[INSPECT_N_WIDTHS];
    size_t least, most, every;
    bool is_known, is_rough;
    struct phema_error why; /* not known */
};

PHEMA_FALLIBLE inspect_times_find(struct inspect_times *out, const struct phema_series *series,
                                  struct phema_error *err);
void inspect_times_clear(struct inspect_times *times);

/* ---- Beside the design that the training follows ---- */

struct inspect_missed {
    double time, sigma_rel; /* NaN: no power function */
};

struct inspect_design {
    size_t n_planned, n_stored; /* snapshots, of the whole training and of those */
    struct inspect_missed *missed;
    size_t n_missed; /* up to the newest snapshot */
    size_t n_others; /* snapshots that are not planned */
    double next;     /* time of the next ones; NaN: the training is over */
    struct phema_arena arena;
};

/* ---- All of a series ---- */

struct inspect_findings {
    struct inspect_summary summary;
    struct inspect_times times;
    struct inspect_errors errors;
    struct inspect_design design;
    bool has_design;
};

/* options: of the series. design: the path of one, or NULL. The listener hears of the checks.
 * PHEMA_ERR_FILE      that file is no design, or a snapshot cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE inspect_series_find(struct inspect_findings *out, struct phema_series *series,
                                   const struct phema_series_options *options, const char *design,
                                   const struct phema_listener *listener, struct phema_error *err);
void inspect_findings_clear(struct inspect_findings *findings);
#endif
