// SPDX-License-Identifier: Apache-2.0
/* linear_system.c - factorises the system of a metric and solves it for targets. Up to 700 unknowns
 * it uses Cholesky in fixed point, above that LAPACK's in float64 with residuals in quad. Where
 * float64 is not enough, it falls back to fixed point. */
#include "linear_system.h"

#include <stdlib.h>

#include "phema/arena.h"
#include "phema/memory.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

#define MAX_QUAD_UNKNOWNS 700
#define MAX_REFINEMENTS   60

/* Entries with an error of 1e-34 give solutions with an error of about 1e-34 / pivot. Below this
 * pivot that exceeds the 16 printed digits of weights. */
#define LEAST_QUAD_PIVOT 1e-18

/* The snapshot that depends on others, and the one most like it. */
static enum phema_status fail_dependent(const struct phema_system *system, size_t dependent,
                                        struct phema_error *err)
{
    const struct phema_gram *gram = system->gram;
    size_t nearest = dependent ? 0 : gram->n - 1;
    for (size_t j = 0; j < gram->n; j++) {
        const phema_fixed *row = gram->matrix + dependent * gram->n;
        if (j != dependent && row[j] > row[nearest])
            nearest = j;
    }
    struct phema_name_buffer name, other;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "snapshots %s and %s are the same average as far as 30 digits tell, or made "
                      "up of others; leave one of them out",
                      phema_profile_format_label(&name, gram->set->snapshots, nearest),
                      phema_profile_format_label(&other, gram->set->snapshots, dependent));
}

/* Converts a fixed-point factor to float64. */
static bool convert_lower(struct phema_system *system)
{
    size_t n = system->gram->n;
    if (!system->cholesky.factor)
        return true;
    if (!system->lower)
        system->lower = malloc(n * n * sizeof(*system->lower));
    if (!system->lower)
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            system->lower[i * n + j] = phema_double_from_fixed(system->cholesky.factor[i * n + j]);
    return true;
}

/* Condition of the Gram matrix with its ridge, as users know it from other programs; the factorised
 * matrix is a scaled one. Only ratios of the diagonal matter. */
static enum phema_status find_condition(struct phema_system *system, struct phema_error *err)
{
    size_t n = system->gram->n;
    system->condition = (double)INFINITY;
    if (system->cholesky.leaves_out)
        return PHEMA_OK;
    double *diagonal = calloc(n, sizeof(*diagonal));
    if (!diagonal || !convert_lower(system)) {
        free(diagonal);
        return phema_fail_solve(system->gram->n, err);
    }
    for (size_t i = 0; i < n; i++) {
        phema_quad length = system->gram->lengths[i] / system->gram->lengths[0];
        diagonal[i] = (double)(system->shrink ? length / system->shrink[i] : length);
    }
    enum phema_status status = phema_condition(&system->condition, system->lower, diagonal, n, err);
    free(diagonal);
    return status;
}

enum phema_status phema_system_condition(double *out, struct phema_system *system,
                                         struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (!(system->condition > 0))
        status = find_condition(system, err);
    *out = system->condition;
    return status;
}

/* Only closed forms without a ridge gain from 256 bits: step-by-step products have no more digits,
 * and a ridge hides them. Lenient solves are only for comparison. */
static enum phema_status open_mpfr(struct phema_system *system, struct phema_error *err)
{
    const struct phema_gram *gram = system->gram;
    if (system->cholesky.least_pivot >= LEAST_QUAD_PIVOT || system->leniency == PHEMA_LENIENT ||
        system->shrink || !gram->set->is_plain || gram->metric == PHEMA_GRAM_MOTION ||
        gram->n > PHEMA_MPFR_MAX_SNAPSHOTS)
        return PHEMA_OK;
    enum phema_status status =
        phema_mpfr_open(&system->mpfr, gram->set, gram->metric == PHEMA_GRAM_WALK, err);
    return status == PHEMA_NO ? PHEMA_OK : status;
}

