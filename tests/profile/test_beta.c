// SPDX-License-Identifier: Apache-2.0
/* test_beta.c - recurrences of profiles: what they leave at their end, against the profiles; steps
 * that can be worked out by hand. */
#include "support.h"

#include <math.h>

#include "phema/profile.h"

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

/* The weight of each step is what is taken up there and kept until the end. */
static void steps_weigh_what_the_profile_says(void **state)
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

static void updates_now_and_then_are_those_of_ema_pytorch(void **state)
{
    (void)state;
    struct phema_profile power = {.shape = PHEMA_SHAPE_POWER, .gamma = 1, .update_every = 10};
    assert_true(phema_profile_beta(&power, 1) == 0); /* copied */
    assert_true(phema_profile_beta(&power, 2) == 1 && phema_profile_beta(&power, 10) == 1);
    assert_true(phema_profile_beta(&power, 11) == 121.0 / 144); /* (11/12)^2 */
}

static void steps_that_a_table_leaves_out_change_nothing(void **state)
{
    (void)state;
    static const uint64_t steps[] = {2, 3, 10};
    static const double values[] = {0.25, 0, 0.5};
    struct phema_betas betas = {steps, values, 3};
    struct phema_profile table = {.shape = PHEMA_SHAPE_TABLE, .betas = &betas};
    static const double wanted[] = {1, 1, 0.25, 0, 1, 1, 1, 1, 1, 1, 0.5, 1};
    for (size_t step = 0; step < ARRAY_LEN(wanted); step++)
        assert_true(phema_profile_beta(&table, step) == wanted[step]);
    assert_true(phema_profile_beta(&table, UINT64_MAX) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_weigh_what_the_profile_says),
        cmocka_unit_test(betas_are_those_worked_out_by_hand),
        cmocka_unit_test(updates_now_and_then_are_those_of_ema_pytorch),
        cmocka_unit_test(steps_that_a_table_leaves_out_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
