// SPDX-License-Identifier: Apache-2.0
/* JSON read from possibly hostile files, and written such that numbers read back unchanged.
 * Validity follows RFC 8259; duplicate keys, which the RFC leaves open, are refused. */
#include "phema/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static enum phema_status parse_bytes(struct phema_json **out, const void *data, size_t size,
                                     struct phema_error *err)
{
    struct phema_span text = {support_guarded(data, size), size};
    return phema_json_parse(out, text, err);
}

static struct phema_json *parse(const char *text)
{
    struct phema_json *root = NULL;
    struct phema_error err = {0};
    assert_ok(parse_bytes(&root, text, strlen(text), &err), &err);
    return root;
}

static void assert_refused(const void *data, size_t size, const char *part)
{
    struct phema_json *root = NULL;
    struct phema_error err = {0};
    assert_fails(parse_bytes(&root, data, size, &err), PHEMA_ERR_FILE, &err, part);
    assert_null(root);
}

/* ---- Reading ---- */

static void values_have_their_types(void **state)
{
    (void)state;
    struct phema_json *root =
        parse(" {\"o\": {}, \"a\": [1, 2.5], \"s\": \"x\", \"t\": true, \"f\": false, \"n\": null,"
              " \"i\": -7} \n");
    assert_int_equal(phema_json_type(root), PHEMA_JSON_OBJECT);
    assert_int_equal(phema_json_length(root), 7);
    assert_int_equal(phema_json_type(phema_json_get(root, "o")), PHEMA_JSON_OBJECT);
    const struct phema_json *array = phema_json_get(root, "a");
    assert_int_equal(phema_json_type(array), PHEMA_JSON_ARRAY);
    assert_int_equal(phema_json_length(array), 2);
    assert_int_equal(phema_json_type(phema_json_at(array, 0)), PHEMA_JSON_INTEGER);
    assert_int_equal(phema_json_type(phema_json_at(array, 1)), PHEMA_JSON_REAL);
    assert_null(phema_json_at(array, 2));
    assert_int_equal(phema_json_type(phema_json_get(root, "s")), PHEMA_JSON_STRING);
    assert_int_equal(phema_json_length(phema_json_get(root, "s")), 0);
    assert_int_equal(phema_json_type(phema_json_get(root, "t")), PHEMA_JSON_BOOL);
    assert_true(phema_json_boolean(phema_json_get(root, "t")));
    assert_false(phema_json_boolean(phema_json_get(root, "f")));
    assert_false(phema_json_boolean(phema_json_get(root, "i")));
    assert_null(phema_json_get(root, "n")); /* null is absent */
    assert_null(phema_json_get(root, "missing"));
    phema_json_free(root);
    phema_json_free(NULL);
}

static void a_value_of_another_type_is_refused(void **state)
{
    (void)state;
    struct phema_json *root = parse("[1, -1, 1.0, \"1\", true, null, [], {}]");
    uint64_t count = 99;
    double number = 99;
    size_t size = 99;
    assert_true(phema_json_u64(&count, phema_json_at(root, 0)));
    assert_int_equal(count, 1);
    assert_true(phema_json_number(&number, phema_json_at(root, 1)));
    assert_true(number == -1);
    assert_true(phema_json_number(&number, phema_json_at(root, 2)));
    assert_true(number == 1);
    count = 99;
    number = 99;
    for (size_t i = 1; i < 8; i++)
        assert_false(phema_json_u64(&count, phema_json_at(root, i)));
    for (size_t i = 3; i < 8; i++)
        assert_false(phema_json_number(&number, phema_json_at(root, i)));
    assert_false(phema_json_u64(&count, NULL));
    assert_false(phema_json_number(&number, NULL));
    assert_int_equal(count, 99); /* outputs change only on success */
    assert_true(number == 99);
    assert_string_equal(phema_json_string(phema_json_at(root, 3), &size), "1");
    assert_int_equal(size, 1);
    assert_null(phema_json_string(phema_json_at(root, 0), &size));
    assert_null(phema_json_string(NULL, NULL));
    phema_json_free(root);
}

