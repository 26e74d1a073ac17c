// SPDX-License-Identifier: Apache-2.0
/* gram_integrals.c - inner products of profiles of any shape, with any motion. Sums over the
 * intervals of a set are carried forward; the products of a profile are read at its end. */
#include "gram_closed_form.h"

#include <stdlib.h>

#include "intervals.h"

struct sums { /* up to the current time */
    const struct phema_profile_set *set;
    const struct phema_motion *motion;
    struct phema_family_pair *pairs;
    size_t n_pairs;
    size_t *pair_at;          /* [n_families x n_families] index in pairs */
    phema_quad *densities;    /* [n_pairs] integral of p_a p_b */
    phema_quad *both;         /* [n_pairs] integral of F_a F_b */
    phema_quad *moved;        /* [n_pairs] integral of jitter p_a p_b + wander F_a F_b */
    phema_quad *singles;      /* [n_families] integral of F */
    phema_quad *moved_single; /* [n_families] integral of wander F */
    phema_quad wandered;      /* integral of wander */
    size_t motion_at;         /* interval of the motion */
    struct phema_line *lines; /* [n_families] of the member that is read */
    size_t *line_of;          /* [n_families] 1 + the member that the line is of */
    size_t *by_time;          /* [n + n_parts] members in order of their time */
};

static void free_sums(struct sums *sums)
{
    free(sums->pairs);
    free(sums->pair_at);
    free(sums->densities);
    free(sums->both);
    free(sums->moved);
    free(sums->singles);
    free(sums->moved_single);
    free(sums->lines);
    free(sums->line_of);
    free(sums->by_time);
}

/* Marks the pairs of families of which a product is wanted: one is the snapshots', or both are of
 * one target. Returns how many. */
static size_t mark_pairs(size_t *pair_at, const struct phema_profile_set *set)
{
    size_t n_families = set->n_families;
    for (size_t a = 0; a < n_families; a++)
        for (size_t b = 0; b <= a; b++)
            pair_at[a * n_families + b] =
                a == b || set->families[a].is_snapshots || set->families[b].is_snapshots;
    for (size_t i = set->n; i < set->n + set->n_parts; i++) {
        for (size_t j = i; j > set->n && set->owners[j - 1] == set->owners[i]; j--) {
            size_t a = set->members[i].family;
            size_t b = set->members[j - 1].family;
            pair_at[(a > b ? a : b) * n_families + (a > b ? b : a)] = 1;
        }
    }
    size_t n_pairs = 0;
    for (size_t a = 0; a < n_families; a++)
        for (size_t b = 0; b <= a; b++)
            n_pairs += pair_at[a * n_families + b];
    return n_pairs;
}

static void list_pairs(struct sums *sums)
{
    size_t n_families = sums->set->n_families;
    size_t n_pairs = 0;
    for (size_t a = 0; a < n_families; a++) {
        for (size_t b = 0; b <= a; b++) {
            if (!sums->pair_at[a * n_families + b])
                continue;
            sums->pair_at[a * n_families + b] = n_pairs;
            sums->pair_at[b * n_families + a] = n_pairs;
            sums->pairs[n_pairs++] = (struct phema_family_pair){a, b};
        }
    }
}

static bool init_sums(struct sums *sums, const struct phema_profile_set *set,
                      const struct phema_motion *motion)
{
    size_t n_families = set->n_families;
    *sums = (struct sums){.set = set, .motion = motion};
    sums->pair_at = calloc(n_families * n_families + 1, sizeof(*sums->pair_at));
    if (!sums->pair_at)
        return false;
    sums->n_pairs = mark_pairs(sums->pair_at, set);
    sums->pairs = calloc(sums->n_pairs + 1, sizeof(*sums->pairs));
    sums->densities = calloc(sums->n_pairs + 1, sizeof(*sums->densities));
    sums->both = calloc(sums->n_pairs + 1, sizeof(*sums->both));
    sums->moved = calloc(sums->n_pairs + 1, sizeof(*sums->moved));
    sums->singles = calloc(n_families + 1, sizeof(*sums->singles));
    sums->moved_single = calloc(n_families + 1, sizeof(*sums->moved_single));
    sums->lines = calloc(n_families + 1, sizeof(*sums->lines));
    sums->line_of = calloc(n_families + 1, sizeof(*sums->line_of));
    sums->by_time = phema_profile_set_by_time(set);
    if (!sums->pairs || !sums->densities || !sums->both || !sums->moved || !sums->singles ||
        !sums->moved_single || !sums->lines || !sums->line_of || !sums->by_time)
        return false;
    list_pairs(sums);
    return true;
}

/* The amplitudes of an interval of the set, which lies within one of the motion. After the last
 * interval of the motion its amplitudes continue. */
static void find_amplitudes(struct sums *sums, phema_quad u, phema_quad *wander, phema_quad *jitter)
{
    const struct phema_motion *motion = sums->motion;
    *wander = *jitter = 0;
    if (!motion)
        return;
    while (sums->motion_at + 1 < motion->n_intervals &&
           (phema_quad)motion->ends[sums->motion_at] < u)
        sums->motion_at++;
    *wander = (phema_quad)motion->wander[sums->motion_at];
    *jitter = (phema_quad)motion->jitter[sums->motion_at];
}

