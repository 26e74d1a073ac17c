// SPDX-License-Identifier: Apache-2.0
/* motion_likelihood.c - the likeliest level and slope of log v in each interval: Fisher scoring of
 * the restricted likelihood of the sample (docs/numerics.md, N29 to N31). Weights of a sum of 1
 * know snapshots by their differences alone, so each window of snapshots is taken as the
 * differences of neighbours. What moves in an interval moves those differences alone that end
 * after its beginning: the last ones, a smaller matrix. */
#include "motion_likelihood.h"

#include <math.h>
#include <string.h>

#include "dot.h"

#define WINDOW PHEMA_MOTION_REACH
#define STRIDE ((size_t)8)  /* from one window to the next */
#define N_MOST (WINDOW - 1) /* differences in a window */

/* Symmetric matrices are kept as the upper half of their rows, so that one of the last rows and
 * columns is the end of a larger one. */
#define TRIANGLE(n)   ((n) * ((n) + 1) / 2)
#define MOST_PRODUCTS TRIANGLE(N_MOST)

/* Elements do not move independently of each other: likelihoods count as those of one in eight, and
 * of 50 at most. */
#define INDEPENDENT      0.125
#define MOST_INDEPENDENT 50.0

#define LEVEL_SPREAD 2.0 /* of log v from interval to interval, around the prior */
#define SLOPE_SPREAD 1.5 /* around the limited slope */

#define N_STEPS   15
#define N_TRIES   6
#define MOST_STEP 2.0 /* of log v */
#define MOST_TILT 12.0
#define SETTLED   0.02 /* of the log posterior */

#define LEAST_DAMPING 1e-6

/* The mean of (1 - x)^power over one of the pieces of [0, 1]. */
static double end_shape(size_t piece, size_t n_pieces, int power)
{
    double n = (double)n_pieces;
    double from = 1 - (double)piece / n, to = 1 - (double)(piece + 1) / n;
    return (phema_motion_power(from, power + 1) - phema_motion_power(to, power + 1)) * n /
           (power + 1);
}

/* ---- What is climbed ---- */

struct window {
    size_t first, n;             /* snapshots */
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

/* Unknowns: the level of each interval, at even places, each followed by the slope. */
struct climb {
    const struct phema_motion_work *work;
    const double *prior; /* [n_intervals] of the levels */
    struct window *windows;
    size_t n_windows, n_intervals, n_pieces;
    int end_power;
    double n_independent;             /* elements that the likelihood counts for */
    double likelihood;                /* log, of what was rated last */
    double *unknowns, *before, *step; /* [2 n_intervals] */
    double *smooth, *slopes;          /* [n_intervals] levels without the known rates; limited */
    double *v;                        /* [pieces] */
    double *places;                   /* [pieces] x of the middle */
    double *score;                    /* [2 n_intervals] gradient of the log posterior */
    double *fisher, *damped;          /* [2 n_intervals x 2 n_intervals] */
    double *parts; /* [2 WINDOW x MOST_PRODUCTS] of a window: derivatives, L^-1 on both sides */
};

static void find_places(struct climb *climb)
{
    size_t n = climb->work->n_pieces;
    for (size_t k = 0; k < climb->n_pieces; k++)
        climb->places[k] = ((double)(k % n) + 0.5) / (double)n - 0.5;
}

static void set_rates(struct climb *climb)
{
    const struct phema_motion_work *work = climb->work;
    for (size_t k = 0; k < climb->n_pieces; k++) {
        size_t interval = k / work->n_pieces;
        double level = climb->unknowns[2 * interval], slope = climb->unknowns[2 * interval + 1];
        climb->v[k] = work->known[k] * phema_motion_exp(level + slope * climb->places[k]);
        if (interval + 1 == climb->n_intervals)
            climb->v[k] *= end_shape(k % work->n_pieces, work->n_pieces, climb->end_power);
    }
}

/* ---- Small matrices ---- */

/* The first entry of a row that is not 0, the last one at most. */
static size_t find_begin(const double *row, size_t last)
{
    size_t begin = 0;
    while (begin < last && row[begin] == 0)
        begin++;
    return begin;
}

/* Cholesky factor in the lower half of a [n x n]; false: not positive definite. It is 0 where rows
 * begin with 0. */
static bool factor(double *a, size_t n)
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

/* Solves in place. */
static void solve(const double *factor, double *column, size_t n)
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

static void add_multiple(double *restrict sum, double factor, const double *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += factor * x[i];
}

/* inverse: L^-T of the factor L, the upper half. */
static void invert(double *inverse, const double *factor, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        double *row = inverse + j * n;
        row[j] = 1 / factor[j * n + j];
        for (size_t i = j + 1; i < n; i++)
            row[i] = -phema_dot(factor + i * n + j, row + j, i - j) / factor[i * n + i];
    }
}

