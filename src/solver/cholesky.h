/* cholesky.h - Cholesky factors of a Gram matrix in fixed point and in float64, and condition
 * numbers. In fixed point, the system is S (A + R) S with A of unit diagonal, R a diagonal >= 0 and
 * S = (1 + R)^-1/2, which gives it unit diagonal again. */
#ifndef SOLVER_CHOLESKY_H
#define SOLVER_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

#include "phema/error.h"

#include "fixed_point.h"

struct phema_cholesky {
    size_t n;
    phema_fixed *factor;  /* [n x n] L below the diagonal, its transpose above, L_ii on it */
    phema_quad *inverses; /* [n] 1 / L_ii; 0 for an omitted unknown */
    bool leaves_out;      /* some unknown is omitted */
    double least_pivot;   /* least L_ii^2 of the other unknowns; 1 for a diagonal matrix */
};

/* shrink [n] is the diagonal of S, or NULL for 1. With may_leave_out, an unknown that depends on
 * those before it gets the value 0 in every solution.
 * PHEMA_NO            without may_leave_out: *dependent is the index of such an unknown; no message
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_cholesky_factor(struct phema_cholesky *cholesky, const phema_fixed *matrix,
                                     const phema_quad *shrink, size_t n, bool may_leave_out,
                                     size_t *dependent, struct phema_error *err);
void phema_cholesky_clear(struct phema_cholesky *cholesky);

/* x of system x = b; x may be b; no entry of b above 1; scratch [n] */
void phema_cholesky_solve(const struct phema_cholesky *cholesky, phema_quad *x, const phema_quad *b,
                          phema_fixed *scratch);
/* Entries column .. n - 1 of a column of the inverse, at their places in x; the others are
 * unchanged. */
void phema_cholesky_invert(const struct phema_cholesky *cholesky, phema_quad *x, size_t column,
                           phema_fixed *scratch);

/* lapack.c: Cholesky in float64 by OpenBLAS, which the first call loads. Lower factors, row-major;
 * upper parts are ignored. In place, by one thread; safe from any thread. No entry may be NaN.
 * PHEMA_NO            a pivot is not positive; no message
 * PHEMA_ERR_RESOURCE  OpenBLAS cannot be loaded or lacks memory; the matrix is unchanged */
PHEMA_FALLIBLE phema_lapack_factor(double *lower, size_t n, struct phema_error *err);

/* condition.c: L^-1 x and L^-T x, in place; L as above */
void phema_lower_solve(const double *lower, double *x, size_t n);
void phema_lower_solve_transposed(const double *lower, double *x, size_t n);

/* Condition number in the 2-norm of D L L^T D, from L [n x n] and the diagonal D [n]. Some six
 * digits. */
PHEMA_FALLIBLE phema_condition(double *out, const double *lower, const double *diagonal, size_t n,
                               struct phema_error *err);

/* ---- Small matrices, in float64 ---- */

/* Numbers in one half of a symmetric matrix, with the diagonal. */
#define PHEMA_TRIANGLE(n) ((n) * ((n) + 1) / 2)

/* A sum of products: of four sums, which do not wait for each other. */
static inline double phema_dot(const double *a, const double *b, size_t n)
{
    double sums[4] = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* The factor L of a = L L^T, in place: a is [n x n], and its lower half alone is read and written.
 * L is 0 where rows of a begin with 0, which takes no time. false: not positive definite */
bool phema_float64_factor(double *a, size_t n);

/* Solves L L^T x = column, in place. */
void phema_float64_solve(const double *factor, double *column, size_t n);

/* inverse: L^-T, in the upper half of [n x n]. */
void phema_float64_invert(double *inverse, const double *factor, size_t n);

#endif
