// SPDX-License-Identifier: Apache-2.0
/* test_spec.c - texts of averages. Expected values come from hand arithmetic, from the rule in the
 * source of diffusers (EMAModel.get_decay), and from the sums that define PMA and WSM. */
#include "profile_at.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static struct phema_spec *parse(struct phema_arena *arena, const char *text)
{
    struct phema_error err = {0};
    struct phema_spec *spec = NULL;
    assert_ok(phema_spec_parse(&spec, arena, text, &err), &err);
    return spec;
}

/* ---- Averages ---- */

static void widths_and_exponents_are_power_functions(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    double gamma = 0;
    assert_ok(phema_gamma_from_sigma_rel(&gamma, 0.1, &err), &err);
    struct phema_profile profile = profile_at(&arena, "power:sigma=0.1", 1000);
    assert_int_equal(profile.shape, PHEMA_SHAPE_POWER);
    assert_true(profile.gamma == gamma);
    assert_int_equal(profile.update_every, 1);
    assert_true(profile_at(&arena, "power:0.1", 1000).gamma == gamma);
    profile = profile_at(&arena, "power:gamma=6.94,update-every=10", 1000);
    assert_true(profile.gamma == 6.94);
    assert_int_equal(profile.update_every, 10);
    struct phema_spec *spec = parse(&arena, "power:gamma=6.94");
    assert_true(spec->is_by_gamma && spec->is_average);
    assert_true(spec->sigma_rel == phema_sigma_rel_from_gamma(6.94));
    spec = parse(&arena, "power:0.1");
    assert_false(spec->is_by_gamma);
    assert_true(spec->sigma_rel == 0.1);
    phema_arena_clear(&arena);
}

static void decays_and_half_lives_are_exponential(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    assert_true(profile_at(&arena, "ema:2k", 5000).half_life == 2000);
    assert_true(profile_at(&arena, "ema:half-life=2Ki", 5000).half_life == 2048);
    struct phema_profile profile = profile_at(&arena, "ema:decay=0.5", 5000);
    assert_int_equal(profile.shape, PHEMA_SHAPE_EMA);
    assert_true(profile.half_life == 1);
    /* -ln 2 / ln 0.9999 of the double, from decimal arithmetic with 40 digits */
    assert_near(profile_at(&arena, "ema:decay=0.9999", 5000).half_life, 6931.1252262334210, 1e-12);
    profile = profile_at(&arena, "edm-ema:half-life=500k,ramp=0.05", 5000);
    assert_int_equal(profile.shape, PHEMA_SHAPE_RAMPED);
    assert_true(profile.half_life == 500000 && profile.ramp == 0.05);
    assert_true(profile_at(&arena, "edm-ema:500k", 5000).ramp == 0.09); /* EDM2's default */
    phema_arena_clear(&arena);
}

static void lengths_reach_no_further_than_the_training(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum phema_shape shape;
    } known[] = {{"window:20k", PHEMA_SHAPE_WINDOW},
                 {"window:length=20k", PHEMA_SHAPE_WINDOW},
                 {"linear:20k", PHEMA_SHAPE_WINDOW},
                 {"cosine:20k", PHEMA_SHAPE_COSINE},
                 {"minus-sqrt:20k", PHEMA_SHAPE_MINUS_SQRT}};
    struct phema_arena arena = {0};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct phema_profile profile = profile_at(&arena, known[i].text, 20000);
        assert_int_equal(profile.shape, known[i].shape);
        assert_true(profile.length == 20000);
        struct phema_error err = {0};
        assert_fails(phema_spec_profile(&profile, parse(&arena, known[i].text), 19999, &err),
                     PHEMA_ERR_INPUTS, &err, "20000 back from time 19999");
    }
    assert_int_equal(profile_at(&arena, "raw", 7).shape, PHEMA_SHAPE_RAW);
    phema_arena_clear(&arena);
}