/* out := L^-1 a L^-T of the last rows and columns of L. Off the diagonal it is out times the root of
 * 2, so that the dot product of two is the trace of their product. */
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

/* ---- The likelihood of a window ---- */

/* Where the pieces of an interval begin among the products. */
static double *products_of(const struct window *window, size_t n_pieces, size_t interval)
{
    double *products = window->products + window->n_front * TRIANGLE(window->n - 1);
    for (size_t k = 0; k < interval; k++)
        products += n_pieces * TRIANGLE(window->n_moved[k]);
    return products;
}

/* The modelled products of the differences, into the lower half, and those of each interval. */
static void model_window(double *modelled, const struct climb *climb, struct window *window)
{
    size_t m = window->n - 1, size = TRIANGLE(m), n_pieces = climb->work->n_pieces;
    const double *products = window->products, *v = climb->v + window->first_piece;
    double sums[MOST_PRODUCTS];
    memcpy(sums, window->noise, size * sizeof(*sums));
    for (size_t k = 0; k < window->n_front; k++, products += size)
        add_multiple(sums, *v++, products, size);
    for (size_t k = 0; k < window->n_intervals; k++) {
        size_t moved = TRIANGLE(window->n_moved[k]);
        double *level = window->levels + k * MOST_PRODUCTS;
        memset(level, 0, moved * sizeof(*level));
        for (size_t piece = 0; piece < n_pieces; piece++, products += moved)
            add_multiple(level, *v++, products, moved);
        add_multiple(sums + size - moved, 1, level, moved);
    }
    for (size_t i = 0, at = 0; i < m; i++)
        for (size_t j = i; j < m; j++)
            modelled[j * m + i] = sums[at++];
}

/* The log likelihood of a window, an element (N29). */
static double rate_window(const struct climb *climb, struct window *window)
{
    size_t m = window->n - 1;
    double modelled[N_MOST * N_MOST], log_determinant = 0;
    model_window(modelled, climb, window);
    if (!factor(modelled, m))
        return -HUGE_VAL;
    for (size_t i = 0; i < m; i++)
        log_determinant += 2 * phema_motion_log(modelled[i * m + i]);
    invert(window->inverse, modelled, m);
    whiten(window->white, window->seen, m, window->inverse, m);
    return -(log_determinant + trace(window->white, m)) / 2;
}

/* Derivatives with respect to the levels and slopes of the window's intervals. */
static void find_parts(const struct climb *climb, const struct window *window)
{
    size_t n_pieces = climb->work->n_pieces;
    const double *products = products_of(window, n_pieces, 0);
    const double *v = climb->v + window->first_interval * n_pieces, *places = climb->places;
    for (size_t k = 0; k < window->n_intervals; k++) {
        size_t n_moved = window->n_moved[k], moved = TRIANGLE(n_moved);
        double *part = climb->parts + 2 * k * MOST_PRODUCTS, slope[MOST_PRODUCTS] = {0};
        for (size_t piece = 0; piece < n_pieces; piece++, products += moved)
            add_multiple(slope, *v++ * places[piece], products, moved);
        whiten(part, window->levels + k * MOST_PRODUCTS, n_moved, window->inverse, window->n - 1);
        whiten(part + MOST_PRODUCTS, slope, n_moved, window->inverse, window->n - 1);
    }
}

/* With S = L^-1 (those seen) L^-T and P_a = L^-1 (a derivative of the modelled ones) L^-T: score
 * tr(S P_a - P_a) / 2, Fisher's information tr(P_a P_b) / 2. */
