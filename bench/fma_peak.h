/* fma_peak.h - peak rate of one core, as a reference for kernels. */
#ifndef BENCH_FMA_PEAK_H
#define BENCH_FMA_PEAK_H

#include "phema/accumulate.h"

/* Runs a loop of independent fused multiply-adds on registers, with the instruction set of the
 * backend of this name. Returns its operations in gigaflop, an fma being two; 0 for an unknown
 * instruction set. The caller measures the time. */
double bench_fma_gigaflop(const char *backend_name, enum phema_accumulator accumulator);

#endif