static void fields_come_in_document_order(void **state)
{
    (void)state;
    static const char *const order[] = {"zeta", "", "alpha", "10", "9", "mid"};
    struct phema_json *root = parse("{\"zeta\":0,\"\":1,\"alpha\":2,\"10\":3,\"9\":4,\"mid\":5}");
    uint64_t n = 0;
    for (struct phema_json_field *f = phema_json_first(root); f; f = phema_json_next(root, f)) {
        size_t size = 0;
        const char *key = phema_json_key(f, &size);
        uint64_t value = 99;
        assert_true(n < ARRAY_LEN(order));
        assert_int_equal(size, strlen(order[n]));
        assert_memory_equal(key, order[n], size);
        assert_true(phema_json_u64(&value, phema_json_value(f)));
        assert_int_equal(value, n);
        n++;
    }
    assert_int_equal(n, ARRAY_LEN(order));
    phema_json_free(root);
}

static void strings_may_hold_nul(void **state)
{
    (void)state;
    struct phema_json *root = parse("[\"a\\u0000b\", \"\\ud83d\\ude00\"]");
    size_t size = 0;
    const char *string = phema_json_string(phema_json_at(root, 0), &size);
    assert_int_equal(size, 3);
    assert_memory_equal(string, "a\0b", 3);
    string = phema_json_string(phema_json_at(root, 1), &size);
    assert_int_equal(size, 4);
    assert_memory_equal(string, "\xF0\x9F\x98\x80", 4);
    phema_json_free(root);
}

static void duplicate_keys_are_refused_on_every_level(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":1}",
                                        "{\"x\":{\"a\":1,\"b\":2,\"a\":3}}", "[[{\"\":1,\"\":1}]]"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_refused(texts[i], strlen(texts[i]), "duplicate");
}

static void invalid_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "}",
                                        "[1,]",
                                        "{\"a\":}",
                                        "{\"a\" 1}",
                                        "{a:1}",
                                        "['a']",
                                        "[01]",
                                        "[1.]",
                                        "[.5]",
                                        "[+1]",
                                        "[0x10]",
                                        "[NaN]",
                                        "[Infinity]",
                                        "[1e]",
                                        "[tru]",
                                        "nul",
                                        "[\"\\x41\"]",
                                        "[\"\\u12\"]",
                                        "[\"a\nb\"]",
                                        "[\"open",
                                        "{\"a\":1,}",
                                        "[\"\\ud800\"]"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_refused(texts[i], strlen(texts[i]), "at byte ");
}

static void nothing_may_follow_the_document(void **state)
{
    (void)state;
    static const char *const texts[] = {"{} x", "{}{}", "[] ,", "{}\n{}", "[1] 2"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_refused(texts[i], strlen(texts[i]), "not valid");
    assert_refused("{}\0", 3, "not valid");
    assert_refused("{}\0{\"a\":1}", 10, "not valid");
    phema_json_free(parse("{} \t\r\n"));
}

static void every_cut_of_a_document_is_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"snapshots\":[{\"file\":\"a\\u00e9.pt\",\"time\":1.5e3}],\"n\":-1}";
    for (size_t size = 0; size < sizeof(text) - 1; size++)
        assert_refused(text, size, "not valid");
    phema_json_free(parse(text));
}

static void invalid_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const strings[] = {"[\"\xFF\"]",
                                          "[\"\xC0\xAF\"]",
                                          "[\"\xED\xA0\x80\"]",
                                          "[\"\xF4\x90\x80\x80\"]",
                                          "[\"\xE2\x82\"]",
                                          "{\"\x80\":1}",
                                          "\xFF",
                                          "\xEF\xBB\xBF{}"};
    for (size_t i = 0; i < ARRAY_LEN(strings); i++)
        assert_refused(strings[i], strlen(strings[i]), "not valid");
}

