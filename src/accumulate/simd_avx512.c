// SPDX-License-Identifier: Apache-2.0
/* simd_avx512.c - kernels for x86-64 with AVX-512 F, BW, DQ and VL. Only these functions carry the
 * flags, so the program runs on machines without; backend.c asks cpu.h first. */
#include "backend.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "simd.h"

#define SIMD_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))

SIMD_INLINE SIMD_TARGET __m512 avx512_floats_from_halves(enum phema_dtype dtype, const uint8_t *p)
{
    __m256i codes = _mm256_loadu_si256((const __m256i *)(const void *)p);
    if (dtype == PHEMA_BF16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
    return _mm512_cvtph_ps(codes);
}

/* Rounds to nearest even; x must not hold NaN. */
SIMD_INLINE SIMD_TARGET __m256i avx512_halves_from_floats(enum phema_dtype dtype, __m512 x)
{
    if (dtype == PHEMA_F16)
        return _mm512_maskz_cvtps_ph(65535, x, _MM_FROUND_TO_NEAREST_INT);
    __m512i bits = _mm512_castps_si512(x);
    __m512i is_odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(bits, _mm512_add_epi32(is_odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
}

/* Rounds to float by rounding to odd: the 29 bits that float lacks are folded into the last bit. A
 * second rounding to fewer bits then gives the result of a single rounding. */
SIMD_INLINE SIMD_TARGET __m256 avx512_odd_floats(__m512d x)
{
    const __m512i rest = _mm512_set1_epi64(0x1fffffff);
    __m512i bits = _mm512_castpd_si512(x);
    __m512i sticky = _mm512_add_epi64(_mm512_and_si512(bits, rest), rest);
    bits = _mm512_andnot_si512(rest, _mm512_or_si512(bits, sticky));
    return _mm512_cvtpd_ps(_mm512_castsi512_pd(bits));
}

SIMD_INLINE SIMD_TARGET __m512 avx512_join(__m256 lo, __m256 hi)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1);
}

struct avx512_f64_unit {
    __m512d lo, hi;
};

SIMD_INLINE SIMD_TARGET struct avx512_f64_unit avx512_f64_get_sums(const uint8_t *p)
{
    return (struct avx512_f64_unit){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 64)};
}

SIMD_INLINE SIMD_TARGET void avx512_f64_put_sums(uint8_t *p, struct avx512_f64_unit x)
{
    _mm512_storeu_pd(p, x.lo);
    _mm512_storeu_pd(p + 64, x.hi);
}

SIMD_INLINE SIMD_TARGET struct avx512_f64_unit
avx512_f64_fma(double weight, struct avx512_f64_unit x, struct avx512_f64_unit sum)
{
    __m512d w = _mm512_set1_pd(weight);
    return (struct avx512_f64_unit){_mm512_fmadd_pd(w, x.lo, sum.lo),
                                    _mm512_fmadd_pd(w, x.hi, sum.hi)};
}

SIMD_INLINE SIMD_TARGET struct avx512_f64_unit avx512_f64_load(enum phema_dtype dtype,
                                                               const uint8_t *p)
{
    if (dtype == PHEMA_F64)
        return avx512_f64_get_sums(p);
    __m512 x = dtype == PHEMA_F32 ? _mm512_loadu_ps(p) : avx512_floats_from_halves(dtype, p);
    return (struct avx512_f64_unit){_mm512_cvtps_pd(_mm512_castps512_ps256(x)),
                                    _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))};
}

SIMD_INLINE SIMD_TARGET __mmask8 avx512_f64_plain_lanes(enum phema_dtype dtype, __m512d x)
{
    __m512d size = _mm512_abs_pd(x);
    __mmask8 plain =
        _mm512_cmp_pd_mask(size, _mm512_set1_pd(phema_narrow_limit(dtype)), _CMP_LT_OQ);
    if (dtype == PHEMA_BF16) {
        /* subnormal floats would be rounded twice: the conversion to float drops bits */
        __mmask8 is_zero = _mm512_cmp_pd_mask(size, _mm512_setzero_pd(), _CMP_EQ_OQ);
        __mmask8 is_normal = _mm512_cmp_pd_mask(size, _mm512_set1_pd(0x1p-126), _CMP_GE_OQ);
        plain = (__mmask8)(plain & (is_zero | is_normal));
    }
    return plain;
}

SIMD_INLINE SIMD_TARGET bool avx512_f64_is_plain(enum phema_dtype dtype, struct avx512_f64_unit x)
{
    return (avx512_f64_plain_lanes(dtype, x.lo) & avx512_f64_plain_lanes(dtype, x.hi)) == 255;
}

