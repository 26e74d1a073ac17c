// SPDX-License-Identifier: Apache-2.0
/* leave_one_out_residuals.c - the residual of a snapshot from what the others of its window
 * predict. */
#include "leave_one_out.h"

#include <string.h>

/* Adds four rows to two sums: these, and the rows, are loaded and stored less often. */
static void add_rows(double *restrict sum, double *restrict sum_beside, const double *const rows[4],
                     const double factors[4], const double factors_beside[4], size_t n_elems)
{
    const double *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2],
                           *restrict d = rows[3];
    for (size_t e = 0; e < n_elems; e++) {
        sum[e] += factors[0] * a[e] + factors[1] * b[e] + factors[2] * c[e] + factors[3] * d[e];
        sum_beside[e] += factors_beside[0] * a[e] + factors_beside[1] * b[e] +
                         factors_beside[2] * c[e] + factors_beside[3] * d[e];
    }
}

/* Of snapshots i and i + 1; of the last one of an odd number, a row behind all takes the second. */
static void find_residuals(const struct window *window, size_t i)
{
    size_t n = window->n, n_elems = window->sample->n_elems, newest = n - 1;
    size_t beside = i + 1 < n ? i + 1 : i;
    double *residuals = window->residuals + i * n_elems;
    memset(residuals, 0, 2 * n_elems * sizeof(*residuals));
    for (size_t j = 0; j < newest; j += 4) {
        const double *rows[4];
        double factors[4], factors_beside[4];
        for (size_t r = 0; r < 4; r++) {
            size_t k = j + r < newest ? j + r : newest; /* which adds nothing */
            rows[r] = window_distance(window, k);
            factors[r] = window->coefficients[i * n + k];
            factors_beside[r] = window->coefficients[beside * n + k];
        }
        add_rows(residuals, residuals + n_elems, rows, factors, factors_beside, n_elems);
    }
    window->has_residual[i] = window->has_residual[beside] = true;
}

const double *window_residual(const struct window *window, size_t i)
{
    if (!window->has_residual[i])
        find_residuals(window, i - i % 2);
    return window->residuals + i * window->sample->n_elems;
}
