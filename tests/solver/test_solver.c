// SPDX-License-Identifier: Apache-2.0
/* test_solver.c - solvers compared with each other, the ridge with its equations, and weights with
 * those of a published program. Also the errors of the public functions. */
#include "profiles.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "phema/json.h"
#include "phema/solver.h"

#include "linear_system.h"

/* n times with the two widths of EDM2, 0.05 and 0.10 */
static struct phema_profile *edm2_snapshots(size_t n_times, double last, uint64_t update_every)
{
    struct phema_profile *snapshots = calloc(2 * n_times, sizeof(*snapshots));
    assert_non_null(snapshots);
    for (size_t i = 0; i < 2 * n_times; i++) {
        snapshots[i].gamma = i % 2 ? 6.937203937601809 : 16.972198602303447;
        size_t index = i / 2 + 1;
        snapshots[i].t = last / (double)n_times * (double)index;
        snapshots[i].update_every = update_every;
    }
    return snapshots;
}

static struct phema_profile target_of(double sigma_rel, double t)
{
    struct phema_profile target = {.t = t};
    struct phema_error err = {0};
    assert_ok(phema_gamma_from_sigma_rel(&target.gamma, sigma_rel, &err), &err);
    return target;
}

static struct phema_solution solve_one(const struct phema_profile *snapshots,
                                       const double *rounding, size_t n,
                                       struct phema_profile target,
                                       struct phema_solve_options options)
{
    struct phema_solution solution;
    struct phema_error err = {0};
    assert_ok(solve_profiles(&solution, snapshots, rounding, n, &target, 1, 0, &options, &err),
              &err);
    return solution;
}

static void assert_same_weights(const struct phema_solution *a, const struct phema_solution *b,
                                size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        assert_near(a->weights[i], b->weights[i], tolerance * a->norm1);
}

/* docs/solver.md: the squared error of the profile falls as 1/n^4 with two widths. */
static void error_falls_with_the_fourth_power(void **state)
{
    (void)state;
    static const double published[][2] = {{32, 4.7e-6}, {64, 3.0e-7}, {128, 1.9e-8}};
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        size_t n_times = (size_t)published[i][0];
        struct phema_profile *snapshots = edm2_snapshots(n_times, 1e6, 1);
        struct phema_solution solution =
            solve_one(snapshots, NULL, 2 * n_times, target_of(0.075, 1e6),
                      (struct phema_solve_options){.metric = PHEMA_METRIC_PROFILE});
        double p_squared = 11.2891 * 11.2891 / (2 * 11.2891 - 1); /* of the target, times 1e6 */
        double relative = solution.profile_error * solution.profile_error;
        assert_near(relative * p_squared, published[i][1], 0.05 * published[i][1]);
        phema_solutions_clear(&solution, 1);
        free(snapshots);
    }
}

static void lapack_agrees_where_float64_does(void **state)
{
    (void)state;
    struct phema_profile *snapshots = edm2_snapshots(16, 1e6, 1);
    for (int metric = PHEMA_METRIC_WALK; metric <= PHEMA_METRIC_PROFILE; metric++) {
        struct phema_solve_options options = {.metric = (enum phema_metric)metric,
                                              .finds_condition = true};
        struct phema_solution quad = solve_one(snapshots, NULL, 32, target_of(0.2, 1e6), options);
        options.solver = PHEMA_SOLVER_LAPACK;
        struct phema_solution lapack = solve_one(snapshots, NULL, 32, target_of(0.2, 1e6), options);
        assert_string_equal(quad.solver, "quad");
        assert_string_equal(lapack.solver, "lapack");
        /* 1e-16 times the condition, which is below 1e7 in both */
        assert_same_weights(&quad, &lapack, 32, 1e-9);
        assert_near(lapack.condition, quad.condition, 1e-6 * quad.condition);
        phema_solutions_clear(&quad, 1);
        phema_solutions_clear(&lapack, 1);
    }
    free(snapshots);
}

static void lapack_says_when_float64_is_not_enough(void **state)
{
    (void)state;
    struct phema_profile snapshots[32];
    for (size_t i = 0; i < 32; i++) {
        size_t index = i / 2;
        snapshots[i] =
            (struct phema_profile){.gamma = i % 2 ? 6.94 : 16.97, .t = 1000000 + (double)index};
    }
    struct phema_profile target = target_of(0.075, 1000015);
    struct phema_solve_options options = {.solver = PHEMA_SOLVER_LAPACK, .ridge = PHEMA_RIDGE_NONE};
    struct phema_solution solution;
    struct phema_error err = {0};
    assert_fails(solve_profiles(&solution, snapshots, NULL, 32, &target, 1, 0, &options, &err),
                 PHEMA_ERR_INPUTS, &err, "--solver quad");
}

