// SPDX-License-Identifier: Apache-2.0
/* test_ref.c - the plain loop compared with exact sums in integers. */
#include "phema/accumulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { n_inputs = 24, n_elems = 1 << 10 };

/* Any finite half is a multiple of 2^-24, and any weight here one of 2^-10. Their products and sums
 * are integers times 2^-34, here of at most 62 bits. */
static int64_t half_in_units(uint16_t code)
{
    int64_t mantissa = code & 1023;
    unsigned exponent = code >> 10 & 31;
    int64_t magnitude = exponent ? (mantissa | 1024) << (exponent - 1) : mantissa;
    return code & 0x8000 ? -magnitude : magnitude;
}

static long double in_long_double(int64_t units)
{
    return ldexpl((long double)units, -34);
}

/* n fused multiply-adds round n times, each by at most eps of a partial sum. No partial sum exceeds
 * sum |w x| (1 + n eps). So the error is within (n + 1) eps sum |w x|, with eps = 2^-53 or
 * 2^-24. */
static void sums_are_within_the_bound_of_their_roundings(void **state)
{
    (void)state;
    static uint8_t data[n_inputs][2 * n_elems];
    static double doubles[n_elems];
    static float floats[n_elems];
    double weights[n_inputs];
    int64_t weight_units[n_inputs];
    const uint8_t *inputs[n_inputs];
    uint32_t random = 1;
    for (size_t k = 0; k < n_inputs; k++) {
        random = random * 1664525 + 1013904223;
        weight_units[k] = (int64_t)(random >> 16) - (1 << 15); /* 16 bits: sums of 24 fit */
        weights[k] = ldexp((double)weight_units[k], -10);
        for (size_t i = 0; i < n_elems; i++) {
            random = random * 1664525 + 1013904223;
            data[k][2 * i] = (uint8_t)(random >> 24);
            data[k][2 * i + 1] = (uint8_t)(random >> 16 & 0xbb); /* no exponent 31 */
        }
        inputs[k] = data[k];
    }
    struct phema_tile tile = {inputs, weights, n_inputs, 1, n_elems, PHEMA_F16};
    const struct phema_backend *ref = phema_backend_named("ref");
    phema_accumulate(ref, PHEMA_ACCUMULATE_F64, doubles, sizeof(doubles), &tile);
    phema_accumulate(ref, PHEMA_ACCUMULATE_F32, floats, sizeof(floats), &tile);
    for (size_t i = 0; i < n_elems; i++) {
        int64_t sum = 0, size = 0;
        for (size_t k = 0; k < n_inputs; k++) {
            int64_t product = weight_units[k] * half_in_units(phema_load_u16(data[k] + 2 * i));
            sum += product;
            size += product < 0 ? -product : product;
        }
        long double bound = (n_inputs + 1) * in_long_double(size);
        assert_true(fabsl((long double)doubles[i] - in_long_double(sum)) <= bound * 0x1p-53L);
        assert_true(fabsl((long double)floats[i] - in_long_double(sum)) <= bound * 0x1p-24L);
    }
}

/* A product and a sum have one rounding: (1 + 2^-30)^2 - 1 keeps its 2^-60. */
static void multiply_and_add_are_fused(void **state)
{
    (void)state;
    double x = 1 + 0x1p-30, weight = 1 + 0x1p-30, sum = -1;
    const uint8_t *input = (const uint8_t *)&x;
    struct phema_tile tile = {&input, &weight, 1, 1, 1, PHEMA_F64};
    phema_accumulate(phema_backend_named("ref"), PHEMA_ACCUMULATE_F64, &sum, 8, &tile);
    assert_true(sum == 0x1p-29 + 0x1p-60);
}

/* Sums are added to existing values, as for an input with another weight. */
static void sums_add_to_existing_values(void **state)
{
    (void)state;
    float x[3] = {1, 2, 4};
    double weights[2] = {0.5, -3}, sums[2][3] = {{10, 20, 30}, {0, 0, 0}};
    const uint8_t *input = (const uint8_t *)x;
    struct phema_tile tile = {&input, weights, 1, 2, 3, PHEMA_F32};
    phema_accumulate(phema_backend_named("ref"), PHEMA_ACCUMULATE_F64, sums, sizeof(sums[0]),
                     &tile);
    static const double wanted[2][3] = {{10.5, 21, 32}, {-3, -6, -12}};
    assert_memory_equal(sums, wanted, sizeof(wanted));
}

static void specials_follow_ieee_754(void **state)
{
    (void)state;
    float x[4] = {INFINITY, -INFINITY, NAN, 0};
    double weights[2] = {1, 1}, sums[4] = {0, 0, 0, -0.0};
    float y[4] = {1, INFINITY, 1, -0.0F};
    const uint8_t *inputs[2] = {(const uint8_t *)x, (const uint8_t *)y};
    struct phema_tile tile = {inputs, weights, 2, 1, 4, PHEMA_F32};
    phema_accumulate(phema_backend_named("ref"), PHEMA_ACCUMULATE_F64, sums, sizeof(sums), &tile);
    assert_true(isinf(sums[0]) && sums[0] > 0);
    assert_true(isnan(sums[1]) && isnan(sums[2]));
    assert_true(sums[3] == 0 && !signbit(sums[3]));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_are_within_the_bound_of_their_roundings),
    cmocka_unit_test(multiply_and_add_are_fused),
    cmocka_unit_test(sums_add_to_existing_values),
    cmocka_unit_test(specials_follow_ieee_754),
};
TEST_GROUP(tests)
