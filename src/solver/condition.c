// SPDX-License-Identifier: Apache-2.0
/* condition.c - condition number of D L L^T D, by Lanczos on the matrix and on its inverse, in
 * float64. Rounding L to float64 moves its smallest singular value s by 1e-16. So condition numbers
 * up to 1e28 have correct digits; the entries of L L^T themselves would give none beyond 1e16. */
#include "cholesky.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gram.h"
#include "phema/parallel.h"

#define MAX_STEPS 300

struct lanczos {
    const double *lower;
    const double *scale; /* [n] D */
    size_t n;
    double *basis; /* [MAX_STEPS + 1 x n] orthonormal rows */
    double diagonal[MAX_STEPS];
    double beside[MAX_STEPS];
};

/* Eight independent sums, which hide the latency of addition. */
static double dot(const double *a, const double *b, size_t n)
{
    double sums[8] = {0}, rest = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            sums[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        rest += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
}

static void subtract(double *from, double factor, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        from[i] -= factor * x[i];
}

/* x = L^T D x, then D L x: in place, rows ascending, then descending */
static void multiply(const struct lanczos *l, double *x)
{
    for (size_t i = 0; i < l->n; i++) {
        double entry = l->scale[i] * x[i];
        x[i] = 0;
        subtract(x, -entry, l->lower + i * l->n, i + 1);
    }
    for (size_t i = l->n; i-- > 0;)
        x[i] = l->scale[i] * dot(l->lower + i * l->n, x, i + 1);
}

/* Rows of a triangle that are solved together, in one pass through the vector. */
#define ROWS ((size_t)4)

/* Two numbers in one register, said outright: left to itself, gcc 12 shuffles them. */
__extension__ typedef double phema_two __attribute__((vector_size(16)));

static phema_two load_two(const double *x)
{
    phema_two both;
    memcpy(&both, x, sizeof(both));
    return both;
}

/* The known part of the products of rows [i, i + ROWS) with x: dot products of length i. */
static void dot_rows(double *sums, const double *lower, const double *x, size_t i, size_t n)
{
    phema_two lanes[ROWS][2] = {{{0}}};
    size_t j = 0;
    for (; j + 4 <= i; j += 4) {
        phema_two left = load_two(x + j), right = load_two(x + j + 2);
        for (size_t r = 0; r < ROWS; r++) {
            const double *row = lower + (i + r) * n + j;
            lanes[r][0] += load_two(row) * left;
            lanes[r][1] += load_two(row + 2) * right;
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        phema_two sum = lanes[r][0] + lanes[r][1];
        sums[r] = sum[0] + sum[1];
        for (size_t k = j; k < i; k++)
            sums[r] += lower[(i + r) * n + k] * x[k];
    }
}

void phema_lower_solve(const double *lower, double *x, size_t n)
{
    for (size_t i = 0; i < n; i += ROWS) {
        size_t n_rows = n - i < ROWS ? n - i : ROWS;
        double sums[ROWS] = {0};
        if (n_rows == ROWS)
            dot_rows(sums, lower, x, i, n);
        for (size_t r = 0; r < n_rows; r++) {
            const double *row = lower + (i + r) * n;
            size_t from = n_rows == ROWS ? i : 0;
            x[i + r] = (x[i + r] - sums[r] - dot(row + from, x + from, i + r - from)) / row[i + r];
        }
    }
}

void phema_lower_solve_transposed(const double *lower, double *x, size_t n)
{
    size_t end = n;
    for (; end % ROWS; end--) {
        const double *row = lower + (end - 1) * n;
        x[end - 1] /= row[end - 1];
        subtract(x, x[end - 1], row, end - 1);
    }
    for (size_t i = end; i > 0; i -= ROWS) {
        size_t first = i - ROWS;
        const double *rows = lower + first * n;
        for (size_t r = ROWS; r-- > 0;) {
            double *at = x + first + r;
            *at /= rows[r * n + first + r];
            subtract(x + first, *at, rows + r * n + first, r);
        }
        const double *factors = x + first;
        for (size_t j = 0; j < first; j++)
            x[j] -= (factors[0] * rows[j] + factors[1] * rows[n + j]) +
                    (factors[2] * rows[2 * n + j] + factors[3] * rows[3 * n + j]);
    }
}

static void divide(const struct lanczos *l, double *x)
{
    for (size_t i = 0; i < l->n; i++)
        x[i] /= l->scale[i];
    phema_lower_solve(l->lower, x, l->n);
    phema_lower_solve_transposed(l->lower, x, l->n);
    for (size_t i = 0; i < l->n; i++)
        x[i] /= l->scale[i];
}

/* Number of eigenvalues of the tridiagonal matrix above x (Sturm). */
static size_t count_above(const struct lanczos *l, size_t steps, double x)
{
    size_t count = 0;
    double pivot = 1;
    for (size_t i = 0; i < steps; i++) {
        double square = i ? l->beside[i - 1] * l->beside[i - 1] : 0;
        pivot = l->diagonal[i] - x - (i ? square / pivot : 0);
        if (pivot == 0)
            pivot = -1e-300;
        count += pivot > 0;
    }
    return count;
}

static double largest_ritz_value(const struct lanczos *l, size_t steps)
{
    double low = 0, high = 0;
    for (size_t i = 0; i < steps; i++)
        high = fmax(high, l->diagonal[i] + l->beside[i] + (i ? l->beside[i - 1] : 0));
    for (int halvings = 0; halvings < 60; halvings++) {
        double middle = low + (high - low) / 2;
        if (count_above(l, steps, middle))
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* One step: the next basis vector, orthogonal to all before; false when the space is exhausted. */
static bool step(struct lanczos *l, size_t k, bool is_inverse)
{
    size_t n = l->n;
    double *next = l->basis + (k + 1) * n;
    memcpy(next, l->basis + k * n, n * sizeof(*next));
    if (is_inverse)
        divide(l, next);
    else
        multiply(l, next);
    double length_before = sqrt(dot(next, next, n));
    const double *last = l->basis + k * n;
    l->diagonal[k] = dot(next, last, n);
    subtract(next, l->diagonal[k], last, n);
    if (k > 0)
        subtract(next, l->beside[k - 1], last - n, n);
    /* the rest is orthogonal but for rounding; where rounding is much of it, repeat */
    double length = sqrt(dot(next, next, n)), before;
    do {
        before = length;
        for (size_t i = 0; i <= k; i++)
            subtract(next, dot(next, l->basis + i * n, n), l->basis + i * n, n);
        length = sqrt(dot(next, next, n));
    } while (length < before / 2 && length > 1e-14 * length_before);
    l->beside[k] = length;
    if (!(length > 1e-14 * length_before))
        return false;
    for (size_t i = 0; i < n; i++)
        next[i] /= length;
    return true;
}

/* Any start that is not orthogonal to the wanted vector works; this one is the same everywhere. */
static void start(double *x, size_t n)
{
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        x[i] = (double)(state >> 40) / 0x1p24 - 0.5;
    }
    double length = sqrt(dot(x, x, n));
    for (size_t i = 0; i < n; i++)
        x[i] /= length;
}

static double largest_eigenvalue(struct lanczos *l, bool is_inverse)
{
    start(l->basis, l->n);
    double value = 0;
    for (size_t k = 0; k < MAX_STEPS; k++) {
        if (!step(l, k, is_inverse) || k + 1 == l->n)
            return largest_ritz_value(l, k + 1);
        if (k % 8 != 7)
            continue;
        double before = value;
        value = largest_ritz_value(l, k + 1);
        if (value - before <= 1e-9 * value)
            return value;
    }
    return value;
}

/* Of the matrix and of its inverse. */
struct extremes {
    const double *lower, *scale;
    size_t n;
    double values[2];
};

static enum phema_status find_extreme(void *context, size_t index, struct phema_error *err)
{
    struct extremes *extremes = context;
    struct lanczos l = {.lower = extremes->lower, .scale = extremes->scale, .n = extremes->n};
    l.basis = calloc((MAX_STEPS + 1) * l.n, sizeof(*l.basis));
    if (!l.basis)
        return phema_fail_memory(err);
    extremes->values[index] = largest_eigenvalue(&l, index == 1);
    free(l.basis);
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_condition(double *out, const double *lower, const double *diagonal, size_t n,
                               struct phema_error *err)
{
    struct extremes extremes = {.lower = lower, .scale = diagonal, .n = n};
    enum phema_status status =
        phema_parallel_try(2, phema_threads_for(n), find_extreme, &extremes, err);
    *out = extremes.values[0] * extremes.values[1];
    return status;
}
