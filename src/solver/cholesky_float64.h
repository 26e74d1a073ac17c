/* cholesky_float64.h - Cholesky factors of small matrices, in float64. */
#ifndef SOLVER_CHOLESKY_FLOAT64_H
#define SOLVER_CHOLESKY_FLOAT64_H

#include <stdbool.h>
#include <stddef.h>

/* The factor L of a = L L^T, in place: a is [n x n], and its lower half alone is read and written.
 * L is 0 where rows of a begin with 0, which takes no time. false: not positive definite */
bool phema_float64_factor(double *a, size_t n);

/* Solves L L^T x = column, in place. */
void phema_float64_solve(const double *factor, double *column, size_t n);

/* inverse: L^-T, in the upper half of [n x n]. */
void phema_float64_invert(double *inverse, const double *factor, size_t n);

#endif
