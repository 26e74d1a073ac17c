// SPDX-License-Identifier: Apache-2.0
/* weights.c - the doors of the solver: weights for a set of targets, and what weights are worth.
 * One factorisation serves all targets, unless the ridge depends on the target's time. */
#include "phema/profile.h"

#include <stdlib.h>
#include <string.h>

#include "phema/text.h"

#include "predict.h"
#include "solve.h"

struct problem {
    const struct phema_profile *snapshots;
    size_t n;
    const struct phema_profile *targets;
    size_t m;
    const struct phema_solve_options *options;
    struct phema_model model;
    struct phema_grams grams;
};

static enum phema_status fail_memory(const struct problem *problem, struct phema_error *err)
{
    (void)phema_fail(err, PHEMA_ERR_RESOURCE, "no memory for the weights of %zu snapshots",
                     problem->n);
    return PHEMA_ERR_RESOURCE;
}

static double *make_weights(size_t n)
{
    return calloc(n + 1, sizeof(double)); /* never of size 0 */
}

static enum phema_status check_numbers(const struct problem *problem, struct phema_error *err)
{
    for (size_t i = 0; problem->model.rounding && i < problem->n; i++) {
        double rounding = problem->model.rounding[i];
        if (!(rounding >= 0 && rounding <= 1)) {
            struct phema_name_buffer name;
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "snapshot %s: expected a relative rounding error from 0 to 1, found "
                              "%g",
                              phema_profile_shown(&name, problem->snapshots, i), rounding);
        }
    }
    double ridge = problem->options->ridge_value;
    if (problem->options->ridge == PHEMA_RIDGE_VALUE && !(ridge >= 0 && ridge <= 1e300))
        return phema_fail(err, PHEMA_ERR_USAGE, "expected a ridge of 0 or more, found %g", ridge);
    return PHEMA_OK;
}

static enum phema_status check_distinct(const struct problem *problem, struct phema_error *err)
{
    size_t i;
    size_t j;
    if (!phema_gram_find_alike(&problem->grams.white, &i, &j))
        return PHEMA_OK;
    struct phema_name_buffer name;
    struct phema_name_buffer other;
    struct phema_name_buffer time;
    struct phema_name_buffer gamma;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "snapshots %s and %s are the same average (time %s, gamma %s); leave "
                      "one of them out",
                      phema_profile_shown(&name, problem->snapshots, j),
                      phema_profile_shown(&other, problem->snapshots, i),
                      phema_number_shown(&time, problem->snapshots[i].t),
                      phema_number_shown(&gamma, problem->snapshots[i].gamma));
}

/* Adds to the diagonal; false when there is nothing to add. */
static bool find_ridge(phema_quad *ridge, double *lambda, const struct problem *problem,
                       size_t target)
{
    const struct phema_solve_options *options = problem->options;
    bool is_walk = options->metric == PHEMA_METRIC_WALK;
    phema_quad t = (phema_quad)problem->targets[target].t;
    *lambda = 0;
    if (options->ridge == PHEMA_RIDGE_VALUE && options->ridge_value > 0) {
        phema_quad value = (phema_quad)options->ridge_value;
        for (size_t i = 0; i < problem->n; i++)
            ridge[i] = is_walk ? value * t : value / t;
        *lambda = options->ridge_value;
    }
    if (options->ridge == PHEMA_RIDGE_AUTO && is_walk) {
        phema_quad sum = 0;
        phema_model_ridge(ridge, &problem->model, problem->n);
        for (size_t i = 0; i < problem->n; i++)
            sum += ridge[i];
        *lambda = (double)(sum / ((phema_quad)problem->n * t));
    }
    return *lambda > 0;
}

static enum phema_sum wanted_sum(const struct phema_solve_options *options)
{
    if (options->metric == PHEMA_METRIC_WALK)
        return PHEMA_SUM_ONE;
    return options->keeps_sum ? PHEMA_SUM_FREE : PHEMA_SUM_DIVIDED;
}

