// SPDX-License-Identifier: Apache-2.0
/* test_reset.c - averages that were restarted. Their profiles are compared with the recurrence
 * itself, which is simulated in float64 with the parameters of one step at a time set to 1. */
#include "support.h"

#include <math.h>

#include "phema/profile.h"

#define END 120

/* ---- Texts ---- */

static void texts_become_ascending_resets(void **state)
{
    (void)state;
    static const char *const texts[] = {"2k,counter", "512.5", "4096"};
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_reset *resets = NULL;
    assert_ok(phema_resets_parse(&resets, &arena, texts, 3, &err), &err);
    assert_true(resets[0].at == 512.5 && !resets[0].restarts_count);
    assert_true(resets[1].at == 2000 && resets[1].restarts_count);
    assert_true(resets[2].at == 4096 && !resets[2].restarts_count);
    phema_arena_clear(&arena);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *texts[2];
        size_t n;
        const char *part;
    } bad[] = {
        {{""}, 1, "''"},
        {{"x"}, 1, "'x'"},
        {{"100,"}, 1, "'100,': expected T or T,counter"},
        {{"100,counters"}, 1, "'100,counters': expected T or T,counter"},
        {{"100,counter,counter"}, 1, "expected T or T,counter"},
        {{",counter"}, 1, "''"},
        {{"0"}, 1, "'0': expected a time above 0"},
        {{"-5"}, 1, "'-5': expected a time above 0"},
        {{"nan"}, 1, "'nan': expected a time above 0"},
        {{"1e300"}, 1, "below 2^53"},
        {{"1000", "1k,counter"}, 2, "time 1000 is given twice"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct phema_arena arena = {0};
        struct phema_error err = {0};
        struct phema_reset *resets = NULL;
        assert_fails(phema_resets_parse(&resets, &arena, bad[i].texts, bad[i].n, &err),
                     PHEMA_ERR_USAGE, &err, bad[i].part);
        phema_arena_clear(&arena);
    }
}

/* ---- Recurrences ---- */

static const uint64_t steps[] = {1, 4, 9, 20, 21, 40, 61, 77, 110};
static const double values[] = {0.25, 0.5, 0.75, 0.125, 1, 0.5, 0.875, 0, 0.625};
static const struct phema_betas table = {steps, values, ARRAY_LEN(steps), NULL};

/* The beta of a step, counted from 1, as trainers compute it. */
static double trainers_beta(const struct phema_profile *profile, uint64_t count)
{
    double c = (double)count;
    switch (profile->shape) {
    case PHEMA_SHAPE_EMA:
        return exp2(-1 / profile->half_life);
    case PHEMA_SHAPE_RAMPED:
        return exp2(-1 / fmin(profile->half_life, profile->ramp * c));
    case PHEMA_SHAPE_TABLE:
        for (size_t i = 0; i < table.n; i++)
            if (steps[i] == count)
                return values[i];
        return 1;
    default:
        if (profile->update_every <= 1)
            return pow(1 - 1 / c, profile->gamma + 1);
        if (count == 1)
            return 0;
        return (count - 1) % profile->update_every ? 1 : pow(c / (c + 1), profile->gamma + 1);
    }
}

/* The weight of each step [END + 1] in the average of the end of the profile: what a trainer keeps
 * that goes on with copies of the parameters after each of the resets. */
static void simulate(double *weights, const struct phema_profile *profile,
                     const struct phema_reset *resets, size_t n)
{
    for (uint64_t seen = 0; seen <= END; seen++) {
        double average = seen == 0; /* what was before training */
        uint64_t count = 0;
        for (uint64_t step = 1; (double)step <= profile->t; step++) {
            double beta = trainers_beta(profile, ++count);
            average = beta * average + (1 - beta) * (step == seen);
            for (size_t r = 0; r < n; r++) {
                if (resets[r].at != (double)step || resets[r].at >= profile->t)
                    continue;
                average = step == seen;
                count = resets[r].restarts_count ? 0 : count;
            }
        }
        weights[seen] = average;
    }
}

static const struct phema_profile averages[] = {
    {.gamma = 6.94},
    {.gamma = 0.5},
    {.gamma = 6.94, .update_every = 7},
    {.shape = PHEMA_SHAPE_EMA, .half_life = 15},
    {.shape = PHEMA_SHAPE_RAMPED, .half_life = 6, .ramp = 0.25},
    {.shape = PHEMA_SHAPE_TABLE, .betas = &table},
};

