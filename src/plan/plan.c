// SPDX-License-Identifier: Apache-2.0
/* plan.c - a series and what is wanted of it become targets with weights. */
#include "phema/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "given.h"
#include "motion.h"
#include "phema/memory.h"
#include "phema/text.h"
#include "rules.h"

struct phema_profile plan_profile_of(const struct phema_snapshot *snapshot)
{
    return (struct phema_profile){.gamma = snapshot->gamma,
                                  .t = snapshot->time,
                                  .update_every = snapshot->update_every,
                                  .label = snapshot->label};
}

/* Snapshots come by time, so those not later than a target are a prefix. */
static size_t count_until(const struct phema_series *series, double time)
{
    size_t n = 0;
    while (n < series->n && series->snapshots[n].time <= time)
        n++;
    return n;
}

/* Later snapshots add next to nothing to a target at the time of a snapshot, and are left out, as
 * EDM2 does; between two they make it several times better (docs/solver.md), and are kept. */
static size_t count_used(const struct phema_series *series, double time)
{
    size_t n = count_until(series, time);
    bool is_between = n > 0 && n < series->n && series->snapshots[n - 1].time < time;
    return is_between ? series->n : n;
}

/* With updates every U steps only, snapshots between two updates are one and the same average, and
 * up to the second update all widths are: the parameters of the first step. Only the last of them
 * can be solved for. Averages that are updated at every step never coincide by themselves. */
static bool repeats(const struct phema_snapshot *a, const struct phema_snapshot *b)
{
    if (a->update_every <= 1 || a->update_every != b->update_every)
        return false;
    double updates_a = floor((a->time - 1) / (double)a->update_every);
    double updates_b = floor((b->time - 1) / (double)b->update_every);
    return updates_a == updates_b &&
           (updates_a == 0 || (a->gamma == b->gamma && a->time != b->time));
}

/* What the solver works on for targets of one time. */
struct problem {
    size_t *index;                   /* [n] of each in the series */
    struct phema_profile *snapshots; /* [n] */
    double *rounding;                /* [n] */
    size_t n;
    struct phema_profile *targets; /* [m] */
    struct phema_mix *mixes;       /* [m] each of one target */
    struct phema_solution *solutions;
    size_t m;
    bool is_true; /* labels are true: no update_every above 1 */
};

static void clear_problem(struct problem *problem)
{
    if (problem->solutions)
        phema_solutions_clear(problem->solutions, problem->m);
    free(problem->index);
    free(problem->snapshots);
    free(problem->rounding);
    free(problem->targets);
    free(problem->mixes);
    free(problem->solutions);
}

/* The first n snapshots of the series, those that repeat others left out when asked. */
static enum phema_status set_problem(struct problem *problem, const struct phema_series *series,
                                     size_t n, bool drops_repeats,
                                     const struct phema_target *targets, size_t m,
                                     struct phema_error *err)
{
    *problem = (struct problem){.m = m, .is_true = true};
    problem->index = calloc(n + 1, sizeof(*problem->index));
    problem->snapshots = calloc(n + 1, sizeof(*problem->snapshots));
    problem->rounding = calloc(n + 1, sizeof(*problem->rounding));
    problem->targets = calloc(m, sizeof(*problem->targets));
    problem->mixes = calloc(m, sizeof(*problem->mixes));
    problem->solutions = calloc(m, sizeof(*problem->solutions));
    if (!problem->index || !problem->snapshots || !problem->rounding || !problem->targets ||
        !problem->mixes || !problem->solutions)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++) {
        bool is_repeated = false;
        for (size_t later = k + 1; drops_repeats && later < n && !is_repeated; later++)
            is_repeated = repeats(&series->snapshots[k], &series->snapshots[later]);
        if (is_repeated)
            continue;
        size_t x = problem->n++;
        problem->index[x] = k;
        problem->snapshots[x] = plan_profile_of(&series->snapshots[k]);
        problem->rounding[x] = series->snapshots[k].rounding;
        problem->is_true = problem->is_true && problem->snapshots[x].update_every <= 1;
    }
    for (size_t j = 0; j < m; j++) {
        problem->mixes[j] = (struct phema_mix){.parts = &problem->targets[j], .n_parts = 1};
        problem->targets[j] = (struct phema_profile){
            .gamma = targets[j].gamma, .t = targets[j].time, .label = "the target"};
    }
    return PHEMA_OK;
}

