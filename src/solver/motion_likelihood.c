// SPDX-License-Identifier: Apache-2.0
/* motion_likelihood.c - the likelihood of windows of snapshots. The walk in an interval moves only
 * the differences of neighbours that end after its beginning. These are the last ones: a smaller
 * matrix. */
#include "motion_work.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "phema/parallel.h"

#include "cholesky.h"

#define WINDOW PHEMA_MOTION_REACH
#define STRIDE ((size_t)8)  /* from one window to the next */
#define N_MOST (WINDOW - 1) /* differences in a window */

#define INDEPENDENT      0.125
#define MOST_INDEPENDENT 50.0

/* Symmetric matrices are kept as the upper half of their rows, so that one of the last rows and
 * columns is the end of a larger one. */
#define MOST_PRODUCTS PHEMA_TRIANGLE(N_MOST)

struct phema_motion_window {
    size_t first, n;             /* snapshots */
    size_t n_pieces;             /* of each interval */
    size_t first_piece, n_front; /* pieces in front of the intervals */
    size_t first_interval, n_intervals;
    size_t n_moved[WINDOW];      /* differences, the last ones, that each interval moves */
    double *products;            /* of differences, of a unit rate in each piece */
    double noise[MOST_PRODUCTS]; /* in the products of the differences */
    double seen[MOST_PRODUCTS];  /* products of the differences, an element */
    double *levels;              /* [n_intervals x MOST_PRODUCTS] the modelled ones by interval */
    double inverse[N_MOST * N_MOST]; /* L^-T of L L^T, all that is modelled */
    double white[MOST_PRODUCTS];     /* L^-1 (those seen) L^-T */
};

/* Where the pieces of an interval begin among the products. */
static double *products_of(const struct phema_motion_window *window, size_t interval)
{
    double *products = window->products + window->n_front * PHEMA_TRIANGLE(window->n - 1);
    for (size_t k = 0; k < interval; k++)
        products += window->n_pieces * PHEMA_TRIANGLE(window->n_moved[k]);
    return products;
}

/* ---- What the sample shows ---- */

double phema_motion_independent(size_t n_elems)
{
    return fmin(INDEPENDENT * (double)n_elems, MOST_INDEPENDENT);
}

static const double *row_of(const struct phema_sample_rows *sample, size_t i)
{
    return sample->values + (sample->order ? sample->order[i] : i) * sample->n_elems;
}

static double noise_of(const struct phema_motion_data *data, size_t i)
{
    double rounded = fmax(data->rounding ? data->rounding[i] : 0, PHEMA_FLOAT32_FLOOR);
    return rounded * rounded;
}

void phema_motion_find_seen(double *seen, double *noise, double *differences,
                            const struct phema_motion_data *data, const size_t *origins, size_t n)
{
    const struct phema_sample_rows *sample = data->sample;
    size_t m = n - 1;
    for (size_t i = 0; i < m; i++) {
        const double *row = row_of(sample, origins[i]), *next = row_of(sample, origins[i + 1]);
        for (size_t e = 0; e < sample->n_elems; e++)
            differences[i * sample->n_elems + e] = row[e] - next[e];
    }
    for (size_t i = 0, at = 0; i < m; i++) {
        const double *a = differences + i * sample->n_elems;
        double own = noise_of(data, origins[i]), next = noise_of(data, origins[i + 1]);
        for (size_t j = i; j < m; j++, at++) {
            double sum = phema_dot(a, differences + j * sample->n_elems, sample->n_elems);
            seen[at] = sum / ((double)sample->n_elems * sample->mean_square);
            noise[at] = i == j ? own + next : i + 1 == j ? -next : 0;
        }
    }
}

/* Intervals, and the differences that each moves: from the one that ends with the first snapshot,
 * or from the first of all. */
static void find_moved(struct phema_motion_window *window, const struct phema_motion_work *work)
{
    const struct phema_profile *kept = work->kept + window->first;
    double end = kept[window->n - 1].t;
    size_t k = 0;
    while (window->first && work->terms.ends[k] < kept->t)
        k++;
    window->first_interval = k;
    for (; k < work->terms.n_intervals && work->terms.ends[k] <= end; k++) {
        double begin = k ? work->terms.ends[k - 1] : 0;
        size_t over = 0;
        while (over + 1 < window->n && kept[over + 1].t <= begin)
            over++;
        window->n_moved[window->n_intervals++] = window->n - 1 - over;
    }
}

