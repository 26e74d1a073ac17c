// SPDX-License-Identifier: Apache-2.0
/* free_motion.c - whether any motion explains a series with its labels (docs/numerics.md, section
 * 10): a mixture of walks, paths of steady velocity or acceleration, and jitter, each within one half of an
 * interval between snapshots. It says nothing about errors: it is free to explain too much. */
#include <math.h>
#include <string.h>

#include "cholesky.h"
#include "phema/arena.h"
#include "phema/solver.h"

#define N_CELLS  ((size_t)16) /* of a half of an interval, nearer to each other towards its end */
#define N_HALVES ((size_t)2)
#define N_FIRST  ((size_t)4) /* parts of the interval before the first time */

enum kind { WALK, JITTER, VELOCITY, ACCELERATION, N_KINDS };

#define MOST_ROUNDS 400
#define LEAST       1e-25 /* of a share */
/* Of the mean square of a difference: as little as float64 can invert, which smooth paths need. */
#define LEAST_RIDGE 1e-11
#define MOST_RIDGE  1e-8
#define LEAST_SEEN  1e-3 /* of the rounding, in the reference of a deviance */

/* Differences of snapshots to the newest: m = n - 1 of them. */
struct explanation {
    size_t m, n_cells, n_kernels;
    double *edges;   /* [n_cells + 1] times */
    double *after;   /* [n_cells x m] mean Q of a cell */
    double *dropped; /* [n_cells x m] of Q within a cell */
    double *paths;   /* [2 x m] integrals of Q, and of these, from a time on */
    double *kernels; /* [n_kernels x triangle] products, traces 1; twice off the diagonal */
    double *shares;  /* [n_kernels] */
    double *seen;    /* [m x m] products of the sample */
    double *noise;   /* [m x m] */
    double *modelled, *inverse, *precision, *half, *gradient; /* [m x m] */
    double *sums;                                             /* [triangle] */
};

/* ---- Kernels ---- */

static size_t count_times(const struct phema_problem *problem)
{
    size_t n = 0;
    for (size_t i = 0; i < problem->n; i++)
        n += i == 0 || problem->snapshots[i].t > problem->snapshots[i - 1].t;
    return n;
}

static void set_edges(struct explanation *all, const struct phema_problem *problem)
{
    double begin = 0;
    size_t at = 0;
    all->edges[0] = 0;
    for (size_t i = 0; i < problem->n; i++) {
        double end = problem->snapshots[i].t;
        size_t n_parts = at == 0 ? N_FIRST : N_HALVES;
        if (!(end > begin))
            continue;
        for (size_t p = 0; p < n_parts; p++) {
            double from = begin + (end - begin) * (double)p / (double)n_parts;
            double length = (end - begin) / (double)n_parts;
            for (size_t c = 1; c <= N_CELLS; c++) {
                double left = 1 - (double)c / (double)N_CELLS;
                all->edges[++at] = from + length * (1 - left * left * left);
            }
        }
        begin = end;
    }
}

/* Of all snapshots, then of their differences. */
static bool find_paths(struct explanation *all, const struct phema_problem *problem,
                       struct phema_arena *memory)
{
    size_t m = all->m, n = all->n_cells;
    double *last = phema_arena_array(memory, n + 1, sizeof(double));
    double *before = phema_arena_array(memory, n + 1, sizeof(double));
    if (memory->is_failed)
        return false;
    phema_profile_cumulative(last, &problem->snapshots[m], all->edges, n + 1);
    for (size_t i = 0; i < m; i++) {
        phema_profile_cumulative(before, &problem->snapshots[i], all->edges, n + 1);
        for (size_t c = 0; c < n; c++) {
            double from = last[c] - before[c], to = last[c + 1] - before[c + 1];
            all->after[c * m + i] = (from + to) / 2;
            all->dropped[c * m + i] = from - to;
        }
    }
    return true;
}

static void add_product(double *kernel, const double *path, size_t m, double factor)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = i; j < m; j++)
            *kernel++ += (i == j ? 1 : 2) * factor * path[i] * path[j];
}

/* Scales a kernel to a trace of 1. */
static void finish_kernel(double *kernel, size_t m)
{
    double trace = 0;
    for (size_t i = 0, at = 0; i < m; at += m - i, i++)
        trace += kernel[at];
    for (size_t k = 0; k < PHEMA_TRIANGLE(m); k++)
        kernel[k] /= trace > 0 ? trace : 1;
}

/* From the last cell to the first: paths of a velocity, and of an acceleration, from a time on. The
 * last kernel is of one velocity from the beginning on. */