/* jansson quotes line breaks and escape sequences from the document. */
static void messages_are_one_line(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": \"b\\u\n";
    struct phema_error err = {0};
    struct phema_json *root = NULL;
    struct phema_span span = {(const uint8_t *)text, sizeof(text) - 1};
    assert_fails(phema_json_parse(&root, span, &err), PHEMA_ERR_FILE, &err, "not valid");
    for (const char *c = err.message; *c; c++)
        assert_true((unsigned char)*c >= ' ');
}

/* A million brackets must cause an error message, not a stack overflow. */
static void deep_nesting_is_refused(void **state)
{
    (void)state;
    static const char *const units[] = {"[", "{\"a\":"};
    for (size_t u = 0; u < ARRAY_LEN(units); u++) {
        struct phema_strbuf text = {0};
        while (text.size < 1000000)
            phema_strbuf_puts(&text, units[u]);
        assert_refused(text.data, text.size, "depth");
        phema_strbuf_clear(&text);
    }
    struct phema_strbuf text = {0};
    for (int i = 0; i < 64; i++)
        phema_strbuf_puts(&text, "[");
    for (int i = 0; i < 64; i++)
        phema_strbuf_puts(&text, "]");
    phema_json_free(parse(text.data));
    phema_strbuf_clear(&text);
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"[9223372036854775808]", "[-9223372036854775809]",
                                        "[1e999]", "[-1e999]", "[1000000000000000000000000000000]"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_refused(texts[i], strlen(texts[i]), "not valid");
    struct phema_json *root = parse("[9223372036854775807, 1e-999]");
    uint64_t largest = 0;
    double smallest = 1;
    assert_true(phema_json_u64(&largest, phema_json_at(root, 0)));
    assert_true(largest == INT64_MAX);
    assert_true(phema_json_number(&smallest, phema_json_at(root, 1)));
    assert_true(smallest == 0);
    phema_json_free(root);
}

/* ---- Writing ---- */

static void members_are_separated_and_nested(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_u64(&out, "u", UINT64_MAX);
    phema_json_out_open(&out, "empty", '[');
    phema_json_out_close(&out, ']');
    phema_json_out_open(&out, "a", '[');
    phema_json_out_bool(&out, NULL, true);
    phema_json_out_null(&out, NULL);
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_close(&out, '}');
    phema_json_out_string(&out, NULL, "s");
    phema_json_out_close(&out, ']');
    phema_json_out_key(&out, "k\0y", 3);
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_number(&out, "x", 0.5);
    phema_json_out_close(&out, '}');
    phema_json_out_bool(&out, "last", false);
    phema_json_out_close(&out, '}');
    assert_string_equal(text.data, "{\"u\":18446744073709551615,\"empty\":[],\"a\":[true,null,{},"
                                   "\"s\"],\"k\\u0000y\":{\"x\":0.5},\"last\":false}");
    phema_strbuf_clear(&text);
}

/* Pretty text has line breaks on the outer two levels and parses to the same. */
static void pretty_text_is_the_same_document(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text, .is_pretty = true};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_u64(&out, "version", 1);
    phema_json_out_open(&out, "list", '[');
    for (uint64_t i = 0; i < 2; i++) {
        phema_json_out_open(&out, NULL, '{');
        phema_json_out_u64(&out, "a", i);
        phema_json_out_u64(&out, "b", i + 1);
        phema_json_out_close(&out, '}');
    }
    phema_json_out_close(&out, ']');
    phema_json_out_close(&out, '}');
    assert_string_equal(text.data, "{\n \"version\": 1,\n \"list\": [\n  {\"a\": 0, \"b\": 1},\n"
                                   "  {\"a\": 1, \"b\": 2}\n ]\n}");
    phema_json_free(parse(text.data));
    phema_strbuf_clear(&text);
}

