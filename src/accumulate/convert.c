// SPDX-License-Identifier: Apache-2.0
/* convert.c - see convert.h. Every format with sign, exponent and fraction of at most 16 bits goes
 * through one description and two functions of integer arithmetic, straight from the bits of the
 * double, so that nothing is rounded twice (double to F16 by way of float would be). */
#include "convert.h"

#include <math.h>
#include <string.h>

/* Codes of magnitudes above max_code are infinity (max_code + 1) where the format has one, NaN
 * otherwise; nan_code is the one that is written. */
struct float_layout {
    unsigned bits, exponent_bits, mantissa_bits;
    int bias;
    uint32_t max_code, nan_code;
    bool has_infinity;
    bool is_unsigned_zero; /* FNUZ: the code of -0 is the only NaN */
    bool is_finite_only;   /* every code is a number */
};

static const struct float_layout layouts[PHEMA_N_DTYPES] = {
    [PHEMA_F16] = {16, 5, 10, 15, 0x7bff, 0x7e00, true, false, false},
    [PHEMA_BF16] = {16, 8, 7, 127, 0x7f7f, 0x7fc0, true, false, false},
    [PHEMA_F8_E4M3] = {8, 4, 3, 7, 0x7e, 0x7f, false, false, false},
    [PHEMA_F8_E5M2] = {8, 5, 2, 15, 0x7b, 0x7e, true, false, false},
    [PHEMA_F8_E4M3FNUZ] = {8, 4, 3, 8, 0x7f, 0x80, false, true, false},
    [PHEMA_F8_E5M2FNUZ] = {8, 5, 2, 16, 0x7f, 0x80, false, true, false},
    [PHEMA_F4] = {4, 2, 1, 1, 0x7, 0x7, false, false, true},
};

static double double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* 2^exponent for exponents of normal doubles */
static double power_of_two(int exponent)
{
    return double_from_bits((uint64_t)(exponent + 1023) << 52);
}

static double decode(const struct float_layout *layout, uint32_t code)
{
    uint32_t sign_bit = 1U << (layout->bits - 1);
    uint32_t magnitude = code & (sign_bit - 1);
    if (layout->is_unsigned_zero && code == sign_bit)
        return (double)NAN;
    double sign = code & sign_bit ? -1.0 : 1.0;
    if (magnitude > layout->max_code)
        return layout->has_infinity && magnitude == layout->max_code + 1 ? sign * (double)INFINITY
                                                                         : (double)NAN;
    int exponent = (int)(magnitude >> layout->mantissa_bits);
    uint32_t mantissa = magnitude & ((1U << layout->mantissa_bits) - 1);
    if (exponent)
        mantissa |= 1U << layout->mantissa_bits;
    else
        exponent = 1;
    return sign * mantissa * power_of_two(exponent - layout->bias - (int)layout->mantissa_bits);
}

/* The magnitude |x| rounded to nearest even as if the exponents went on for ever: a code above
 * max_code has overflown. A carry out of the fraction runs into the exponent, as it should. */
static uint64_t round_magnitude(const struct float_layout *layout, uint64_t magnitude_bits)
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

static uint32_t encode(const struct float_layout *layout, double x, enum phema_overflow overflow,
                       struct phema_narrow_counts *counts)
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
        if (dtype == PHEMA_F8_E8M0)
            values[code] = code == 255 ? (double)NAN : power_of_two((int)code - 127);
        else
            values[code] = decode(&layouts[dtype], (uint32_t)code);
    }
}

double phema_element_widen(enum phema_dtype dtype, const uint8_t *data, size_t i)
{
    float single;
    double value;
    uint8_t byte;
    switch (dtype) {
    case PHEMA_F64:
        memcpy(&value, data + 8 * i, sizeof(value));
        return value;
    case PHEMA_F32:
        memcpy(&single, data + 4 * i, sizeof(single));
        return (double)single;
    case PHEMA_F16:
    case PHEMA_BF16:
        return decode(&layouts[dtype], phema_load_u16(data + 2 * i));
    case PHEMA_F4:
        byte = data[i / 2];
        return decode(&layouts[dtype], i % 2 ? byte >> 4 : byte & 15);
    case PHEMA_F8_E8M0:
        return data[i] == 255 ? (double)NAN : power_of_two((int)data[i] - 127);
    default:
        return decode(&layouts[dtype], data[i]);
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
        code = encode(&layouts[dtype], x, overflow, counts);
        out[2 * i] = (uint8_t)code;
        out[2 * i + 1] = (uint8_t)(code >> 8);
        break;
    case PHEMA_F4:
        code = encode(&layouts[dtype], x, overflow, counts);
        out[i / 2] = (uint8_t)(i % 2 ? (out[i / 2] & 15U) | code << 4 : code);
        break;
    case PHEMA_F8_E8M0:
        out[i] = encode_e8m0(x, overflow, counts);
        break;
    default:
        out[i] = (uint8_t)encode(&layouts[dtype], x, overflow, counts);
        break;
    }
}