static size_t n_asked;

/* Plain loops, as a device might run them. */
static enum phema_status factor_elsewhere(double *matrix, size_t n, struct phema_error *err)
{
    (void)err;
    n_asked++;
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            double sum = matrix[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= matrix[i * n + k] * matrix[j * n + k];
            if (i == j && !(sum > 0))
                return PHEMA_NO;
            matrix[i * n + j] = i == j ? sqrt(sum) : sum / matrix[j * n + j];
        }
    }
    return PHEMA_OK;
}

static enum phema_status fail_elsewhere(double *matrix, size_t n, struct phema_error *err)
{
    (void)matrix;
    (void)n;
    return phema_fail(err, PHEMA_ERR_RESOURCE, "there is no device");
}

/* A factor from elsewhere is refined like LAPACK's, also for few snapshots. */
static void factors_of_a_factorer_reach_quad(void **state)
{
    (void)state;
    static const struct phema_factorer elsewhere = {"elsewhere", factor_elsewhere};
    struct phema_profile *snapshots = edm2_snapshots(16, 1e6, 1);
    for (int metric = PHEMA_METRIC_WALK; metric <= PHEMA_METRIC_PROFILE; metric++) {
        struct phema_solve_options options = {.metric = (enum phema_metric)metric,
                                              .finds_condition = true};
        struct phema_solution quad = solve_one(snapshots, NULL, 32, target_of(0.2, 1e6), options);
        options.solver = PHEMA_SOLVER_DEVICE;
        options.factorer = &elsewhere;
        n_asked = 0;
        struct phema_solution other = solve_one(snapshots, NULL, 32, target_of(0.2, 1e6), options);
        assert_true(n_asked > 0);
        assert_string_equal(other.solver, "elsewhere");
        assert_same_weights(&other, &quad, 32, 1e-15);
        assert_near(other.condition, quad.condition, 1e-6 * quad.condition);
        phema_solutions_clear(&quad, 1);
        phema_solutions_clear(&other, 1);
    }
    free(snapshots);
}

/* Quad replaces a float64 factor that is not precise enough. An error of the factorer is
 * reported. */
static void quad_replaces_failed_factors(void **state)
{
    (void)state;
    static const struct phema_factorer elsewhere = {"elsewhere", factor_elsewhere};
    static const struct phema_factorer broken = {"broken", fail_elsewhere};
    struct phema_profile snapshots[32];
    for (size_t i = 0; i < 32; i++)
        snapshots[i] =
            (struct phema_profile){.gamma = i % 2 ? 6.94 : 16.97, .t = 1000000 + (double)(i / 2)};
    struct phema_profile target = target_of(0.075, 1000015);
    struct phema_solve_options options = {
        .solver = PHEMA_SOLVER_DEVICE, .factorer = &elsewhere, .ridge = PHEMA_RIDGE_NONE};
    struct phema_solution solution = solve_one(snapshots, NULL, 32, target, options);
    assert_string_equal(solution.solver, "quad");
    phema_solutions_clear(&solution, 1);
    struct phema_error err = {0};
    options.factorer = &broken;
    assert_fails(solve_profiles(&solution, snapshots, NULL, 32, &target, 1, 0, &options, &err),
                 PHEMA_ERR_RESOURCE, &err, "there is no device");
}

/* A factor that looks like one, but is too rough to be refined. */
static enum phema_status factor_roughly(double *matrix, size_t n, struct phema_error *err)
{
    enum phema_status status = factor_elsewhere(matrix, n, err);
    matrix[n * n - 1] *= 3;
    return status;
}

/* Of many snapshots the condition is found while they are solved. The one that counts is that of
 * the factor of the solution. */
