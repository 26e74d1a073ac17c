// SPDX-License-Identifier: Apache-2.0
/* round.c - scalar conversion from double to every dtype, with counts. One function of integer
 * arithmetic rounds to every format of at most 16 bits with sign, exponent and fraction. It starts
 * from the bits of the double, so that nothing is rounded twice, as double to float to F16 is. */
#include "backend.h"

#include <math.h>
#include <string.h>

/* |x| rounded to nearest even, as if exponents had no limit: a code above max_code has overflowed.
 * A carry out of the fraction increments the exponent, as it should. */
static uint64_t round_magnitude(const struct phema_float_layout *layout, uint64_t magnitude_bits)
{
    int exponent = (int)(magnitude_bits >> 52) - 1023;
    if (exponent == -1023)
        return 0; /* zero and subnormal doubles are far below half of any smallest number here */
    uint64_t significand = (magnitude_bits & ((1ULL << 52) - 1)) | 1ULL << 52;
    int smallest = 1 - layout->bias; /* exponent of subnormals */
    int shift = 52 - (int)layout->mantissa_bits;
    if (exponent < smallest)
        shift += smallest - exponent;
    if (shift > 53)
        return 0; /* below half of the smallest subnormal */
    uint64_t quotient = significand >> shift;
    uint64_t rest = significand & ((1ULL << shift) - 1), half = 1ULL << (shift - 1);
    if (rest > half || (rest == half && (quotient & 1)))
        quotient++;
    uint64_t steps = exponent > smallest ? (uint64_t)(exponent - smallest) : 0;
    return (steps << layout->mantissa_bits) + quotient;
}

static uint32_t encode(const struct phema_float_layout *layout, double x,
                       enum phema_overflow overflow, struct phema_narrow_counts *counts)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    uint64_t magnitude_bits = bits & ~(1ULL << 63);
    uint32_t sign = (uint32_t)(bits >> 63) << (layout->bits - 1);
    uint32_t beyond = layout->has_infinity     ? sign | (layout->max_code + 1)
                      : layout->is_finite_only ? sign | layout->max_code
                                               : layout->nan_code;
    if (isnan(x)) {
        counts->n_nan++;
        return layout->nan_code;
    }
    if (isinf(x)) {
        counts->n_inf++;
        return beyond;
    }
    uint64_t magnitude = round_magnitude(layout, magnitude_bits);
    if (magnitude > layout->max_code) {
        counts->n_overflow++;
        return overflow == PHEMA_OVERFLOW_SATURATE ? sign | layout->max_code : beyond;
    }
    if (magnitude == 0 && layout->is_unsigned_zero)
        return 0;
    return sign | (uint32_t)magnitude;
}

/* E8M0: code c is 2^(c - 127), 255 is NaN. */
static uint8_t encode_e8m0(double x, enum phema_overflow overflow,
                           struct phema_narrow_counts *counts)
{
    static const uint8_t nan_code = 255, max_code = 254;
    if (isnan(x)) {
        counts->n_nan++;
        return nan_code;
    }
    if (isinf(x)) {
        counts->n_inf++;
        return nan_code;
    }
    if (x < 0) {
        counts->n_overflow++;
        return overflow == PHEMA_OVERFLOW_SATURATE ? 0 : nan_code;
    }
    if (x < 0x1p-127)
        return 0;
    int exponent;
    double mantissa = frexp(x, &exponent); /* [1/2, 1): 3/4 is the tie */
    int code = exponent - 1 + (mantissa >= 0.75) + 127;
    if (code > max_code) {
        counts->n_overflow++;
        return overflow == PHEMA_OVERFLOW_SATURATE ? max_code : nan_code;
    }
    return (uint8_t)code;
}

static uint32_t encode_f32(double x, enum phema_overflow overflow,
                           struct phema_narrow_counts *counts)
{
    static const uint32_t nan_code = 0x7fc00000, max_code = 0x7f7fffff;
    if (isnan(x)) {
        counts->n_nan++;
        return nan_code;
    }
    float rounded = (float)x;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof(bits));
    if (isinf(x)) {
        counts->n_inf++;
    } else if (isinf(rounded)) {
        counts->n_overflow++;
        if (overflow == PHEMA_OVERFLOW_SATURATE)
            bits = (bits & 1U << 31) | max_code;
    }
    return bits;
}

static uint64_t encode_f64(double x, struct phema_narrow_counts *counts)
{
    if (isnan(x)) {
        counts->n_nan++;
        return 0x7ff8000000000000;
    }
    counts->n_inf += isinf(x) != 0;
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

void phema_small_values(double *values, enum phema_dtype dtype)
{
    size_t n = (size_t)1 << phema_dtype_bits(dtype);
    for (size_t code = 0; code < n; code++) {
        uint8_t byte = (uint8_t)code;
        values[code] = phema_element_widen(dtype, &byte, 0);
    }
}

void phema_element_narrow(uint8_t *out, enum phema_dtype dtype, size_t i, double x,
                          enum phema_overflow overflow, struct phema_narrow_counts *counts)
{
    uint64_t code64;
    uint32_t code;
    switch (dtype) {
    case PHEMA_F64:
        code64 = encode_f64(x, counts);
        memcpy(out + 8 * i, &code64, sizeof(code64));
        break;
    case PHEMA_F32:
        code = encode_f32(x, overflow, counts);
        memcpy(out + 4 * i, &code, sizeof(code));
        break;
    case PHEMA_F16:
    case PHEMA_BF16:
        code = encode(&phema_float_layouts[dtype], x, overflow, counts);
        out[2 * i] = (uint8_t)code;
        out[2 * i + 1] = (uint8_t)(code >> 8);
        break;
    case PHEMA_F4:
        code = encode(&phema_float_layouts[dtype], x, overflow, counts);
        out[i / 2] = (uint8_t)(i % 2 ? (out[i / 2] & 15U) | code << 4 : code);
        break;
    case PHEMA_F8_E8M0:
        out[i] = encode_e8m0(x, overflow, counts);
        break;
    default:
        out[i] = (uint8_t)encode(&phema_float_layouts[dtype], x, overflow, counts);
        break;
    }
}