static enum phema_status factor_quad(struct phema_system *system, struct phema_error *err)
{
    const struct phema_gram *gram = system->gram;
    size_t dependent = 0;
    enum phema_status status =
        phema_cholesky_factor(&system->cholesky, gram->matrix, system->shrink, gram->n,
                              system->leniency == PHEMA_LENIENT, &dependent, err);
    if (status == PHEMA_NO)
        return fail_dependent(system, dependent, err);
    if (status)
        return status;
    system->condition = 0; /* not known yet */
    return open_mpfr(system, err);
}

/* Of the system, the lower half. */
static bool fill_lower(struct phema_system *system)
{
    size_t n = system->gram->n;
    double *shrink = calloc(n, sizeof(*shrink));
    system->lower = malloc(n * n * sizeof(*system->lower));
    phema_memory_will_fill(system->lower, n * n * sizeof(*system->lower));
    bool has_memory = shrink && system->lower;
    for (size_t i = 0; has_memory && i < n; i++)
        shrink[i] = system->shrink ? (double)system->shrink[i] : 1;
    for (size_t i = 0; has_memory && i < n; i++) {
        const phema_fixed *row = system->gram->matrix + i * n;
        double *entries = system->lower + i * n;
        for (size_t j = 0; j < i; j++)
            entries[j] = phema_double_from_fixed(row[j]) * (shrink[i] * shrink[j]);
        entries[i] = 1;
    }
    free(shrink);
    return has_memory;
}

/* PHEMA_NO: a pivot fails, since in float64 the matrix is singular. */
static enum phema_status factor_float64(struct phema_system *system,
                                        const struct phema_factorer *factorer,
                                        struct phema_error *err)
{
    if (!fill_lower(system))
        return phema_fail_solve(system->gram->n, err);
    system->float64_by = factorer ? factorer->name : "lapack";
    if (factorer)
        return factorer->factor(system->lower, system->gram->n, err);
    return phema_lapack_factor(system->lower, system->gram->n, err);
}

static enum phema_status factor(struct phema_system *system,
                                const struct phema_solve_options *options, struct phema_error *err)
{
    size_t n = system->gram->n;
    enum phema_solver solver = options->solver;
    if (solver == PHEMA_SOLVER_QUAD || (solver == PHEMA_SOLVER_AUTO && n <= MAX_QUAD_UNKNOWNS))
        return factor_quad(system, err);
    bool is_by_other = solver == PHEMA_SOLVER_DEVICE && options->factorer;
    enum phema_status status = factor_float64(system, is_by_other ? options->factorer : NULL, err);
    /* LAPACK may be missing or have no memory; the quad factor takes a few times as long */
    bool is_missing = status == PHEMA_ERR_RESOURCE && !is_by_other;
    if (solver != PHEMA_SOLVER_LAPACK && (status == PHEMA_NO || is_missing))
        return factor_quad(system, err);
    if (is_missing)
        return phema_blame(
            err, phema_fail_in(err, status, "%slapack", phema_setting_equals(PHEMA_SET_SOLVER)),
            PHEMA_SET_SOLVER);
    if (status == PHEMA_NO)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "float64 cannot tell these %zu snapshots apart (Cholesky meets a pivot "
                          "that is not positive); use %squad",
                          n, phema_setting_equals(PHEMA_SET_SOLVER));
    system->refines = !status && solver != PHEMA_SOLVER_LAPACK;
    return status;
}

enum phema_status phema_system_open(struct phema_system *system, const struct phema_gram *gram,
                                    const phema_quad *ridge,
                                    const struct phema_solve_options *options,
                                    enum phema_leniency leniency, struct phema_error *err)
{
    *system = (struct phema_system){.gram = gram, .leniency = leniency};
    system->scratch = malloc(gram->n * sizeof(*system->scratch));
    if (ridge)
        system->shrink = calloc(gram->n, sizeof(*system->shrink));
    for (size_t i = 0; ridge && system->shrink && i < gram->n; i++)
        system->shrink[i] =
            1 / phema_quad_sqrt(1 + ridge[i] / (gram->lengths[i] * gram->lengths[i]));
    bool has_memory = system->scratch && (!ridge || system->shrink);
    enum phema_status status =
        has_memory ? factor(system, options, err) : phema_fail_solve(system->gram->n, err);
    if (status)
        phema_system_close(system);
    return status;
}

