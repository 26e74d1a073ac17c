/* lapack.h - Cholesky in float64 by OpenBLAS' LAPACK, which is loaded when it is needed; row-major
 * lower factors, upper parts ignored. Safe from any thread; one factorises at a time. */
#ifndef SOLVER_LAPACK_H
#define SOLVER_LAPACK_H

#include <stddef.h>

#include "phema/error.h"

/* In place, by one thread. No entry may be NaN. PHEMA_NO, without a message: a pivot is not
 * positive. PHEMA_ERR_RESOURCE: OpenBLAS cannot be loaded, or there is no room for it; the matrix
 * is as it was. */
PHEMA_FALLIBLE phema_lapack_factor(double *lower, size_t n, struct phema_error *err);

#endif