static const struct {
    struct phema_reset resets[3];
    size_t n;
} runs[] = {
    {{{50, false}}, 1},
    {{{50, true}}, 1},
    {{{1, false}}, 1},
    {{{1, true}}, 1},
    {{{30, true}, {50, false}}, 2},
    {{{30, false}, {50, true}}, 2},
    {{{20, true}, {40, true}, {71, false}}, 3},
};

static const double ends[] = {END, 72, 51, 50, 2};

static void check_betas(const struct phema_profile *profile, const double *weights, size_t run)
{
    double kept = 1;
    for (uint64_t step = (uint64_t)profile->t; step > 0; step--) {
        double beta = phema_profile_beta(profile, step);
        double found = kept * (1 - beta);
        if (!(fabs(found - weights[step]) <= 1e-13))
            fail_msg("shape %d, run %zu, end %g, step %d: weight %.17g, not %.17g", profile->shape,
                     run, profile->t, (int)step, found, weights[step]);
        kept *= beta;
    }
}

/* F at each step. A profile that is spread over its steps has the same F where it changes. */
static void check_cumulative(const struct phema_profile *profile, const double *weights, size_t run)
{
    bool is_spread = profile->update_every > 1 || profile->shape == PHEMA_SHAPE_TABLE;
    double wanted = weights[0];
    for (int step = 1; step <= (int)profile->t; step++) {
        wanted += weights[step];
        double t = step, found = -1;
        phema_profile_cumulative(&found, profile, &t, 1);
        bool is_smooth = profile->shape != PHEMA_SHAPE_RAMPED; /* between its steps as well */
        bool is_known = (!is_spread || weights[step] > 0) && is_smooth;
        if (is_known && !(fabs(found - wanted) <= 1e-13))
            fail_msg("shape %d, run %zu, end %g, step %d: F %.17g, not %.17g", profile->shape, run,
                     profile->t, step, found, wanted);
    }
}

static void profiles_are_what_the_recurrence_keeps(void **state)
{
    (void)state;
    for (size_t a = 0; a < ARRAY_LEN(averages); a++) {
        for (size_t r = 0; r < ARRAY_LEN(runs); r++) {
            for (size_t e = 0; e < ARRAY_LEN(ends); e++) {
                struct phema_profile profile = averages[a];
                struct phema_error err = {0};
                double weights[END + 1];
                profile.t = ends[e];
                simulate(weights, &profile, runs[r].resets, runs[r].n);
                assert_ok(phema_profile_reset(&profile, runs[r].resets, runs[r].n, &err), &err);
                check_betas(&profile, weights, r);
                check_cumulative(&profile, weights, r);
            }
        }
    }
}

static void what_ends_with_a_reset_was_kept_before(void **state)
{
    (void)state;
    static const struct phema_reset resets[] = {{30, true}, {60, false}};
    struct phema_error err = {0};
    struct phema_profile profile = {.gamma = 6.94, .t = 30};
    assert_ok(phema_profile_reset(&profile, resets, 2, &err), &err);
    assert_true(profile.reset == 0 && profile.origin == 0);
    profile.t = 60;
    assert_ok(phema_profile_reset(&profile, resets, 2, &err), &err);
    assert_true(profile.reset == 30 && profile.origin == 30);
    profile.t = 61;
    assert_ok(phema_profile_reset(&profile, resets, 2, &err), &err);
    assert_true(profile.reset == 60 && profile.origin == 30);
}

static void windows_cannot_be_reset(void **state)
{
    (void)state;
    static const struct phema_reset reset = {50, false};
    struct phema_error err = {0};
    struct phema_profile window = {.shape = PHEMA_SHAPE_WINDOW, .length = 20, .t = 70};
    assert_ok(phema_profile_reset(&window, &reset, 1, &err), &err);
    assert_true(window.reset == 0);
    window.t = 69;
    assert_fails(phema_profile_reset(&window, &reset, 1, &err), PHEMA_ERR_INPUTS, &err,
                 "reaches back beyond the reset at 50");
    struct phema_profile raw = {.shape = PHEMA_SHAPE_RAW, .t = 60};
    assert_ok(phema_profile_reset(&raw, &reset, 1, &err), &err);
    assert_true(raw.reset == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_become_ascending_resets),
    cmocka_unit_test(other_texts_are_refused),
    cmocka_unit_test(profiles_are_what_the_recurrence_keeps),
    cmocka_unit_test(what_ends_with_a_reset_was_kept_before),
    cmocka_unit_test(windows_cannot_be_reset),
};
TEST_GROUP(tests)
