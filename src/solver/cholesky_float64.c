// SPDX-License-Identifier: Apache-2.0
/* cholesky_float64.c - Cholesky factors of small matrices, in float64. */
#include "cholesky_float64.h"

#include <math.h>

#include "dot.h"

/* The first entry of a row that is not 0, the last one at most. */
static size_t find_begin(const double *row, size_t last)
{
    size_t begin = 0;
    while (begin < last && row[begin] == 0)
        begin++;
    return begin;
}

bool phema_float64_factor(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t begin = find_begin(a + i * n, i);
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