void phema_system_close(struct phema_system *system)
{
    free(system->shrink);
    free(system->lower);
    free(system->ones);
    free(system->scratch);
    phema_cholesky_clear(&system->cholesky);
    phema_mpfr_close(system->mpfr);
    *system = (struct phema_system){0};
}

const char *phema_system_solver(const struct phema_system *system)
{
    return system->cholesky.factor ? "quad" : system->float64_by;
}

/* x of L L^T x = x, in float64 */
static void solve_lower(const struct phema_system *system, double *x)
{
    phema_lower_solve(system->lower, x, system->gram->n);
    phema_lower_solve_transposed(system->lower, x, system->gram->n);
}

struct refinement {
    phema_quad *rest;  /* [n] b - S (A + R) S x */
    double *step;      /* [n] */
    phema_quad *moved; /* [n] of x */
    int64_t *whole;    /* [n] S moved, in whole units */
    phema_quad unit;
    phema_quad *scratch; /* [n] */
};

/* Moves x by the step, which is in units of scale. S moved is rounded to some 50 bits, so that its
 * product with the matrix takes half as long; the next step makes up for that. false: the step is
 * not finite. */
static bool take_step(const struct phema_system *system, struct refinement *work, phema_quad *x,
                      phema_quad scale)
{
    size_t n = system->gram->n;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (system->shrink)
            work->step[i] *= (double)system->shrink[i];
        sum += fabs(work->step[i]);
    }
    if (!isfinite(sum))
        return false;
    int exponent = 0; /* sum < 2^exponent */
    (void)frexp(sum, &exponent);
    work->unit = scale * (phema_quad)ldexpl(1, exponent - 61);
    for (size_t i = 0; i < n; i++) {
        work->whole[i] = (int64_t)ldexp(work->step[i], 61 - exponent);
        work->moved[i] = (phema_quad)work->whole[i] * work->unit;
        if (system->shrink)
            work->moved[i] /= system->shrink[i];
        x[i] += work->moved[i];
    }
    return true;
}

/* Entry i of S x */
static phema_quad shrunk(const struct phema_system *system, size_t i, phema_quad x)
{
    return system->shrink ? x * system->shrink[i] : x;
}

/* What is left of b for all of x; S (1 + R) S is 1 */
static void find_rest(const struct phema_system *system, struct refinement *work,
                      const phema_quad *x, const phema_quad *b)
{
    size_t n = system->gram->n;
    phema_quad *inner = work->moved;
    for (size_t i = 0; i < n; i++)
        inner[i] = shrunk(system, i, x[i]);
    phema_gram_apply(system->gram, work->rest, inner, system->scratch);
    for (size_t i = 0; i < n; i++) {
        phema_quad off_diagonal = work->rest[i] - inner[i];
        work->rest[i] = b[i] - shrunk(system, i, off_diagonal) - x[i];
    }
}

/* The same from the rest before, for what was moved. Errors of quads add up unseen. */
static void update_rest(const struct phema_system *system, struct refinement *work)
{
    size_t n = system->gram->n;
    phema_gram_apply_whole(system->gram, work->scratch, work->whole);
    for (size_t i = 0; i < n; i++) {
        phema_quad off_diagonal = (work->scratch[i] - (phema_quad)work->whole[i]) * work->unit;
        work->rest[i] -= shrunk(system, i, off_diagonal) + work->moved[i];
    }
}

/* Adds the float64 solution for the residual to x until it is negligible. false when a step is not
 * at most half of the one before: the factor is too rough for this matrix. The step that should be
 * the last one, if steps go on as they did, has the residual of all of x. */
