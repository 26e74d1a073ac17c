// SPDX-License-Identifier: Apache-2.0
/* plan.c - a series and what is wanted of it become targets with weights. */
#include "phema/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/memory.h"
#include "phema/strbuf.h"
#include "rules.h"
#include "series_motion.h"
#include "solver_input.h"
#include "targets.h"
#include "weights_file.h"

static enum phema_status rate(struct solver_input *problem, const struct phema_plan *plan,
                              struct phema_error *err)
{
    struct phema_problem given = solver_input_view(problem, plan->series, plan->motion);
    return phema_weights_rate(problem->solutions, &given, err);
}

/* The error that the library's own synthesis makes by believing its labels: its weights (eq. 151 as
 * it stands, times as names write them), rated with the true profiles. */
static enum phema_status rate_labels(struct solver_input *problem, const struct phema_plan *plan,
                                     struct phema_target *targets, struct phema_error *err)
{
    static const struct phema_solve_options as_published = {
        .metric = PHEMA_METRIC_PROFILE, .ridge = PHEMA_RIDGE_NONE, .keeps_sum = true};
    const struct phema_series *series = plan->series;
    struct solver_input labels;
    enum phema_status status =
        solver_input_build(&labels, series, solver_input_count_used(series, targets[0].time), false,
                           targets, problem->m, err);
    for (size_t k = 0; !status && k < labels.n; k++) {
        labels.snapshots[k].update_every = 1;
        labels.snapshots[k].t = series->snapshots[k].named_time;
    }
    for (size_t j = 0; !status && j < labels.m; j++)
        labels.targets[j].t = targets[j].named_time;
    struct phema_problem given = solver_input_view(&labels, plan->series, plan->motion);
    given.rounding = NULL;
    given.motion = NULL;
    given.run_end = 0;
    if (!status)
        status = phema_weights_solve(labels.solutions, &given, &as_published, err);
    for (size_t k = 0; !status && k < labels.n; k++)
        labels.snapshots[k] = series->snapshots[k].profile;
    for (size_t j = 0; !status && j < labels.m; j++)
        labels.targets[j] = problem->targets[j];
    if (!status)
        status = rate(&labels, plan, err);
    for (size_t j = 0; !status && j < labels.m; j++) {
        targets[j].label_profile_error = labels.solutions[j].profile_error;
        targets[j].label_predicted_error = labels.solutions[j].predicted.total;
    }
    solver_input_clear(&labels);
    return status;
}

/* The solver's weights are those of the prefix; the plan's are one for each snapshot. */
static enum phema_status keep_solutions(struct solver_input *problem,
                                        const struct phema_series *series, size_t n_considered,
                                        struct phema_target *targets, struct phema_error *err)
{
    for (size_t j = 0; j < problem->m; j++) {
        double *weights = calloc(series->n, sizeof(*weights));
        if (!weights)
            return phema_fail_memory(err);
        for (size_t x = 0; x < problem->n; x++)
            weights[problem->index[x]] = problem->solutions[j].weights[x];
        free(targets[j].solution.weights);
        targets[j].solution = problem->solutions[j];
        targets[j].solution.weights = weights;
        targets[j].n_left_out = series->n - n_considered;
        targets[j].n_repeated = n_considered - problem->n;
        targets[j].newest = solver_input_count_until(series, targets[j].time) - 1;
    }
    return PHEMA_OK;
}

static enum phema_status fail_out_of_range(const struct phema_series *series,
                                           const struct phema_target *target,
                                           struct phema_error *err)
{
    struct phema_name_buffer wanted, first, last;
    (void)phema_number_format(&wanted, target->named_time);
    (void)phema_number_format(&first, series->snapshots[0].named_time);
    (void)phema_number_format(&last, series->snapshots[series->n - 1].named_time);
    bool is_late = target->time > series->snapshots[series->n - 1].time;
    return phema_fail(err, PHEMA_ERR_TARGET, "%s: the wanted time %s is %s; they go from %s to %s",
                      series->root, wanted.text,
                      is_late ? "later than every snapshot" : "before the first snapshot",
                      first.text, last.text);
}

