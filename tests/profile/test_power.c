// SPDX-License-Identifier: Apache-2.0
/* test_power.c - conversions between sigma_rel, gamma, beta and half-life. They are compared with
 * the paper, the 32-digit gammas of the golden values, and numbers worked out by hand. */
#include "support.h"

#include <math.h>

#include "phema/profile.h"

/* arXiv:2312.02696, sec. 3.2: the two widths tracked in training, printed with two decimals. */
static void gamma_matches_the_published_pairs(void **state)
{
    (void)state;
    static const double published[][2] = {{0.05, 16.97}, {0.10, 6.94}}; /* sigma_rel, gamma */
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        struct phema_error err = {0};
        double gamma = 0;
        assert_ok(phema_gamma_from_sigma_rel(&gamma, published[i][0], &err), &err);
        assert_near(gamma, published[i][1], 0.005); /* half of the last printed digit */
    }
}

/* From fixtures/golden/weights.json, whose widths are decimals. A double differs from its decimal
 * by up to 2^-53 of itself, which moves gamma by |dgamma/dsigma| times that. */
static void gamma_has_all_digits(void **state)
{
    (void)state;
    static const double golden[][2] = {
        {0.005, 196.99747473121021946859613219450},
        {0.05, 16.972198602303450222446298593180},
        {0.15, 3.5578687748994662225971871038718},
        {0.28, 0.16934399376949928430979226018268},
        {0.2886, 0.0015604288147541769975541060927518},
        {0.2888, -0.0025986694228679043538416652560268},
    };
    for (size_t i = 0; i < ARRAY_LEN(golden); i++) {
        struct phema_error err = {0};
        double gamma = 0;
        double sigma_rel = golden[i][0];
        assert_ok(phema_gamma_from_sigma_rel(&gamma, sigma_rel, &err), &err);
        double slope = fmax(1 / (sigma_rel * sigma_rel), 25); /* d gamma / d sigma_rel */
        assert_near(gamma, golden[i][1], 0x1p-53 * (slope * sigma_rel + fabs(golden[i][1])));
        assert_near(phema_sigma_rel_from_gamma(gamma), sigma_rel, 4 * 0x1p-53 * sigma_rel);
    }
}

static void widths_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    static const double refused[] = {0,     -0.05, (double)NAN, HUGE_VAL, -HUGE_VAL,
                                     0.289, 0.31,  0.5,         1e-300};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct phema_error err = {0};
        double gamma = 17;
        assert_fails(phema_gamma_from_sigma_rel(&gamma, refused[i], &err), PHEMA_ERR_TARGET, &err,
                     "below 0.289");
        assert_true(gamma == 17);
    }
    struct phema_error err = {0};
    double gamma = 0;
    assert_fails(phema_gamma_from_sigma_rel(&gamma, 0.4, &err), PHEMA_ERR_TARGET, &err, "0.300283");
    assert_ok(phema_gamma_from_sigma_rel(&gamma, nextafter(0.289, 0), &err), &err);
    assert_true(gamma < 0 && gamma > -0.01);
}

/* The width is largest, 0.300283, at gamma = (sqrt 5 - 3)/2. */
static void no_width_exceeds_the_supremum(void **state)
{
    (void)state;
    double at = (sqrt(5) - 3) / 2;
    assert_near(phema_sigma_rel_from_gamma(at), PHEMA_SIGMA_REL_SUPREMUM, 5e-7);
    assert_true(phema_sigma_rel_from_gamma(at + 1e-3) < phema_sigma_rel_from_gamma(at));
    assert_true(phema_sigma_rel_from_gamma(at - 1e-3) < phema_sigma_rel_from_gamma(at));
    assert_near(phema_sigma_rel_from_gamma(0), 1 / sqrt(12), 1e-16); /* uniform on [0, 1] */
}

static void beta_is_the_correctly_rounded_power(void **state)
{
    (void)state;
    assert_true(phema_power_beta(0, 2) == 0.5);
    assert_true(phema_power_beta(0, 4) == 0.75);
    assert_true(phema_power_beta(1, 4) == 0.5625);
    assert_true(phema_power_beta(2, 10) == 0.729);
    assert_true(phema_power_beta(6.94, 1) == 0);
    assert_true(phema_power_beta(6.94, 0) == 0);
    /* (1 - 10^-6)^17 = 1 - 17e-6 + 136e-12 - 680e-18 + ... */
    assert_true(phema_power_beta(16, 1000000) == 0.99998300013599932000238);
    assert_true(phema_power_beta(0, 1ULL << 62) == 1);
}

static void half_life_goes_both_ways(void **state)
{
    (void)state;
    /* linear weight (gamma 1): half of the weight lies in the last 1 - 1/sqrt 2 */
    assert_near(phema_half_life_from_gamma(1, 1000), 1000 * (1 - sqrt(0.5)), 1e-12);
    assert_near(phema_half_life_from_gamma(0, 8), 4, 1e-15);
    static const double gammas[] = {-0.4, 0, 0.17, 6.94, 16.97, 1e6};
    for (size_t i = 0; i < ARRAY_LEN(gammas); i++) {
        struct phema_error err = {0};
        double gamma = 0;
        double half_life = phema_half_life_from_gamma(gammas[i], 2e9);
        assert_ok(phema_gamma_from_half_life(&gamma, half_life, 2e9, &err), &err);
        assert_near(gamma, gammas[i], 1e-15 * (1 + gammas[i]) * 4);
    }
    static const double refused[][2] = {{0, 1},           {-1, 1}, {0.75, 1},      {2, 1},
                                        {(double)NAN, 1}, {1, 0},  {1, HUGE_VAL},  {1, (double)NAN},
                                        {1e-30, 1},       {1, -4}, {HUGE_VAL, 1e9}};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct phema_error err = {0};
        double gamma = 17;
        assert_fails(phema_gamma_from_half_life(&gamma, refused[i][0], refused[i][1], &err),
                     PHEMA_ERR_TARGET, &err, "time");
        assert_true(gamma == 17);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gamma_matches_the_published_pairs),
    cmocka_unit_test(gamma_has_all_digits),
    cmocka_unit_test(widths_that_do_not_exist_are_refused),
    cmocka_unit_test(no_width_exceeds_the_supremum),
    cmocka_unit_test(beta_is_the_correctly_rounded_power),
    cmocka_unit_test(half_life_goes_both_ways),
};
TEST_GROUP(tests)
