/* round.h - one element at a time from double to the dtypes of files, with a single rounding to
 * nearest even; element.h has the way back. What the vector kernels are held against, and what does
 * their odd ends. NaN is written as the positive quiet NaN. F4 has neither NaN nor infinity: NaN
 * and what is too large become its largest number, as ONNX has it. F8_E8M0 holds powers of two
 * alone: zero becomes its smallest, a tie goes up as in PyTorch, and a negative number is NaN and
 * counts as overflow. */
#ifndef ACCUMULATE_ROUND_H
#define ACCUMULATE_ROUND_H

#include "phema/accumulate.h"
#include "phema/dtype.h"

/* Element i of out = x; odd elements of F4 after their even neighbours. */
void phema_element_narrow(uint8_t *out, enum phema_dtype dtype, size_t i, double x,
                          enum phema_overflow overflow, struct phema_narrow_counts *counts);

/* The values of all codes of a dtype of 4 or 8 bits. */
#define PHEMA_N_CODES 256
void phema_small_values(double *values, enum phema_dtype dtype);

#endif
