// SPDX-License-Identifier: Apache-2.0
/* motion_shapes.c - how v falls within the intervals: a slope of log v, a power of the time that is
 * left, or the square of the learning rate (docs/numerics.md, N28). */
#include "motion_shapes.h"

#include <math.h>
#include <string.h>

#define N_SHAPES         5    /* rounds of shapes within the intervals */
#define N_ROUNDS_A_SHAPE 15   /* of scaling the intervals */
#define LEAST_KNOWN      1e-6 /* of v where the learning rate is 0 */

#define MOST_SLOPE       5.0
#define MOST_FIRST_SLOPE 3.0

static double smaller(double a, double b)
{
    return a * b <= 0 ? 0 : fabs(a) < fabs(b) ? a : b;
}

double phema_motion_limited_slope(const double *levels, size_t n, size_t k)
{
    double before = k ? levels[k] - levels[k - 1] : 0;
    double after = k + 1 < n ? levels[k + 1] - levels[k] : fmin(before, 0);
    double slope = k ? smaller(before, after) : fmax(fmin(after, 0), -MOST_FIRST_SLOPE);
    return fmax(-MOST_SLOPE, fmin(MOST_SLOPE, slope));
}

double phema_motion_end_shape(size_t piece, size_t n_pieces, int power)
{
    double n = (double)n_pieces;
    double from = 1 - (double)piece / n, to = 1 - (double)(piece + 1) / n;
    return (phema_motion_power(from, power + 1) - phema_motion_power(to, power + 1)) * n /
           (power + 1);
}

size_t phema_motion_pieces_to_join(double range, size_t n_pieces)
{
    size_t n_steps = range < 0.25 ? 1 : range < 0.5 ? 2 : range < 1 ? 4 : n_pieces;
    return n_steps < n_pieces ? n_pieces / n_steps : 1;
}

/* exp(slope x), x from -1/2 to 1/2, in as few steps as are fine enough. */
static double slope_shape(size_t piece, size_t n_pieces, double slope)
{
    size_t n_joined = phema_motion_pieces_to_join(fabs(slope), n_pieces);
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
                                  ? phema_motion_end_shape(piece, work->n_pieces, end_power)
                                  : slope_shape(piece, work->n_pieces, work->slopes[interval]));
    }
}

/* Terms of whole intervals, whose pieces have their shapes. */
static void join_pieces(struct phema_motion_work *work)
{
    struct phema_motion_terms *terms = &work->terms;
    const struct phema_motion_terms *pieces = &work->pieces;
    size_t n = 0;
    for (size_t p = 0; p < pieces->n_pairs; p++) {
        terms->starts[p] = n;
        for (size_t s = pieces->starts[p]; s < pieces->starts[p + 1]; s++) {
            const struct phema_motion_term *piece = &pieces->items[s];
            size_t interval = piece->interval / work->n_pieces;
            if (n == terms->starts[p] || terms->items[n - 1].interval != interval)
                terms->items[n++] = (struct phema_motion_term){.interval = interval};
            terms->items[n - 1].walk += work->shape[piece->interval] * piece->walk;
            terms->items[n - 1].jitter += piece->jitter;
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
        work->slopes[k] = phema_motion_limited_slope(work->heights, n, k);
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