static enum phema_status solve_target(struct phema_solution *solution, struct phema_system *system,
                                      const struct problem *problem, size_t target,
                                      struct phema_error *err)
{
    enum phema_status status =
        phema_system_solve(system, solution->weights, target, wanted_sum(problem->options), err);
    if (status)
        return status;
    solution->condition = system->condition;
    solution->solver = phema_system_solver(system);
    return phema_solution_rate(solution, &problem->grams, target, &problem->model, err);
}

static enum phema_status solve_all(struct phema_solution *solutions, const struct problem *problem,
                                   struct phema_error *err)
{
    const struct phema_solve_options *options = problem->options;
    const struct phema_gram *gram =
        options->metric == PHEMA_METRIC_WALK ? &problem->grams.walk : &problem->grams.white;
    phema_quad *ridge = calloc(problem->n, sizeof(*ridge));
    if (!ridge)
        return fail_memory(problem, err);

    struct phema_system system = {0};
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; !status && k < problem->m; k++) {
        bool has_ridge = find_ridge(ridge, &solutions[k].ridge, problem, k);
        bool is_new = !system.gram || (options->ridge == PHEMA_RIDGE_VALUE && has_ridge &&
                                       problem->targets[k].t != problem->targets[k - 1].t);
        if (is_new) {
            phema_system_close(&system);
            status = phema_system_open(&system, gram, has_ridge ? ridge : NULL, options->solver,
                                       PHEMA_STRICT, problem->snapshots, err);
        }
        if (!status)
            status = solve_target(&solutions[k], &system, problem, k, err);
    }
    phema_system_close(&system);
    free(ridge);
    return status;
}

/* NaN where the paper's weights add up to nothing. */
static enum phema_status rate_paper(double *total, struct phema_system *system,
                                    struct phema_solution *paper, const struct problem *problem,
                                    size_t target, struct phema_error *err)
{
    enum phema_status status =
        phema_system_solve(system, paper->weights, target, PHEMA_SUM_DIVIDED, err);
    if (status == PHEMA_ERR_TARGET) {
        *total = (double)NAN;
        return PHEMA_OK;
    }
    if (!status)
        status = phema_solution_rate(paper, &problem->grams, target, &problem->model, err);
    if (!status)
        *total = paper->predicted.total;
    return status;
}

/* predicted.paper_weights of every solution; and, for weights from outside, the condition. */
static enum phema_status compare_with_paper(struct phema_solution *solutions,
                                            const struct problem *problem, bool sets_condition,
                                            struct phema_error *err)
{
    struct phema_solution paper = {.weights = make_weights(problem->n)};
    if (!paper.weights)
        return fail_memory(problem, err);
    struct phema_system system = {0};
    enum phema_status status =
        phema_system_open(&system, &problem->grams.white, NULL, PHEMA_SOLVER_AUTO, PHEMA_LENIENT,
                          problem->snapshots, err);
    for (size_t k = 0; !status && k < problem->m; k++) {
        status =
            rate_paper(&solutions[k].predicted.paper_weights, &system, &paper, problem, k, err);
        if (sets_condition)
            solutions[k].condition = system.condition;
    }
    phema_system_close(&system);
    free(paper.weights);
    return status;
}

static enum phema_status solve_problem(struct phema_solution *solutions,
                                       const struct problem *problem, struct phema_error *err)
{
    enum phema_status status = check_distinct(problem, err);
    for (size_t k = 0; !status && k < problem->m; k++) {
        solutions[k].weights = make_weights(problem->n);
        if (!solutions[k].weights)
            status = fail_memory(problem, err);
    }
    if (!status)
        status = solve_all(solutions, problem, err);
    if (!status && problem->options->metric != PHEMA_METRIC_PROFILE)
        status = compare_with_paper(solutions, problem, false, err);
    return status;
}