static void the_condition_is_that_of_the_last_factor(void **state)
{
    (void)state;
    enum { N = 256 };
    static const struct phema_factorer factorers[] = {{"elsewhere", factor_elsewhere},
                                                      {"roughly", factor_roughly}};
    struct phema_profile snapshots[N]; /* far from each other */
    for (size_t i = 0; i < N; i++)
        snapshots[i] = (struct phema_profile){.gamma = 16.97, .t = 1000 * pow(1.05, (double)i)};
    struct phema_profile target = target_of(0.2, snapshots[N - 1].t);
    struct phema_solve_options options = {.finds_condition = true};
    struct phema_solution quad = solve_one(snapshots, NULL, N, target, options);
    options.solver = PHEMA_SOLVER_DEVICE;
    for (int is_rough = 0; is_rough < 2; is_rough++) {
        options.factorer = &factorers[is_rough];
        struct phema_solution other = solve_one(snapshots, NULL, N, target, options);
        assert_string_equal(other.solver, is_rough ? "quad" : "elsewhere");
        assert_near(other.condition, quad.condition, is_rough ? 0 : 1e-6 * quad.condition);
        phema_solutions_clear(&other, 1);
    }
    phema_solutions_clear(&quad, 1);
}

/* Above 700 unknowns: a float64 factor with quad residuals gives the result of the quad factor. */
static void refinement_reaches_quad(void **state)
{
    (void)state;
    size_t n = 704;
    struct phema_profile *snapshots = edm2_snapshots(n / 2, 1e6, 1);
    for (int has_ridge = 0; has_ridge < 2; has_ridge++) {
        struct phema_solve_options options = {.metric = PHEMA_METRIC_PROFILE,
                                              .ridge = PHEMA_RIDGE_VALUE,
                                              .ridge_value = has_ridge ? 1e-3 : 0};
        struct phema_solution refined =
            solve_one(snapshots, NULL, n, target_of(0.15, 1e6), options);
        options.solver = PHEMA_SOLVER_QUAD;
        struct phema_solution quad = solve_one(snapshots, NULL, n, target_of(0.15, 1e6), options);
        assert_string_equal(refined.solver, "lapack");
        assert_string_equal(quad.solver, "quad");
        assert_same_weights(&refined, &quad, n, 1e-15);
        phema_solutions_clear(&refined, 1);
        phema_solutions_clear(&quad, 1);
    }
    free(snapshots);
}

/* Where float64 fails, AUTO falls back: 704 unknowns of four widths, condition 1e17. */
static void auto_falls_back_to_quad(void **state)
{
    (void)state;
    static const double gammas[] = {16.97, 6.94, 3.56, 1.83};
    size_t n = 704;
    struct phema_profile *snapshots = calloc(n, sizeof(*snapshots));
    assert_non_null(snapshots);
    for (size_t i = 0; i < n; i++) {
        size_t index = i / 4 + 1;
        snapshots[i] = (struct phema_profile){.gamma = gammas[i % 4], .t = (double)index};
    }
    struct phema_solution solution =
        solve_one(snapshots, NULL, n, target_of(0.12, 176), (struct phema_solve_options){0});
    assert_string_equal(solution.solver, "quad");
    assert_true(solution.profile_error < 1e-8);
    phema_solutions_clear(&solution, 1);
    free(snapshots);
}

/* Stationarity: (A + lambda t) w - b = mu for the walk metric, (A + lambda / t) w = b otherwise.
 * This file computes A and b itself. */
static void ridge_value_solves_its_equations(void **state)
{
    (void)state;
    enum { N = 8 };
    struct phema_profile *snapshots = edm2_snapshots(N / 2, 800, 1);
    struct phema_profile targets[] = {target_of(0.15, 800), target_of(0.15, 650)};
    struct phema_solution solutions[2];
    struct phema_error err = {0};
    for (int metric = PHEMA_METRIC_WALK; metric <= PHEMA_METRIC_PROFILE; metric++) {
        bool is_walk = metric == PHEMA_METRIC_WALK;
        struct phema_solve_options options = {.metric = (enum phema_metric)metric,
                                              .ridge = PHEMA_RIDGE_VALUE,
                                              .ridge_value = 1e-3,
                                              .keeps_sum = true};
        assert_ok(solve_profiles(solutions, snapshots, NULL, N, targets, 2, 0, &options, &err),
                  &err);
        for (size_t k = 0; k < 2; k++) {
            double t = targets[k].t;
            double first = 0;
            for (size_t i = 0; i < N; i++) {
                double row = 1e-3 * (is_walk ? t : 1 / t) * solutions[k].weights[i];
                for (size_t j = 0; j <= N; j++) {
                    const struct phema_profile *a = &snapshots[i];
                    const struct phema_profile *b = j < N ? &snapshots[j] : &targets[k];
                    const struct phema_profile *early = a->t < b->t ? a : b;
                    const struct phema_profile *late = a->t < b->t ? b : a;
                    phema_quad decay = (phema_quad)pow(early->t / late->t, late->gamma + 1);
                    phema_quad product = (is_walk ? phema_walk_product : phema_white_product)(
                        (phema_quad)early->gamma + 1, (phema_quad)late->gamma + 1,
                        (phema_quad)early->t, decay);
                    row += (double)product * (j < N ? solutions[k].weights[j] : -1);
                }
                if (i == 0)
                    first = is_walk ? row : 0;
                assert_near(row, first, 1e-12 * (is_walk ? t : 1));
            }
            assert_near(solutions[k].ridge, 1e-3, 0);
            if (is_walk)
                assert_near(solutions[k].sum, 1, 1e-14);
        }
        phema_solutions_clear(solutions, 2);
    }
    free(snapshots);
}

