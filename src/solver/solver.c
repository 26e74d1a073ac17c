// SPDX-License-Identifier: Apache-2.0
/* solver.c - public API: weights for targets, and the quality of given weights. One factorisation
 * serves all targets, unless the ridge depends on the target's time. */
#include "phema/solver.h"

#include <stdlib.h>

#include "phema/strbuf.h"

#include "error_model.h"
#include "linear_system.h"

struct problem {
    const struct phema_problem *given;
    const struct phema_solve_options *options;
    struct phema_grams grams;
};

static enum phema_status fail_memory(const struct problem *problem, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_RESOURCE, "no memory for the weights of %zu snapshots",
                      problem->given->n);
}

static double *make_weights(size_t n)
{
    return calloc(n + 1, sizeof(double)); /* never of size 0 */
}

static enum phema_status check_numbers(const struct problem *problem, struct phema_error *err)
{
    for (size_t i = 0; problem->given->rounding && i < problem->given->n; i++) {
        double rounding = problem->given->rounding[i];
        if (!(rounding >= 0 && rounding <= 1)) {
            struct phema_name_buffer name;
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "snapshot %s: expected a relative rounding error from 0 to 1, found "
                              "%g",
                              phema_profile_format_label(&name, problem->given->snapshots, i),
                              rounding);
        }
    }
    double ridge = problem->options->ridge_value;
    if (problem->options->ridge == PHEMA_RIDGE_VALUE && !(ridge >= 0 && ridge <= 1e300))
        return phema_fail(err, PHEMA_ERR_USAGE, "expected a ridge of 0 or more, found %g", ridge);
    return PHEMA_OK;
}

static enum phema_status check_distinct(const struct problem *problem, struct phema_error *err)
{
    size_t i, j;
    if (!phema_gram_find_alike(&problem->grams.white, &i, &j))
        return PHEMA_OK;
    const struct phema_profile *snapshots = problem->given->snapshots;
    struct phema_name_buffer name, other, time, gamma;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "snapshots %s and %s are the same average (time %s, gamma %s); leave "
                      "one of them out",
                      phema_profile_format_label(&name, snapshots, j),
                      phema_profile_format_label(&other, snapshots, i),
                      phema_number_format(&time, snapshots[i].t),
                      phema_number_format(&gamma, snapshots[i].gamma));
}

/* Unit of a ridge that is one number: it has the same meaning in every metric. */
static phema_quad ridge_unit(const struct problem *problem, size_t target)
{
    const struct phema_mix *mix = &problem->given->targets[target];
    double end = 0;
    for (size_t p = 0; p < mix->n_parts; p++)
        end = fmax(end, mix->parts[p].t);
    if (problem->options->metric == PHEMA_METRIC_MOTION)
        return 1;
    return problem->options->metric == PHEMA_METRIC_WALK ? (phema_quad)end : 1 / (phema_quad)end;
}

/* Computes the ridge to add to the diagonal; false if it is 0. */
static bool find_ridge(phema_quad *ridge, double *lambda, const struct problem *problem,
                       size_t target)
{
    const struct phema_solve_options *options = problem->options;
    size_t n = problem->given->n;
    phema_quad unit = ridge_unit(problem, target);
    *lambda = 0;
    if (options->ridge == PHEMA_RIDGE_VALUE && options->ridge_value > 0) {
        for (size_t i = 0; i < n; i++)
            ridge[i] = (phema_quad)options->ridge_value * unit;
        *lambda = options->ridge_value;
    }
    if (options->ridge == PHEMA_RIDGE_AUTO && options->metric != PHEMA_METRIC_PROFILE) {
        phema_quad sum = 0;
        phema_error_ridge(ridge, problem->given, options->metric == PHEMA_METRIC_MOTION);
        for (size_t i = 0; i < n; i++)
            sum += ridge[i];
        *lambda = (double)(sum / ((phema_quad)n * unit));
    }
    return *lambda > 0;
}

/* One target of an open system, and beside it the condition of the system, which takes as long. */
struct solving_target {
    struct phema_solution *solution;
    struct phema_system *system;
    struct phema_system opened; /* as it was before the first solve */
    const struct problem *problem;
    size_t target;
};

static enum phema_status solve_opened(const struct solving_target *solving, struct phema_error *err)
{
    const struct problem *problem = solving->problem;
    const struct phema_solve_options *options = problem->options;
    enum phema_sum sum = options->metric != PHEMA_METRIC_PROFILE ? PHEMA_SUM_KEPT
                         : options->keeps_sum                    ? PHEMA_SUM_FREE
                                                                 : PHEMA_SUM_DIVIDED;
    enum phema_status status =
        phema_system_solve(solving->system, solving->solution->weights, solving->target, sum, err);
    if (status)
        return status;
    solving->solution->solver = phema_system_solver(solving->system);
    return phema_solution_evaluate(solving->solution, &problem->grams, solving->target,
                                   problem->given, err);
}