enum phema_status phema_weights_solve(struct phema_solution *solutions,
                                      const struct phema_problem *given,
                                      const struct phema_solve_options *options,
                                      struct phema_error *err)
{
    const struct phema_profile *snapshots = given->snapshots;
    const struct phema_profile *targets = given->m ? given->targets[0].parts : NULL;
    const double *rounding = given->rounding;
    size_t n = given->n;
    size_t m = given->m;
    double run_end = given->run_end;
    struct problem problem = {snapshots, n, targets, m, options, .model = {.rounding = rounding}};
    enum phema_status status = check_numbers(&problem, err);
    if (status)
        return status;
    status = phema_grams_build(&problem.grams, snapshots, n, targets, m, err);
    if (status)
        return status;
    problem.model = phema_model_of(snapshots, n, rounding, run_end);

    struct phema_solution *made = calloc(m + 1, sizeof(*made)); /* m may be 0 */
    status = made ? solve_problem(made, &problem, err) : fail_memory(&problem, err);
    if (made && !status && m)
        memcpy(solutions, made, m * sizeof(*made));
    if (made && status)
        phema_solutions_clear(made, m);
    free(made);
    phema_grams_clear(&problem.grams);
    return status;
}

static enum phema_status check_weights(const struct phema_solution *solutions, size_t n, size_t m,
                                       struct phema_error *err)
{
    for (size_t k = 0; k < m; k++) {
        for (size_t i = 0; i < n; i++) {
            if (!isfinite(solutions[k].weights[i]))
                return phema_fail(err, PHEMA_ERR_INPUTS, "expected finite weights, found %g",
                                  solutions[k].weights[i]);
        }
    }
    return PHEMA_OK;
}

static enum phema_status rate_problem(struct phema_solution *rated, const struct problem *problem,
                                      struct phema_error *err)
{
    for (size_t k = 0; k < problem->m; k++) {
        rated[k].ridge = 0;
        enum phema_status status =
            phema_solution_rate(&rated[k], &problem->grams, k, &problem->model, err);
        if (status)
            return status;
    }
    return compare_with_paper(rated, problem, true, err);
}

enum phema_status phema_weights_rate(struct phema_solution *solutions,
                                     const struct phema_problem *given, struct phema_error *err)
{
    const struct phema_profile *snapshots = given->snapshots;
    const struct phema_profile *targets = given->m ? given->targets[0].parts : NULL;
    const double *rounding = given->rounding;
    size_t n = given->n;
    size_t m = given->m;
    double run_end = given->run_end;
    const struct phema_solve_options options = {.ridge = PHEMA_RIDGE_NONE};
    struct problem problem = {snapshots, n, targets, m, &options, .model = {.rounding = rounding}};
    enum phema_status status = check_numbers(&problem, err);
    if (!status)
        status = check_weights(solutions, n, m, err);
    if (status)
        return status;
    status = phema_grams_build(&problem.grams, snapshots, n, targets, m, err);
    if (status)
        return status;
    problem.model = phema_model_of(snapshots, n, rounding, run_end);

    struct phema_solution *rated = calloc(m + 1, sizeof(*rated)); /* m may be 0 */
    for (size_t k = 0; rated && k < m; k++)
        rated[k] = solutions[k];
    status = rated ? rate_problem(rated, &problem, err) : fail_memory(&problem, err);
    if (rated && !status && m)
        memcpy(solutions, rated, m * sizeof(*rated));
    free(rated);
    phema_grams_clear(&problem.grams);
    return status;
}

void phema_solutions_clear(struct phema_solution *solutions, size_t m)
{
    for (size_t k = 0; k < m; k++) {
        free(solutions[k].weights);
        solutions[k] = (struct phema_solution){0};
    }
}

uint64_t phema_weights_bytes(size_t n)
{
    return 64 * (uint64_t)n * n;
}
