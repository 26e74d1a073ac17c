/* lapack.h - Cholesky in float64 by OpenBLAS, which the first call loads. Row-major lower factors;
 * upper parts are ignored. Safe from any thread; one factorises at a time. */
#ifndef SOLVER_LAPACK_H
#define SOLVER_LAPACK_H

#include <stddef.h>

#include "phema/error.h"

/* In place, by one thread. No entry may be NaN.
 * PHEMA_NO            a pivot is not positive; no message
 * PHEMA_ERR_RESOURCE  OpenBLAS cannot be loaded or lacks memory; the matrix is unchanged */
PHEMA_FALLIBLE phema_lapack_factor(double *lower, size_t n, struct phema_error *err);

#endif
