/* kernels.h - the simulated device's kernels: plain loops over the functions of
 * src/gpu/cuda/scalar.h, which the real kernels use as well. */
#ifndef TESTS_SIM_KERNELS_H
#define TESTS_SIM_KERNELS_H

#include "runtime.h"

/* is_wrong: makes nonzero sums slightly wrong, so that the self-test must detect it */
void sim_average(const struct runtime_job *job, bool is_wrong);
void sim_round(const struct runtime_job *job);
void sim_widen(uint8_t *panel, const struct runtime_job *job, uint64_t first, uint64_t n,
               uint64_t n_numbers);
void sim_multiply(const struct runtime_product *product); /* from the last input to the first */

#endif
