/* fma_peak.h - what one core can do at most, as a yardstick for kernels. */
#ifndef BENCH_FMA_PEAK_H
#define BENCH_FMA_PEAK_H

#include "phema/accumulate.h"

/* Operations of a loop of independent fused multiply-adds that touches registers alone, with the
 * instruction set of the backend of this name; an fma is two operations. Gigaflop: 0 where the
 * instruction set is not known here. The caller takes the time. */
double bench_fma_gigaflop(const char *backend_name, enum phema_accumulator accumulator);

#endif
