// SPDX-License-Identifier: Apache-2.0
/* tables.c - prints the outcomes. */
#include "tables.h"

#include <math.h>
#include <stdio.h>

#include "phema/solver.h"
#include "phema/span.h"

/* The verdict of the program: labels are wrong. */
#define WRONG_Z      3.5
#define WRONG_MEDIAN 2

static const enum phema_metric metrics[] = {PHEMA_METRIC_MOTION, PHEMA_METRIC_WALK,
                                            PHEMA_METRIC_PROFILE};

static bool has_cases(const struct study *study, const struct filter *filter)
{
    for (size_t c = 0; c < study->n_cases; c++)
        if (filter_accepts(filter, &study->cases[c]))
            return true;
    return false;
}

/* Tables of all regimes together leave those out whose labels are false. */
static struct filter true_labels(void)
{
    struct filter filter = all_cases;
    filter.is_without_resets = true;
    return filter;
}

static void print_mean_worst(const struct study *study, const struct filter *filter,
                             enum phema_metric metric)
{
    struct sample sample = study_gather(study, filter, OVER_ORACLE, metric);
    if (sample.n)
        printf(" %.3f, %.2f |", sample_mean(sample), sample_quantile(sample, 1));
    else
        printf(" |");
}

static void print_errors(const struct study *study, const struct filter *filter)
{
    for (size_t k = 0; k < ARRAY_LEN(metrics); k++)
        print_mean_worst(study, filter, metrics[k]);
}

static void print_quotients(const struct study *study, const struct filter *filter,
                            enum quotient quotient)
{
    struct sample sample = study_gather(study, filter, quotient, PHEMA_METRIC_MOTION);
    printf(" %.2f, %.2f, %.2f | %.1f %% | %.3g |", sample_quantile(sample, 0.05),
           sample_quantile(sample, 0.5), sample_quantile(sample, 0.95),
           100 * sample_within_two(sample), sample_quantile(sample, 1));
}

static void print_predictions(const struct study *study, const struct filter *filter)
{
    print_quotients(study, filter, OVER_PREDICTED);
    print_quotients(study, filter, PAPER_OVER_PREDICTED);
}

/* A row for each set, kind of series and dtype. */
static void print_by_dtype(const struct study *study, const char *head,
                           void (*print)(const struct study *study, const struct filter *filter))
{
    printf("\n%s", head);
    for (size_t row = 0; row < (size_t)N_SETS * N_KINDS * N_DTYPES; row++) {
        struct filter filter = true_labels();
        filter.set = row / ((size_t)N_KINDS * N_DTYPES);
        filter.kind = row / N_DTYPES % N_KINDS;
        filter.dtype = row % N_DTYPES;
        if (!has_cases(study, &filter))
            continue;
        printf("| %s | %s | %s |", set_names[filter.set], series_kinds[filter.kind].name,
               phema_dtype_name(study_dtypes[filter.dtype]));
        print(study, &filter);
        printf("\n");
    }
}

static void print_by_times(const struct study *study)
{
    static const size_t counts[] = {4, 6, 8, 9, 16, 32};
    printf("\n| set | series | 4 times | 6, late | 8 | 9, irregular | 16 | 32 "
           "|\n|---|---|---|---|---|---|---|---|\n");
    for (size_t row = 0; row < (size_t)N_SETS * N_KINDS; row++) {
        struct filter filter = true_labels();
        filter.set = row / N_KINDS;
        filter.kind = row % N_KINDS;
        if (!has_cases(study, &filter))
            continue;
        printf("| %s | %s |", set_names[filter.set], series_kinds[filter.kind].name);
        for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
            filter.least_times = filter.most_times = counts[i];
            print_mean_worst(study, &filter, PHEMA_METRIC_MOTION);
        }
        printf("\n");
    }
}

static void print_by_target(const struct study *study)
{
    static const struct {
        const char *what;
        size_t first, end;
    } groups[] = {{"widths, end", 0, N_WIDTHS},
                  {"half-lives, end", N_WIDTHS, N_AVERAGES},
                  {"widths, mid", N_AVERAGES, N_AVERAGES + N_WIDTHS},
                  {"half-lives, mid", N_AVERAGES + N_WIDTHS, N_TARGETS}};
    printf("\n| set | targets | `motion` / oracle: mean, worst | true / predicted: 5, 50, 95 %% | "
           "within a factor 2 | largest |\n|---|---|---|---|---|---|\n");
    for (size_t row = 0; row < N_SETS * ARRAY_LEN(groups); row++) {
        struct filter filter = true_labels();
        filter.set = row / ARRAY_LEN(groups);
        filter.first_target = groups[row % ARRAY_LEN(groups)].first;
        filter.end_target = groups[row % ARRAY_LEN(groups)].end;
        if (!has_cases(study, &filter))
            continue;
        printf("| %s | %s |", set_names[filter.set], groups[row % ARRAY_LEN(groups)].what);
        print_mean_worst(study, &filter, PHEMA_METRIC_MOTION);
        print_quotients(study, &filter, OVER_PREDICTED);
        printf("\n");
    }
}

