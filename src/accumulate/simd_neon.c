// SPDX-License-Identifier: Apache-2.0
/* simd_neon.c - kernels for aarch64, which always has NEON and the conversion of halves. */
#include "backend.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "simd.h"

#define SIMD_TARGET

SIMD_INLINE float32x4_t neon_floats(enum phema_dtype dtype, const uint8_t *p)
{
    if (dtype == PHEMA_F32)
        return vreinterpretq_f32_u8(vld1q_u8(p));
    uint16x4_t codes = vreinterpret_u16_u8(vld1_u8(p));
    if (dtype == PHEMA_BF16)
        return vreinterpretq_f32_u32(vshll_n_u16(codes, 16));
    return vcvt_f32_f16(vreinterpret_f16_u16(codes));
}

SIMD_INLINE float64x2_t neon_doubles(const uint8_t *p)
{
    return vreinterpretq_f64_u8(vld1q_u8(p));
}

/* Rounds to nearest even; x must not hold NaN. */
SIMD_INLINE void neon_store_floats(enum phema_dtype dtype, uint8_t *p, float32x4_t x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x);
    if (dtype == PHEMA_F32) {
        vst1q_u8(p, vreinterpretq_u8_f32(x));
    } else if (dtype == PHEMA_BF16) {
        uint32x4_t is_odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
        bits = vaddq_u32(bits, vaddq_u32(is_odd, vdupq_n_u32(0x7fff)));
        vst1_u8(p, vreinterpret_u8_u16(vshrn_n_u32(bits, 16)));
    } else {
        vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32(x)));
    }
}

struct neon_f64_unit {
    float64x2_t part[4];
};

SIMD_INLINE struct neon_f64_unit neon_f64_get_sums(const uint8_t *p)
{
    return (struct neon_f64_unit){
        {neon_doubles(p), neon_doubles(p + 16), neon_doubles(p + 32), neon_doubles(p + 48)}};
}

SIMD_INLINE void neon_f64_put_sums(uint8_t *p, struct neon_f64_unit x)
{
    for (int i = 0; i < 4; i++)
        vst1q_u8(p + (ptrdiff_t)16 * i, vreinterpretq_u8_f64(x.part[i]));
}

SIMD_INLINE struct neon_f64_unit neon_f64_fma(double weight, struct neon_f64_unit x,
                                              struct neon_f64_unit sum)
{
    for (int i = 0; i < 4; i++)
        sum.part[i] = vfmaq_n_f64(sum.part[i], x.part[i], weight);
    return sum;
}

SIMD_INLINE struct neon_f64_unit neon_f64_load(enum phema_dtype dtype, const uint8_t *p)
{
    if (dtype == PHEMA_F64)
        return neon_f64_get_sums(p);
    float32x4_t lo = neon_floats(dtype, p);
    float32x4_t hi = neon_floats(dtype, p + 4 * phema_wide_bytes(dtype));
    return (struct neon_f64_unit){{vcvt_f64_f32(vget_low_f32(lo)), vcvt_high_f64_f32(lo),
                                   vcvt_f64_f32(vget_low_f32(hi)), vcvt_high_f64_f32(hi)}};
}

SIMD_INLINE bool neon_f64_is_plain(enum phema_dtype dtype, struct neon_f64_unit x)
{
    uint64x2_t plain = vdupq_n_u64(UINT64_MAX);
    for (int i = 0; i < 4; i++) {
        float64x2_t size = vabsq_f64(x.part[i]);
        plain = vandq_u64(plain, vcltq_f64(size, vdupq_n_f64(phema_narrow_limit(dtype))));
        /* subnormal floats would be rounded twice: the conversion to float drops bits */
        if (dtype == PHEMA_BF16)
            plain = vandq_u64(plain,
                              vorrq_u64(vceqzq_f64(size), vcgeq_f64(size, vdupq_n_f64(0x1p-126))));
    }
    return (vgetq_lane_u64(plain, 0) & vgetq_lane_u64(plain, 1)) == UINT64_MAX;
}

/* Halves go through float rounded to odd, so that the second rounding gives the result of a single
 * rounding. */
