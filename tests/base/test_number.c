// SPDX-License-Identifier: Apache-2.0
/* Numbers with suffixes, as in the table of posthoc-ema(1), and invalid numbers. */
#include "phema/number.h"

#include <math.h>
#include <string.h>

#include "support.h"

static void suffixes_are_powers_of_1000_and_1024(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } known[] = {{"0", 0},         {"20k", 20e3},  {"20K", 20e3}, {"1.5M", 1.5e6},
                 {"2G", 2e9},      {"1T", 1e12},   {"1Ki", 1024}, {"3Mi", 3145728},
                 {"-1.5k", -1500}, {"1e-3", 1e-3}, {"+.5", 0.5},  {"2Gi", 2147483648.0},
                 {"300B", 3e11}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct phema_error err = {0};
        double value = -1;
        assert_ok(phema_number_parse(&value, known[i].text, &err), &err);
        assert_true(value == known[i].value);
    }
}

static void invalid_numbers_are_named(void **state)
{
    (void)state;
    static const char *const none[] = {"", "k", "x", "1x", "0x10", " 1", "1 ", "1kk", "1,2", "inf"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct phema_error err = {0};
        double value = 7;
        assert_fails(phema_number_parse(&value, none[i], &err), PHEMA_ERR_USAGE, &err,
                     "expected a number");
        assert_true(value == 7);
    }
}

static void counts_are_whole_and_below_2_to_53(void **state)
{
    (void)state;
    struct phema_error err = {0};
    uint64_t count = 7;
    assert_ok(phema_count_parse(&count, "1.5k", &err), &err);
    assert_int_equal(count, 1500);
    assert_ok(phema_count_parse(&count, "2.6B", &err), &err);
    assert_int_equal(count, 2600000000);
    assert_ok(phema_count_parse(&count, "9007199254740991", &err), &err);
    assert_true(count == 9007199254740991u);
    static const char *const none[] = {"1.5", "-1", "9007199254740992", "nan", "+inf", "1e300", ""};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_fails(phema_count_parse(&count, none[i], &err), PHEMA_ERR_USAGE, &err,
                     "expected a whole number");
}

static void sizes_are_exact_and_rounded_down(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } known[] = {{"0", 0},
                 {"0.0GiB", 0},
                 {"1e3", 1000},
                 {"1E3", 1000},
                 {"1e+3B", 1000},
                 {"512M", 512000000},
                 {"5GB", 5000000000},
                 {"1.5GiB", 1610612736},
                 {"1.GiB", 1073741824},
                 {".5Gi", 536870912},
                 {"1.", 1},
                 {"1.999999", 1},
                 {"1.5k", 1500},
                 {"1.2345k", 1234},
                 {"0.1KiB", 102},          /* of 102.4 */
                 {"0.3Mi", 314572},        /* of 314572.8 */
                 {"2.01GB", 2010000000},   /* 2.01 * 1e9 is 2009999999.9999998 */
                 {"0.7TiB", 769658139443}, /* of 769658139443.2 */
                 {"1.00000000000000000001Ki", 1024},
                 {"0.99999999999999999999Ki", 1023}, /* 1024 as a double */
                 {"1.5e-3GiB", 1610612},             /* of 1610612.736 */
                 {"0.0015e3k", 1500},
                 {"000000000000000000001e3", 1000},
                 {"0e9999", 0},
                 {"8191.999TiB", 9007198155229364u}, /* of ...364.2 */
                 {"9007199254740991", 9007199254740991u},
                 {"9007199254740991.9", 9007199254740991u},
                 {"8191.9999999999999999Ti", 9007199254740991u}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct phema_error err = {0};
        uint64_t bytes = 7;
        assert_ok(phema_size_parse(&bytes, known[i].text, &err), &err);
        if (bytes != known[i].bytes)
            print_error("'%s'\n", known[i].text);
        assert_true(bytes == known[i].bytes);
    }
}

