// SPDX-License-Identifier: Apache-2.0
/* test_gram.c - inner products in closed form compared with numerical integrals of the profiles,
 * and fixed-point dot products compared with quad ones. */
#include "support.h"

#include <math.h>
#include <stdlib.h>

#include "profiles.h"

struct power {
    double gamma, t;
};

static const struct power powers[] = {{16.972198602303447, 1000},
                                      {6.937203937601809, 1000},
                                      {6.937203937601809, 400},
                                      {0, 700},
                                      {0.16934399376949866, 3},
                                      {-0.25, 900},
                                      {60, 999}};

static double density(struct power p, double tau)
{
    return tau < p.t ? (p.gamma + 1) * pow(tau / p.t, p.gamma) / p.t : 0;
}

static double after(struct power p, double tau)
{
    return tau < p.t ? 1 - pow(tau / p.t, p.gamma + 1) : 0;
}

typedef double function(struct power, double);

/* Simpson over u with tau = end u^4, which makes powers from tau^-1/2 on smooth at 0. */
static double integrate(function *f, struct power a, struct power b)
{
    const int n = 40000;
    double end = fmin(a.t, b.t);
    double sum = 0;
    for (int i = 1; i <= n; i++) {
        double u = (double)i / n;
        double tau = end * pow(u, 4);
        /* at the end, a density counts with its value just before */
        double inside = i == n ? nextafter(end, 0) : tau;
        double value = f(a, inside) * f(b, inside) * 4 * end * pow(u, 3);
        sum += value * (i == n ? 1 : i % 2 ? 4 : 2);
    }
    return sum / (3 * n);
}

static void closed_forms_are_the_integrals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(powers); i++) {
        for (size_t j = 0; j < ARRAY_LEN(powers); j++) {
            struct power a = powers[i].t <= powers[j].t ? powers[i] : powers[j];
            struct power b = powers[i].t <= powers[j].t ? powers[j] : powers[i];
            phema_quad decay = (phema_quad)pow(a.t / b.t, b.gamma + 1);
            phema_quad a_power = (phema_quad)a.gamma + 1;
            phema_quad b_power = (phema_quad)b.gamma + 1;
            double white = integrate(density, a, b);
            double walk = integrate(after, a, b);
            assert_near((double)phema_white_product(a_power, b_power, (phema_quad)a.t, decay),
                        white, 1e-9 * white);
            assert_near((double)phema_walk_product(a_power, b_power, (phema_quad)a.t, decay), walk,
                        1e-9 * walk);
        }
    }
}

/* The scaled matrix is that of the integrals, in any order of the snapshots. */
static void matrices_hold_cosines(void **state)
{
    (void)state;
    struct phema_profile snapshots[ARRAY_LEN(powers)];
    for (size_t i = 0; i < ARRAY_LEN(powers); i++)
        snapshots[i] = (struct phema_profile){.gamma = powers[i].gamma, .t = powers[i].t};
    struct power wanted = {3.5, 800};
    struct phema_profile target = {.gamma = wanted.gamma, .t = wanted.t};
    struct phema_grams grams;
    struct phema_error err = {0};
    size_t n = ARRAY_LEN(powers);
    assert_ok(build_grams(&grams, snapshots, n, &target, 1, &err), &err);
    function *functions[] = {density, after};
    const struct phema_gram *metrics[] = {&grams.white, &grams.walk};
    for (size_t k = 0; k < 2; k++) {
        double target_length = sqrt(integrate(functions[k], wanted, wanted));
        assert_near((double)metrics[k]->lengths[n], target_length, 1e-9 * target_length);
        for (size_t i = 0; i < n; i++) {
            double length = sqrt(integrate(functions[k], powers[i], powers[i]));
            double with_target = integrate(functions[k], powers[i], wanted);
            assert_near((double)metrics[k]->cosines[i], with_target / length / target_length, 1e-9);
            for (size_t j = 0; j < n; j++) {
                double other = sqrt(integrate(functions[k], powers[j], powers[j]));
                double product = integrate(functions[k], powers[i], powers[j]);
                assert_near((double)phema_quad_from_fixed(metrics[k]->matrix[i * n + j]),
                            product / length / other, 1e-9);
            }
        }
    }
    phema_grams_clear(&grams);
}

/* Powers too small for a quad are 0, not NaN. */
static void products_far_apart_are_zero(void **state)
{
    (void)state;
    const struct phema_profile snapshots[] = {
        {.gamma = 1e6, .t = 1}, {.gamma = 1e6, .t = 9e15}, {.gamma = 1e15, .t = 4}};
    struct phema_grams grams;
    struct phema_error err = {0};
    assert_ok(build_grams(&grams, snapshots, 3, NULL, 0, &err), &err);
    assert_true(grams.white.matrix[1] == 0 && grams.white.matrix[2] >= 0);
    assert_true(grams.white.matrix[2] < PHEMA_FIXED_ONE / 1000);
    phema_grams_clear(&grams);
}

