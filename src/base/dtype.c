// SPDX-License-Identifier: Apache-2.0
/* dtype.c - element types: sizes, names, bit layouts, decoding of one element. */
#include "phema/dtype.h"

#include <math.h>
#include <string.h>

static const struct dtype_facts {
    const char *name;
    unsigned bits;
    bool is_float;
    unsigned mantissa_bits;
} facts[PHEMA_N_DTYPES] = {
    [PHEMA_BOOL] = {"BOOL", 8, false, 0},
    [PHEMA_U8] = {"U8", 8, false, 0},
    [PHEMA_I8] = {"I8", 8, false, 0},
    [PHEMA_U16] = {"U16", 16, false, 0},
    [PHEMA_I16] = {"I16", 16, false, 0},
    [PHEMA_U32] = {"U32", 32, false, 0},
    [PHEMA_I32] = {"I32", 32, false, 0},
    [PHEMA_U64] = {"U64", 64, false, 0},
    [PHEMA_I64] = {"I64", 64, false, 0},
    [PHEMA_F16] = {"F16", 16, true, 10},
    [PHEMA_BF16] = {"BF16", 16, true, 7},
    [PHEMA_F32] = {"F32", 32, true, 23},
    [PHEMA_F64] = {"F64", 64, true, 52},
    [PHEMA_C64] = {"C64", 64, false, 0},
    [PHEMA_C128] = {"C128", 128, false, 0},
    [PHEMA_F8_E4M3] = {"F8_E4M3", 8, true, 3},
    [PHEMA_F8_E5M2] = {"F8_E5M2", 8, true, 2},
    [PHEMA_F8_E8M0] = {"F8_E8M0", 8, true, 0},
    [PHEMA_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8, true, 3},
    [PHEMA_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8, true, 2},
    [PHEMA_F6_E2M3] = {"F6_E2M3", 6, true, 3},
    [PHEMA_F6_E3M2] = {"F6_E3M2", 6, true, 2},
    [PHEMA_F4] = {"F4", 4, true, 1},
};

const char *phema_dtype_name(enum phema_dtype dtype)
{
    return facts[dtype].name;
}

unsigned phema_dtype_bits(enum phema_dtype dtype)
{
    return facts[dtype].bits;
}

uint64_t phema_dtype_bytes(enum phema_dtype dtype, uint64_t n_elems)
{
    uint64_t bits = phema_dtype_bits(dtype); /* groups of 8 elements are whole bytes */
    return n_elems / 8 * bits + n_elems % 8 * bits / 8;
}

bool phema_dtype_is_float(enum phema_dtype dtype)
{
    return facts[dtype].is_float;
}

enum phema_dtype phema_dtype_of_parts(enum phema_dtype dtype)
{
    return dtype == PHEMA_C64 ? PHEMA_F32 : dtype == PHEMA_C128 ? PHEMA_F64 : dtype;
}

size_t phema_dtype_n_parts(enum phema_dtype dtype)
{
    return dtype == PHEMA_C64 || dtype == PHEMA_C128 ? 2 : 1;
}

unsigned phema_dtype_mantissa_bits(enum phema_dtype dtype)
{
    return facts[dtype].mantissa_bits;
}

/* Over all elements: the sum of ulp^2 / 12 divided by the sum of x^2, where mantissas x in [1, 2)
 * are logarithmically uniform: 2^-2p / 12 / (3 / (2 ln 2)). The root is 2^-p sqrt(ln 2 / 18). */
double phema_dtype_rounding(enum phema_dtype dtype)
{
    if (!facts[dtype].is_float)
        return 0;
    return ldexp(0.19623, -(int)facts[dtype].mantissa_bits);
}

bool phema_dtype_from_name(enum phema_dtype *out, const char *name, size_t name_size)
{
    for (int i = 0; i < PHEMA_N_DTYPES; i++) {
        if (phema_bytes_are(name, name_size, facts[i].name)) {
            *out = (enum phema_dtype)i;
            return true;
        }
    }
    return false;
}

/* ---- Single elements ---- */