/* Whether every part of what is wanted is a raw snapshot that is there; weights: [problem->n] 0 */
static bool is_merge(double *weights, const struct solver_input *problem,
                     const struct phema_mix *mix)
{
    for (size_t i = 0; i < mix->n_parts; i++) {
        const struct phema_profile *part = &mix->parts[i];
        size_t x = 0;
        while (x < problem->n && (problem->snapshots[x].shape != PHEMA_SHAPE_RAW ||
                                  problem->snapshots[x].t != part->t))
            x++;
        if (part->shape != PHEMA_SHAPE_RAW || x == problem->n)
            return false;
        weights[x] += mix->factors ? mix->factors[i] : 1;
    }
    return mix->n_parts > 0;
}

/* A merge of snapshots is what it says: neither the solver's last bits nor what a ridge gives away
 * for less rounding belong into it, and no file that it does not name is read. */
static enum phema_status take_merges(struct solver_input *problem,
                                     const struct phema_problem *given, struct phema_error *err)
{
    double *weights = calloc(problem->n + 1, sizeof(*weights));
    if (!weights)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < problem->m && !status; j++) {
        memset(weights, 0, problem->n * sizeof(*weights));
        if (!is_merge(weights, problem, &problem->mixes[j]))
            continue;
        struct phema_problem alone = *given;
        alone.targets = &problem->mixes[j];
        alone.m = 1;
        memcpy(problem->solutions[j].weights, weights, problem->n * sizeof(*weights));
        status = phema_weights_rate(&problem->solutions[j], &alone, err);
    }
    free(weights);
    return status;
}

/* Targets of one time share the snapshots and so the factorisation. */
static enum phema_status solve_group(struct phema_plan *plan, struct phema_target *targets,
                                     size_t m, const struct phema_solve_options *options,
                                     struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    size_t n = solver_input_count_used(series, targets[0].time);
    double last = series->snapshots[series->n - 1].time;
    if (n == 0 || targets[0].time > last)
        return fail_out_of_range(series, &targets[0], err);
    struct solver_input problem;
    enum phema_status status = solver_input_build(&problem, series, n, true, targets, m, err);
    struct phema_problem given = solver_input_view(&problem, plan->series, plan->motion);
    if (!status)
        status = phema_weights_solve(problem.solutions, &given, options, err);
    if (!status)
        status = take_merges(&problem, &given, err);
    if (!status && !problem.is_true)
        status = rate_labels(&problem, plan, targets, err);
    if (!status)
        status = keep_solutions(&problem, series, n, targets, err);
    solver_input_clear(&problem);
    return status ? phema_fail_in(err, status, "%s", series->root) : PHEMA_OK;
}

/* The widths of rules are columns like those of the targets, solved for with them. */
static enum phema_status solve_time(struct phema_plan *plan, size_t first, size_t m,
                                    const struct phema_solve_options *options,
                                    struct phema_error *err)
{
    struct phema_target *targets = &plan->targets[first];
    struct phema_solution *ruled = &plan->ruled[first / m * plan->n_rules];
    struct phema_target *columns = calloc(m + plan->n_rules, sizeof(*columns));
    if (!columns)
        return phema_fail_memory(err);
    memcpy(columns, targets, m * sizeof(*columns));
    size_t n = m;
    for (size_t r = 0; r < plan->n_rules; r++)
        if (!plan->rules[r].is_copy)
            columns[n++] = rules_column(&plan->rules[r], &targets[0]);
    enum phema_status status = solve_group(plan, columns, n, options, err);
    memcpy(targets, columns, m * sizeof(*columns)); /* what failed half-way is freed with them */
    n = m;
    for (size_t r = 0; r < plan->n_rules; r++)
        if (!plan->rules[r].is_copy)
            ruled[r] = columns[n++].solution;
    for (size_t j = 0; j < m; j++)
        targets[j].ruled = ruled;
    free(columns);
    return status;
}

/* The motion of the parameters is looked for whatever the metric: predictions are better with it.
 */