/* Step 1 copies. Step s has (1 + step)/(10 + step) with step = s - update_after - 1. */
static void diffusers_decays_are_those_of_its_rule(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    const struct phema_betas *betas = profile_at(&arena, "diffusers", 4.5).betas;
    assert_int_equal(betas->n, 4);
    const double plain[] = {0, 2.0 / 11, 3.0 / 12, 4.0 / 13};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(betas->steps[i], i + 1);
        assert_true(betas->betas[i] == plain[i]);
    }
    betas = profile_at(&arena, "diffusers:decay=0.2,min-decay=0.19", 4).betas;
    assert_true(betas->betas[0] == 0 && betas->betas[1] == 0.19 && betas->betas[2] == 0.2);
    betas = profile_at(&arena, "diffusers:warmup=yes,update-after=10", 14).betas;
    for (size_t i = 0; i < 11; i++)
        assert_true(betas->betas[i] == 0);
    assert_near(betas->betas[11], 1 - pow(2, -2.0 / 3), 1e-15);
    assert_near(betas->betas[13], 1 - pow(4, -2.0 / 3), 1e-15);
    /* 1 - (1 + step)^(-2/3) is limited to 0.9999 from step 999999 on */
    betas = profile_at(&arena, "diffusers:warmup=yes", 1100000).betas;
    assert_true(betas->betas[990000] < 0.9999 && betas->betas[1000002] == 0.9999);
    phema_arena_clear(&arena);
}

/* The snapshots of one series differ in their ends only, and share one array of betas. */
static void betas_are_the_same_for_every_end(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_spec *spec = parse(&arena, "diffusers");
    struct phema_profile early = {0}, late = {0};
    assert_ok(phema_spec_profile(&early, spec, 1000, &err), &err);
    assert_ok(phema_spec_profile(&late, spec, 100000, &err), &err);
    assert_ptr_equal(early.betas, late.betas);
    assert_int_equal(late.betas->n, 100000);
    for (size_t i = 0; i < late.betas->n; i++)
        assert_int_equal(late.betas->steps[i], i + 1);
    struct phema_specs specs = {.arena = &arena};
    struct phema_spec *first = NULL, *second = NULL;
    assert_ok(phema_specs_find(&first, &specs, "diffusers", &err), &err);
    assert_ok(phema_specs_find(&second, &specs, "raw", &err), &err);
    assert_ptr_not_equal(first, second);
    assert_ok(phema_specs_find(&second, &specs, "diffusers", &err), &err);
    assert_ptr_equal(first, second);
    assert_fails(phema_spec_profile(&late, spec, 1e9, &err), PHEMA_ERR_RESOURCE, &err,
                 "more than 16777216 steps");
    phema_arena_clear(&arena);
}

/* ---- Tables ---- */

static void write_table(char **path, const char *text)
{
    *path = support_tmp_path("betas.txt");
    support_write(*path, text, strlen(text));
}

static void tables_are_read(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    char *path = NULL;
    write_table(&path, "# step beta\n1 0\r\n\n 10\t0.5 # half\n1k 1"); /* no newline at the end */
    struct phema_strbuf text = {0};
    phema_strbuf_printf(&text, "table:%s", path);
    const struct phema_betas *betas = profile_at(&arena, text.data, 1).betas;
    assert_int_equal(betas->n, 3);
    assert_int_equal(betas->steps[1], 10);
    assert_true(betas->betas[0] == 0 && betas->betas[1] == 0.5);
    struct phema_spec *spec = parse(&arena, text.data);
    assert_string_equal(spec->canonical, text.data);
    assert_string_equal(spec->file_part, "table-betas.txt");
    struct phema_profile profile;
    assert_fails(phema_spec_profile(&profile, spec, 0.5, &err), PHEMA_ERR_INPUTS, &err,
                 "no step until");
    phema_strbuf_clear(&text);
    free(path);
    phema_arena_clear(&arena);
}

