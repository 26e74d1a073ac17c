// SPDX-License-Identifier: Apache-2.0
/* motion_posterior.c - the likeliest level and slope of log v in each interval: Fisher scoring of
 * the restricted likelihood of the sample, with a prior (docs/numerics.md, N29 to N31). */
#include "motion_posterior.h"

#include <math.h>
#include <string.h>

#include "cholesky_float64.h"
#include "motion_likelihood.h"
#include "motion_shapes.h"

#define LEVEL_SPREAD 2.0 /* of log v from interval to interval, around the prior */
#define SLOPE_SPREAD 1.5 /* around the limited slope */

#define N_STEPS   15
#define N_TRIES   6
#define MOST_STEP 2.0 /* of log v */
#define MOST_TILT 12.0
#define SETTLED   0.02 /* of the log posterior */

#define LEAST_DAMPING 1e-6

/* ---- What is climbed ---- */

/* Unknowns: the level of each interval, at even places, each followed by the slope. */
struct climb {
    const struct phema_motion_work *work;
    const double *prior; /* [n_intervals] of the levels */
    struct phema_motion_windows windows;
    size_t n_intervals, n_pieces;
    int end_power;
    double n_independent;             /* elements that the likelihood counts for */
    double likelihood;                /* log, of what was rated last */
    double *unknowns, *before, *step; /* [2 n_intervals] */
    double *smooth, *slopes;          /* [n_intervals] levels without the known rates; limited */
    double *v;                        /* [pieces] */
    double *places;                   /* [pieces of an interval] x of the middle */
    double *score;                    /* [2 n_intervals] gradient of the log posterior */
    double *fisher, *damped;          /* [2 n_intervals x 2 n_intervals] */
};

static void find_places(struct climb *climb)
{
    size_t n = climb->work->n_pieces;
    for (size_t k = 0; k < n; k++)
        climb->places[k] = ((double)k + 0.5) / (double)n - 0.5;
}

static void set_rates(struct climb *climb)
{
    const struct phema_motion_work *work = climb->work;
    for (size_t k = 0; k < climb->n_pieces; k++) {
        size_t interval = k / work->n_pieces, piece = k % work->n_pieces;
        double level = climb->unknowns[2 * interval], slope = climb->unknowns[2 * interval + 1];
        climb->v[k] = work->known[k] * phema_motion_exp(level + slope * climb->places[piece]);
        if (interval + 1 == climb->n_intervals)
            climb->v[k] *= phema_motion_end_shape(piece, work->n_pieces, climb->end_power);
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
    for (size_t w = 0; w < climb->windows.n; w++)
        climb->likelihood +=
            climb->n_independent * phema_motion_window_rate(&climb->windows, w, climb->v);
    return posterior(climb);
}

/* Of what was rated last. */
static void find_scores(struct climb *climb)
{
    size_t total = 2 * climb->n_intervals;
    memset(climb->score, 0, total * sizeof(*climb->score));
    memset(climb->fisher, 0, total * total * sizeof(*climb->fisher));
    add_prior_scores(climb);
    for (size_t w = 0; w < climb->windows.n; w++)
        phema_motion_window_add_scores(&climb->windows, w, climb->v, climb->places,
                                       climb->n_independent, climb->score, climb->fisher, total);
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
    if (!phema_float64_factor(climb->damped, total))
        return false;
    phema_float64_solve(climb->damped, climb->step, total);
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

static bool alloc_climb(struct climb *climb, struct phema_arena *memory)
{
    size_t n = climb->n_intervals, total = 2 * n;
    climb->unknowns = phema_arena_array(memory, total, sizeof(double));
    climb->before = phema_arena_array(memory, total, sizeof(double));
    climb->step = phema_arena_array(memory, total, sizeof(double));
    climb->smooth = phema_arena_array(memory, n, sizeof(double));
    climb->slopes = phema_arena_array(memory, n, sizeof(double));
    climb->v = phema_arena_array(memory, climb->n_pieces, sizeof(double));
    climb->places = phema_arena_array(memory, climb->work->n_pieces, sizeof(double));
    climb->score = phema_arena_array(memory, total, sizeof(double));
    climb->fisher = phema_arena_array(memory, total * total, sizeof(double));
    climb->damped = phema_arena_array(memory, total * total, sizeof(double));
    return climb->unknowns && climb->before && climb->step && climb->smooth && climb->slopes &&
           climb->v && climb->places && climb->score && climb->fisher && climb->damped;
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
        .n_independent = phema_motion_independent(data->sample->n_elems),
    };
    enum phema_status status =
        alloc_climb(&climb, &memory)
            ? phema_motion_windows_find(&climb.windows, work, data, &memory, err)
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
