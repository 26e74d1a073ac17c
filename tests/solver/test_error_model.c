// SPDX-License-Identifier: Apache-2.0
/* test_error_model.c - predictions of the data-free model, compared with numerical integrals of its
 * definition; evaluation of weights from outside. */
#include "profiles.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>

#include "phema/solver.h"

#define GAMMA_05 16.972198602303447
#define GAMMA_10 6.937203937601809

static double after(double gamma, double t, double tau)
{
    return tau < t ? 1 - pow(tau / t, gamma + 1) : 0;
}

/* v_b = 0.03^2 / integral of (Q_.05 - Q_.10)^2 from 0 to `end` */
static double wander(double end)
{
    const int n = 100000;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double tau = end * (i + 0.5) / n;
        double apart = after(GAMMA_05, end, tau) - after(GAMMA_10, end, tau);
        sum += apart * apart * end / n;
    }
    return 0.03 * 0.03 / sum;
}

/* integral of the squared cumulative difference */
static double difference(const struct phema_profile *snapshots, const double *weights, size_t n,
                         const struct phema_profile *target)
{
    const int steps = 200000;
    double end = target->t;
    for (size_t i = 0; i < n; i++)
        end = fmax(end, snapshots[i].t);
    double sum = 0;
    for (int k = 0; k < steps; k++) {
        double tau = end * (k + 0.5) / steps;
        double d = after(target->gamma, target->t, tau);
        for (size_t i = 0; i < n; i++)
            d -= weights[i] * after(snapshots[i].gamma, snapshots[i].t, tau);
        sum += d * d * end / steps;
    }
    return sum;
}

static const struct phema_profile snapshots[] = {
    {.gamma = GAMMA_05, .t = 250}, {.gamma = GAMMA_10, .t = 250}, {.gamma = GAMMA_05, .t = 500},
    {.gamma = GAMMA_10, .t = 500}, {.gamma = GAMMA_05, .t = 800}, {.gamma = GAMMA_10, .t = 800},
};
enum { N = ARRAY_LEN(snapshots) };

static const double fp16[N] = {1.92e-4, 1.92e-4, 1.92e-4, 1.92e-4, 1.92e-4, 1.92e-4};

static void prediction_is_the_models(void **state)
{
    (void)state;
    const double rounding[N] = {1.92e-4, 0, 1.53e-3, 1.92e-4, 2.4e-8, 1.92e-4};
    const struct phema_profile targets[] = {{.gamma = 3.5, .t = 800}, {.gamma = 10, .t = 600}};
    struct phema_solution solutions[2];
    struct phema_solve_options options = {.metric = PHEMA_METRIC_WALK};
    struct phema_error err = {0};
    assert_ok(solve_profiles(solutions, snapshots, rounding, N, targets, 2, 1000, &options, &err),
              &err);
    for (size_t k = 0; k < 2; k++) {
        const struct phema_solution *s = &solutions[k];
        double profile = sqrt(wander(1000) * difference(snapshots, s->weights, N, &targets[k]));
        double rounded = 0;
        double lambda = 0;
        for (size_t i = 0; i < N; i++) {
            double noise = rounding[i] > 0 ? fmax(rounding[i], PHEMA_FLOAT32_FLOOR) : 0;
            rounded += pow(noise * s->weights[i], 2);
            lambda += noise * noise / (wander(1000) * (double)N * targets[k].t);
        }
        assert_near(s->predicted.profile, profile, 1e-4 * profile);
        assert_near(s->predicted.rounding, sqrt(rounded), 1e-14);
        assert_near(s->predicted.total, hypot(profile, sqrt(rounded)), 1e-4 * s->predicted.total);
        assert_near(s->ridge, lambda, 1e-6 * lambda);
        assert_true(s->predicted.paper_weights > s->predicted.total);
    }
    phema_solutions_clear(solutions, 2);
}

/* While the sum stays 1, no small change of two weights reduces E = v_b int D^2 + sum n_i w_i^2. */
static void ridge_minimises_the_predicted_error(void **state)
{
    (void)state;
    const struct phema_profile target = {.gamma = 1.8, .t = 800};
    struct phema_solution solution;
    struct phema_solve_options options = {.metric = PHEMA_METRIC_WALK};
    struct phema_error err = {0};
    assert_ok(solve_profiles(&solution, snapshots, fp16, N, &target, 1, 0, &options, &err), &err);
    double best = solution.predicted.total;
    for (size_t i = 0; i < N; i++) {
        double moved[N];
        for (size_t j = 0; j < N; j++)
            moved[j] = solution.weights[j];
        moved[i] += 0.01;
        moved[(i + 1) % N] -= 0.01;
        struct phema_solution rated = {.weights = moved};
        assert_ok(rate_profiles(&rated, snapshots, fp16, N, &target, 1, 0, &err), &err);
        assert_true(rated.predicted.total > best);
        /* the paper's weights are those of the walk metric, so their error does not change */
        assert_near(rated.predicted.paper_weights, solution.predicted.paper_weights, 1e-15);
    }
    phema_solutions_clear(&solution, 1);
}

