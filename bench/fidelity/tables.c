// SPDX-License-Identifier: Apache-2.0
/* tables.c - tables of all outcomes, and the goals. */
#include "tables.h"
#include "phema/solver.h"

#include <stdio.h>
#include <stdlib.h>

#define ANY_REGIME SIZE_MAX

#define GOAL_MEAN      1.10
#define GOAL_WORST     2.5
#define GOAL_PREDICTED 0.90

const enum phema_dtype study_dtypes[N_DTYPES] = {PHEMA_F32, PHEMA_F16, PHEMA_BF16};

/* Sorted ratios of all outcomes of some cases. */
struct quotients {
    double *values; /* [n] */
    size_t n;
};

enum quotient { OVER_ORACLE, OVER_PREDICTED, PAPER_OVER_PREDICTED };

static double quotient_of(const struct outcome *outcome, enum quotient quotient,
                          enum phema_metric metric)
{
    if (quotient == OVER_ORACLE)
        return outcome->errors[metric] / outcome->oracle;
    if (quotient == OVER_PREDICTED)
        return outcome->errors[PHEMA_METRIC_MOTION] / outcome->predicted;
    return outcome->errors[PHEMA_METRIC_PROFILE] / outcome->predicted_paper;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct quotients gather(const struct study *study, double *buffer, size_t regime,
                               enum phema_dtype dtype, enum quotient quotient,
                               enum phema_metric metric)
{
    struct quotients made = {buffer, 0};
    for (size_t c = 0; c < study->n_cases; c++) {
        const struct study_case *one = &study->cases[c];
        if (one->dtype != dtype || (regime != ANY_REGIME && one->regime != regime))
            continue;
        for (size_t m = 0; m < N_TARGETS; m++)
            buffer[made.n++] = quotient_of(&one->outcomes[m], quotient, metric);
    }
    qsort(buffer, made.n, sizeof(*buffer), compare);
    return made;
}

static double geometric_mean(struct quotients quotients)
{
    double sum = 0;
    for (size_t i = 0; i < quotients.n; i++)
        sum += log(quotients.values[i]);
    return exp(sum / (double)quotients.n);
}

static double quantile(struct quotients quotients, double share)
{
    return quotients.values[(size_t)(share * (double)(quotients.n - 1) + 0.5)];
}

static double share_within_two(struct quotients quotients)
{
    size_t n = 0;
    for (size_t i = 0; i < quotients.n; i++)
        n += quotients.values[i] >= 0.5 && quotients.values[i] <= 2;
    return (double)n / (double)quotients.n;
}

static void print_errors(const struct study *study, double *buffer)
{
    static const struct {
        enum phema_metric metric;
        const char *name;
    } rows[] = {{PHEMA_METRIC_MOTION, "motion"},
                {PHEMA_METRIC_WALK, "walk"},
                {PHEMA_METRIC_PROFILE, "profile"}};
    printf("| dtype | metric | error / oracle, geometric mean | 95 %% | worst |\n"
           "|---|---|---|---|---|\n");
    for (size_t d = 0; d < N_DTYPES; d++) {
        for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
            struct quotients all =
                gather(study, buffer, ANY_REGIME, study_dtypes[d], OVER_ORACLE, rows[r].metric);
            printf("| %s | `%s` | %.3f | %.2f | %.2f |\n", phema_dtype_name(study_dtypes[d]),
                   rows[r].name, geometric_mean(all), quantile(all, 0.95), quantile(all, 1));
        }
    }
}

static void print_predictions(const struct study *study, double *buffer)
{
    static const struct {
        enum quotient quotient;
        const char *name;
    } rows[] = {{OVER_PREDICTED, "`motion`"}, {PAPER_OVER_PREDICTED, "the paper's"}};
    printf("\n| dtype | weights | true / predicted, 5 %% | 50 %% | 95 %% | within a factor 2 |\n"
           "|---|---|---|---|---|---|\n");
    for (size_t d = 0; d < N_DTYPES; d++) {
        for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
            struct quotients all = gather(study, buffer, ANY_REGIME, study_dtypes[d],
                                          rows[r].quotient, PHEMA_METRIC_MOTION);
            printf("| %s | %s | %.2f | %.2f | %.2f | %.1f %% |\n",
                   phema_dtype_name(study_dtypes[d]), rows[r].name, quantile(all, 0.05),
                   quantile(all, 0.5), quantile(all, 0.95), 100 * share_within_two(all));
        }
    }
}