/* An enormous ridge leaves the mean of all snapshots. */
static void huge_ridge_gives_equal_weights(void **state)
{
    (void)state;
    struct phema_profile *snapshots = edm2_snapshots(4, 800, 1);
    struct phema_solution solution =
        solve_one(snapshots, NULL, 8, target_of(0.15, 800),
                  (struct phema_solve_options){.ridge = PHEMA_RIDGE_VALUE, .ridge_value = 1e300});
    for (size_t i = 0; i < 8; i++)
        assert_near(solution.weights[i], 0.125, 1e-15);
    phema_solutions_clear(&solution, 1);
    free(snapshots);
}

static struct phema_json *read_expected(void)
{
    char *path = support_fixture("ema_pytorch/expected.json");
    size_t size = 0;
    uint8_t *text = support_read(path, &size);
    struct phema_json *document = NULL;
    struct phema_error err = {0};
    assert_ok(phema_json_parse(&document, (struct phema_span){text, size}, &err), &err);
    free(text);
    free(path);
    return document;
}

/* ema-pytorch solves as if every step updated, and this assumption reproduces its weights. With the
 * true steps, those weights get their real error, and better weights exist. */
static void ema_pytorch_is_reproduced(void **state)
{
    (void)state;
    enum { N = 12 };
    struct phema_json *document = read_expected();
    const struct phema_json *targets = phema_json_get(document, "targets");
    assert_int_equal(phema_json_length(targets), 3);
    for (size_t k = 0; k < 3; k++) {
        const struct phema_json *wanted = phema_json_at(targets, k);
        struct phema_profile snapshots[N];
        struct phema_profile target = {.t = 300};
        double weights[N];
        assert_true(phema_json_number(&target.gamma, phema_json_get(wanted, "gamma")));
        for (size_t i = 0; i < N; i++) {
            char name[32];
            double step = 50 * (double)(i % 6 + 1);
            (void)snprintf(name, sizeof(name), "%zu.%.0f.pt", i / 6, step);
            snapshots[i] = (struct phema_profile){
                .gamma = i < 6 ? 16.972198602303447 : 0.16934399376949866, .t = step};
            assert_true(phema_json_number(&weights[i],
                                          phema_json_get(phema_json_get(wanted, "weights"), name)));
        }
        struct phema_solve_options options = {.metric = PHEMA_METRIC_PROFILE, .keeps_sum = true};
        struct phema_solution believed = solve_one(snapshots, NULL, N, target, options);
        for (size_t i = 0; i < N; i++)
            /* 60-digit arithmetic shows that its float64 LU is off by up to 2.1e-8 */
            assert_near(believed.weights[i], weights[i], 3e-8);
        phema_solutions_clear(&believed, 1);

        for (size_t i = 0; i < N; i++)
            snapshots[i].update_every = 5;
        struct phema_error err = {0};
        struct phema_solution rated = {.weights = weights};
        assert_ok(rate_profiles(&rated, snapshots, NULL, N, &target, 1, 0, &err), &err);
        options.metric = PHEMA_METRIC_WALK;
        struct phema_solution solved = solve_one(snapshots, NULL, N, target, options);
        /* the white metric cannot judge this: in it, a snapshot of one step in five is a comb */
        assert_true(rated.walk_error > 10 * solved.walk_error);
        phema_solutions_clear(&solved, 1);
    }
    phema_json_free(document);
}

