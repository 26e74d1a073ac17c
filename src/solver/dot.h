/* dot.h - a sum of products. */
#ifndef SOLVER_DOT_H
#define SOLVER_DOT_H

#include <stddef.h>

/* Four sums, which do not wait for each other. */
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

#endif
