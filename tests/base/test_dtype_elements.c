// SPDX-License-Identifier: Apache-2.0
/* Single elements: their spacing compared with neighbouring numbers. tests/accumulate/test_round.c
 * compares all codes with published tables. */
#include "phema/dtype.h"

#include <math.h>
#include <string.h>

#include "support.h"

static double value_of(enum phema_dtype dtype, uint32_t code)
{
    uint8_t bytes[2] = {(uint8_t)code, (uint8_t)(code >> 8)};
    return phema_element_widen(dtype, bytes, 0);
}

/* For the positive numbers up to the largest finite one. */
static void spacing_leads_to_the_next_number(void **state)
{
    (void)state;
    static const struct {
        enum phema_dtype dtype;
        uint32_t first, last; /* codes */
    } dtypes[] = {
        {PHEMA_F16, 0, 0x7bff},   {PHEMA_BF16, 0, 0x7f7f},      {PHEMA_F8_E4M3, 0, 0x7e},
        {PHEMA_F8_E5M2, 0, 0x7b}, {PHEMA_F8_E4M3FNUZ, 0, 0x7f}, {PHEMA_F8_E5M2FNUZ, 0, 0x7f},
        {PHEMA_F4, 0, 7},         {PHEMA_F8_E8M0, 0, 254}};
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        for (uint32_t code = dtypes[i].first; code < dtypes[i].last; code++) {
            double x = value_of(dtypes[i].dtype, code);
            double next = value_of(dtypes[i].dtype, code + 1);
            assert_true(phema_element_spacing(dtypes[i].dtype, x) == next - x);
            assert_true(phema_element_spacing(dtypes[i].dtype, -x) == next - x);
        }
    }
}

/* All codes of two bytes: rows are what single elements are. */
static void rows_widen_as_single_elements(void **state)
{
    (void)state;
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F8_E4M3, PHEMA_F4};
    enum { N = 0x10000 };
    static uint8_t data[2 * N];
    static double row[N];
    for (size_t code = 0; code < N; code++) {
        data[2 * code] = (uint8_t)code;
        data[2 * code + 1] = (uint8_t)(code >> 8);
    }
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
        phema_elements_widen(row, dtypes[d], data, N);
        for (size_t i = 0; i < N; i++) {
            double single = phema_element_widen(dtypes[d], data, i);
            assert_memory_equal(&row[i], &single, sizeof(single));
        }
    }
}

static void spacing_of_wide_floats_agrees_with_the_processor(void **state)
{
    (void)state;
    static const float singles[] = {0, 0x1p-149F, 0x1.8p-127F, 0x1p-126F, 1, 1.5F, 0x1.fffffep126F};
    for (size_t i = 0; i < ARRAY_LEN(singles); i++) {
        double step = (double)nextafterf(singles[i], INFINITY) - (double)singles[i];
        assert_true(phema_element_spacing(PHEMA_F32, (double)singles[i]) == step);
    }
    static const double doubles[] = {0, 0x1p-1074, 0x1p-1022, 0x1p-1000, 1, 1.5, 0x1p1000};
    for (size_t i = 0; i < ARRAY_LEN(doubles); i++)
        assert_true(phema_element_spacing(PHEMA_F64, doubles[i]) ==
                    nextafter(doubles[i], HUGE_VAL) - doubles[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(spacing_leads_to_the_next_number),
    cmocka_unit_test(rows_widen_as_single_elements),
    cmocka_unit_test(spacing_of_wide_floats_agrees_with_the_processor),
};
TEST_GROUP(tests)
