// SPDX-License-Identifier: Apache-2.0
/* simd_avx2.c - kernels for x86-64 with AVX2, FMA and F16C. Only these functions carry the flags,
 * so the program runs on machines without; backend.c asks cpu.h first. */
#include "backend.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "simd.h"

#define SIMD_TARGET __attribute__((target("avx2,fma,f16c")))

SIMD_INLINE SIMD_TARGET __m256 avx2_floats_from_bf16(const uint8_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* The upper halves, rounded to nearest even; x must not hold NaN. */
SIMD_INLINE SIMD_TARGET __m128i avx2_bf16_from_floats(__m256 x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i is_odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(bits, _mm256_add_epi32(is_odd, _mm256_set1_epi32(0x7fff)));
    bits = _mm256_srli_epi32(bits, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

/* Rounds to float by rounding to odd: the 29 bits that float lacks are folded into the last bit. A
 * second rounding to fewer bits then gives the result of a single rounding. */
SIMD_INLINE SIMD_TARGET __m128 avx2_odd_floats(__m256d x)
{
    const __m256i rest = _mm256_set1_epi64x(0x1fffffff);
    __m256i bits = _mm256_castpd_si256(x);
    __m256i sticky = _mm256_add_epi64(_mm256_and_si256(bits, rest), rest);
    bits = _mm256_andnot_si256(rest, _mm256_or_si256(bits, sticky));
    return _mm256_cvtpd_ps(_mm256_castsi256_pd(bits));
}

SIMD_INLINE SIMD_TARGET __m256 avx2_join(__m128 lo, __m128 hi)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(lo), hi, 1);
}

struct avx2_f64_unit {
    __m256d lo, hi;
};

SIMD_INLINE SIMD_TARGET struct avx2_f64_unit avx2_f64_get_sums(const uint8_t *p)
{
    const double *sums = (const void *)p;
    return (struct avx2_f64_unit){_mm256_loadu_pd(sums), _mm256_loadu_pd(sums + 4)};
}

SIMD_INLINE SIMD_TARGET void avx2_f64_put_sums(uint8_t *p, struct avx2_f64_unit x)
{
    double *sums = (void *)p;
    _mm256_storeu_pd(sums, x.lo);
    _mm256_storeu_pd(sums + 4, x.hi);
}

SIMD_INLINE SIMD_TARGET struct avx2_f64_unit avx2_f64_fma(double weight, struct avx2_f64_unit x,
                                                          struct avx2_f64_unit sum)
{
    __m256d w = _mm256_set1_pd(weight);
    return (struct avx2_f64_unit){_mm256_fmadd_pd(w, x.lo, sum.lo),
                                  _mm256_fmadd_pd(w, x.hi, sum.hi)};
}

SIMD_INLINE SIMD_TARGET struct avx2_f64_unit avx2_f64_load(enum phema_dtype dtype, const uint8_t *p)
{
    __m256 x;
    if (dtype == PHEMA_F64)
        return avx2_f64_get_sums(p);
    if (dtype == PHEMA_F32)
        x = _mm256_loadu_ps((const float *)(const void *)p);
    else if (dtype == PHEMA_BF16)
        x = avx2_floats_from_bf16(p);
    else
        x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
    return (struct avx2_f64_unit){_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                                  _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}

SIMD_INLINE SIMD_TARGET __m256d avx2_f64_plain_lanes(enum phema_dtype dtype, __m256d x)
{
    __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    __m256d plain = _mm256_cmp_pd(size, _mm256_set1_pd(phema_narrow_limit(dtype)), _CMP_LT_OQ);
    if (dtype == PHEMA_BF16) {
        /* subnormal floats would be rounded twice: the conversion to float drops bits */
        __m256d is_zero = _mm256_cmp_pd(size, _mm256_setzero_pd(), _CMP_EQ_OQ);
        __m256d is_normal = _mm256_cmp_pd(size, _mm256_set1_pd(0x1p-126), _CMP_GE_OQ);
        plain = _mm256_and_pd(plain, _mm256_or_pd(is_zero, is_normal));
    }
    return plain;
}

SIMD_INLINE SIMD_TARGET bool avx2_f64_is_plain(enum phema_dtype dtype, struct avx2_f64_unit x)
{
    __m256d plain =
        _mm256_and_pd(avx2_f64_plain_lanes(dtype, x.lo), avx2_f64_plain_lanes(dtype, x.hi));
    return _mm256_movemask_pd(plain) == 15;
}

SIMD_INLINE SIMD_TARGET void avx2_f64_store(enum phema_dtype dtype, uint8_t *p,
                                            struct avx2_f64_unit x)
{
    void *to = p;
    if (dtype == PHEMA_F64) {
        avx2_f64_put_sums(p, x);
    } else if (dtype == PHEMA_F32) {
        _mm256_storeu_ps(to, avx2_join(_mm256_cvtpd_ps(x.lo), _mm256_cvtpd_ps(x.hi)));
    } else {
        __m256 odd = avx2_join(avx2_odd_floats(x.lo), avx2_odd_floats(x.hi));
        _mm_storeu_si128(to, dtype == PHEMA_BF16 ? avx2_bf16_from_floats(odd)
                                                 : _mm256_cvtps_ph(odd, _MM_FROUND_TO_NEAREST_INT));
    }
}

struct avx2_f32_unit {
    __m256 lo, hi;
};

SIMD_INLINE SIMD_TARGET struct avx2_f32_unit avx2_f32_get_sums(const uint8_t *p)
{
    const float *sums = (const void *)p;
    return (struct avx2_f32_unit){_mm256_loadu_ps(sums), _mm256_loadu_ps(sums + 8)};
}

SIMD_INLINE SIMD_TARGET void avx2_f32_put_sums(uint8_t *p, struct avx2_f32_unit x)
{
    float *sums = (void *)p;
    _mm256_storeu_ps(sums, x.lo);
    _mm256_storeu_ps(sums + 8, x.hi);
}

SIMD_INLINE SIMD_TARGET struct avx2_f32_unit avx2_f32_fma(float weight, struct avx2_f32_unit x,
                                                          struct avx2_f32_unit sum)
{
    __m256 w = _mm256_set1_ps(weight);
    return (struct avx2_f32_unit){_mm256_fmadd_ps(w, x.lo, sum.lo),
                                  _mm256_fmadd_ps(w, x.hi, sum.hi)};
}

SIMD_INLINE SIMD_TARGET __m256 avx2_f32_load_half(enum phema_dtype dtype, const uint8_t *p)
{
    const double *doubles = (const void *)p;
    if (dtype == PHEMA_F64)
        return avx2_join(_mm256_cvtpd_ps(_mm256_loadu_pd(doubles)),
                         _mm256_cvtpd_ps(_mm256_loadu_pd(doubles + 4)));
    if (dtype == PHEMA_F32)
        return _mm256_loadu_ps((const float *)(const void *)p);
    if (dtype == PHEMA_BF16)
        return avx2_floats_from_bf16(p);
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

SIMD_INLINE SIMD_TARGET struct avx2_f32_unit avx2_f32_load(enum phema_dtype dtype, const uint8_t *p)
{
    return (struct avx2_f32_unit){avx2_f32_load_half(dtype, p),
                                  avx2_f32_load_half(dtype, p + 8 * phema_wide_bytes(dtype))};
}

SIMD_INLINE SIMD_TARGET bool avx2_f32_is_plain(enum phema_dtype dtype, struct avx2_f32_unit x)
{
    /* F32 and F64 hold all finite floats; the limit of F32 itself is not a float */
    bool is_half = dtype == PHEMA_F16 || dtype == PHEMA_BF16;
    const __m256 limit =
        _mm256_set1_ps(is_half ? (float)phema_narrow_limit(dtype) : __builtin_inff());
    const __m256 sign = _mm256_set1_ps(-0.0F);
    __m256 lo = _mm256_cmp_ps(_mm256_andnot_ps(sign, x.lo), limit, _CMP_LT_OQ);
    __m256 hi = _mm256_cmp_ps(_mm256_andnot_ps(sign, x.hi), limit, _CMP_LT_OQ);
    return _mm256_movemask_ps(_mm256_and_ps(lo, hi)) == 255;
}

SIMD_INLINE SIMD_TARGET void avx2_f32_store_half(enum phema_dtype dtype, uint8_t *p, __m256 x)
{
    void *to = p;
    if (dtype == PHEMA_F64) {
        _mm256_storeu_pd(to, _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
        _mm256_storeu_pd((double *)to + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
    } else if (dtype == PHEMA_F32) {
        _mm256_storeu_ps(to, x);
    } else {
        _mm_storeu_si128(to, dtype == PHEMA_BF16 ? avx2_bf16_from_floats(x)
                                                 : _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    }
}

SIMD_INLINE SIMD_TARGET void avx2_f32_store(enum phema_dtype dtype, uint8_t *p,
                                            struct avx2_f32_unit x)
{
    avx2_f32_store_half(dtype, p, x.lo);
    avx2_f32_store_half(dtype, p + 8 * phema_wide_bytes(dtype), x.hi);
}

#define SIMD(name)       avx2_f64_##name
#define SIMD_SCALAR      double
#define SIMD_ACCUMULATOR PHEMA_ACCUMULATE_F64
#define SIMD_UNIT_ELEMS  8
#define SIMD_MAX_TARGETS 6
#include "simd_kernels.inc"

#define SIMD(name)       avx2_f32_##name
#define SIMD_SCALAR      float
#define SIMD_ACCUMULATOR PHEMA_ACCUMULATE_F32
#define SIMD_UNIT_ELEMS  16
#define SIMD_MAX_TARGETS 6
#include "simd_kernels.inc"

const struct phema_kernels phema_avx2_kernels[2] = {
    [PHEMA_ACCUMULATE_F64] = {6, 8, avx2_f64_add, avx2_f64_widen, avx2_f64_narrow},
    [PHEMA_ACCUMULATE_F32] = {6, 8, avx2_f32_add, avx2_f32_widen, avx2_f32_narrow},
};
#endif
