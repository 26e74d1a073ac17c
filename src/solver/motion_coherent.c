// SPDX-License-Identifier: Apache-2.0
/* motion_coherent.c - the posterior mean of the coherence, from the differences of the earliest
 * snapshots (docs/numerics.md, N36). Their modelled products are linear in it. */
#include "motion_coherent.h"

#include <math.h>

#include "cholesky.h"
#include "gram.h"
#include "motion_likelihood.h"

#define N_EARLIEST ((size_t)24) /* snapshots */
#define N_MOST     (N_EARLIEST - 1)

#define TRIANGLE(n) ((n) * ((n) + 1) / 2)

/* Half of the prior is on no coherence, the other half on all amounts alike. */
#define LEAST_AMOUNT 0x1p-8
#define RATIO        4
#define N_AMOUNTS    8

/* Products of the differences of neighbours: upper halves of [n x n]. */
struct drift {
    size_t n;
    double seen[TRIANGLE(N_MOST)];    /* in the sample, an element */
    double walked[TRIANGLE(N_MOST)];  /* modelled without coherence, and the rounding */
    double drifted[TRIANGLE(N_MOST)]; /* what a coherence of 1 adds */
};

static bool has_pair(const struct phema_profile *snapshots, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (snapshots[i].t == snapshots[i + 1].t)
            return true;
    return false;
}

/* (p_i - p_i+1)(p_j - p_j+1), from the upper half of the products [n x n]; i <= j. */
static double of_differences(const phema_quad *products, size_t n, size_t i, size_t j)
{
    phema_quad inner = i == j ? products[i * n + j + 1] : products[(i + 1) * n + j];
    return (double)(products[i * n + j] - products[i * n + j + 1] - inner +
                    products[(i + 1) * n + j + 1]);
}

/* What the motion says of n snapshots. */
static enum phema_status model(double *out, const struct phema_profile *snapshots, size_t n,
                               const struct phema_motion *motion, struct phema_error *err)
{
    phema_quad with[N_EARLIEST * N_EARLIEST] = {0}, self[N_EARLIEST] = {0};
    const struct phema_problem problem = {.snapshots = snapshots, .n = n, .motion = motion};
    struct phema_products products = {.reach = SIZE_MAX,
                                      .stride = n,
                                      .with = {[PHEMA_GRAM_MOTION] = with},
                                      .self = {[PHEMA_GRAM_MOTION] = self}};
    struct phema_profile_set set = {0};
    enum phema_status status = phema_profile_set_build(&set, &problem, err);
    if (!status)
        status = phema_products_find(&products, &set, motion, err);
    phema_profile_set_clear(&set);
    for (size_t i = 0, at = 0; !status && i + 1 < n; i++)
        for (size_t j = i; j + 1 < n; j++)
            out[at++] = of_differences(with, n, i, j);
    return status;
}

static enum phema_status find_drift(struct drift *drift, const struct phema_motion *motion,
                                    const struct phema_motion_work *work,
                                    const struct phema_motion_data *data, struct phema_error *err)
{
    struct phema_arena memory = {0};
    struct phema_motion coherent = *motion;
    size_t n = drift->n + 1, size = TRIANGLE(drift->n);
    double noise[TRIANGLE(N_MOST)];
    double *differences =
        phema_arena_array(&memory, drift->n * data->sample->n_elems, sizeof(*differences));
    if (!differences)
        return phema_fail_memory(err);
    phema_motion_find_seen(drift->seen, noise, differences, data, work->origins, n);
    phema_arena_clear(&memory);
    coherent.coherence = 1;
    enum phema_status status = model(drift->walked, work->kept, n, motion, err);
    if (!status)
        status = model(drift->drifted, work->kept, n, &coherent, err);
    for (size_t k = 0; !status && k < size; k++) {
        drift->drifted[k] -= drift->walked[k];
        drift->walked[k] += noise[k];
    }
    return status;
}

/* The log likelihood, an element; -inf: snapshots depend on each other. */
static double rate(const struct drift *drift, double coherence)
{
    size_t n = drift->n;
    double factor[N_MOST * N_MOST] = {0}, seen[N_MOST * N_MOST];
    double log_determinant = 0, trace = 0;
    for (size_t i = 0, at = 0; i < n; i++) {
        for (size_t j = i; j < n; j++, at++) {
            factor[j * n + i] = drift->walked[at] + coherence * drift->drifted[at];
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

/* Likelihoods are relative to the highest so far, so that sums stay finite. */
static double posterior_mean(const struct drift *drift, double n_independent)
{
    double highest = n_independent * rate(drift, 0), total = 1, mean = 0;
    double amount = LEAST_AMOUNT;
    if (!(highest > -HUGE_VAL))
        return 0;
    for (int k = 0; k < N_AMOUNTS; k++) {
        double height = n_independent * rate(drift, amount);
        if (!(height > -HUGE_VAL))
            break;
        double kept = phema_motion_exp(fmin(highest - height, 0));
        double share = phema_motion_exp(fmin(height - highest, 0)) / N_AMOUNTS;
        highest = fmax(highest, height);
        total = kept * total + share;
        mean = kept * mean + share * amount;
        amount *= RATIO;
    }
    return mean / total;
}

PHEMA_FALLIBLE phema_motion_find_coherence(struct phema_motion *motion,
                                           const struct phema_motion_work *work,
                                           const struct phema_motion_data *data,
                                           struct phema_error *err)
{
    size_t n = work->n_kept < N_EARLIEST ? work->n_kept : N_EARLIEST;
    if (!has_pair(work->kept, n))
        return PHEMA_OK;
    struct drift drift = {.n = n - 1};
    enum phema_status status = find_drift(&drift, motion, work, data, err);
    if (!status)
        motion->coherence = posterior_mean(&drift, phema_motion_independent(data->sample->n_elems));
    return status;
}
