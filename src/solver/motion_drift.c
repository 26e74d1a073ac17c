// SPDX-License-Identifier: Apache-2.0
/* motion_drift.c - how much of a motion keeps its direction, by the likelihood of the sample
 * (docs/numerics.md, N33 and N36). */
#include "motion_work.h"

#include <math.h>
#include <stdlib.h>

#include "cholesky.h"
#include "gram.h"

/* The posterior mean, from the differences of the earliest and of the newest snapshots
 * (docs/numerics.md, N36). Their modelled products are linear in what is mixed. */

#define N_SIDE     ((size_t)24) /* snapshots */
#define N_DRIFT    (N_SIDE - 1)
#define MOST_SIDES ((size_t)64) /* products at the end of longer series take too long */

/* Two thirds of the prior are on the walk alone, one on all amounts of a kind alike. */
#define RATIO        4
#define LEAST_AGEING 0x1p-8
#define N_AGEING     8
#define LEAST_STEADY 0x1p-6
#define N_STEADY     6
#define HOPELESS     20.0 /* log likelihood below that of the walk alone */
#define N_WALKS      4    /* shares of the walk that are left beside a steady drift */

/* Products of the differences of neighbours: upper halves of [n x n]. */
struct drift {
    size_t n;
    double seen[PHEMA_TRIANGLE(N_DRIFT)];                    /* in the sample, an element */
    double noise[PHEMA_TRIANGLE(N_DRIFT)];                   /* rounding */
    double walked[PHEMA_TRIANGLE(N_DRIFT)];                  /* modelled without coherence */
    double drifted[PHEMA_N_DRIFTS][PHEMA_TRIANGLE(N_DRIFT)]; /* what a coherence of 1 adds */
};

/* (p_i - p_i+1)(p_j - p_j+1), from the upper half of the products [n x n]; i <= j. */
static double of_differences(const phema_quad *products, size_t n, size_t i, size_t j)
{
    phema_quad inner = i == j ? products[i * n + j + 1] : products[(i + 1) * n + j];
    return (double)(products[i * n + j] - products[i * n + j + 1] - inner +
                    products[(i + 1) * n + j + 1]);
}

/* What the motion says of the snapshots of a set. */
static enum phema_status model(double *out, const struct phema_profile_set *set, size_t n,
                               const struct phema_motion *motion, struct phema_error *err)
{
    phema_quad with[N_SIDE * N_SIDE] = {0}, self[N_SIDE] = {0};
    struct phema_products products = {.reach = SIZE_MAX,
                                      .stride = n,
                                      .with = {[PHEMA_GRAM_MOTION] = with},
                                      .self = {[PHEMA_GRAM_MOTION] = self}};
    enum phema_status status = phema_products_find(&products, set, motion, err);
    for (size_t i = 0, at = 0; !status && i + 1 < n; i++)
        for (size_t j = i; j + 1 < n; j++)
            out[at++] = of_differences(with, n, i, j);
    return status;
}

/* The speed of a drift of a coherence of 1, in each interval of the motion. A steady one leads as far
 * as the walk does, from each time of a snapshot to the next; a direction lasts for as long as the
 * training has lasted, at most. */
static void set_speeds(double *speeds, enum phema_drift kind, const struct phema_motion *motion,
                       const struct phema_motion_terms *terms)
{
    double last = motion->ends[motion->n_intervals - 1];
    for (size_t k = 0, interval = 0; k < motion->n_intervals; k++) {
        double begin = k ? motion->ends[k - 1] : 0;
        while (terms->ends[interval] < motion->ends[k])
            interval++;
        double length = terms->ends[interval] - (interval ? terms->ends[interval - 1] : 0);
        double middle = (begin + motion->ends[k]) / 2;
        speeds[k] = kind == PHEMA_DRIFT_STEADY ? sqrt(motion->wander[k] / fmin(length, middle))
                                               : sqrt(last * motion->wander[k]) / middle;
    }
}

/* Of the kept snapshots of one end of a series.
 *   speeds  [n_kinds x n_intervals] of a coherence of 1 */