/* Adds to the product of differences i and j, i <= j, if it is one of the last n. */
static void add_product(double *products, size_t n, size_t m, size_t i, size_t j, double x)
{
    if (m - i <= n && j < m)
        products[PHEMA_TRIANGLE(n) - PHEMA_TRIANGLE(m - i) + j - i] += x;
}

/* Adds what a squared distance of snapshots i < j adds to the products of the differences:
 * (x_i - x_i+1)(x_j - x_j+1) has half of |x_i - x_j+1|^2 + |x_i+1 - x_j|^2 - |x_i - x_j|^2
 * - |x_i+1 - x_j+1|^2. */
static void add_distance(double *products, size_t n, size_t m, size_t i, size_t j, double square)
{
    add_product(products, n, m, i, j - 1, i + 1 == j ? square : square / 2);
    add_product(products, n, m, i, j, -square / 2);
    if (!i)
        return;
    add_product(products, n, m, i - 1, j - 1, -square / 2);
    add_product(products, n, m, i - 1, j, square / 2);
}

/* Adds what a pair adds, in each piece. */
static void add_pair(const struct phema_motion_window *window,
                     const struct phema_motion_terms *terms, size_t pair, size_t i, size_t j)
{
    size_t m = window->n - 1, n_pieces = window->n_pieces;
    for (size_t s = terms->starts[pair]; s < terms->starts[pair + 1]; s++) {
        const struct phema_motion_term *term = &terms->items[s];
        size_t piece = term->interval - window->first_piece, n = m;
        double *products = window->products + piece * PHEMA_TRIANGLE(m);
        if (piece >= window->n_front) {
            size_t k = (piece - window->n_front) / n_pieces;
            n = window->n_moved[k];
            products =
                products_of(window, k) + (piece - window->n_front) % n_pieces * PHEMA_TRIANGLE(n);
        }
        add_distance(products, n, m, i, j, term->walk);
    }
}

#define TOGETHER ((size_t)8) /* windows that a thread finds at a time */

struct finding {
    struct phema_motion_windows *windows;
    const struct phema_motion_work *work;
    const struct phema_motion_data *data;
    struct phema_arena *memory;
    pthread_mutex_t lock; /* of the memory */
};

static bool alloc_products(struct phema_motion_window *window, struct finding *finding)
{
    size_t size = window->n_front * PHEMA_TRIANGLE(window->n - 1);
    for (size_t k = 0; k < window->n_intervals; k++)
        size += window->n_pieces * PHEMA_TRIANGLE(window->n_moved[k]);
    (void)pthread_mutex_lock(&finding->lock);
    window->products = phema_arena_array(finding->memory, size, sizeof(double));
    window->levels =
        phema_arena_array(finding->memory, window->n_intervals * MOST_PRODUCTS, sizeof(double));
    (void)pthread_mutex_unlock(&finding->lock);
    return window->products && window->levels;
}

/* The products of one window. terms: of another one, whose memory is used again. */
static enum phema_status find_products(struct phema_motion_window *window, struct finding *finding,
                                       struct phema_motion_terms *terms, struct phema_error *err)
{
    struct phema_distance pairs[WINDOW * N_MOST / 2];
    size_t n_pairs = 0;
    for (size_t i = 0; i < window->n; i++)
        for (size_t j = i + 1; j < window->n; j++)
            pairs[n_pairs++] =
                (struct phema_distance){.i = window->first + i, .j = window->first + j};
    enum phema_status status =
        phema_motion_terms_find(terms, finding->work->table, pairs, n_pairs, err);
    if (status)
        return status;
    size_t begin = window->first_interval * window->n_pieces;
    window->first_piece = begin; /* or the first that any pair has */
    for (size_t s = 0; s < terms->starts[terms->n_pairs]; s++)
        if (terms->items[s].interval < window->first_piece)
            window->first_piece = terms->items[s].interval;
    window->n_front = begin - window->first_piece;
    if (!alloc_products(window, finding))
        return phema_fail_memory(err);
    for (size_t i = 0, pair = 0; i < window->n; i++)
        for (size_t j = i + 1; j < window->n; j++, pair++)
            add_pair(window, terms, pair, i, j);
    return PHEMA_OK;
}