static void assert_refused(const struct phema_profile *snapshots, size_t n,
                           struct phema_profile target, enum phema_status status, const char *part)
{
    struct phema_solve_options options = {0};
    struct phema_solution solution = {.sum = 17};
    struct phema_error err = {0};
    assert_fails(solve_profiles(&solution, snapshots, NULL, n, &target, 1, 0, &options, &err),
                 status, &err, part);
    assert_true(solution.sum == 17);
}

static void bad_profiles_are_refused(void **state)
{
    (void)state;
    const struct phema_profile good = {.gamma = 6.94, .t = 100};
    static const struct {
        double gamma, t;
        uint64_t update_every;
        const char *part;
    } bad[] = {
        {6.94, -1, 1, "must be positive"}, {6.94, (double)NAN, 1, "must be positive"},
        {6.94, 0x1p53, 1, "below 2^53"},   {6.94, HUGE_VAL, 1, "below 2^53"},
        {-0.5, 100, 1, "above -0.5"},      {(double)NAN, 100, 1, "above -0.5"},
        {HUGE_VAL, 100, 1, "above -0.5"},  {6.94, 99.5, 5, "whole number"},
        {6.94, 0.5, 5, "whole number"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct phema_profile profile = {.gamma = bad[i].gamma,
                                        .t = bad[i].t,
                                        .update_every = bad[i].update_every,
                                        .label = "b\n.pt"};
        struct phema_profile both[] = {good, profile};
        assert_refused(both, 2, good, PHEMA_ERR_INPUTS, bad[i].part);
        assert_refused(both, 2, good, PHEMA_ERR_INPUTS, "snapshot b\\n.pt: ");
        assert_refused(&good, 1, profile, PHEMA_ERR_TARGET, bad[i].part);
    }
    struct phema_profile twins[] = {good, {.gamma = 2, .t = 50}, good};
    assert_refused(twins, 3, good, PHEMA_ERR_INPUTS, "snapshots #1 and #3 are the same average");
    twins[0].label = "a.pt";
    twins[2].label = "c.pt";
    twins[0].update_every = 5;
    twins[2].update_every = 5;
    assert_refused(twins, 3, good, PHEMA_ERR_INPUTS, "snapshots a.pt and c.pt are the same");
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    const struct phema_profile good = {.gamma = 6.94, .t = 100};
    static const double ridges[] = {-1, (double)NAN, HUGE_VAL};
    for (size_t i = 0; i < ARRAY_LEN(ridges); i++) {
        struct phema_solve_options options = {.ridge = PHEMA_RIDGE_VALUE, .ridge_value = ridges[i]};
        struct phema_solution solution;
        struct phema_error err = {0};
        assert_fails(solve_profiles(&solution, &good, NULL, 1, &good, 1, 0, &options, &err),
                     PHEMA_ERR_USAGE, &err, "ridge");
        double rounding = ridges[i];
        options = (struct phema_solve_options){0};
        assert_fails(solve_profiles(&solution, &good, &rounding, 1, &good, 1, 0, &options, &err),
                     PHEMA_ERR_INPUTS, &err, "rounding");
    }
}

static void zero_targets_are_accepted(void **state)
{
    (void)state;
    const struct phema_profile good = {.gamma = 6.94, .t = 100};
    struct phema_solve_options options = {0};
    struct phema_error err = {0};
    assert_ok(solve_profiles(NULL, &good, NULL, 1, NULL, 0, 0, &options, &err), &err);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(error_falls_with_the_fourth_power),
    cmocka_unit_test(lapack_agrees_where_float64_does),
    cmocka_unit_test(lapack_says_when_float64_is_not_enough),
    cmocka_unit_test(factors_of_a_factorer_reach_quad),
    cmocka_unit_test(quad_replaces_failed_factors),
    cmocka_unit_test(the_condition_is_that_of_the_last_factor),
    cmocka_unit_test(refinement_reaches_quad),
    cmocka_unit_test(auto_falls_back_to_quad),
    cmocka_unit_test(ridge_value_solves_its_equations),
    cmocka_unit_test(huge_ridge_gives_equal_weights),
    cmocka_unit_test(ema_pytorch_is_reproduced),
    cmocka_unit_test(bad_profiles_are_refused),
    cmocka_unit_test(bad_options_are_refused),
    cmocka_unit_test(zero_targets_are_accepted),
};
TEST_GROUP(tests)