/* The entries near the diagonal, whatever the order of the times, and with one row for all. */
static void a_band_is_cut_from_the_matrix(void **state)
{
    (void)state;
    enum { N = ARRAY_LEN(powers) };
    struct phema_profile snapshots[N];
    for (size_t i = 0; i < N; i++)
        snapshots[i] = (struct phema_profile){.gamma = powers[i].gamma, .t = powers[i].t};
    double ends[] = {300, 1000}, wander[] = {2e-5, 1e-5}, jitter[] = {0, 1e-3};
    const struct phema_motion motion = {
        .n_intervals = 2, .ends = ends, .wander = wander, .jitter = jitter};
    const struct phema_problem problem = {.snapshots = snapshots, .n = N, .motion = &motion};
    struct phema_grams grams;
    struct phema_error err = {0};
    assert_ok(phema_grams_build(&grams, &problem, false, &err), &err);
    for (size_t reach = 1; reach <= N + 1; reach++) {
        struct phema_gram_band band;
        assert_ok(phema_gram_band_build(&band, &problem, reach, &err), &err);
        assert_int_equal(band.reach, reach < N ? reach : N);
        assert_memory_equal(band.lengths, grams.motion.lengths, N * sizeof(*band.lengths));
        for (size_t i = 0; i < N; i++)
            for (size_t k = 0; k < band.reach && i + k < N; k++)
                assert_true(band.cosines[i * band.reach + k] == grams.motion.matrix[i * N + i + k]);
        phema_gram_band_clear(&band);
    }
    phema_grams_clear(&grams);
}

/* As multiplication does, but for denormal numbers. */
static void shifts_multiply_by_powers_of_two(void **state)
{
    (void)state;
    static const int exponents[] = {-188, -126, -1, 0, 1, 126, 4000};
    const phema_quad numbers[] = {1, -1, (phema_quad)1 / 3, (phema_quad)-1e-30L, 7};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        for (size_t e = 0; e < ARRAY_LEN(exponents); e++)
            assert_true(phema_quad_shifted(numbers[i], exponents[e]) ==
                        numbers[i] * (phema_quad)ldexpl(1, exponents[e]));
    assert_true(phema_quad_shifted(0, 126) == 0 && phema_quad_shifted(0, -126) == 0);
    phema_quad tiny = (phema_quad)LDBL_MIN;
    assert_true(phema_quad_shifted(-tiny, -126) == 0 && phema_quad_shifted(tiny, 1) == 2 * tiny);
}

static uint64_t next_random(uint64_t random)
{
    return random * 6364136223846793005U + 1442695040888963407U;
}

static void dot_products_with_whole_numbers_are_exact(void **state)
{
    (void)state;
    enum { N = 700 };
    static phema_fixed a[N];
    static int64_t b[N];
    phema_quad sum = 0;
    uint64_t random = 1;
    for (size_t i = 0; i < N; i++) {
        random = next_random(random);
        a[i] = phema_fixed_from_quad((phema_quad)random / (phema_quad)0x1p63 - 1);
        a[i] += (phema_fixed)(random >> 5); /* all low bits in use, of both signs */
        random = next_random(random);
        b[i] = (int64_t)(random >> 12) - ((int64_t)1 << 51);
        sum += phema_quad_from_fixed(a[i]) * (phema_quad)b[i];
    }
    phema_quad error = phema_fixed_dot_whole(a, b, N) - sum;
    assert_true(phema_quad_abs(error) < (phema_quad)0x1p56 * (phema_quad)0x1p-110);
    a[0] = -PHEMA_FIXED_ONE;
    b[0] = -((int64_t)1 << 62);
    assert_true(phema_fixed_dot_whole(a, b, 1) == (phema_quad)0x1p62);
    assert_true(phema_fixed_dot_whole(a, b, 0) == 0);
}

static void fixed_dot_products_are_exact(void **state)
{
    (void)state;
    enum { N = 700 };
    static phema_fixed a[N];
    static phema_fixed b[N];
    phema_quad sum = 0;
    uint64_t random = 1;
    for (size_t i = 0; i < N; i++) {
        phema_quad x[2];
        for (size_t k = 0; k < 2; k++) {
            random = next_random(random);
            /* both signs, magnitudes down to 1e-30, all low bits in use */
            x[k] = ((phema_quad)(random >> 11) / (phema_quad)0x1p52 - 1) / 3;
            x[k] = i % 7 == 0 ? x[k] * (phema_quad)1e-30 : x[k] / 9;
        }
        a[i] = phema_fixed_from_quad(x[0]);
        b[i] = phema_fixed_from_quad(x[1]);
        sum += phema_quad_from_fixed(a[i]) * phema_quad_from_fixed(b[i]);
    }
    phema_quad error = phema_fixed_dot(a, b, N) - sum;
    assert_true(phema_quad_abs(error) < (phema_quad)1e-32); /* the error of the quad sum */
    a[0] = -PHEMA_FIXED_ONE;
    b[0] = PHEMA_FIXED_ONE;
    assert_true(phema_fixed_dot(a, b, 1) == -1);
    assert_true(phema_fixed_dot(a, a, 1) == 1);
    assert_true(phema_fixed_dot(a, b, 0) == 0);
}

static void a_quad_has_113_bits(void **state)
{
    (void)state;
    volatile phema_quad one = 1;
    assert_true(one + (phema_quad)0x1p-112 > 1);
    assert_true(one + (phema_quad)0x1p-114 == 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(closed_forms_are_the_integrals),
    cmocka_unit_test(matrices_hold_cosines),
    cmocka_unit_test(products_far_apart_are_zero),
    cmocka_unit_test(a_band_is_cut_from_the_matrix),
    cmocka_unit_test(shifts_multiply_by_powers_of_two),
    cmocka_unit_test(dot_products_with_whole_numbers_are_exact),
    cmocka_unit_test(fixed_dot_products_are_exact),
    cmocka_unit_test(a_quad_has_113_bits),
};
TEST_GROUP(tests)
