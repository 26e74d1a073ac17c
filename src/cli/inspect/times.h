/* times.h - a series by its times: even stretches, gaps, what is missing and what is twice.
 */
#ifndef CLI_INSPECT_TIMES_H
#define CLI_INSPECT_TIMES_H

#include "phema/arena.h"
#include "phema/json.h"
#include "phema/series.h"

/* Times one after the other that have the same kinds of averages. */
struct inspect_run {
    double from, to, every; /* as named; every: 0 of uneven times, NaN of one alone */
    uint64_t kinds;         /* bit i: kind i; what lies beyond the last bit shares it */
    size_t n_snapshots;
    uint64_t size_bytes;
};

struct inspect_gap {
    double from, to; /* the times before and behind it */
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

/* How good averages of any width would be. */
struct inspect_errors {
    double widths[INSPECT_N_WIDTHS], values[INSPECT_N_WIDTHS];
    size_t least, most, every;
    bool is_known;
    struct phema_error why; /* not */
};

PHEMA_FALLIBLE inspect_times_find(struct inspect_times *out, const struct phema_series *series,
                                  struct phema_error *err);
void inspect_times_clear(struct inspect_times *times);

/* inspect_times_report.c: PHEMA_ERR_RESOURCE alone is a failure. */
PHEMA_FALLIBLE inspect_errors_find(struct inspect_errors *out, const struct phema_series *series,
                                   struct phema_error *err);
/* The table, what is wrong, and the errors to expect by width. */
void inspect_times_write(struct phema_strbuf *out, const struct inspect_times *times,
                         const struct inspect_errors *errors);
void inspect_times_write_json(struct phema_json_out *out, const struct inspect_times *times,
                              const struct inspect_errors *errors);
/* Gaps, what is missing and what is there twice: lines behind an empty one, or nothing. */
void inspect_write_remarks(struct phema_strbuf *out, const struct inspect_times *times);
/* "256", "~137" of one that names have rounded, "uneven", or "" of a time alone */
void inspect_show_step(struct phema_name_buffer *out, double every);

#endif
