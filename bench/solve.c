// SPDX-License-Identifier: Apache-2.0
/* solve.c - time of solving for weights, by the number of snapshots and their dtype, whose rounding
 * is the ridge. Two widths at equally spaced times, nine targets, every metric. The time includes
 * the comparison with the paper's weights; for the motion metric the fit of motion is also timed
 * alone. The target bench_solve, linked with phema_solver; one thread, one run each. Usage:
 * bench_solve [SNAPSHOTS..., default 64 256 512 700 2000] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
        bench->mixes[m] = (struct phema_mix){&bench->targets[m], NULL, 1};
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
    status = phema_motion_fit(&bench->motion, bench->snapshots, bench->n, bench->rounding, pairs,
                              n_pairs, err);
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

int main(int argc, char **argv)
{
    static const size_t usual[] = {64, 256, 512, 700, 2000};
    size_t n_counts = argc > 1 ? (size_t)argc - 1 : ARRAY_LEN(usual);
    enum phema_status status = PHEMA_OK;
    struct phema_error err = {""};
    printf(
        "| snapshots | dtype | metric | time | solver | condition |\n|---|---|---|---|---|---|\n");
    for (size_t c = 0; !status && c < n_counts; c++) {
        size_t n = argc > 1 ? (size_t)strtoul(argv[c + 1], NULL, 10) : usual[c];
        if (n >= 8)
            status = measure(n, PHEMA_F32, &err);
        else
            status = phema_fail(&err, PHEMA_ERR_USAGE, "expected numbers of snapshots from 8 on");
        if (!status)
            status = measure(n, PHEMA_BF16, &err);
    }
    if (status)
        (void)fprintf(stderr, "bench_solve: %s\n", err.message);
    return (int)status;
}
