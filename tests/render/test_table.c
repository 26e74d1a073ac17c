// SPDX-License-Identifier: Apache-2.0
/* test_table.c - alignment, blocks, styles and escaping of tables. */
#include "support.h"

#include "parts.h"

/* The heading and n rows of a name and numbers. */
static void fill(struct table *table)
{
    static const char *const rows[][4] = {{"a", "0.5", "!", "2e-04"}, {"longer", "12.25", "", ""}};
    table_add_titles(table, "<name|score|<~|rounding");
    assert_int_equal(table->n_columns, 4);
    for (size_t r = 0; r < ARRAY_LEN(rows); r++)
        for (size_t c = 0; c < 4; c++)
            table_add(table, c == 2 ? TABLE_ALARM : c == 3 ? TABLE_DIM : 0, "%s", rows[r][c]);
}

static void check(struct table *table, size_t n_columns, bool has_color, const char *wanted)
{
    struct phema_strbuf out = {0};
    table_write(&out, table, 2, n_columns, has_color);
    assert_string_equal(out.data, wanted);
    phema_strbuf_clear(&out);
}

static void columns_are_aligned_and_lines_end_with_text(void **state)
{
    (void)state;
    struct table table = {.n_keys = 1};
    fill(&table);
    check(&table, 80, false,
          "  name    score    rounding\n"
          "  a         0.5 !     2e-04\n"
          "  longer  12.25\n");
    table_clear(&table);
}

/* The mark stays beside its number, and the key begins each block. */
static void narrow_terminals_get_blocks_of_columns(void **state)
{
    (void)state;
    struct table table = {.n_keys = 1};
    fill(&table);
    const char *blocks = "  name    score\n"
                         "  a         0.5 !\n"
                         "  longer  12.25\n"
                         "\n"
                         "  name    rounding\n"
                         "  a          2e-04\n"
                         "  longer\n";
    check(&table, 26, false, blocks);
    check(&table, 1, false, blocks); /* one column at least */
    table_clear(&table);
}

static void colours_do_not_change_the_alignment(void **state)
{
    (void)state;
    struct table table = {.n_keys = 1};
    fill(&table);
    check(&table, 80, true,
          "  \033[1mname\033[0m    \033[1mscore\033[0m    \033[1mrounding\033[0m\n"
          "  a         0.5 \033[31m!\033[0m     \033[2m2e-04\033[0m\n"
          "  longer  12.25\n");
    table_clear(&table);
}

static void characters_are_counted_and_controls_escaped(void **state)
{
    (void)state;
    struct table table = {.n_columns = 2};
    table_add(&table, TABLE_LEFT, "%s", "\xcf\x83");
    table_add(&table, 0, "%s", "x");
    table_add(&table, 0, "%s", "abc");
    table_add(&table, 0, "%s", "\033[31m");
    check(&table, 80, false,
          "  \xcf\x83           x\n"
          "  abc  \\x1b[31m\n");
    table_clear(&table);
}

/* The keys of the last row are one label; it widens them where they are narrow. */
static void a_label_spans_the_keys(void **state)
{
    (void)state;
    static const char *const rows[][2][4] = {
        {{"time", "sigma_rel", "0.1", "0.2"}, {"4096", "0.05", "0.25", "0.5"}},
        {{"t", "s", "0.1", "0.2"}, {"4", "5", "0.25", "0.5"}}};
    static const char *const wanted[] = {"  time  sigma_rel    0.1    0.2\n"
                                         "  4096       0.05   0.25    0.5\n"
                                         "   error expected  2e-04  3e-04\n",
                                         "  t            s    0.1\n"
                                         "  4            5   0.25\n"
                                         "  error expected  2e-04\n"
                                         "\n"
                                         "  t            s    0.2\n"
                                         "  4            5    0.5\n"
                                         "  error expected  3e-04\n"};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        struct table table = {.n_columns = 4, .n_keys = 2};
        for (size_t r = 0; r < 2; r++)
            for (size_t c = 0; c < 4; c++)
                table_add(&table, 0, "%s", rows[i][r][c]);
        table_add(&table, TABLE_KEYS, "error expected");
        table_add(&table, 0, "%s", "");
        table_add(&table, 0, "2e-04");
        table_add(&table, 0, "3e-04");
        check(&table, i ? 25 : 80, false, wanted[i]);
        table_clear(&table);
    }
}

static void an_empty_table_is_no_text(void **state)
{
    (void)state;
    struct table table = {.n_columns = 2};
    struct phema_strbuf out = {0};
    table_write(&out, &table, 0, 80, false);
    assert_int_equal(out.size, 0);
    assert_false(out.is_failed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(columns_are_aligned_and_lines_end_with_text),
    cmocka_unit_test(narrow_terminals_get_blocks_of_columns),
    cmocka_unit_test(colours_do_not_change_the_alignment),
    cmocka_unit_test(characters_are_counted_and_controls_escaped),
    cmocka_unit_test(a_label_spans_the_keys),
    cmocka_unit_test(an_empty_table_is_no_text),
};
TEST_GROUP(tests)
