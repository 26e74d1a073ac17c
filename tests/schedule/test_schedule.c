// SPDX-License-Identifier: Apache-2.0
/* test_schedule.c - learning rates against their formulas, integrals against fine sums, and files
 * as trainers write them, good and hostile. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/schedule.h"

static struct phema_schedule *schedule_of(const char *text, double steps)
{
    struct phema_schedule *schedule = NULL;
    struct phema_error err = {0};
    assert_ok(phema_schedule_parse(&schedule, text, steps, &err), &err);
    return schedule;
}

/* ---- SPEC ---- */

/* By hand: half of (500, 1500] at 1, half at 10. */
static void a_jump_lies_where_it_is_put(void **state)
{
    (void)state;
    struct phema_schedule *schedule = NULL;
    struct phema_error err = {0};
    assert_ok(phema_schedule_make_jump(&schedule, 1000, 10, &err), &err);
    assert_true(phema_schedule_rate(schedule, 1) == 1 && phema_schedule_rate(schedule, 999) == 1);
    assert_true(phema_schedule_rate(schedule, 1001) == 10);
    assert_true(phema_schedule_rate(schedule, 1e6) == 10);
    assert_true(fabs(phema_schedule_mean_square(schedule, 500, 1500) - 50.5) < 1e-12);
    phema_schedule_free(schedule);
}

/* As the sources of PyTorch, transformers and EDM2 define them, the highest rate 1. */
static void rates_are_those_of_the_formulas(void **state)
{
    (void)state;
    const double pi = acos(-1), third = 1.0 / 3;
    const struct {
        const char *spec;
        double step, rate;
    } cases[] = {
        {"constant", 0, 1},
        {"constant:warmup=100", 25, 0.25},
        {"constant:warmup=10%", 25, 0.25},
        {"constant:warmup=100", 5000, 1},
        {"linear", 250, 0.75},
        {"linear:warmup=200,end=0.1", 600, 0.55},
        {"linear:steps=2k", 500, 0.75},
        {"cosine", 250, (1 + cos(pi / 4)) / 2},
        {"cosine:warmup=100,end=0.1", 400, 0.1 + 0.9 * (1 + cos(pi * third)) / 2},
        {"cosine:end=0.1", 1e6, 0.1},
        {"wsd", 800, 1},
        {"wsd", 900, 0.5},
        {"wsd:decay=400,end=0.2", 800, 0.6},
        {"wsd:warmup=50%,decay=50%", 500, 1},
        {"inverse-sqrt:reference=100", 99, 1},
        {"inverse-sqrt:reference=100", 400, 0.5},
        {"inverse-sqrt:warmup=40", 20, 0.5},
        {"inverse-sqrt:warmup=40", 640, 0.25},
        {"inverse-sqrt:warmup=40,reference=4k", 900, 1},
        {"onecycle", 0, 0.04},
        {"onecycle", 150, 0.52},
        {"onecycle", 300, 1},
        {"onecycle", 650, (1 + 4e-6) / 2},
        {"onecycle:warmup=100,start=0.5,end=0", 1000, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct phema_schedule *schedule = schedule_of(cases[i].spec, 1000);
        double found = phema_schedule_rate(schedule, cases[i].step);
        if (!(fabs(found - cases[i].rate) <= 1e-14))
            fail_msg("%s at %g: %.17g, not %.17g", cases[i].spec, cases[i].step, found,
                     cases[i].rate);
        phema_schedule_free(schedule);
    }
}

/* Simpson's rule of 20000 parts, between the places where the form may change. */
static double mean_square(const struct phema_schedule *schedule, double a, double b)
{
    static const double bounds[] = {0, 40, 100, 300, 600, 800, 1000};
    double sum = 0;
    for (size_t i = 0; i <= ARRAY_LEN(bounds); i++) {
        double l = fmax(a, i ? bounds[i - 1] : a);
        double u = fmin(b, i < ARRAY_LEN(bounds) ? bounds[i] : b);
        const int n = 20000;
        double h = (u - l) / n;
        for (int k = 0; u > l && k <= n; k++) {
            double rate = phema_schedule_rate(schedule, k == n ? u : l + k * h);
            sum += (k == 0 || k == n ? 1 : k % 2 ? 4 : 2) * rate * rate * h / 3;
        }
    }
    return sum / (b - a);
}

static void mean_squares_are_those_of_fine_sums(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "constant:warmup=40", "linear:warmup=100,end=0.1", "cosine:warmup=100",
        "wsd:warmup=40",      "inverse-sqrt:warmup=40",    "onecycle",
    };
    static const double ranges[][2] = {{0, 1000},   {0, 30},     {20, 64},  {256, 512},
                                       {999, 1000}, {900, 5000}, {-50, 10}, {1000, 1001}};
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct phema_schedule *schedule = schedule_of(specs[i], 1000);
        for (size_t r = 0; r < ARRAY_LEN(ranges); r++) {
            double a = ranges[r][0], b = ranges[r][1];
            double found = phema_schedule_mean_square(schedule, a, b);
            double wanted = mean_square(schedule, a, b);
            if (!(fabs(found - wanted) <= 1e-11 * wanted))
                fail_msg("%s from %g to %g: %.17g, not %.17g", specs[i], a, b, found, wanted);
        }
        phema_schedule_free(schedule);
    }
}

