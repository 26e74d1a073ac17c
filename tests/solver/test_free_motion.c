// SPDX-License-Identifier: Apache-2.0
/* test_free_motion.c - some motion explains true labels, however parameters move, and none explains
 * snapshots that are exchanged or of another training. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/solver.h"
#include "samples.h"

#define N_TIMES  ((size_t)8)
#define N_WIDTHS ((size_t)2)
#define N        (N_TIMES * N_WIDTHS)
#define N_STEPS  960
#define N_ELEMS  ((size_t)500)

static const double gammas[N_WIDTHS] = {16.97, 6.94};
static const double times[N_TIMES] = {60, 150, 270, 300, 470, 520, 840, 960};

enum way { WALKS, RATE_FALLS_AND_RISES, KEEPS_DIRECTION, N_WAYS };

static double step_size(enum way way, int step)
{
    if (way != RATE_FALLS_AND_RISES)
        return 1e-3;
    return step < 600 ? 1e-3 * (1 - step / 620.) : 8e-4;
}

static struct phema_problem problem_of(struct phema_profile *snapshots)
{
    for (size_t i = 0; i < N; i++)
        snapshots[i] =
            (struct phema_profile){.gamma = gammas[i % N_WIDTHS], .t = times[i / N_WIDTHS]};
    return (struct phema_problem){.snapshots = snapshots, .n = N};
}

/* Averages of parameters that move in a way. */
static void record(double *values, const struct phema_profile *snapshots, enum way way,
                   uint64_t seed)
{
    uint64_t state = seed;
    for (size_t e = 0; e < N_ELEMS; e++) {
        double x = 1, velocity = coin(&state) * 1e-3, averages[N] = {0};
        for (int step = 1; step <= N_STEPS; step++) {
            velocity += coin(&state) * 2e-5;
            x += way == KEEPS_DIRECTION ? velocity : coin(&state) * step_size(way, step);
            for (size_t i = 0; i < N; i++) {
                double beta = pow(1 - 1.0 / step, snapshots[i].gamma + 1);
                if (step <= (int)snapshots[i].t)
                    averages[i] = beta * averages[i] + (1 - beta) * x;
            }
        }
        for (size_t i = 0; i < N; i++)
            values[i * N_ELEMS + e] = averages[i];
    }
}

static struct phema_free_motion explain(const struct phema_problem *problem, const double *values,
                                        const size_t *order)
{
    struct phema_free_motion found;
    struct phema_error err = {0};
    const struct phema_sample_rows rows = {
        .values = values, .order = order, .n_elems = N_ELEMS, .mean_square = 1};
    assert_ok(phema_free_motion_fit(&found, problem, &rows, &err), &err);
    return found;
}

static void true_labels_are_explained(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    const struct phema_problem problem = problem_of(snapshots);
    double *values = calloc(N * N_ELEMS, sizeof(*values));
    assert_non_null(values);
    for (enum way way = 0; way < N_WAYS; way++) {
        record(values, snapshots, way, 1);
        struct phema_free_motion found = explain(&problem, values, NULL);
        if (!(found.largest < 1.5))
            fail_msg("way %d: %g", (int)way, found.largest);
    }
    free(values);
}

static void faults_are_not(void **state)
{
    (void)state;
    struct phema_profile snapshots[N];
    const struct phema_problem problem = problem_of(snapshots);
    double *values = calloc(2 * N * N_ELEMS, sizeof(*values)), *other = values + N * N_ELEMS;
    size_t order[N];
    assert_non_null(values);
    record(values, snapshots, WALKS, 1);
    record(other, snapshots, WALKS, 2);
    for (size_t i = 0; i < N; i++)
        order[i] = i;
    double deviance = explain(&problem, values, order).deviance;
    order[8] = 9; /* two widths of one time */
    order[9] = 8;
    assert_true(explain(&problem, values, order).largest > 1.6);
    order[8] = N + 8; /* of another training */
    order[9] = 9;
    assert_true(explain(&problem, values, order).largest > 1.6);
    order[8] = 8;
    for (size_t i = 1; i < N; i += N_WIDTHS)
        snapshots[i].gamma = 2.89; /* sigma_rel 0.15: milder, and far less likely */
    assert_true(explain(&problem, values, order).deviance > deviance + 2);
    free(values);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(true_labels_are_explained),
    cmocka_unit_test(faults_are_not),
};
TEST_GROUP(tests)