static enum phema_status find_window(struct finding *finding, size_t w, double *differences,
                                     struct phema_motion_terms *terms, struct phema_error *err)
{
    const struct phema_motion_work *work = finding->work;
    struct phema_motion_window *window = &finding->windows->items[w];
    size_t n = work->n_kept;
    window->n_pieces = work->n_pieces;
    window->n = n < WINDOW ? n : WINDOW;
    window->first = w * STRIDE + window->n < n ? w * STRIDE : n - window->n;
    phema_motion_find_seen(window->seen, window->noise, differences, finding->data,
                           work->origins + window->first, window->n);
    find_moved(window, work);
    return find_products(window, finding, terms, err);
}

/* Finds windows [block TOGETHER, (block + 1) TOGETHER) with the same scratch memory. For each alone, page
 * faults would take as long as the work. */
static enum phema_status find_some(void *context, size_t block, struct phema_error *err)
{
    struct finding *finding = context;
    size_t end = (block + 1) * TOGETHER;
    double *differences = malloc(N_MOST * finding->data->sample->n_elems * sizeof(*differences));
    struct phema_motion_terms terms = {0};
    enum phema_status status = differences ? PHEMA_OK : phema_fail_memory(err);
    for (size_t w = block * TOGETHER; !status && w < finding->windows->n && w < end; w++)
        status = find_window(finding, w, differences, &terms, err);
    phema_motion_terms_clear(&terms);
    free(differences);
    return status;
}

PHEMA_FALLIBLE phema_motion_windows_find(struct phema_motion_windows *windows,
                                         const struct phema_motion_work *work,
                                         const struct phema_motion_data *data,
                                         struct phema_arena *memory, struct phema_error *err)
{
    size_t n = work->n_kept;
    windows->n = n <= WINDOW ? 1 : (n - WINDOW + STRIDE - 1) / STRIDE + 1;
    windows->items = phema_arena_array(memory, windows->n, sizeof(*windows->items));
    windows->derivatives = phema_arena_array(memory, 2 * WINDOW * MOST_PRODUCTS, sizeof(double));
    if (memory->is_failed)
        return phema_fail_memory(err);
    struct finding finding = {windows, work, data, memory, PTHREAD_MUTEX_INITIALIZER};
    return phema_parallel_try((windows->n + TOGETHER - 1) / TOGETHER, phema_parallel_threads(),
                              find_some, &finding, err);
}

/* ---- Packed symmetric matrices ---- */

static void add_multiple(double *restrict sum, double factor, const double *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += factor * x[i];
}

/* out := L^-1 a L^-T of the last rows and columns of L. Off the diagonal it is out times the root
 * of 2, so that the dot product of two is the trace of their product. */
static void whiten(double *out, const double *a, size_t n_rows, const double *inverse, size_t n)
{
    double half[N_MOST * N_MOST] = {0}; /* a L^-T */
    const double *last = inverse + (n - n_rows) * (n + 1);
    for (size_t i = 0; i < n_rows; i++) {
        for (size_t j = i; j < n_rows; j++, a++) {
            add_multiple(half + i * n_rows + j, *a, last + j * n + j, n_rows - j);
            if (i != j)
                add_multiple(half + j * n_rows + i, *a, last + i * n + i, n_rows - i);
        }
    }
    for (size_t i = 0; i < n_rows; out += n_rows - i, i++) {
        memset(out, 0, (n_rows - i) * sizeof(*out));
        for (size_t k = 0; k <= i; k++)
            add_multiple(out, last[k * n + i], half + k * n_rows + i, n_rows - i);
        for (size_t j = 1; j < n_rows - i; j++)
            out[j] *= 1.4142135623730951;
    }
}

static double trace(const double *a, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; a += n - i, i++)
        sum += *a;
    return sum;
}

/* ---- The likelihood ---- */

