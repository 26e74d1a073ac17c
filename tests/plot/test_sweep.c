// SPDX-License-Identifier: Apache-2.0
/* test_sweep.c - CSV files of scores as programs and people write them, and invalid ones. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "phema/plot.h"

static enum phema_status plot_text(struct phema_picture **out, struct phema_sweep_facts *facts,
                                   const char *text, size_t size, struct phema_error *err)
{
    const uint8_t *data = support_guarded(text, size); /* reading beyond it faults */
    const struct phema_plot_sweep sweep = {.title = "", .csv = {data, size}};
    return phema_plot_sweep(out, facts, &sweep, err);
}

/* wanted: the drawn scores as lines of CSV */
static void assert_scores(const char *text, const char *wanted, size_t wanted_left_out)
{
    struct phema_picture *picture = NULL;
    struct phema_strbuf csv = {0};
    struct phema_error err = {0};
    struct phema_sweep_facts facts = {0};
    assert_ok(plot_text(&picture, &facts, text, strlen(text), &err), &err);
    assert_int_equal(facts.n_left_out, wanted_left_out);
    assert_ok(phema_picture_write(&csv, picture, PHEMA_PICTURE_CSV, &err), &err);
    char *best = strstr(csv.data, "score,best,");
    assert_non_null(best);
    *best = '\0';
    assert_string_equal(csv.data + strlen("panel,series,x,y\n"), wanted);
    phema_strbuf_clear(&csv);
    phema_picture_free(picture);
}

static void assert_refused(const char *text, size_t size, const char *part)
{
    struct phema_picture *picture = NULL;
    struct phema_sweep_facts facts = {0};
    struct phema_error err = {0};
    assert_fails(plot_text(&picture, &facts, text, size, &err), PHEMA_ERR_FILE, &err, part);
    assert_null(picture);
}

static void columns_are_found_by_name(void **state)
{
    (void)state;
    static const char wanted[] = "score,scores,0.05,3\nscore,scores,0.1,-25\n";
    assert_scores("sigma_rel,score\n0.1,-2.5e1\n0.05,3\n", wanted, 0);
    assert_scores("step,\"score\",when,sigma_rel\n7,-25,\"a, b\",0.1\n8,3,,0.05", wanted, 0);
    assert_scores(" sigma_rel , score \r\n 0.1 ,\t-25\r\n\r\n# later\r\n0.05,3\r\n", wanted, 0);
}

static void numbers_alone_are_two_columns(void **state)
{
    (void)state;
    assert_scores("0.1,-25\n0.05,3,whatever\n", "score,scores,0.05,3\nscore,scores,0.1,-25\n", 0);
}

static void scores_of_one_width_are_in_order(void **state)
{
    (void)state;
    assert_scores("0.1,3\n0.1,1\n0.1,2\n",
                  "score,scores,0.1,1\nscore,scores,0.1,2\nscore,scores,0.1,3\n", 0);
}

static void the_best_is_the_lowest_or_the_highest(void **state)
{
    (void)state;
    static const char text[] = "0.1,3\n0.2,-1\n0.15,7\n";
    for (int maximizes = 0; maximizes < 2; maximizes++) {
        const struct phema_plot_sweep sweep = {
            .title = "", .csv = {(const uint8_t *)text, strlen(text)}, .maximizes = maximizes};
        struct phema_picture *picture = NULL;
        struct phema_sweep_facts facts;
        struct phema_error err = {0};
        assert_ok(phema_plot_sweep(&picture, &facts, &sweep, &err), &err);
        assert_true(facts.best_sigma_rel == (maximizes ? 0.15 : 0.2));
        assert_true(facts.best_score == (maximizes ? 7 : -1));
        phema_picture_free(picture);
    }
}

static void lines_without_a_finite_score_are_counted(void **state)
{
    (void)state;
    assert_scores("sigma_rel,score\n0.05,nan\n0.06,\n0.07\n0.08,-inf\n0.1,1\n",
                  "score,scores,0.1,1\n", 4);
}

