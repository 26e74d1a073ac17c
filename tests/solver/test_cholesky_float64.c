// SPDX-License-Identifier: Apache-2.0
/* test_cholesky_float64.c - factors, solutions and inverses, multiplied back. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "cholesky.h"

#define N 9

/* B B^T + 1 of numbers without a pattern; rows far apart do not touch, as in Fisher's
 * information. */
static void make(double a[N][N])
{
    double b[N][N];
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            b[i][j] = j <= i && i < j + 3 ? sin((double)(7 * i + 3 * j + 1)) : 0;
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            a[i][j] = i == j;
            for (size_t k = 0; k < N; k++)
                a[i][j] += b[i][k] * b[j][k];
        }
}

static void the_factor_is_a_root_of_the_matrix(void **state)
{
    (void)state;
    double a[N][N], l[N][N];
    make(a);
    make(l);
    assert_true(phema_float64_factor(&l[0][0], N));
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = 0;
            for (size_t k = 0; k <= j; k++)
                sum += l[i][k] * l[j][k];
            assert_near(sum, a[i][j], 1e-14); /* N eps of numbers below 5 */
        }
}

static void the_upper_half_is_not_touched(void **state)
{
    (void)state;
    double l[N][N];
    make(l);
    for (size_t i = 0; i < N; i++)
        for (size_t j = i + 1; j < N; j++)
            l[i][j] = (double)NAN;
    assert_true(phema_float64_factor(&l[0][0], N));
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            assert_int_equal(isnan(l[i][j]) != 0, j > i);
}

static void solutions_and_inverses_multiply_back(void **state)
{
    (void)state;
    double a[N][N], l[N][N], inverse[N][N] = {{0}}, x[N];
    make(a);
    make(l);
    assert_true(phema_float64_factor(&l[0][0], N));
    phema_float64_invert(&inverse[0][0], &l[0][0], N);
    for (size_t j = 0; j < N; j++) {
        memset(x, 0, sizeof(x));
        x[j] = 1;
        phema_float64_solve(&l[0][0], x, N);
        for (size_t i = 0; i < N; i++) {
            double sum = 0, both = 0;
            for (size_t k = 0; k < N; k++) {
                sum += a[i][k] * x[k];
                both += inverse[i][k] * inverse[j][k]; /* L^-T L^-1 */
            }
            assert_near(sum, i == j, 1e-13);
            assert_near(both, x[i], 1e-13);
        }
    }
}

static void what_is_not_positive_definite_is_refused(void **state)
{
    (void)state;
    static const double pivots[] = {0, -1, (double)NAN, HUGE_VAL};
    for (size_t p = 0; p < ARRAY_LEN(pivots); p++) {
        double a[4] = {1, 0, 0.5, 0.25 + pivots[p]};
        assert_false(phema_float64_factor(a, 2));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_factor_is_a_root_of_the_matrix),
    cmocka_unit_test(the_upper_half_is_not_touched),
    cmocka_unit_test(solutions_and_inverses_multiply_back),
    cmocka_unit_test(what_is_not_positive_definite_is_refused),
};
TEST_GROUP(tests)
