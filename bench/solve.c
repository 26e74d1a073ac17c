// SPDX-License-Identifier: Apache-2.0
/* solve.c - benchmark of the solver.
 *   bench_solve [SNAPSHOTS ..., default 64 256 512 700 2000]
 *     Time of a solve by number of snapshots and by their dtype, whose rounding is the ridge.
 *     Snapshots have two widths and equally spaced times; there are nine targets, and all metrics.
 *     Includes the comparison with the paper's weights. The fit of motion has a row of its own. One
 *     run each.
 *   bench_solve arithmetic [SNAPSHOTS ..., default 64 256 512 1000]
 *     Processor time of the parts of a solve, in each arithmetic that could do them
 *     (src/solver/README.md). The least of three runs.
 * The target bench_solve, linked with phema_solver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../src/solver/cholesky.h"
#include "../src/solver/fixed_point.h"
#include "../src/solver/gram.h"
#include "../src/solver/linear_system.h"
#include "phema/dtype.h"
#include "phema/solver.h"

#define N_TARGETS 9
#define SPACING   1000 /* steps between two times */

static const double target_widths[N_TARGETS] = {0.02,  0.03, 0.04, 0.06, 0.075,
                                                0.125, 0.15, 0.20, 0.25};

struct bench {
    struct phema_profile *snapshots; /* [n] */
    double *rounding;                /* [n] */
    size_t n;
    struct phema_profile targets[N_TARGETS];
    struct phema_mix mixes[N_TARGETS];
    struct phema_motion motion;
    enum phema_dtype dtype;
};

/* ---- Whole solves ---- */

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void clear(struct bench *bench)
{
    free(bench->snapshots);
    free(bench->rounding);
    phema_motion_clear(&bench->motion);
}

static enum phema_status prepare(struct bench *bench, size_t n, enum phema_dtype dtype,
                                 struct phema_error *err)
{
    static const double widths[2] = {0.05, 0.10};
    double gammas[2];
    *bench = (struct bench){.n = n, .dtype = dtype};
    bench->snapshots = calloc(n, sizeof(*bench->snapshots));
    bench->rounding = calloc(n, sizeof(*bench->rounding));
    if (!bench->snapshots || !bench->rounding)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && i < 2; i++)
        status = phema_gamma_from_sigma_rel(&gammas[i], widths[i], err);
    for (size_t i = 0; !status && i < n; i++) {
        size_t step = SPACING * (i / 2 + 1);
        bench->snapshots[i] = (struct phema_profile){.gamma = gammas[i % 2], .t = (double)step};
        bench->rounding[i] = phema_dtype_rounding(dtype);
    }
    for (size_t m = 0; !status && m < N_TARGETS; m++) {
        bench->targets[m].t = bench->snapshots[n - 1].t;
        bench->mixes[m] = (struct phema_mix){.parts = &bench->targets[m], .n_parts = 1};
        status = phema_gamma_from_sigma_rel(&bench->targets[m].gamma, target_widths[m], err);
    }
    return status;
}

/* Distances of a random walk that slows down, with a little scatter. */
static enum phema_status fit(struct bench *bench, double *seconds, struct phema_error *err)
{
    struct phema_distance *pairs = NULL;
    size_t n_pairs = 0;
    double end = bench->snapshots[bench->n - 1].t, start = now();
    enum phema_status status =
        phema_motion_pairs(&pairs, &n_pairs, bench->snapshots, bench->n, err);
    if (status)
        return status;
    for (size_t p = 0; p < n_pairs; p++) {
        double t = bench->snapshots[pairs[p].i].t;
        double apart = bench->snapshots[pairs[p].j].t - t;
        double scatter = 1 + 0.1 * sin((double)p);
        pairs[p].square = 1e-3 * (0.05 * t + fabs(apart)) / (0.1 * end + t) * scatter;
    }
    const struct phema_motion_data data = {.snapshots = bench->snapshots,
                                           .rounding = bench->rounding,
                                           .n = bench->n,
                                           .distances = pairs,
                                           .n_distances = n_pairs};
    status = phema_motion_fit(&bench->motion, &data, PHEMA_MOTION_EVEN, err);
    *seconds = now() - start;
    free(pairs);
    return status;
}

static enum phema_status solve(const struct bench *bench, enum phema_metric metric,
                               const char *name, struct phema_error *err)
{
    struct phema_problem problem = {.snapshots = bench->snapshots,
                                    .rounding = bench->rounding,
                                    .n = bench->n,
                                    .targets = bench->mixes,
                                    .m = N_TARGETS};
    struct phema_solve_options options = {.metric = metric};
    struct phema_solution solutions[N_TARGETS] = {0};
    if (metric == PHEMA_METRIC_MOTION)
        problem.motion = &bench->motion;
    double start = now();
    enum phema_status status = phema_weights_solve(solutions, &problem, &options, err);
    if (status)
        return phema_fail_in(err, status, "%s", name);
    printf("| %zu | %s | `%s` | %.3g s | %s | %.1e |\n", bench->n, phema_dtype_name(bench->dtype),
           name, now() - start, solutions[0].solver, solutions[0].condition);
    phema_solutions_clear(solutions, N_TARGETS);
    return PHEMA_OK;
}

