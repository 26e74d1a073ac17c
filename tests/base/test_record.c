// SPDX-License-Identifier: Apache-2.0
/* JSON of tables of fields. */
#include "phema/record.h"

#include <stdlib.h>

#include "support.h"

struct inner {
    double x;
};

struct thing {
    double number;
    uint64_t count;
    unsigned small;
    bool is_set;
    const char *text, *path;
    const char *label; /* label_size bytes */
    size_t label_size;
    enum color { RED, BLUE } color;
    char chars[8];
    struct inner inner;
};

static const char *const colors[] = {"red", "blue"};

static const struct phema_field inner_fields[] = {
    PHEMA_FIELD(NUMBER, ALWAYS, "x", struct inner, x),
    {0},
};

static const struct phema_field fields[] = {
    PHEMA_FIELD(NUMBER, ALWAYS, "number", struct thing, number),
    PHEMA_FIELD(NUMBER, IF_KNOWN, "known", struct thing, number),
    PHEMA_FIELD(NUMBER, IF_ABOVE_0, "above", struct thing, number),
    PHEMA_FIELD(COUNT, ALWAYS, "count", struct thing, count),
    PHEMA_FIELD(COUNT, IF_ABOVE_1, "many", struct thing, count),
    PHEMA_FIELD(SMALL, ALWAYS, "small", struct thing, small),
    PHEMA_FIELD(BOOL, ALWAYS, "is_set", struct thing, is_set),
    PHEMA_FIELD(BOOL, IF_ABOVE_0, "set", struct thing, is_set),
    PHEMA_FIELD(TEXT, ALWAYS, "text", struct thing, text),
    PHEMA_FIELD(PATH, IF_KNOWN, "path", struct thing, path),
    PHEMA_FIELD(BYTES, IF_KNOWN, "label", struct thing, label),
    PHEMA_FIELD_NAMED(colors, "color", struct thing, color),
    PHEMA_FIELD(CHARS, ALWAYS, "chars", struct thing, chars),
    PHEMA_FIELD_OF(inner_fields, "inner", struct thing, inner),
    {0},
};

static void expect(const struct thing *thing, const char *view, const char *json)
{
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_json_out_open(&out, NULL, '{');
    phema_record_write(&out, fields, view, thing);
    phema_json_out_close(&out, '}');
    assert_false(text.is_failed);
    assert_string_equal(text.data, json);
    phema_strbuf_clear(&text);
}

static void fields_are_written_in_the_order_of_their_table(void **state)
{
    (void)state;
    const struct thing thing = {.number = 0.5,
                                .count = 2,
                                .small = 3,
                                .is_set = true,
                                .text = "a",
                                .path = "b",
                                .label = "dots",
                                .label_size = 3,
                                .color = BLUE,
                                .chars = "c",
                                .inner = {0.25}};
    expect(
        &thing, NULL,
        "{\"number\":0.5,\"known\":0.5,\"above\":0.5,\"count\":2,\"many\":2,"
        "\"small\":3,\"is_set\":true,\"set\":true,\"text\":\"a\",\"path\":\"b\",\"label\":\"dot\","
        "\"color\":\"blue\",\"chars\":\"c\","
        "\"inner\":{\"x\":0.25}}");
}

static void unknown_fields_are_null_or_left_out(void **state)
{
    (void)state;
    const struct thing thing = {.number = PHEMA_UNKNOWN, .count = 1, .inner = {0.25}};
    expect(&thing, NULL,
           "{\"number\":null,\"count\":1,\"small\":0,\"is_set\":false,\"text\":null,"
           "\"color\":\"red\",\"chars\":\"\",\"inner\":{\"x\":0.25}}");
}

static void a_view_chooses_fields_and_their_order(void **state)
{
    (void)state;
    const struct thing thing = {.number = -1, .count = 7};
    expect(&thing, "count number above", "{\"count\":7,\"number\":-1}");
    expect(&thing, "", "{}");
}

static void a_list_has_an_object_for_each_record(void **state)
{
    (void)state;
    const struct thing things[] = {{.count = 7}, {.count = 8}};
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_record_write_list(&out, NULL, fields, "count", things, 2, sizeof(*things));
    phema_record_write_list(&out, NULL, fields, NULL, NULL, 0, sizeof(*things));
    assert_string_equal(text.data, "[{\"count\":7},{\"count\":8}],[]");
    phema_strbuf_clear(&text);
}

static void a_view_of_an_absent_field_fails(void **state)
{
    (void)state;
    const struct thing thing = {.number = 0};
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_json_out_open(&out, NULL, '{');
    phema_record_write(&out, fields, "counts", &thing);
    assert_true(text.is_failed);
    phema_strbuf_clear(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fields_are_written_in_the_order_of_their_table),
    cmocka_unit_test(unknown_fields_are_null_or_left_out),
    cmocka_unit_test(a_view_chooses_fields_and_their_order),
    cmocka_unit_test(a_list_has_an_object_for_each_record),
    cmocka_unit_test(a_view_of_an_absent_field_fails),
};
TEST_GROUP(tests)