static enum phema_status model_kinds(struct drift *drift, const struct phema_profile *snapshots,
                                     const struct phema_motion *motion, double *speeds,
                                     size_t n_kinds, struct phema_error *err)
{
    size_t n = drift->n + 1;
    const struct phema_problem problem = {.snapshots = snapshots, .n = n, .motion = motion};
    struct phema_profile_set set = {0};
    enum phema_status status = phema_profile_set_build(&set, &problem, err);
    if (!status)
        status = model(drift->walked, &set, n, motion, err);
    struct phema_motion coherent = *motion;
    for (size_t kind = 0; !status && kind < n_kinds; kind++) {
        double *drifted = drift->drifted[kind];
        coherent.speed = speeds + kind * motion->n_intervals;
        status = model(drifted, &set, n, &coherent, err);
        for (size_t k = 0; !status && k < PHEMA_TRIANGLE(drift->n); k++)
            drifted[k] -= drift->walked[k];
    }
    phema_profile_set_clear(&set);
    return status;
}

/* What a likelihood is of: shares of the walk and of one kind of drift. */
struct coherence {
    double walk, drift;
};

/* The log likelihood, an element; -inf: snapshots depend on each other. */
static double rate(const struct drift *drift, enum phema_drift kind,
                   const struct coherence *coherence)
{
    size_t n = drift->n;
    const double *drifted = drift->drifted[kind];
    double factor[N_DRIFT * N_DRIFT] = {0}, seen[N_DRIFT * N_DRIFT];
    double log_determinant = 0, trace = 0;
    for (size_t i = 0, at = 0; i < n; i++) {
        for (size_t j = i; j < n; j++, at++) {
            factor[j * n + i] = drift->noise[at] + coherence->walk * drift->walked[at] +
                                coherence->drift * drifted[at];
            seen[i * n + j] = seen[j * n + i] = drift->seen[at];
        }
    }
    if (!phema_float64_factor(factor, n))
        return -HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        log_determinant += 2 * phema_motion_log(factor[i * n + i]);
        phema_float64_solve(factor, seen + i * n, n);
        trace += seen[i * n + i];
    }
    return -(log_determinant + trace) / 2;
}

/* A mean by likelihoods, which are relative to the highest so far, so that sums stay finite. */
struct mixture {
    double highest, total, walk, drift;
};

static void mixture_add(struct mixture *mixture, double height, double prior, double walk,
                        double drift)
{
    bool is_first = !(mixture->total > 0);
    if (!(height > -HUGE_VAL))
        return;
    double kept = is_first ? 0 : phema_motion_exp(fmin(mixture->highest - height, 0));
    double share = prior * (is_first ? 1 : phema_motion_exp(fmin(height - mixture->highest, 0)));
    mixture->highest = is_first ? height : fmax(mixture->highest, height);
    mixture->total = kept * mixture->total + share;
    mixture->walk = kept * mixture->walk + share * walk;
    mixture->drift = kept * mixture->drift + share * drift;
}

/* The two ends of a series, or one. */
struct sides {
    struct drift items[2];
    size_t n;
    double n_independent;
};

static double height_of(const struct sides *sides, enum phema_drift kind,
                        const struct coherence *coherence)
{
    double sum = 0;
    for (size_t s = 0; s < sides->n; s++)
        sum += sides->n_independent * rate(&sides->items[s], kind, coherence);
    return sum;
}

