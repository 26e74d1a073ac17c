// SPDX-License-Identifier: Apache-2.0
/* test_kept_rounding.c - the predicted error of averages that are kept in float32, against averages
 * that are kept so beside exact ones, while parameters walk. */
#include "support.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "phema/solver.h"

#define N_PARAMS 64

struct average {
    double half_life, gamma; /* one of them is 0 */
    uint64_t every;
};

static double uniform(uint64_t *state)
{
    return (double)(support_random(state) >> 11) * 0x1p-53;
}

/* Mean 0, variance 1. */
static double step_of(uint64_t *state)
{
    return sqrt(12) * (uniform(state) - 0.5);
}

static struct phema_profile profile_of(const struct average *average, uint64_t n_steps)
{
    struct phema_profile profile = {.t = (double)n_steps, .update_every = average->every};
    profile.shape = average->half_life > 0 ? PHEMA_SHAPE_EMA : PHEMA_SHAPE_POWER;
    profile.half_life = average->half_life;
    profile.gamma = average->gamma;
    return profile;
}

/* 1 - beta of each step; freed by the caller. */
static double *find_fresh(const struct average *average, uint64_t n_steps)
{
    struct phema_profile profile = profile_of(average, n_steps);
    double *fresh = calloc(n_steps, sizeof(*fresh));
    assert_non_null(fresh);
    for (uint64_t step = 1; step <= n_steps; step++)
        fresh[step - 1] = 1 - phema_profile_beta(&profile, step);
    return fresh;
}

/* The relative rms error of float32 after the last step. */
static double keep(const double *fresh, uint64_t n_steps, double rate)
{
    double params[N_PARAMS], exact[N_PARAMS], apart = 0, whole = 0;
    float kept[N_PARAMS];
    uint64_t state = 1;
    for (size_t i = 0; i < N_PARAMS; i++) {
        params[i] = exact[i] = exp2(uniform(&state));
        kept[i] = (float)params[i];
    }
    for (uint64_t step = 0; step < n_steps; step++) {
        for (size_t i = 0; i < N_PARAMS; i++) {
            params[i] += 1.5 * sqrt(rate) * step_of(&state);
            if (!(fresh[step] > 0))
                continue;
            exact[i] += fresh[step] * (params[i] - exact[i]);
            kept[i] += (float)fresh[step] * ((float)params[i] - kept[i]);
        }
    }
    for (size_t i = 0; i < N_PARAMS; i++) {
        apart += ((double)kept[i] - exact[i]) * ((double)kept[i] - exact[i]);
        whole += exact[i] * exact[i];
    }
    return sqrt(apart / whole);
}

static double predict(const struct average *average, uint64_t n_steps, double rate)
{
    double end = (double)n_steps, none = 0;
    const struct phema_motion motion = {
        .n_intervals = 1, .ends = &end, .wander = &rate, .jitter = &none};
    struct phema_profile profile = profile_of(average, n_steps);
    return phema_kept_rounding(&profile, &motion);
}

/* most: the highest rate; parameters walk less than their size */
static void compare(const struct average *averages, size_t n_averages, const uint64_t *lengths,
                    size_t n_lengths, double most)
{
    const double rates[] = {most, 1e-9, 1e-11, 1e-13};
    for (size_t a = 0; a < n_averages; a++) {
        for (size_t n = 0; n < n_lengths; n++) {
            double *fresh = find_fresh(&averages[a], lengths[n]);
            for (size_t r = 0; r < ARRAY_LEN(rates); r++) {
                double seen = keep(fresh, lengths[n], rates[r]);
                double predicted = predict(&averages[a], lengths[n], rates[r]);
                if (!(seen < 2 * predicted && predicted < 2 * seen))
                    fail_msg("average %zu, %g steps, rate %g: %g, not %g", a, (double)lengths[n],
                             rates[r], seen, predicted);
            }
            free(fresh);
        }
    }
}

static void predictions_are_those_of_float32(void **state)
{
    (void)state;
    static const struct average averages[] = {
        {690, 0, 1}, {6900, 0, 1}, {0, 16.97, 1}, {0, 6.94, 1}, {0, 6.94, 10}};
    static const uint64_t lengths[] = {1000, 10000, 40000};
    compare(averages, ARRAY_LEN(averages), lengths, ARRAY_LEN(lengths), 1e-6);
}

/* Slow: 48 averages of up to a million steps; shorter ones are compared by default. */
static void slow_predictions_hold_for_long_trainings(void **state)
{
    (void)state;
    static const struct average averages[] = {{6900, 0, 1}, {69000, 0, 1}, {0, 16.97, 1},
                                              {0, 6.94, 1}, {0, 6.94, 10}, {0, 2.0, 1}};
    static const uint64_t lengths[] = {100000, 1000000};
    compare(averages, ARRAY_LEN(averages), lengths, ARRAY_LEN(lengths), 1e-7);
}

/* beta e + (1 - beta) theta, both rounded: the sum of the weights is below 1 (arithmetic=mul-f32). */
static void products_are_rounded_twice(void **state)
{
    (void)state;
    const uint64_t n = 20000;
    const float keep_factor = 0.999F, add_factor = (float)(1 - 0.999);
    uint64_t *steps = calloc(n, sizeof(*steps)), random = 1;
    double *betas = calloc(n, sizeof(*betas)), *scales = calloc(n, sizeof(*scales)), scale = 1;
    double params[N_PARAMS], exact[N_PARAMS], apart = 0, whole = 0;
    float kept[N_PARAMS];
    assert_true(steps && betas && scales);
    for (size_t i = 0; i < N_PARAMS; i++)
        kept[i] = (float)(params[i] = exact[i] = exp2(uniform(&random)));
    for (uint64_t k = 0; k < n; k++) {
        double before = scale;
        scale = (double)keep_factor * before + (double)add_factor;
        steps[k] = k + 1;
        betas[k] = (double)keep_factor * before / scale;
        scales[k] = scale;
        for (size_t i = 0; i < N_PARAMS; i++) {
            params[i] += 1e-3 * step_of(&random);
            exact[i] += (1 - betas[k]) * (params[i] - exact[i]);
            kept[i] = kept[i] * keep_factor;
            kept[i] = kept[i] + (float)params[i] * add_factor;
        }
    }
    for (size_t i = 0; i < N_PARAMS; i++) {
        double error = (double)kept[i] / scale - exact[i];
        apart += error * error;
        whole += exact[i] * exact[i];
    }
    const struct phema_betas table = {.steps = steps, .betas = betas, .n = n, .scales = scales};
    const struct phema_profile profile = {
        .shape = PHEMA_SHAPE_TABLE, .t = (double)n, .betas = &table};
    double seen = sqrt(apart / whole), predicted = phema_kept_rounding(&profile, NULL);
    if (!(seen < 2 * predicted && predicted < 2 * seen))
        fail_msg("%g, not %g", seen, predicted);
    free(steps);
    free(betas);
    free(scales);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(predictions_are_those_of_float32),
    cmocka_unit_test(slow_predictions_hold_for_long_trainings),
    cmocka_unit_test(products_are_rounded_twice)};
TEST_GROUP(tests)
