// SPDX-License-Identifier: Apache-2.0
/* motion_likelihood.c - the likeliest level and slope of log v in each interval: Fisher scoring of
 * the restricted likelihood of the sample (docs/numerics.md, N29 to N31). Weights of a sum of 1
 * know snapshots by their differences alone, so each window of snapshots is taken as differences
 * from its last one. */
#include "motion_likelihood.h"

#include <math.h>
#include <string.h>

#include "dot.h"

#define WINDOW PHEMA_MOTION_REACH
#define STRIDE ((size_t)8)  /* from one window to the next */
#define N_MOST (WINDOW - 1) /* differences in a window */

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
    size_t first, n;   /* snapshots */
    size_t first_pair; /* of their pairs, those of the first snapshot in front */
    size_t first_interval, n_intervals;
    double noise[WINDOW];         /* squared, of each snapshot */
    double seen[N_MOST * N_MOST]; /* products of the differences, an element */
};

/* Unknowns: the level of each interval, the slope of each interval. */
struct climb {
    const struct phema_motion_work *work;
    const double *prior;             /* [n_intervals] of the levels */
    struct phema_motion_terms terms; /* of all pairs within windows */
    struct window *windows;
    size_t n_windows, n_intervals, n_pieces;
    int end_power;
    double n_independent;             /* elements that the likelihood counts for */
    double *unknowns, *before, *step; /* [2 n_intervals] */
    double *smooth, *slopes;          /* [n_intervals] levels without the known rates; limited */
    double *v;                        /* [pieces] */
    double *places;                   /* [pieces] x of the middle */
    size_t *intervals;                /* [pieces] in which they lie */
    double *score;                    /* [2 n_intervals] gradient of the log posterior */
    double *fisher, *damped;          /* [2 n_intervals x 2 n_intervals] */
    double *parts; /* [2 WINDOW x N_MOST x N_MOST] of a window: derivatives, times the inverse */
};

static void find_places(struct climb *climb)
{
    size_t n = climb->work->n_pieces;
    for (size_t k = 0; k < climb->n_pieces; k++) {
        climb->intervals[k] = k / n;
        climb->places[k] = ((double)(k % n) + 0.5) / (double)n - 0.5;
    }
}

static void set_rates(struct climb *climb)
{
    const struct phema_motion_work *work = climb->work;
    for (size_t k = 0; k < climb->n_pieces; k++) {
        size_t interval = climb->intervals[k];
        double level = climb->unknowns[interval];
        double slope = climb->unknowns[climb->n_intervals + interval];
        climb->v[k] = work->known[k] * phema_motion_exp(level + slope * climb->places[k]);
        if (interval + 1 == climb->n_intervals)
            climb->v[k] *= end_shape(k % work->n_pieces, work->n_pieces, climb->end_power);
    }
}

/* ---- Small matrices ---- */

/* Cholesky factor in the lower half of a [n x n]; false: not positive definite. */
static bool factor(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
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

/* a := L^-1 a, the factor L in the lower half. */
static void reduce_rows(double *restrict a, const double *restrict factor, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            for (size_t j = 0; j < n; j++)
                a[i * n + j] -= factor[i * n + k] * a[k * n + j];
        for (size_t j = 0; j < n; j++)
            a[i * n + j] /= factor[i * n + i];
    }
}

/* a := L^-1 a L^-T of a symmetric a. */
static void whiten(double *a, const double *factor, size_t n)
{
    double transposed[N_MOST * N_MOST];
    reduce_rows(a, factor, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            transposed[j * n + i] = a[i * n + j];
    reduce_rows(transposed, factor, n);
    memcpy(a, transposed, n * n * sizeof(*a));
}

static double trace(const double *a, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i * n + i];
    return sum;
}

/* ---- The likelihood of a window ---- */

/* Adds what a pair's squared distance of this size adds to the products of differences from the
 * last snapshot: (d_in^2 + d_jn^2 - d_ij^2) / 2. */
static void add_distance(double *products, size_t i, size_t j, size_t last, double square)
{
    if (j < last) {
        products[i * last + j] -= square / 2;
        products[j * last + i] -= square / 2;
        return;
    }
    for (size_t k = 0; k < last; k++) {
        products[i * last + k] += square / 2;
        products[k * last + i] += square / 2;
    }
}