static bool refine(const struct phema_system *system, struct refinement *work, phema_quad *x,
                   const phema_quad *b)
{
    size_t n = system->gram->n;
    phema_quad step_before = 0;
    bool is_last = false;
    for (size_t i = 0; i < n; i++) {
        x[i] = 0;
        work->rest[i] = b[i];
    }
    for (int round = 0; round < MAX_REFINEMENTS; round++) {
        if (is_last)
            find_rest(system, work, x, b);
        else if (round)
            update_rest(system, work);
        phema_quad scale = phema_quad_largest(work->rest, n);
        if (scale == 0)
            return true;
        for (size_t i = 0; i < n; i++)
            work->step[i] = (double)(work->rest[i] / scale);
        solve_lower(system, work->step);
        if (!take_step(system, work, x, scale))
            return false;
        phema_quad length = phema_quad_largest(work->moved, n);
        phema_quad negligible = phema_quad_largest(x, n) * (phema_quad)1e-25;
        if (length <= negligible && is_last)
            return true;
        if (round && !(length <= step_before / 2))
            return false;
        is_last = is_last || (round && length * length <= negligible * step_before);
        step_before = length;
    }
    return false;
}

/* Float64, refined or not. PHEMA_NO: it does not converge. */
static enum phema_status solve_float64(const struct phema_system *system, phema_quad *x,
                                       const phema_quad *b, struct phema_error *err)
{
    size_t n = system->gram->n;
    struct phema_arena memory = {0};
    struct refinement work = {.rest = phema_arena_array(&memory, n, sizeof(*work.rest)),
                              .step = phema_arena_array(&memory, n, sizeof(*work.step)),
                              .moved = phema_arena_array(&memory, n, sizeof(*work.moved)),
                              .whole = phema_arena_array(&memory, n, sizeof(*work.whole)),
                              .scratch = phema_arena_array(&memory, n, sizeof(*work.scratch))};
    enum phema_status status = memory.is_failed ? phema_fail_solve(system->gram->n, err) : PHEMA_OK;
    if (!status && system->refines)
        status = refine(system, &work, x, b) ? PHEMA_OK : PHEMA_NO;
    if (!status && !system->refines) {
        for (size_t i = 0; i < n; i++)
            work.step[i] = (double)b[i];
        solve_lower(system, work.step);
        for (size_t i = 0; i < n; i++)
            x[i] = (phema_quad)work.step[i];
    }
    phema_arena_clear(&memory);
    return status;
}

/* x of S (A + R) S x = side */
static enum phema_status solve_scaled(struct phema_system *system, phema_quad *x,
                                      const phema_quad *side, struct phema_error *err)
{
    if (!system->cholesky.factor) {
        enum phema_status status = solve_float64(system, x, side, err);
        if (status != PHEMA_NO)
            return status;
        status = factor_quad(system, err);
        if (status)
            return status;
    }
    phema_cholesky_solve(&system->cholesky, x, side, system->scratch);
    return PHEMA_OK;
}

/* x of (A + R) x = b; x may be b */
static enum phema_status solve_any(struct phema_system *system, phema_quad *x, const phema_quad *b,
                                   struct phema_error *err)
{
    size_t n = system->gram->n;
    phema_quad *side = calloc(n, sizeof(*side));
    if (!side)
        return phema_fail_solve(system->gram->n, err);
    for (size_t i = 0; i < n; i++)
        side[i] = system->shrink ? system->shrink[i] * b[i] : b[i];
    phema_quad scale = phema_quad_largest(side, n); /* tiny under a large ridge */
    for (size_t i = 0; scale > 0 && i < n; i++)
        side[i] /= scale;
    enum phema_status status = solve_scaled(system, x, side, err);
    for (size_t i = 0; !status && i < n; i++)
        x[i] *= system->shrink ? system->shrink[i] * scale : scale;
    free(side);
    return status;
}

/* G w = products of the target with the snapshots */
static enum phema_status solve_target(struct phema_system *system, phema_quad *w, size_t target,
                                      struct phema_error *err)
{
    const struct phema_gram *gram = system->gram;
    size_t n = gram->n;
    if (!system->mpfr) {
        enum phema_status status = solve_any(system, w, gram->cosines + target * n, err);
        if (status)
            return status;
    }
    if (system->mpfr) { /* solve_any may have opened it */
        phema_mpfr_solve_target(system->mpfr, w, target);
        return PHEMA_OK;
    }
    for (size_t i = 0; i < n; i++)
        w[i] *= gram->lengths[n + target] / gram->lengths[i];
    return PHEMA_OK;
}