/* (pi y / 2)^4 at a part y from the end of a cosine; the mean over it is a fifth of that. */
static void small_integrals_keep_their_digits(void **state)
{
    (void)state;
    struct phema_schedule *schedule = schedule_of("cosine", 1e6);
    double x = acos(-1) / 2e6, found = phema_schedule_mean_square(schedule, 999999, 1e6);
    assert_near(found / (x * x * x * x / 5), 1, 1e-11);
    phema_schedule_free(schedule);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double steps;
        const char *part;
    } bad[] = {
        {"cosine:warm=2k", 1000, "cosine: expected one of steps, warmup, end, found 'warm'"},
        {"cosine:warmup", 1000, "cosine: expected KEY=VALUE, found 'warmup'"},
        {"cosine:", 1000, "expected KEY=VALUE, found ''"},
        {"cosine:end=0,end=0", 1000, "end is given twice"},
        {"cosine:end=-1", 1000, "cosine: end: expected a number from 0 on"},
        {"cosine:end=nan", 1000, "cosine: end: expected a number from 0 on"},
        {"cosine:end=50%", 1000, "expected a number like 0.1 or 20k, found '50%'"},
        {"cosine:end=1e7", 1000, "up to 1e+06"},
        {"cosine:warmup=101%", 1000, "up to 100"},
        {"cosine:warmup=2k", 1000, "cosine: warmup is longer than the run of 1000 steps"},
        {"wsd:warmup=50%,decay=51%", 1000, "warmup and decay are longer than the run"},
        {"cosine:steps=0", 1000, "steps: expected a number above 0"},
        {"cosine:steps=10%", 1000, "expected a number like 0.1 or 20k, found '10%'"},
        {"cosine", PHEMA_UNKNOWN, "cosine: needs the key steps"},
        {"inverse-sqrt", 1000, "inverse-sqrt: needs the key reference, or a warmup"},
        {"linear:decay=5", 1000, "expected one of steps, warmup, end, found 'decay'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct phema_schedule *schedule = NULL;
        struct phema_error err = {0};
        assert_fails(phema_schedule_parse(&schedule, bad[i].text, bad[i].steps, &err),
                     PHEMA_ERR_USAGE, &err, bad[i].part);
        assert_null(schedule);
    }
    assert_true(phema_schedule_is_spec("wsd") && phema_schedule_is_spec("cosine:end=0"));
    assert_false(phema_schedule_is_spec("wsd.csv") || phema_schedule_is_spec("./cosine"));
}

/* ---- Files ---- */

static char *store(const char *name, const char *text, size_t size)
{
    char *path = support_tmp_path(name);
    support_write(path, text, size);
    return path;
}

static void files_of_trainers_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0,0\n10,1\n30,0.5\n",
        "step,lr\r\n0,0\r\n10,1\r\n30,0.5\r\n",
        "# of run 7\nloss, \"learning_rate\" ,step\n2.5,0,0\n2.4,1,10 # top\n\n2.3,,20\n2.2,0.5,30",
        "note,\"step\", \"lr\"\n\"warm, up\",0,0\n5\" disk,10,\"1\"\n\"a \"\", b\",30,0.5\n",
        ("{\"step\": 0, \"lr\": 0}\n{\"loss\": 2, \"step\": 10.0, \"learning_rate\": 1}\n"
         "{\"eval_loss\": 3, \"step\": 10}\n\n{\"step\": 30, \"lr\": 5e-1}\n"),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char *path = store("schedule.txt", texts[i], strlen(texts[i]));
        struct phema_schedule *schedule = schedule_of(path, PHEMA_UNKNOWN);
        static const double wanted[][2] = {{-5, 0},    {0, 0},      {2.5, 0.25}, {10, 1},
                                           {20, 0.75}, {29, 0.525}, {30, 0.5},   {1e9, 0.5}};
        for (size_t k = 0; k < ARRAY_LEN(wanted); k++)
            assert_near(phema_schedule_rate(schedule, wanted[k][0]), wanted[k][1], 1e-15);
        /* (1/3 10 + (1 + 1/2 + 1/4)/3 20 + 1/4 10) / 40 */
        assert_near(phema_schedule_mean_square(schedule, 0, 40), (10 + 35 + 7.5) / 120, 1e-15);
        phema_schedule_free(schedule);
        free(path);
    }
    char *path = store("schedule.txt", "7,3e-4\n", 7);
    struct phema_schedule *alone = schedule_of(path, PHEMA_UNKNOWN);
    assert_true(phema_schedule_rate(alone, 0) == 3e-4 && phema_schedule_rate(alone, 9) == 3e-4);
    assert_near(phema_schedule_mean_square(alone, 0, 20), 9e-8, 1e-22);
    phema_schedule_free(alone);
    free(path);
}

