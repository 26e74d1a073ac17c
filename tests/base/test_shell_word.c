// SPDX-License-Identifier: Apache-2.0
/* test_shell_word.c - words quoted for shells. The words are run in shells by the test
 * cli.synth.remedies.proposed_commands_are_safe_in_every_shell. */
#include "support.h"

#include <string.h>

#include "phema/strbuf.h"

/* In fish, \\ and \' within single quotes are one character; in other shells they are two. */
static const struct {
    const char *word, *quoted;
} known[] = {
    {"run/a-1.5@x,y:z", "run/a-1.5@x,y:z"},
    {"", "''"},
    {"a b", "'a b'"},
    {"it's", "'it'\\''s'"},
    {"'", "''\\'''"},
    {"\\", "''\\\\''"},
    {"\\d+", "'\\d+'"},
    {"a\\", "'a'\\\\''"},
    {"\\'", "''\\\\''\\'''"},
    {"\\\\d", "''\\\\'\\d'"},
    {"=ls", "'=ls'"},
    {"%self", "'%self'"},
    {"a=%b", "a=%b"},
};

static void quotes_and_backslashes_stand_outside(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct phema_strbuf text = {0};
        phema_strbuf_put_word(&text, known[i].word);
        assert_string_equal(text.data, known[i].quoted);
        assert_int_equal(text.size, strlen(known[i].quoted));
        phema_strbuf_clear(&text);
    }
}

static void words_are_appended(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    phema_strbuf_puts(&text, "diff ");
    for (size_t i = 0; i < 100; i++)
        phema_strbuf_put_word(&text, "it's");
    assert_int_equal(text.size, 5 + 100 * strlen("'it'\\''s'"));
    assert_string_equal(text.data + text.size - 9, "'it'\\''s'");
    phema_strbuf_clear(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(quotes_and_backslashes_stand_outside),
    cmocka_unit_test(words_are_appended),
};
TEST_GROUP(tests)
