// SPDX-License-Identifier: Apache-2.0
/* motion_intervals.c - amplitudes of the random walk and of the jitter: powers of time first, then
 * a factor for every interval (docs/numerics.md, N21 and N22). */
#include "motion_work.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define N_POWERS 4  /* t^0 ... t^-3 */
#define N_ROUNDS 60 /* of scaling the intervals */

/* Keeps intervals with little influence on any distance near the powers of time. */
#define RELUCTANCE 0.3

/* ---- Functions that are the same on every machine: + - * / alone ---- */

double phema_motion_log(double x)
{
    int exponent = 0;
    double mantissa = frexp(x, &exponent);
    if (mantissa < 0.70710678118654752) {
        mantissa *= 2;
        exponent--;
    }
    double s = (mantissa - 1) / (mantissa + 1); /* |s| < 0.172: s^22 < 2e-17 */
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * s * s + 1.0 / k;
    return 2 * s * sum + exponent * 0.69314718055994531;
}

double phema_motion_exp(double x)
{
    double bounded = fmax(-600, fmin(600, x));
    int halvings = 0;
    for (; fabs(bounded) > 0.25; halvings++)
        bounded /= 2;
    double sum = 1;
    for (int k = 14; k >= 1; k--)
        sum = 1 + sum * bounded / k;
    for (; halvings > 0; halvings--)
        sum *= sum;
    return sum;
}

/* ---- Powers of time ---- */

double phema_motion_power(double base, int exponent)
{
    double product = 1;
    for (int i = 0; i < exponent; i++)
        product *= base;
    return product;
}

/* The time of an interval in t^-q: its middle, in units of the last end. */
static double middle_of(const struct phema_motion_terms *terms, size_t k)
{
    double begin = k ? terms->ends[k - 1] : 0;
    return (begin + terms->ends[k]) / 2 / terms->ends[terms->n_intervals - 1];
}

static void sum_powers(double *sums, const struct phema_motion_terms *terms, bool of_walk,
                       int power)
{
    for (size_t p = 0; p < terms->n_pairs; p++) {
        sums[p] = 0;
        for (size_t s = terms->starts[p]; s < terms->starts[p + 1]; s++) {
            const struct phema_motion_term *term = &terms->items[s];
            sums[p] += (of_walk ? term->walk : term->jitter) /
                       phema_motion_power(middle_of(terms, term->interval), power);
        }
    }
}

/* Least squares of b x + c y against 1, where x and y are relative to the measured squares; b, c >=
 * 0. */
static void fit_two(double *b, double *c, const struct phema_motion_work *work, bool only_wanders)
{
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
    for (size_t p = 0; p < work->terms.n_pairs; p++) {
        double x = work->walked[p] / work->seen[p];
        double y = work->jittered[p] / work->seen[p];
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
    }
    if (only_wanders)
        yy = xy = y1 = 0;
    double determinant = xx * yy - xy * xy;
    *b = determinant > 0 ? (x1 * yy - y1 * xy) / determinant : -1;
    *c = determinant > 0 ? (y1 * xx - x1 * xy) / determinant : -1;
    if (*b >= 0 && *c >= 0)
        return;
    /* one of them alone: the one with the smaller residual, which is 1 - x1^2 / xx */
    bool walks = xx > 0 && (yy <= 0 || x1 * x1 * yy >= y1 * y1 * xx);
    *b = walks ? x1 / xx : 0;
    *c = !walks && yy > 0 ? y1 / yy : 0;
}

static double misfit_of(const struct phema_motion_work *work, double b, double c)
{
    double sum = 0;
    for (size_t p = 0; p < work->terms.n_pairs; p++) {
        double modelled = b * work->walked[p] + c * work->jittered[p];
        if (!(modelled > 0))
            return HUGE_VAL;
        sum += fabs(phema_motion_log(work->seen[p] / modelled));
    }
    return sum / (double)work->terms.n_pairs;
}

