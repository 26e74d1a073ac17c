// SPDX-License-Identifier: Apache-2.0
/* leave_one_out.c - each snapshot against the one that the others predict (docs/numerics.md, N25).
 * One inverse of the motion's Gram matrix gives the prediction of every snapshot from all
 * others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cholesky.h"
#include "gram.h"
#include "phema/arena.h"
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

/* ---- Residuals ---- */

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

static const double *window_residual(const struct window *window, size_t i)
{
    if (!window->has_residual[i])
        find_residuals(window, i - i % 2);
    return window->residuals + i * window->sample->n_elems;
}

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

/* ---- Tensors that do not fit ---- */

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

static void tensor_outliers_find(struct phema_tensor_outlier *out, const struct window *window,
                                 size_t i)
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

/* ---- Windows ---- */

/* Far snapshots add nothing to a prediction, so longer series are taken in windows, half of which
 * overlap: a multiple of 4 snapshots, so that inverses stay small. */
#define WINDOW ((size_t)24)
#define WHOLE  ((size_t)32) /* up to this many, one window holds all */

/* The cosines of so many windows are found together: the sums over all intervals before them, which
 * take longer than those between their snapshots, are the same for all. */
#define STRETCH ((size_t)16)

static void window_alloc(struct window *window, struct phema_arena *memory)
{
    size_t n = window->n, row_bytes = window->sample->n_elems * sizeof(double);
    window->coefficients = phema_arena_array(memory, n * n, sizeof(double));
    window->precision = phema_arena_array(memory, n, sizeof(double));
    window->distances = phema_arena_array(memory, n, row_bytes);
    window->residuals = phema_arena_array(memory, n + 1, row_bytes);
    window->has_residual = phema_arena_array(memory, n, sizeof(bool));
}

/* K = L (C + R) L, with L the lengths and C the cosines of the Gram matrix, and R = N / L^2. The
 * Cholesky factor is of S (C + R) S with S = (1 + R)^-1/2, so that K^-1 has its inverse between
 * S / L. */
struct scaled_system {
    phema_fixed *cosines;   /* [n x n] C */
    phema_quad *shrink;     /* [n] S */
    phema_quad *scale;      /* [n] S / L */
    phema_quad *inverse;    /* [n x n] of S (C + R) S: the upper half */
    phema_quad *sums;       /* [n] K^-1 1 */
    double log_determinant; /* of K */
    phema_fixed *scratch;
};

static void system_alloc(struct scaled_system *system, size_t n, struct phema_arena *memory)
{
    system->cosines = phema_arena_array(memory, n * n, sizeof(*system->cosines));
    system->shrink = phema_arena_array(memory, n, sizeof(*system->shrink));
    system->scale = phema_arena_array(memory, n, sizeof(*system->scale));
    system->inverse = phema_arena_array(memory, n * n, sizeof(*system->inverse));
    system->sums = phema_arena_array(memory, n, sizeof(*system->sums));
    system->scratch = phema_arena_array(memory, n, sizeof(*system->scratch));
}

/* first: of the window's snapshots, among those of the band and of the rounding */
static void system_fill(struct scaled_system *system, const struct phema_gram_band *band,
                        size_t first, size_t n, const double *rounding)
{
    for (size_t i = 0; i < n; i++) {
        const phema_fixed *row = band->cosines + (first + i) * band->reach;
        for (size_t j = i; j < n; j++)
            system->cosines[i * n + j] = system->cosines[j * n + i] = row[j - i];
        phema_quad length = band->lengths[first + i];
        double rounded =
            rounding ? fmax(rounding[first + i], PHEMA_FLOAT32_FLOOR) : PHEMA_FLOAT32_FLOOR;
        phema_quad noise = (phema_quad)rounded / length;
        system->shrink[i] = 1 / phema_quad_sqrt(1 + noise * noise);
        system->scale[i] = system->shrink[i] / length;
    }
}

/* PHEMA_NO, without a message: snapshots depend on each other. */
static enum phema_status system_invert(struct scaled_system *system, size_t n,
                                       struct phema_error *err)
{
    struct phema_cholesky cholesky = {0};
    size_t dependent = 0;
    enum phema_status status = phema_cholesky_factor(&cholesky, system->cosines, system->shrink, n,
                                                     false, &dependent, err);
    if (status)
        return status;
    for (size_t i = 0; i < n; i++)
        phema_cholesky_invert(&cholesky, &system->inverse[i * n], i, system->scratch);
    system->log_determinant = 0;
    for (size_t i = 0; i < n; i++)
        system->log_determinant -= 2 * log((double)(cholesky.inverses[i] * system->scale[i]));
    phema_cholesky_clear(&cholesky);
    return PHEMA_OK;
}

