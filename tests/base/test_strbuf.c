// SPDX-License-Identifier: Apache-2.0
/* Growing text, UTF-8 of RFC 3629, and names escaped for terminals. Valid UTF-8 comes from the
 * table in section 4 of that RFC; hostile strings are written as bytes. */
#include "phema/strbuf.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

/* ---- Growing ---- */

static void appended_text_ends_with_nul(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    struct phema_error err = {0};
    phema_strbuf_puts(&text, "a");
    phema_strbuf_append(&text, "b\0c", 3);
    phema_strbuf_printf(&text, "%d-%s", 17, "x");
    assert_ok(phema_strbuf_check(&text, &err), &err);
    assert_int_equal(text.size, 8);
    assert_memory_equal(text.data, "ab\0c17-x", 9);
    phema_strbuf_clear(&text);
    assert_null(text.data);
    assert_int_equal(text.size, 0);
}

static void an_empty_append_makes_an_empty_string(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    phema_strbuf_append(&text, NULL, 0);
    assert_non_null(text.data);
    assert_string_equal(text.data, "");
    phema_strbuf_clear(&text);
}

/* Every size around the growth steps, with both ways of appending. */
static void no_length_is_special(void **state)
{
    (void)state;
    for (size_t size = 0; size < 1100; size++) {
        char *piece = malloc(size + 1);
        assert_non_null(piece);
        memset(piece, 'p', size);
        piece[size] = '\0';
        struct phema_strbuf appended = {0}, printed = {0};
        phema_strbuf_append(&appended, piece, size);
        phema_strbuf_append(&appended, "|", 1);
        phema_strbuf_printf(&printed, "%s", piece);
        phema_strbuf_printf(&printed, "|");
        assert_int_equal(appended.size, size + 1);
        assert_int_equal(printed.size, size + 1);
        assert_memory_equal(appended.data, printed.data, size + 2);
        assert_int_equal(appended.data[size], '|');
        phema_strbuf_clear(&appended);
        phema_strbuf_clear(&printed);
        free(piece);
    }
}

static void a_size_beyond_memory_fails_once_and_for_good(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    struct phema_error err = {0};
    phema_strbuf_puts(&text, "kept");
    phema_strbuf_append(&text, "x",
                        SIZE_MAX); /* must not overflow: that would read x far past its end */
    assert_true(text.is_failed);
    phema_strbuf_puts(&text, "later");
    phema_strbuf_printf(&text, "%s", "later");
    assert_string_equal(text.data, "kept");
    assert_fails(phema_strbuf_check(&text, &err), PHEMA_ERR_RESOURCE, &err, "out of memory");
    phema_strbuf_clear(&text);
    assert_false(text.is_failed);
}

/* ---- UTF-8 ---- */

static bool is_utf8_alone(const char *bytes, size_t size)
{
    return phema_is_utf8((const char *)support_guarded(bytes, size), size);
}

static void valid_utf8_is_accepted(void **state)
{
    (void)state;
    static const char *const valid[] = {"",
                                        "plain",
                                        "\x7F",
                                        "\xC2\x80",
                                        "\xDF\xBF",
                                        "\xE0\xA0\x80",
                                        "\xEC\xBF\xBF",
                                        "\xED\x80\x80",
                                        "\xED\x9F\xBF",
                                        "\xEE\x80\x80",
                                        "\xEF\xBF\xBF",
                                        "\xF0\x90\x80\x80",
                                        "\xF3\xBF\xBF\xBF",
                                        "\xF4\x80\x80\x80",
                                        "\xF4\x8F\xBF\xBF"};
    for (size_t i = 0; i < ARRAY_LEN(valid); i++)
        assert_true(is_utf8_alone(valid[i], strlen(valid[i])));
    assert_true(phema_is_utf8("a\0b", 3)); /* U+0000 is a character */
}