static void invalid_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } hostile[] = {
        {"# nothing\n", "has no steps"},
        {"1 0.5\n1 0.5\n", "line 2: expected a step after 1, found 1"},
        {"2 0.5\n1 0.5\n", "line 2: expected a step after 2, found 1"},
        {"0 0.5\n", "line 1: expected a step after 0, found 0"},
        {"1\n", "line 1: expected a step and its beta"},
        {"1 0.5 7\n", "line 1: expected a step and its beta"},
        {"1.5 0.5\n", "line 1: expected a whole number like 16 or 20k, found '1.5'"},
        {"-1 0.5\n", "line 1: expected a whole number like 16 or 20k, found '-1'"},
        {"9007199254740992 0.5\n", "expected a whole number"},
        {"1 1.1\n", "line 1: expected a beta from 0 to 1"},
        {"1 -0.1\n", "expected a beta from 0 to 1"},
        {"1 nan\n", "expected a beta from 0 to 1"},
        {"1 0x1\n", "line 1: expected a number like 0.1 or 20k, found '0x1'"},
        {"1 half\n", "line 1: expected a number like 0.1 or 20k, found 'half'"},
    };
    struct phema_arena arena = {0};
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        char *path = NULL;
        write_table(&path, hostile[i].text);
        struct phema_strbuf text = {0};
        phema_strbuf_printf(&text, "table:%s", path);
        struct phema_error err = {0};
        struct phema_spec *spec = NULL;
        assert_fails(phema_spec_parse(&spec, &arena, text.data, &err), PHEMA_ERR_FILE, &err,
                     hostile[i].message);
        assert_null(spec);
        phema_strbuf_clear(&text);
        free(path);
    }
    char *path = support_tmp_path("betas.txt");
    support_write(path, "1 \0 2\n", 6);
    struct phema_strbuf text = {0};
    phema_strbuf_printf(&text, "table:%s", path);
    struct phema_error err = {0};
    struct phema_spec *spec = NULL;
    assert_fails(phema_spec_parse(&spec, &arena, text.data, &err), PHEMA_ERR_FILE, &err,
                 "line 1: is no line of text");
    char *line = malloc(1000);
    memset(line, '1', 1000);
    support_write(path, line, 1000);
    assert_fails(phema_spec_parse(&spec, &arena, text.data, &err), PHEMA_ERR_FILE, &err,
                 "line 1: is no line of text");
    assert_fails(phema_spec_parse(&spec, &arena, "table:/nowhere/at/all", &err), PHEMA_ERR_FILE,
                 &err, "/nowhere/at/all");
    free(line);
    phema_strbuf_clear(&text);
    free(path);
    phema_arena_clear(&arena);
}

/* ---- Merges and differences ---- */

static void check_merge(const char *text, double at, const double *wanted, const double *ends,
                        size_t n)
{
    static const double times[] = {100, 200, 300, 400, 500};
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_mix mix = {0};
    struct phema_spec *spec = parse(&arena, text);
    assert_false(spec->is_average);
    assert_ok(phema_spec_mix(&mix, spec, at, times, ARRAY_LEN(times), &err), &err);
    assert_int_equal(mix.n_parts, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        assert_near(mix.factors[i], wanted[i], 1e-15);
        assert_int_equal(mix.parts[i].shape, PHEMA_SHAPE_RAW);
        assert_true(mix.parts[i].t == ends[i]);
        sum += mix.factors[i];
    }
    assert_near(sum, 1, 1e-15);
    phema_arena_clear(&arena);
}

static void merges_weigh_the_last_snapshots(void **state)
{
    (void)state;
    static const double last[] = {200, 300, 400, 500};
    static const double third[] = {1 / 3.0, 1 / 3.0, 1 / 3.0}, sixth[] = {1 / 6.0, 2 / 6.0, 0.5};
    static const double quarter[] = {0.25, 0.25, 0.25, 0.25};
    check_merge("sma:3", 500, third, last + 1, 3);
    check_merge("sma:3", 450, third, last, 3); /* later snapshots do not take part */
    check_merge("wma:n=3", 400, sixth, last, 3);
    /* M_1 = W_1, M_2 = 0.2 W_2 + 0.8 M_1, M_3 = 0.2 W_3 + 0.8 M_2 */
    static const double recursive[] = {0.64, 0.16, 0.2};
    check_merge("ema-merge:alpha=0.2,n=3", 500, recursive, last + 1, 3);
    static const double all[] = {0.0625, 0.0625, 0.125, 0.25, 0.5};
    static const double ends[] = {100, 200, 300, 400, 500};
    check_merge("ema-merge:0.5", 500, all, ends, 5);
    /* w_i = decay(i/4) = (0.853553, 0.5, 0.146447), (0.5, 0.292893, 0.133975), (0.75, 0.5, 0.25) */
    const double root = sqrt(0.5);
    const double cosine[] = {0.5 - root / 2, root / 2, root / 2, 0.5 - root / 2};
    const double minus[] = {0.5, root - 0.5, sqrt(0.75) - root, 1 - sqrt(0.75)};
    check_merge("wsm-linear:4", 500, quarter, last, 4);
    check_merge("wsm-cosine:4", 500, cosine, last, 4);
    check_merge("wsm-minus-sqrt:4", 500, minus, last, 4);
    static const double one[] = {1};
    check_merge("wsm-cosine:1", 500, one, last + 3, 1);
}