static enum phema_status solve_or_rate(void *context, size_t index, struct phema_error *err)
{
    struct solving_target *solving = context;
    double ignored;
    return index == 0 ? solve_opened(solving, err)
                      : phema_system_condition(&ignored, &solving->opened, err);
}

/* A factor in float64 stays as it is unless a solve makes one in quad, whose condition is known
 * better. */
static enum phema_status solve_and_rate(struct solving_target *solving, unsigned n_threads,
                                        struct phema_error *err)
{
    struct phema_system *system = solving->system;
    bool finds_condition = solving->problem->options->finds_condition;
    bool is_beside = finds_condition && n_threads > 1 && !system->cholesky.factor;
    solving->opened = *system;
    solving->solution->condition = PHEMA_UNKNOWN;
    enum phema_status status =
        phema_parallel_try(is_beside ? 2 : 1, n_threads, solve_or_rate, solving, err);
    if (is_beside && !system->cholesky.factor)
        system->condition = solving->opened.condition;
    if (!status && finds_condition)
        status = phema_system_condition(&solving->solution->condition, system, err);
    return status;
}

/* ridge [n]: scratch memory */
static enum phema_status solve_target(struct phema_solution *solution, struct phema_system *system,
                                      phema_quad *ridge, const struct problem *problem,
                                      size_t target, struct phema_error *err)
{
    const struct phema_solve_options *options = problem->options;
    const struct phema_gram *const grams[] = {[PHEMA_METRIC_WALK] = &problem->grams.walk,
                                              [PHEMA_METRIC_PROFILE] = &problem->grams.white,
                                              [PHEMA_METRIC_MOTION] = &problem->grams.motion};
    unsigned n_threads = 1; /* the condition of a system is found once */
    bool has_ridge = find_ridge(ridge, &solution->ridge, problem, target);
    /* the ridge may depend on the target's time */
    if (!system->gram || (options->ridge == PHEMA_RIDGE_VALUE &&
                          ridge_unit(problem, target) != ridge_unit(problem, target - 1))) {
        phema_system_close(system);
        enum phema_status status = phema_system_open(
            system, grams[options->metric], has_ridge ? ridge : NULL, options, PHEMA_STRICT, err);
        if (status)
            return status;
        n_threads = phema_threads_for(problem->given->n);
    }
    struct solving_target solving = {
        .solution = solution, .system = system, .problem = problem, .target = target};
    return solve_and_rate(&solving, n_threads, err);
}

static enum phema_status solve_all(struct phema_solution *solutions, const struct problem *problem,
                                   struct phema_error *err)
{
    phema_quad *ridge = calloc(problem->given->n, sizeof(*ridge));
    if (!ridge)
        return fail_memory(problem, err);
    struct phema_system system = {0};
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; !status && k < problem->given->m; k++)
        status = solve_target(&solutions[k], &system, ridge, problem, k, err);
    phema_system_close(&system);
    free(ridge);
    return status;
}

/* NaN if the sum of the paper's weights is 0. */
static enum phema_status rate_paper(double *total, struct phema_system *system,
                                    struct phema_solution *paper, const struct problem *problem,
                                    size_t target, struct phema_error *err)
{
    enum phema_status status =
        phema_system_solve(system, paper->weights, target, PHEMA_SUM_DIVIDED, err);
    *total = (double)NAN;
    if (status)
        return status == PHEMA_ERR_TARGET ? PHEMA_OK : status;
    status = phema_solution_evaluate(paper, &problem->grams, target, problem->given, err);
    *total = paper->predicted.total;
    return status;
}

/* The predicted error of the paper's weights for every target; and, unless condition is NULL, the
 * condition of their system. */
static enum phema_status compare_with_paper(double *totals, double *condition,
                                            const struct problem *problem, struct phema_error *err)
{
    struct phema_solution paper = {.weights = make_weights(problem->given->n)};
    if (!paper.weights)
        return fail_memory(problem, err);
    static const struct phema_solve_options automatic = {.solver = PHEMA_SOLVER_AUTO};
    bool is_on_device = problem->options->solver == PHEMA_SOLVER_DEVICE; /* this takes as long */
    struct phema_system system;
    enum phema_status status =
        phema_system_open(&system, &problem->grams.white, NULL,
                          is_on_device ? problem->options : &automatic, PHEMA_LENIENT, err);
    for (size_t k = 0; !status && k < problem->given->m; k++)
        status = rate_paper(&totals[k], &system, &paper, problem, k, err);
    if (!status && condition)
        status = phema_system_condition(condition, &system, err);
    phema_system_close(&system);
    free(paper.weights);
    return status;
}

/* The solutions, and the predicted errors of the paper's weights: two independent systems. */
struct solving {
    struct phema_solution *solutions;
    double *paper; /* [m] */
    const struct problem *problem;
};

static enum phema_status solve_system(void *context, size_t index, struct phema_error *err)
{
    struct solving *solving = context;
    return index == 0 ? solve_all(solving->solutions, solving->problem, err)
                      : compare_with_paper(solving->paper, NULL, solving->problem, err);
}