/* The modelled products of the differences, and their derivatives with respect to the levels and
 * slopes of the window's intervals unless parts is NULL. */
static void model_window(double *products, double *parts, const struct climb *climb,
                         const struct window *window)
{
    size_t last = window->n - 1, size = last * last, n = window->n_intervals;
    size_t pair = window->first_pair;
    for (size_t i = 0; i < size; i++)
        products[i] = window->noise[last] + (i % (last + 1) == 0 ? window->noise[i / last] : 0);
    if (parts)
        memset(parts, 0, 2 * n * size * sizeof(*parts));
    for (size_t i = 0; i < last; i++) {
        for (size_t j = i + 1; j <= last; j++, pair++) {
            double square = 0, levels[WINDOW] = {0}, slopes[WINDOW] = {0};
            for (size_t s = climb->terms.starts[pair]; s < climb->terms.starts[pair + 1]; s++) {
                const struct phema_motion_term *term = &climb->terms.items[s];
                size_t k = climb->intervals[term->interval] - window->first_interval;
                double part = climb->v[term->interval] * term->walk;
                square += part;
                if (parts && k < n) { /* wraps around for the intervals in front of the window */
                    levels[k] += part;
                    slopes[k] += part * climb->places[term->interval];
                }
            }
            add_distance(products, i, j, last, square);
            for (size_t k = 0; parts && k < n; k++) {
                add_distance(parts + k * size, i, j, last, levels[k]);
                add_distance(parts + (n + k) * size, i, j, last, slopes[k]);
            }
        }
    }
}

/* With L L^T the modelled products, S = L^-1 (those seen) L^-T and P_a = L^-1 (a derivative of the
 * modelled ones) L^-T: score tr(S P_a - P_a) / 2, Fisher's information tr(P_a P_b) / 2. */
static void add_scores(struct climb *climb, const struct window *window, const double *factor,
                       const double *seen)
{
    size_t m = window->n - 1, size = m * m, n = window->n_intervals, total = 2 * climb->n_intervals;
    for (size_t a = 0; a < 2 * n; a++) {
        double *part = climb->parts + a * size;
        size_t row = window->first_interval + a + (a < n ? 0 : climb->n_intervals - n);
        whiten(part, factor, m);
        climb->score[row] +=
            climb->n_independent * (phema_dot(seen, part, size) - trace(part, m)) / 2;
        for (size_t b = 0; b <= a; b++) {
            size_t column = window->first_interval + b + (b < n ? 0 : climb->n_intervals - n);
            double shared =
                climb->n_independent * phema_dot(part, climb->parts + b * size, size) / 2;
            climb->fisher[row * total + column] += shared;
            if (a != b)
                climb->fisher[column * total + row] += shared;
        }
    }
}

/* The log likelihood of a window, an element (N29); adds scores if they are wanted. */
static double rate_window(struct climb *climb, const struct window *window, bool wants_scores)
{
    size_t m = window->n - 1;
    double model[N_MOST * N_MOST], seen[N_MOST * N_MOST];
    double log_determinant = 0;
    model_window(model, wants_scores ? climb->parts : NULL, climb, window);
    if (!factor(model, m))
        return -HUGE_VAL;
    for (size_t i = 0; i < m; i++)
        log_determinant += 2 * phema_motion_log(model[i * m + i]);
    memcpy(seen, window->seen, m * m * sizeof(*seen));
    whiten(seen, model, m);
    if (wants_scores)
        add_scores(climb, window, model, seen);
    return -(log_determinant + trace(seen, m)) / 2;
}

/* ---- The posterior ---- */

/* How far a level is from that of the interval before, and a slope from the limited one, in their
 * spreads. */
static double level_apart(const struct climb *climb, size_t k)
{
    double moved = climb->unknowns[k] - climb->unknowns[k - 1];
    return (moved - (climb->prior[k] - climb->prior[k - 1])) / LEVEL_SPREAD;
}

static double slope_apart(const struct climb *climb, size_t k)
{
    return (climb->unknowns[climb->n_intervals + k] - climb->slopes[k]) / SLOPE_SPREAD;
}

