/* cpu.h - instruction sets and processor count of this machine, asked once.
 * PHEMA_CPU=ref|avx2|avx512|neon in the environment lowers the choice and never raises it. */
#ifndef PHEMA_CPU_H
#define PHEMA_CPU_H

#include "phema/error.h"

enum phema_cpu_level {
    PHEMA_CPU_REF,    /* plain C */
    PHEMA_CPU_NEON,   /* aarch64 */
    PHEMA_CPU_AVX2,   /* AVX2, FMA and F16C */
    PHEMA_CPU_AVX512, /* AVX-512 F, BW, DQ, VL in addition */
};

enum phema_cpu_level phema_cpu_level(void);

/* Threads that may run at once: affinity mask and cgroup quota, at least 1. */
unsigned phema_cpu_threads(void);
#define PHEMA_MAX_THREADS 1024 /* that a user may ask for */

#endif