static enum phema_status measure(size_t n, enum phema_dtype dtype, struct phema_error *err)
{
    struct bench bench;
    double seconds = 0;
    enum phema_status status = prepare(&bench, n, dtype, err);
    if (!status)
        status = solve(&bench, PHEMA_METRIC_PROFILE, "profile", err);
    if (!status)
        status = solve(&bench, PHEMA_METRIC_WALK, "walk", err);
    if (!status)
        status = fit(&bench, &seconds, err);
    if (!status) {
        printf("| %zu | %s | fit of motion | %.3g s | | |\n", n, phema_dtype_name(dtype), seconds);
        status = solve(&bench, PHEMA_METRIC_MOTION, "motion", err);
    }
    (void)fflush(stdout);
    clear(&bench);
    return status;
}

/* ---- Arithmetic: the parts of a solve ---- */

#define N_RUNS  3
#define N_STEPS 100000

struct parts {
    struct phema_grams grams;
    phema_quad *quads;           /* [n x n] the cosines of the white metric, or a factor */
    double *doubles;             /* [n x n] the same */
    struct phema_scaled *scaled; /* [n] */
    size_t n;
};

/* A part of a solve in one arithmetic. PHEMA_NO: it cannot do this part. */
typedef enum phema_status part_function(struct parts *parts, struct phema_error *err);

static volatile double sink; /* keeps the compiler from dropping results */

static void fill_parts(struct parts *parts)
{
    for (size_t i = 0; i < parts->n * parts->n; i++) {
        phema_fixed entry = parts->grams.white.matrix[i];
        parts->quads[i] = phema_quad_from_fixed(entry);
        parts->doubles[i] = phema_double_from_fixed(entry);
    }
    for (size_t i = 0; i < parts->n; i++)
        (void)phema_scaled_from_quad(&parts->scaled[i], &parts->quads[i]);
}

static enum phema_status factor_double(struct parts *parts, struct phema_error *err)
{
    return phema_lapack_factor(parts->doubles, parts->n, err);
}

static enum phema_status factor_fixed(struct parts *parts, struct phema_error *err)
{
    struct phema_cholesky cholesky;
    size_t dependent = 0;
    enum phema_status status = phema_cholesky_factor(&cholesky, parts->grams.white.matrix, NULL,
                                                     parts->n, false, &dependent, err);
    if (!status)
        phema_cholesky_clear(&cholesky);
    return status;
}

static enum phema_status factor_quad(struct parts *parts, struct phema_error *err)
{
    (void)err;
    for (size_t i = 0; i < parts->n; i++) {
        phema_quad *row = parts->quads + i * parts->n;
        for (size_t j = 0; j <= i; j++) {
            const phema_quad *other = parts->quads + j * parts->n;
            phema_quad rest = row[j];
            for (size_t k = 0; k < j; k++)
                rest -= row[k] * other[k];
            row[j] = i == j ? phema_quad_sqrt(rest) : rest / other[j];
        }
    }
    return PHEMA_OK;
}

/* Evaluates the entries as well. */
static enum phema_status factor_mpfr(struct parts *parts, struct phema_error *err)
{
    struct phema_mpfr_system *wide = NULL;
    enum phema_status status = phema_mpfr_open(&wide, &parts->grams.set, false, err);
    phema_mpfr_close(wide);
    return status;
}

/* One product and one difference for each pair, as in gram_closed_form.c. */
static enum phema_status enter_quad(struct parts *parts, struct phema_error *err)
{
    (void)err;
    for (size_t i = 0; i < parts->n; i++)
        for (size_t j = i; j < parts->n; j++)
            parts->quads[i * parts->n + j] =
                parts->quads[i] - parts->quads[i * parts->n] * parts->quads[j];
    return PHEMA_OK;
}

static enum phema_status enter_scaled(struct parts *parts, struct phema_error *err)
{
    (void)err;
    for (size_t i = 0; i < parts->n; i++)
        for (size_t j = i; j < parts->n; j++)
            phema_quad_from_scaled(
                &parts->quads[i * parts->n + j],
                phema_scaled_minus(parts->scaled[i],
                                   phema_scaled_times(parts->scaled[i], parts->scaled[j])));
    return PHEMA_OK;
}

/* One sum of the recurrence (intervals.c) over N_STEPS steps: S = beta (S + 1). */
static enum phema_status step_long_double(struct parts *parts, struct phema_error *err)
{
    (void)err;
    long double value = 0, left = 0, drop = 1.0L / (long double)(parts->n + 1);
    for (size_t step = 0; step < N_STEPS; step++) {
        long double term = 1 - drop - drop * value + left;
        long double sum = value + term;
        left = term - (sum - value);
        value = sum;
    }
    sink = (double)value;
    return PHEMA_OK;
}

