// SPDX-License-Identifier: Apache-2.0
/* Numbers with suffixes: what each stands for by the table in posthoc-ema(1), and what is none. */
#include "phema/number.h"

#include <math.h>

#include "support.h"

static void suffixes_are_powers_of_1000_and_1024(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } known[] = {{"0", 0},         {"20k", 20e3},  {"20K", 20e3}, {"1.5M", 1.5e6},
                 {"2G", 2e9},      {"1T", 1e12},   {"1Ki", 1024}, {"3Mi", 3145728},
                 {"-1.5k", -1500}, {"1e-3", 1e-3}, {"+.5", 0.5},  {"2Gi", 2147483648.0}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct phema_error err = {""};
        double value = -1;
        assert_ok(phema_number_parse(&value, known[i].text, &err), &err);
        assert_true(value == known[i].value);
    }
}

static void what_is_no_number_is_named(void **state)
{
    (void)state;
    static const char *const none[] = {"", "k", "x", "1x", "0x10", " 1", "1 ", "1kk", "1,2", "inf"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct phema_error err = {""};
        double value = 7;
        assert_fails(phema_number_parse(&value, none[i], &err), PHEMA_ERR_USAGE, &err,
                     "is no number");
        assert_true(value == 7);
    }
}

static void counts_are_whole_and_below_2_to_53(void **state)
{
    (void)state;
    struct phema_error err = {""};
    uint64_t count = 7;
    assert_ok(phema_count_parse(&count, "1.5k", &err), &err);
    assert_int_equal(count, 1500);
    assert_ok(phema_count_parse(&count, "9007199254740991", &err), &err);
    assert_true(count == 9007199254740991u);
    static const char *const none[] = {"1.5", "-1", "9007199254740992", "nan", "+inf", "1e300", ""};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_fails(phema_count_parse(&count, none[i], &err), PHEMA_ERR_USAGE, &err,
                     "is no count");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suffixes_are_powers_of_1000_and_1024),
        cmocka_unit_test(what_is_no_number_is_named),
        cmocka_unit_test(counts_are_whole_and_below_2_to_53),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