static void find_kernels(struct explanation *all)
{
    size_t m = all->m, size = PHEMA_TRIANGLE(m);
    double *velocity = all->paths, *acceleration = all->paths + m;
    for (size_t c = all->n_cells; c-- > 0;) {
        double *kernels = all->kernels + c / N_CELLS * N_KINDS * size;
        double length = all->edges[c + 1] - all->edges[c];
        for (size_t i = 0; i < m; i++) {
            acceleration[i] += length * velocity[i] / 2;
            velocity[i] += length * all->after[c * m + i];
            acceleration[i] += length * velocity[i] / 2;
        }
        add_product(kernels + WALK * size, all->after + c * m, m, length);
        add_product(kernels + JITTER * size, all->dropped + c * m, m, 1 / length);
        add_product(kernels + VELOCITY * size, velocity, m, length);
        add_product(kernels + ACCELERATION * size, acceleration, m, length);
    }
    add_product(all->kernels + (all->n_kernels - 1) * size, velocity, m, 1);
    for (size_t k = 0; k < all->n_kernels; k++)
        finish_kernel(all->kernels + k * size, m);
}

/* ---- The sample ---- */

static void find_seen(struct explanation *all, const struct phema_problem *problem,
                      const struct phema_sample_rows *rows, double *differences, double *mean)
{
    size_t m = all->m, n_elems = rows->n_elems;
    const double *newest = rows->values + (rows->order ? rows->order[m] : m) * n_elems;
    double own = problem->rounding ? problem->rounding[m] : 0;
    for (size_t i = 0; i < m; i++) {
        const double *row = rows->values + (rows->order ? rows->order[i] : i) * n_elems;
        for (size_t e = 0; e < n_elems; e++)
            differences[i * n_elems + e] = row[e] - newest[e];
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j <= i; j++)
            all->seen[i * m + j] = all->seen[j * m + i] =
                phema_dot(differences + i * n_elems, differences + j * n_elems, n_elems) /
                ((double)n_elems * rows->mean_square);
        *mean += all->seen[i * m + i] / (double)m;
    }
    own = fmax(own, PHEMA_FLOAT32_FLOOR);
    for (size_t i = 0; i < m; i++) {
        double rounding = fmax(problem->rounding ? problem->rounding[i] : 0, PHEMA_FLOAT32_FLOOR);
        for (size_t j = 0; j < m; j++)
            all->noise[i * m + j] = own * own + (i == j ? rounding * rounding : 0);
    }
}

/* ---- The likeliest mixture ---- */

/* Sets modelled, and its inverse. Returns the log of the determinant; NaN: it has none. */
static double model(struct explanation *all)
{
    size_t m = all->m, size = PHEMA_TRIANGLE(m);
    double log_determinant = 0;
    memset(all->sums, 0, size * sizeof(*all->sums));
    for (size_t k = 0; k < all->n_kernels; k++) {
        const double *kernel = all->kernels + k * size;
        for (size_t i = 0; i < size; i++)
            all->sums[i] += all->shares[k] * kernel[i];
    }
    for (size_t i = 0, at = 0; i < m; i++)
        for (size_t j = i; j < m; j++, at++)
            all->modelled[j * m + i] = all->sums[at] / (i == j ? 1 : 2) + all->noise[j * m + i];
    if (!phema_float64_factor(all->modelled, m))
        return PHEMA_UNKNOWN;
    for (size_t i = 0; i < m; i++)
        log_determinant += 2 * log(all->modelled[i * m + i]);
    memset(all->inverse, 0, m * m * sizeof(*all->inverse));
    phema_float64_invert(all->inverse, all->modelled, m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j <= i; j++)
            all->precision[i * m + j] = all->precision[j * m + i] =
                phema_dot(all->inverse + i * m + i, all->inverse + j * m + i, m - i);
    return log_determinant;
}

/* gradient := precision seen precision */
static void find_gradient(struct explanation *all)
{
    size_t m = all->m;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++)
            all->half[i * m + j] = phema_dot(all->precision + i * m, all->seen + j * m, m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j <= i; j++)
            all->gradient[i * m + j] = all->gradient[j * m + i] =
                phema_dot(all->half + i * m, all->precision + j * m, m);
}

