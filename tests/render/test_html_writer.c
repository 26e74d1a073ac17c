// SPDX-License-Identifier: Apache-2.0
/* test_html_writer.c - escaping and tables of HTML pages. */
#include "support.h"

#include <string.h>

#include "html_writer.h"

static void assert_escaped(const char *text, const char *wanted)
{
    struct phema_strbuf out = {0};
    html_text(&out, text);
    assert_false(out.is_failed);
    assert_string_equal(out.data ? out.data : "", wanted);
    phema_strbuf_clear(&out);
}

static void markup_is_escaped(void **state)
{
    (void)state;
    assert_escaped("", "");
    assert_escaped("plain \xcf\x83 text", "plain \xcf\x83 text");
    assert_escaped("<a href=\"x\">&amp;'", "&lt;a href=&quot;x&quot;&gt;&amp;amp;&#39;");
    assert_escaped("]]>--><!--", "]]&gt;--&gt;&lt;!--");
}

static void invisible_characters_are_shown(void **state)
{
    (void)state;
    assert_escaped("a\nb\x1b[0m", "a\\nb\\x1b[0m");
    assert_escaped("\xff\xc0\x80", "\\xff\\xc0\\x80");
    assert_escaped("\xe2\x80\xae"
                   "abc",
                   "\\u202eabc"); /* right-to-left override */
    assert_escaped("a\xe2\x80\x8b"
                   "b\xe2\x81\xa6\xef\xbb\xbf",
                   "a\\u200bb\\u2066\\ufeff");
    assert_escaped("\xe2\x80\x93 \xe2\x82\xac", "\xe2\x80\x93 \xe2\x82\xac"); /* a dash, a euro */
}

static void rows_have_the_cells_of_their_columns(void **state)
{
    (void)state;
    static const char *const columns[] = {"name", ">size", NULL};
    static const char *const cells[] = {"<x>", "1"};
    struct phema_strbuf out = {0};
    html_table(&out, columns);
    html_row(&out, columns, cells);
    html_table_end(&out);
    assert_non_null(strstr(out.data, "<th>name</th><th class=\"n\">size</th>"));
    assert_non_null(strstr(out.data, "<tr><td>&lt;x&gt;</td><td class=\"n\">1</td></tr>"));
    phema_strbuf_clear(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(markup_is_escaped),
    cmocka_unit_test(invisible_characters_are_shown),
    cmocka_unit_test(rows_have_the_cells_of_their_columns),
};
TEST_GROUP(tests)
