/* openblas.h - the sums as a product of matrices by OpenBLAS: a reference for the speed of the
 * kernels and, within the bound of a sum in any order, for their numbers. For tests and benchmarks;
 * the program does not have it. */
#ifndef TESTS_SUPPORT_OPENBLAS_H
#define TESTS_SUPPORT_OPENBLAS_H

#include "backend.h"

/* Sets the number of OpenBLAS' threads while it runs: one call at a time. */
extern const struct phema_backend openblas_backend;

#endif