static void numbers_read_back_as_the_same_double(void **state)
{
    (void)state;
    double numbers[1000] = {0.0,
                            -0.0,
                            1.0,
                            0.1,
                            1.0 / 3,
                            2.0 / 3,
                            1e22,
                            1e23,
                            DBL_MAX,
                            DBL_MIN,
                            DBL_TRUE_MIN,
                            0.289,
                            5e-324,
                            1e300,
                            1e-300,
                            123456789012345678.0,
                            -DBL_MAX,
                            DBL_EPSILON,
                            9007199254740993.0,
                            4.35};
    uint64_t random = 1;
    for (size_t i = 20; i < ARRAY_LEN(numbers); i++) {
        do {
            random = random * 6364136223846793005U + 1442695040888963407U;
            uint64_t bits = random ^ random >> 29;
            memcpy(&numbers[i], &bits, sizeof(bits));
        } while (!isfinite(numbers[i]));
    }
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_json_out_open(&out, NULL, '[');
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        phema_json_out_number(&out, NULL, numbers[i]);
    phema_json_out_close(&out, ']');
    struct phema_json *root = parse(text.data);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        double back = (double)NAN;
        assert_true(phema_json_number(&back, phema_json_at(root, i)));
        if (back != numbers[i]) /* -0 is printed as the integer -0 and may read back as 0 */
            fail_msg("%.17g came back as %.17g", numbers[i], back);
    }
    phema_json_free(root);
    phema_strbuf_clear(&text);
}

static void nan_and_infinity_become_null(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_number(&out, "nan", (double)NAN);
    phema_json_out_number(&out, "inf", HUGE_VAL);
    phema_json_out_number(&out, "minus", -HUGE_VAL);
    phema_json_out_close(&out, '}');
    assert_string_equal(text.data, "{\"nan\":null,\"inf\":null,\"minus\":null}");
    phema_strbuf_clear(&text);
}

/* Any bytes become a valid JSON string; UTF-8 becomes the same string. */
static void any_bytes_become_a_string(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *back;
        size_t back_size;
    } strings[] = {
        {"", 0, "", 0},
        {"plain", 5, "plain", 5},
        {"q\"b\\s/", 6, "q\"b\\s/", 6},
        {"\n\t\r\b\f\x01\x1F\x7F", 8, "\n\t\r\b\f\x01\x1F\x7F", 8},
        {"a\0b", 3, "a\0b", 3},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9},
        {"a\xFFz", 3, "a\xEF\xBF\xBDz", 5},
        {"\xE2\x82", 2, "\xEF\xBF\xBD\xEF\xBF\xBD", 6},
        {"\xF0\x9F\x98", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 9},
        {"\xC3(", 2, "\xEF\xBF\xBD(", 4},
        {"\xE2\x82\xC3\xA9", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xC3\xA9", 8},
    };
    for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
        struct phema_strbuf text = {0};
        struct phema_json_out out = {.text = &text};
        const char *bytes = (const char *)support_guarded(strings[i].bytes, strings[i].size);
        phema_json_out_open(&out, NULL, '[');
        phema_json_out_bytes(&out, NULL, bytes, strings[i].size);
        phema_json_out_close(&out, ']');
        struct phema_json *root = parse(text.data);
        size_t size = 0;
        const char *back = phema_json_string(phema_json_at(root, 0), &size);
        assert_int_equal(size, strings[i].back_size);
        assert_memory_equal(back, strings[i].back, size);
        for (size_t at = 0; at < text.size; at++) /* no control characters for a terminal */
            assert_true((unsigned char)text.data[at] >= ' ' && text.data[at] != 0x7F);
        phema_json_free(root);
        phema_strbuf_clear(&text);
    }
}