/* The limited slopes for these levels; a power of the time that is left needs no slope. */
static void limit_slopes(struct climb *climb)
{
    size_t n = climb->n_intervals;
    for (size_t k = 0; k < n; k++)
        climb->smooth[k] = climb->unknowns[k] - climb->work->levels[k];
    for (size_t k = 0; k < n; k++)
        climb->slopes[k] = phema_motion_limited_slope(climb->smooth, n, k);
    if (climb->end_power)
        climb->slopes[n - 1] = 0;
}

static void add_prior_scores(struct climb *climb)
{
    size_t n = climb->n_intervals, total = 2 * n;
    const double level = 1 / LEVEL_SPREAD, slope = 1 / SLOPE_SPREAD;
    for (size_t k = 0; k < n; k++) {
        climb->score[n + k] -= slope * slope_apart(climb, k);
        climb->fisher[(n + k) * total + n + k] += slope * slope;
        if (!k)
            continue;
        climb->score[k] -= level * level_apart(climb, k);
        climb->score[k - 1] += level * level_apart(climb, k);
        climb->fisher[k * total + k] += level * level;
        climb->fisher[(k - 1) * total + k - 1] += level * level;
        climb->fisher[k * total + k - 1] -= level * level;
        climb->fisher[(k - 1) * total + k] -= level * level;
    }
}

/* The log posterior but for a constant (N30); -inf: snapshots depend on each other. */
static double rate(struct climb *climb, bool wants_scores)
{
    size_t total = 2 * climb->n_intervals;
    double sum = 0;
    set_rates(climb);
    if (wants_scores) {
        memset(climb->score, 0, total * sizeof(*climb->score));
        memset(climb->fisher, 0, total * total * sizeof(*climb->fisher));
        add_prior_scores(climb);
    }
    for (size_t w = 0; w < climb->n_windows; w++)
        sum += climb->n_independent * rate_window(climb, &climb->windows[w], wants_scores);
    for (size_t k = 0; k < climb->n_intervals; k++) {
        double apart = k ? level_apart(climb, k) : 0;
        sum -= (slope_apart(climb, k) * slope_apart(climb, k) + apart * apart) / 2;
    }
    return isnan(sum) ? -HUGE_VAL : sum;
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
        climb->unknowns[i] =
            i < climb->n_intervals ? moved : fmax(-MOST_TILT, fmin(MOST_TILT, moved));
    }
    return true;
}

