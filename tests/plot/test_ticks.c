// SPDX-License-Identifier: Apache-2.0
/* test_ticks.c - round numbers along axes, and their labels. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ticks.h"

static void assert_ticks(struct ticks ticks, const char *wanted, bool has_suffixes)
{
    char all[1024] = "";
    for (size_t i = 0; i < ticks.n; i++) {
        char label[TICKS_LABEL_SIZE];
        ticks_label(label, &ticks, i, has_suffixes);
        size_t used = strlen(all);
        (void)snprintf(all + used, sizeof(all) - used, "%s%s", i ? " " : "", label);
    }
    assert_string_equal(all, wanted);
}

static void linear_ticks_are_round(void **state)
{
    (void)state;
    assert_ticks(ticks_linear(0, 1, 7), "0 0.2 0.4 0.6 0.8 1.0", false);
    assert_ticks(ticks_linear(0, 1, 12), "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0", false);
    assert_ticks(ticks_linear(-0.2, 0.83, 7), "-0.2 0 0.2 0.4 0.6 0.8", false);
    assert_ticks(ticks_linear(0, 0.3, 7), "0 0.05 0.10 0.15 0.20 0.25 0.30", false);
    assert_ticks(ticks_linear(3.07, 3.19, 6), "3.08 3.10 3.12 3.14 3.16 3.18", false);
    assert_ticks(ticks_linear(0, 4096, 9), "0 500 1000 1500 2000 2500 3000 3500 4000", true);
    assert_ticks(ticks_linear(3.000001, 3.000003, 3), "3.000001 3.000002 3.000003", false);
    assert_ticks(ticks_linear(1.5e8, 1.7e8, 3), "1.5e8 1.6e8 1.7e8", false);
    assert_ticks(ticks_linear(-1e-9, 1e-9, 5), "-1e-9 -5e-10 0 5e-10 1e-9", false);
}

static void ticks_at_the_ends_are_not_lost(void **state)
{
    (void)state;
    /* 0.1 + 0.2 is above 0.3, 3 times 0.1 as well */
    assert_ticks(ticks_linear(0.1 + 0.2, 0.6, 4), "0.3 0.4 0.5 0.6", false);
    struct ticks ticks = ticks_linear(0, 0.7, 8);
    assert_int_equal(ticks.n, 8);
    assert_true(ticks.values[3] == 0.3);
    assert_true(ticks.values[7] == 0.7);
}

static void labels_have_suffixes_where_asked(void **state)
{
    (void)state;
    assert_ticks(ticks_linear(0, 20000, 5), "0 5k 10k 15k 20k", true);
    assert_ticks(ticks_linear(0, 20000, 5), "0 5000 10000 15000 20000", false);
    assert_ticks(ticks_linear(0, 2147483648.0, 5), "0 0.5G 1.0G 1.5G 2.0G", true);
    assert_ticks(ticks_linear(0, 5e10, 6), "0 10G 20G 30G 40G 50G", true);
    assert_ticks(ticks_linear(99000, 100000, 6), "99.0k 99.2k 99.4k 99.6k 99.8k 100.0k", true);
}

static void logarithmic_ticks_are_powers_of_ten(void **state)
{
    (void)state;
    assert_ticks(ticks_log(1e-4, 1, 9), "0.0001 0.001 0.01 0.1 1", false);
    assert_ticks(ticks_log(1e-12, 1, 5), "1e-12 1e-9 1e-6 1e-3 1e0", false);
    assert_ticks(ticks_log(0.01, 0.1, 9), "0.01 0.02 0.05 0.1", false);
    assert_ticks(ticks_log(0.015, 0.3, 9), "0.02 0.05 0.1 0.2", false);
}

static void widened_ends_are_round_and_stay(void **state)
{
    (void)state;
    double min = -0.11, max = 0.82;
    ticks_widen(&min, &max, 7);
    assert_near(min, -0.2, 1e-15);
    assert_near(max, 1.0, 1e-15);
    ticks_widen(&min, &max, 7);
    assert_near(min, -0.2, 1e-15);
    assert_near(max, 1.0, 1e-15);
    min = 1.7e-4;
    max = 0.63;
    ticks_widen_log(&min, &max);
    assert_near(min, 1e-4, 1e-18);
    assert_near(max, 1, 0);
    min = max = 0.01;
    ticks_widen_log(&min, &max);
    assert_near(min, 0.01, 1e-17);
    assert_near(max, 0.01, 1e-17);
}

/* Any range has some ticks, not too many, all inside it, ascending. */
static void any_range_has_ticks(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        double scale = pow(10, (double)(support_random(&seed) % 600) - 300);
        double min = ((double)(support_random(&seed) % 2000001) / 1e6 - 1) * scale;
        double max = min + ((double)(support_random(&seed) % 1000000) / 1e6 + 1e-3) * scale;
        size_t most = 2 + support_random(&seed) % 10;
        struct ticks ticks = ticks_linear(min, max, most);
        assert_true(ticks.n <= most);
        double slack = (max - min) * 1e-6;
        for (size_t k = 0; k < ticks.n; k++) {
            assert_true(ticks.values[k] >= min - slack && ticks.values[k] <= max + slack);
            assert_true(k == 0 || ticks.values[k] > ticks.values[k - 1]);
            char label[TICKS_LABEL_SIZE];
            ticks_label(label, &ticks, k, i % 2 == 0);
            assert_true(strlen(label) > 0);
        }
        double low = min, high = max;
        ticks_widen(&low, &high, most);
        assert_true(low <= min + slack && high >= max - slack);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(linear_ticks_are_round),
    cmocka_unit_test(ticks_at_the_ends_are_not_lost),
    cmocka_unit_test(labels_have_suffixes_where_asked),
    cmocka_unit_test(logarithmic_ticks_are_powers_of_ten),
    cmocka_unit_test(widened_ends_are_round_and_stay),
    cmocka_unit_test(any_range_has_ticks),
};
TEST_GROUP(tests)
