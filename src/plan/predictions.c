// SPDX-License-Identifier: Apache-2.0
/* predictions.c - predicted errors of other snapshots and widths, without reading tensors: weights
 * --advise for the targets of a plan, and the error against width for a series. */
#include "phema/setting.h"
#include <stdlib.h>
#include <string.h>

#include "solver_input.h"

/* ---- Advice ---- */

PHEMA_FALLIBLE phema_plan_advise(struct phema_plan_advice *out, const struct phema_plan *plan,
                                 double max_error, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    if (plan->has_given_weights)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_ADVISE,
                                  "weights that are given leave nothing to advise on");
    for (size_t j = 1; j < plan->m; j++)
        if (plan->targets[j].time != plan->targets[0].time)
            return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_ADVISE,
                                      "takes targets of one time");
    if (plan->checks.verdict == PHEMA_SERIES_WRONG)
        return phema_fail_setting(
            err, PHEMA_ERR_INPUTS, PHEMA_SET_ADVISE,
            "no error can be predicted, since the snapshots do not fit their labels: %s",
            plan->checks.reason);
    struct solver_input input;
    struct phema_plan_advice advice = {0};
    enum phema_status status = solver_input_build(
        &input, series, plan->motion, solver_input_count_used(series, plan->targets[0].time), true,
        plan->targets, plan->m, err);
    if (!status)
        status = phema_advice_find(&advice.found, &input.problem, max_error, err);
    if (!status)
        status = phema_advice_saving(&advice.saving, &input.problem, max_error, err);
    for (size_t r = 0; r < advice.found.n_removed; r++)
        advice.found.removed[r] = input.index[advice.found.removed[r]];
    advice.n_considered = input.problem.n;
    solver_input_clear(&input);
    if (!status) {
        *out = advice;
        return PHEMA_OK;
    }
    phema_advice_clear(&advice.found);
    return phema_fail_in(err, status, "%s", series->root);
}

/* ---- Distance of two averages ---- */

#define LEAST_DISTANCE 1e-15 /* equal averages differ by less: sums in quad are rounded */

/* The error of one average in place of the other: its profiles are snapshots without rounding, after
 * those of the other one, which weigh nothing. */
PHEMA_FALLIBLE phema_plan_distance(double *out, const struct phema_plan *plan, size_t a, size_t b,
                                   struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    const struct phema_mix *mix = &plan->targets[b].mix, *other = &plan->targets[a].mix;
    size_t n = mix->n_parts + other->n_parts;
    struct phema_arena memory = {0};
    struct phema_profile *parts = phema_arena_array(&memory, n, sizeof(*parts));
    struct phema_solution solution = {.weights = phema_arena_array(&memory, n, sizeof(double))};
    const struct phema_problem problem = {.snapshots = parts,
                                          .n = n,
                                          .targets = other,
                                          .m = 1,
                                          .run_end = series->snapshots[series->n - 1].time,
                                          .motion = plan->motion};
    for (size_t i = 0; !memory.is_failed && i < n; i++) {
        size_t k = i - other->n_parts;
        parts[i] = i < other->n_parts ? other->parts[i] : mix->parts[k];
        if (i >= other->n_parts)
            solution.weights[i] = mix->factors ? mix->factors[k] : 1;
    }
    enum phema_status status = memory.is_failed ? phema_fail_memory(err)
                                                : phema_weights_evaluate(&solution, &problem, err);
    phema_arena_clear(&memory);
    if (status)
        return phema_fail_in(err, status, "%s", series->root);
    double distance = solution.predicted.total < LEAST_DISTANCE ? 0 : solution.predicted.total;
    *out = plan->checks.verdict != PHEMA_SERIES_WRONG ? distance : PHEMA_UNKNOWN;
    return PHEMA_OK;
}

/* ---- Error against width ---- */

/* The solver takes about 0.1 s for this many snapshots, and seconds for a thousand. */
#define MOST_SNAPSHOTS 256

/* Every *every-th time, counted from the newest, such that few enough snapshots are left. */
static void thin(struct phema_series *thinned, const struct phema_series *series, size_t *every)
{
    *every = (series->n + MOST_SNAPSHOTS - 1) / MOST_SNAPSHOTS;
    size_t n_times = 0, first = series->n; /* filled from the end */
    for (size_t k = series->n; k-- > 0;) {
        bool is_new =
            k + 1 == series->n || series->snapshots[k].time != series->snapshots[k + 1].time;
        n_times += is_new;
        if ((n_times - 1) % *every == 0)
            thinned->snapshots[--first] = series->snapshots[k];
    }
    thinned->n = series->n - first;
    memmove(thinned->snapshots, thinned->snapshots + first,
            thinned->n * sizeof(*thinned->snapshots));
}

static enum phema_status solve(double *errors, const struct phema_series *series,
                               const struct phema_motion *motion, struct phema_target *targets,
                               const double *sigma_rels, size_t m, struct phema_error *err)
{
    const struct phema_solve_options options = {.metric = motion ? PHEMA_METRIC_MOTION
                                                                 : PHEMA_METRIC_WALK};
    const struct phema_snapshot *newest = &series->snapshots[series->n - 1];
    for (size_t j = 0; j < m; j++) {
        targets[j] = (struct phema_target){
            .named_time = newest->named_time, .time = newest->time, .sigma_rel = sigma_rels[j]};
        enum phema_status status =
            phema_gamma_from_sigma_rel(&targets[j].gamma, sigma_rels[j], err);
        if (status)
            return status;
    }
    struct solver_input input;
    enum phema_status status =
        solver_input_build(&input, series, motion, series->n, true, targets, m, err);
    if (!status)
        status = phema_weights_solve(input.solutions, &input.problem, &options, err);
    for (size_t j = 0; j < m && !status; j++)
        errors[j] = input.solutions[j].predicted.total;
    solver_input_clear(&input);
    return status;
}

PHEMA_FALLIBLE phema_series_errors(double *errors, size_t *every, const struct phema_series *series,
                                   const struct phema_motion *motion, const double *sigma_rels,
                                   size_t m, struct phema_error *err)
{
    if (!series->has_profiles || series->n == 0)
        return phema_fail(
            err, PHEMA_NO, "nothing says how the snapshots were averaged; %s or %s does",
            phema_setting_name(PHEMA_SET_INPUT_SIGMA), phema_setting_name(PHEMA_SET_INPUT_PROFILE));
    struct phema_target *targets = calloc(m, sizeof(*targets));
    struct phema_series thinned = *series;
    thinned.snapshots = calloc(series->n, sizeof(*thinned.snapshots));
    bool has_memory = targets && thinned.snapshots;
    if (has_memory)
        thin(&thinned, series, every);
    enum phema_status status = has_memory
                                   ? solve(errors, &thinned, motion, targets, sigma_rels, m, err)
                                   : phema_fail_memory(err);
    free(targets);
    free(thinned.snapshots);
    return status;
}
