/* leave_one_out.h - a window of snapshots and the residuals of each from what the others
 * predict. */
#ifndef SOLVER_LEAVE_ONE_OUT_H
#define SOLVER_LEAVE_ONE_OUT_H

#include "phema/solver.h"

struct window {
    size_t first, n;
    /* of P = K^-1 - K^-1 1 (1' K^-1 1)^-1 1' K^-1 */
    double *coefficients; /* [n x n] P_ij / P_ii */
    double *precision;    /* [n] P_ii, of relative squares */
    double log_volume;    /* log |K| + log 1' K^-1 1 */
    /* [n x n_elems] X. P removes what all snapshots share, so their distances from the newest one do
     * as well as they do. Being small, distances lose fewer digits. */
    double *distances;
    double *residuals;  /* [(n + 1) x n_elems] (P X)_i / P_ii, of those that were asked for */
    bool *has_residual; /* [n] */
    const struct phema_sample_rows *sample;
};

static inline const double *window_row(const struct window *window, size_t i)
{
    const struct phema_sample_rows *sample = window->sample;
    size_t k = window->first + i;
    return sample->values + (sample->order ? sample->order[k] : k) * sample->n_elems;
}

static inline const double *window_distance(const struct window *window, size_t i)
{
    return window->distances + i * window->sample->n_elems;
}

/* leave_one_out_residuals.c: found when it is asked for first. */
const double *window_residual(const struct window *window, size_t i);

/* The sum of squares over elements [first, end) of the residual of snapshot j once i is gone, times
 * its precision: P loses a row and a column, which changes it by a matrix of rank one. 0: it says
 * nothing without i. */
static inline double window_squares_without(const struct window *window, size_t i, size_t j,
                                            size_t first, size_t end)
{
    const double *gone = window_residual(window, i), *residual = window_residual(window, j);
    double towards = window->coefficients[j * window->n + i];
    double kept = 1 - towards * window->coefficients[i * window->n + j];
    if (kept <= 0)
        return 0;
    double squares = 0;
    for (size_t e = first; e < end; e++) {
        double left = residual[e] - towards * gone[e];
        squares += left * left;
    }
    return window->precision[j] / kept * squares;
}

/* tensor_outliers.c: replaces out if snapshot i has a tensor with a larger ratio. */
void tensor_outliers_find(struct phema_tensor_outlier *out, const struct window *window, size_t i);

#endif
