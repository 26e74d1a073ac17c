// SPDX-License-Identifier: Apache-2.0
/* tensor_outliers.c - a tensor that is damaged in one snapshot. It is too small to show in the z of
 * the snapshot, so its residual is compared with those of the same tensor in snapshots nearby.
 * How fast a tensor moves does not matter then. */
#include <math.h>

#include "leave_one_out.h"

/* Zeroes and garbage are as far from the prediction as the prediction is from zero. Snapshots of
 * one training are much nearer, as long as the tensor is not still at its beginning. */
#define LEAST_CHANGE 0.5

/* Numbers of the tensor in the other snapshots, at least. With fewer, all of them may be near their
 * predictions by chance. */
#define LEAST_COMPARED ((size_t)24)

/* Snapshots on each side to compare with: a tensor may have moved faster or slower elsewhere. */
#define NEAR ((size_t)8)

static double square_sum(const double *numbers, size_t first, size_t end)
{
    double sum = 0;
    for (size_t e = first; e < end; e++)
        sum += numbers[e] * numbers[e];
    return sum;
}

static bool is_far(const struct window *window, size_t i, size_t first, size_t end)
{
    const double *row = window_row(window, i), *residual = window_residual(window, i);
    double off = 0, predicted = 0;
    for (size_t e = first; e < end; e++) {
        off += residual[e] * residual[e];
        predicted += (row[e] - residual[e]) * (row[e] - residual[e]);
    }
    return off > LEAST_CHANGE * LEAST_CHANGE * predicted;
}

static size_t near_begin(size_t i)
{
    return i > NEAR ? i - NEAR : 0;
}

static size_t near_end(const struct window *window, size_t i)
{
    return i + NEAR < window->n ? i + NEAR + 1 : window->n;
}

/* The residual of tensor [first, end) in snapshot i over the largest of those nearby, which do not
 * look at i. Rounding can hold still in all but one snapshot: the others count as one spacing. */
static double find_ratio(const struct window *window, size_t i, size_t first, size_t end)
{
    double own = window->precision[i] * square_sum(window_residual(window, i), first, end);
    double largest = window->precision[i] * square_sum(window->sample->spacings, first, end);
    for (size_t j = near_begin(i); j < near_end(window, i); j++)
        if (j != i)
            largest = fmax(largest, window_squares_without(window, i, j, first, end));
    return sqrt(own / largest);
}

void tensor_outliers_find(struct phema_tensor_outlier *out, const struct window *window, size_t i)
{
    const struct phema_sample_rows *sample = window->sample;
    struct phema_tensor_outlier found = {.snapshot = window->first + i};
    size_t n_others = near_end(window, i) - near_begin(i) - 1;
    for (size_t first = 0, end; first < sample->n_elems; first = end) {
        end = first;
        while (end < sample->n_elems && sample->tensors[end] == sample->tensors[first])
            end++;
        if ((end - first) * n_others < LEAST_COMPARED)
            continue;
        found.n_compared++;
        double ratio = is_far(window, i, first, end) ? find_ratio(window, i, first, end) : 0;
        found.n_outliers += ratio > PHEMA_TENSOR_OUTLIER;
        if (ratio > found.ratio) {
            found.ratio = ratio;
            found.tensor = sample->tensors[first];
        }
    }
    if (found.ratio > out->ratio)
        *out = found;
}
