// SPDX-License-Identifier: Apache-2.0
/* test_evaluate.c - cumulative profiles compared with their definitions and with products of betas.
 * Betas compared with the profiles and with steps worked out by hand. */
#include "support.h"

#include <math.h>

#include "phema/profile.h"

static double at(const struct phema_profile *profile, double t)
{
    double found = -1;
    phema_profile_cumulative(&found, profile, &t, 1);
    return found;
}

static void continuous_shapes_are_their_definitions(void **state)
{
    (void)state;
    struct phema_profile power = {.gamma = 6.94, .t = 1000};
    assert_near(at(&power, 500), pow(0.5, 7.94), 1e-15);
    assert_near(at(&power, 0), 0, 0);
    struct phema_profile ema = {.shape = PHEMA_SHAPE_EMA, .half_life = 100, .t = 1000};
    assert_near(at(&ema, 900), 0.5, 1e-15);
    assert_near(at(&ema, 0), 0x1p-10, 1e-18); /* the weight of the time before training */
    struct phema_profile window = {.shape = PHEMA_SHAPE_WINDOW, .length = 400, .t = 1000};
    assert_near(at(&window, 700), 0.25, 1e-15);
    assert_near(at(&window, 500), 0, 0);
    struct phema_profile cosine = {.shape = PHEMA_SHAPE_COSINE, .length = 400, .t = 1000};
    assert_near(at(&cosine, 800), 0.5, 1e-15);
    struct phema_profile root = {.shape = PHEMA_SHAPE_MINUS_SQRT, .length = 400, .t = 1000};
    assert_near(at(&root, 700), 0.5, 1e-15);
    /* The half-life is 0.1 t up to 50 at t = 500. So (1/2)^10 from 500 to 1000, and (t/500)^(10 ln
     * 2) before that. */
    struct phema_profile ramped = {
        .shape = PHEMA_SHAPE_RAMPED, .half_life = 50, .ramp = 0.1, .t = 1000};
    assert_near(at(&ramped, 500), 0x1p-10, 1e-18);
    assert_near(at(&ramped, 250), 0x1p-10 * pow(0.5, 10 * log(2)), 1e-18);
}

static void all_weight_lies_before_the_end(void **state)
{
    (void)state;
    for (int shape = PHEMA_SHAPE_POWER; shape < PHEMA_SHAPE_TABLE; shape++) {
        struct phema_profile profile = {.gamma = 3,
                                        .t = 1000,
                                        .half_life = 20,
                                        .ramp = 0.1,
                                        .length = 300,
                                        .shape = (enum phema_shape)shape};
        assert_true(at(&profile, 1000) == 1);
        assert_true(at(&profile, 5000) == 1);
        assert_true(at(&profile, 999) < 1);
    }
    struct phema_profile raw = {.shape = PHEMA_SHAPE_RAW, .t = 1000};
    assert_true(at(&raw, 999.999) == 0);
}

/* beta = (c/(c+1))^(gamma+1) at the steps c = 1, 11, 21, ..., and 0 at the first */
static void updates_are_a_product_of_betas(void **state)
{
    (void)state;
    struct phema_profile comb = {.gamma = 5, .update_every = 10, .t = 1000};
    for (int from = 1; from <= 1000; from += 10) {
        double wanted = 1;
        for (int c = from + 10; c <= 1000; c += 10)
            wanted *= pow(c / (c + 1.0), 6);
        assert_near(at(&comb, from), wanted, 1e-14);
    }
    assert_near(at(&comb, 0.5), at(&comb, 1) / 2, 1e-18);
    assert_near(at(&comb, 504), 0.7 * at(&comb, 501) + 0.3 * at(&comb, 511), 1e-15);
    assert_true(at(&comb, 995) == 1); /* the last update was at 991 */
}

static void tables_are_a_product_of_betas(void **state)
{
    (void)state;
    static const uint64_t steps[] = {10, 20, 30, 50, 70};
    static const double betas[] = {0.5, 0.8, 0.25, 0.5, 0.1};
    const struct phema_betas list = {steps, betas, ARRAY_LEN(steps), NULL};
    struct phema_profile table = {.shape = PHEMA_SHAPE_TABLE, .betas = &list, .t = 60};
    static const double times[] = {0, 9, 9.5, 10, 15, 20, 30, 45, 50, 55, 60};
    double found[ARRAY_LEN(times)];
    phema_profile_cumulative(found, &table, times, ARRAY_LEN(times));
    assert_near(found[0], 0.5 * 0.8 * 0.25 * 0.5, 1e-17);
    assert_near(found[1], 0.05, 1e-17);
    assert_near(found[2], (0.05 + 0.1) / 2, 1e-17);
    assert_near(found[3], 0.1, 1e-17);
    assert_near(found[4], (0.1 + 0.125) / 2, 1e-17);
    assert_near(found[5], 0.125, 1e-17);
    assert_near(found[6], 0.5, 1e-17);
    assert_near(found[7], 0.5 + 0.75 * 0.5, 1e-16);
    for (size_t i = 8; i < ARRAY_LEN(times); i++)
        assert_true(found[i] == 1);
}

/* ---- Betas: the weights at the end, and steps worked out by hand ---- */

#define END 60

/* F of the documented shapes, in long double. */
static long double weight_before(const struct phema_profile *profile, long double t)
{
    long double x = 1 - ((long double)profile->t - t) / (long double)profile->length;
    x = fminl(fmaxl(x, 0), 1);
    switch (profile->shape) {
    case PHEMA_SHAPE_EMA:
        return exp2l(-((long double)profile->t - t) / (long double)profile->half_life);
    case PHEMA_SHAPE_WINDOW:
        return x;
    case PHEMA_SHAPE_COSINE:
        return 1 - (1 + cosl(3.14159265358979323846264338327950288L * x)) / 2;
    case PHEMA_SHAPE_MINUS_SQRT:
        return sqrtl(x);
    default:
        return powl(t / (long double)profile->t, (long double)profile->gamma + 1);
    }
}

