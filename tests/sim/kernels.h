/* kernels.h - what a device does, as plain loops over the numbers that the device's own code is
 * made of (src/gpu/cuda/scalar.h). */
#ifndef TESTS_SIM_KERNELS_H
#define TESTS_SIM_KERNELS_H

#include "runtime.h"

/* is_wrong: in the last bit of what is not zero, to be found out */
void sim_average(const struct runtime_job *job, bool is_wrong);
void sim_round(const struct runtime_job *job);
void sim_widen(uint8_t *panel, const struct runtime_job *job, uint64_t first, uint64_t n,
               uint64_t n_numbers);
void sim_multiply(const struct runtime_product *product); /* from the last input to the first */

#endif