static phema_quad jitter_at(const struct sums *sums, phema_quad t)
{
    const struct phema_motion *motion = sums->motion;
    size_t k = sums->motion_at;
    while (k + 1 < motion->n_intervals && (phema_quad)motion->ends[k] < t)
        k++;
    return (phema_quad)motion->jitter[k];
}

static void add_interval(struct sums *sums, const struct phema_interval *interval)
{
    phema_quad wander;
    phema_quad jitter;
    find_amplitudes(sums, sums->set->times[interval->time], &wander, &jitter);
    sums->wandered += wander * interval->length;
    for (size_t k = 0; k < sums->set->n_families; k++) {
        if (!interval->is_active[k])
            continue;
        sums->singles[k] = interval->decays[k] * sums->singles[k] + interval->singles[k];
        sums->moved_single[k] =
            interval->decays[k] * sums->moved_single[k] + wander * interval->singles[k];
    }
    for (size_t i = 0; i < sums->n_pairs; i++) {
        const struct phema_family_pair *pair = &sums->pairs[i];
        if (!interval->is_active[pair->a] || !interval->is_active[pair->b])
            continue;
        phema_quad decay = interval->decays[pair->a] * interval->decays[pair->b];
        sums->densities[i] = decay * sums->densities[i] + interval->densities[i];
        sums->both[i] = decay * sums->both[i] + interval->both[i];
        if (sums->motion)
            sums->moved[i] = decay * sums->moved[i] + wander * interval->both[i] +
                             jitter * interval->densities[i];
    }
}

/* <Q_a, Q_b> = integral (1 - F_a)(1 - F_b) up to the end of a; b ends there or later. */
static const struct phema_line *line_of(struct sums *sums, const struct phema_products *products,
                                        size_t i, size_t family)
{
    struct phema_line *line = &sums->lines[family];
    if (sums->line_of[family] == i + 1)
        return line;
    sums->line_of[family] = i + 1;
    const struct phema_profile_set *set = sums->set;
    const struct phema_member *a = &set->members[i];
    size_t pair = sums->pair_at[a->family * set->n_families + family];
    *line = (struct phema_line){
        .begun = {[PHEMA_GRAM_WALK] = set->times[a->time] - sums->singles[a->family],
                  [PHEMA_GRAM_MOTION] = sums->wandered - sums->moved_single[a->family]},
        .lost = {[PHEMA_GRAM_WHITE] = -sums->densities[pair],
                 [PHEMA_GRAM_WALK] = sums->singles[family] - sums->both[pair],
                 [PHEMA_GRAM_MOTION] = sums->moved_single[family] - sums->moved[pair]}};
    phema_line_scale(line, products, set, a, family);
    return line;
}

/* Step by step a bin may be open where a ends. */
static void store_open_pair(struct phema_products *products, const struct sums *sums,
                            const struct phema_intervals *intervals, size_t i, size_t j,
                            const struct phema_line *line)
{
    const struct phema_profile_set *set = sums->set;
    const struct phema_member *a = &set->members[i], *b = &set->members[j];
    phema_quad decay = phema_profile_set_decay(set, b->family, a->time, b->time);
    phema_quad open = phema_intervals_open_bin(intervals, a, b, decay);
    phema_quad product[PHEMA_N_GRAMS] = {[PHEMA_GRAM_WHITE] = open};
    if (products->with[PHEMA_GRAM_MOTION])
        product[PHEMA_GRAM_MOTION] = open * jitter_at(sums, phema_intervals_bin_end(intervals));
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++)
        if (products->with[g])
            product[g] += line->begun[g] - decay * line->lost[g];
    phema_product_store(products, set, i, j, product);
}

/* Products of a member, which ends at this time, with all that end now or later. */
static void read_member(struct phema_products *products, struct sums *sums,
                        const struct phema_intervals *intervals, size_t at)
{
    const struct phema_profile_set *set = sums->set;
    size_t i = sums->by_time[at];
    for (size_t later = at; later < set->n + set->n_parts; later++) {
        size_t j = sums->by_time[later];
        if (!phema_product_is_wanted(set, i, j))
            continue;
        const struct phema_line *line = line_of(sums, products, i, set->members[j].family);
        if (set->is_stepwise)
            store_open_pair(products, sums, intervals, i, j, line);
        else
            phema_line_store(products, set, i, j, line);
    }
}

enum phema_status phema_products_integrate(struct phema_products *products,
                                           const struct phema_profile_set *set,
                                           const struct phema_motion *motion,
                                           struct phema_error *err)
{
    struct sums sums;
    struct phema_intervals *intervals = NULL;
    enum phema_status status = init_sums(&sums, set, motion) ? PHEMA_OK : phema_fail_memory(err);
    if (!status)
        status = phema_intervals_open(&intervals, set, sums.pairs, sums.n_pairs, err);
    size_t at = 0;
    for (const struct phema_interval *interval;
         !status && (interval = phema_intervals_next(intervals));) {
        add_interval(&sums, interval);
        for (; at < set->n + set->n_parts && set->members[sums.by_time[at]].time == interval->time;
             at++)
            read_member(products, &sums, intervals, at);
    }
    phema_intervals_close(intervals);
    free_sums(&sums);
    return status;
}