static void add_scores(struct climb *climb, const struct window *window)
{
    size_t size = TRIANGLE(window->n - 1), total = 2 * climb->n_intervals;
    size_t first = 2 * window->first_interval;
    find_parts(climb, window);
    for (size_t a = 0; a < 2 * window->n_intervals; a++) {
        const double *part = climb->parts + a * MOST_PRODUCTS;
        size_t n_moved = window->n_moved[a / 2], moved = TRIANGLE(n_moved);
        climb->score[first + a] +=
            climb->n_independent *
            (phema_dot(window->white + size - moved, part, moved) - trace(part, n_moved)) / 2;
        for (size_t b = 0; b <= a; b++) {
            const double *other = climb->parts + b * MOST_PRODUCTS;
            size_t more = TRIANGLE(window->n_moved[b / 2]) - moved;
            climb->fisher[(first + a) * total + first + b] +=
                climb->n_independent * phema_dot(part, other + more, moved) / 2;
        }
    }
}

/* ---- The posterior ---- */

/* How far a level is from that of the interval before, and a slope from the limited one, in their
 * spreads. */
static double level_apart(const struct climb *climb, size_t k)
{
    double moved = climb->unknowns[2 * k] - climb->unknowns[2 * k - 2];
    return (moved - (climb->prior[k] - climb->prior[k - 1])) / LEVEL_SPREAD;
}

static double slope_apart(const struct climb *climb, size_t k)
{
    return (climb->unknowns[2 * k + 1] - climb->slopes[k]) / SLOPE_SPREAD;
}

/* The limited slopes for these levels; a power of the time that is left needs no slope. */
static void limit_slopes(struct climb *climb)
{
    size_t n = climb->n_intervals;
    for (size_t k = 0; k < n; k++)
        climb->smooth[k] = climb->unknowns[2 * k] - climb->work->levels[k];
    for (size_t k = 0; k < n; k++)
        climb->slopes[k] = phema_motion_limited_slope(climb->smooth, n, k);
    if (climb->end_power)
        climb->slopes[n - 1] = 0;
}

/* The lower half of Fisher's information. */
static void add_prior_scores(struct climb *climb)
{
    size_t n = climb->n_intervals, total = 2 * n;
    const double level = 1 / LEVEL_SPREAD, slope = 1 / SLOPE_SPREAD;
    for (size_t k = 0; k < n; k++) {
        size_t at = 2 * k;
        climb->score[at + 1] -= slope * slope_apart(climb, k);
        climb->fisher[(at + 1) * total + at + 1] += slope * slope;
        if (!k)
            continue;
        climb->score[at] -= level * level_apart(climb, k);
        climb->score[at - 2] += level * level_apart(climb, k);
        climb->fisher[at * total + at] += level * level;
        climb->fisher[(at - 2) * total + at - 2] += level * level;
        climb->fisher[at * total + at - 2] -= level * level;
    }
}

/* The log posterior but for a constant (N30) of what was rated last. */
static double posterior(const struct climb *climb)
{
    double sum = climb->likelihood;
    for (size_t k = 0; k < climb->n_intervals; k++) {
        double apart = k ? level_apart(climb, k) : 0;
        sum -= (slope_apart(climb, k) * slope_apart(climb, k) + apart * apart) / 2;
    }
    return isnan(sum) ? -HUGE_VAL : sum;
}

/* Returns the log posterior; -inf: snapshots depend on each other. */
static double rate(struct climb *climb)
{
    set_rates(climb);
    climb->likelihood = 0;
    for (size_t w = 0; w < climb->n_windows; w++)
        climb->likelihood += climb->n_independent * rate_window(climb, &climb->windows[w]);
    return posterior(climb);
}

/* Of what was rated last. */
static void find_scores(struct climb *climb)
{
    size_t total = 2 * climb->n_intervals;
    memset(climb->score, 0, total * sizeof(*climb->score));
    memset(climb->fisher, 0, total * total * sizeof(*climb->fisher));
    add_prior_scores(climb);
    for (size_t w = 0; w < climb->n_windows; w++)
        add_scores(climb, &climb->windows[w]);
}

