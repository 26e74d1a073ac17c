// SPDX-License-Identifier: Apache-2.0
/* minimal_kernel.h - the inner loops of minimal.c: with AVX2 and F16C, or in plain C. */
#ifndef BENCH_MINIMAL_KERNEL_H
#define BENCH_MINIMAL_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { AT_ONCE = 8, PREFETCH_BYTES = 512 };
enum dtype { F16, BF16, F32 };

#ifdef __x86_64__
#include <immintrin.h>
#define INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) static inline

INLINE __m256 load_8(const uint8_t *from, enum dtype dtype)
{
    if (dtype == F32)
        return _mm256_loadu_ps((const float *)(const void *)from);
    __m128i half = _mm_loadu_si128((const __m128i *)(const void *)from);
    return dtype == F16 ? _mm256_cvtph_ps(half)
                        : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

INLINE void add_inline(float *sums, const uint8_t *const *inputs, size_t n_inputs, size_t at,
                       size_t n, float weight, enum dtype dtype)
{
    size_t elem_bytes = dtype == F32 ? 4 : 2;
    __m256 factor = _mm256_set1_ps(weight);
    for (size_t i = 0; i < n; i += 8) {
        __m256 sum = _mm256_load_ps(sums + i);
        for (size_t k = 0; k < n_inputs; k++) {
            const uint8_t *from = inputs[k] + at + i * elem_bytes;
            _mm_prefetch((const char *)from + PREFETCH_BYTES, _MM_HINT_T0);
            sum = _mm256_fmadd_ps(load_8(from, dtype), factor, sum);
        }
        _mm256_store_ps(sums + i, sum);
    }
}

INLINE void store_8(uint8_t *to, __m256 sum, enum dtype dtype)
{
    if (dtype == F32) {
        _mm256_storeu_ps((float *)(void *)to, sum);
    } else if (dtype == F16) {
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
    } else {
        __m256i bits = _mm256_castps_si256(sum);
        __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        bits = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        bits = _mm256_srli_epi32(bits, 16);
        bits = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(bits));
    }
}

#define KERNEL __attribute__((target("avx2,fma,f16c"))) static
#else
#define KERNEL static

static inline float load_1(const uint8_t *from, enum dtype dtype)
{
    uint32_t bits = 0;
    float value;
    if (dtype == F16) {
        _Float16 half;
        memcpy(&half, from, 2);
        return (float)half;
    }
    memcpy(&bits, from, dtype == F32 ? 4 : 2);
    bits <<= dtype == F32 ? 0 : 16;
    memcpy(&value, &bits, 4);
    return value;
}

static inline void add_inline(float *sums, const uint8_t *const *inputs, size_t n_inputs, size_t at,
                              size_t n, float weight, enum dtype dtype)
{
    for (size_t k = 0; k < n_inputs; k++)
        for (size_t i = 0; i < n; i++)
            sums[i] += weight * load_1(inputs[k] + at + i * (dtype == F32 ? 4 : 2), dtype);
}

static inline void store_1(uint8_t *to, float sum, enum dtype dtype)
{
    uint32_t bits;
    memcpy(&bits, &sum, 4);
    if (dtype == F32) {
        memcpy(to, &bits, 4);
    } else if (dtype == F16) {
        _Float16 half = (_Float16)sum;
        memcpy(to, &half, 2);
    } else {
        bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        memcpy(to, &(uint16_t){(uint16_t)bits}, 2);
    }
}
#endif

/* sums [n] += weight * the elements of all inputs from byte `at` on; n is a multiple of 8. The
 * compiler generates one loop per dtype, for 8 inputs at a time. */
KERNEL void add(float *sums, const uint8_t *const *inputs, size_t n_inputs, size_t at, size_t n,
                float weight, enum dtype dtype)
{
    if (n_inputs != AT_ONCE)
        add_inline(sums, inputs, n_inputs, at, n, weight, dtype);
    else if (dtype == F16)
        add_inline(sums, inputs, AT_ONCE, at, n, weight, F16);
    else if (dtype == BF16)
        add_inline(sums, inputs, AT_ONCE, at, n, weight, BF16);
    else
        add_inline(sums, inputs, AT_ONCE, at, n, weight, F32);
}

KERNEL void narrow(uint8_t *out, const float *sums, size_t n, enum dtype dtype)
{
#ifdef __x86_64__
    for (size_t i = 0; i < n; i += 8)
        store_8(out + i * (dtype == F32 ? 4 : 2), _mm256_load_ps(sums + i), dtype);
#else
    for (size_t i = 0; i < n; i++)
        store_1(out + i * (dtype == F32 ? 4 : 2), sums[i], dtype);
#endif
}

#endif
