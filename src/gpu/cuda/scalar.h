/* scalar.h - single numbers on the device and on the host: what the bits of an element mean, and
 * its rounding, once, to nearest even. The same text is compiled by nvcc for kernels.cu and by the
 * C compiler for the test that holds it against accumulate/, bit by bit; so it is plain integer
 * arithmetic where the two could differ, without intrinsics of either. */
#ifndef GPU_CUDA_SCALAR_H
#define GPU_CUDA_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "phema/cuda_plugin.h"

#ifdef __CUDACC__
#define NUMBERS_INLINE static __host__ __device__ __forceinline__
#else
#define NUMBERS_INLINE static inline
#endif

enum number_fate {
    NUMBER_FITS,
    NUMBER_OVERFLOWS, /* finite, and beyond the largest number of the dtype */
    NUMBER_IS_NAN,
    NUMBER_IS_INFINITE
};

NUMBERS_INLINE unsigned number_bytes(enum phema_cuda_dtype dtype)
{
    return dtype == PHEMA_CUDA_F64 ? 8 : dtype == PHEMA_CUDA_F32 ? 4 : 2;
}

NUMBERS_INLINE float number_from_bits32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

NUMBERS_INLINE uint32_t number_bits32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

NUMBERS_INLINE uint64_t number_bits64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Exponent and fraction moved to where a float has them, which makes a float 2^112 times too small;
 * subnormal ones become normal by the product, which is exact. */