static void window_project(struct window *window, struct scaled_system *system)
{
    size_t n = window->n;
    phema_quad total = 0;
    for (size_t i = 0; i < n; i++) {
        phema_quad *row = &system->inverse[i * n];
        system->sums[i] = 0;
        for (size_t j = 0; j < n; j++) {
            row[j] =
                j < i ? system->inverse[j * n + i] : row[j] * system->scale[i] * system->scale[j];
            system->sums[i] += row[j];
        }
        total += system->sums[i];
    }
    window->log_volume = system->log_determinant + log((double)total);
    for (size_t i = 0; i < n; i++) {
        const phema_quad *row = &system->inverse[i * n];
        phema_quad share = system->sums[i] / total;
        phema_quad precision = row[i] - share * system->sums[i], inverse = 1 / precision;
        window->precision[i] = (double)precision;
        for (size_t j = 0; j < n; j++)
            window->coefficients[i * n + j] =
                (double)((row[j] - share * system->sums[j]) * inverse);
    }
}

static void window_measure(struct window *window)
{
    size_t n_elems = window->sample->n_elems;
    const double *newest = window_row(window, window->n - 1);
    double *distance = window->distances;
    for (size_t i = 0; i < window->n; i++) {
        const double *row = window_row(window, i);
        for (size_t e = 0; e < n_elems; e++)
            *distance++ = row[e] - newest[e];
    }
    memset(window->has_residual, false, window->n * sizeof(*window->has_residual));
}

/* ---- Residuals ---- */

struct window_result {
    double likelihood;
    struct phema_tensor_outlier outlier;
};

struct comparison {
    const struct phema_problem *problem;
    size_t n_windows;
    const struct phema_sample_rows *sample;
    struct phema_leave_one_out *out;
    struct window_result *results; /* [n_windows] */
};

static double z_score(const struct window *window, double squares)
{
    return sqrt(squares / ((double)window->sample->n_elems * window->sample->mean_square));
}

/* The largest z of the others once snapshot i is gone. */
static double largest_without(const struct window *window, size_t i)
{
    double largest = 0;
    for (size_t j = 0; j < window->n; j++)
        if (j != i)
            largest =
                fmax(largest, window_squares_without(window, i, j, 0, window->sample->n_elems));
    return z_score(window, largest);
}

/* The first snapshot of a window. */
static size_t window_begin(const struct comparison *comparison, size_t index)
{
    size_t n = comparison->problem->n, first = index * (WINDOW / 2);
    return n <= WHOLE ? 0 : first + WINDOW < n ? first : n - WINDOW;
}

/* A snapshot belongs to the first window in whose first three quarters it lies. */
static bool is_own(const struct comparison *comparison, size_t index, const struct window *window,
                   size_t i)
{
    bool is_last = index + 1 == comparison->n_windows;
    bool is_begun = index == 0 || i >= WINDOW / 4;
    bool is_late = !is_last && i >= WINDOW * 3 / 4;
    if (is_last && index > 0)
        is_begun = window->first + i >= window_begin(comparison, index - 1) + WINDOW * 3 / 4;
    return is_begun && !is_late;
}

/* trace: of P X X' */
static double likelihood_of(const struct window *window, double trace)
{
    double squares = (double)window->sample->n_elems * window->sample->mean_square;
    return -(window->log_volume + trace / squares) / 2;
}

static double find_likelihood(const struct window *window)
{
    double trace = 0;
    for (size_t i = 0; i < window->n; i++) {
        const double *residual = window_residual(window, i), *distance = window_distance(window, i);
        double sum = 0;
        for (size_t e = 0; e < window->sample->n_elems; e++)
            sum += residual[e] * distance[e];
        trace += window->precision[i] * sum;
    }
    return likelihood_of(window, trace);
}

/* The same without residuals, in the products of the distances: half of the work, and fewer digits,
 * which are enough for a comparison. */
static double estimate_likelihood(const struct window *window)
{
    size_t n_elems = window->sample->n_elems, n = window->n;
    double trace = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double product =
                phema_dot(window_distance(window, i), window_distance(window, j), n_elems);
            trace +=
                (i == j ? 1 : 2) * window->precision[i] * window->coefficients[i * n + j] * product;
        }
    }
    return likelihood_of(window, trace);
}

static void compare_snapshots(const struct comparison *comparison, struct window_result *result,
                              const struct window *window, size_t index)
{
    struct phema_leave_one_out *out = comparison->out;
    for (size_t i = 0; i < window->n; i++) {
        if (!is_own(comparison, index, window, i))
            continue;
        size_t k = window->first + i, n_elems = window->sample->n_elems;
        double squares = square_sum(window_residual(window, i), 0, n_elems);
        out->z[k] = z_score(window, window->precision[i] * squares);
        if (out->largest_without && out->z[k] > out->limit)
            out->largest_without[k] = largest_without(window, i);
        if (window->sample->tensors)
            tensor_outliers_find(&result->outlier, window, i);
    }
    result->likelihood = out->only_z ? PHEMA_UNKNOWN : find_likelihood(window);
}