static enum phema_status step_quad(struct parts *parts, struct phema_error *err)
{
    (void)err;
    phema_quad value = 0, drop = 1 / (phema_quad)(parts->n + 1);
    for (size_t step = 0; step < N_STEPS; step++)
        value += 1 - drop - drop * value;
    sink = (double)value;
    return PHEMA_OK;
}

static enum phema_status time_part(struct parts *parts, const char *name, const char *arithmetic,
                                   part_function *function, struct phema_error *err)
{
    double least = HUGE_VAL;
    for (int run = 0; run < N_RUNS; run++) {
        fill_parts(parts);
        clock_t start = clock();
        enum phema_status status = function(parts, err);
        if (status == PHEMA_NO)
            return PHEMA_OK;
        if (status)
            return phema_fail_in(err, status, "%s in %s", name, arithmetic);
        least = fmin(least, (double)(clock() - start) / CLOCKS_PER_SEC);
    }
    printf("| %zu | %s | %s | %.3g s |\n", parts->n, name, arithmetic, least);
    (void)fflush(stdout);
    return PHEMA_OK;
}

static enum phema_status time_parts(struct parts *parts, struct phema_error *err)
{
    static const struct {
        const char *name, *arithmetic;
        part_function *function;
    } rows[] = {
        {"factor", "double (LAPACK)", factor_double},
        {"factor", "128-bit fixed point", factor_fixed},
        {"factor", "__float128", factor_quad},
        {"entries and factor", "MPFR, 256 bits", factor_mpfr},
        {"entries", "split quad (scaled.h)", enter_scaled},
        {"entries", "__float128", enter_quad},
        {"a sum over 1e5 steps", "compensated long double", step_long_double},
        {"a sum over 1e5 steps", "__float128", step_quad},
    };
    enum phema_status status = PHEMA_OK;
    for (size_t r = 0; !status && r < ARRAY_LEN(rows); r++)
        status = time_part(parts, rows[r].name, rows[r].arithmetic, rows[r].function, err);
    return status;
}

static enum phema_status compare_arithmetic(size_t n, struct phema_error *err)
{
    struct bench bench;
    struct parts parts = {.n = n};
    enum phema_status status = prepare(&bench, n, PHEMA_F32, err);
    const struct phema_problem problem = {.snapshots = bench.snapshots, .n = n};
    if (!status)
        status = phema_grams_build(&parts.grams, &problem, false, err);
    parts.quads = calloc(n * n, sizeof(*parts.quads));
    parts.doubles = calloc(n * n, sizeof(*parts.doubles));
    parts.scaled = calloc(n, sizeof(*parts.scaled));
    if (!status && (!parts.quads || !parts.doubles || !parts.scaled))
        status = phema_fail_memory(err);
    if (!status)
        status = time_parts(&parts, err);
    free(parts.quads);
    free(parts.doubles);
    free(parts.scaled);
    phema_grams_clear(&parts.grams);
    clear(&bench);
    return status;
}

static enum phema_status run_solves(size_t n, struct phema_error *err)
{
    enum phema_status status = measure(n, PHEMA_F32, err);
    return status ? status : measure(n, PHEMA_BF16, err);
}

int main(int argc, char **argv)
{
    static const size_t usual[] = {64, 256, 512, 700, 2000}, usual_parts[] = {64, 256, 512, 1000};
    bool is_arithmetic = argc > 1 && strcmp(argv[1], "arithmetic") == 0;
    int first = is_arithmetic ? 2 : 1;
    size_t n_counts = is_arithmetic ? ARRAY_LEN(usual_parts) : ARRAY_LEN(usual);
    if (argc > first)
        n_counts = (size_t)(argc - first);
    if (is_arithmetic)
        printf("| snapshots | part | arithmetic | time |\n|---|---|---|---|\n");
    else
        printf("| snapshots | dtype | metric | time | solver | condition |\n"
               "|---|---|---|---|---|---|\n");
    enum phema_status status = PHEMA_OK;
    struct phema_error err = {0};
    for (size_t c = 0; !status && c < n_counts; c++) {
        size_t n =
            is_arithmetic ? usual_parts[c % ARRAY_LEN(usual_parts)] : usual[c % ARRAY_LEN(usual)];
        if (argc > first)
            n = (size_t)strtoul(argv[c + (size_t)first], NULL, 10);
        if (n < 8)
            status = phema_fail(&err, PHEMA_ERR_USAGE, "expected numbers of snapshots from 8 on");
        else
            status = (is_arithmetic ? compare_arithmetic : run_solves)(n, &err);
    }
    if (status)
        (void)fprintf(stderr, "bench_solve: %s\n", err.message);
    return (int)status;
}