static void paper_weights_are_the_profile_metrics(void **state)
{
    (void)state;
    const struct phema_profile target = {.gamma = 1.8, .t = 800};
    struct phema_solution walk;
    struct phema_solution paper;
    struct phema_solve_options options = {.metric = PHEMA_METRIC_WALK};
    struct phema_error err = {0};
    assert_ok(solve_profiles(&walk, snapshots, fp16, N, &target, 1, 0, &options, &err), &err);
    options.metric = PHEMA_METRIC_PROFILE;
    assert_ok(solve_profiles(&paper, snapshots, fp16, N, &target, 1, 0, &options, &err), &err);
    assert_true(paper.ridge == 0);
    assert_near(walk.predicted.paper_weights, paper.predicted.total, 1e-15);
    assert_near(paper.predicted.paper_weights, paper.predicted.total, 0);
    phema_solutions_clear(&walk, 1);
    phema_solutions_clear(&paper, 1);
}

/* One snapshot at twice its weight, with itself as the target. Then D is Q, d is p, and half of the
 * result is error. */
static void given_weights_are_evaluated_unchanged(void **state)
{
    (void)state;
    struct phema_profile same[] = {snapshots[4], snapshots[4]};
    double weights[] = {1.5, 0.5};
    double rounding[] = {1e-3, 0};
    struct phema_solution rated = {.weights = weights, .solver = "other"};
    struct phema_error err = {0};
    assert_ok(rate_profiles(&rated, same, rounding, 2, &snapshots[4], 1, 800, &err), &err);
    assert_ptr_equal(rated.weights, weights);
    assert_string_equal(rated.solver, "other");
    assert_near(rated.sum, 2, 0);
    assert_near(rated.norm1, 2, 0);
    assert_near(rated.norm2, sqrt(2.5), 1e-15);
    assert_near(rated.profile_error, 1, 1e-15);
    assert_near(rated.walk_error, 1, 1e-15);
    assert_true(isinf(rated.condition));
    assert_true(rated.ridge == 0);
    double zero[] = {0, 0};
    double wandered = wander(800) * difference(same, zero, 2, &snapshots[4]);
    assert_near(rated.predicted.profile, sqrt(1 + wandered), 1e-6);
    assert_near(rated.predicted.rounding, 1.5e-3, 1e-17);
    assert_near(rated.predicted.paper_weights, 1e-3, 1e-15); /* the first one, with weight 1 */

    weights[1] = (double)NAN;
    assert_fails(rate_profiles(&rated, same, rounding, 2, &snapshots[4], 1, 800, &err),
                 PHEMA_ERR_INPUTS, &err, "finite");
}

static void without_rounding_there_is_no_ridge(void **state)
{
    (void)state;
    const struct phema_profile target = {.gamma = 1.8, .t = 800};
    const double none[N] = {0};
    struct phema_solution solutions[3];
    struct phema_solve_options options = {.metric = PHEMA_METRIC_WALK};
    struct phema_error err = {0};
    assert_ok(solve_profiles(&solutions[0], snapshots, NULL, N, &target, 1, 0, &options, &err),
              &err);
    assert_ok(solve_profiles(&solutions[1], snapshots, none, N, &target, 1, 0, &options, &err),
              &err);
    options.ridge = PHEMA_RIDGE_NONE;
    assert_ok(solve_profiles(&solutions[2], snapshots, fp16, N, &target, 1, 0, &options, &err),
              &err);
    for (size_t k = 0; k < 3; k++) {
        assert_true(solutions[k].ridge == 0);
        assert_near(solutions[k].walk_error, solutions[0].walk_error, 0);
    }
    phema_solutions_clear(solutions, 3);
}

/* All averages end at 20, which is also the end of a bin of 10 steps. Motion after that changes
 * nothing, although snapshots and the target end within bins. */
static void steps_after_the_end_are_ignored(void **state)
{
    (void)state;
    static const struct phema_profile series[] = {
        {.gamma = GAMMA_05, .t = 14, .update_every = 10},
        {.gamma = GAMMA_10, .t = 20, .update_every = 10},
        {.gamma = GAMMA_10, .t = 17},
        {.gamma = GAMMA_05, .t = 20},
    };
    const struct phema_profile target = {.gamma = 3, .t = 16};
    const struct phema_mix mix = {.parts = &target, .n_parts = 1};
    const struct phema_solve_options options = {.metric = PHEMA_METRIC_MOTION};
    double ends[] = {14, 20, 30}, wander[] = {2, 1, 1};
    struct phema_solution solutions[2];
    struct phema_error err = {0};
    for (size_t i = 0; i < 2; i++) {
        double jitter[] = {5, 3, i ? 1000 : 0};
        struct phema_motion motion = {
            .n_intervals = 3, .ends = ends, .wander = wander, .jitter = jitter};
        const struct phema_problem problem = {.snapshots = series,
                                              .n = ARRAY_LEN(series),
                                              .targets = &mix,
                                              .m = 1,
                                              .run_end = 20,
                                              .motion = &motion};
        assert_ok(phema_weights_solve(&solutions[i], &problem, &options, &err), &err);
    }
    assert_memory_equal(solutions[0].weights, solutions[1].weights,
                        ARRAY_LEN(series) * sizeof(double));
    assert_true(solutions[0].predicted.total == solutions[1].predicted.total);
    phema_solutions_clear(solutions, 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(prediction_is_the_models),
    cmocka_unit_test(ridge_minimises_the_predicted_error),
    cmocka_unit_test(paper_weights_are_the_profile_metrics),
    cmocka_unit_test(given_weights_are_evaluated_unchanged),
    cmocka_unit_test(without_rounding_there_is_no_ridge),
    cmocka_unit_test(steps_after_the_end_are_ignored),
};
TEST_GROUP(tests)
