/* simd.h - private to accumulate/: helpers of the kernels of all instruction sets. */
#ifndef ACCUMULATE_SIMD_H
#define ACCUMULATE_SIMD_H

#include "backend.h"

#define SIMD_INLINE static inline __attribute__((always_inline))

/* Arrays of registers stay in registers only where loops over them are unrolled, at -O2 too. */
#if defined(__clang__)
#define SIMD_UNROLL /* clang unrolls unasked, and warns about a pragma that asks for it */
#else
#define SIMD_UNROLL _Pragma("GCC unroll 16")
#endif

/* Bytes of an element of the dtypes that kernels read and write. */
SIMD_INLINE size_t phema_wide_bytes(enum phema_dtype dtype)
{
    return dtype == PHEMA_F64 ? 8 : dtype == PHEMA_F32 ? 4 : 2;
}

/* Distance that hides the latency of memory. */
#define SIMD_PREFETCH_BYTES 512

/* The address may lie after the end of the input: a prefetch cannot fault. */
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
