// SPDX-License-Identifier: Apache-2.0
/* pruning.c - which snapshots could be deleted, and how often to save, by predicted errors with
 * fewer snapshots. Backward elimination: let P be the inverse of the system on the weights that
 * keep the sum. Leaving out snapshot i then costs w_i^2 / P_ii exactly, and makes the weights
 * w - P_i w_i / P_ii. */
#include "phema/solver.h"

#include <math.h>
#include <stdlib.h>

#include "phema/arena.h"

#include "error_model.h"
#include "linear_system.h"

struct elimination {
    size_t n, m;
    phema_quad *inverse;       /* [n x n] P */
    phema_quad *weights;       /* [m x n] */
    phema_quad *errors;        /* [m] squared */
    bool *is_out;              /* [n] */
    struct phema_arena memory; /* of all arrays */
};

/* P = H^-1 - H^-1 1 1^T H^-1 / (1^T H^-1 1), which moves weights only along sums of 0 */
static void keep_sum(phema_quad *inverse, phema_quad *rows, size_t n)
{
    phema_quad all = 0;
    for (size_t i = 0; i < n; i++) {
        rows[i] = 0;
        for (size_t j = 0; j < n; j++)
            rows[i] += inverse[i * n + j];
        all += rows[i];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            inverse[i * n + j] -= rows[i] * rows[j] / all;
}

/* P of the Gram matrix with the ridge of the problem */
static enum phema_status invert(phema_quad *inverse, const struct phema_gram *gram,
                                const struct phema_problem *problem, struct phema_error *err)
{
    static const struct phema_solve_options in_quad = {.solver = PHEMA_SOLVER_QUAD};
    size_t n = gram->n;
    phema_quad *scratch = calloc(n, sizeof(*scratch));
    if (!scratch)
        return phema_fail_memory(err);
    struct phema_system system;
    phema_error_ridge(scratch, problem, problem->motion != NULL);
    enum phema_status status =
        phema_system_open(&system, gram, scratch, &in_quad, PHEMA_STRICT, err);
    for (size_t i = 0; !status && i < n; i++)
        status = phema_system_column(&system, inverse + i * n, i, err);
    if (!status)
        keep_sum(inverse, scratch, n);
    phema_system_close(&system);
    free(scratch);
    return status;
}

/* elimination: {0}; the caller clears its memory, also after a failure */
static enum phema_status begin(struct elimination *elimination, const struct phema_problem *problem,
                               const struct phema_solution *solutions,
                               const struct phema_gram *gram, struct phema_error *err)
{
    size_t n = problem->n;
    struct phema_arena *memory = &elimination->memory;
    elimination->n = n;
    elimination->m = problem->m;
    elimination->inverse = phema_arena_array(memory, n * n, sizeof(phema_quad));
    elimination->weights = phema_arena_array(memory, problem->m * n, sizeof(phema_quad));
    elimination->errors = phema_arena_array(memory, problem->m, sizeof(phema_quad));
    elimination->is_out = phema_arena_array(memory, n, sizeof(bool));
    if (memory->is_failed)
        return phema_fail_memory(err);
    for (size_t k = 0; k < problem->m; k++) {
        double total = solutions[k].predicted.total;
        elimination->errors[k] = (phema_quad)total * (phema_quad)total;
        for (size_t i = 0; i < n; i++)
            elimination->weights[k * n + i] = (phema_quad)solutions[k].weights[i];
    }
    return invert(elimination->inverse, gram, problem, err);
}

static void take_out(struct elimination *elimination, size_t i, phema_quad unit)
{
    size_t n = elimination->n;
    phema_quad *row = elimination->inverse + i * n;
    phema_quad pivot = row[i];
    for (size_t k = 0; k < elimination->m; k++) {
        phema_quad *weights = elimination->weights + k * n;
        phema_quad share = weights[i] / pivot;
        elimination->errors[k] += unit * weights[i] * share;
        for (size_t j = 0; j < n; j++)
            weights[j] -= row[j] * share;
    }
    for (size_t j = 0; j < n; j++) {
        phema_quad share = row[j] / pivot;
        for (size_t l = 0; j != i && !elimination->is_out[j] && l < n; l++)
            elimination->inverse[j * n + l] -= share * row[l];
    }
    elimination->is_out[i] = true;
}

/* The snapshot whose removal leaves the smallest worst error; n when none may be removed. unit: of
 * the Gram matrix */
static size_t find_least(const struct elimination *elimination, phema_quad unit, phema_quad *worst)
{
    size_t n = elimination->n, found = n;
    for (size_t i = 0; i < n; i++) {
        if (elimination->is_out[i] || !(elimination->inverse[i * n + i] > 0))
            continue;
        phema_quad without = 0; /* the largest error of any target, squared */
        for (size_t k = 0; k < elimination->m; k++) {
            phema_quad w = elimination->weights[k * n + i];
            phema_quad error =
                elimination->errors[k] + unit * w * w / elimination->inverse[i * n + i];
            without = error > without ? error : without;
        }
        if (found == n || without < *worst) {
            found = i;
            *worst = without;
        }
    }
    return found;
}

static void eliminate(struct phema_advice *advice, struct elimination *elimination, phema_quad unit,
                      double max_error)
{
    phema_quad limit = (phema_quad)max_error * (phema_quad)max_error;
    while (advice->n_removed + 1 < elimination->n) {
        phema_quad worst = 0;
        size_t i = find_least(elimination, unit, &worst);
        if (i == elimination->n || !(worst <= limit))
            return;
        take_out(elimination, i, unit);
        advice->removed[advice->n_removed++] = i;
    }
}

static double worst_of(const struct phema_solution *solutions, size_t m)
{
    double worst = 0;
    for (size_t k = 0; k < m; k++)
        worst = fmax(worst, solutions[k].predicted.total);
    return worst;
}

/* solutions [m]: the caller's; those of the metric that errors are predicted by */
static enum phema_status solve(struct phema_solution *solutions,
                               const struct phema_problem *problem, struct phema_error *err)
{
    const struct phema_solve_options options = {.metric = problem->motion ? PHEMA_METRIC_MOTION
                                                                          : PHEMA_METRIC_WALK};
    return phema_weights_solve(solutions, problem, &options, err);
}

/* The worst predicted error of the targets with other snapshots.
 *   memory  that holds them, which may have failed; cleared */
static enum phema_status rate(double *worst, const struct phema_problem *problem,
                              struct phema_arena *memory, struct phema_error *err)
{
    struct phema_solution *solutions = phema_arena_array(memory, problem->m, sizeof(*solutions));
    enum phema_status status =
        memory->is_failed ? phema_fail_memory(err) : solve(solutions, problem, err);
    if (!status) {
        *worst = worst_of(solutions, problem->m);
        phema_solutions_clear(solutions, problem->m);
    }
    phema_arena_clear(memory);
    return status;
}

static bool is_removed(const struct phema_advice *advice, size_t i)
{
    for (size_t r = 0; r < advice->n_removed; r++)
        if (advice->removed[r] == i)
            return true;
    return false;
}

/* Solves anew without the removed snapshots. The error is infinite where the remaining ones cannot
 * make the targets. */
static enum phema_status rate_rest(struct phema_advice *advice, const struct phema_problem *problem,
                                   struct phema_error *err)
{
    struct phema_arena memory = {0};
    struct phema_profile *snapshots = phema_arena_array(&memory, problem->n, sizeof(*snapshots));
    double *rounding = phema_arena_array(&memory, problem->n, sizeof(*rounding));
    struct phema_problem rest = *problem;
    rest.snapshots = snapshots;
    rest.rounding = rounding;
    rest.n = 0;
    for (size_t i = 0; !memory.is_failed && i < problem->n; i++) {
        if (is_removed(advice, i))
            continue;
        snapshots[rest.n] = problem->snapshots[i];
        rounding[rest.n++] = problem->rounding ? problem->rounding[i] : 0;
    }
    enum phema_status status = rate(&advice->error_after, &rest, &memory, err);
    if (status != PHEMA_ERR_TARGET)
        return status;
    advice->error_after = HUGE_VAL;
    return PHEMA_OK;
}

static enum phema_status advise(struct phema_advice *advice, const struct phema_problem *problem,
                                const struct phema_solution *solutions, double max_error,
                                struct phema_error *err)
{
    advice->error_before = worst_of(solutions, problem->m);
    advice->error_after = advice->error_before;
    if (advice->error_before > max_error)
        return PHEMA_OK; /* nothing can be removed */
    struct phema_grams grams;
    enum phema_status status = phema_grams_build(&grams, problem, false, err);
    if (status)
        return status;
    struct elimination elimination = {0};
    status =
        begin(&elimination, problem, solutions, problem->motion ? &grams.motion : &grams.walk, err);
    if (!status)
        eliminate(advice, &elimination, phema_error_unit(problem, problem->motion != NULL),
                  max_error);
    phema_arena_clear(&elimination.memory);
    phema_grams_clear(&grams);
    if (status)
        return status;
    for (;; advice->n_removed--) { /* restores snapshots until a new solve confirms the error */
        status = rate_rest(advice, problem, err);
        if (status || advice->n_removed == 0 || advice->error_after <= max_error)
            return status;
    }
}

PHEMA_FALLIBLE phema_advice_find(struct phema_advice *out, const struct phema_problem *problem,
                                 double max_error, struct phema_error *err)
{
    if (problem->n > PHEMA_ADVICE_MAX_SNAPSHOTS || problem->m == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "advice is for up to %d snapshots and some target, found %zu and %zu; "
                          "choose among them",
                          PHEMA_ADVICE_MAX_SNAPSHOTS, problem->n, problem->m);
    struct phema_advice advice = {0};
    advice.removed = calloc(problem->n, sizeof(*advice.removed));
    struct phema_solution *solutions = calloc(problem->m, sizeof(*solutions));
    enum phema_status status =
        advice.removed && solutions ? solve(solutions, problem, err) : phema_fail_memory(err);
    if (!status)
        status = advise(&advice, problem, solutions, max_error, err);
    if (solutions)
        phema_solutions_clear(solutions, problem->m);
    free(solutions);
    if (status)
        phema_advice_clear(&advice);
    else
        *out = advice;
    return status;
}

void phema_advice_clear(struct phema_advice *advice)
{
    free(advice->removed);
    *advice = (struct phema_advice){0};
}

/* ---- How often to save ---- */

struct saving {
    const struct phema_problem *problem;
    const struct phema_profile *families; /* [n_families] the profiles saved at each time */
    size_t n_families;
    double end, rounding;
};

/* The worst predicted error when this many times are saved, evenly spaced up to the end. */
static enum phema_status rate_times(double *worst, const struct saving *saving, size_t n_times,
                                    struct phema_error *err)
{
    size_t n = n_times * saving->n_families;
    struct phema_arena memory = {0};
    struct phema_profile *snapshots = phema_arena_array(&memory, n, sizeof(*snapshots));
    double *rounding = phema_arena_array(&memory, n, sizeof(*rounding));
    struct phema_problem other = *saving->problem;
    other.snapshots = snapshots;
    other.rounding = rounding;
    other.n = n;
    for (size_t i = 0; !memory.is_failed && i < n; i++) {
        struct phema_profile *snapshot = &snapshots[i];
        *snapshot = saving->families[i % saving->n_families];
        size_t nth = i / saving->n_families + 1;
        snapshot->t = saving->end * (double)nth / (double)n_times;
        if (snapshot->update_every > 1 || snapshot->shape == PHEMA_SHAPE_TABLE)
            snapshot->t = fmax(1, floor(snapshot->t));
        snapshot->length = fmin(snapshot->length, snapshot->t);
        if (snapshot->t <= snapshot->reset)
            snapshot->reset = snapshot->origin = 0;
        rounding[i] = saving->rounding;
    }
    return rate(worst, &other, &memory, err);
}

/* The fewest times that are enough, found by doubling and then by bisection. A solve that fails for
 * another reason than memory (snapshots too similar) shows that this many times are of no use. */
static enum phema_status search_times(struct phema_saving *out, const struct saving *saving,
                                      double max_error, struct phema_error *err)
{
    size_t low = 0;
    size_t high = 1;
    for (;;) {
        enum phema_status status = rate_times(&out->error, saving, high, err);
        if (status == PHEMA_ERR_RESOURCE)
            return status;
        if (!status && out->error <= max_error)
            break;
        low = high;
        high *= 2;
        if (status || high * saving->n_families > PHEMA_ADVICE_MAX_SNAPSHOTS) {
            out->n_times = 0;
            return PHEMA_OK;
        }
    }
    out->n_times = high;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        double error = 0;
        enum phema_status status = rate_times(&error, saving, middle, err);
        if (status)
            return status;
        if (error <= max_error) {
            high = middle;
            out->n_times = middle;
            out->error = error;
        } else {
            low = middle;
        }
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_advice_saving(struct phema_saving *out, const struct phema_problem *problem,
                                   double max_error, struct phema_error *err)
{
    struct saving saving = {.problem = problem};
    struct phema_profile *families = calloc(problem->n + 1, sizeof(*families));
    if (!families)
        return phema_fail_memory(err);
    for (size_t i = 0; i < problem->n; i++)
        saving.end = fmax(saving.end, problem->snapshots[i].t);
    for (size_t i = 0; i < problem->n; i++) {
        if (problem->snapshots[i].t != saving.end)
            continue;
        families[saving.n_families++] = problem->snapshots[i];
        saving.rounding = fmax(saving.rounding, problem->rounding ? problem->rounding[i] : 0);
    }
    saving.families = families;
    *out = (struct phema_saving){.n_per_time = saving.n_families};
    enum phema_status status = search_times(out, &saving, max_error, err);
    out->every = out->n_times ? saving.end / (double)out->n_times : 0;
    free(families);
    return status;
}