/* Moves the unknowns by (fisher + damping diagonal)^-1 score, at most by MOST_STEP. */
static bool take_step(struct climb *climb, double damping)
{
    size_t total = 2 * climb->n_intervals;
    double longest = 0;
    memcpy(climb->damped, climb->fisher, total * total * sizeof(*climb->damped));
    memcpy(climb->step, climb->score, total * sizeof(*climb->step));
    for (size_t i = 0; i < total; i++)
        climb->damped[i * total + i] *= 1 + damping;
    if (!factor(climb->damped, total))
        return false;
    solve(climb->damped, climb->step, total);
    for (size_t i = 0; i < total; i++)
        longest = fmax(longest, fabs(climb->step[i]));
    double scale = longest > MOST_STEP ? MOST_STEP / longest : 1;
    for (size_t i = 0; i < total; i++) {
        double moved = climb->before[i] + scale * climb->step[i];
        bool is_level = i % 2 == 0;
        climb->unknowns[i] = is_level ? moved : fmax(-MOST_TILT, fmin(MOST_TILT, moved));
    }
    return true;
}

/* Levenberg's damping: more after a step that leads down. Returns the log posterior. */
static double climb_up(struct climb *climb)
{
    size_t size = 2 * climb->n_intervals * sizeof(*climb->unknowns);
    double damping = 1e-3, reached = -HUGE_VAL;
    if (!(rate(climb) > -HUGE_VAL))
        return -HUGE_VAL;
    for (int step = 0; step < N_STEPS; step++) {
        limit_slopes(climb);
        double start = posterior(climb), height = start;
        find_scores(climb);
        memcpy(climb->before, climb->unknowns, size);
        for (int try = 0; try < N_TRIES && !(height > start); try++) {
            height = take_step(climb, damping) ? rate(climb) : -HUGE_VAL;
            damping = height > start ? fmax(damping / 10, LEAST_DAMPING) : damping * 10;
        }
        if (!(height > start)) {
            memcpy(climb->unknowns, climb->before, size);
            return start;
        }
        if (fabs(height - reached) < SETTLED)
            return height;
        reached = height;
    }
    return reached;
}

/* ---- Windows ---- */

static const double *row_of(const struct phema_motion_work *work,
                            const struct phema_sample_rows *sample, size_t i)
{
    size_t k = work->origins[i];
    return sample->values + (sample->order ? sample->order[k] : k) * sample->n_elems;
}

/* Products of the differences: these are small, and lose fewer digits. */
static void see_window(struct window *window, const struct phema_motion_work *work,
                       const struct phema_motion_data *data)
{
    const struct phema_sample_rows *sample = data->sample;
    size_t m = window->n - 1;
    double noise[WINDOW];
    for (size_t i = 0; i <= m; i++) {
        double rounded = data->rounding ? data->rounding[work->origins[window->first + i]] : 0;
        rounded = fmax(rounded, PHEMA_FLOAT32_FLOOR);
        noise[i] = rounded * rounded;
    }
    for (size_t i = 0, at = 0; i < m; i++) {
        const double *a = row_of(work, sample, window->first + i);
        const double *a_next = row_of(work, sample, window->first + i + 1);
        for (size_t j = i; j < m; j++, at++) {
            const double *b = row_of(work, sample, window->first + j);
            const double *b_next = row_of(work, sample, window->first + j + 1);
            double sum = 0;
            for (size_t e = 0; e < sample->n_elems; e++)
                sum += (a[e] - a_next[e]) * (b[e] - b_next[e]);
            window->seen[at] = sum / ((double)sample->n_elems * sample->mean_square);
            window->noise[at] = i == j ? noise[i] + noise[i + 1] : i + 1 == j ? -noise[j] : 0;
        }
    }
}

/* Intervals from the one that ends with the first snapshot, or from the first of all. */
static void find_intervals(struct window *window, const struct phema_motion_work *work)
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
        products[TRIANGLE(n) - TRIANGLE(m - i) + j - i] += x;
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

