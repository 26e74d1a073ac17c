// SPDX-License-Identifier: Apache-2.0
/* test_trainers.c - averages of trainers: the weights that were computed beside checkpoints of
 * their own code (fixtures/golden/trainer_profiles.txt), and their rules, followed step by step. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile_at.h"

/* The weight of the parameters up to a step, by the betas after it. */
static double weight_until(const struct phema_profile *profile, uint64_t step)
{
    double weight = 1;
    for (uint64_t s = step + 1; (double)s <= profile->t; s++)
        weight *= phema_profile_beta(profile, s);
    return weight;
}

static void assert_weight(double found, double wanted, const char *spec, uint64_t step)
{
    if (!(fabs(found - wanted) <= 1e-10 * fmax(wanted, 1e-30)))
        fail_msg("%s: until step %llu: expected %.17g, found %.17g", spec, (unsigned long long)step,
                 wanted, found);
}

/* ---- Checkpoints of the trainers ---- */

static void check_line(char *line)
{
    struct phema_arena arena = {0};
    char *rest = NULL;
    const char *trainer = strtok_r(line, " \n", &rest);
    const char *spec = strtok_r(NULL, " \n", &rest);
    const char *end = strtok_r(NULL, " \n", &rest);
    assert_non_null(trainer);
    assert_non_null(end);
    struct phema_profile profile = profile_at(&arena, spec, atof(end));
    size_t n = 0;
    for (const char *item; (item = strtok_r(NULL, " \n", &rest)); n++) {
        char *equals = NULL;
        uint64_t step = strtoull(item, &equals, 10);
        double wanted = strtod(equals + 1, NULL), time = (double)step, curve = 0;
        assert_weight(weight_until(&profile, step), wanted, spec, step);
        phema_profile_cumulative(&curve, &profile, &time, 1);
        if (profile.shape == PHEMA_SHAPE_POWER)
            assert_weight(curve, wanted, spec, step);
    }
    assert_true(n > 5);
    phema_arena_clear(&arena);
}

static void weights_are_those_of_the_checkpoints(void **state)
{
    (void)state;
    char *path = support_fixture("golden/trainer_profiles.txt");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[4096];
    size_t n = 0;
    while (fgets(line, sizeof(line), file))
        if (line[0] != '#') {
            check_line(line);
            n++;
        }
    assert_int_equal(n, 28);
    (void)fclose(file);
    free(path);
}

/* ---- Rules ---- */

/* wanted: the betas of steps 1 to 12; -1: no update */
static void assert_betas(const char *spec, const double *wanted)
{
    struct phema_arena arena = {0};
    struct phema_profile profile = profile_at(&arena, spec, 12);
    for (uint64_t step = 1; step <= 12; step++) {
        double beta = wanted[step - 1] < 0 ? 1 : wanted[step - 1];
        if (fabs(phema_profile_beta(&profile, step) - beta) > 1e-15)
            fail_msg("%s: step %llu: expected %.17g, found %.17g", spec, (unsigned long long)step,
                     beta, phema_profile_beta(&profile, step));
    }
    phema_arena_clear(&arena);
}

/* 2^(-1/(0.5 k)) */
static double titan(double k)
{
    return exp2(-2 / k);
}

static void titan_counts_in_four_ways(void **state)
{
    (void)state;
    const double n = -1;
    /* start 2, every 3, bias 1 */
    assert_betas("titan:fraction=0.5,start=2,every=3,bias=1",
                 (double[]){n, n, n, n, titan(2), n, n, titan(3), n, n, titan(4), n});
    assert_betas("titan:fraction=0.5,start=2,every=3,bias=1,counting=counter",
                 (double[]){n, titan(2), n, n, titan(3), n, n, titan(4), n, n, titan(5), n});
    assert_betas("titan:fraction=0.5,start=2,every=3,bias=1,counting=floor",
                 (double[]){n, titan(1), n, n, titan(1), n, n, titan(2), n, n, titan(3), n});
    assert_betas("titan:fraction=0.5,start=2,every=3,bias=1,counting=steps",
                 (double[]){n, titan(1), n, n, titan(4), n, n, titan(7), n, n, titan(10), n});
    /* the defaults count alike */
    double every_step[12];
    for (int i = 0; i < 12; i++)
        every_step[i] = titan(i + 1);
    assert_betas("titan:fraction=0.5", every_step);
    assert_betas("titan:0.5,counting=counter", every_step);
    assert_betas("titan:0.5,counting=floor", every_step);
    assert_betas("titan:0.5,counting=steps", every_step);
}

