// SPDX-License-Identifier: Apache-2.0
/* Values of codes and rounding to them, compared with the definitions of the formats and with the
 * neighbours of every number. */
#include "phema/accumulate.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* Determined once, because the query is slow in virtual machines and the test needs it a million
 * times. */
static const struct phema_backend *ref;

static uint32_t narrow_one(enum phema_dtype dtype, double x, enum phema_overflow overflow,
                           struct phema_narrow_counts *counts)
{
    _Alignas(64) double sums[2] = {x, x};
    uint8_t out[8] = {0};
    struct phema_narrow_counts own = {0};
    phema_narrow(ref, out, dtype, PHEMA_ACCUMULATE_F64, sums, dtype == PHEMA_F4 ? 2 : 1, overflow,
                 counts ? counts : &own);
    uint32_t code = phema_load_u32(out);
    if (dtype != PHEMA_F4)
        return code;
    assert_int_equal(code & 15, code >> 4);
    return code & 15;
}

static uint32_t narrow_to_inf(enum phema_dtype dtype, double x)
{
    return narrow_one(dtype, x, PHEMA_OVERFLOW_INF, NULL);
}

static double widen_one(enum phema_dtype dtype, uint32_t code)
{
    uint8_t data[2] = {(uint8_t)code, (uint8_t)(code >> 8)};
    double out[2];
    phema_widen(out, dtype, data, dtype == PHEMA_F4 ? 2 : 1);
    return out[0];
}

struct format {
    enum phema_dtype dtype;
    int bits, mantissa_bits, bias;
    double largest, smallest; /* as printed in their definitions */
    uint32_t first_special;   /* larger magnitudes are not finite numbers */
    bool has_infinity;
};

/* IEEE 754, OCP 8-bit floating point (OFP8) rev. 1.0 tables 1 and 2, OCP MX 1.0 (E2M1), and
 * arXiv:2206.02915 (FNUZ: one NaN at the code of -0). */
static const struct format formats[] = {
    {PHEMA_F16, 16, 10, 15, 65504, 0x1p-24, 0x7c00, true},
    {PHEMA_BF16, 16, 7, 127, 0x1.fep127, 0x1p-133, 0x7f80, true},
    {PHEMA_F8_E4M3, 8, 3, 7, 448, 0x1p-9, 0x7f, false},
    {PHEMA_F8_E5M2, 8, 2, 15, 57344, 0x1p-16, 0x7c, true},
    {PHEMA_F8_E4M3FNUZ, 8, 3, 8, 240, 0x1p-10, 0x80, false},
    {PHEMA_F8_E5M2FNUZ, 8, 2, 16, 57344, 0x1p-17, 0x80, false},
    {PHEMA_F4, 4, 1, 1, 6, 0.5, 0x8, false},
};

static double value_by_definition(const struct format *format, uint32_t magnitude)
{
    uint32_t exponent = magnitude >> format->mantissa_bits;
    double mantissa =
        ldexp((double)(magnitude & ((1U << format->mantissa_bits) - 1)), -format->mantissa_bits);
    return exponent ? ldexp(1 + mantissa, (int)exponent - format->bias)
                    : ldexp(mantissa, 1 - format->bias);
}

static void codes_have_the_values_of_their_definition(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        const struct format *format = &formats[f];
        uint32_t sign = 1U << (format->bits - 1);
        for (uint32_t magnitude = 0; magnitude < sign; magnitude++) {
            double positive = widen_one(format->dtype, magnitude);
            double negative = widen_one(format->dtype, magnitude | sign);
            if (magnitude < format->first_special) {
                double wanted = value_by_definition(format, magnitude);
                assert_true(positive == wanted && !signbit(positive));
                if (magnitude || format->first_special != sign || format->dtype == PHEMA_F4)
                    assert_true(negative == -wanted && signbit(negative));
                else
                    assert_true(isnan(negative)); /* FNUZ */
            } else if (format->has_infinity && magnitude == format->first_special) {
                assert_true(isinf(positive) && positive > 0 && isinf(negative) && negative < 0);
            } else {
                assert_true(isnan(positive) && isnan(negative));
            }
        }
        assert_true(widen_one(format->dtype, format->first_special - 1) == format->largest);
        assert_true(widen_one(format->dtype, 1) == format->smallest);
    }
}

/* Three numbers between any two neighbours: just below the middle, the middle, just above. */
static void every_number_rounds_to_its_nearest_neighbour(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        const struct format *format = &formats[f];
        uint32_t sign = 1U << (format->bits - 1);
        for (uint32_t low = 0; low + 1 < format->first_special; low++) {
            double a = value_by_definition(format, low), b = value_by_definition(format, low + 1);
            double middle = a + (b - a) / 2;
            uint32_t even = low + (low & 1), below = sign | low;
            if (low == 0 && format->dtype != PHEMA_F4 && format->first_special == sign)
                below = 0; /* FNUZ has no negative zero */
            assert_int_equal(narrow_to_inf(format->dtype, b), low + 1);
            assert_int_equal(narrow_to_inf(format->dtype, nextafter(middle, 0)), low);
            assert_int_equal(narrow_to_inf(format->dtype, nextafter(middle, (double)INFINITY)),
                             low + 1);
            assert_int_equal(narrow_to_inf(format->dtype, middle), even);
            assert_int_equal(narrow_to_inf(format->dtype, -nextafter(middle, 0)), below);
            assert_int_equal(narrow_to_inf(format->dtype, -nextafter(middle, (double)INFINITY)),
                             sign | (low + 1));
        }
    }
}