static struct phema_problem as_problem(const struct problem *problem,
                                       const struct phema_series *series)
{
    return (struct phema_problem){.snapshots = problem->snapshots,
                                  .rounding = problem->rounding,
                                  .n = problem->n,
                                  .targets = problem->mixes,
                                  .m = problem->m,
                                  .run_end = series->snapshots[series->n - 1].time,
                                  .motion = series->motion};
}

static enum phema_status rate(struct problem *problem, const struct phema_series *series,
                              struct phema_error *err)
{
    struct phema_problem given = as_problem(problem, series);
    return phema_weights_rate(problem->solutions, &given, err);
}

/* The error that the library's own synthesis makes by believing its labels: its weights (eq. 151 as
 * it stands, times as names write them), rated with the true profiles. */
static enum phema_status rate_labels(struct problem *problem, const struct phema_series *series,
                                     struct phema_target *targets, struct phema_error *err)
{
    static const struct phema_solve_options as_published = {
        .metric = PHEMA_METRIC_PROFILE, .ridge = PHEMA_RIDGE_NONE, .keeps_sum = true};
    struct problem labels;
    enum phema_status status = set_problem(&labels, series, count_used(series, targets[0].time),
                                           false, targets, problem->m, err);
    for (size_t k = 0; !status && k < labels.n; k++) {
        labels.snapshots[k].update_every = 1;
        labels.snapshots[k].t = series->snapshots[k].named_time;
    }
    for (size_t j = 0; !status && j < labels.m; j++)
        labels.targets[j].t = targets[j].named_time;
    struct phema_problem given = as_problem(&labels, series);
    given.rounding = NULL;
    given.motion = NULL;
    given.run_end = 0;
    if (!status)
        status = phema_weights_solve(labels.solutions, &given, &as_published, err);
    for (size_t k = 0; !status && k < labels.n; k++)
        labels.snapshots[k] = plan_profile_of(&series->snapshots[k]);
    for (size_t j = 0; !status && j < labels.m; j++)
        labels.targets[j] = problem->targets[j];
    if (!status)
        status = rate(&labels, series, err);
    for (size_t j = 0; !status && j < labels.m; j++) {
        targets[j].label_profile_error = labels.solutions[j].profile_error;
        targets[j].label_predicted_error = labels.solutions[j].predicted.total;
    }
    clear_problem(&labels);
    return status;
}

/* The solver's weights are those of the prefix; the plan's are one for each snapshot. */
static enum phema_status keep_solutions(struct problem *problem, const struct phema_series *series,
                                        size_t n_considered, struct phema_target *targets,
                                        struct phema_error *err)
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
        targets[j].newest = count_until(series, targets[j].time) - 1;
    }
    return PHEMA_OK;
}

static enum phema_status fail_out_of_range(const struct phema_series *series,
                                           const struct phema_target *target,
                                           struct phema_error *err)
{
    struct phema_name_buffer wanted, first, last;
    (void)phema_number_shown(&wanted, target->named_time);
    (void)phema_number_shown(&first, series->snapshots[0].named_time);
    (void)phema_number_shown(&last, series->snapshots[series->n - 1].named_time);
    bool is_late = target->time > series->snapshots[series->n - 1].time;
    return phema_fail(err, PHEMA_ERR_TARGET, "%s: the wanted time %s is %s; they go from %s to %s",
                      series->root, wanted.text,
                      is_late ? "later than every snapshot" : "before the first snapshot",
                      first.text, last.text);
}

