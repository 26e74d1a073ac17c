/* openblas.h - sums as a matrix product by OpenBLAS. It is a reference for the speed of the kernels
 * and, within the error bound of a sum in any order, for their results. For tests and benchmarks
 * only; it is not part of the program. */
#ifndef TESTS_SUPPORT_OPENBLAS_H
#define TESTS_SUPPORT_OPENBLAS_H

#include "backend.h"

/* Changes the number of OpenBLAS' threads while it runs, so only one call at a time is allowed. */
extern const struct phema_backend openblas_backend;

#endif