static void an_extrapolation_is_the_least_squares_line(void **state)
{
    (void)state;
    /* from Python's fractions: 1/n + (T - mean)(t_i - mean) / sum of (t_j - mean)^2 */
    static const double ends[] = {100, 200, 300, 400, 500};
    static const double all[] = {-0.8, -0.3, 0.2, 0.7, 1.2}, two[] = {-2, 3};
    check_merge("extrapolate:to=800", 500, all, ends, 5);
    check_merge("extrapolate:600,window=100", 500, (const double[]){-1, 2}, ends + 3, 2);
    check_merge("extrapolate:to=600,window=150", 450, two, ends + 2, 2);
    static const double uneven[] = {200, 300, 450};
    static const double line[] = {-2.1842105263157894, -0.02631578947368421, 3.210526315789474};
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_mix mix = {0};
    struct phema_spec *spec = parse(&arena, "extrapolate:1000");
    assert_ok(phema_spec_mix(&mix, spec, 450, uneven, 3, &err), &err);
    for (size_t i = 0; i < 3; i++)
        assert_true(mix.factors[i] == line[i]);
    assert_true(mix.n_fits == 1 && mix.fits[0].first == 0 && mix.fits[0].n == 3);
    assert_fails(
        phema_spec_mix(&mix, parse(&arena, "extrapolate:to=9,window=99"), 200, ends, 5, &err),
        PHEMA_ERR_TARGET, &err, "a line needs snapshots of two times or more, found 1");
    assert_fails(phema_spec_mix(&mix, spec, 99, ends, 5, &err), PHEMA_ERR_TARGET, &err,
                 "two times or more, found 0 until 99");
    phema_arena_clear(&arena);
}

static void merges_of_too_many_snapshots_are_refused(void **state)
{
    (void)state;
    static const double times[] = {100, 200};
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_mix mix = {0};
    assert_fails(phema_spec_mix(&mix, parse(&arena, "sma:3"), 200, times, 2, &err),
                 PHEMA_ERR_TARGET, &err, "sma:3: there are 2 times of snapshots until 200");
    assert_fails(phema_spec_mix(&mix, parse(&arena, "ema-merge:0.5"), 50, times, 2, &err),
                 PHEMA_ERR_TARGET, &err, "there are 0 times of snapshots until 50");
    struct phema_profile profile = {0};
    assert_fails(phema_spec_profile(&profile, parse(&arena, "sma:2"), 200, &err), PHEMA_ERR_INPUTS,
                 &err, "a snapshot is one average");
    phema_arena_clear(&arena);
}

static void a_difference_has_factors_of_both_signs(void **state)
{
    (void)state;
    static const double times[] = {100, 200};
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_mix mix = {0};
    struct phema_spec *spec = parse(&arena, "ema:half-life=1e2 - sma:2");
    assert_string_equal(spec->kind, "difference");
    assert_string_equal(spec->canonical, "ema:half-life=100 - sma:2");
    assert_string_equal(spec->file_part, "ema100-minus-sma2");
    assert_ok(phema_spec_mix(&mix, spec, 200, times, 2, &err), &err);
    assert_int_equal(mix.n_parts, 3);
    assert_int_equal(mix.parts[0].shape, PHEMA_SHAPE_EMA);
    assert_int_equal(mix.parts[1].shape, PHEMA_SHAPE_RAW);
    assert_true(mix.factors[0] == 1 && mix.factors[1] == -0.5 && mix.factors[2] == -0.5);
    /* a minus without spaces is part of a name or a number */
    assert_int_equal(parse(&arena, "minus-sqrt:2e-1")->n_terms, 1);
    assert_int_equal(parse(&arena, "minus-sqrt:20 - wsm-minus-sqrt:2")->n_terms, 2);
    phema_arena_clear(&arena);
}