void phema_motion_fit_powers(struct phema_motion *motion, struct phema_motion_work *work,
                             bool only_wanders)
{
    double best_b = 0, best_c = 0;
    motion->misfit = HUGE_VAL;
    for (int q = 0; q < N_POWERS; q++) {
        sum_powers(work->walked, &work->terms, true, q);
        for (int r = 0; r < N_POWERS; r++) {
            double b, c;
            sum_powers(work->jittered, &work->terms, false, r);
            fit_two(&b, &c, work, only_wanders);
            double misfit = misfit_of(work, b, c);
            if (misfit < motion->misfit) {
                motion->misfit = misfit;
                motion->wander_power = q;
                motion->jitter_power = r;
                best_b = b;
                best_c = c;
            }
        }
    }
    for (size_t k = 0; k < motion->n_intervals; k++) {
        double middle = middle_of(&work->terms, k);
        motion->wander[k] = best_b / phema_motion_power(middle, motion->wander_power);
        motion->jitter[k] = best_c / phema_motion_power(middle, motion->jitter_power);
    }
}

/* ---- A factor for every interval ---- */

static double part_of(const struct phema_motion *motion, const struct phema_motion_term *term)
{
    return motion->wander[term->interval] * term->walk +
           motion->jitter[term->interval] * term->jitter;
}

/* The modelled square of a distance */
static double model_pair(const struct phema_motion *motion, const struct phema_motion_terms *terms,
                         size_t pair)
{
    double modelled = 0;
    for (size_t s = terms->starts[pair]; s < terms->starts[pair + 1]; s++)
        modelled += part_of(motion, &terms->items[s]);
    return modelled;
}

/* Of the intervals of one pair, in ascending order; shares: parts over their sum. */
static void add_pulls(double *restrict pulls, double *restrict loads, const double *restrict parts,
                      size_t n, double inverse, double missing)
{
    for (size_t s = 0; s < n; s++) {
        double share = parts[s] * inverse;
        pulls[s] += share * missing;
        loads[s] += share;
    }
}

/* The terms of a pair are those of successive intervals, the last one first. */
void phema_motion_scale_intervals(struct phema_motion *motion, struct phema_motion_work *work)
{
    const struct phema_motion_terms *terms = &work->terms;
    memset(work->pulls, 0, motion->n_intervals * sizeof(*work->pulls));
    memset(work->loads, 0, motion->n_intervals * sizeof(*work->loads));
    for (size_t p = 0; p < terms->n_pairs; p++) {
        const struct phema_motion_term *items = terms->items + terms->starts[p];
        size_t n = terms->starts[p + 1] - terms->starts[p];
        double modelled = 0;
        for (size_t s = 0; s < n; s++) {
            double part = part_of(motion, &items[s]);
            work->parts[n - 1 - s] = part;
            modelled += part;
        }
        if (!(modelled > 0))
            continue;
        size_t first = items[n - 1].interval;
        assert(items[0].interval - first == n - 1);
        add_pulls(work->pulls + first, work->loads + first, work->parts, n, 1 / modelled,
                  phema_motion_log(work->seen[p] / modelled));
    }
    for (size_t k = 0; k < motion->n_intervals; k++) {
        double factor = phema_motion_exp(work->pulls[k] / (work->loads[k] + RELUCTANCE));
        motion->wander[k] *= factor;
        motion->jitter[k] *= factor;
    }
}

double phema_motion_fit_intervals(struct phema_motion *motion, struct phema_motion_work *work)
{
    double sum = 0;
    for (int round = 0; round < N_ROUNDS; round++)
        phema_motion_scale_intervals(motion, work);
    for (size_t p = 0; p < work->terms.n_pairs; p++) {
        double modelled = model_pair(motion, &work->terms, p);
        if (!(modelled > 0))
            return HUGE_VAL;
        sum += fabs(phema_motion_log(work->seen[p] / modelled));
    }
    return sum / (double)work->terms.n_pairs;
}