/* The pieces of the window, from the first that any pair has. */
static void find_front(struct window *window, const struct phema_motion_terms *terms,
                       size_t n_pieces)
{
    size_t begin = window->first_interval * n_pieces;
    window->first_piece = begin;
    for (size_t s = 0; s < terms->starts[terms->n_pairs]; s++)
        if (terms->items[s].interval < window->first_piece)
            window->first_piece = terms->items[s].interval;
    window->n_front = begin - window->first_piece;
}

/* Adds what a pair adds, in each piece. */
static void add_pair(const struct window *window, const struct phema_motion_terms *terms,
                     size_t pair, size_t i, size_t j, size_t n_pieces)
{
    size_t m = window->n - 1;
    for (size_t s = terms->starts[pair]; s < terms->starts[pair + 1]; s++) {
        const struct phema_motion_term *term = &terms->items[s];
        size_t piece = term->interval - window->first_piece, n = m;
        double *products = window->products + piece * TRIANGLE(m);
        if (piece >= window->n_front) {
            size_t k = (piece - window->n_front) / n_pieces;
            n = window->n_moved[k];
            products = products_of(window, n_pieces, k) +
                       (piece - window->n_front) % n_pieces * TRIANGLE(n);
        }
        add_distance(products, n, m, i, j, term->walk);
    }
}

static enum phema_status find_products(struct window *window, const struct phema_motion_work *work,
                                       struct phema_arena *memory, struct phema_error *err)
{
    struct phema_distance pairs[WINDOW * N_MOST / 2];
    struct phema_motion_terms terms = {0};
    size_t n_pairs = 0;
    for (size_t i = 0; i < window->n; i++)
        for (size_t j = i + 1; j < window->n; j++)
            pairs[n_pairs++] =
                (struct phema_distance){.i = window->first + i, .j = window->first + j};
    enum phema_status status = phema_motion_terms_find(&terms, work->table, pairs, n_pairs, err);
    if (status)
        return status;
    find_front(window, &terms, work->n_pieces);
    size_t size = window->n_front * TRIANGLE(window->n - 1);
    for (size_t k = 0; k < window->n_intervals; k++)
        size += work->n_pieces * TRIANGLE(window->n_moved[k]);
    window->products = phema_arena_array(memory, size, sizeof(double));
    window->levels = phema_arena_array(memory, window->n_intervals * MOST_PRODUCTS, sizeof(double));
    if (!window->products || !window->levels)
        status = phema_fail_memory(err);
    for (size_t i = 0, pair = 0; !status && i < window->n; i++)
        for (size_t j = i + 1; j < window->n; j++, pair++)
            add_pair(window, &terms, pair, i, j, work->n_pieces);
    phema_motion_terms_clear(&terms);
    return status;
}

static enum phema_status find_windows(struct climb *climb, const struct phema_motion_data *data,
                                      struct phema_arena *memory, struct phema_error *err)
{
    const struct phema_motion_work *work = climb->work;
    size_t n = work->n_kept;
    climb->n_windows = n <= WINDOW ? 1 : (n - WINDOW + STRIDE - 1) / STRIDE + 1;
    climb->windows = phema_arena_array(memory, climb->n_windows, sizeof(*climb->windows));
    enum phema_status status = climb->windows ? PHEMA_OK : phema_fail_memory(err);
    for (size_t w = 0; !status && w < climb->n_windows; w++) {
        struct window *window = &climb->windows[w];
        window->n = n < WINDOW ? n : WINDOW;
        window->first = w * STRIDE + window->n < n ? w * STRIDE : n - window->n;
        see_window(window, work, data);
        find_intervals(window, work);
        status = find_products(window, work, memory, err);
    }
    return status;
}

static bool alloc_climb(struct climb *climb, struct phema_arena *memory)
{
    size_t n = climb->n_intervals, total = 2 * n, most = 2 * WINDOW * MOST_PRODUCTS;
    climb->unknowns = phema_arena_array(memory, total, sizeof(double));
    climb->before = phema_arena_array(memory, total, sizeof(double));
    climb->step = phema_arena_array(memory, total, sizeof(double));
    climb->smooth = phema_arena_array(memory, n, sizeof(double));
    climb->slopes = phema_arena_array(memory, n, sizeof(double));
    climb->v = phema_arena_array(memory, climb->n_pieces, sizeof(double));
    climb->places = phema_arena_array(memory, climb->n_pieces, sizeof(double));
    climb->score = phema_arena_array(memory, total, sizeof(double));
    climb->fisher = phema_arena_array(memory, total * total, sizeof(double));
    climb->damped = phema_arena_array(memory, total * total, sizeof(double));
    climb->parts = phema_arena_array(memory, most, sizeof(double));
    return climb->unknowns && climb->before && climb->step && climb->smooth && climb->slopes &&
           climb->v && climb->places && climb->score && climb->fisher && climb->damped &&
           climb->parts;
}