static void invalid_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const invalid[] = {
        "\x80",             /* a continuation alone */
        "\xBF",             /* */
        "a\x80",            /* */
        "\xC0\x80",         /* overlong NUL */
        "\xC1\xBF",         /* overlong DEL */
        "\xE0\x80\x80",     /* overlong in three bytes */
        "\xE0\x9F\xBF",     /* */
        "\xF0\x80\x80\x80", /* overlong in four */
        "\xF0\x8F\xBF\xBF", /* */
        "\xED\xA0\x80",     /* surrogates: first, last, a pair (CESU-8) */
        "\xED\xBF\xBF",
        "\xED\xA0\xBD\xED\xB8\x80",
        "\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "\xF5\x80\x80\x80",
        "\xF8\x88\x80\x80\x80",
        "\xFC\x84\x80\x80\x80\x80", /* */
        "\xFE",                     /* bytes that never occur */
        "\xFF",                     /* */
        "\xC2",                     /* cut short */
        "\xE2\x82",                 /* */
        "\xF0\x9F\x98",             /* */
        "\xC2\x41",                 /* not continued */
        "\xE2\x82\x41",             /* */
        "\xE2\x28\xA1",             /* */
        "\xF0\x9F\x98\x41",         /* */
        "\xC2\xC2\x80",             /* */
        "ok\xE2\x82\xAC\xE2\x82",   /* valid, then cut short */
    };
    for (size_t i = 0; i < ARRAY_LEN(invalid); i++)
        if (is_utf8_alone(invalid[i], strlen(invalid[i])))
            fail_msg("invalid string %zu was taken for UTF-8", i);
}

/* Brute force over all pairs of bytes, and over every third and fourth byte after each lead byte. A
 * character is valid if the encoding of its code point gives the same bytes. */
static size_t encode(char out[4], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(leads[length] | code);
    return length;
}

static void every_character_is_accepted_and_cut_ones_are_not(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char bytes[4];
        size_t length = encode(bytes, code);
        bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
        if (phema_is_utf8(bytes, length) == is_surrogate)
            fail_msg("U+%04X: wrong answer", (unsigned)code);
        if (length > 1 && phema_is_utf8(bytes, length - 1))
            fail_msg("U+%04X: accepted without its end", (unsigned)code);
    }
}

static void two_bytes_are_a_character_only_as_encoded(void **state)
{
    (void)state;
    size_t n_valid = 0;
    for (unsigned pair = 0; pair < 65536; pair++) {
        char bytes[2] = {(char)(pair >> 8), (char)(pair & 0xFF)};
        n_valid += phema_is_utf8(bytes, 2);
    }
    /* two ASCII characters, or one of U+0080 to U+07FF */
    assert_int_equal(n_valid, 128 * 128 + (0x800 - 0x80));
}

/* ---- Names ---- */

static void assert_shown(const char *name, size_t size, const char *wanted)
{
    struct phema_name_buffer buffer;
    const char *input = (const char *)support_guarded(name, size);
    assert_string_equal(phema_name_escape(&buffer, input, size), wanted);
}