static enum phema_status look_for_motion(struct phema_plan *plan,
                                         const struct phema_plan_options *options,
                                         struct phema_solve_options *solve, struct phema_error *err)
{
    static const char *const names[] = {[PHEMA_METRIC_WALK] = "walk",
                                        [PHEMA_METRIC_PROFILE] = "profile",
                                        [PHEMA_METRIC_MOTION] = "motion"};
    bool is_wanted = solve->metric == PHEMA_METRIC_MOTION;
    if (options->series.may_be_sampled && plan->series->has_profiles) {
        enum phema_status status = motion_find(plan, is_wanted, options->series.max_ram_bytes, err);
        if (status)
            return status;
    }
    if (is_wanted && !plan->motion)
        solve->metric = PHEMA_METRIC_WALK;
    plan->metric = names[solve->metric];
    return PHEMA_OK;
}

/* ---- Weights from outside ---- */

static void set_norms(struct phema_solution *solution, size_t n)
{
    double sum = 0, norm1 = 0, squares = 0;
    for (size_t k = 0; k < n; k++) {
        sum += solution->weights[k];
        norm1 += fabs(solution->weights[k]);
        squares += solution->weights[k] * solution->weights[k];
    }
    solution->sum = sum;
    solution->norm1 = norm1;
    solution->norm2 = sqrt(squares);
}

static enum phema_status evaluate_weights(struct phema_plan *plan, struct phema_target *target,
                                          struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_solution *solution = &target->solution;
    set_norms(solution, series->n);
    solution->profile_error = solution->walk_error = solution->condition = PHEMA_UNKNOWN;
    solution->predicted =
        (struct phema_prediction){PHEMA_UNKNOWN, PHEMA_UNKNOWN, PHEMA_UNKNOWN, PHEMA_UNKNOWN};
    if (!target->mix.n_parts || !series->has_profiles)
        return PHEMA_OK;
    struct solver_input problem;
    enum phema_status status =
        solver_input_build(&problem, series, series->n, false, target, 1, err);
    if (!status) {
        problem.solutions[0].weights = calloc(series->n, sizeof(double));
        if (!problem.solutions[0].weights)
            status = phema_fail_memory(err);
    }
    if (!status) {
        memcpy(problem.solutions[0].weights, solution->weights, series->n * sizeof(double));
        status = rate(&problem, plan, err);
    }
    if (!status)
        status = keep_solutions(&problem, series, series->n, target, err);
    if (!status)
        solution->solver = "given";
    solver_input_clear(&problem);
    return status;
}

static enum phema_status use_weights_file(struct phema_plan *plan,
                                          const struct phema_plan_options *options,
                                          struct phema_error *err)
{
    enum phema_status status = phema_claims_add_input(plan->series->claims, options->weights_file,
                                                      "the file of --weights", err);
    if (!status)
        status = weights_file_read(plan, options->weights_file, err);
    size_t n_wanted = targets_per_time(options);
    if (!status && n_wanted > 0) {
        bool has_own = plan->m > 1 || plan->targets[0].kind;
        if (has_own || n_wanted > 1)
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "%s: %s; --sigma-rel says what a plain list of weights is meant for",
                              options->weights_file,
                              has_own ? "has targets of its own" : "is one target");
    }
    if (!status && options->n_ats && (options->n_ats > 1 || plan->targets[0].is_time_in_file))
        status = phema_fail(err, PHEMA_ERR_USAGE, "--at: %s",
                            options->n_ats > 1 ? "one time goes with given weights"
                                               : "the file of weights has times of its own");
    if (!status && options->n_ats) {
        plan->targets[0].named_time = options->ats[0];
        plan->targets[0].time = phema_series_clock(plan->series, options->ats[0]);
    }
    if (!status && n_wanted > 0)
        status = target_resolve(&plan->targets[0], plan, options, err);
    bool has_target = false;
    for (size_t j = 0; !status && j < plan->m; j++)
        has_target |= plan->targets[j].kind != NULL;
    struct phema_solve_options unused = {.metric = PHEMA_METRIC_MOTION};
    if (!status && has_target) /* only for what the weights are worth */
        status = look_for_motion(plan, options, &unused, err);
    for (size_t j = 0; !status && j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        size_t n = solver_input_count_until(plan->series, target->time);
        if (n == 0 || target->time > plan->series->snapshots[plan->series->n - 1].time)
            return fail_out_of_range(plan->series, target, err);
        target->newest = n - 1;
        status = evaluate_weights(plan, target, err);
        target->newest = n - 1;
    }
    plan->metric = "given";
    plan->has_given_weights = true;
    return status;
}

