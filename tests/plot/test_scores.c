// SPDX-License-Identifier: Apache-2.0
/* test_scores.c - CSV files of scores as programs and people write them, and invalid ones. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/plot.h"
#include "scores.h"

static enum phema_status read_text(struct scores *out, const char *text, struct phema_error *err)
{
    size_t size = strlen(text);
    const uint8_t *data = support_guarded(text, size); /* reading beyond it faults */
    return scores_read(out, (struct phema_span){data, size}, err);
}

static void assert_scores(const char *text, const double (*wanted)[2], size_t n, size_t n_left_out)
{
    struct scores scores;
    struct phema_error err = {""};
    assert_ok(read_text(&scores, text, &err), &err);
    assert_int_equal(scores.n, n);
    assert_int_equal(scores.n_left_out, n_left_out);
    for (size_t i = 0; i < n; i++) {
        assert_near(scores.items[i].sigma_rel, wanted[i][0], 0);
        assert_near(scores.items[i].score, wanted[i][1], 0);
    }
    scores_clear(&scores);
}

static void columns_are_found_by_name(void **state)
{
    (void)state;
    static const double wanted[][2] = {{0.05, 3}, {0.1, -2.5e1}};
    assert_scores("sigma_rel,score\n0.1,-2.5e1\n0.05,3\n", wanted, 2, 0);
    assert_scores("step,\"score\",when,sigma_rel\n7,-25,\"a, b\",0.1\n8,3,,0.05", wanted, 2, 0);
    assert_scores(" sigma_rel , score \r\n 0.1 ,\t-25\r\n\r\n# later\r\n0.05,3\r\n", wanted, 2, 0);
}

static void numbers_alone_are_two_columns(void **state)
{
    (void)state;
    static const double wanted[][2] = {{0.05, 3}, {0.1, -2.5e1}};
    assert_scores("0.1,-25\n0.05,3,whatever\n", wanted, 2, 0);
}

static void scores_of_one_width_are_in_order(void **state)
{
    (void)state;
    static const double wanted[][2] = {{0.1, 1}, {0.1, 2}, {0.1, 3}};
    assert_scores("0.1,3\n0.1,1\n0.1,2\n", wanted, 3, 0);
}

static void lines_without_a_finite_score_are_counted(void **state)
{
    (void)state;
    static const double wanted[][2] = {{0.1, 1}};
    assert_scores("sigma_rel,score\n0.05,nan\n0.06,\n0.07\n0.08,-inf\n0.1,1\n", wanted, 1, 4);
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
        {"sigma_rel,score\n0.1,1\nx,1\n", "line 3: 'x' is no sigma_rel"},
        {"sigma_rel,score\n0x1p-4,1\n", "line 2: '0x1p-4' is no sigma_rel"},
        {"sigma_rel,score\n0.4,1\n", "line 2: '0.4' is no sigma_rel between 0 and"},
        {"sigma_rel,score\n-0.1,1\n", "no sigma_rel"},
        {"sigma_rel,score\nnan,1\n", "no sigma_rel"},
        {"sigma_rel,score\n0.1,good\n", "line 2: 'good' is no score"},
        {"sigma_rel,score\n0.1,1e101\n", "line 2: expected a score of at most 1e+100"},
        {"sigma_rel,score\n0.1,1 2\n", "'1 2' is no score"},
        {"sigma_rel,score\n0.1,\x1b[31m\n", "'\\x1b[31m' is no score"},
        {"\"sigma_rel,score\n0.1,1\n", "line 1"},
        {",,,,,\n", "line 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scores scores;
        struct phema_error err = {""};
        assert_fails(read_text(&scores, cases[i].text, &err), PHEMA_ERR_FILE, &err, cases[i].part);
    }
}

static void overlong_numbers_are_refused(void **state)
{
    (void)state;
    char text[200] = "0.1,";
    memset(text + 4, '1', sizeof(text) - 5);
    struct scores scores;
    struct phema_error err = {""};
    assert_fails(read_text(&scores, text, &err), PHEMA_ERR_FILE, &err, "is no score");
}

static void too_many_scores_are_refused(void **state)
{
    (void)state;
    size_t n = PHEMA_PLOT_MAX_SCORES + 1;
    char *text = malloc(n * 6);
    assert_non_null(text);
    static const char line[] = {'0', '.', '1', ',', '1', '\n'};
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * sizeof(line), line, sizeof(line));
    struct scores scores;
    struct phema_error err = {""};
    struct phema_span span = {(const uint8_t *)text, n * 6};
    assert_fails(scores_read(&scores, span, &err), PHEMA_ERR_FILE, &err,
                 "line 100001: has more than 100000 scores");
    span.size -= 6;
    assert_ok(scores_read(&scores, span, &err), &err);
    assert_int_equal(scores.n, PHEMA_PLOT_MAX_SCORES);
    scores_clear(&scores);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(numbers_alone_are_two_columns),
        cmocka_unit_test(scores_of_one_width_are_in_order),
        cmocka_unit_test(lines_without_a_finite_score_are_counted),
        cmocka_unit_test(an_invalid_line_is_named),
        cmocka_unit_test(overlong_numbers_are_refused),
        cmocka_unit_test(too_many_scores_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