static void hostile_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"\n# nothing\n", "has no steps with a rate"},
        {"step,lr\n", "has no steps with a rate"},
        {"0,0\n5,0\n", "has no rate above 0"},
        {"0,1\n0,1\n", "line 2: expected a step after 0, found 0"},
        {"5,1\n4,1\n", "line 2: expected a step after 5, found 4"},
        {"-1,1\n", "line 1: expected a step from 0"},
        {"nan,1\n", "line 1: expected a step from 0"},
        {"1e16,1\n", "expected a step from 0 to 2^53"},
        {"0,-1\n", "expected a rate from 0"},
        {"0,inf\n", "expected a rate from 0"},
        {"0,nan\n", "expected a rate from 0"},
        {"0,1e101\n", "expected a rate from 0 to 1e100"},
        {"0,0x1\n", "line 1: expected a number as step and as rate"},
        {"0 1\n", "line 1: expected a step, a comma and its rate"},
        {"1,2,3\n", "line 1: expected a step, a comma and its rate"},
        {"step,loss\n1,2\n", "line 1: expected a number as step and as rate"},
        {"step,lr\n1,2,3\n", "line 2: expected 2 columns, found 3"},
        {"{\"step\": 0, \"lr\": \"1\"}\n", "line 1: expected numbers as step and lr"},
        {"{\"lr\": 1}\n", "line 1: expected numbers as step and lr"},
        {"{\"step\": 0, \"lr\": 1\n", "line 1: "},
        {"{\"step\": 0, \"lr\": 1} x\n", "line 1: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char *path = store("bad.csv", bad[i].text, strlen(bad[i].text));
        struct phema_schedule *schedule = NULL;
        struct phema_error err = {0};
        assert_fails(phema_schedule_parse(&schedule, path, 1000, &err), PHEMA_ERR_FILE, &err,
                     bad[i].part);
        assert_true(strncmp(err.message, path, strlen(path)) == 0 && !schedule);
        free(path);
    }
    struct phema_schedule *schedule = NULL;
    struct phema_error err = {0};
    assert_fails(phema_schedule_parse(&schedule, "no/such.csv", 1000, &err), PHEMA_ERR_FILE, &err,
                 "no/such.csv: ");
}

static void long_lines_and_lists_are_refused(void **state)
{
    (void)state;
    struct phema_schedule *schedule = NULL;
    struct phema_error err = {0};
    size_t size = 65537;
    char *line = calloc(size, 1);
    assert_non_null(line);
    memset(line, ' ', size);
    char *path = store("bad.csv", line, size);
    free(line);
    assert_fails(phema_schedule_parse(&schedule, path, 1000, &err), PHEMA_ERR_FILE, &err,
                 "line 1: is longer than 65536 bytes");
    free(path);
    path = support_tmp_path("bad.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i <= 1 << 20; i++)
        assert_true(fprintf(file, "%d,1\n", i) > 0);
    assert_int_equal(fclose(file), 0);
    assert_fails(phema_schedule_parse(&schedule, path, 1000, &err), PHEMA_ERR_FILE, &err,
                 "line 1048577: has more than 1048576 steps");
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rates_are_those_of_the_formulas),
    cmocka_unit_test(a_jump_lies_where_it_is_put),
    cmocka_unit_test(mean_squares_are_those_of_fine_sums),
    cmocka_unit_test(small_integrals_keep_their_digits),
    cmocka_unit_test(other_texts_are_refused),
    cmocka_unit_test(files_of_trainers_are_read),
    cmocka_unit_test(hostile_files_are_refused),
    cmocka_unit_test(long_lines_and_lists_are_refused),
};
TEST_GROUP(tests)
