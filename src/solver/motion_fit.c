// SPDX-License-Identifier: Apache-2.0
/* motion_fit.c - fits the random walk and the jitter of the parameters to distances between
 * snapshots (docs/numerics.md): powers of time first, then a factor for every interval. */
#include "phema/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/arena.h"

#include "motion_pairs.h"

#define N_POWERS        4  /* t^0 ... t^-3 */
#define N_ROUNDS        60 /* of scaling the intervals */
#define LEAST_DISTANCES 3
#define MOST_ROUNDING   0.75 /* of a squared distance */

/* Keeps intervals with little influence on any distance near the powers of time. */
#define RELUCTANCE 0.3

/* With jitter, the misfit must be below this fraction of the misfit of a random walk alone. */
#define EARNED 0.8

struct fit {
    struct phema_motion_terms terms;     /* of the distances that are used */
    double *seen;                        /* [n_pairs] squared distances without the rounding */
    double *walked, *jittered;           /* [n_pairs] for an amplitude of 1 t^-q */
    double *pulls, *loads;               /* [n_intervals] */
    double *wander_alone, *jitter_alone; /* [n_intervals] */
    struct phema_arena memory;           /* of all arrays but the terms' */
};

/* ---- Logarithms that are the same on every machine: + - * / alone ---- */

static double log_of(double x)
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

static double exp_of(double x)
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

static double power_of(double base, int exponent)
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
                       power_of(middle_of(terms, term->interval), power);
        }
    }
}

/* Least squares of b x + c y against 1, where x and y are relative to the measured squares; b, c >=
 * 0. */