static void lightning_begins_with_a_copy(void **state)
{
    (void)state;
    const double n = -1;
    assert_betas("lightning:decay=0.9,every=4", (double[]){0, n, n, n, 0.9, n, n, n, 0.9, n, n, n});
    assert_betas("lightning:decay=0.9,every=4,start=5",
                 (double[]){n, n, n, n, n, n, n, n, 0, n, n, n});
    assert_betas("lightning:start=8", (double[]){n, n, n, n, n, n, n, n, 0, 0.999, 0.999, 0.999});
}

static void a_shifted_clock_keeps_some_of_the_first_parameters(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    struct phema_profile shifted = profile_at(&arena, "cosmos:shift=500", 240);
    struct phema_profile plain = profile_at(&arena, "power:0.1", 740);
    double at[] = {0, 100, 239.5}, later[] = {500, 600, 739.5}, a[3], b[3];
    phema_profile_cumulative(a, &shifted, at, 3);
    phema_profile_cumulative(b, &plain, later, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(a[i] == b[i]);
    /* a new count begins with the same shift */
    struct phema_reset reset = {.at = 60, .restarts_count = true};
    struct phema_error err = {0};
    assert_ok(phema_profile_reset(&shifted, &reset, 1, &err), &err);
    assert_true(shifted.reset == 60 && shifted.origin == -440);
    phema_arena_clear(&arena);
}

/* ---- Texts ---- */

static void texts_are_canonical(void **state)
{
    (void)state;
    static const struct {
        const char *text, *canonical, *file_part;
    } cases[] = {
        {"titan", "titan", "titan"},
        {"titan:0.05", "titan", "titan"},
        {"titan:fraction=0.1,counting=floor", "titan:fraction=0.1,counting=floor",
         "titan0.1-countingfloor"},
        {"titan:decay=0.99,every=4,start=21", "titan:decay=0.99,start=21,every=4",
         "titan-decay0.99-start21-every4"},
        {"cosmos", "cosmos", "cosmos"},
        {"cosmos:sigma-rel=0.05,shift=500", "cosmos:sigma-rel=0.05,shift=500",
         "cosmos0.05-shift500"},
        {"lightning:0.99,start=10", "lightning:decay=0.99,start=10", "lightning0.99-start10"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct phema_arena arena = {0};
        struct phema_error err = {0};
        struct phema_spec *spec = NULL;
        assert_ok(phema_spec_parse(&spec, &arena, cases[i].text, &err), &err);
        assert_string_equal(spec->canonical, cases[i].canonical);
        assert_string_equal(spec->file_part, cases[i].file_part);
        phema_arena_clear(&arena);
    }
}

static void invalid_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        enum phema_status status;
    } cases[] = {
        {"titan:fraction=0", "expected a number from 1e-6", PHEMA_ERR_USAGE},
        {"titan:fraction=0.1,decay=0.9", "fraction or decay, found both", PHEMA_ERR_USAGE},
        {"titan:decay=1", "decay: expected", PHEMA_ERR_USAGE},
        {"titan:every=0", "expected a count from 1", PHEMA_ERR_USAGE},
        {"titan:counting=none", "expected count|counter|floor|steps, found 'none'",
         PHEMA_ERR_USAGE},
        {"titan:counting=count|counter", "expected count|counter", PHEMA_ERR_USAGE},
        {"titan:counting=", "expected count|counter", PHEMA_ERR_USAGE},
        {"cosmos:sigma-rel=0.5", "no power-function average is wider", PHEMA_ERR_TARGET},
        {"cosmos:shift=-1", "shift", PHEMA_ERR_USAGE},
        {"lightning:decay=1.5", "expected a number from 0 to 1", PHEMA_ERR_USAGE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct phema_arena arena = {0};
        struct phema_error err = {0};
        struct phema_spec *spec = NULL;
        enum phema_status status = phema_spec_parse(&spec, &arena, cases[i].text, &err);
        struct phema_profile profile;
        if (!status)
            status = phema_spec_profile(&profile, spec, 100, &err);
        assert_fails(status, cases[i].status, &err, cases[i].part);
        phema_arena_clear(&arena);
    }
    /* before its first update an average does not exist */
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_spec *spec = NULL;
    struct phema_profile profile;
    assert_ok(phema_spec_parse(&spec, &arena, "titan:start=200", &err), &err);
    assert_fails(phema_spec_profile(&profile, spec, 100, &err), PHEMA_ERR_INPUTS, &err,
                 "has no step until time 100");
    phema_arena_clear(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(weights_are_those_of_the_checkpoints),
    cmocka_unit_test(titan_counts_in_four_ways),
    cmocka_unit_test(lightning_begins_with_a_copy),
    cmocka_unit_test(a_shifted_clock_keeps_some_of_the_first_parameters),
    cmocka_unit_test(texts_are_canonical),
    cmocka_unit_test(invalid_texts_are_refused),
};
TEST_GROUP(tests)
