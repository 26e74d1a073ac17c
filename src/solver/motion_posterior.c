// SPDX-License-Identifier: Apache-2.0
/* motion_posterior.c - the likeliest level and slope of log v in each interval: Fisher scoring of
 * the restricted likelihood of the sample, with a prior (docs/numerics.md, N29 to N31). */
#include "motion_work.h"

#include <math.h>
#include <string.h>

#include "cholesky.h"

/* ---- Shapes within the intervals (docs/numerics.md, N28) ---- */

#define N_SHAPES         5    /* rounds of shapes within the intervals */
#define N_ROUNDS_A_SHAPE 15   /* of scaling the intervals */
#define LEAST_KNOWN      1e-6 /* of v where the learning rate is 0 */

#define MOST_SLOPE       5.0
#define MOST_FIRST_SLOPE 3.0

/* The slope of log v within interval k of n, from the levels of all (N28): the smaller one of those
 * to its neighbours, so none at peaks. The motion of the first interval may only fall, and that of
 * the last only go on falling. */
static double limited_slope(const double *levels, size_t n, size_t k)
{
    double before = k ? levels[k] - levels[k - 1] : 0;
    double after = k + 1 < n ? levels[k + 1] - levels[k] : fmin(before, 0);
    double smaller = before * after <= 0 ? 0 : fabs(before) < fabs(after) ? before : after;
    double slope = k ? smaller : fmax(fmin(after, 0), -MOST_FIRST_SLOPE);
    return fmax(-MOST_SLOPE, fmin(MOST_SLOPE, slope));
}

/* The mean of (1 - x)^power over one of the pieces of [0, 1]. */
static double end_shape(size_t piece, size_t n_pieces, int power)
{
    double n = (double)n_pieces;
    double from = 1 - (double)piece / n, to = 1 - (double)(piece + 1) / n;
    return (phema_motion_power(from, power + 1) - phema_motion_power(to, power + 1)) * n /
           (power + 1);
}

/* How many pieces of an interval may have one rate, where log v changes by so much in it. */
static size_t pieces_to_join(double range, size_t n_pieces)
{
    size_t n_steps = range < 0.25 ? 1 : range < 0.5 ? 2 : range < 1 ? 4 : n_pieces;
    return n_steps < n_pieces ? n_pieces / n_steps : 1;
}

/* exp(slope x), x from -1/2 to 1/2, in as few steps as are fine enough. */
static double slope_shape(size_t piece, size_t n_pieces, double slope)
{
    size_t n_joined = pieces_to_join(fabs(slope), n_pieces);
    size_t first = piece - piece % n_joined;
    double middle = (double)first + (double)n_joined / 2;
    return phema_motion_exp(slope * (middle / (double)n_pieces - 0.5));
}

void phema_motion_set_shape(struct phema_motion_work *work, int end_power)
{
    size_t n_intervals = work->terms.n_intervals;
    for (size_t k = 0; k < work->pieces.n_intervals; k++) {
        size_t interval = k / work->n_pieces, piece = k % work->n_pieces;
        work->shape[k] =
            work->known[k] * (interval + 1 == n_intervals && end_power
                                  ? end_shape(piece, work->n_pieces, end_power)
                                  : slope_shape(piece, work->n_pieces, work->slopes[interval]));
    }
}

/* Terms of whole intervals, whose pieces have their shapes. Terms of the pieces of an interval follow
 * each other. */
static void join_pieces(struct phema_motion_work *work)
{
    struct phema_motion_terms *terms = &work->terms;
    const struct phema_motion_terms *pieces = &work->pieces;
    size_t n = 0, s = 0, n_pieces = work->n_pieces;
    for (size_t p = 0; p < pieces->n_pairs; p++) {
        terms->starts[p] = n;
        for (size_t end = pieces->starts[p + 1]; s < end;) {
            struct phema_motion_term sum = {.interval = pieces->items[s].interval / n_pieces};
            size_t first = sum.interval * n_pieces;
            for (; s < end && pieces->items[s].interval - first < n_pieces; s++) {
                const struct phema_motion_term *piece = &pieces->items[s];
                sum.walk += work->shape[piece->interval] * piece->walk;
                sum.jitter += piece->jitter;
            }
            terms->items[n++] = sum;
        }
    }
    terms->starts[pieces->n_pairs] = n;
}

static void find_slopes(struct phema_motion_work *work, const struct phema_motion *motion)
{
    size_t n = work->terms.n_intervals;
    for (size_t k = 0; k < n; k++) {
        double mean = 0;
        for (size_t piece = 0; piece < work->n_pieces; piece++)
            mean += work->shape[k * work->n_pieces + piece] / (double)work->n_pieces;
        work->heights[k] = phema_motion_log(motion->wander[k] * mean) - work->levels[k];
    }
    for (size_t k = 0; k < n; k++)
        work->slopes[k] = limited_slope(work->heights, n, k);
}

void phema_motion_set_even(struct phema_motion_work *work)
{
    for (size_t k = 0; k < work->pieces.n_intervals; k++)
        work->shape[k] = 1;
    join_pieces(work);
}

void phema_motion_set_known(struct phema_motion_work *work, const struct phema_schedule *schedule)
{
    for (size_t interval = 0; interval < work->terms.n_intervals; interval++) {
        size_t first = interval * work->n_pieces;
        const double *ends = work->pieces.ends + first;
        double begin = interval ? ends[-1] : 0, end = ends[work->n_pieces - 1];
        double whole = schedule ? phema_schedule_mean_square(schedule, begin, end) : 0;
        work->levels[interval] = whole > 0 ? phema_motion_log(whole) : 0;
        for (size_t k = 0; k < work->n_pieces; k++) {
            double from = k ? ends[k - 1] : begin;
            work->known[first + k] =
                whole > 0
                    ? fmax(phema_schedule_mean_square(schedule, from, ends[k]) / whole, LEAST_KNOWN)
                    : 1;
        }
    }
}

void phema_motion_set_known_shape(struct phema_motion_work *work)
{
    memcpy(work->shape, work->known, work->pieces.n_intervals * sizeof(*work->shape));
    join_pieces(work);
}

void phema_motion_fit_shape(struct phema_motion *motion, struct phema_motion_work *work,
                            int end_power)
{
    memset(work->slopes, 0, work->terms.n_intervals * sizeof(*work->slopes));
    for (int round = 0; round < N_SHAPES; round++) {
        if (round > 0)
            find_slopes(work, motion);
        phema_motion_set_shape(work, end_power);
        join_pieces(work);
        for (int i = 0; i < N_ROUNDS_A_SHAPE; i++)
            phema_motion_scale_intervals(motion, work);
    }
}

/* ---- Levels and slopes ---- */

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

static void set_rates(struct climb *climb)
{
    const struct phema_motion_work *work = climb->work;
    for (size_t k = 0; k < climb->n_pieces; k++) {
        size_t interval = k / work->n_pieces, piece = k % work->n_pieces;
        double level = climb->unknowns[2 * interval], slope = climb->unknowns[2 * interval + 1];
        climb->v[k] = work->known[k] * phema_motion_exp(level + slope * climb->places[piece]);
        if (interval + 1 == climb->n_intervals)
            climb->v[k] *= end_shape(piece, work->n_pieces, climb->end_power);
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
        climb->slopes[k] = limited_slope(climb->smooth, n, k);
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
    return !memory->is_failed;
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
    size_t n_joined = pieces_to_join(range, n_pieces);
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
    for (size_t k = 0; !status && k < work->n_pieces; k++)
        climb.places[k] = ((double)k + 0.5) / (double)work->n_pieces - 0.5;
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
