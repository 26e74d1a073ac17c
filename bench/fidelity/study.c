// SPDX-License-Identifier: Apache-2.0
/* study.c - statistics of outcomes. */
#include "study.h"

#include <math.h>
#include <stdlib.h>

const enum phema_dtype study_dtypes[N_DTYPES] = {PHEMA_F32, PHEMA_F16, PHEMA_BF16};
const char *const set_names[N_SETS] = {"tuning", "held-out", "later-tuning", "later-held-out"};
const struct filter all_cases = {ANY, ANY, ANY, ANY, 0, ANY, false, false, 0, N_TARGETS};

bool filter_accepts(const struct filter *filter, const struct study_case *one)
{
    const struct regime *regime = &regimes[one->regime];
    return (filter->set == ANY || filter->set == regime->set) &&
           (filter->regime == ANY || filter->regime == one->regime) &&
           (filter->kind == ANY || filter->kind == one->kind) &&
           (filter->dtype == ANY || filter->dtype == one->dtype) &&
           one->n_times >= filter->least_times && one->n_times <= filter->most_times &&
           !(filter->is_without_events && event_is_sudden(regime->event)) &&
           !(filter->is_without_resets && regime->event == EVENT_RESET);
}

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

struct sample study_gather(const struct study *study, const struct filter *filter,
                           enum quotient quotient, enum phema_metric metric)
{
    double *values = study->buffer;
    size_t n = 0;
    for (size_t c = 0; c < study->n_cases; c++) {
        const struct study_case *one = &study->cases[c];
        if (!filter_accepts(filter, one))
            continue;
        for (size_t m = filter->first_target; m < filter->end_target; m++) {
            double value = quotient_of(&one->outcomes[m], quotient, metric);
            if (!isnan(value))
                values[n++] = value;
        }
    }
    qsort(values, n, sizeof(*values), compare);
    return (struct sample){values, n};
}

double sample_mean(struct sample sample)
{
    double sum = 0;
    for (size_t i = 0; i < sample.n; i++)
        sum += log(sample.values[i]);
    return exp(sum / (double)sample.n);
}

double sample_quantile(struct sample sample, double share)
{
    if (!sample.n)
        return PHEMA_UNKNOWN;
    return sample.values[(size_t)(share * (double)(sample.n - 1) + 0.5)];
}

double sample_within_two(struct sample sample)
{
    size_t n = 0;
    for (size_t i = 0; i < sample.n; i++)
        n += sample.values[i] >= 0.5 && sample.values[i] <= 2;
    return (double)n / (double)sample.n;
}