/* A row for each regime; the series but those of two widths with all dtypes together. */
static void print_by_regime(const struct study *study)
{
    static const struct {
        size_t kind, dtype;
    } columns[] = {{KIND_TWO_WIDTHS, 0},  {KIND_TWO_WIDTHS, 1}, {KIND_TWO_WIDTHS, 2},
                   {KIND_ONE_WIDTH, ANY}, {KIND_RAW, ANY},      {KIND_EXPONENTIAL, ANY}};
    printf("\n| regime | two, F32 | F16 | BF16 | one | raw | ema | true / predicted: 5, 50, 95 %%, "
           "largest |\n|---|---|---|---|---|---|---|---|\n");
    for (size_t r = 0; r < n_regimes; r++) {
        struct filter filter = all_cases;
        filter.regime = r;
        if (!has_cases(study, &filter))
            continue;
        printf("| %s |", regimes[r].name);
        struct sample sample = study_gather(study, &filter, OVER_PREDICTED, PHEMA_METRIC_MOTION);
        double low = sample_quantile(sample, 0.05), median = sample_quantile(sample, 0.5);
        double high = sample_quantile(sample, 0.95), largest = sample_quantile(sample, 1);
        for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
            filter.kind = columns[c].kind;
            filter.dtype = columns[c].dtype;
            print_mean_worst(study, &filter, PHEMA_METRIC_MOTION);
        }
        printf(" %.2f, %.2f, %.2f, %.3g |\n", low, median, high, largest);
    }
}

static void print_check(const struct study *study, const struct filter *filter)
{
    struct check most = {0};
    size_t n = 0, n_wrong = 0;
    for (size_t c = 0; c < study->n_cases; c++) {
        const struct study_case *one = &study->cases[c];
        if (!filter_accepts(filter, one))
            continue;
        most.largest = fmax(most.largest, one->check.largest);
        most.median = fmax(most.median, one->check.median);
        most.outlier = fmax(most.outlier, one->check.outlier);
        n++;
        n_wrong += one->check.largest > WRONG_Z || one->check.median > WRONG_MEDIAN ||
                   one->check.outlier > PHEMA_TENSOR_OUTLIER;
    }
    printf(" %.2f, %.2f, %.1f", most.largest, most.median, most.outlier);
    if (n_wrong)
        printf(" (%zu of %zu wrong)", n_wrong, n);
    printf(" |");
}

/* All labels are true but those of EVENT_RESET, so that z is about 1 wherever the motion is as
 * modelled. */
static void print_checks(const struct study *study)
{
    printf("\n| regime: largest z, median, tensor | two | one | raw | ema "
           "| three | one-raw | long | comb |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t r = 0; r < n_regimes; r++) {
        struct filter filter = all_cases;
        filter.regime = r;
        if (!has_cases(study, &filter))
            continue;
        printf("| %s |", regimes[r].name);
        for (filter.kind = 0; filter.kind < N_KINDS; filter.kind++)
            print_check(study, &filter);
        printf("\n");
    }
}

void tables_print(const struct study *study)
{
    print_by_dtype(study,
                   "| set | series | dtype | `motion` / oracle: mean, worst | `walk` | `profile` "
                   "|\n|---|---|---|---|---|---|\n",
                   print_errors);
    print_by_times(study);
    print_by_dtype(study,
                   "| set | series | dtype | true / predicted: 5, 50, 95 % | within a factor 2 | "
                   "largest | the paper's weights | within a factor 2 | largest "
                   "|\n|---|---|---|---|---|---|---|---|---|\n",
                   print_predictions);
    print_by_target(study);
    print_by_regime(study);
    print_checks(study);
}

void tables_print_csv_header(void)
{
    printf("regime,set,event,kind,dtype,times,target,end,oracle,motion,walk,profile,predicted,"
           "predicted_paper,largest_z,median_z\n");
}

void tables_print_csv(const struct study_case *one)
{
    static const char *const events[] = {"none",       "spike",      "thaw",    "reset",
                                         "told reset", "stage",      "mixture", "targets",
                                         "batches",    "full batch", "bfloat16"};
    const struct regime *regime = &regimes[one->regime];
    for (size_t m = 0; m < N_TARGETS; m++) {
        const struct outcome *outcome = &one->outcomes[m];
        printf("%s,%s,%s,%s,%s,%zu,%s,%s", regime->name, set_names[regime->set],
               events[regime->event], series_kinds[one->kind].name,
               phema_dtype_name(study_dtypes[one->dtype]), one->n_times,
               average_names[m % N_AVERAGES], end_names[m / N_AVERAGES]);
        printf(",%.5e,%.5e,%.5e,%.5e,%.5e,%.5e,%.3f,%.3f\n", outcome->oracle,
               outcome->errors[PHEMA_METRIC_MOTION], outcome->errors[PHEMA_METRIC_WALK],
               outcome->errors[PHEMA_METRIC_PROFILE], outcome->predicted, outcome->predicted_paper,
               one->check.largest, one->check.median);
    }
}
