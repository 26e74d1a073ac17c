/* scalar.h - element decoding and rounding to nearest even, shared by host and device. nvcc
 * compiles this header for kernels.cu; the C compiler compiles it for a test that checks it bit by
 * bit against accumulate/. Where the two could differ it uses integer arithmetic, and no
 * intrinsics. */
#ifndef GPU_CUDA_SCALAR_H
#define GPU_CUDA_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "phema/cuda_plugin.h"

#ifdef __CUDACC__
#define SCALAR_INLINE static __host__ __device__ __forceinline__
#else
#define SCALAR_INLINE static inline
#endif

enum scalar_rounding {
    SCALAR_FITS,
    SCALAR_OVERFLOWS, /* finite, but larger than the largest number of the dtype */
    SCALAR_IS_NAN,
    SCALAR_IS_INFINITE
};

SCALAR_INLINE unsigned scalar_bytes(enum phema_cuda_dtype dtype)
{
    return dtype == PHEMA_CUDA_F64 ? 8 : dtype == PHEMA_CUDA_F32 ? 4 : 2;
}

SCALAR_INLINE float scalar_from_bits32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

SCALAR_INLINE uint32_t scalar_bits32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

SCALAR_INLINE uint64_t scalar_bits64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Moving exponent and fraction to their places in a float gives a float 2^112 times too small. The
 * product corrects that exactly and makes subnormal numbers normal. */