/* Targets of one time share the snapshots and so the factorisation. */
static enum phema_status solve_group(struct phema_plan *plan, struct phema_target *targets,
                                     size_t m, const struct phema_solve_options *options,
                                     struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    size_t n = count_used(series, targets[0].time);
    double last = series->snapshots[series->n - 1].time;
    if (n == 0 || targets[0].time > last)
        return fail_out_of_range(series, &targets[0], err);
    struct problem problem;
    enum phema_status status = set_problem(&problem, series, n, true, targets, m, err);
    struct phema_problem given = as_problem(&problem, series);
    if (!status)
        status = phema_weights_solve(problem.solutions, &given, options, err);
    if (!status && !problem.is_true)
        status = rate_labels(&problem, series, targets, err);
    if (!status)
        status = keep_solutions(&problem, series, n, targets, err);
    clear_problem(&problem);
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
        enum phema_status status =
            motion_find(plan->series, is_wanted, options->series.max_ram_bytes, err);
        if (status)
            return status;
    }
    if (is_wanted && !plan->series->motion)
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

static enum phema_status rate_given(struct phema_plan *plan, struct phema_target *target,
                                    struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_solution *solution = &target->solution;
    set_norms(solution, series->n);
    solution->profile_error = solution->walk_error = solution->condition = PHEMA_UNKNOWN;
    solution->predicted =
        (struct phema_prediction){PHEMA_UNKNOWN, PHEMA_UNKNOWN, PHEMA_UNKNOWN, PHEMA_UNKNOWN};
    if (isnan(target->gamma) || !series->has_profiles)
        return PHEMA_OK;
    struct problem problem;
    enum phema_status status = set_problem(&problem, series, series->n, false, target, 1, err);
    if (!status) {
        problem.solutions[0].weights = calloc(series->n, sizeof(double));
        if (!problem.solutions[0].weights)
            status = phema_fail_memory(err);
    }
    if (!status) {
        memcpy(problem.solutions[0].weights, solution->weights, series->n * sizeof(double));
        status = rate(&problem, series, err);
    }
    if (!status)
        status = keep_solutions(&problem, series, series->n, target, err);
    if (!status)
        solution->solver = "given";
    clear_problem(&problem);
    return status;
}

static enum phema_status take_given(struct phema_plan *plan,
                                    const struct phema_plan_options *options,
                                    struct phema_error *err)
{
    enum phema_status status = given_read(plan, options->weights_file, err);
    size_t n_widths = options->n_sigma_rels + options->n_gammas;
    if (!status && n_widths > 0) {
        bool has_own = plan->m > 1 || !isnan(plan->targets[0].gamma);
        if (has_own || n_widths > 1)
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "%s: %s; --sigma-rel says what a plain list of weights is meant for",
                              options->weights_file,
                              has_own ? "has targets of its own" : "is one target");
        struct phema_target *target = &plan->targets[0];
        if (options->n_sigma_rels) {
            target->sigma_rel = options->sigma_rels[0];
            status = phema_gamma_from_sigma_rel(&target->gamma, target->sigma_rel, err);
        } else {
            target->gamma = options->gammas[0];
            target->is_by_gamma = true;
            target->sigma_rel = phema_sigma_rel_from_gamma(target->gamma);
        }
    }
    if (!status && options->n_ats && (options->n_ats > 1 || plan->targets[0].is_time_in_file))
        status = phema_fail(err, PHEMA_ERR_USAGE, "--at: %s",
                            options->n_ats > 1 ? "one time goes with given weights"
                                               : "the file of weights has times of its own");
    if (!status && options->n_ats) {
        plan->targets[0].named_time = options->ats[0];
        plan->targets[0].time = phema_series_clock(plan->series, options->ats[0]);
    }
    bool has_target = false;
    for (size_t j = 0; !status && j < plan->m; j++)
        has_target |= !isnan(plan->targets[j].gamma);
    struct phema_solve_options unused = {.metric = PHEMA_METRIC_MOTION};
    if (!status && has_target) /* only for what the weights are worth */
        status = look_for_motion(plan, options, &unused, err);
    for (size_t j = 0; !status && j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        size_t n = count_until(plan->series, target->time);
        if (n == 0 || target->time > plan->series->snapshots[plan->series->n - 1].time)
            return fail_out_of_range(plan->series, target, err);
        target->newest = n - 1;
        status = rate_given(plan, target, err);
        target->newest = n - 1;
    }
    plan->metric = "given";
    plan->has_given_weights = true;
    return status;
}