/*   without  the log likelihood without a drift */
static struct phema_motion_coherence mix_kind(const struct sides *sides, enum phema_drift kind,
                                              double without)
{
    bool is_steady = kind == PHEMA_DRIFT_STEADY;
    int n_walks = is_steady ? N_WALKS : 1, n_amounts = is_steady ? N_STEADY : N_AGEING;
    struct mixture mixture = {0};
    double least = without - HOPELESS, best = without, height = without;
    mixture_add(&mixture, without, 2. / 3, 1, 0);
    struct coherence tried = {1, 0};
    for (int a = 0; a < n_walks && best > least; a++) {
        best = -HUGE_VAL; /* a share that is smaller than a hopeless one is not better */
        tried.drift = is_steady ? LEAST_STEADY : LEAST_AGEING;
        /* nor is an amount that is larger than a hopeless one */
        for (int k = 0; k < n_amounts && (best == -HUGE_VAL || height > best - HOPELESS); k++) {
            height = height_of(sides, kind, &tried);
            best = fmax(best, height);
            mixture_add(&mixture, height, 1. / (3 * n_walks * n_amounts), tried.walk, tried.drift);
            tried.drift *= RATIO;
        }
        tried.walk /= RATIO;
    }
    if (!(mixture.total > 0))
        return (struct phema_motion_coherence){
            .kind = kind, .walk = 1, .evidence = -HUGE_VAL, .gain = -HUGE_VAL};
    double evidence = mixture.highest + phema_motion_log(mixture.total);
    return (struct phema_motion_coherence){kind, mixture.walk / mixture.total,
                                           mixture.drift / mixture.total, evidence,
                                           evidence - without};
}

/* Sums over the sample, and what each kind of drift says of them. */
static enum phema_status find_sides(struct sides *sides, size_t n_kinds,
                                    const struct phema_motion *walk,
                                    const struct phema_motion_work *work,
                                    const struct phema_motion_data *data,
                                    struct phema_arena *memory, struct phema_error *err)
{
    size_t n = work->n_kept < N_SIDE ? work->n_kept : N_SIDE;
    double *speeds = phema_arena_array(memory, n_kinds * walk->n_intervals, sizeof(*speeds));
    double *differences =
        phema_arena_array(memory, (n - 1) * data->sample->n_elems, sizeof(*differences));
    if (!speeds || !differences)
        return phema_fail_memory(err);
    for (size_t kind = 0; kind < n_kinds; kind++)
        set_speeds(speeds + kind * walk->n_intervals, (enum phema_drift)kind, walk, &work->terms);
    sides->n = work->n_kept > n && work->n_kept <= MOST_SIDES ? 2 : 1;
    sides->n_independent = phema_motion_independent(data->sample->n_elems);
    enum phema_status status = PHEMA_OK;
    for (size_t s = 0; !status && s < sides->n; s++) {
        struct drift *drift = &sides->items[s];
        size_t first = s ? work->n_kept - n : 0;
        drift->n = n - 1;
        phema_motion_find_seen(drift->seen, drift->noise, differences, data, work->origins + first,
                               n);
        status = model_kinds(drift, work->kept + first, walk, speeds, n_kinds, err);
    }
    return status;
}

PHEMA_FALLIBLE phema_motion_find_coherence(struct phema_motion_coherence *out, size_t n_kinds,
                                           const struct phema_motion *walk,
                                           const struct phema_motion_work *work,
                                           const struct phema_motion_data *data,
                                           struct phema_error *err)
{
    struct phema_arena memory = {0};
    struct sides *sides = phema_arena_alloc(&memory, sizeof(*sides));
    enum phema_status status = sides ? PHEMA_OK : phema_fail_memory(err);
    if (!status)
        status = find_sides(sides, n_kinds, walk, work, data, &memory, err);
    double without = status ? 0 : height_of(sides, PHEMA_DRIFT_STEADY, &(struct coherence){1, 0});
    for (size_t kind = 0; !status && kind < n_kinds; kind++)
        out[kind] = mix_kind(sides, (enum phema_drift)kind, without);
    phema_arena_clear(&memory);
    return status;
}

PHEMA_FALLIBLE phema_motion_set_coherence(struct phema_motion *motion,
                                          const struct phema_motion_coherence *coherence,
                                          const struct phema_motion_work *work,
                                          struct phema_error *err)
{
    if (!(coherence->drift > 0))
        return PHEMA_OK;
    motion->speed = calloc(motion->n_intervals, sizeof(double));
    if (!motion->speed)
        return phema_fail_memory(err);
    set_speeds(motion->speed, coherence->kind, motion, &work->terms);
    for (size_t k = 0; k < motion->n_intervals; k++) {
        motion->wander[k] *= coherence->walk;
        motion->speed[k] *= sqrt(coherence->drift);
    }
    return PHEMA_OK;
}