/* Levenberg's damping: more after a step that leads down. Returns the log posterior. */
static double climb_up(struct climb *climb)
{
    size_t size = 2 * climb->n_intervals * sizeof(*climb->unknowns);
    double damping = 1e-3, reached = -HUGE_VAL;
    for (int step = 0; step < N_STEPS; step++) {
        limit_slopes(climb);
        double start = rate(climb, true), height = start;
        if (!(start > -HUGE_VAL))
            return start;
        memcpy(climb->before, climb->unknowns, size);
        for (int try = 0; try < N_TRIES && !(height > start); try++) {
            height = take_step(climb, damping) ? rate(climb, false) : -HUGE_VAL;
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

/* Products of the differences from the last snapshot: these are small, and lose fewer digits. */
static void see_window(struct window *window, const struct phema_motion_work *work,
                       const struct phema_motion_data *data)
{
    const struct phema_sample_rows *sample = data->sample;
    size_t m = window->n - 1;
    const double *last = row_of(work, sample, window->first + m);
    for (size_t i = 0; i <= m; i++) {
        double rounded = data->rounding ? data->rounding[work->origins[window->first + i]] : 0;
        rounded = fmax(rounded, PHEMA_FLOAT32_FLOOR);
        window->noise[i] = rounded * rounded;
    }
    for (size_t i = 0; i < m; i++) {
        const double *a = row_of(work, sample, window->first + i);
        for (size_t j = 0; j <= i; j++) {
            const double *b = row_of(work, sample, window->first + j);
            double sum = 0;
            for (size_t e = 0; e < sample->n_elems; e++)
                sum += (a[e] - last[e]) * (b[e] - last[e]);
            window->seen[i * m + j] = window->seen[j * m + i] =
                sum / ((double)sample->n_elems * sample->mean_square);
        }
    }
}

/* Intervals from the one that ends with the first snapshot, or from the first of all. */
static void find_intervals(struct window *window, const struct phema_motion_work *work)
{
    double begin = work->kept[window->first].t, end = work->kept[window->first + window->n - 1].t;
    size_t k = 0;
    while (window->first && work->terms.ends[k] < begin)
        k++;
    window->first_interval = k;
    while (k < work->terms.n_intervals && work->terms.ends[k] <= end)
        k++;
    size_t n = k - window->first_interval;
    window->n_intervals = n < WINDOW ? n : WINDOW;
}

static enum phema_status find_windows(struct climb *climb, const struct phema_motion_data *data,
                                      struct phema_arena *memory, struct phema_error *err)
{
    const struct phema_motion_work *work = climb->work;
    size_t n = work->n_kept, n_pairs = 0;
    climb->n_windows = n <= WINDOW ? 1 : (n - WINDOW + STRIDE - 1) / STRIDE + 1;
    climb->windows = phema_arena_array(memory, climb->n_windows, sizeof(*climb->windows));
    struct phema_distance *pairs =
        phema_arena_array(memory, climb->n_windows * WINDOW * N_MOST / 2, sizeof(*pairs));
    if (!climb->windows || !pairs)
        return phema_fail_memory(err);
    for (size_t w = 0; w < climb->n_windows; w++) {
        struct window *window = &climb->windows[w];
        window->n = n < WINDOW ? n : WINDOW;
        window->first = w * STRIDE + window->n < n ? w * STRIDE : n - window->n;
        window->first_pair = n_pairs;
        for (size_t i = 0; i < window->n; i++)
            for (size_t j = i + 1; j < window->n; j++)
                pairs[n_pairs++] =
                    (struct phema_distance){.i = window->first + i, .j = window->first + j};
        see_window(window, work, data);
        find_intervals(window, work);
    }
    return phema_motion_terms_find(&climb->terms, work->table, pairs, n_pairs, err);
}

static bool alloc_climb(struct climb *climb, struct phema_arena *memory)
{
    size_t n = climb->n_intervals, total = 2 * n, most = 2 * WINDOW * N_MOST * N_MOST;
    climb->unknowns = phema_arena_array(memory, total, sizeof(double));
    climb->before = phema_arena_array(memory, total, sizeof(double));
    climb->step = phema_arena_array(memory, total, sizeof(double));
    climb->smooth = phema_arena_array(memory, n, sizeof(double));
    climb->slopes = phema_arena_array(memory, n, sizeof(double));
    climb->v = phema_arena_array(memory, climb->n_pieces, sizeof(double));
    climb->places = phema_arena_array(memory, climb->n_pieces, sizeof(double));
    climb->intervals = phema_arena_array(memory, climb->n_pieces, sizeof(size_t));
    climb->score = phema_arena_array(memory, total, sizeof(double));
    climb->fisher = phema_arena_array(memory, total * total, sizeof(double));
    climb->damped = phema_arena_array(memory, total * total, sizeof(double));
    climb->parts = phema_arena_array(memory, most, sizeof(double));
    return climb->unknowns && climb->before && climb->step && climb->smooth && climb->slopes &&
           climb->v && climb->places && climb->intervals && climb->score && climb->fisher &&
           climb->damped && climb->parts;
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
    size_t n = climb->n_intervals, last = n - 1;
    double highest = -HUGE_VAL, total = 0;
    for (size_t way = 0; way < n_ways; way++) {
        if (way) { /* from the way before: the same mean in the last interval */
            climb->unknowns[n + last] = 0;
            climb->unknowns[last] +=
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
        climb.unknowns[k] = phema_motion_log(wander[k]);
        climb.unknowns[n + k] = work->slopes[k];
    }
    if (!status && !mix_ends(work->shape, &climb, data->schedule ? 1 : 4))
        status = PHEMA_NO;
    for (size_t k = 0; !status && k < n; k++)
        join_alike(work->shape + k * work->n_pieces, work->n_pieces);
    phema_motion_terms_clear(&climb.terms);
    phema_arena_clear(&memory);
    return status;
}
