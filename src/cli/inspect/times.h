/* times.h - the times of a series: runs of equal steps, gaps, missing and duplicate snapshots. */
#ifndef CLI_INSPECT_TIMES_H
#define CLI_INSPECT_TIMES_H

#include "phema/arena.h"
#include "phema/json.h"
#include "phema/series.h"

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
    size_t kind;
};

struct inspect_duplicate {
    size_t snapshot, of; /* both of one time and kind */
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

#define INSPECT_N_WIDTHS 56

/* The predicted errors of averages of any width. */
struct inspect_errors {
    double widths[INSPECT_N_WIDTHS], values[INSPECT_N_WIDTHS];
    size_t least, most, every;
    bool is_known;
    struct phema_error why; /* not */
};

PHEMA_FALLIBLE inspect_times_find(struct inspect_times *out, const struct phema_series *series,
                                  struct phema_error *err);
void inspect_times_clear(struct inspect_times *times);

/* Fails only with PHEMA_ERR_RESOURCE. */
PHEMA_FALLIBLE inspect_errors_find(struct inspect_errors *out, const struct phema_series *series,
                                   struct phema_error *err);
/* The table, the remarks, and the predicted errors by width. */
void inspect_times_write(struct phema_strbuf *out, const struct inspect_times *times,
                         const struct inspect_errors *errors);
void inspect_times_write_json(struct phema_json_out *out, const struct inspect_times *times,
                              const struct inspect_errors *errors);
/* Lines about gaps, missing and duplicate snapshots after an empty line; or no line. */
void inspect_write_remarks(struct phema_strbuf *out, const struct inspect_times *times);
/* "256", "~137" of one that names have rounded, "uneven", or "" of a time alone */
void inspect_show_step(struct phema_name_buffer *out, double every);

#endif