SIMD_INLINE SIMD_TARGET void avx512_f64_store(enum phema_dtype dtype, uint8_t *p,
                                              struct avx512_f64_unit x)
{
    if (dtype == PHEMA_F64) {
        avx512_f64_put_sums(p, x);
    } else if (dtype == PHEMA_F32) {
        _mm512_storeu_ps(p, avx512_join(_mm512_cvtpd_ps(x.lo), _mm512_cvtpd_ps(x.hi)));
    } else {
        __m512 odd = avx512_join(avx512_odd_floats(x.lo), avx512_odd_floats(x.hi));
        _mm256_storeu_si256((__m256i *)(void *)p, avx512_halves_from_floats(dtype, odd));
    }
}

struct avx512_f32_unit {
    __m512 lo, hi;
};

SIMD_INLINE SIMD_TARGET struct avx512_f32_unit avx512_f32_get_sums(const uint8_t *p)
{
    return (struct avx512_f32_unit){_mm512_loadu_ps(p), _mm512_loadu_ps(p + 64)};
}

SIMD_INLINE SIMD_TARGET void avx512_f32_put_sums(uint8_t *p, struct avx512_f32_unit x)
{
    _mm512_storeu_ps(p, x.lo);
    _mm512_storeu_ps(p + 64, x.hi);
}

SIMD_INLINE SIMD_TARGET struct avx512_f32_unit
avx512_f32_fma(float weight, struct avx512_f32_unit x, struct avx512_f32_unit sum)
{
    __m512 w = _mm512_set1_ps(weight);
    return (struct avx512_f32_unit){_mm512_fmadd_ps(w, x.lo, sum.lo),
                                    _mm512_fmadd_ps(w, x.hi, sum.hi)};
}

SIMD_INLINE SIMD_TARGET __m512 avx512_f32_load_half(enum phema_dtype dtype, const uint8_t *p)
{
    if (dtype == PHEMA_F64)
        return avx512_join(_mm512_cvtpd_ps(_mm512_loadu_pd(p)),
                           _mm512_cvtpd_ps(_mm512_loadu_pd(p + 64)));
    if (dtype == PHEMA_F32)
        return _mm512_loadu_ps(p);
    return avx512_floats_from_halves(dtype, p);
}

SIMD_INLINE SIMD_TARGET struct avx512_f32_unit avx512_f32_load(enum phema_dtype dtype,
                                                               const uint8_t *p)
{
    return (struct avx512_f32_unit){avx512_f32_load_half(dtype, p),
                                    avx512_f32_load_half(dtype, p + 16 * phema_wide_bytes(dtype))};
}

SIMD_INLINE SIMD_TARGET bool avx512_f32_is_plain(enum phema_dtype dtype, struct avx512_f32_unit x)
{
    /* F32 and F64 hold all finite floats; the limit of F32 itself is not a float */
    bool is_half = dtype == PHEMA_F16 || dtype == PHEMA_BF16;
    const __m512 limit =
        _mm512_set1_ps(is_half ? (float)phema_narrow_limit(dtype) : __builtin_inff());
    __mmask16 lo = _mm512_cmp_ps_mask(_mm512_abs_ps(x.lo), limit, _CMP_LT_OQ);
    __mmask16 hi = _mm512_cmp_ps_mask(_mm512_abs_ps(x.hi), limit, _CMP_LT_OQ);
    return (lo & hi) == 65535;
}

SIMD_INLINE SIMD_TARGET void avx512_f32_store_half(enum phema_dtype dtype, uint8_t *p, __m512 x)
{
    if (dtype == PHEMA_F64) {
        _mm512_storeu_pd(p, _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
        _mm512_storeu_pd(p + 64, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)));
    } else if (dtype == PHEMA_F32) {
        _mm512_storeu_ps(p, x);
    } else {
        _mm256_storeu_si256((__m256i *)(void *)p, avx512_halves_from_floats(dtype, x));
    }
}

SIMD_INLINE SIMD_TARGET void avx512_f32_store(enum phema_dtype dtype, uint8_t *p,
                                              struct avx512_f32_unit x)
{
    avx512_f32_store_half(dtype, p, x.lo);
    avx512_f32_store_half(dtype, p + 16 * phema_wide_bytes(dtype), x.hi);
}

#define SIMD(name)       avx512_f64_##name
#define SIMD_SCALAR      double
#define SIMD_ACCUMULATOR PHEMA_ACCUMULATE_F64
#define SIMD_UNIT_ELEMS  16
#define SIMD_MAX_TARGETS 13
#include "simd_kernels.inc"

#define SIMD(name)       avx512_f32_##name
#define SIMD_SCALAR      float
#define SIMD_ACCUMULATOR PHEMA_ACCUMULATE_F32
#define SIMD_UNIT_ELEMS  32
#define SIMD_MAX_TARGETS 13
#include "simd_kernels.inc"

const struct phema_kernels phema_avx512_kernels[2] = {
    [PHEMA_ACCUMULATE_F64] = {13, PHEMA_GROUP_INPUTS, avx512_f64_add, avx512_f64_widen,
                              avx512_f64_narrow},
    [PHEMA_ACCUMULATE_F32] = {13, PHEMA_GROUP_INPUTS, avx512_f32_add, avx512_f32_widen,
                              avx512_f32_narrow},
};
#endif
