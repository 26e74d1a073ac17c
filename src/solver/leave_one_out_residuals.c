// SPDX-License-Identifier: Apache-2.0
/* leave_one_out_residuals.c - the residual of a snapshot from what the others of its window
 * predict. */
#include "leave_one_out.h"

#include <string.h>

/* Four rows at a time: the sum is loaded and stored less often. */
static void add_rows(double *restrict sum, const double *const rows[4],
                     const double coefficients[4], const double *restrict reference, size_t n_elems)
{
    const double *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2],
                           *restrict d = rows[3];
    for (size_t e = 0; e < n_elems; e++)
        sum[e] += coefficients[0] * (a[e] - reference[e]) +
                  coefficients[1] * (b[e] - reference[e]) +
                  coefficients[2] * (c[e] - reference[e]) + coefficients[3] * (d[e] - reference[e]);
}

static void find_residual(const struct window *window, size_t i)
{
    size_t n_elems = window->sample->n_elems, newest = window->n - 1;
    double *residual = window->residuals + i * n_elems;
    /* pages of calloc would be read before they are written, which costs a second fault and
     * interrupts the other threads */
    memset(residual, 0, n_elems * sizeof(*residual));
    for (size_t j = 0; j < newest; j += 4) {
        const double *rows[4];
        double coefficients[4];
        for (size_t r = 0; r < 4; r++) {
            size_t k = j + r < newest ? j + r : newest; /* which adds nothing */
            rows[r] = window_row(window, k);
            coefficients[r] = window->coefficients[i * window->n + k];
        }
        add_rows(residual, rows, coefficients, window_reference(window), n_elems);
    }
}

const double *window_residual(const struct window *window, size_t i)
{
    if (!window->has_residual[i])
        find_residual(window, i);
    window->has_residual[i] = true;
    return window->residuals + i * window->sample->n_elems;
}
