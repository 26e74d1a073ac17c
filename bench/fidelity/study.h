/* study.h - the outcomes of all series, and statistics of some of them. */
#ifndef BENCH_FIDELITY_STUDY_H
#define BENCH_FIDELITY_STUDY_H

#include "phema/solver.h"
#include "tool.h"

#define N_DTYPES 3

extern const enum phema_dtype study_dtypes[N_DTYPES];
extern const char *const set_names[N_SETS];

/* One series. */
struct study_case {
    size_t regime, kind, dtype; /* indices of regimes, series_kinds and study_dtypes */
    size_t n_times;
    struct outcome outcomes[N_TARGETS];
    struct check check;
};

struct study {
    struct study_case *cases; /* [n_cases] */
    size_t n_cases;
    double *buffer; /* [n_cases x N_TARGETS] of the sample that was gathered last */
};

/* Which cases. */
#define ANY SIZE_MAX
struct filter {
    size_t set, regime, kind, dtype; /* indices or ANY */
    size_t least_times, most_times;  /* 0, ANY: all */
    bool is_without_events, is_without_resets;
    size_t first_target, end_target; /* those from first_target to end_target - 1 */
};
extern const struct filter all_cases;

bool filter_accepts(const struct filter *filter, const struct study_case *one);

enum quotient { OVER_ORACLE, OVER_PREDICTED, PAPER_OVER_PREDICTED };

/* Sorted quotients of errors, of all targets. Those that are not known are left out. */
struct sample {
    const double *values; /* [n], of the study, until the next call */
    size_t n;
};
struct sample study_gather(const struct study *study, const struct filter *filter,
                           enum quotient quotient, enum phema_metric metric);

/* NaN without values. */
double sample_mean(struct sample sample); /* geometric */
double sample_quantile(struct sample sample, double share);
double sample_within_two(struct sample sample); /* share from 1/2 to 2 */

#endif
