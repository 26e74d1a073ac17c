/* tables.h - tables of all outcomes, in Markdown. */
#ifndef BENCH_FIDELITY_TABLES_H
#define BENCH_FIDELITY_TABLES_H

#include "tool.h"

#define N_DTYPES 3

extern const enum phema_dtype study_dtypes[N_DTYPES];

struct study_case {
    size_t regime; /* index of its name */
    enum phema_dtype dtype;
    size_t n_times;
    struct outcome outcomes[N_TARGETS];
    double largest_z; /* of the leave-one-out check */
};

struct study {
    struct study_case *cases; /* [n_cases] */
    size_t n_cases;
    const struct regime *const *regimes; /* [n_regimes] */
    size_t n_regimes;
};

/* false: out of memory */
bool tables_print(const struct study *study);

/* True if, with every dtype, the motion metric is within 10 % of the oracle in the mean and within
 * 2.5 times at worst. It must also predict within a factor 2 in 90 % of the cases. No series is doubted
 * by the leave-one-out check. Prints the missed goals. */
bool tables_check(const struct study *study);

#endif