SIMD_INLINE void neon_f64_store(enum phema_dtype dtype, uint8_t *p, struct neon_f64_unit x)
{
    if (dtype == PHEMA_F64) {
        neon_f64_put_sums(p, x);
        return;
    }
    for (int i = 0; i < 4; i += 2) {
        float32x4_t floats = dtype == PHEMA_F32
                                 ? vcvt_high_f32_f64(vcvt_f32_f64(x.part[i]), x.part[i + 1])
                                 : vcvtx_high_f32_f64(vcvtx_f32_f64(x.part[i]), x.part[i + 1]);
        neon_store_floats(dtype, p + (size_t)i * 2 * phema_wide_bytes(dtype), floats);
    }
}

struct neon_f32_unit {
    float32x4_t part[2];
};

SIMD_INLINE struct neon_f32_unit neon_f32_get_sums(const uint8_t *p)
{
    return (struct neon_f32_unit){{neon_floats(PHEMA_F32, p), neon_floats(PHEMA_F32, p + 16)}};
}

SIMD_INLINE void neon_f32_put_sums(uint8_t *p, struct neon_f32_unit x)
{
    vst1q_u8(p, vreinterpretq_u8_f32(x.part[0]));
    vst1q_u8(p + 16, vreinterpretq_u8_f32(x.part[1]));
}

SIMD_INLINE struct neon_f32_unit neon_f32_fma(float weight, struct neon_f32_unit x,
                                              struct neon_f32_unit sum)
{
    return (struct neon_f32_unit){
        {vfmaq_n_f32(sum.part[0], x.part[0], weight), vfmaq_n_f32(sum.part[1], x.part[1], weight)}};
}

SIMD_INLINE struct neon_f32_unit neon_f32_load(enum phema_dtype dtype, const uint8_t *p)
{
    if (dtype != PHEMA_F64)
        return (struct neon_f32_unit){
            {neon_floats(dtype, p), neon_floats(dtype, p + 4 * phema_wide_bytes(dtype))}};
    return (struct neon_f32_unit){
        {vcvt_high_f32_f64(vcvt_f32_f64(neon_doubles(p)), neon_doubles(p + 16)),
         vcvt_high_f32_f64(vcvt_f32_f64(neon_doubles(p + 32)), neon_doubles(p + 48))}};
}

SIMD_INLINE bool neon_f32_is_plain(enum phema_dtype dtype, struct neon_f32_unit x)
{
    /* F32 and F64 hold all finite floats; the limit of F32 itself is not a float */
    bool is_half = dtype == PHEMA_F16 || dtype == PHEMA_BF16;
    float32x4_t limit = vdupq_n_f32(is_half ? (float)phema_narrow_limit(dtype) : __builtin_inff());
    uint32x4_t plain = vandq_u32(vcaltq_f32(x.part[0], limit), vcaltq_f32(x.part[1], limit));
    return vminvq_u32(plain) == UINT32_MAX;
}

SIMD_INLINE void neon_f32_store(enum phema_dtype dtype, uint8_t *p, struct neon_f32_unit x)
{
    for (int i = 0; i < 2; i++) {
        uint8_t *to = p + (size_t)i * 4 * phema_wide_bytes(dtype);
        if (dtype == PHEMA_F64) {
            vst1q_u8(to, vreinterpretq_u8_f64(vcvt_f64_f32(vget_low_f32(x.part[i]))));
            vst1q_u8(to + 16, vreinterpretq_u8_f64(vcvt_high_f64_f32(x.part[i])));
        } else {
            neon_store_floats(dtype, to, x.part[i]);
        }
    }
}

#define SIMD(name)       neon_f64_##name
#define SIMD_SCALAR      double
#define SIMD_ACCUMULATOR PHEMA_ACCUMULATE_F64
#define SIMD_UNIT_ELEMS  8
#define SIMD_MAX_TARGETS 6
#include "simd_kernels.inc"

#define SIMD(name)       neon_f32_##name
#define SIMD_SCALAR      float
#define SIMD_ACCUMULATOR PHEMA_ACCUMULATE_F32
#define SIMD_UNIT_ELEMS  8
#define SIMD_MAX_TARGETS 12
#include "simd_kernels.inc"

const struct phema_kernels phema_neon_kernels[2] = {
    [PHEMA_ACCUMULATE_F64] = {6, 8, neon_f64_add, neon_f64_widen, neon_f64_narrow},
    [PHEMA_ACCUMULATE_F32] = {12, 8, neon_f32_add, neon_f32_widen, neon_f32_narrow},
};
#endif