static void print_regime(const struct study *study, double *buffer, size_t regime,
                         enum phema_dtype dtype)
{
    static const enum phema_metric order[] = {PHEMA_METRIC_MOTION, PHEMA_METRIC_WALK,
                                              PHEMA_METRIC_PROFILE};
    printf("| %s | %s |", study->regimes[regime]->name, phema_dtype_name(dtype));
    for (size_t k = 0; k < ARRAY_LEN(order); k++) {
        struct quotients some = gather(study, buffer, regime, dtype, OVER_ORACLE, order[k]);
        printf(" %.3f, %.2f |", geometric_mean(some), quantile(some, 1));
    }
    struct quotients some =
        gather(study, buffer, regime, dtype, OVER_PREDICTED, PHEMA_METRIC_MOTION);
    printf(" %.2f, %.2f, %.2f |\n", quantile(some, 0.05), quantile(some, 0.5),
           quantile(some, 0.95));
}

/* All labels are true, so that z is about 1 wherever the motion is as modelled. */
static void print_checks(const struct study *study)
{
    printf("\n| regime | largest z: times, dtypes |\n|---|---|\n");
    for (size_t r = 0; r < study->n_regimes; r++) {
        printf("| %s |", study->regimes[r]->name);
        for (size_t c = 0; c < study->n_cases; c++)
            if (study->cases[c].regime == r)
                printf(" %zu %s %.2f", study->cases[c].n_times,
                       phema_dtype_name(study->cases[c].dtype), study->cases[c].largest_z);
        printf(" |\n");
    }
}

bool tables_print(const struct study *study)
{
    double *buffer = calloc(study->n_cases * N_TARGETS + 1, sizeof(double));
    if (!buffer)
        return false;
    print_errors(study, buffer);
    print_predictions(study, buffer);
    printf("\n| regime | dtype | `motion`: mean, worst | `walk` | `profile` | true / predicted: 5, "
           "50, 95 %% |\n|---|---|---|---|---|---|\n");
    for (size_t r = 0; r < study->n_regimes; r++) {
        for (size_t d = 0; d < N_DTYPES; d++)
            print_regime(study, buffer, r, study_dtypes[d]);
    }
    free(buffer);
    print_checks(study);
    return true;
}

bool tables_check(const struct study *study)
{
    double *buffer = calloc(study->n_cases * N_TARGETS + 1, sizeof(double));
    bool is_reached = buffer != NULL;
    for (size_t d = 0; buffer && d < N_DTYPES; d++) {
        struct quotients errors =
            gather(study, buffer, ANY_REGIME, study_dtypes[d], OVER_ORACLE, PHEMA_METRIC_MOTION);
        double mean = geometric_mean(errors), worst = quantile(errors, 1);
        double share = share_within_two(gather(study, buffer, ANY_REGIME, study_dtypes[d],
                                               OVER_PREDICTED, PHEMA_METRIC_MOTION));
        if (mean <= GOAL_MEAN && worst <= GOAL_WORST && share >= GOAL_PREDICTED)
            continue;
        is_reached = false;
        (void)fprintf(
            stderr,
            "bench_fidelity: %s: expected errors of at most %.2f times the oracle's in the "
            "mean and %.1f times at worst, and predictions within a factor 2 in %.0f %% of the "
            "cases, found %.3f, %.2f and %.1f %%\n",
            phema_dtype_name(study_dtypes[d]), GOAL_MEAN, GOAL_WORST, 100 * GOAL_PREDICTED, mean,
            worst, 100 * share);
    }
    free(buffer);
    return is_reached;
}