static void zeros_and_specials_are_canonical(void **state)
{
    (void)state;
    static const struct {
        enum phema_dtype dtype;
        uint32_t nan, infinity, negative_zero;
    } wanted[] = {
        {PHEMA_F16, 0x7e00, 0x7c00, 0x8000},
        {PHEMA_BF16, 0x7fc0, 0x7f80, 0x8000},
        {PHEMA_F8_E4M3, 0x7f, 0x7f, 0x80},
        {PHEMA_F8_E5M2, 0x7e, 0x7c, 0x80},
        {PHEMA_F8_E4M3FNUZ, 0x80, 0x80, 0},
        {PHEMA_F8_E5M2FNUZ, 0x80, 0x80, 0},
        {PHEMA_F32, 0x7fc00000, 0x7f800000, 0x80000000},
        {PHEMA_F4, 7, 7, 8},
        {PHEMA_F8_E8M0, 0xff, 0xff, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        struct phema_narrow_counts counts = {0};
        enum phema_dtype dtype = wanted[i].dtype;
        assert_int_equal(narrow_one(dtype, -(double)NAN, PHEMA_OVERFLOW_SATURATE, &counts),
                         wanted[i].nan);
        assert_int_equal(narrow_one(dtype, (double)INFINITY, PHEMA_OVERFLOW_SATURATE, &counts),
                         wanted[i].infinity);
        assert_int_equal(narrow_to_inf(dtype, -0.0), wanted[i].negative_zero);
        assert_int_equal(counts.n_overflow, 0);
        assert_int_equal(counts.n_nan, dtype == PHEMA_F4 ? 2 : 1);
        assert_int_equal(counts.n_inf, dtype == PHEMA_F4 ? 2 : 1);
    }
}

/* Overflow begins half a step beyond the largest number. That tie rounds up only where the largest
 * code is odd, which is all but E4M3 and F4's (0x7e, and 7 for the saturating F4). */
static void overflow_begins_half_a_step_above_the_largest(void **state)
{
    (void)state;
    static const struct {
        enum phema_dtype dtype;
        double last_good, first_bad;
        uint32_t largest, beyond;
    } wanted[] = {
        {PHEMA_F16, 0x1.ffdfffffffffep15, 65520, 0x7bff, 0x7c00},
        {PHEMA_BF16, 0x1.fefffffffffffp127, 0x1.ffp127, 0x7f7f, 0x7f80},
        {PHEMA_F32, 0x1.fffffefffffffp127, 0x1.ffffffp127, 0x7f7fffff, 0x7f800000},
        {PHEMA_F8_E4M3, 464, 464.00000000000006, 0x7e, 0x7f},
        {PHEMA_F8_E5M2, 61439.99, 61440, 0x7b, 0x7c},
        {PHEMA_F8_E4M3FNUZ, 247.99, 248, 0x7f, 0x80},
        {PHEMA_F8_E5M2FNUZ, 61439.99, 61440, 0x7f, 0x80},
        {PHEMA_F8_E8M0, 0x1.7ffffp127, 0x1.8p127, 0xfe, 0xff},
        {PHEMA_F4, 6.99, 7, 7, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        enum phema_dtype dtype = wanted[i].dtype;
        struct phema_narrow_counts counts = {0};
        assert_int_equal(narrow_one(dtype, wanted[i].last_good, PHEMA_OVERFLOW_INF, &counts),
                         wanted[i].largest);
        assert_int_equal(counts.n_overflow, 0);
        assert_int_equal(narrow_one(dtype, wanted[i].first_bad, PHEMA_OVERFLOW_INF, &counts),
                         wanted[i].beyond);
        assert_int_equal(narrow_one(dtype, DBL_MAX, PHEMA_OVERFLOW_SATURATE, &counts),
                         wanted[i].largest);
        assert_int_equal(counts.n_overflow, dtype == PHEMA_F4 ? 4 : 2);
        assert_int_equal(counts.n_inf, 0);
    }
    assert_int_equal(narrow_one(PHEMA_F16, -1e9, PHEMA_OVERFLOW_SATURATE, NULL), 0xfbff);
    assert_int_equal(narrow_one(PHEMA_F32, -1e99, PHEMA_OVERFLOW_SATURATE, NULL), 0xff7fffff);
}

/* A conversion through float would turn these into ties, which then round in the wrong
 * direction. */
static void halves_are_rounded_once(void **state)
{
    (void)state;
    static const char *const names[] = {"ref", "avx2", "avx512", "neon"};
    for (size_t b = 0; b < ARRAY_LEN(names); b++) {
        const struct phema_backend *backend = phema_backend_named(names[b]);
        if (!backend)
            continue;
        _Alignas(64) double sums[64];
        uint8_t out[128];
        struct phema_narrow_counts counts = {0};
        for (size_t i = 0; i < ARRAY_LEN(sums); i++)
            sums[i] = i % 2 ? -(1 + 0x1p-11 + 0x1p-50) : 1 + 0x1p-10 + 0x1p-11 - 0x1p-50;
        phema_narrow(backend, out, PHEMA_F16, PHEMA_ACCUMULATE_F64, sums, 64, PHEMA_OVERFLOW_INF,
                     &counts);
        for (size_t i = 0; i < ARRAY_LEN(sums); i++)
            assert_int_equal(phema_load_u16(out + 2 * i), i % 2 ? 0xbc01 : 0x3c01);
        for (size_t i = 0; i < ARRAY_LEN(sums); i++)
            sums[i] = i % 2 ? -(1 + 0x1p-8 + 0x1p-50) : 0x1p-130 + 0x1p-134 + 0x1p-180;
        phema_narrow(backend, out, PHEMA_BF16, PHEMA_ACCUMULATE_F64, sums, 64, PHEMA_OVERFLOW_INF,
                     &counts);
        for (size_t i = 0; i < ARRAY_LEN(sums); i++)
            assert_int_equal(phema_load_u16(out + 2 * i), i % 2 ? 0xbf81 : 9);
    }
}

static void e8m0_holds_powers_of_two(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 255; code++) {
        double value = ldexp(1, (int)code - 127);
        assert_true(widen_one(PHEMA_F8_E8M0, code) == value);
        assert_int_equal(narrow_to_inf(PHEMA_F8_E8M0, value), code);
        assert_int_equal(narrow_to_inf(PHEMA_F8_E8M0, value * 1.4999), code);
        if (code < 254)
            assert_int_equal(narrow_to_inf(PHEMA_F8_E8M0, value * 1.5), code + 1);
    }
    assert_true(isnan(widen_one(PHEMA_F8_E8M0, 255)));
    struct phema_narrow_counts counts = {0};
    assert_int_equal(narrow_one(PHEMA_F8_E8M0, -1, PHEMA_OVERFLOW_INF, &counts), 255);
    assert_int_equal(counts.n_overflow, 1);
}

/* The low nibble is the even element, as in torch's fixtures/safetensors/f4. */
static void f4_has_even_elements_in_low_nibbles(void **state)
{
    (void)state;
    static const uint8_t data[] = {0x21, 0xf7};
    double values[4];
    phema_widen(values, PHEMA_F4, data, 4);
    static const double wanted[] = {0.5, 1, 6, -6};
    assert_memory_equal(values, wanted, sizeof(wanted));
    uint8_t out[2] = {0xff, 0xff};
    struct phema_narrow_counts counts = {0};
    phema_narrow(phema_backend_for_cpu(), out, PHEMA_F4, PHEMA_ACCUMULATE_F64, wanted, 4,
                 PHEMA_OVERFLOW_INF, &counts);
    assert_memory_equal(out, data, sizeof(data));
}

/* All codes at once, at lengths and addresses that are awkward for vectors. */
static void widening_is_exact_at_any_length(void **state)
{
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        uint8_t *codes = malloc(2 * 65536 + 1);
        double *values = malloc(65536 * sizeof(*values));
        assert_true(codes && values);
        for (uint32_t code = 0; code < 65536; code++) {
            codes[2 * code + 1] = (uint8_t)code;
            codes[2 * code + 2] = (uint8_t)(code >> 8);
        }
        for (uint32_t n = 65536 - 70; n < 65536; n++) {
            values[n] = 1234;
            phema_widen(values, formats[f].dtype, codes + 1, n);
            assert_true(values[n] == 1234);
        }
        for (uint32_t code = 0; code < formats[f].first_special; code++)
            assert_true(values[code] == value_by_definition(&formats[f], code));
        for (uint32_t code = 0x8000; code < 65535 - 70; code++) {
            if (code - 0x8000 < formats[f].first_special)
                assert_true(values[code] == -value_by_definition(&formats[f], code - 0x8000));
            else if (code - 0x8000 > formats[f].first_special)
                assert_true(isnan(values[code]));
        }
        free(codes);
        free(values);
    }
}

static int find_ref(void **state)
{
    (void)state;
    ref = phema_backend_named("ref");
    return ref ? 0 : 1;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(codes_have_the_values_of_their_definition),
    cmocka_unit_test(every_number_rounds_to_its_nearest_neighbour),
    cmocka_unit_test(zeros_and_specials_are_canonical),
    cmocka_unit_test(overflow_begins_half_a_step_above_the_largest),
    cmocka_unit_test(halves_are_rounded_once),
    cmocka_unit_test(e8m0_holds_powers_of_two),
    cmocka_unit_test(f4_has_even_elements_in_low_nibbles),
    cmocka_unit_test(widening_is_exact_at_any_length),
};
TEST_GROUP_WITH(tests, find_ref, NULL)