/* The text has no control characters for a terminal, and readers get the same string. */
static void invisible_and_direction_characters_are_escaped(void **state)
{
    (void)state;
    static const char name[] = "\xC2\x9B\xE2\x80\xAE\xEF\xBB\xBF\xF3\xA0\x81\x81\xC3\xA9\x7F";
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_key(&out, name, strlen(name));
    phema_json_out_string(&out, NULL, name);
    phema_json_out_close(&out, '}');
    static const char escaped[] = "\"\\u009b\\u202e\\ufeff\\udb40\\udc41\xC3\xA9\\u007f\"";
    char wanted[256];
    (void)snprintf(wanted, sizeof(wanted), "{%s:%s}", escaped, escaped);
    assert_string_equal(text.data, wanted);
    struct phema_json *root = parse(text.data);
    size_t size = 0;
    assert_string_equal(phema_json_string(phema_json_get(root, name), &size), name);
    phema_json_free(root);
    phema_strbuf_clear(&text);
}

/* A second member holds the bytes if they are not UTF-8. */
static void paths_of_any_bytes_are_read_back(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "",     "a b/\xC3\xA9%20", "\xFF",         "a%\xE2\x82",      "%zz",
        "\xC3", "a\n\"\\\xFE",     "\xEF\xBF\xBD", "\xEF\xBF\xBD\xFF"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct phema_strbuf text = {0};
        struct phema_arena arena = {0};
        struct phema_json_out out = {.text = &text};
        phema_json_out_open(&out, NULL, '{');
        phema_json_out_path(&out, "file", paths[i]);
        phema_json_out_close(&out, '}');
        assert_true(phema_is_utf8(text.data, text.size));
        bool is_utf8 = phema_is_utf8(paths[i], strlen(paths[i]));
        assert_int_equal(strstr(text.data, "file_bytes") == NULL, is_utf8);
        struct phema_json *root = parse(text.data);
        assert_string_equal(phema_json_path(&arena, root, "file"), paths[i]);
        phema_json_free(root);
        phema_arena_clear(&arena);
        phema_strbuf_clear(&text);
    }
}

static void invalid_paths_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"file\":3}",
        "{\"file\":\"a\\u0000\"}",
        "{\"file_bytes\":\"a\"}",
        "{\"file\":\"a\",\"file_bytes\":3}",
        "{\"file\":\"a\",\"file_bytes\":\"a%4\"}",
        "{\"file\":\"a\",\"file_bytes\":\"a%00\"}",
        "{\"file\":\"a\",\"file_bytes\":\"a\\u0000\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct phema_arena arena = {0};
        struct phema_json *root = parse(texts[i]);
        assert_null(phema_json_path(&arena, root, "file"));
        phema_json_free(root);
        phema_arena_clear(&arena);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_have_their_types),
    cmocka_unit_test(a_value_of_another_type_is_refused),
    cmocka_unit_test(fields_come_in_document_order),
    cmocka_unit_test(strings_may_hold_nul),
    cmocka_unit_test(duplicate_keys_are_refused_on_every_level),
    cmocka_unit_test(invalid_json_is_refused_with_its_place),
    cmocka_unit_test(nothing_may_follow_the_document),
    cmocka_unit_test(every_cut_of_a_document_is_refused),
    cmocka_unit_test(invalid_utf8_is_refused),
    cmocka_unit_test(messages_are_one_line),
    cmocka_unit_test(deep_nesting_is_refused),
    cmocka_unit_test(numbers_that_do_not_fit_are_refused),
    cmocka_unit_test(members_are_separated_and_nested),
    cmocka_unit_test(pretty_text_is_the_same_document),
    cmocka_unit_test(numbers_read_back_as_the_same_double),
    cmocka_unit_test(nan_and_infinity_become_null),
    cmocka_unit_test(any_bytes_become_a_string),
    cmocka_unit_test(invisible_and_direction_characters_are_escaped),
    cmocka_unit_test(paths_of_any_bytes_are_read_back),
    cmocka_unit_test(invalid_paths_are_refused),
};
TEST_GROUP(tests)
