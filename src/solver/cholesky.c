// SPDX-License-Identifier: Apache-2.0
/* cholesky.c - Cholesky factor and solves of matrices with unit diagonal. All entries of the factor
 * are at most 1, so dot products are exact in fixed point. Divisions are in quad. */
#include "cholesky.h"

#include <math.h>
#include <stdlib.h>

/* A pivot below this fraction of its diagonal is rounding error alone. */
#define LEAST_PIVOT ((phema_quad)1e-30)

/* Row i of L left of the diagonal; false when an entry shows that the matrix is not definite. */
static bool factor_row(struct phema_cholesky *cholesky, const phema_fixed *matrix,
                       const phema_quad *shrink, size_t i)
{
    size_t n = cholesky->n;
    phema_fixed *row = cholesky->factor + i * n;
    for (size_t j = 0; j < i; j++) {
        phema_quad of_system = phema_quad_from_fixed(matrix[i * n + j]);
        if (shrink)
            of_system = of_system * shrink[i] * shrink[j];
        phema_quad rest = of_system - phema_fixed_dot(row, cholesky->factor + j * n, j);
        phema_quad entry = rest * cholesky->inverses[j];
        if (phema_quad_abs(entry) > (phema_quad)1.5)
            return false;
        row[j] = phema_fixed_from_quad(entry);
    }
    return true;
}

enum phema_status phema_cholesky_factor(struct phema_cholesky *cholesky, const phema_fixed *matrix,
                                        const phema_quad *shrink, size_t n, bool may_leave_out,
                                        size_t *dependent, struct phema_error *err)
{
    *cholesky = (struct phema_cholesky){.n = n, .least_pivot = 1};
    cholesky->factor = calloc(n * n, sizeof(*cholesky->factor));
    cholesky->inverses = calloc(n, sizeof(*cholesky->inverses));
    if (!cholesky->factor || !cholesky->inverses) {
        phema_cholesky_clear(cholesky);
        return phema_fail(err, PHEMA_ERR_RESOURCE, "no memory to solve for %zu snapshots", n);
    }
    for (size_t i = 0; i < n; i++) {
        phema_fixed *row = cholesky->factor + i * n;
        bool is_definite = factor_row(cholesky, matrix, shrink, i);
        phema_quad pivot = is_definite ? 1 - phema_fixed_dot(row, row, i) : 0;
        if (pivot > LEAST_PIVOT) {
            phema_quad root = phema_quad_sqrt(pivot);
            row[i] = phema_fixed_from_quad(root);
            cholesky->inverses[i] = 1 / root;
            cholesky->least_pivot = fmin(cholesky->least_pivot, (double)pivot);
            continue;
        }
        if (!may_leave_out) {
            *dependent = i;
            phema_cholesky_clear(cholesky);
            return PHEMA_NO;
        }
        cholesky->leaves_out = true;
        for (size_t j = 0; j < i; j++)
            row[j] = 0;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            cholesky->factor[j * n + i] = cholesky->factor[i * n + j];
    return PHEMA_OK;
}

void phema_cholesky_clear(struct phema_cholesky *cholesky)
{
    free(cholesky->factor);
    free(cholesky->inverses);
    *cholesky = (struct phema_cholesky){0};
}

/* A vector in fixed point with a common unit. When an entry does not fit, the unit grows and all
 * entries are shifted down; the error stays small relative to the largest. */
struct growing {
    phema_fixed *at;
    int exponent;    /* the number is at[i] 2^exponent */
    phema_quad most; /* no number is larger */
};

/* Stores x at index; the entries from..to are filled already. */
static void store_entry(struct growing *vector, size_t index, phema_quad x, size_t from, size_t to)
{
    unsigned shift = 0;
    while (phema_quad_abs(x) > vector->most) {
        vector->most *= 2;
        shift++;
    }
    vector->exponent += (int)shift;
    for (size_t i = from; shift && i < to; i++)
        vector->at[i] = shift < 127 ? vector->at[i] >> shift : 0;
    vector->at[index] = phema_fixed_from_quad(phema_quad_shifted(x, -vector->exponent));
}

/* Entries first .. n - 1, those of b before first being 0. */
static void solve_from(const struct phema_cholesky *cholesky, size_t first, phema_quad *x,
                       const phema_quad *b, phema_fixed *scratch)
{
    size_t n = cholesky->n;
    phema_quad bound = (phema_quad)ldexpl(1, -(int)phema_fixed_headroom(n));
    struct growing forward = {scratch, 0, bound};
    for (size_t i = first; i < n; i++) {
        const phema_fixed *row = cholesky->factor + i * n;
        phema_quad known = phema_quad_shifted(
            phema_fixed_dot(row + first, scratch + first, i - first), forward.exponent);
        x[i] = (b[i] - known) * cholesky->inverses[i];
        store_entry(&forward, i, x[i], first, i);
    }
    struct growing backward = {scratch, 0, bound};
    for (size_t i = n; i-- > first;) {
        const phema_fixed *above = cholesky->factor + i * n + i + 1;
        phema_quad known = phema_quad_shifted(phema_fixed_dot(above, scratch + i + 1, n - i - 1),
                                              backward.exponent);
        x[i] = (x[i] - known) * cholesky->inverses[i];
        store_entry(&backward, i, x[i], i + 1, n);
    }
}

void phema_cholesky_solve(const struct phema_cholesky *cholesky, phema_quad *x, const phema_quad *b,
                          phema_fixed *scratch)
{
    solve_from(cholesky, 0, x, b, scratch);
}

void phema_cholesky_invert(const struct phema_cholesky *cholesky, phema_quad *x, size_t column,
                           phema_fixed *scratch)
{
    for (size_t i = column; i < cholesky->n; i++)
        x[i] = i == column;
    solve_from(cholesky, column, x, x, scratch);
}

/* ---- Small matrices, in float64 ---- */

bool phema_float64_factor(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t begin = 0; /* the first entry of the row that is not 0, the last one at most */
        while (begin < i && a[i * n + begin] == 0)
            begin++;
        for (size_t j = begin; j <= i; j++) {
            double sum = a[i * n + j] - phema_dot(a + i * n + begin, a + j * n + begin, j - begin);
            if (i == j && !(sum > 0 && sum < HUGE_VAL))
                return false;
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
    }
    return true;
}

void phema_float64_solve(const double *factor, double *column, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            column[i] -= factor[i * n + k] * column[k];
        column[i] /= factor[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            column[i] -= factor[k * n + i] * column[k];
        column[i] /= factor[i * n + i];
    }
}

void phema_float64_invert(double *inverse, const double *factor, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        double *row = inverse + j * n;
        row[j] = 1 / factor[j * n + j];
        for (size_t i = j + 1; i < n; i++)
            row[i] = -phema_dot(factor + i * n + j, row + j, i - j) / factor[i * n + i];
    }
}