NUMBERS_INLINE float number_from_f16(uint16_t code)
{
    uint32_t sign = (uint32_t)(code & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(code & 0x7fffu) << 13;
    if ((code & 0x7c00u) == 0x7c00u)
        return number_from_bits32(sign | 0x7f800000u | magnitude);
    uint32_t bits =
        number_bits32(number_from_bits32(magnitude) * 5192296858534827628530496329220096.f);
    return number_from_bits32(sign | bits);
}

NUMBERS_INLINE float number_from_bf16(uint16_t code)
{
    return number_from_bits32((uint32_t)code << 16);
}

/* The magnitude of a finite double rounded to an exponent with this bias and so many bits of
 * fraction, as if exponents went on for ever: a code above the largest one has overflown. */
NUMBERS_INLINE uint64_t number_round(uint64_t magnitude_bits, int mantissa_bits, int bias)
{
    int exponent = (int)(magnitude_bits >> 52) - 1023;
    if (exponent == -1023)
        return 0; /* zero, and subnormal doubles: far below half of any smallest number here */
    uint64_t significand = (magnitude_bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    int smallest = 1 - bias; /* exponent of subnormal numbers */
    int shift = 52 - mantissa_bits;
    if (exponent < smallest)
        shift += smallest - exponent;
    if (shift > 53)
        return 0; /* below half of the smallest subnormal number */
    uint64_t quotient = significand >> shift;
    uint64_t rest = significand & (((uint64_t)1 << shift) - 1);
    uint64_t half = (uint64_t)1 << (shift - 1);
    if (rest > half || (rest == half && (quotient & 1)))
        quotient++;
    uint64_t steps = exponent > smallest ? (uint64_t)(exponent - smallest) : 0;
    return (steps << mantissa_bits) + quotient;
}

/* To F16 or BF16. */
NUMBERS_INLINE uint16_t number_to_16(double x, int mantissa_bits, int bias, uint16_t max_code,
                                     uint16_t nan_code, bool saturates, enum number_fate *fate)
{
    uint64_t bits = number_bits64(x);
    uint64_t magnitude_bits = bits & INT64_MAX;
    uint32_t sign = (uint32_t)(bits >> 63) << 15;
    const uint64_t infinity = (uint64_t)0x7ff << 52;
    *fate = NUMBER_FITS;
    if (magnitude_bits > infinity) {
        *fate = NUMBER_IS_NAN;
        return nan_code;
    }
    if (magnitude_bits == infinity) {
        *fate = NUMBER_IS_INFINITE;
        return (uint16_t)(sign | (max_code + 1u));
    }
    uint64_t magnitude = number_round(magnitude_bits, mantissa_bits, bias);
    if (magnitude > max_code) {
        *fate = NUMBER_OVERFLOWS;
        magnitude = saturates ? max_code : max_code + 1u;
    }
    return (uint16_t)(sign | (uint32_t)magnitude);
}

NUMBERS_INLINE uint32_t number_to_f32(double x, bool saturates, enum number_fate *fate)
{
    const uint32_t infinity = 0x7f800000u;
    const uint64_t wide_infinity = (uint64_t)0x7ff << 52;
    uint64_t magnitude_bits = number_bits64(x) & INT64_MAX;
    *fate = NUMBER_FITS;
    if (magnitude_bits > wide_infinity) {
        *fate = NUMBER_IS_NAN;
        return 0x7fc00000u;
    }
    uint32_t bits = number_bits32((float)x);
    if (magnitude_bits == wide_infinity) {
        *fate = NUMBER_IS_INFINITE;
    } else if ((bits & 0x7fffffffu) == infinity) {
        *fate = NUMBER_OVERFLOWS;
        if (saturates)
            bits--; /* the largest number is the code below infinity */
    }
    return bits;
}

NUMBERS_INLINE uint64_t number_to_f64(double x, enum number_fate *fate)
{
    uint64_t bits = number_bits64(x);
    const uint64_t infinity = (uint64_t)0x7ff << 52;
    *fate = NUMBER_FITS;
    if ((bits & INT64_MAX) > infinity) {
        *fate = NUMBER_IS_NAN;
        return 0x7ff8000000000000u;
    }
    if ((bits & INT64_MAX) == infinity)
        *fate = NUMBER_IS_INFINITE;
    return bits;
}

/* Rows are aligned, which only the device wants to know. */
#ifdef __CUDACC__
#define NUMBERS_LOAD(value, from) ((value) = *reinterpret_cast<const decltype(value) *>(from))
#define NUMBERS_STORE(value, to)  (*reinterpret_cast<decltype(value) *>(to) = (value))
#else
#define NUMBERS_LOAD(value, from) ((void)memcpy(&(value), from, sizeof(value)))
#define NUMBERS_STORE(value, to)  ((void)memcpy(to, &(value), sizeof(value)))
#endif

/* Element i of a row, as a sum of any kind may take it: exactly, but for F64 as
 * float, which no job asks for. */
NUMBERS_INLINE double number_load(enum phema_cuda_dtype dtype, const uint8_t *row, uint64_t i)
{
    uint16_t half;
    float single;
    double value;
    switch (dtype) {
    case PHEMA_CUDA_F16:
        NUMBERS_LOAD(half, row + 2 * i);
        return (double)number_from_f16(half);
    case PHEMA_CUDA_BF16:
        NUMBERS_LOAD(half, row + 2 * i);
        return (double)number_from_bf16(half);
    case PHEMA_CUDA_F32:
        NUMBERS_LOAD(single, row + 4 * i);
        return (double)single;
    default:
        NUMBERS_LOAD(value, row + 8 * i);
        return value;
    }
}

/* Element i of a row of results. */
NUMBERS_INLINE enum number_fate number_store(enum phema_cuda_dtype dtype, uint8_t *row, uint64_t i,
                                             double x, bool saturates)
{
    enum number_fate fate = NUMBER_FITS;
    uint16_t half;
    uint32_t single;
    uint64_t value;
    switch (dtype) {
    case PHEMA_CUDA_F16:
        half = number_to_16(x, 10, 15, 0x7bff, 0x7e00, saturates, &fate);
        NUMBERS_STORE(half, row + 2 * i);
        break;
    case PHEMA_CUDA_BF16:
        half = number_to_16(x, 7, 127, 0x7f7f, 0x7fc0, saturates, &fate);
        NUMBERS_STORE(half, row + 2 * i);
        break;
    case PHEMA_CUDA_F32:
        single = number_to_f32(x, saturates, &fate);
        NUMBERS_STORE(single, row + 4 * i);
        break;
    default:
        value = number_to_f64(x, &fate);
        NUMBERS_STORE(value, row + 8 * i);
        break;
    }
    return fate;
}

/* One step of a sum, and the only rounding in it. */
NUMBERS_INLINE double number_add_f64(double weight, double x, double sum)
{
    return fma(weight, x, sum);
}

NUMBERS_INLINE float number_add_f32(float weight, float x, float sum)
{
    return fmaf(weight, x, sum);
}

#endif
