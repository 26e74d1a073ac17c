/* simd.h - private to accumulate/: helpers of the kernels of all instruction sets. */
#ifndef ACCUMULATE_SIMD_H
#define ACCUMULATE_SIMD_H

#include "backend.h"

#define SIMD_INLINE static inline __attribute__((always_inline))

/* Arrays of registers stay in registers only where loops over them are unrolled, at -O2 too. clang does
 * so unasked, and warns about a pragma that asks for it. With a sanitizer gcc takes minutes to compile
 * the unrolled loops. */
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SIMD_UNROLL
#else
#define SIMD_UNROLL _Pragma("GCC unroll 16")
#endif

/* X(1) X(2) ... X(max), for the numbers of targets that fit the registers of some instruction set. */
#define SIMD_FOR_TARGETS(X, max)  SIMD_FOR_TARGETS_(X, max)
#define SIMD_FOR_TARGETS_(X, max) SIMD_FOR_##max##_TARGETS(X)
#define SIMD_FOR_6_TARGETS(X)     X(1) X(2) X(3) X(4) X(5) X(6)
#define SIMD_FOR_12_TARGETS(X)    SIMD_FOR_6_TARGETS(X) X(7) X(8) X(9) X(10) X(11) X(12)
#define SIMD_FOR_13_TARGETS(X)    SIMD_FOR_12_TARGETS(X) X(13)

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
