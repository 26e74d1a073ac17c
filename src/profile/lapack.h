/* lapack.h - Cholesky in float64 by LAPACK; row-major lower factors, upper parts ignored. */
#ifndef PHEMA_PROFILE_LAPACK_H
#define PHEMA_PROFILE_LAPACK_H

#include <stdbool.h>
#include <stddef.h>

/* In place; false when a pivot is not positive. No entry may be NaN. */
bool phema_lapack_factor(double *lower, size_t n);

/* x of L L^T x = b, in place */
bool phema_lapack_solve(const double *lower, double *x, size_t n);

#endif
