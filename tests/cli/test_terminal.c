// SPDX-License-Identifier: Apache-2.0
/* test_terminal.c - cutting of texts, durations and the locale. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "terminal.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_cut_between_characters),
        cmocka_unit_test(durations_have_two_units),
        cmocka_unit_test(the_first_variable_that_is_set_decides_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