static void a_line_goes_through_two_averages(void **state)
{
    (void)state;
    static const double times[] = {100, 200};
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_mix mix = {0};
    struct phema_spec *spec = parse(&arena, "line:ema:100,sma:2,1.5");
    assert_string_equal(spec->kind, "line");
    assert_false(spec->is_average || phema_spec_is_stepwise(spec));
    assert_ok(phema_spec_mix(&mix, spec, 200, times, 2, &err), &err);
    assert_int_equal(mix.n_parts, 3);
    assert_int_equal(mix.parts[0].shape, PHEMA_SHAPE_EMA);
    assert_true(mix.factors[0] == -0.5 && mix.factors[1] == 0.75 && mix.factors[2] == 0.75);
    /* A + 2 (B - A) of A = raw, B = raw + 0.5 (sma - raw), less the extrapolation 2 x_2 - x_1 */
    spec = parse(&arena, "line:raw,line:raw,sma:2,0.5,2 - extrapolate:300");
    assert_string_equal(spec->kind, "difference");
    assert_ok(phema_spec_mix(&mix, spec, 200, times, 2, &err), &err);
    static const double wanted[] = {-1, 1, 0.5, 0.5, 1, -2};
    assert_int_equal(mix.n_parts, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        assert_true(mix.factors[i] == wanted[i]);
    assert_true(mix.n_fits == 1 && mix.fits[0].first == 4 && mix.fits[0].n == 2);
    struct phema_profile profile = {0};
    assert_fails(phema_spec_profile(&profile, parse(&arena, "line:raw,raw,0"), 200, &err),
                 PHEMA_ERR_INPUTS, &err, "a snapshot is one average");
    phema_arena_clear(&arena);
}

/* ---- Texts ---- */

static void canonical_text_parses_to_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown, *file_part;
    } known[] = {
        {"power:0.1", "power:sigma=0.1", "power0.1"},
        {"power:gamma=6.94", "power:gamma=6.94", "power-gamma6.94"},
        {"power:sigma=0.05,update-every=10", "power:sigma=0.05,update-every=10",
         "power0.05-update-every10"},
        {"ema:2k", "ema:half-life=2000", "ema2000"},
        {"ema:decay=0.9999", "ema:decay=0.9999", "ema-decay0.9999"},
        {"edm-ema:500k", "edm-ema:half-life=500000,ramp=0.09", "edm-ema500000-ramp0.09"},
        {"diffusers", "diffusers", "diffusers"},
        {"diffusers:0.99,warmup=yes,power=0.75", "diffusers:decay=0.99,warmup=yes,power=0.75",
         "diffusers0.99-warmupyes-power0.75"},
        {"window:20k", "window:20000", "window20000"},
        {"linear:20k", "window:20000", "window20000"},
        {"window:500G/4M", "window:125000", "window125000"},
        {"ema:1T/2Mi", "ema:half-life=476837.158203125", "ema476837.158203125"},
        {"cosine:0.1", "cosine:0.1", "cosine0.1"},
        {"minus-sqrt:length=3", "minus-sqrt:3", "minus-sqrt3"},
        {"raw", "raw", "raw"},
        {"wma:n=3", "wma:3", "wma3"},
        {"ema-merge:0.2", "ema-merge:alpha=0.2", "ema-merge0.2"},
        {"wsm-minus-sqrt:8", "wsm-minus-sqrt:8", "wsm-minus-sqrt8"},
        {"raw - power:0.1", "raw - power:sigma=0.1", "raw-minus-power0.1"},
        {"extrapolate:20k,window=1k", "extrapolate:to=20000,window=1000",
         "extrapolate20000-window1000"},
        {"line:raw,sma:n=4,-.5", "line:raw,sma:4,-0.5", "line-0.5-raw-to-sma4"},
        {"line:raw,sma:4,lambda=2", "line:raw,sma:4,2", "line2-raw-to-sma4"},
        {"line:edm-ema:5k,ramp=0.1,diffusers:0.99,warmup=yes,1.5",
         "line:edm-ema:half-life=5000,ramp=0.1,diffusers:decay=0.99,warmup=yes,1.5",
         "line1.5-edm-ema5000-ramp0.1-to-diffusers0.99-warmupyes"},
        {"line:line:raw,sma:2,2,line:wma:2,raw,3,0.25 - raw",
         "line:line:raw,sma:2,2,line:wma:2,raw,3,0.25 - raw",
         "line0.25-line2-raw-to-sma2-to-line3-wma2-to-raw-minus-raw"},
    };
    struct phema_arena arena = {0};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct phema_spec *spec = parse(&arena, known[i].text);
        assert_string_equal(spec->canonical, known[i].shown);
        assert_string_equal(spec->file_part, known[i].file_part);
        assert_string_equal(parse(&arena, spec->canonical)->canonical, known[i].shown);
    }
    struct phema_strbuf text = {0};
    phema_spec_append_power(&text, 0.05, 16.97, 10);
    assert_string_equal(text.data, "power:sigma=0.05,update-every=10");
    phema_strbuf_clear(&text);
    phema_spec_append_power(&text, PHEMA_UNKNOWN, 6.94, 0);
    assert_string_equal(text.data, "power:gamma=6.94");
    phema_strbuf_clear(&text);
    phema_arena_clear(&arena);
}