static enum phema_status take_as_is(struct phema_plan *plan, struct phema_error *err)
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
    return rate_given(plan, target, err);
}

/* ---- Together ---- */

static enum phema_status make_targets(struct phema_plan *plan,
                                      const struct phema_plan_options *options,
                                      struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    size_t n_widths = options->n_sigma_rels + options->n_gammas;
    size_t n_ats = options->n_ats ? options->n_ats : 1;
    plan->targets = calloc(n_widths * n_ats, sizeof(*plan->targets));
    if (!plan->targets)
        return phema_fail_memory(err);
    plan->m = n_widths * n_ats;
    plan->ruled = calloc(plan->n_rules * n_ats + 1, sizeof(*plan->ruled));
    if (!plan->ruled)
        return phema_fail_memory(err);
    plan->n_ruled = plan->n_rules * n_ats;
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        target->label_profile_error = target->label_predicted_error = PHEMA_UNKNOWN;
        target->named_time = options->n_ats ? options->ats[j / n_widths]
                                            : series->snapshots[series->n - 1].named_time;
        target->time = phema_series_clock(series, target->named_time);
        size_t width = j % n_widths;
        if (width < options->n_sigma_rels) {
            target->sigma_rel = options->sigma_rels[width];
            enum phema_status status =
                phema_gamma_from_sigma_rel(&target->gamma, target->sigma_rel, err);
            if (status)
                return status;
        } else {
            target->gamma = options->gammas[width - options->n_sigma_rels];
            target->is_by_gamma = true;
            target->sigma_rel = phema_sigma_rel_from_gamma(target->gamma);
            if (!(target->sigma_rel < PHEMA_SIGMA_REL_LIMIT) || !(target->gamma > -0.38))
                return phema_fail(err, PHEMA_ERR_TARGET,
                                  "gamma %g has no sigma_rel below %.3f; the widest average that "
                                  "is accepted has gamma -0.0035",
                                  target->gamma, PHEMA_SIGMA_REL_LIMIT);
        }
    }
    return PHEMA_OK;
}

static enum phema_status make(struct phema_plan *plan, const struct phema_plan_options *options,
                              struct phema_error *err)
{
    phema_ledger_enter(options->ledger, PHEMA_STAGE_OPEN);
    enum phema_status status = rules_read(plan, options->rules, options->n_rules, err);
    if (!status)
        status = phema_series_open(&plan->series, &options->series, err);
    phema_ledger_enter(options->ledger, PHEMA_STAGE_SOLVE);
    if (!status)
        status = rules_match(plan, err);
    if (status)
        return status;
    if (options->is_conversion)
        return take_as_is(plan, err);
    if (options->weights_file)
        return take_given(plan, options, err);
    status = make_targets(plan, options, err);
    struct phema_solve_options solve = options->solve;
    if (!status)
        status = look_for_motion(plan, options, &solve, err);
    if (!status)
        status =
            phema_memory_check(options->series.max_ram_bytes, phema_weights_bytes(plan->series->n),
                               "to solve for the weights of so many snapshots", err);
    size_t n_widths = options->n_sigma_rels + options->n_gammas;
    for (size_t j = 0; !status && j < plan->m; j += n_widths)
        status = solve_time(plan, j, n_widths, &solve, err);
    if (!status)
        rules_mark_copies(plan);
    return status;
}

PHEMA_FALLIBLE phema_plan_make(struct phema_plan **out, const struct phema_plan_options *options,
                               struct phema_error *err)
{
    bool has_width = options->n_sigma_rels || options->n_gammas;
    if (options->is_conversion &&
        (has_width || options->weights_file || options->n_ats || options->n_rules))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--convert: takes one checkpoint as it is; it goes with no --sigma-rel, "
                          "--gamma, --at, --weights or --rule");
    if (options->weights_file && options->n_rules)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--rule: is a width to be solved for; it goes with no --weights, which "
                          "are used as given for every tensor");
    if (!options->is_conversion && !options->weights_file && !has_width)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "no target: give --sigma-rel, --gamma or --weights");
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
    phema_series_close(plan->series);
    free(plan);
}