static void names_are_escaped_for_terminals(void **state)
{
    (void)state;
    assert_shown("conv_in.weight", 14, "conv_in.weight");
    assert_shown("", 0, "");
    assert_shown("it's \\ a", 8, "it\\'s \\\\ a");
    assert_shown("a\nb\tc\rd", 7, "a\\nb\\tc\\x0dd");
    assert_shown("a\0b", 3, "a\\x00b");
    assert_shown("\x1B[31mred\x07", 9, "\\x1b[31mred\\x07");
    assert_shown("\x7F", 1, "\\x7f");
    assert_shown("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

/* Terminals read U+0080 to U+009F as commands: U+009B is ESC [ in one character. */
static void c1_controls_are_escaped(void **state)
{
    (void)state;
    assert_shown("a\xC2\x9B"
                 "31m",
                 6, "a\\u009b31m");
    assert_shown("\xC2\x80\xC2\x9F", 4, "\\u0080\\u009f");
    assert_shown("\xC2\xA0", 2, "\xC2\xA0"); /* the first character after the C1 controls */
}

/* Three groups: the Bidi_Control characters of Unicode (PropList.txt), the
 * Default_Ignorable_Code_Point characters outside letters and emoji, and line and paragraph
 * separators. The cases are the first and last of each range, and their neighbours. */
static void invisible_and_direction_characters_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *character, *shown;
    } cases[] = {
        {"\xD8\x9C", "\\u061c"},
        {"\xE2\x80\x8B", "\\u200b"},
        {"\xE2\x80\x8E", "\\u200e"},
        {"\xE2\x80\x8F", "\\u200f"},
        {"\xE2\x80\xA8", "\\u2028"},
        {"\xE2\x80\xA9", "\\u2029"},
        {"\xE2\x80\xAA", "\\u202a"},
        {"\xE2\x80\xAE", "\\u202e"},
        {"\xE2\x81\xA0", "\\u2060"},
        {"\xE2\x81\xA6", "\\u2066"},
        {"\xE2\x81\xA9", "\\u2069"},
        {"\xE2\x81\xAF", "\\u206f"},
        {"\xEF\xBB\xBF", "\\ufeff"},
        {"\xEF\xBF\xB9", "\\ufff9"},
        {"\xC2\xAD", "\\u00ad"},
        {"\xE1\xA0\x8E", "\\u180e"},
        {"\xF3\xA0\x80\x81", "\\U000e0001"},
        {"\xF3\xA0\x81\xBF", "\\U000e007f"},
        {"\xE2\x80\x8A", NULL},
        {"\xE2\x80\x90", NULL},
        {"\xE2\x80\xA7", NULL},
        {"\xE2\x80\xAF", NULL},
        {"\xE2\x81\x9F", NULL},
        {"\xE2\x81\xB0", NULL},
        {"\xEF\xBF\xBC", NULL},
        {"\xF3\xA0\x82\x80", NULL},
        {"\xD8\x9B", NULL},
        {"\xD7\x90", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *character = cases[i].character;
        const char *wanted = cases[i].shown ? cases[i].shown : character;
        assert_shown(character, strlen(character), wanted);
        struct phema_strbuf text = {0};
        phema_strbuf_puts_escaped(&text, character);
        assert_string_equal(text.data, wanted);
        phema_strbuf_clear(&text);
    }
}

static void lines_keep_their_ends(void **state)
{
    (void)state;
    static const char lines[] = "a\tb\n\x1B[1m\xE2\x80\xAE\xFF'\\\0\n";
    struct phema_strbuf text = {0};
    phema_strbuf_append_lines(&text, lines, sizeof(lines) - 1);
    assert_string_equal(text.data, "a\tb\n\\x1b[1m\\u202e\\xff'\\\\x00\n");
    phema_strbuf_clear(&text);
}

/* RFC 3986, section 2.1 */
static void bytes_are_percent_encoded(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    phema_strbuf_puts_percent(&text, "a/b-1_.~:,+@= %\"\\\n\x7F\xC3\xA9\xFF");
    assert_string_equal(text.data, "a/b-1_.~:,+@=%20%25%22%5C%0A%7F%C3%A9%FF");
    char decoded[64];
    assert_true(phema_percent_decode(decoded, text.data));
    assert_string_equal(decoded, "a/b-1_.~:,+@= %\"\\\n\x7F\xC3\xA9\xFF");
    phema_strbuf_clear(&text);
    assert_true(phema_percent_decode(decoded, "%c3%Af%01"));
    assert_string_equal(decoded, "\xC3\xAF\x01");
    static const char *const damaged[] = {"%", "a%4", "%g0", "%0g", "%00", "%%41"};
    for (size_t i = 0; i < ARRAY_LEN(damaged); i++)
        assert_false(phema_percent_decode(decoded, damaged[i]));
}

static void invalid_utf8_is_printed_as_bytes(void **state)
{
    (void)state;
    assert_shown("a\xFF\x80z", 4, "a\\xff\\x80z");
    assert_shown("\xE2\x82", 2, "\\xe2\\x82");
    assert_shown("\xED\xA0\x80", 3, "\\xed\\xa0\\x80");
    assert_shown("\xC0\xAF", 2, "\\xc0\\xaf"); /* an overlong slash */
}

/* For any name, the shown form fits the buffer, is UTF-8 and contains no control character. */
static void long_names_are_cut_between_characters(void **state)
{
    (void)state;
    static const char *const units[] = {"a",
                                        "\x01",
                                        "'",
                                        "\xC3\xA9",
                                        "\xE2\x82\xAC",
                                        "\xC2\x9B",
                                        "\xFF\xE2\x82",
                                        "\xF0\x9F\x98\x80"};
    for (size_t u = 0; u < ARRAY_LEN(units); u++)
        for (size_t first = 0; first < 5; first++) {
            struct phema_strbuf name = {0};
            for (size_t i = 0; i < first; i++)
                phema_strbuf_puts(&name, "x");
            while (name.size < 100000)
                phema_strbuf_puts(&name, units[u]);
            struct phema_name_buffer buffer;
            memset(&buffer, 'X', sizeof(buffer));
            const char *shown = phema_name_escape(&buffer, name.data, name.size);
            size_t length = strnlen(shown, sizeof(buffer));
            assert_in_range(length, PHEMA_NAME_SHOWN - 4, PHEMA_NAME_SHOWN + 3);
            assert_string_equal(shown + length - 3, "...");
            assert_true(phema_is_utf8(shown, length));
            for (size_t i = 0; i < length; i++)
                assert_true((unsigned char)shown[i] >= ' ');
            phema_strbuf_clear(&name);
        }
}

static void a_name_that_just_fits_is_not_cut(void **state)
{
    (void)state;
    char name[PHEMA_NAME_SHOWN + 1];
    memset(name, 'n', sizeof(name));
    struct phema_name_buffer buffer;
    (void)phema_name_escape(&buffer, name, PHEMA_NAME_SHOWN);
    assert_int_equal(strlen(buffer.text), PHEMA_NAME_SHOWN);
    assert_null(strchr(buffer.text, '.'));
    (void)phema_name_escape(&buffer, name, PHEMA_NAME_SHOWN + 1);
    assert_non_null(strstr(buffer.text, "..."));
}

/* ---- Sizes ---- */

static void sizes_have_three_digits_and_a_unit(void **state)
{
    (void)state;
    static const struct {
        uint64_t size_bytes;
        const char *shown;
    } sizes[] = {{0, "0 B"},
                 {1, "1 B"},
                 {96, "96 B"},
                 {999, "999 B"},
                 {1000, "0.98 KiB"},
                 {1024, "1.00 KiB"},
                 {1536, "1.50 KiB"},
                 {10240, "10.0 KiB"},
                 {102400, "100 KiB"},
                 {1023487, "999 KiB"}, /* 999.499 */
                 {1048576, "1.00 MiB"},
                 {(uint64_t)3 << 29, "1.50 GiB"},
                 {(uint64_t)1 << 40, "1.00 TiB"},
                 {(uint64_t)1 << 50, "1.00 PiB"},
                 {UINT64_MAX, "16.0 EiB"}};
    struct phema_name_buffer buffer;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        assert_string_equal(phema_size_format(&buffer, sizes[i].size_bytes), sizes[i].shown);
    /* phema_size_enough never rounds down */
    assert_string_equal(phema_size_enough(&buffer, 1023), "1.00 KiB");
    assert_string_equal(phema_size_enough(&buffer, (1 << 20) + 1), "1.01 MiB");
    assert_string_equal(phema_size_enough(&buffer, 1 << 20), "1.00 MiB");
    assert_string_equal(phema_size_enough(&buffer, (uint64_t)100 << 20 | 1), "101 MiB");
}

/* The shortest decimal that strtod reads back exactly; whole numbers have no exponent. */
static void numbers_are_as_short_as_they_can_be(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *shown;
    } known[] = {{0.1, "0.1"},
                 {0.05, "0.05"},
                 {300, "300"},
                 {-5, "-5"},
                 {2147483648.0, "2147483648"},
                 {1.5e-9, "1.5e-09"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {1e300, "1e+300"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct phema_name_buffer buffer;
        assert_string_equal(phema_number_format(&buffer, known[i].value), known[i].shown);
    }
}

static void an_end_is_shorter_than_the_string(void **state)
{
    (void)state;
    assert_true(phema_ends_with("a.pt", ".pt"));
    assert_false(phema_ends_with(".pt", ".pt"));
    assert_false(phema_ends_with("t", ".pt"));
    assert_false(phema_ends_with("a.ptx", ".pt"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(appended_text_ends_with_nul),
    cmocka_unit_test(an_empty_append_makes_an_empty_string),
    cmocka_unit_test(no_length_is_special),
    cmocka_unit_test(a_size_beyond_memory_fails_once_and_for_good),
    cmocka_unit_test(valid_utf8_is_accepted),
    cmocka_unit_test(invalid_utf8_is_refused),
    cmocka_unit_test(every_character_is_accepted_and_cut_ones_are_not),
    cmocka_unit_test(two_bytes_are_a_character_only_as_encoded),
    cmocka_unit_test(names_are_escaped_for_terminals),
    cmocka_unit_test(c1_controls_are_escaped),
    cmocka_unit_test(invisible_and_direction_characters_are_escaped),
    cmocka_unit_test(lines_keep_their_ends),
    cmocka_unit_test(bytes_are_percent_encoded),
    cmocka_unit_test(invalid_utf8_is_printed_as_bytes),
    cmocka_unit_test(long_names_are_cut_between_characters),
    cmocka_unit_test(a_name_that_just_fits_is_not_cut),
    cmocka_unit_test(sizes_have_three_digits_and_a_unit),
    cmocka_unit_test(numbers_are_as_short_as_they_can_be),
    cmocka_unit_test(an_end_is_shorter_than_the_string),
};
TEST_GROUP(tests)