static void errors_name_the_fault(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum phema_status status;
        const char *message;
    } wrong[] = {
        {"", PHEMA_ERR_USAGE, "'': unknown profile ''; known are power, ema, edm-ema, stylegan"},
        {"emu:5", PHEMA_ERR_USAGE, "'emu:5': unknown profile 'emu'; known are"},
        {"Power:0.1", PHEMA_ERR_USAGE, "unknown profile 'Power'"},
        {"power", PHEMA_ERR_USAGE, "either sigma or gamma, found neither"},
        {"power:sigma=0.1,gamma=2", PHEMA_ERR_USAGE, "either sigma or gamma, found both"},
        {"power:0.4", PHEMA_ERR_TARGET, "no power-function average is wider"},
        {"power:gamma=-0.5", PHEMA_ERR_USAGE, "gamma: expected a number above -0.5"},
        {"power:0.1 - power:0.4", PHEMA_ERR_TARGET, "no power-function average is wider"},
        {"power:0.1,update-every=0", PHEMA_ERR_USAGE, "update-every: expected a count from 1"},
        {"ema:2000,decay=0.9", PHEMA_ERR_USAGE, "found both"},
        {"ema:decay=1", PHEMA_ERR_USAGE, "decay: expected a number above 0 and below 1"},
        {"ema:decay=0", PHEMA_ERR_USAGE, "decay: expected a number above 0 and below 1"},
        {"ema:0", PHEMA_ERR_USAGE, "half-life: expected a time"},
        {"ema:nan", PHEMA_ERR_USAGE, "half-life: expected a time"},
        {"ema:-5", PHEMA_ERR_USAGE, "half-life: expected a time"},
        {"ema:5,", PHEMA_ERR_USAGE, "expected KEY=VALUE, found ''"},
        {"ema:", PHEMA_ERR_USAGE, "half-life: expected a number like 0.1 or 20k, found ''"},
        {"ema:5,6", PHEMA_ERR_USAGE, "expected KEY=VALUE, found '6'"},
        {"ema:half-life=5,half-life=5", PHEMA_ERR_USAGE, "has two half-life"},
        {"ema:half_life=5", PHEMA_ERR_USAGE,
         "unknown key 'half_life' of ema; known are half-life, decay"},
        {"edm-ema:ramp=0.1", PHEMA_ERR_USAGE, "has no half-life; expected edm-ema:half-life=VALUE"},
        {"diffusers:warmup=maybe", PHEMA_ERR_USAGE, "warmup: expected yes or no"},
        {"window", PHEMA_ERR_USAGE, "has no length"},
        {"window:500G/0", PHEMA_ERR_USAGE, "length: expected a time"},
        {"window:500G/-4M", PHEMA_ERR_USAGE, "length: expected a time"},
        {"window:500G/", PHEMA_ERR_USAGE, "length: expected a number like 0.1 or 20k, found ''"},
        {"window:/4M", PHEMA_ERR_USAGE, "length: expected a number like 0.1 or 20k, found ''"},
        {"window:8/4/2", PHEMA_ERR_USAGE, "length: expected a number like 0.1 or 20k, found '4/2'"},
        {"window:500G/inf", PHEMA_ERR_USAGE, "length: expected a"},
        {"power:0.2/2", PHEMA_ERR_USAGE, "sigma: expected a number"},
        {"raw:5", PHEMA_ERR_USAGE, "raw takes no values"},
        {"table", PHEMA_ERR_USAGE, "expected table:FILE"},
        {"table:", PHEMA_ERR_USAGE, "expected table:FILE"},
        {"sma:0", PHEMA_ERR_USAGE, "n: expected a count from 1 to 8192"},
        {"sma:8193", PHEMA_ERR_USAGE, "n: expected a count from 1 to 8192"},
        {"sma:1.5", PHEMA_ERR_USAGE, "n: expected a whole number like 16 or 20k, found '1.5'"},
        {"ema-merge:0", PHEMA_ERR_USAGE, "alpha: expected a number above 0"},
        {"extrapolate", PHEMA_ERR_USAGE, "has no to; expected extrapolate:to=VALUE"},
        {"line", PHEMA_ERR_USAGE, "expected line:A,B,LAMBDA of two profiles"},
        {"line:raw", PHEMA_ERR_USAGE, "expected line:A,B,LAMBDA of two profiles"},
        {"line:raw,0.5", PHEMA_ERR_USAGE, "expected line:A,B,LAMBDA of two profiles"},
        {"line:raw,sma:2", PHEMA_ERR_USAGE, "expected line:A,B,LAMBDA of two profiles"},
        {"line:raw,sma:2,wma:2,1", PHEMA_ERR_USAGE, "expected line:A,B,LAMBDA of two profiles"},
        {"line:line:raw,sma:2,1", PHEMA_ERR_USAGE, "expected line:A,B,LAMBDA of two profiles"},
        {"line:table:a,raw,sma:2,1", PHEMA_ERR_USAGE, "expected line:A,B,LAMBDA of two profiles"},
        {"line:raw - raw,raw,1", PHEMA_ERR_USAGE, "expected line:A,B,LAMBDA of two profiles"},
        {"line:emu:3,raw,1", PHEMA_ERR_USAGE, "unknown profile 'emu'; known are"},
        {"line:raw,sma:2,x", PHEMA_ERR_USAGE, "lambda: expected a number like 0.1 or 20k"},
        {"line:raw,sma:2,2e6", PHEMA_ERR_USAGE, "lambda: expected a number from -1e6 to 1e6"},
        {"raw - ", PHEMA_ERR_USAGE, "unknown profile ''"},
        {"raw - raw - raw", PHEMA_ERR_USAGE, "unknown profile 'raw - raw'"},
        {"raw-raw", PHEMA_ERR_USAGE, "unknown profile 'raw-raw'"},
    };
    struct phema_arena arena = {0};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct phema_error err = {0};
        struct phema_spec *spec = NULL;
        assert_fails(phema_spec_parse(&spec, &arena, wrong[i].text, &err), wrong[i].status, &err,
                     wrong[i].message);
        assert_null(spec);
    }
    char *longer = malloc(PHEMA_SPEC_MAX_SIZE + 2);
    memset(longer, 'a', PHEMA_SPEC_MAX_SIZE + 1);
    longer[PHEMA_SPEC_MAX_SIZE + 1] = '\0';
    struct phema_error err = {0};
    struct phema_spec *spec = NULL;
    assert_fails(phema_spec_parse(&spec, &arena, longer, &err), PHEMA_ERR_USAGE, &err,
                 "longer than 8192");
    for (size_t i = 0; i + 5 < PHEMA_SPEC_MAX_SIZE; i += 5)
        memcpy(longer + i, "line:", 6);
    assert_fails(phema_spec_parse(&spec, &arena, longer, &err), PHEMA_ERR_USAGE, &err,
                 "expected line:A,B,LAMBDA");
    struct phema_strbuf lines = {0};
    for (size_t i = 0; i < 40; i++)
        phema_strbuf_puts(&lines, "line:");
    phema_strbuf_puts(&lines, "raw");
    for (size_t i = 0; i < 40; i++)
        phema_strbuf_puts(&lines, ",raw,1");
    assert_fails(phema_spec_parse(&spec, &arena, lines.data, &err), PHEMA_ERR_USAGE, &err,
                 "has more than 32 profiles");
    phema_strbuf_clear(&lines);
    free(longer);
    phema_arena_clear(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(widths_and_exponents_are_power_functions),
    cmocka_unit_test(decays_and_half_lives_are_exponential),
    cmocka_unit_test(lengths_reach_no_further_than_the_training),
    cmocka_unit_test(diffusers_decays_are_those_of_its_rule),
    cmocka_unit_test(betas_are_the_same_for_every_end),
    cmocka_unit_test(tables_are_read),
    cmocka_unit_test(invalid_tables_are_refused),
    cmocka_unit_test(merges_weigh_the_last_snapshots),
    cmocka_unit_test(an_extrapolation_is_the_least_squares_line),
    cmocka_unit_test(merges_of_too_many_snapshots_are_refused),
    cmocka_unit_test(a_difference_has_factors_of_both_signs),
    cmocka_unit_test(a_line_goes_through_two_averages),
    cmocka_unit_test(canonical_text_parses_to_the_same),
    cmocka_unit_test(errors_name_the_fault),
};
TEST_GROUP(tests)
