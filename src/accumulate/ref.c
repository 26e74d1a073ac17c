// SPDX-License-Identifier: Apache-2.0
/* ref.c - reference loops, which define the correct bits. One fused multiply-add for each input, in
 * the order of the inputs, and one rounding at the end. Runs on any machine. */
#include "backend.h"

#include <math.h>

void phema_ref_accumulate(enum phema_accumulator accumulator, void *sums, size_t row_bytes,
                          const struct phema_tile *tile)
{
    for (size_t k = 0; k < tile->n_inputs; k++) {
        const double *weights = tile->weights + k * tile->n_targets;
        for (size_t i = 0; i < tile->n_elems; i++) {
            double x = phema_element_widen(tile->dtype, tile->inputs[k], i);
            for (size_t m = 0; m < tile->n_targets; m++) {
                void *row = (char *)sums + m * row_bytes;
                if (accumulator == PHEMA_ACCUMULATE_F64) {
                    double *sum = (double *)row + i;
                    *sum = fma(weights[m], x, *sum);
                } else {
                    float *sum = (float *)row + i;
                    *sum = fmaf((float)weights[m], (float)x, *sum);
                }
            }
        }
    }
}

void phema_ref_narrow(uint8_t *out, enum phema_dtype dtype, enum phema_accumulator accumulator,
                      const void *sums, size_t n, enum phema_overflow overflow,
                      struct phema_narrow_counts *counts)
{
    for (size_t i = 0; i < n; i++) {
        double x = accumulator == PHEMA_ACCUMULATE_F64 ? ((const double *)sums)[i]
                                                       : (double)((const float *)sums)[i];
        phema_element_narrow(out, dtype, i, x, overflow, counts);
    }
}