/* G w = 1: for the constraint on the sum, once for all targets */
static enum phema_status solve_ones(struct phema_system *system, struct phema_error *err)
{
    if (system->ones)
        return PHEMA_OK;
    size_t n = system->gram->n;
    const phema_quad *lengths = system->gram->lengths;
    system->ones = calloc(n, sizeof(*system->ones));
    if (!system->ones)
        return phema_fail_solve(system->gram->n, err);
    if (system->mpfr) {
        phema_mpfr_solve_ones(system->mpfr, system->ones);
        return PHEMA_OK;
    }
    for (size_t i = 0; i < n; i++)
        system->ones[i] = 1 / lengths[i];
    enum phema_status status = solve_any(system, system->ones, system->ones, err);
    for (size_t i = 0; !status && i < n; i++)
        system->ones[i] /= lengths[i];
    return status;
}

enum phema_status phema_system_column(struct phema_system *system, phema_quad *x, size_t i,
                                      struct phema_error *err)
{
    size_t n = system->gram->n;
    const phema_quad *lengths = system->gram->lengths;
    for (size_t j = 0; j < n; j++)
        x[j] = j == i ? 1 : 0;
    enum phema_status status = solve_any(system, x, x, err);
    for (size_t j = 0; !status && j < n; j++)
        x[j] /= lengths[j] * lengths[i];
    return status;
}

/* Adds the correction of least cost that gives the wanted sum: the row of the constraint in the KKT
 * system, eliminated. */
static enum phema_status correct_sum(struct phema_system *system, phema_quad *w, phema_quad wanted,
                                     struct phema_error *err)
{
    size_t n = system->gram->n;
    enum phema_status status = solve_ones(system, err);
    if (status)
        return status;
    phema_quad sum = 0, sum_of_ones = 0;
    for (size_t i = 0; i < n; i++) {
        sum += w[i];
        sum_of_ones += system->ones[i];
    }
    phema_quad factor = (wanted - sum) / sum_of_ones;
    for (size_t i = 0; i < n; i++)
        w[i] += factor * system->ones[i];
    return PHEMA_OK;
}

static enum phema_status divide_by_sum(phema_quad *w, size_t n, struct phema_error *err)
{
    phema_quad sum = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        sum += w[i];
        size += phema_quad_abs(w[i]);
    }
    if (!(phema_quad_abs(sum) > size * (phema_quad)1e-15))
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "the weights add up to %g, which is nothing beside their size %g: these "
                          "snapshots say nothing of the target",
                          (double)sum, (double)size);
    for (size_t i = 0; i < n; i++)
        w[i] /= sum;
    return PHEMA_OK;
}

/* w [n]: zeroed scratch memory */
static enum phema_status solve_weights(struct phema_system *system, double *weights, phema_quad *w,
                                       size_t target, enum phema_sum sum, struct phema_error *err)
{
    size_t n = system->gram->n;
    enum phema_status status = solve_target(system, w, target, err);
    if (status)
        return status;
    phema_quad wanted = phema_profile_set_sum(system->gram->set, target);
    if (sum == PHEMA_SUM_KEPT || (sum == PHEMA_SUM_DIVIDED && wanted == 0))
        status = correct_sum(system, w, wanted, err);
    else if (sum == PHEMA_SUM_DIVIDED)
        status = divide_by_sum(w, n, err);
    if (status)
        return status;
    if (system->mpfr)
        return phema_mpfr_round(system->mpfr, weights, w, err);
    for (size_t i = 0; i < n; i++)
        weights[i] = (double)w[i];
    return PHEMA_OK;
}

enum phema_status phema_system_solve(struct phema_system *system, double *weights, size_t target,
                                     enum phema_sum sum, struct phema_error *err)
{
    phema_quad *w = calloc(system->gram->n, sizeof(*w));
    if (!w)
        return phema_fail_solve(system->gram->n, err);
    enum phema_status status = solve_weights(system, weights, w, target, sum, err);
    free(w);
    return status;
}
