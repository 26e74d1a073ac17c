/* round.h - private to accumulate/: scalar conversion from double to every dtype, with one rounding
 * to nearest even. phema/dtype.h has the reverse. It is the reference for the vector kernels, and
 * converts the elements that they leave. NaN becomes the positive quiet NaN. F4 has neither NaN nor
 * infinity: NaN and numbers that are too large become its largest number, as in ONNX. F8_E8M0 has
 * powers of two only. There zero becomes the smallest, ties go up as in PyTorch, and a negative
 * number becomes NaN and counts as overflow. */
#ifndef ACCUMULATE_ROUND_H
#define ACCUMULATE_ROUND_H

#include "phema/accumulate.h"
#include "phema/dtype.h"

/* Writes x to element i of out. Odd elements of F4 are written after their even neighbours. */
void phema_element_narrow(uint8_t *out, enum phema_dtype dtype, size_t i, double x,
                          enum phema_overflow overflow, struct phema_narrow_counts *counts);

/* The values of all codes of a dtype of 4 or 8 bits. */
#define PHEMA_N_CODES 256
void phema_small_values(double *values, enum phema_dtype dtype);

#endif