/* Steps of a millisecond and more. */
#define MANY_STEPS ((size_t)1 << 20)

static enum phema_status solve_problem(struct phema_solution *solutions,
                                       const struct problem *problem, struct phema_error *err)
{
    size_t m = problem->given->m;
    enum phema_status status = check_distinct(problem, err);
    if (status)
        return status;
    for (size_t k = 0; k < m; k++) {
        solutions[k].weights = make_weights(problem->given->n);
        if (!solutions[k].weights)
            return fail_memory(problem, err);
    }
    if (problem->options->metric == PHEMA_METRIC_PROFILE)
        return solve_all(solutions, problem, err);
    struct solving solving = {solutions, make_weights(m), problem};
    if (!solving.paper)
        return fail_memory(problem, err);
    bool is_on_device = problem->options->solver == PHEMA_SOLVER_DEVICE; /* one at a time */
    /* n^2 steps for each target */
    bool has_many = problem->given->n * problem->given->n >= MANY_STEPS / (m + 1);
    unsigned n_threads = has_many ? phema_parallel_threads() : phema_threads_for(problem->given->n);
    status = phema_parallel_try(2, is_on_device ? 1 : n_threads, solve_system, &solving, err);
    for (size_t k = 0; !status && k < m; k++)
        solutions[k].predicted.paper_weights = solving.paper[k];
    free(solving.paper);
    return status;
}

static enum phema_status open_problem(struct problem *problem, bool needs_walk,
                                      struct phema_error *err)
{
    enum phema_status status = check_numbers(problem, err);
    if (status)
        return status;
    if (problem->options->metric == PHEMA_METRIC_MOTION && !problem->given->motion)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "the motion metric needs to know how the parameters moved");
    return phema_grams_build(&problem->grams, problem->given, needs_walk, err);
}

enum phema_status phema_weights_solve(struct phema_solution *solutions,
                                      const struct phema_problem *given,
                                      const struct phema_solve_options *options,
                                      struct phema_error *err)
{
    struct problem problem = {.given = given, .options = options};
    enum phema_status status = open_problem(&problem, options->metric == PHEMA_METRIC_WALK, err);
    if (status)
        return status;

    size_t m = given->m;
    struct phema_solution *made = calloc(m + 1, sizeof(*made)); /* m may be 0 */
    status = made ? solve_problem(made, &problem, err) : fail_memory(&problem, err);
    for (size_t k = 0; !status && k < m; k++)
        solutions[k] = made[k];
    if (status && made)
        phema_solutions_clear(made, m);
    free(made);
    phema_grams_clear(&problem.grams);
    return status;
}

/* paper: scratch memory [m] */
static enum phema_status rate_all(struct phema_solution *rated, double *paper,
                                  const struct problem *problem, struct phema_error *err)
{
    enum phema_status status;
    double condition = 0;
    for (size_t k = 0; k < problem->given->m; k++) {
        status = phema_solution_evaluate(&rated[k], &problem->grams, k, problem->given, err);
        if (status)
            return status;
    }
    status = compare_with_paper(paper, &condition, problem, err);
    if (status)
        return status;
    for (size_t k = 0; k < problem->given->m; k++) {
        rated[k].predicted.paper_weights = paper[k];
        rated[k].condition = condition;
        rated[k].ridge = 0;
    }
    return PHEMA_OK;
}

enum phema_status phema_weights_evaluate(struct phema_solution *solutions,
                                         const struct phema_problem *given, struct phema_error *err)
{
    const struct phema_solve_options options = {.metric = PHEMA_METRIC_WALK,
                                                .ridge = PHEMA_RIDGE_NONE};
    struct problem problem = {.given = given, .options = &options};
    size_t m = given->m;
    for (size_t k = 0; k < m; k++)
        for (size_t i = 0; i < given->n; i++)
            if (!isfinite(solutions[k].weights[i]))
                return phema_fail(err, PHEMA_ERR_INPUTS, "expected finite weights, found %g",
                                  solutions[k].weights[i]);
    enum phema_status status = open_problem(&problem, false, err);
    if (status)
        return status;
    struct phema_solution *rated = calloc(m + 1, sizeof(*rated)); /* m may be 0 */
    double *paper = make_weights(m);
    for (size_t k = 0; rated && k < m; k++)
        rated[k] = solutions[k];
    status = rated && paper ? rate_all(rated, paper, &problem, err) : fail_memory(&problem, err);
    for (size_t k = 0; !status && k < m; k++)
        solutions[k] = rated[k];
    free(rated);
    free(paper);
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
    /* three Gram matrices of 16 n^2; for each of two systems a factor in fixed point, 16 n^2, and
     * one in float64, 8 n^2; each system has its own threads, and the condition has two */
    uint64_t n_others = phema_threads_for(n) - 1, n_threads = n_others ? 2 * n_others + 2 : 0;
    return 96 * (uint64_t)n * n + n_threads * PHEMA_PARALLEL_BYTES;
}
