// SPDX-License-Identifier: Apache-2.0
/* goals.c - the goals, and the missed ones. */
#include "goals.h"

#include <math.h>
#include <stdio.h>

#include "phema/span.h"

/* Limits for error / oracle of the motion metric, with each dtype, of series with true labels: no
 * weights for a profile are right for an average that restarted. */
struct error_goal {
    size_t kind, least_times, most_times;
    double mean, worst;
};

struct goals {
    const struct error_goal *errors; /* [n] */
    size_t n;
    double within_two;   /* share of predictions */
    double most_too_low; /* true / predicted in regimes without an event */
};

static const struct error_goal whole_errors[] = {{KIND_TWO_WIDTHS, 16, ANY, 1.06, 1.6},
                                                 {KIND_TWO_WIDTHS, 4, 4, 1.15, HUGE_VAL},
                                                 {KIND_RAW, 16, ANY, 1.10, 2.0},
                                                 {KIND_EXPONENTIAL, 16, ANY, 1.10, 2.0}};
static const struct goals whole = {whole_errors, ARRAY_LEN(whole_errors), 0.92, 4};

/* A quarter of the steps: these only keep the program from falling behind. */
static const struct error_goal quick_errors[] = {{KIND_TWO_WIDTHS, 4, ANY, 1.4, 12},
                                                 {KIND_ONE_WIDTH, 4, ANY, 1.1, 4},
                                                 {KIND_RAW, 16, ANY, 1.3, 15},
                                                 {KIND_EXPONENTIAL, 4, ANY, 1.1, 4}};
static const struct goals quick = {quick_errors, ARRAY_LEN(quick_errors), 0.85, 12};

static bool check_errors(const struct study *study, const struct error_goal *goal, size_t set,
                         size_t dtype)
{
    struct filter filter = all_cases;
    filter.set = set;
    filter.kind = goal->kind;
    filter.dtype = dtype;
    filter.least_times = goal->least_times;
    filter.most_times = goal->most_times;
    filter.is_without_resets = true;
    struct sample sample = study_gather(study, &filter, OVER_ORACLE, PHEMA_METRIC_MOTION);
    if (!sample.n)
        return true;
    double mean = sample_mean(sample);
    double worst = sample_quantile(sample, 1);
    if (mean <= goal->mean && !(worst > goal->worst))
        return true;
    (void)fprintf(stderr, "missed: %s, %s, %s, %s%zu times: error / oracle %.3f in the mean",
                  set_names[set], series_kinds[goal->kind].name,
                  phema_dtype_name(study_dtypes[dtype]), goal->most_times == ANY ? "at least " : "",
                  goal->least_times, mean);
    (void)fprintf(stderr, " (goal %.2f), %.2f at worst", goal->mean, worst);
    if (goal->worst < HUGE_VAL)
        (void)fprintf(stderr, " (goal %.1f)", goal->worst);
    (void)fprintf(stderr, "\n");
    return false;
}

static bool check_predictions(const struct study *study, const struct goals *goals, size_t set)
{
    struct filter filter = all_cases;
    filter.set = set;
    struct sample sample = study_gather(study, &filter, OVER_PREDICTED, PHEMA_METRIC_MOTION);
    double share = sample_within_two(sample);
    if (!sample.n || share >= goals->within_two)
        return true;
    (void)fprintf(stderr, "missed: %s: predictions within a factor 2 in %.1f %% (goal %.0f)\n",
                  set_names[set], 100 * share, 100 * goals->within_two);
    return false;
}

/* A comb is nothing like a smooth target where parameters jitter around a place. */
static bool check_largest(const struct study *study, const struct goals *goals, size_t set)
{
    struct filter filter = all_cases;
    filter.set = set;
    filter.is_without_events = true;
    double largest = 0;
    for (filter.kind = 0; filter.kind < N_KINDS; filter.kind++) {
        struct sample sample = study_gather(study, &filter, OVER_PREDICTED, PHEMA_METRIC_MOTION);
        if (filter.kind != KIND_COMB && sample.n)
            largest = fmax(largest, sample_quantile(sample, 1));
    }
    if (largest <= goals->most_too_low)
        return true;
    (void)fprintf(stderr, "missed: %s: a prediction %.2f times too small, no event (goal %g)\n",
                  set_names[set], largest, goals->most_too_low);
    return false;
}

bool goals_check(const struct study *study, bool is_quick)
{
    const struct goals *goals = is_quick ? &quick : &whole;
    bool is_reached = true;
    for (size_t set = 0; set < N_SETS; set++) {
        for (size_t g = 0; g < goals->n; g++)
            for (size_t d = 0; d < N_DTYPES; d++)
                is_reached = check_errors(study, &goals->errors[g], set, d) && is_reached;
        is_reached = check_predictions(study, goals, set) && is_reached;
        is_reached = check_largest(study, goals, set) && is_reached;
    }
    return is_reached;
}