SCALAR_INLINE float scalar_from_f16(uint16_t code)
{
    uint32_t sign = (uint32_t)(code & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(code & 0x7fffu) << 13;
    if ((code & 0x7c00u) == 0x7c00u)
        return scalar_from_bits32(sign | 0x7f800000u | magnitude);
    uint32_t bits =
        scalar_bits32(scalar_from_bits32(magnitude) * 5192296858534827628530496329220096.f);
    return scalar_from_bits32(sign | bits);
}

SCALAR_INLINE float scalar_from_bf16(uint16_t code)
{
    return scalar_from_bits32((uint32_t)code << 16);
}

/* The magnitude of a finite double, rounded to an exponent with this bias and mantissa_bits bits of
 * fraction. The exponent has no upper limit: a code above the largest finite one has overflowed. */
SCALAR_INLINE uint64_t scalar_round(uint64_t magnitude_bits, int mantissa_bits, int bias)
{
    int exponent = (int)(magnitude_bits >> 52) - 1023;
    if (exponent == -1023)
        return 0; /* zero and subnormal doubles: far below half of any smallest number here */
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
SCALAR_INLINE uint16_t scalar_to_16(double x, int mantissa_bits, int bias, uint16_t max_code,
                                    uint16_t nan_code, bool saturates,
                                    enum scalar_rounding *rounding)
{
    uint64_t bits = scalar_bits64(x);
    uint64_t magnitude_bits = bits & INT64_MAX;
    uint32_t sign = (uint32_t)(bits >> 63) << 15;
    const uint64_t infinity = (uint64_t)0x7ff << 52;
    *rounding = SCALAR_FITS;
    if (magnitude_bits > infinity) {
        *rounding = SCALAR_IS_NAN;
        return nan_code;
    }
    if (magnitude_bits == infinity) {
        *rounding = SCALAR_IS_INFINITE;
        return (uint16_t)(sign | (max_code + 1u));
    }
    uint64_t magnitude = scalar_round(magnitude_bits, mantissa_bits, bias);
    if (magnitude > max_code) {
        *rounding = SCALAR_OVERFLOWS;
        magnitude = saturates ? max_code : max_code + 1u;
    }
    return (uint16_t)(sign | (uint32_t)magnitude);
}

SCALAR_INLINE uint32_t scalar_to_f32(double x, bool saturates, enum scalar_rounding *rounding)
{
    const uint32_t infinity = 0x7f800000u;
    const uint64_t wide_infinity = (uint64_t)0x7ff << 52;
    uint64_t magnitude_bits = scalar_bits64(x) & INT64_MAX;
    *rounding = SCALAR_FITS;
    if (magnitude_bits > wide_infinity) {
        *rounding = SCALAR_IS_NAN;
        return 0x7fc00000u;
    }
    uint32_t bits = scalar_bits32((float)x);
    if (magnitude_bits == wide_infinity) {
        *rounding = SCALAR_IS_INFINITE;
    } else if ((bits & 0x7fffffffu) == infinity) {
        *rounding = SCALAR_OVERFLOWS;
        if (saturates)
            bits--; /* the largest number is the code below infinity */
    }
    return bits;
}

SCALAR_INLINE uint64_t scalar_to_f64(double x, enum scalar_rounding *rounding)
{
    uint64_t bits = scalar_bits64(x);
    const uint64_t infinity = (uint64_t)0x7ff << 52;
    *rounding = SCALAR_FITS;
    if ((bits & INT64_MAX) > infinity) {
        *rounding = SCALAR_IS_NAN;
        return 0x7ff8000000000000u;
    }
    if ((bits & INT64_MAX) == infinity)
        *rounding = SCALAR_IS_INFINITE;
    return bits;
}

/* Rows are aligned; only the device code relies on it. */
#ifdef __CUDACC__
#define SCALAR_LOAD(value, from) ((value) = *reinterpret_cast<const decltype(value) *>(from))
#define SCALAR_STORE(value, to)  (*reinterpret_cast<decltype(value) *>(to) = (value))
#else
#define SCALAR_LOAD(value, from) ((void)memcpy(&(value), from, sizeof(value)))
#define SCALAR_STORE(value, to)  ((void)memcpy(to, &(value), sizeof(value)))
#endif

/* Element i of a row as a double, which is exact. Float sums of F64 inputs do not occur. */
SCALAR_INLINE double scalar_load(enum phema_cuda_dtype dtype, const uint8_t *row, uint64_t i)
{
    uint16_t half;
    float single;
    double value;
    switch (dtype) {
    case PHEMA_CUDA_F16:
        SCALAR_LOAD(half, row + 2 * i);
        return (double)scalar_from_f16(half);
    case PHEMA_CUDA_BF16:
        SCALAR_LOAD(half, row + 2 * i);
        return (double)scalar_from_bf16(half);
    case PHEMA_CUDA_F32:
        SCALAR_LOAD(single, row + 4 * i);
        return (double)single;
    default:
        SCALAR_LOAD(value, row + 8 * i);
        return value;
    }
}

/* Rounds x and stores it as element i of a row of results. */
SCALAR_INLINE enum scalar_rounding scalar_store(enum phema_cuda_dtype dtype, uint8_t *row,
                                                uint64_t i, double x, bool saturates)
{
    enum scalar_rounding rounding = SCALAR_FITS;
    uint16_t half;
    uint32_t single;
    uint64_t value;
    switch (dtype) {
    case PHEMA_CUDA_F16:
        half = scalar_to_16(x, 10, 15, 0x7bff, 0x7e00, saturates, &rounding);
        SCALAR_STORE(half, row + 2 * i);
        break;
    case PHEMA_CUDA_BF16:
        half = scalar_to_16(x, 7, 127, 0x7f7f, 0x7fc0, saturates, &rounding);
        SCALAR_STORE(half, row + 2 * i);
        break;
    case PHEMA_CUDA_F32:
        single = scalar_to_f32(x, saturates, &rounding);
        SCALAR_STORE(single, row + 4 * i);
        break;
    default:
        value = scalar_to_f64(x, &rounding);
        SCALAR_STORE(value, row + 8 * i);
        break;
    }
    return rounding;
}

/* One step of a sum, with a single rounding. */
SCALAR_INLINE double scalar_add_f64(double weight, double x, double sum)
{
    return fma(weight, x, sum);
}

SCALAR_INLINE float scalar_add_f32(float weight, float x, float sum)
{
    return fmaf(weight, x, sum);
}

#endif
