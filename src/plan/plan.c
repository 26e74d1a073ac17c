// SPDX-License-Identifier: Apache-2.0
/* plan.c - targets and weights for a series. */
#include "phema/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/formats.h"
#include "phema/memory.h"
#include "phema/packed.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "series_checks.h"
#include "solver_input.h"
#include "targets.h"

/* ---- Weights for the targets of one time ---- */

/* Weights by the published recipe (eq. 151, names as times), evaluated with the true profiles.
 *   labels  all snapshots considered, repeats included; none raw
 * PHEMA_ERR_INPUTS   by their names they are no averages, or the same ones
 * PHEMA_ERR_TARGET   nor is a target one */
static enum phema_status solve_by_labels(struct solver_input *labels,
                                         const struct phema_series *series,
                                         const struct phema_target *targets,
                                         struct phema_error *err)
{
    static const struct phema_solve_options as_published = {
        .metric = PHEMA_METRIC_PROFILE, .ridge = PHEMA_RIDGE_NONE, .keeps_sum = true};
    struct phema_problem published = labels->problem;
    published.rounding = NULL;
    published.motion = NULL;
    published.run_end = 0;
    for (size_t k = 0; k < published.n; k++) {
        labels->snapshots[k].update_every = 1;
        labels->snapshots[k].reset = labels->snapshots[k].origin = 0;
        labels->snapshots[k].t = series->snapshots[k].named_time;
    }
    for (size_t j = 0; j < published.m; j++)
        labels->targets[j].t = targets[j].named_time;
    enum phema_status status =
        phema_weights_solve(labels->solutions, &published, &as_published, err);
    if (status)
        return status;
    for (size_t k = 0; k < published.n; k++)
        labels->snapshots[k] = series->snapshots[k].profile;
    for (size_t j = 0; j < published.m; j++)
        labels->targets[j].t = targets[j].time;
    return phema_weights_evaluate(labels->solutions, &labels->problem, err);
}

/* Raw parameters have no length in the metric of the published recipe. */
static bool has_raw(const struct phema_problem *problem)
{
    for (size_t k = 0; k < problem->n; k++)
        if (problem->snapshots[k].shape == PHEMA_SHAPE_RAW)
            return true;
    return false;
}

/* Sets the targets' label errors: the error that the training library's own synthesis makes by
 * believing its labels. They stay unknown where it cannot be made. */
static enum phema_status rate_labels(const struct phema_plan *plan, struct phema_target *targets,
                                     size_t m, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct solver_input labels;
    enum phema_status status = solver_input_build(&labels, series, plan->motion,
                                                  solver_input_count_used(series, targets[0].time),
                                                  false, targets, m, err);
    bool is_solved = false;
    if (!status && !has_raw(&labels.problem)) {
        status = solve_by_labels(&labels, series, targets, err);
        is_solved = !status;
        if (status == PHEMA_ERR_INPUTS || status == PHEMA_ERR_TARGET)
            status = PHEMA_OK;
    }
    for (size_t j = 0; is_solved && j < m; j++) {
        targets[j].label_profile_error = labels.solutions[j].profile_error;
        targets[j].label_predicted_error = labels.solutions[j].predicted.total;
    }
    solver_input_clear(&labels);
    return status;
}

/* Sets weights [problem.n], which are 0, if every part of the target is a raw snapshot. */
static bool set_merge_weights(double *weights, const struct solver_input *input,
                              const struct phema_mix *mix)
{
    for (size_t i = 0; i < mix->n_parts; i++) {
        const struct phema_profile *part = &mix->parts[i];
        size_t x = 0;
        while (x < input->problem.n &&
               (input->snapshots[x].shape != PHEMA_SHAPE_RAW || input->snapshots[x].t != part->t))
            x++;
        if (part->shape != PHEMA_SHAPE_RAW || x == input->problem.n)
            return false;
        weights[x] += mix->factors ? mix->factors[i] : 1;
    }
    return mix->n_parts > 0;
}

/* A snapshot as it is and a merge of raw snapshots have exactly the weights of their definition,
 * free of rounding and ridge, so that no other file is read. */
