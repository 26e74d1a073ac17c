// SPDX-License-Identifier: Apache-2.0
/* test_lapack.c - the factor of OpenBLAS, compared with plain loops. Loading OpenBLAS starts no
 * thread, keeps the affinity, and fails without enough address space. */
#include "cholesky.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "phema/solver.h"
#include "profiles.h"
#include "support.h"

#define N 300

/* 1 on the diagonal and smaller with the distance from it, so the matrix is definite. */
static double *new_matrix(size_t n)
{
    double *matrix = malloc(n * n * sizeof(*matrix));
    assert_non_null(matrix);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            matrix[i * n + j] = exp(-0.3 * fabs((double)i - (double)j));
    return matrix;
}

static void factor_plainly(double *matrix, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            double sum = matrix[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= matrix[i * n + k] * matrix[j * n + k];
            matrix[i * n + j] = i == j ? sqrt(sum) : sum / matrix[j * n + j];
        }
    }
}

/* This test runs first, because a loaded library needs no more memory. */
static void without_address_space_nothing_is_loaded(void **state)
{
    (void)state;
    double *matrix = new_matrix(N), *same = new_matrix(N);
    struct phema_error err = {0};
    struct rlimit before = support_limit_address_space(300 << 20);
    enum phema_status status = phema_lapack_factor(matrix, N, &err);
    support_restore_address_space(&before);
    assert_fails(status, PHEMA_ERR_RESOURCE, &err, "of free address space");
    assert_memory_equal(matrix, same, N * N * sizeof(*matrix));
    free(matrix);
    free(same);
}

/* LAPACK solves for 704 snapshots; without LAPACK, quad solves as exactly. Only a request for
 * LAPACK is an error. */
static void without_address_space_quad_solves(void **state)
{
    (void)state;
    enum { N_SNAPSHOTS = 704 };
    static struct phema_profile snapshots[N_SNAPSHOTS];
    for (size_t i = 0; i < N_SNAPSHOTS; i++)
        snapshots[i] =
            (struct phema_profile){.gamma = i % 2 ? 6.94 : 16.97, .t = 1000 * (double)(i / 2 + 1)};
    struct phema_profile target = {.gamma = 6.94, .t = 1000 * (N_SNAPSHOTS / 2)};
    struct phema_solve_options options = {.metric = PHEMA_METRIC_PROFILE};
    struct phema_solution solution, refused;
    struct phema_error err = {0}, said = {0};
    struct rlimit before = support_limit_address_space(300 << 20);
    enum phema_status status =
        solve_profiles(&solution, snapshots, NULL, N_SNAPSHOTS, &target, 1, 0, &options, &err);
    options.solver = PHEMA_SOLVER_LAPACK;
    enum phema_status asked =
        solve_profiles(&refused, snapshots, NULL, N_SNAPSHOTS, &target, 1, 0, &options, &said);
    support_restore_address_space(&before);
    assert_ok(status, &err);
    assert_string_equal(solution.solver, "quad");
    /* the target is the last snapshot */
    assert_near(solution.weights[N_SNAPSHOTS - 1], 1, 1e-15);
    phema_solutions_clear(&solution, 1);
    assert_fails(asked, PHEMA_ERR_RESOURCE, &said, "--solver lapack: ");
}

static void loading_leaves_threads_and_affinity(void **state)
{
    (void)state;
    cpu_set_t before, after;
    size_t n_threads = support_count_threads();
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    double *matrix = new_matrix(N);
    struct phema_error err = {0};
    assert_ok(phema_lapack_factor(matrix, N, &err), &err);
    assert_int_equal(support_count_threads(), n_threads);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    free(matrix);
}

/* Entries are at most 1, and the condition is below 100. Both factors are within n roundings times
 * that. */
static void the_factor_is_that_of_plain_loops(void **state)
{
    (void)state;
    double *matrix = new_matrix(N), *plain = new_matrix(N);
    struct phema_error err = {0};
    assert_ok(phema_lapack_factor(matrix, N, &err), &err);
    factor_plainly(plain, N);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++)
            assert_near(matrix[i * N + j], plain[i * N + j], 100 * N * 0x1p-53);
    free(matrix);
    free(plain);
}

static void an_indefinite_matrix_has_no_factor(void **state)
{
    (void)state;
    double *matrix = new_matrix(N);
    struct phema_error err = {0};
    matrix[200 * N + 200] = 0;
    assert_int_equal(phema_lapack_factor(matrix, N, &err), PHEMA_NO);
    free(matrix);
}

static void *factor_some(void *argument)
{
    double *matrix = argument;
    struct phema_error err = {0};
    return phema_lapack_factor(matrix, N, &err) ? argument : NULL;
}

static void threads_may_ask_at_once(void **state)
{
    (void)state;
    double *matrices[8], *alone = new_matrix(N);
    pthread_t threads[ARRAY_LEN(matrices)];
    struct phema_error err = {0};
    assert_ok(phema_lapack_factor(alone, N, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        matrices[i] = new_matrix(N);
        assert_int_equal(pthread_create(&threads[i], NULL, factor_some, matrices[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
        assert_memory_equal(matrices[i], alone, N * N * sizeof(*alone));
        free(matrices[i]);
    }
    free(alone);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_address_space_nothing_is_loaded),
    cmocka_unit_test(without_address_space_quad_solves),
    cmocka_unit_test(loading_leaves_threads_and_affinity),
    cmocka_unit_test(the_factor_is_that_of_plain_loops),
    cmocka_unit_test(an_indefinite_matrix_has_no_factor),
    cmocka_unit_test(threads_may_ask_at_once),
};
TEST_GROUP(tests)