/* The weight of a step is the share that the average adds there, times the betas of all later
 * steps. */
static void betas_give_the_weights_of_the_profile(void **state)
{
    (void)state;
    static const struct phema_profile profiles[] = {
        {.shape = PHEMA_SHAPE_POWER, .t = END, .gamma = 6.94},
        {.shape = PHEMA_SHAPE_POWER, .t = END, .gamma = -0.25},
        {.shape = PHEMA_SHAPE_EMA, .t = END, .half_life = 7.5},
        {.shape = PHEMA_SHAPE_WINDOW, .t = END, .length = 20},
        {.shape = PHEMA_SHAPE_WINDOW, .t = END, .length = 20.25},
        {.shape = PHEMA_SHAPE_WINDOW, .t = END, .length = END},
        {.shape = PHEMA_SHAPE_COSINE, .t = END, .length = 20},
        {.shape = PHEMA_SHAPE_COSINE, .t = END, .length = 33.5},
        {.shape = PHEMA_SHAPE_MINUS_SQRT, .t = END, .length = 20},
        {.shape = PHEMA_SHAPE_MINUS_SQRT, .t = END, .length = 0.5},
    };
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
        long double kept = 1;
        for (uint64_t step = END; step > 0; step--) {
            long double beta = (long double)phema_profile_beta(&profiles[i], step);
            long double wanted = weight_before(&profiles[i], (long double)step) -
                                 weight_before(&profiles[i], (long double)step - 1);
            assert_near((double)(kept * (1 - beta)), (double)wanted, 1e-15);
            kept *= beta;
        }
        assert_near((double)kept, (double)weight_before(&profiles[i], 0), 1e-15);
    }
}

static void betas_are_those_worked_out_by_hand(void **state)
{
    (void)state;
    struct phema_profile ema = {.shape = PHEMA_SHAPE_EMA, .half_life = 1};
    assert_true(phema_profile_beta(&ema, 1) == 0.5 && phema_profile_beta(&ema, 1000) == 0.5);
    /* 2^(-1/(0.25 step)) = 2^(-4/step), until the half-life of 8 is reached at step 32 */
    struct phema_profile ramped = {.shape = PHEMA_SHAPE_RAMPED, .half_life = 8, .ramp = 0.25};
    assert_true(phema_profile_beta(&ramped, 1) == 0x1p-4);
    assert_true(phema_profile_beta(&ramped, 4) == 0.5);
    assert_true(phema_profile_beta(&ramped, 31) < phema_profile_beta(&ramped, 32));
    assert_true(phema_profile_beta(&ramped, 33) == phema_profile_beta(&ramped, 32));
    assert_true(phema_profile_beta(&ramped, 32) == 0.91700404320467123174); /* 2^(-1/8) */
    struct phema_profile window = {.shape = PHEMA_SHAPE_WINDOW, .t = 100, .length = 4};
    static const double betas[] = {0, 0, 0.5, 2.0 / 3, 0.75, 1, 1};
    for (size_t i = 0; i < ARRAY_LEN(betas); i++)
        assert_true(phema_profile_beta(&window, 96 + i) == betas[i]);
    struct phema_profile root = {.shape = PHEMA_SHAPE_MINUS_SQRT, .t = 100, .length = 4};
    assert_true(phema_profile_beta(&root, 100) == sqrt(0.75));
    struct phema_profile raw = {.shape = PHEMA_SHAPE_RAW, .t = 100};
    assert_true(phema_profile_beta(&raw, 100) == 0);
}

static void update_every_matches_ema_pytorch(void **state)
{
    (void)state;
    struct phema_profile power = {.shape = PHEMA_SHAPE_POWER, .gamma = 1, .update_every = 10};
    assert_true(phema_profile_beta(&power, 1) == 0); /* copied */
    assert_true(phema_profile_beta(&power, 2) == 1 && phema_profile_beta(&power, 10) == 1);
    assert_true(phema_profile_beta(&power, 11) == 121.0 / 144); /* (11/12)^2 */
}

static void steps_missing_in_a_table_change_nothing(void **state)
{
    (void)state;
    static const uint64_t steps[] = {2, 3, 10};
    static const double values[] = {0.25, 0, 0.5};
    struct phema_betas betas = {steps, values, 3, NULL};
    struct phema_profile table = {.shape = PHEMA_SHAPE_TABLE, .betas = &betas};
    static const double wanted[] = {1, 1, 0.25, 0, 1, 1, 1, 1, 1, 1, 0.5, 1};
    for (size_t step = 0; step < ARRAY_LEN(wanted); step++)
        assert_true(phema_profile_beta(&table, step) == wanted[step]);
    assert_true(phema_profile_beta(&table, UINT64_MAX) == 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(continuous_shapes_are_their_definitions),
    cmocka_unit_test(all_weight_lies_before_the_end),
    cmocka_unit_test(updates_are_a_product_of_betas),
    cmocka_unit_test(tables_are_a_product_of_betas),
    cmocka_unit_test(betas_give_the_weights_of_the_profile),
    cmocka_unit_test(betas_are_those_worked_out_by_hand),
    cmocka_unit_test(update_every_matches_ema_pytorch),
    cmocka_unit_test(steps_missing_in_a_table_change_nothing),
};
TEST_GROUP(tests)