/* ---- The mean over the ways to end ---- */

/* v may end like a slope, or as a power of the time that is left. Each way counts by its posterior
 * (N31): expected squared errors are linear in v, so those of the mean are the mean of those. */
static bool mix_ends(double *rates, struct climb *climb, size_t n_ways)
{
    static const struct {
        int power;
        double prior;
    } ways[] = {{0, 1. / 2}, {1, 1. / 6}, {2, 1. / 6}, {4, 1. / 6}};
    size_t last = climb->n_intervals - 1;
    double highest = -HUGE_VAL, total = 0;
    for (size_t way = 0; way < n_ways; way++) {
        if (way) { /* from the way before: the same mean in the last interval */
            climb->unknowns[2 * last + 1] = 0;
            climb->unknowns[2 * last] +=
                phema_motion_log((ways[way].power + 1.0) / (ways[way - 1].power + 1.0));
        }
        climb->end_power = ways[way].power;
        double height = climb_up(climb) + phema_motion_log(ways[way].prior);
        if (!(height > -HUGE_VAL))
            break;
        double share = total > 0 ? phema_motion_exp(fmin(height - highest, 0)) : 1;
        double kept = total > 0 ? phema_motion_exp(fmin(highest - height, 0)) : 0;
        highest = fmax(highest, height);
        total = kept * total + share;
        set_rates(climb);
        for (size_t k = 0; k < climb->n_pieces; k++)
            rates[k] = (total > share ? kept * rates[k] : 0) + share * climb->v[k];
    }
    for (size_t k = 0; total > 0 && k < climb->n_pieces; k++)
        rates[k] /= total;
    return total > 0;
}

/* As few steps as are fine enough: fewer intervals are faster to solve. */
static void join_alike(double *rates, size_t n_pieces)
{
    double range = fabs(phema_motion_log(rates[n_pieces - 1] / rates[0]));
    size_t n_joined = phema_motion_pieces_to_join(range, n_pieces);
    for (size_t first = 0; first < n_pieces; first += n_joined) {
        double mean = 0;
        for (size_t k = first; k < first + n_joined; k++)
            mean += rates[k] / (double)n_joined;
        for (size_t k = first; k < first + n_joined; k++)
            rates[k] = mean;
    }
}

PHEMA_FALLIBLE phema_motion_find_likeliest(struct phema_motion_work *work, const double *wander,
                                           const double *prior,
                                           const struct phema_motion_data *data,
                                           struct phema_error *err)
{
    struct phema_arena memory = {0};
    size_t n = work->terms.n_intervals, n_pieces = work->pieces.n_intervals;
    struct climb climb = {
        .work = work,
        .prior = prior,
        .n_intervals = n,
        .n_pieces = n_pieces,
        .n_independent = fmin(INDEPENDENT * (double)data->sample->n_elems, MOST_INDEPENDENT),
    };
    enum phema_status status = alloc_climb(&climb, &memory)
                                   ? find_windows(&climb, data, &memory, err)
                                   : phema_fail_memory(err);
    if (!status)
        find_places(&climb);
    for (size_t k = 0; !status && k < n; k++) {
        climb.unknowns[2 * k] = phema_motion_log(wander[k]);
        climb.unknowns[2 * k + 1] = work->slopes[k];
    }
    if (!status && !mix_ends(work->shape, &climb, data->schedule ? 1 : 4))
        status = PHEMA_NO;
    for (size_t k = 0; !status && k < n; k++)
        join_alike(work->shape + k * work->n_pieces, work->n_pieces);
    phema_arena_clear(&memory);
    return status;
}