const struct phema_float_layout phema_float_layouts[PHEMA_N_DTYPES] = {
    [PHEMA_F16] = {16, 10, 15, 0x7bff, 0x7e00, true, false, false},
    [PHEMA_BF16] = {16, 7, 127, 0x7f7f, 0x7fc0, true, false, false},
    [PHEMA_F8_E4M3] = {8, 3, 7, 0x7e, 0x7f, false, false, false},
    [PHEMA_F8_E5M2] = {8, 2, 15, 0x7b, 0x7e, true, false, false},
    [PHEMA_F8_E4M3FNUZ] = {8, 3, 8, 0x7f, 0x80, false, true, false},
    [PHEMA_F8_E5M2FNUZ] = {8, 2, 16, 0x7f, 0x80, false, true, false},
    [PHEMA_F4] = {4, 1, 1, 0x7, 0x7, false, false, true},
};

#define DOUBLE_BIAS          1023
#define DOUBLE_MANTISSA_BITS 52
#define DOUBLE_EXPONENT_MASK 2047

static double double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* 2^exponent, down to the smallest subnormal double */
static double power_of_two(int exponent)
{
    if (exponent > -DOUBLE_BIAS)
        return double_from_bits((uint64_t)(exponent + DOUBLE_BIAS) << DOUBLE_MANTISSA_BITS);
    return double_from_bits(1ULL << (exponent + DOUBLE_BIAS - 1 + DOUBLE_MANTISSA_BITS));
}

static double decode(const struct phema_float_layout *layout, uint32_t code)
{
    uint32_t sign_bit = 1U << (layout->bits - 1);
    uint32_t magnitude = code & (sign_bit - 1);
    int exponent = (int)(magnitude >> layout->mantissa_bits);
    if (exponent && magnitude <= layout->max_code) { /* a normal number, as a double too */
        uint64_t rebiased = (uint64_t)(DOUBLE_BIAS - layout->bias) << DOUBLE_MANTISSA_BITS;
        uint64_t sign = (uint64_t)(code & sign_bit) << (64 - layout->bits);
        return double_from_bits(
            sign |
            (rebiased + ((uint64_t)magnitude << (DOUBLE_MANTISSA_BITS - layout->mantissa_bits))));
    }
    if (layout->is_unsigned_zero && code == sign_bit)
        return (double)NAN;
    double sign = code & sign_bit ? -1.0 : 1.0;
    if (magnitude > layout->max_code)
        return layout->has_infinity && magnitude == layout->max_code + 1 ? sign * (double)INFINITY
                                                                         : (double)NAN;
    return sign * magnitude * power_of_two(1 - layout->bias - (int)layout->mantissa_bits);
}

double phema_element_widen(enum phema_dtype dtype, const uint8_t *data, size_t i)
{
    const struct phema_float_layout *layout = &phema_float_layouts[dtype];
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
        return decode(layout, phema_load_u16(data + 2 * i));
    case PHEMA_F4:
        byte = data[i / 2];
        return decode(layout, i % 2 ? byte >> 4 : byte & 15);
    case PHEMA_F8_E8M0: /* code c is 2^(c - 127) */
        return data[i] == 255 ? (double)NAN : power_of_two((int)data[i] - 127);
    default:
        return decode(layout, data[i]);
    }
}

void phema_elements_widen(double *out, enum phema_dtype dtype, const uint8_t *data, size_t n)
{
    if (dtype == PHEMA_F16 || dtype == PHEMA_BF16)
        for (size_t i = 0; i < n; i++)
            out[i] = decode(&phema_float_layouts[dtype], phema_load_u16(data + 2 * i));
    else
        for (size_t i = 0; i < n; i++)
            out[i] = phema_element_widen(dtype, data, i);
}

/* Exponent of the smallest normal number. */
static int least_exponent(enum phema_dtype dtype)
{
    switch (dtype) {
    case PHEMA_F64:
        return 1 - DOUBLE_BIAS;
    case PHEMA_F32:
        return -126;
    case PHEMA_F8_E8M0:
        return -127;
    default:
        return 1 - phema_float_layouts[dtype].bias;
    }
}

void phema_element_spacings(double *out, enum phema_dtype dtype, const double *x, size_t n)
{
    int least = least_exponent(dtype), mantissa_bits = (int)phema_dtype_mantissa_bits(dtype);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        int exponent = (int)(bits >> DOUBLE_MANTISSA_BITS & DOUBLE_EXPONENT_MASK) - DOUBLE_BIAS;
        out[i] = power_of_two((exponent > least ? exponent : least) - mantissa_bits);
    }
}

double phema_element_spacing(enum phema_dtype dtype, double x)
{
    double spacing;
    phema_element_spacings(&spacing, dtype, &x, 1);
    return spacing;
}