static enum phema_status use_exact_weights(struct solver_input *input,
                                           const struct phema_target *targets,
                                           struct phema_error *err)
{
    const struct phema_problem *problem = &input->problem;
    double *weights = phema_arena_array(&input->memory, problem->n, sizeof(*weights));
    if (!weights)
        return phema_fail_memory(err);
    for (size_t j = 0; j < problem->m; j++) {
        memset(weights, 0, problem->n * sizeof(*weights));
        size_t x = 0;
        while (x < problem->n && !(targets[j].is_stored && input->index[x] == targets[j].stored))
            x++;
        if (x < problem->n)
            weights[x] = 1;
        else if (!set_merge_weights(weights, input, &problem->targets[j]))
            continue;
        struct phema_problem alone = *problem;
        alone.targets = &problem->targets[j];
        alone.m = 1;
        memcpy(input->solutions[j].weights, weights, problem->n * sizeof(*weights));
        enum phema_status status = phema_weights_evaluate(&input->solutions[j], &alone, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* The solver has a weight for each snapshot that it sees, the plan one for each snapshot. */
/* Replaces the profiles of all averages by that of a SPEC. */
static enum phema_status use_spec(struct solver_input *input, const char *text,
                                  struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    enum phema_status status = phema_spec_parse(&spec, &input->memory, text, err);
    for (size_t k = 0; !status && k < input->problem.n; k++) {
        struct phema_profile *profile = &input->snapshots[k], sure = *profile;
        if (sure.shape == PHEMA_SHAPE_RAW)
            continue;
        status = phema_spec_profile(profile, spec, sure.t, err);
        profile->label = sure.label;
        profile->reset = sure.reset;
        profile->origin = sure.origin;
    }
    return status;
}

/* Raises predicted errors to those of the same weights if the profile is the doubted one. */
static enum phema_status rate_doubt(struct solver_input *input, const char *doubted,
                                    struct phema_error *err)
{
    const struct phema_problem *problem = &input->problem;
    struct phema_profile *sure = phema_arena_array(&input->memory, problem->n, sizeof(*sure));
    struct phema_solution *rated = phema_arena_array(&input->memory, problem->m, sizeof(*rated));
    if (!sure || !rated)
        return phema_fail_memory(err);
    memcpy(sure, input->snapshots, problem->n * sizeof(*sure));
    memcpy(rated, input->solutions, problem->m * sizeof(*rated));
    enum phema_status status = use_spec(input, doubted, err);
    if (!status)
        status = phema_weights_evaluate(rated, problem, err);
    for (size_t j = 0; !status && j < problem->m; j++) {
        struct phema_prediction *predicted = &input->solutions[j].predicted;
        double before = predicted->total, total = rated[j].predicted.total;
        if (!(total > before))
            continue;
        predicted->total = predicted->doubt = total;
        predicted->paper_weights = /* the same profiles are wrong for these */
            hypot(predicted->paper_weights, sqrt(total * total - before * before));
    }
    memcpy(input->snapshots, sure, problem->n * sizeof(*sure));
    return status;
}

static enum phema_status store_solutions(struct phema_plan *plan, const struct solver_input *input,
                                         struct phema_target *targets, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    for (size_t j = 0; j < input->problem.m; j++) {
        double *weights = phema_arena_array(&plan->memory, series->n, sizeof(*weights));
        if (!weights)
            return phema_fail_memory(err);
        for (size_t x = 0; x < input->problem.n; x++) {
            double scale = targets[j].is_stored ? 1 : phema_profile_scale(&input->snapshots[x]);
            weights[input->index[x]] = input->solutions[j].weights[x] / scale;
        }
        targets[j].solution = input->solutions[j];
        targets[j].solution.weights = weights;
        targets[j].n_left_out = series->n - input->n_considered;
        targets[j].n_repeated = input->n_considered - input->problem.n;
        targets[j].newest = solver_input_count_until(series, targets[j].time) - 1;
    }
    return PHEMA_OK;
}

static enum phema_status solve_input(struct solver_input *input, struct phema_plan *plan,
                                     struct phema_target *targets,
                                     const struct phema_solve_options *options,
                                     struct phema_error *err)
{
    enum phema_status status = phema_weights_solve(input->solutions, &input->problem, options, err);
    if (status)
        return status;
    status = use_exact_weights(input, targets, err);
    if (!status && plan->series->doubted)
        status = rate_doubt(input, plan->series->doubted, err);
    if (!status && !input->has_true_labels)
        status = rate_labels(plan, targets, input->problem.m, err);
    return status ? status : store_solutions(plan, input, targets, err);
}

/* Targets of one time share the snapshots and so the factorisation. */
static enum phema_status solve_group(struct phema_plan *plan, struct phema_target *targets,
                                     size_t m, const struct phema_solve_options *options,
                                     struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    enum phema_status status = target_check_time(&targets[0], series, err);
    if (status)
        return status;
    struct solver_input input;
    status =
        solver_input_build(&input, series, plan->motion,
                           solver_input_count_used(series, targets[0].time), true, targets, m, err);
    if (!status)
        status = solve_input(&input, plan, targets, options, err);
    solver_input_clear(&input);
    return status ? phema_fail_in(err, status, "%s", series->root) : PHEMA_OK;
}

/* Errors that follow from wrong labels are no predictions. */
static void forget_predictions(struct phema_plan *plan)
{
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        target->solution.predicted = unknown_prediction;
        target->label_predicted_error = PHEMA_UNKNOWN;
        for (size_t r = 0; target->ruled && r < plan->n_rules; r++)
            target->ruled[r].predicted = unknown_prediction;
    }
}

/* The widths of rules are additional targets, solved for together with the others. */
static enum phema_status solve_time(struct phema_plan *plan, struct phema_target *targets, size_t m,
                                    const struct phema_solve_options *options,
                                    struct phema_error *err)
{
    size_t n = m, n_rules = plan->n_rules;
    struct phema_target *columns = phema_arena_array(&plan->memory, m + n_rules, sizeof(*columns));
    struct phema_solution *ruled =
        n_rules ? phema_arena_array(&plan->memory, n_rules, sizeof(*ruled)) : NULL;
    if (plan->memory.is_failed)
        return phema_fail_memory(err);
    memcpy(columns, targets, m * sizeof(*columns));
    for (size_t r = 0; r < n_rules; r++) {
        if (plan->rules[r].is_copy)
            continue;
        columns[n] = targets[0];
        columns[n].sigma_rel = plan->rules[r].sigma_rel;
        columns[n].gamma = plan->rules[r].gamma;
        columns[n++].is_stored = false;
    }
    enum phema_status status = solve_group(plan, columns, n, options, err);
    if (status)
        return status;
    memcpy(targets, columns, m * sizeof(*columns));
    for (size_t r = 0, x = m; r < n_rules; r++)
        if (!plan->rules[r].is_copy)
            ruled[r] = columns[x++].solution;
    for (size_t j = 0; j < m; j++)
        targets[j].ruled = ruled;
    return PHEMA_OK;
}

/* The motion of the parameters is looked for whatever the metric: it improves predictions. */
static enum phema_status choose_metric(struct phema_plan *plan,
                                       const struct phema_plan_options *options,
                                       struct phema_solve_options *solve, struct phema_error *err)
{
    static const char *const names[] = {[PHEMA_METRIC_WALK] = "walk",
                                        [PHEMA_METRIC_PROFILE] = "profile",
                                        [PHEMA_METRIC_MOTION] = "motion"};
    bool is_wanted = solve->metric == PHEMA_METRIC_MOTION;
    enum phema_status status = motion_find(plan, options, err);
    if (status)
        return status;
    if (is_wanted && !plan->motion)
        solve->metric = PHEMA_METRIC_WALK;
    plan->metric = names[solve->metric];
    return PHEMA_OK;
}

static enum phema_status solve_targets(struct phema_plan *plan,
                                       const struct phema_plan_options *options,
                                       struct phema_error *err)
{
    enum phema_status status = targets_make(plan, options, err);
    if (status)
        return status;
    struct phema_solve_options solve = options->solve;
    status = choose_metric(plan, options, &solve, err);
    if (status)
        return status;
    status = phema_memory_check(options->series.max_ram_bytes, phema_weights_bytes(plan->series->n),
                                "to solve for the weights of so many snapshots", err);
    if (status)
        return status;
    size_t n_widths = targets_per_time(options);
    for (size_t j = 0; j < plan->m; j += n_widths) {
        status = solve_time(plan, &plan->targets[j], n_widths, &solve, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Make and free ---- */

/* The options get the profile that was found. */
static enum phema_status open_series(struct phema_plan *plan, struct phema_plan_options *options,
                                     struct phema_error *err)
{
    phema_memory_profile_begin_stage(options->memory_profile, PHEMA_STAGE_OPEN);
    enum phema_status status = rules_read(plan, options->rules, options->n_rules, err);
    if (!status)
        status = phema_series_open_auto(&plan->series, &options->series, err);
    phema_memory_profile_begin_stage(options->memory_profile, PHEMA_STAGE_SOLVE);
    return status ? status : rules_match(plan, err);
}

static enum phema_status read_schedule(struct phema_plan *plan,
                                       const struct phema_plan_options *options,
                                       struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    if (!options->schedule)
        return PHEMA_OK;
    double end = series->snapshots[series->n - 1].time;
    enum phema_status status = phema_schedule_parse(&plan->schedule, options->schedule, end, err);
    if (!status && !phema_schedule_is_spec(options->schedule))
        status = phema_claims_add_input(series->claims, options->schedule, "the schedule", err);
    return status ? phema_fail_in_setting(err, status, PHEMA_SET_SCHEDULE) : PHEMA_OK;
}

static enum phema_status fill_plan(struct phema_plan *plan, struct phema_plan_options *options,
                                   struct phema_error *err)
{
    enum phema_status status = open_series(plan, options, err);
    size_t n = options->is_conversion ? 1 : targets_per_time(options);
    if (!status && options->check)
        status = options->check(options->context, plan->series,
                                options->n_ats ? n * options->n_ats : n, err);
    if (status)
        return status;
    if (options->is_conversion)
        return weights_use_one(plan, err);
    status = rules_check_quantised(plan, err);
    if (status)
        return status;
    rules_mark_copies(plan);
    struct phema_identification *identification = NULL;
    /* the solver leaves processors idle, which read the digests meanwhile */
    if (options->identifies)
        status = phema_series_identify_begin(&identification, plan->series, err);
    if (!status)
        status = read_schedule(plan, options, err);
    if (!status)
        status = options->weights_file ? weights_file_use(plan, options, err)
                                       : solve_targets(plan, options, err);
    if (!status)
        status = variances_keep_positive(plan, err);
    if (status)
        phema_series_identify_abandon(identification);
    else if (identification)
        status = phema_series_identify_end(identification, err);
    if (!status)
        straightness_predict(plan);
    if (!status && plan->checks.verdict == PHEMA_SERIES_WRONG)
        forget_predictions(plan);
    return status;
}

/* Of a checkpoint the targets are too many, of a series --convert is. */
static enum phema_status fail_conversion(const struct phema_plan_options *options,
                                         struct phema_error *err)
{
    const struct {
        enum phema_setting setting;
        bool is_given;
    } targets[] = {{PHEMA_SET_SIGMA_REL, options->n_sigma_rels > 0},
                   {PHEMA_SET_GAMMA, options->n_gammas > 0},
                   {PHEMA_SET_PROFILE, options->n_profiles > 0},
                   {PHEMA_SET_AT, options->n_ats > 0},
                   {PHEMA_SET_WEIGHTS, options->weights_file != NULL},
                   {PHEMA_SET_RULE, options->n_rules > 0}};
    const char *path = options->series.snapshots;
    size_t i = 0;
    while (!targets[i].is_given)
        i++;
    enum phema_status status = phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_CONVERT,
                                                  "takes one checkpoint as it is; it excludes %s",
                                                  phema_setting_name(targets[i].setting));
    bool is_series = phema_path_is_directory(path) && !phema_directory_has_model(path, true);
    return phema_suggest(err, status, is_series ? PHEMA_SET_CONVERT : targets[i].setting, "");
}

PHEMA_FALLIBLE phema_plan_make(struct phema_plan **out, const struct phema_plan_options *options,
                               struct phema_error *err)
{
    bool has_width = targets_per_time(options) > 0;
    if (options->is_conversion &&
        (has_width || options->weights_file || options->n_ats || options->n_rules))
        return fail_conversion(options, err);
    if (options->is_conversion && options->series.n_several)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_CONVERT,
                                  "takes one checkpoint, not %zu", options->series.n_several);
    if (options->weights_file && options->n_rules)
        return phema_fail_setting(
            err, PHEMA_ERR_USAGE, PHEMA_SET_RULE,
            "is a width to be solved for; it excludes %s, which are used as given for every tensor",
            phema_setting_name(PHEMA_SET_WEIGHTS));
    if (!options->is_conversion && !options->weights_file && !has_width)
        return phema_suggest(
            err,
            phema_settings_are_options
                ? phema_fail(
                      err, PHEMA_ERR_USAGE, "no target: give %s, %s, %s or %s",
                      phema_setting_name(PHEMA_SET_SIGMA_REL), phema_setting_name(PHEMA_SET_GAMMA),
                      phema_setting_name(PHEMA_SET_PROFILE), phema_setting_name(PHEMA_SET_WEIGHTS))
                : phema_fail(err, PHEMA_ERR_USAGE, "no target: give %s or %s",
                             phema_setting_name(PHEMA_SET_SIGMA_REL),
                             phema_setting_name(PHEMA_SET_PROFILE)),
            PHEMA_SET_SIGMA_REL, "0.1");
    struct phema_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return phema_fail_memory(err);
    struct phema_plan_options known = *options;
    enum phema_status status = fill_plan(plan, &known, err);
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
    rules_clear(plan);
    if (plan->motion)
        phema_motion_clear(plan->motion);
    phema_series_checks_clear(&plan->checks);
    phema_schedule_free(plan->schedule);
    phema_series_close(plan->series);
    phema_arena_clear(&plan->memory);
    free(plan);
}

/* ---- For another process: weights and rules, not how they were found ---- */

static void pack_solution(struct phema_packer *packer, struct phema_solution *solution, size_t n)
{
    phema_pack_double(packer, &solution->sum);
    if (!phema_pack_presence(packer, solution->weights != NULL))
        return;
    solution->weights = phema_pack_array(packer, solution->weights, n, sizeof(*solution->weights));
    for (size_t k = 0; solution->weights && k < n; k++)
        phema_pack_double(packer, &solution->weights[k]);
}

static void pack_rules(struct phema_packer *packer, struct phema_plan *plan)
{
    size_t n = plan->series->n_tensors;
    phema_pack_index(packer, &plan->n_rules, packer->rest.size + 1);
    plan->rules = phema_pack_array(packer, plan->rules, plan->n_rules, sizeof(*plan->rules));
    if (!plan->rules)
        plan->n_rules = 0;
    plan->rule_of = phema_pack_array(packer, plan->rule_of, n, sizeof(*plan->rule_of));
    for (size_t i = 0; plan->rule_of && i < n; i++)
        phema_pack_index(packer, &plan->rule_of[i], plan->n_rules + 1);
}

static void pack_targets(struct phema_packer *packer, struct phema_plan *plan)
{
    size_t n = plan->series->n;
    phema_pack_count(packer, &plan->m, 32);
    plan->targets = phema_pack_array(packer, plan->targets, plan->m, sizeof(*plan->targets));
    for (size_t j = 0; j < plan->m && !phema_pack_is_failed(packer); j++) {
        struct phema_target *target = &plan->targets[j];
        pack_solution(packer, &target->solution, n);
        packer->is_damaged = packer->is_damaged || !target->solution.weights;
        phema_pack_index(packer, &target->newest, n);
        bool is_first = j == 0 || target->ruled != target[-1].ruled; /* shared with that one */
        if (j > 0)
            phema_pack_bool(packer, &is_first);
        target->ruled = is_first ? phema_pack_array(packer, target->ruled, plan->n_rules,
                                                    sizeof(*target->ruled))
                                 : target[-1].ruled;
        for (size_t r = 0; is_first && target->ruled && r < plan->n_rules; r++)
            pack_solution(packer, &target->ruled[r], n);
    }
}

PHEMA_FALLIBLE phema_plan_pack(struct phema_plan **plan, struct phema_packer *packer,
                               struct phema_error *err)
{
    struct phema_plan *packed = phema_pack_receives(packer) ? calloc(1, sizeof(*packed)) : *plan;
    if (!packed)
        return phema_fail_memory(err);
    enum phema_status status = phema_series_pack(&packed->series, packer, err);
    if (!status) {
        packer->arena = &packed->memory;
        pack_rules(packer, packed);
        pack_targets(packer, packed);
        status = phema_pack_check(packer, err);
    }
    if (status && phema_pack_receives(packer))
        phema_plan_free(packed);
    else
        *plan = packed;
    return status;
}
