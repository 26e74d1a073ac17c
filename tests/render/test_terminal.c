// SPDX-License-Identifier: Apache-2.0
/* test_terminal.c - cutting and breaking of texts, durations, width, colours and the locale. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/terminal.h"

static void texts_are_cut_between_characters(void **state)
{
    (void)state;
    assert_int_equal(terminal_cut("abc", 2), 2);
    assert_int_equal(terminal_cut("abc", 3), 3);
    assert_int_equal(terminal_cut("abc", 9), 3);
    assert_int_equal(terminal_cut("", 3), 0);
    assert_int_equal(terminal_cut("a\xcf\x83\xe2\x96\x88z", 2), 3); /* a, sigma | block, z */
    assert_int_equal(terminal_cut("a\xcf\x83\xe2\x96\x88z", 3), 6);
}

static void durations_have_two_units(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        {0, "0 s"},           {59.9, "59 s"},     {60, "1 min 00 s"}, {3599, "59 min 59 s"},
        {7260, "2 h 01 min"}, {90000, "1 d 1 h"}, {-3, "0 s"}};
    struct phema_name_buffer buffer;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(terminal_duration(&buffer, cases[i].seconds), cases[i].text);
    (void)terminal_duration(&buffer, HUGE_VAL);
    (void)terminal_duration(&buffer, PHEMA_UNKNOWN);
}

static bool is_utf8(const char *all, const char *type, const char *lang, const char *terminal)
{
    const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG", "TERM"};
    const char *const values[] = {all, type, lang, terminal};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (values[i])
            (void)setenv(names[i], values[i], 1);
        else
            (void)unsetenv(names[i]);
    return terminal_is_utf8();
}

static void the_first_variable_that_is_set_decides_the_locale(void **state)
{
    (void)state;
    assert_true(is_utf8(NULL, NULL, "de_DE.UTF-8", "xterm"));
    assert_true(is_utf8(NULL, "C.utf8", "C", "xterm"));
    assert_true(is_utf8("en_US.UTF-8", "C", "C", "xterm"));
    assert_true(is_utf8("", "C.UTF-8", NULL, "xterm"));
    assert_false(is_utf8("C", "C.UTF-8", "C.UTF-8", "xterm"));
    assert_false(is_utf8(NULL, NULL, "de_DE.ISO-8859-1", "xterm"));
    assert_false(is_utf8(NULL, NULL, NULL, "xterm"));
    assert_false(is_utf8("C.UTF-8", NULL, NULL, "dumb"));
    assert_false(is_utf8("C.UTF-8", NULL, NULL, NULL));
}

static void check_wrapped(const char *line, size_t n_columns, const char *wanted)
{
    struct phema_strbuf out = {0};
    terminal_wrap(&out, line, n_columns);
    assert_string_equal(out.data, wanted);
    phema_strbuf_clear(&out);
}

static void lines_are_broken_at_spaces_alone(void **state)
{
    (void)state;
    check_wrapped("one two three", 80, "one two three");
    check_wrapped("one two three", 7, "one two\n  three");
    check_wrapped("one two three", 6, "one\n  two\n  three");
    check_wrapped("  one two", 6, "  one\n    two");
    check_wrapped("one /a/path/that/is/long two", 8, "one\n  /a/path/that/is/long\n  two");
    check_wrapped("a  b", 80, "a  b");
    check_wrapped("\xcf\x83\xcf\x83 \xcf\x83", 4,
                  "\xcf\x83\xcf\x83 \xcf\x83"); /* four characters */
    check_wrapped("one two three", SIZE_MAX, "one two three");
}

/* Standard output of the test is no terminal, as a rule; COLUMNS decides in any case. */
static void columns_of_the_environment_decide(void **state)
{
    (void)state;
    (void)setenv("COLUMNS", "60", 1);
    assert_int_equal(terminal_columns(1), 60);
    (void)setenv("COLUMNS", "5", 1);
    assert_int_equal(terminal_columns(1), 20); /* the least */
    static const char *const unusable[] = {"0", "-60", "60x", "", "99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(unusable); i++) {
        (void)setenv("COLUMNS", unusable[i], 1);
        assert_int_equal(terminal_columns(-1), 80);
    }
    (void)unsetenv("COLUMNS");
    assert_int_equal(terminal_columns(-1), 80);
}

static bool has_color(const char *no_color, const char *forced)
{
    (void)setenv("NO_COLOR", no_color, 1);
    (void)setenv("CLICOLOR_FORCE", forced, 1);
    return terminal_has_color(-1);
}

static void options_decide_on_colours_before_the_environment(void **state)
{
    (void)state;
    assert_false(has_color("", ""));
    assert_true(has_color("", "1"));
    assert_false(has_color("", "0"));
    assert_false(has_color("1", "1"));
    terminal_set_color(TERMINAL_COLOR_ALWAYS);
    assert_true(has_color("1", "0"));
    terminal_set_color(TERMINAL_COLOR_NEVER);
    assert_false(has_color("", "1"));
    terminal_set_color(TERMINAL_COLOR_AUTO);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_are_cut_between_characters),
    cmocka_unit_test(durations_have_two_units),
    cmocka_unit_test(lines_are_broken_at_spaces_alone),
    cmocka_unit_test(columns_of_the_environment_decide),
    cmocka_unit_test(options_decide_on_colours_before_the_environment),
    cmocka_unit_test(the_first_variable_that_is_set_decides_the_locale),
};
TEST_GROUP(tests)
