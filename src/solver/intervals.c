// SPDX-License-Identifier: Apache-2.0
/* intervals.c - iterates the intervals between the times of a set: in closed form in continuous
 * time, else step by step. */
#include "intervals.h"

#include <stdlib.h>

struct phema_intervals {
    const struct phema_profile_set *set;
    const struct phema_family_pair *pairs;
    size_t n_pairs;
    size_t next_time;
    struct phema_interval interval;
    struct phema_steps *steps;  /* NULL: time is continuous */
    struct phema_local *locals; /* [n_families] */
    struct phema_quadrature rule;
};

static bool alloc_interval(struct phema_interval *interval, size_t n_families, size_t n_pairs)
{
    interval->is_active = calloc(n_families + 1, sizeof(*interval->is_active));
    interval->decays = calloc(n_families + 1, sizeof(*interval->decays));
    interval->singles = calloc(n_families + 1, sizeof(*interval->singles));
    interval->open = calloc(n_families + 1, sizeof(*interval->open));
    interval->both = calloc(n_pairs + 1, sizeof(*interval->both));
    interval->densities = calloc(n_pairs + 1, sizeof(*interval->densities));
    return interval->is_active && interval->decays && interval->singles && interval->open &&
           interval->both && interval->densities;
}

enum phema_status phema_intervals_open(struct phema_intervals **out,
                                       const struct phema_profile_set *set,
                                       const struct phema_family_pair *pairs, size_t n_pairs,
                                       struct phema_error *err)
{
    struct phema_intervals *intervals = calloc(1, sizeof(*intervals));
    if (!intervals)
        return phema_fail_memory(err);
    intervals->set = set;
    intervals->pairs = pairs;
    intervals->n_pairs = n_pairs;
    intervals->locals = calloc(set->n_families, sizeof(*intervals->locals));
    enum phema_status status = PHEMA_OK;
    if (!intervals->locals || !alloc_interval(&intervals->interval, set->n_families, n_pairs))
        status = phema_fail_memory(err);
    if (!status && set->is_stepwise)
        status = phema_steps_open(&intervals->steps, set, pairs, n_pairs, err);
    if (status) {
        phema_intervals_close(intervals);
        return status;
    }
    *out = intervals;
    return PHEMA_OK;
}

void phema_intervals_close(struct phema_intervals *intervals)
{
    if (!intervals)
        return;
    free(intervals->interval.is_active);
    free(intervals->interval.decays);
    free(intervals->interval.singles);
    free(intervals->interval.open);
    free(intervals->interval.both);
    free(intervals->interval.densities);
    free(intervals->locals);
    phema_steps_close(intervals->steps);
    free(intervals);
}

static void fill_continuous(struct phema_intervals *intervals, phema_quad l, phema_quad u)
{
    const struct phema_profile_set *set = intervals->set;
    struct phema_interval *interval = &intervals->interval;
    for (size_t k = 0; k < set->n_families; k++) {
        if (!interval->is_active[k])
            continue;
        intervals->locals[k] = phema_family_local(&set->families[k], l, u);
        interval->decays[k] = intervals->locals[k].decay;
        interval->singles[k] = phema_local_single(&intervals->locals[k], &intervals->rule);
    }
    for (size_t i = 0; i < intervals->n_pairs; i++) {
        const struct phema_family_pair *pair = &intervals->pairs[i];
        if (!interval->is_active[pair->a] || !interval->is_active[pair->b])
            continue;
        const struct phema_local *a = &intervals->locals[pair->a];
        const struct phema_local *b = &intervals->locals[pair->b];
        interval->both[i] = phema_local_both(a, b, &intervals->rule);
        interval->densities[i] = phema_local_densities(a, b, &intervals->rule);
    }
}

const struct phema_interval *phema_intervals_next(struct phema_intervals *intervals)
{
    const struct phema_profile_set *set = intervals->set;
    struct phema_interval *interval = &intervals->interval;
    if (intervals->next_time == set->n_times)
        return NULL;
    interval->time = intervals->next_time++;
    phema_quad l = interval->time ? set->times[interval->time - 1] : 0;
    phema_quad u = set->times[interval->time];
    interval->length = u - l;
    for (size_t k = 0; k < set->n_families; k++)
        interval->is_active[k] = interval->time <= set->families[k].last_time;
    if (intervals->steps)
        phema_steps_fill(intervals->steps, interval);
    else
        fill_continuous(intervals, l, u);
    return interval;
}

phema_quad phema_intervals_open_bin(const struct phema_intervals *intervals,
                                    const struct phema_member *a, const struct phema_member *b,
                                    phema_quad decay)
{
    if (!intervals->steps)
        return 0;
    return phema_steps_open_bin(intervals->steps, &intervals->interval, a, b, decay);
}

phema_quad phema_intervals_bin_end(const struct phema_intervals *intervals)
{
    return intervals->steps ? (phema_quad)phema_steps_bin_end(intervals->steps)
                            : intervals->set->times[intervals->interval.time];
}
