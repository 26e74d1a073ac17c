/* simd.h - what the kernels of all instruction sets need, compiler by compiler. */
#ifndef ACCUMULATE_SIMD_H
#define ACCUMULATE_SIMD_H

#include "backend.h"

#define SIMD_INLINE static inline __attribute__((always_inline))

/* Arrays of registers only stay in registers when the loops over them are gone, at -O2 as well. */
#if defined(__clang__)
#define SIMD_UNROLL /* clang does so unasked, and warns where a pragma asks for what it did */
#else
#define SIMD_UNROLL _Pragma("GCC unroll 16")
#endif

/* Of the dtypes that kernels handle. */
SIMD_INLINE size_t phema_wide_bytes(enum phema_dtype dtype)
{
    return dtype == PHEMA_F64 ? 8 : dtype == PHEMA_F32 ? 4 : 2;
}

/* Far enough ahead that memory answers in time. */
#define SIMD_PREFETCH_BYTES 512

/* The address may lie behind the end of the input: a prefetch cannot fault. */
SIMD_INLINE void phema_prefetch_ahead(const uint8_t *p, size_t size, enum phema_prefetch to)
{
    for (size_t i = 0; i < size; i += 64) {
        if (to == PHEMA_PREFETCH_L1)
            __builtin_prefetch(p + SIMD_PREFETCH_BYTES + i, 0, 3);
        else if (to == PHEMA_PREFETCH_L2)
            __builtin_prefetch(p + SIMD_PREFETCH_BYTES + i, 0, 1);
    }
}

/* Sums below this in magnitude round to finite numbers: half a step beyond the largest one. */
SIMD_INLINE double phema_narrow_limit(enum phema_dtype dtype)
{
    return dtype == PHEMA_F16    ? 65520.0
           : dtype == PHEMA_BF16 ? 0x1.ffp127
           : dtype == PHEMA_F32  ? 0x1.ffffffp127
                                 : (double)__builtin_inf();
}

#endif