/* Windows whose cosines are found together. */
struct stretch {
    const struct comparison *comparison;
    size_t begin, end;         /* windows */
    struct phema_problem part; /* of their snapshots */
    const struct phema_gram_band *band;
    struct scaled_system system; /* of the window that is looked at */
    struct window window;
};

static enum phema_status compare_window(struct stretch *stretch, size_t index,
                                        struct phema_error *err)
{
    const struct comparison *comparison = stretch->comparison;
    struct window *window = &stretch->window;
    struct window_result *result = &comparison->results[index];
    window->first = window_begin(comparison, index);
    system_fill(&stretch->system, stretch->band,
                window->first - window_begin(comparison, stretch->begin), window->n,
                stretch->part.rounding);
    enum phema_status status = system_invert(&stretch->system, window->n, err);
    if (status) {
        result->likelihood = PHEMA_UNKNOWN;
        return status == PHEMA_NO ? PHEMA_OK : status;
    }
    window_project(window, &stretch->system);
    window_measure(window);
    if (comparison->out->z)
        compare_snapshots(comparison, result, window, index);
    else
        result->likelihood = estimate_likelihood(window);
    return PHEMA_OK;
}

static enum phema_status compare_windows(struct stretch *stretch, struct phema_error *err)
{
    struct phema_arena memory = {0};
    system_alloc(&stretch->system, stretch->window.n, &memory);
    window_alloc(&stretch->window, &memory);
    enum phema_status status = memory.is_failed ? phema_fail_memory(err) : PHEMA_OK;
    for (size_t w = stretch->begin; !status && w < stretch->end; w++)
        status = compare_window(stretch, w, err);
    phema_arena_clear(&memory);
    return status;
}

static enum phema_status compare_stretch(void *context, size_t index, struct phema_error *err)
{
    const struct comparison *comparison = context;
    const struct phema_problem *problem = comparison->problem;
    size_t begin = index * STRETCH, n_left = comparison->n_windows - begin;
    struct phema_gram_band band;
    struct stretch stretch = {
        .comparison = comparison,
        .begin = begin,
        .end = begin + (n_left < STRETCH ? n_left : STRETCH),
        .part = *problem,
        .band = &band,
        .window = {.n = problem->n <= WHOLE ? problem->n : WINDOW, .sample = comparison->sample}};
    size_t first = window_begin(comparison, begin);
    stretch.part.snapshots += first;
    stretch.part.rounding = problem->rounding ? problem->rounding + first : NULL;
    stretch.part.n = window_begin(comparison, stretch.end - 1) + stretch.window.n - first;
    enum phema_status status = phema_gram_band_build(&band, &stretch.part, stretch.window.n, err);
    if (!status)
        status = compare_windows(&stretch, err);
    phema_gram_band_clear(&band);
    return status;
}

PHEMA_FALLIBLE phema_leave_one_out(struct phema_leave_one_out *out,
                                   const struct phema_problem *problem,
                                   const struct phema_sample_rows *sample, struct phema_error *err)
{
    size_t n = problem->n;
    out->likelihood = PHEMA_UNKNOWN;
    out->outlier = (struct phema_tensor_outlier){0};
    for (size_t k = 0; out->z && k < n; k++) {
        out->z[k] = PHEMA_UNKNOWN;
        if (out->largest_without)
            out->largest_without[k] = PHEMA_UNKNOWN;
    }
    if (n < 3)
        return PHEMA_OK;
    size_t n_windows = n <= WHOLE ? 1 : (n - WINDOW + WINDOW / 2 - 1) / (WINDOW / 2) + 1;
    struct comparison comparison = {problem, n_windows, sample, out, NULL};
    comparison.results = calloc(comparison.n_windows, sizeof(*comparison.results));
    if (!comparison.results)
        return phema_fail_memory(err);
    enum phema_status status =
        phema_parallel_try((comparison.n_windows + STRETCH - 1) / STRETCH, phema_threads_for(n),
                           compare_stretch, &comparison, err);
    out->likelihood = status ? PHEMA_UNKNOWN : 0;
    for (size_t w = 0; !status && w < comparison.n_windows; w++) {
        const struct window_result *result = &comparison.results[w];
        out->likelihood += result->likelihood;
        if (result->outlier.ratio > out->outlier.ratio)
            out->outlier = result->outlier;
    }
    free(comparison.results);
    return status;
}
