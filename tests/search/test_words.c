// SPDX-License-Identifier: Apache-2.0
/* test_words.c - command lines as the words that a program gets. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "phema/search.h"

static void assert_words(const char *command, const char *path, const char *const *wanted)
{
    char **words = NULL;
    struct phema_error err = {""};
    assert_ok(phema_command_split(&words, command, path, &err), &err);
    size_t n = 0;
    for (; wanted[n]; n++) {
        assert_non_null(words[n]);
        assert_string_equal(words[n], wanted[n]);
    }
    assert_null(words[n]);
    free(words);
}

static void words_are_those_of_a_shell(void **state)
{
    (void)state;
    assert_words("./e.sh {}", "a", (const char *const[]){"./e.sh", "a", NULL});
    assert_words("  a\t'b c'  \"d e\"f {}\n", "x",
                 (const char *const[]){"a", "b c", "d ef", "x", NULL});
    assert_words("a '' \"\" {}", "x", (const char *const[]){"a", "", "", "x", NULL});
    assert_words("a b\\ c \\{} '\\n' \"\\\"\\\\\\n\" {}", "x",
                 (const char *const[]){"a", "b c", "{}", "\\n", "\"\\\\n", "x", NULL});
    assert_words("--ckpt={} '{}' \"{}.txt\"", "p",
                 (const char *const[]){"--ckpt=p", "p", "p.txt", NULL});
}

/* Whatever a path holds, it stays one word, and nothing in it is replaced again. */
static void a_path_is_a_part_of_one_word(void **state)
{
    (void)state;
    static const char hostile[] = "a b'c\"d\\e;$(rm -rf x)`y`|{}\n*";
    assert_words("e {}", hostile, (const char *const[]){"e", hostile, NULL});
    assert_words("e '{}'", hostile, (const char *const[]){"e", hostile, NULL});
}

static void nothing_is_expanded(void **state)
{
    (void)state;
    assert_words("e $HOME ~ *.c a|b x>y {}", "p",
                 (const char *const[]){"e", "$HOME", "~", "*.c", "a|b", "x>y", "p", NULL});
    assert_words("e '|' \\; {}", "p", (const char *const[]){"e", "|", ";", "p", NULL});
}

static void what_is_no_command_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *command, *part;
    } cases[] = {
        {"", "the command is empty"},
        {" \t", "the command is empty"},
        {"./e.sh", "expected {}"},
        {"e 'a {}", "a quote is not closed"},
        {"e \"{}", "a quote is not closed"},
        {"e {} | tail -n 1", "'|' is for a shell"},
        {"e {} > x", "--shell gives it to sh"},
        {"e {} && f", "'&&' is for a shell"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char **words = NULL;
        struct phema_error err = {""};
        assert_fails(phema_command_split(&words, cases[i].command, "p", &err), PHEMA_ERR_USAGE,
                     &err, cases[i].part);
        assert_null(words);
    }
}

static void a_shell_gets_the_path_in_quotes(void **state)
{
    (void)state;
    char **words = NULL;
    struct phema_error err = {""};
    assert_ok(phema_command_shell(&words, "e {} | tail", "it's $x", &err), &err);
    assert_string_equal(words[0], "/bin/sh");
    assert_string_equal(words[1], "-c");
    assert_string_equal(words[2], "e 'it'\\''s $x' | tail");
    assert_null(words[3]);
    free(words);
    assert_fails(phema_command_shell(&words, "e", "p", &err), PHEMA_ERR_USAGE, &err, "expected {}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_a_shell),
        cmocka_unit_test(a_path_is_a_part_of_one_word),
        cmocka_unit_test(nothing_is_expanded),
        cmocka_unit_test(what_is_no_command_is_said),
        cmocka_unit_test(a_shell_gets_the_path_in_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