/* Each round raises the likelihood, and keeps all shares above 0. */
static void raise(struct explanation *all)
{
    size_t m = all->m, size = PHEMA_TRIANGLE(m);
    for (size_t k = 0; k < all->n_kernels; k++) {
        const double *kernel = all->kernels + k * size;
        double pull = 0, load = 0;
        for (size_t i = 0, at = 0; i < m; at += m - i, i++) {
            pull += phema_dot(kernel + at, all->gradient + i * m + i, m - i);
            load += phema_dot(kernel + at, all->precision + i * m + i, m - i);
        }
        all->shares[k] *= sqrt(fmax(pull, 0) / fmax(load, 1e-300));
        all->shares[k] = fmax(all->shares[k], LEAST);
    }
}

/* log det of what was seen, whose rounding is not all there. */
static double find_reference(struct explanation *all)
{
    size_t m = all->m;
    double log_determinant = 0;
    for (size_t i = 0; i < m * m; i++)
        all->half[i] = all->seen[i] + LEAST_SEEN * all->noise[i];
    if (!phema_float64_factor(all->half, m))
        return PHEMA_UNKNOWN;
    for (size_t i = 0; i < m; i++)
        log_determinant += 2 * log(all->half[i * m + i]);
    return log_determinant;
}

/* mean: square of a difference. false: the modelled products cannot be inverted */
static bool fit(struct phema_free_motion *out, struct explanation *all, double mean)
{
    size_t m = all->m;
    for (size_t k = 0; k < all->n_kernels; k++)
        all->shares[k] = mean * (double)m / (double)all->n_kernels;
    double log_determinant = model(all), trace = 0;
    for (int round = 0; round < MOST_ROUNDS && !isnan(log_determinant); round++) {
        find_gradient(all);
        raise(all);
        log_determinant = model(all);
    }
    if (isnan(log_determinant))
        return false;
    find_gradient(all);
    out->largest = 0;
    for (size_t i = 0; i < m; i++) {
        out->largest = fmax(out->largest, all->gradient[i * m + i] / all->precision[i * m + i]);
        trace += phema_dot(all->precision + i * m, all->seen + i * m, m);
    }
    out->deviance = log_determinant + trace - (double)m - find_reference(all);
    return true;
}

static bool alloc_all(struct explanation *all, const struct phema_problem *problem,
                      struct phema_arena *memory)
{
    size_t m = problem->n - 1, size = PHEMA_TRIANGLE(m);
    size_t n_parts = (count_times(problem) - 1) * N_HALVES + N_FIRST;
    all->m = m;
    all->n_cells = n_parts * N_CELLS;
    all->n_kernels = n_parts * N_KINDS + 1;
    all->edges = phema_arena_array(memory, all->n_cells + 1, sizeof(double));
    all->after = phema_arena_array(memory, all->n_cells * m, sizeof(double));
    all->dropped = phema_arena_array(memory, all->n_cells * m, sizeof(double));
    all->paths = phema_arena_array(memory, 2 * m, sizeof(double));
    all->kernels = phema_arena_array(memory, all->n_kernels * size, sizeof(double));
    all->shares = phema_arena_array(memory, all->n_kernels, sizeof(double));
    all->sums = phema_arena_array(memory, size, sizeof(double));
    double **matrices[] = {&all->seen,      &all->noise, &all->modelled, &all->inverse,
                           &all->precision, &all->half,  &all->gradient};
    for (size_t i = 0; i < ARRAY_LEN(matrices); i++)
        *matrices[i] = phema_arena_array(memory, m * m, sizeof(double));
    return !memory->is_failed;
}

PHEMA_FALLIBLE phema_free_motion_fit(struct phema_free_motion *out,
                                     const struct phema_problem *problem,
                                     const struct phema_sample_rows *rows, struct phema_error *err)
{
    struct phema_arena memory = {0};
    struct explanation all = {0};
    *out = (struct phema_free_motion){PHEMA_UNKNOWN, PHEMA_UNKNOWN};
    if (problem->n < 3)
        return PHEMA_OK;
    double *differences =
        phema_arena_array(&memory, (problem->n - 1) * rows->n_elems, sizeof(double));
    bool is_complete = differences && alloc_all(&all, problem, &memory);
    if (is_complete) {
        set_edges(&all, problem);
        is_complete = find_paths(&all, problem, &memory);
    }
    if (is_complete) {
        find_kernels(&all);
        double mean = 0, ridge = LEAST_RIDGE, added = 0;
        find_seen(&all, problem, rows, differences, &mean);
        do {
            for (size_t i = 0; i < all.m; i++)
                all.noise[i * all.m + i] += (ridge - added) * mean;
            added = ridge;
            ridge *= 10;
        } while (!fit(out, &all, mean) && ridge < MOST_RIDGE);
    }
    phema_arena_clear(&memory);
    return is_complete ? PHEMA_OK : phema_fail_memory(err);
}