static void invalid_sizes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } none[] = {{"", "expected a size like"},
                {".", "expected a size like"},
                {"B", "expected a size like"},
                {"GiB", "expected a size like"},
                {".GiB", "expected a size like"},
                {"1.5.2", "expected a size like"},
                {"1..5", "expected a size like"},
                {"1,5G", "expected a size like"},
                {"-1", "expected a size like"},
                {"+1", "expected a size like"},
                {" 1", "expected a size like"},
                {"1 G", "expected a size like"},
                {"1BB", "expected a size like"},
                {"1iB", "expected a size like"},
                {"1Gib", "expected a size like"},
                {"1GiBx", "expected a size like"},
                {"1GiGiB", "expected a size like"},
                {"0x10", "expected a size like"},
                {"nan", "expected a size like"},
                {"inf", "expected a size like"},
                {"1e", "expected a size like"},
                {"1e+", "expected a size like"},
                {"1e3.5", "expected a size like"},
                {"1e99999", "expected a size like"},
                {"1e9999", "below 8192 TiB"},
                {"8192TiB", "below 8192 TiB"},
                {"9007199254740992", "below 8192 TiB"},
                {"9007199254740991.9k", "below 8192 TiB"},
                {"18446744073709551616", "below 8192 TiB"},
                {"18446744073709551617", "below 8192 TiB"},
                {"16777216TiB", "below 8192 TiB"}, /* 2^64 */
                {".5", "at least one byte"},
                {"0.0009k", "at least one byte"},
                {"1e-1", "at least one byte"},
                {"1e-9999", "at least one byte"}};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct phema_error err = {0};
        uint64_t bytes = 7;
        assert_fails(phema_size_parse(&bytes, none[i].text, &err), PHEMA_ERR_USAGE, &err,
                     none[i].part);
        assert_non_null(strstr(err.message, "expected a size"));
        assert_true(bytes == 7);
    }
    char long_text[200];
    memset(long_text, '0', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    struct phema_error err = {0};
    uint64_t bytes = 7;
    assert_fails(phema_size_parse(&bytes, long_text, &err), PHEMA_ERR_USAGE, &err,
                 "expected a size like");
}

static void decimals_are_whole_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } known[] = {{"0.5", 0.5},      {"-1e-3", -1e-3},    {"+7", 7},
                 {"inf", HUGE_VAL}, {"-INF", -HUGE_VAL}, {"1e999", HUGE_VAL}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        double value = 0;
        struct phema_span text = {(const uint8_t *)known[i].text, strlen(known[i].text)};
        assert_true(phema_decimal_parse(&value, text));
        assert_true(value == known[i].value);
    }
    double value = 0;
    assert_true(phema_decimal_parse(&value, (struct phema_span){(const uint8_t *)"nan", 3}));
    assert_true(isnan(value));

    static const char *none[] = {"", " 1", "1 ", "0x1p3", "1k", "one", "1,5", "--1", "e5"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct phema_span text = {(const uint8_t *)none[i], strlen(none[i])};
        assert_false(phema_decimal_parse(&value, text));
    }
    assert_false(phema_decimal_parse(&value, (struct phema_span){(const uint8_t *)"1\0"
                                                                                  "2",
                                                                 3}));

    /* A text of the longest length is read up to its end and not beyond it. */
    char digits[64];
    memset(digits, '1', sizeof(digits));
    assert_true(phema_decimal_parse(&value, (struct phema_span){(uint8_t *)digits, 63}));
    assert_false(phema_decimal_parse(&value, (struct phema_span){(uint8_t *)digits, 64}));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(suffixes_are_powers_of_1000_and_1024),
    cmocka_unit_test(invalid_numbers_are_named),
    cmocka_unit_test(counts_are_whole_and_below_2_to_53),
    cmocka_unit_test(sizes_are_exact_and_rounded_down),
    cmocka_unit_test(invalid_sizes_are_named),
    cmocka_unit_test(decimals_are_whole_texts),
};
TEST_GROUP(tests)
