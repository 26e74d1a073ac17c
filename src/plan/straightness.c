// SPDX-License-Identifier: Apache-2.0
/* straightness.c - how near to a line snapshots lie whose least-squares line is a target (N40). The
 * errors of profiles know nothing of it: the weights of such a line are exact. */
#include <math.h>

#include "series_checks.h"
#include "solver_input.h"

/* Adds the squares of the distances of one element to its mean, and to its line.
 *   times  [n] from their mean, of these rows of the sample */
static void add_element(double *moved, double *left, const struct phema_sample *sample, size_t e,
                        const size_t *rows, const double *times, size_t n)
{
    const double *column = sample->values + e;
    double mean = 0, slope = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        mean += column[rows[i] * sample->n_elems] / (double)n;
        slope += column[rows[i] * sample->n_elems] * times[i];
        squares += times[i] * times[i];
    }
    for (size_t i = 0; i < n; i++) {
        double distance = column[rows[i] * sample->n_elems] - mean;
        double residual = distance - slope / squares * times[i];
        *moved += distance * distance;
        *left += residual * residual;
    }
}

static enum phema_status rate_fit(struct phema_target *target, const struct phema_fit *fit,
                                  const struct phema_series *series,
                                  const struct phema_sample *sample, struct phema_error *err)
{
    const struct phema_profile *parts = target->mix.parts + fit->first;
    double mean = 0, squares = 0, moved = 0, left = 0;
    struct phema_arena memory = {0};
    size_t *rows = phema_arena_array(&memory, fit->n, sizeof(*rows));
    double *times = phema_arena_array(&memory, fit->n, sizeof(*times));
    for (size_t i = 0; i < fit->n; i++)
        mean += parts[i].t / (double)fit->n;
    for (size_t i = 0; !memory.is_failed && i < fit->n; i++) {
        rows[i] = phema_series_find_newest(series, parts[i].t);
        times[i] = parts[i].t - mean;
        squares += pow(target->mix.factors[fit->first + i], 2);
    }
    for (size_t e = 0; !memory.is_failed && e < sample->n_elems; e++)
        add_element(&moved, &left, sample, e, rows, times, fit->n);
    enum phema_status status = memory.is_failed ? phema_fail_memory(err) : PHEMA_OK;
    phema_arena_clear(&memory);
    bool is_known = fit->n > 2; /* a line goes through any two */
    double n = (double)(fit->n - 2) * (double)sample->n_elems;
    double scatter = sqrt(squares * left / (n * sample->mean_square));
    target->scatter = hypot(target->scatter, is_known ? scatter : PHEMA_UNKNOWN);
    target->r_squared = fmin(target->r_squared, is_known ? 1 - left / moved : PHEMA_UNKNOWN);
    return status;
}

PHEMA_FALLIBLE straightness_find(struct phema_plan *plan, const struct phema_sample *sample,
                                 struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        for (size_t i = 0; !status && i < target->mix.n_fits; i++)
            status = rate_fit(target, &target->mix.fits[i], plan->series, sample, err);
    }
    return status;
}

void straightness_predict(struct phema_plan *plan)
{
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        struct phema_prediction *predicted = &target->solution.predicted;
        bool is_known = !isnan(target->r_squared) && !isnan(target->scatter);
        if (target->mix.n_fits && !is_known)
            *predicted = unknown_prediction;
        if (!target->mix.n_fits || !is_known)
            continue;
        predicted->scatter = target->scatter; /* the rounding of the files is a part of it */
        predicted->total = hypot(predicted->profile, fmax(predicted->rounding, target->scatter));
        predicted->paper_weights = fmax(predicted->paper_weights, predicted->total);
    }
}