static void fit_two(double *b, double *c, const struct fit *fit, bool only_wanders)
{
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
    for (size_t p = 0; p < fit->terms.n_pairs; p++) {
        double x = fit->walked[p] / fit->seen[p];
        double y = fit->jittered[p] / fit->seen[p];
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

static double misfit_of(const struct fit *fit, double b, double c)
{
    double sum = 0;
    for (size_t p = 0; p < fit->terms.n_pairs; p++) {
        double modelled = b * fit->walked[p] + c * fit->jittered[p];
        if (!(modelled > 0))
            return HUGE_VAL;
        sum += fabs(log_of(fit->seen[p] / modelled));
    }
    return sum / (double)fit->terms.n_pairs;
}

static void fit_powers(struct phema_motion *motion, struct fit *fit, bool only_wanders)
{
    double best_b = 0, best_c = 0;
    motion->misfit = HUGE_VAL;
    for (int q = 0; q < N_POWERS; q++) {
        sum_powers(fit->walked, &fit->terms, true, q);
        for (int r = 0; r < N_POWERS; r++) {
            double b, c;
            sum_powers(fit->jittered, &fit->terms, false, r);
            fit_two(&b, &c, fit, only_wanders);
            double misfit = misfit_of(fit, b, c);
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
        double middle = middle_of(&fit->terms, k);
        motion->wander[k] = best_b / power_of(middle, motion->wander_power);
        motion->jitter[k] = best_c / power_of(middle, motion->jitter_power);
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

/* One round: a distance that is modelled too short by a factor pulls at the intervals that it
 * passes, at each by the interval's share in the distance. */
static void scale_intervals(struct phema_motion *motion, struct fit *fit)
{
    const struct phema_motion_terms *terms = &fit->terms;
    memset(fit->pulls, 0, motion->n_intervals * sizeof(*fit->pulls));
    memset(fit->loads, 0, motion->n_intervals * sizeof(*fit->loads));
    for (size_t p = 0; p < terms->n_pairs; p++) {
        double modelled = model_pair(motion, terms, p);
        if (!(modelled > 0))
            continue;
        double missing = log_of(fit->seen[p] / modelled);
        for (size_t s = terms->starts[p]; s < terms->starts[p + 1]; s++) {
            double term = part_of(motion, &terms->items[s]) / modelled;
            fit->pulls[terms->items[s].interval] += term * missing;
            fit->loads[terms->items[s].interval] += term;
        }
    }
    for (size_t k = 0; k < motion->n_intervals; k++) {
        double factor = exp_of(fit->pulls[k] / (fit->loads[k] + RELUCTANCE));
        motion->wander[k] *= factor;
        motion->jitter[k] *= factor;
    }
}

/* Returns the mean |log(seen / modelled)| of the distances that the intervals give. */
static double fit_intervals(struct phema_motion *motion, struct fit *fit)
{
    double sum = 0;
    for (int round = 0; round < N_ROUNDS; round++)
        scale_intervals(motion, fit);
    for (size_t p = 0; p < fit->terms.n_pairs; p++) {
        double modelled = model_pair(motion, &fit->terms, p);
        if (!(modelled > 0))
            return HUGE_VAL;
        sum += fabs(log_of(fit->seen[p] / modelled));
    }
    return sum / (double)fit->terms.n_pairs;
}

/* Powers of time never fit a motion exactly, and jitter makes up for that where it can. The fitted
 * jitter is wrong then, by far for targets of which it is a large part. So jitter is used only
 * where a random walk alone, whose intervals are scaled as well, leaves a clearly larger misfit than
 * both. */
static void keep_simpler(struct phema_motion *motion, struct fit *fit, double both)
{
    size_t n = motion->n_intervals;
    struct phema_motion walk = *motion;
    walk.wander = fit->wander_alone;
    walk.jitter = fit->jitter_alone;
    fit_powers(&walk, fit, true);
    if (!isfinite(walk.misfit))
        return;
    if (both < EARNED * fit_intervals(&walk, fit))
        return;
    memcpy(motion->wander, walk.wander, n * sizeof(double));
    memcpy(motion->jitter, walk.jitter, n * sizeof(double));
    motion->wander_power = walk.wander_power;
    motion->jitter_power = walk.jitter_power;
}

/* ---- Together ---- */

/* Of the distances those that are more than rounding, and their squares without it; returns how
 * many. */
static size_t choose(struct phema_distance *chosen, double *seen,
                     const struct phema_distance *distances, size_t n_distances,
                     const double *rounding)
{
    size_t n = 0;
    for (size_t d = 0; d < n_distances; d++) {
        const struct phema_distance *distance = &distances[d];
        double rounded = 0;
        if (rounding)
            rounded = rounding[distance->i] * rounding[distance->i] +
                      rounding[distance->j] * rounding[distance->j];
        bool is_usable = isfinite(distance->square) && distance->square > 0 &&
                         rounded <= MOST_ROUNDING * distance->square;
        if (!is_usable)
            continue;
        chosen[n] = *distance;
        seen[n++] = distance->square - rounded;
    }
    return n;
}

/* Keeps the snapshots that distances name, since intervals lie between their times. Returns how
 * many. places [n]: 1 + index among them, or 0 */
static size_t compact(struct phema_profile *kept, size_t *places,
                      const struct phema_profile *snapshots, size_t n,
                      const struct phema_distance *distances, size_t n_distances)
{
    size_t n_kept = 0;
    for (size_t d = 0; d < n_distances; d++)
        places[distances[d].i] = places[distances[d].j] = 1;
    for (size_t i = 0; i < n; i++) {
        if (!places[i])
            continue;
        kept[n_kept] = snapshots[i];
        places[i] = ++n_kept;
    }
    return n_kept;
}

/* Sets seen and terms. */
static enum phema_status find_terms(struct fit *fit, const struct phema_profile *snapshots,
                                    size_t n, const double *rounding,
                                    const struct phema_distance *distances, size_t n_distances,
                                    struct phema_error *err)
{
    struct phema_arena *memory = &fit->memory;
    struct phema_distance *chosen = phema_arena_array(memory, n_distances, sizeof(*chosen));
    struct phema_profile *kept = phema_arena_array(memory, n, sizeof(*kept));
    size_t *places = phema_arena_array(memory, n, sizeof(*places));
    fit->seen = phema_arena_array(memory, n_distances, sizeof(double));
    if (!chosen || !kept || !places || !fit->seen)
        return phema_fail_memory(err);
    size_t n_chosen = choose(chosen, fit->seen, distances, n_distances, rounding);
    if (n_chosen < LEAST_DISTANCES)
        return phema_fail(err, PHEMA_NO,
                          "%zu of %zu distances between snapshots are more than their rounding; "
                          "expected at least %d",
                          n_chosen, n_distances, LEAST_DISTANCES);
    size_t n_kept = compact(kept, places, snapshots, n, distances, n_distances);
    for (size_t d = 0; d < n_chosen; d++) {
        chosen[d].i = places[chosen[d].i] - 1;
        chosen[d].j = places[chosen[d].j] - 1;
    }
    return phema_motion_terms_find(&fit->terms, kept, n_kept, chosen, n_chosen, err);
}

static enum phema_status fit_motion(struct phema_motion *motion, struct fit *fit,
                                    struct phema_error *err)
{
    size_t n_pairs = fit->terms.n_pairs, n_intervals = fit->terms.n_intervals;
    struct phema_arena *memory = &fit->memory;
    motion->n_intervals = n_intervals;
    motion->ends = calloc(n_intervals, sizeof(double));
    motion->wander = calloc(n_intervals, sizeof(double));
    motion->jitter = calloc(n_intervals, sizeof(double));
    fit->walked = phema_arena_array(memory, n_pairs, sizeof(double));
    fit->jittered = phema_arena_array(memory, n_pairs, sizeof(double));
    fit->pulls = phema_arena_array(memory, n_intervals, sizeof(double));
    fit->loads = phema_arena_array(memory, n_intervals, sizeof(double));
    fit->wander_alone = phema_arena_array(memory, n_intervals, sizeof(double));
    fit->jitter_alone = phema_arena_array(memory, n_intervals, sizeof(double));
    if (!motion->ends || !motion->wander || !motion->jitter || !fit->walked || !fit->jittered ||
        !fit->pulls || !fit->loads || !fit->wander_alone || !fit->jitter_alone)
        return phema_fail_memory(err);
    memcpy(motion->ends, fit->terms.ends, n_intervals * sizeof(double));
    fit_powers(motion, fit, false);
    if (!isfinite(motion->misfit))
        return phema_fail(err, PHEMA_NO,
                          "the distances between the snapshots do not say how parameters moved");
    keep_simpler(motion, fit, fit_intervals(motion, fit));
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_motion_fit(struct phema_motion *out, const struct phema_profile *snapshots,
                                size_t n, const double *rounding,
                                const struct phema_distance *distances, size_t n_distances,
                                struct phema_error *err)
{
    struct phema_motion motion = {0};
    struct fit fit = {0};
    enum phema_status status =
        find_terms(&fit, snapshots, n, rounding, distances, n_distances, err);
    if (!status)
        status = fit_motion(&motion, &fit, err);
    phema_motion_terms_clear(&fit.terms);
    phema_arena_clear(&fit.memory);
    if (status)
        phema_motion_clear(&motion);
    else
        *out = motion;
    return status;
}

void phema_motion_clear(struct phema_motion *motion)
{
    free(motion->ends);
    free(motion->wander);
    free(motion->jitter);
    *motion = (struct phema_motion){0};
}