static enum phema_status use_unit_weight(struct phema_plan *plan, struct phema_error *err)
{
    plan->metric = "given";
    plan->has_given_weights = true;
    plan->targets = calloc(1, sizeof(*plan->targets));
    double *weights = calloc(1, sizeof(*weights));
    if (!plan->targets || !weights) {
        free(weights);
        return phema_fail_memory(err);
    }
    plan->m = 1;
    weights[0] = 1;
    struct phema_target *target = &plan->targets[0];
    target->named_time = target->time = target->sigma_rel = target->gamma = PHEMA_UNKNOWN;
    target->solution.weights = weights;
    target->solution.solver = "given";
    return evaluate_weights(plan, target, err);
}

/* ---- Together ---- */

/* Room for the weights of rules at every time. */
static enum phema_status make_ruled(struct phema_plan *plan,
                                    const struct phema_plan_options *options,
                                    struct phema_error *err)
{
    size_t n = plan->n_rules * (options->n_ats ? options->n_ats : 1);
    plan->ruled = calloc(n + 1, sizeof(*plan->ruled));
    plan->n_ruled = plan->ruled ? n : 0;
    return plan->ruled ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status make(struct phema_plan *plan, const struct phema_plan_options *options,
                              struct phema_error *err)
{
    phema_memory_profile_begin_stage(options->ledger, PHEMA_STAGE_OPEN);
    enum phema_status status = rules_read(plan, options->rules, options->n_rules, err);
    if (!status)
        status = phema_series_open(&plan->series, &options->series, err);
    phema_memory_profile_begin_stage(options->ledger, PHEMA_STAGE_SOLVE);
    if (!status)
        status = rules_match(plan, err);
    if (status)
        return status;
    if (options->is_conversion)
        return use_unit_weight(plan, err);
    status = rules_check_quantised(plan, err);
    if (status)
        return status;
    if (options->weights_file)
        return use_weights_file(plan, options, err);
    status = targets_make(plan, options, err);
    if (!status)
        status = make_ruled(plan, options, err);
    struct phema_solve_options solve = options->solve;
    if (!status)
        status = look_for_motion(plan, options, &solve, err);
    if (!status)
        status =
            phema_memory_check(options->series.max_ram_bytes, phema_weights_bytes(plan->series->n),
                               "to solve for the weights of so many snapshots", err);
    size_t n_widths = targets_per_time(options);
    for (size_t j = 0; !status && j < plan->m; j += n_widths)
        status = solve_time(plan, j, n_widths, &solve, err);
    if (!status)
        rules_mark_copies(plan);
    return status;
}

PHEMA_FALLIBLE phema_plan_make(struct phema_plan **out, const struct phema_plan_options *options,
                               struct phema_error *err)
{
    bool has_width = targets_per_time(options) > 0;
    if (options->is_conversion &&
        (has_width || options->weights_file || options->n_ats || options->n_rules))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--convert: takes one checkpoint as it is; it goes with no --sigma-rel, "
                          "--gamma, --profile, --at, --weights or --rule");
    if (options->weights_file && options->n_rules)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--rule: is a width to be solved for; it goes with no --weights, which "
                          "are used as given for every tensor");
    if (!options->is_conversion && !options->weights_file && !has_width)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "no target: give --sigma-rel, --gamma, --profile or --weights");
    struct phema_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return phema_fail_memory(err);
    enum phema_status status = make(plan, options, err);
    if (status) {
        phema_plan_free(plan);
        return status;
    }
    *out = plan;
    return PHEMA_OK;
}

void phema_plan_free(struct phema_plan *plan)
{
    if (!plan)
        return;
    for (size_t j = 0; j < plan->m; j++)
        free(plan->targets[j].solution.weights);
    free(plan->targets);
    rules_clear(plan);
    if (plan->motion)
        phema_motion_clear(plan->motion);
    free(plan->motion);
    free(plan->unmoved);
    free(plan->doubts);
    phema_series_close(plan->series);
    phema_arena_clear(&plan->memory);
    free(plan);
}