/* The modelled products of the differences, into the lower half, and those of each interval. */
static void model_products(double *modelled, struct phema_motion_window *window, const double *v)
{
    size_t m = window->n - 1, size = PHEMA_TRIANGLE(m);
    const double *products = window->products;
    v += window->first_piece;
    double sums[MOST_PRODUCTS];
    memcpy(sums, window->noise, size * sizeof(*sums));
    for (size_t k = 0; k < window->n_front; k++, products += size)
        add_multiple(sums, *v++, products, size);
    for (size_t k = 0; k < window->n_intervals; k++) {
        size_t moved = PHEMA_TRIANGLE(window->n_moved[k]);
        double *level = window->levels + k * MOST_PRODUCTS;
        memset(level, 0, moved * sizeof(*level));
        for (size_t piece = 0; piece < window->n_pieces; piece++, products += moved)
            add_multiple(level, *v++, products, moved);
        add_multiple(sums + size - moved, 1, level, moved);
    }
    for (size_t i = 0, at = 0; i < m; i++)
        for (size_t j = i; j < m; j++)
            modelled[j * m + i] = sums[at++];
}

double phema_motion_window_rate(struct phema_motion_windows *windows, size_t w, const double *v)
{
    struct phema_motion_window *window = &windows->items[w];
    size_t m = window->n - 1;
    double modelled[N_MOST * N_MOST], log_determinant = 0;
    model_products(modelled, window, v);
    if (!phema_float64_factor(modelled, m))
        return -HUGE_VAL;
    for (size_t i = 0; i < m; i++)
        log_determinant += 2 * phema_motion_log(modelled[i * m + i]);
    phema_float64_invert(window->inverse, modelled, m);
    whiten(window->white, window->seen, m, window->inverse, m);
    return -(log_determinant + trace(window->white, m)) / 2;
}

/* With respect to the levels and slopes of the window's intervals, L^-1 on both sides. */
static void find_derivatives(double *derivatives, const struct phema_motion_window *window,
                             const double *v, const double *places)
{
    const double *products = products_of(window, 0);
    v += window->first_interval * window->n_pieces;
    for (size_t k = 0; k < window->n_intervals; k++) {
        size_t n_moved = window->n_moved[k], moved = PHEMA_TRIANGLE(n_moved);
        double *level = derivatives + 2 * k * MOST_PRODUCTS, slope[MOST_PRODUCTS] = {0};
        for (size_t piece = 0; piece < window->n_pieces; piece++, products += moved)
            add_multiple(slope, *v++ * places[piece], products, moved);
        whiten(level, window->levels + k * MOST_PRODUCTS, n_moved, window->inverse, window->n - 1);
        whiten(level + MOST_PRODUCTS, slope, n_moved, window->inverse, window->n - 1);
    }
}

/* With S = L^-1 (those seen) L^-T and P_a = L^-1 (a derivative of the modelled ones) L^-T: score
 * tr(S P_a - P_a) / 2, Fisher's information tr(P_a P_b) / 2. */
void phema_motion_window_add_scores(const struct phema_motion_windows *windows, size_t w,
                                    const double *v, const double *places, double weight,
                                    double *score, double *fisher, size_t n_unknowns)
{
    const struct phema_motion_window *window = &windows->items[w];
    size_t size = PHEMA_TRIANGLE(window->n - 1), first = 2 * window->first_interval;
    find_derivatives(windows->derivatives, window, v, places);
    for (size_t a = 0; a < 2 * window->n_intervals; a++) {
        const double *one = windows->derivatives + a * MOST_PRODUCTS;
        size_t n_moved = window->n_moved[a / 2], moved = PHEMA_TRIANGLE(n_moved);
        score[first + a] +=
            weight * (phema_dot(window->white + size - moved, one, moved) - trace(one, n_moved)) /
            2;
        for (size_t b = 0; b <= a; b++) {
            const double *other = windows->derivatives + b * MOST_PRODUCTS;
            size_t more = PHEMA_TRIANGLE(window->n_moved[b / 2]) - moved;
            fisher[(first + a) * n_unknowns + first + b] +=
                weight * phema_dot(one, other + more, moved) / 2;
        }
    }
}