static void the_newest_snapshot_is_no_width(void **state)
{
    (void)state;
    assert_scores("sigma_rel,score\nnewest,-3\n0.1,1\n", "score,scores,0.1,1\n", 0);
    assert_scores("sigma_rel,score\nnewest,nan\n0.1,1\n", "score,scores,0.1,1\n", 1);
    static const char alone[] = "sigma_rel,score\nnewest,1\n", large[] = "0.1,1\nnewest,1e101\n";
    assert_refused(alone, strlen(alone), "expected lines of sigma_rel,score");
    assert_refused(large, strlen(large), "line 2: expected a score of at most");
}

static void an_invalid_line_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "expected lines of sigma_rel,score, found none"},
        {"sigma_rel,score\n", "found none"},
        {"0.1,nan\n", "none with a finite score"},
        {"width,score\n0.1,1\n", "line 1: expected the columns sigma_rel and score"},
        {"sigma_rel,sigma_rel,score\n0.1,0.1,1\n", "each once"},
        {"sigma_rel,score\n0.1,1\nx,1\n",
         "line 3: expected a sigma_rel between 0 and 0.300283, found 'x'"},
        {"sigma_rel,score\n0x1p-4,1\n", "found '0x1p-4'"},
        {"sigma_rel,score\n0.4,1\n",
         "line 2: expected a sigma_rel between 0 and 0.300283, found '0.4'"},
        {"sigma_rel,score\n-0.1,1\n", "expected a sigma_rel"},
        {"sigma_rel,score\nnan,1\n", "expected a sigma_rel"},
        {"sigma_rel,score\n0.1,good\n", "line 2: expected a score, a number, found 'good'"},
        {"sigma_rel,score\n0.1,1e101\n", "line 2: expected a score of at most 1e+100"},
        {"sigma_rel,score\n0.1,1 2\n", "found '1 2'"},
        {"sigma_rel,score\n0.1,\x1b[31m\n", "found '\\x1b[31m'"},
        {"\"sigma_rel,score\n0.1,1\n", "line 1"},
        {"sigma_rel,score\n\"0.1\"7,1\n", "line 2: expected a sigma_rel"},
        {",,,,,\n", "line 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_refused(cases[i].text, strlen(cases[i].text), cases[i].part);
}

static void overlong_numbers_are_refused(void **state)
{
    (void)state;
    char text[200] = "0.1,";
    memset(text + 4, '1', sizeof(text) - 5);
    assert_refused(text, strlen(text), "expected a score");
}

static void too_many_scores_are_refused(void **state)
{
    (void)state;
    size_t n = PHEMA_PLOT_MAX_SCORES + 1;
    static const char line[] = {'0', '.', '1', ',', '1', '\n'};
    char *text = malloc(n * sizeof(line));
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * sizeof(line), line, sizeof(line));
    assert_refused(text, n * sizeof(line), "line 100001: has more than 100000 scores");
    struct phema_picture *picture = NULL;
    struct phema_sweep_facts facts = {0};
    struct phema_error err = {0};
    assert_ok(plot_text(&picture, &facts, text, (n - 1) * sizeof(line), &err), &err);
    phema_picture_free(picture);
    free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(columns_are_found_by_name),
    cmocka_unit_test(numbers_alone_are_two_columns),
    cmocka_unit_test(scores_of_one_width_are_in_order),
    cmocka_unit_test(the_best_is_the_lowest_or_the_highest),
    cmocka_unit_test(lines_without_a_finite_score_are_counted),
    cmocka_unit_test(the_newest_snapshot_is_no_width),
    cmocka_unit_test(an_invalid_line_is_named),
    cmocka_unit_test(overlong_numbers_are_refused),
    cmocka_unit_test(too_many_scores_are_refused),
};
TEST_GROUP(tests)
