// SPDX-License-Identifier: Apache-2.0
/* fma_peak.c - loops of fused multiply-adds on registers. The number of chains hides the latency (4
 * or 5 cycles, two units) and fits the registers. */
#include "fma_peak.h"

#include <string.h>

#define N_ROUNDS ((size_t)2000000)

/* FMA(x, factor, sum) and SET(number) work on vectors of LANES numbers. The result is used, so the
 * compiler cannot remove the loop. */
#define PEAK(NAME, TARGET, VECTOR, SCALAR, LANES, SET, FMA, CHAINS)                                \
    TARGET static double NAME(void)                                                                \
    {                                                                                              \
        VECTOR factor = SET((SCALAR)0.5F), term = SET((SCALAR)1), sums[CHAINS];                    \
        for (size_t i = 0; i < (CHAINS); i++)                                                      \
            sums[i] = SET((SCALAR)i);                                                              \
        for (size_t round = 0; round < N_ROUNDS; round++) {                                        \
            _Pragma("GCC unroll 16") for (size_t i = 0; i < (CHAINS); i++) sums[i] =               \
                FMA(sums[i], factor, term);                                                        \
        }                                                                                          \
        volatile VECTOR sink;                                                                      \
        for (size_t i = 0; i < (CHAINS); i++)                                                      \
            sink = sums[i];                                                                        \
        (void)sink;                                                                                \
        return 2e-9 * (LANES) * (CHAINS) * (double)N_ROUNDS;                                       \
    }

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX512 __attribute__((target("avx512f")))
#define AVX2   __attribute__((target("avx2,fma")))
PEAK(avx512_f64, AVX512, __m512d, double, 8, _mm512_set1_pd, _mm512_fmadd_pd, 16)
PEAK(avx512_f32, AVX512, __m512, float, 16, _mm512_set1_ps, _mm512_fmadd_ps, 16)
PEAK(avx2_f64, AVX2, __m256d, double, 4, _mm256_set1_pd, _mm256_fmadd_pd, 12)
PEAK(avx2_f32, AVX2, __m256, float, 8, _mm256_set1_ps, _mm256_fmadd_ps, 12)
#elif defined(__aarch64__)
#include <arm_neon.h>
PEAK(neon_f64, , float64x2_t, double, 2, vdupq_n_f64, vfmaq_f64, 16)
PEAK(neon_f32, , float32x4_t, float, 4, vdupq_n_f32, vfmaq_f32, 16)
#endif

static const struct {
    const char *name;
    double (*run[2])(void); /* by accumulator */
} peaks[] = {
#if defined(__x86_64__)
    {"avx512", {[PHEMA_ACCUMULATE_F64] = avx512_f64, [PHEMA_ACCUMULATE_F32] = avx512_f32}},
    {"avx2", {[PHEMA_ACCUMULATE_F64] = avx2_f64, [PHEMA_ACCUMULATE_F32] = avx2_f32}},
#elif defined(__aarch64__)
    {"neon", {[PHEMA_ACCUMULATE_F64] = neon_f64, [PHEMA_ACCUMULATE_F32] = neon_f32}},
#endif
    {"ref", {NULL, NULL}},
};

double bench_fma_gigaflop(const char *backend_name, enum phema_accumulator accumulator)
{
    for (size_t i = 0; i < ARRAY_LEN(peaks); i++) {
        if (strcmp(peaks[i].name, backend_name) == 0 && peaks[i].run[accumulator])
            return peaks[i].run[accumulator]();
    }
    return 0;
}
