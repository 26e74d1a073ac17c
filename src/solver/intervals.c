// SPDX-License-Identifier: Apache-2.0
/* intervals.c - iterates the intervals between the times of a set: in closed form in continuous
 * time, else step by step. Step by step, one pass over the steps of an interval carries exact
 * products of the averages e = beta(k) e + (1 - beta(k)) theta_k for every pair of families. Sums
 * are compensated, so that long double (64 bits) gives some 22 digits after a million steps. */
#include "intervals.h"

#include <stdlib.h>

#define MAX_WORK 1e11 /* steps times pairs of families: minutes */

struct sum { /* Kahan's: the value and its accumulated rounding error */
    long double value;
    long double rest;
};

struct pair_sums {
    struct sum densities; /* over full bins: weight of a times weight of b */
    struct sum both;      /* sum_j F_j G_j, F and G the weights before step j, both at this step */
};

struct family_sums {
    long double power, rate; /* of the family */
    long double origin, span, half_life, ramp;
    uint64_t reset;    /* its step, 0: none */
    struct sum single; /* sum_j F_j */
    long double drop;  /* 1 - beta at this step */
    long double open;  /* weight in the bin of this step, so far */
    long double kept;  /* product of the betas of the interval */
    size_t next_beta;  /* of a table */
};

struct phema_intervals {
    const struct phema_profile_set *set;
    const struct phema_family_pairs *pairs;
    size_t next_time;
    struct phema_interval interval;
    struct phema_arena memory; /* of all arrays */
    /* in continuous time */
    struct phema_local *locals; /* [n_families] */
    struct phema_quadrature rule;
    /* step by step */
    uint64_t step;       /* the last completed one */
    uint64_t resolution; /* steps of a bin */
    struct family_sums *families;
    struct pair_sums *sums; /* [pairs->n] */
};

/* ---- Pairs of families ---- */

bool phema_family_pairs_begin(struct phema_family_pairs *pairs, size_t n_families,
                              struct phema_arena *memory)
{
    pairs->n_families = n_families;
    pairs->at = phema_arena_array(memory, n_families * n_families, sizeof(*pairs->at));
    return pairs->at != NULL;
}

void phema_family_pairs_want(struct phema_family_pairs *pairs, size_t a, size_t b)
{
    pairs->n += !pairs->at[a * pairs->n_families + b];
    pairs->at[a * pairs->n_families + b] = pairs->at[b * pairs->n_families + a] = 1;
}

bool phema_family_pairs_list(struct phema_family_pairs *pairs, struct phema_arena *memory)
{
    size_t n_families = pairs->n_families, n = 0;
    pairs->items = phema_arena_array(memory, pairs->n, sizeof(*pairs->items));
    if (!pairs->items)
        return false;
    for (size_t a = 0; a < n_families; a++) {
        for (size_t b = 0; b <= a; b++) {
            if (!pairs->at[a * n_families + b])
                continue;
            pairs->items[n] = (struct phema_family_pair){a, b};
            pairs->at[a * n_families + b] = pairs->at[b * n_families + a] = n++;
        }
    }
    return true;
}

bool phema_family_pairs_has(const struct phema_family_pairs *pairs, size_t a, size_t b)
{
    /* places of unwanted pairs are 0, which is of families 0 and 0, the first of all */
    size_t at = pairs->at[a * pairs->n_families + b];
    return at != 0 || (a == 0 && b == 0);
}

/* ---- Step by step ---- */

static void add(struct sum *sum, long double term)
{
    long double corrected = term + sum->rest;
    long double value = sum->value + corrected;
    sum->rest = corrected - (value - sum->value);
    sum->value = value;
}

static phema_quad total(const struct sum *sum)
{
    return (phema_quad)sum->value + (phema_quad)sum->rest;
}

/* The U that all averages with U > 1 share, 1 when they differ. */
static uint64_t find_resolution(const struct phema_profile_set *set)
{
    uint64_t resolution = 1;
    for (size_t k = 0; k < set->n_families; k++) {
        uint64_t every = set->families[k].every;
        if (every > 1 && resolution > 1 && every != resolution)
            return 1;
        if (every > 1)
            resolution = every;
    }
    return resolution;
}

static enum phema_status begin_steps(struct phema_intervals *intervals, struct phema_error *err)
{
    const struct phema_profile_set *set = intervals->set;
    size_t n_pairs = intervals->pairs->n;
    double n_steps = (double)set->times[set->n_times - 1];
    if (n_steps * (double)n_pairs > MAX_WORK)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "averages are followed step by step: expected at most 1e11 steps times "
                          "pairs of widths, found %.0f steps and %zu pairs; use fewer widths, or "
                          "times counted in updates with update_every 1",
                          n_steps, n_pairs);
    intervals->resolution = find_resolution(set);
    intervals->families =
        phema_arena_array(&intervals->memory, set->n_families, sizeof(*intervals->families));
    intervals->sums = phema_arena_array(&intervals->memory, n_pairs, sizeof(*intervals->sums));
    if (!intervals->families || !intervals->sums)
        return phema_fail_memory(err);
    for (size_t k = 0; k < set->n_families; k++) {
        const struct phema_family *family = &set->families[k];
        intervals->families[k] = (struct family_sums){
            .power = (long double)family->power,
            .rate = (long double)family->rate,
            .origin = (long double)family->origin,
            .span = (long double)(family->end - family->origin),
            .half_life = (long double)(family->turn * family->ramp),
            .ramp = (long double)family->ramp,
            .reset = (uint64_t)family->reset,
        };
    }
    return PHEMA_OK;
}

/* beta = F(c-1)/F(c) = ((c-1-o)/(c-o))^power; with update_every U > 1 it is (c/(c+1))^power where
 * (c-1) mod U = 0, else 1, and the first call copies. Then c counts from the origin o as well,
 * which is a whole number. */
static long double power_drop(const struct family_sums *sums, uint64_t every, uint64_t step)
{
    if (every > 1) {
        step -= (uint64_t)sums->origin;
        if (step == 1)
            return 1;
        if ((step - 1) % every != 0)
            return 0;
        return -expm1l(sums->power * log1pl(-1 / ((long double)step + 1)));
    }
    long double now = (long double)step - sums->origin;
    if (now <= 0)
        return 0; /* nothing has begun */
    return now <= 1 ? 1 : -expm1l(sums->power * log1pl(-1 / now));
}

static long double cosine_drop(const struct family_sums *sums, uint64_t step)
{
    const long double half_pi = 1.57079632679489661923132169163975144L;
    long double now = (long double)step - sums->origin;
    if (now <= 0 || now >= sums->span + 1)
        return 0;
    if (now <= 1)
        return 1;
    long double before = sinl(half_pi * (now - 1) / sums->span);
    long double after = now >= sums->span ? 1 : sinl(half_pi * now / sums->span);
    return (after - before) * (after + before) / (after * after);
}

static long double ramped_drop(const struct family_sums *sums, uint64_t step)
{
    const long double ln_2 = 0.693147180559945309417232121458176568L;
    long double ramped = sums->ramp * ((long double)step - sums->origin);
    return -expm1l(-ln_2 / (ramped < sums->half_life ? ramped : sums->half_life));
}

static long double table_drop(struct family_sums *sums, const struct phema_betas *betas,
                              uint64_t step)
{
    step -= (uint64_t)sums->origin;
    while (sums->next_beta < betas->n && betas->steps[sums->next_beta] < step)
        sums->next_beta++; /* up to the reset */
    if (sums->next_beta == betas->n || betas->steps[sums->next_beta] != step)
        return 0;
    return 1 - (long double)betas->betas[sums->next_beta++];
}

/* 1 - beta at a step. A reset makes the steps before it irrelevant. */
static long double find_drop(struct family_sums *sums, const struct phema_family *family,
                             uint64_t step)
{
    if (step <= sums->reset)
        return step == sums->reset;
    switch (family->form) {
    case PHEMA_FAMILY_POWER:
        return power_drop(sums, family->every, step);
    case PHEMA_FAMILY_EXPONENTIAL:
        return -expm1l(-sums->rate);
    case PHEMA_FAMILY_RAMPED:
        return ramped_drop(sums, step);
    case PHEMA_FAMILY_COSINE:
        return cosine_drop(sums, step);
    case PHEMA_FAMILY_TABLE:
        return table_drop(sums, family->betas, step);
    case PHEMA_FAMILY_RAW:
        break;
    }
    return 1;
}

static bool is_active(const struct phema_intervals *intervals, size_t pair)
{
    const struct phema_family_pair *families = &intervals->pairs->items[pair];
    return intervals->interval.is_active[families->a] && intervals->interval.is_active[families->b];
}

/* A full bin counts with the product of its weights. */
static void close_bin(struct phema_intervals *intervals)
{
    struct family_sums *families = intervals->families;
    for (size_t i = 0; i < intervals->pairs->n; i++)
        if (is_active(intervals, i))
            add(&intervals->sums[i].densities, families[intervals->pairs->items[i].a].open *
                                                   families[intervals->pairs->items[i].b].open);
    for (size_t k = 0; k < intervals->set->n_families; k++)
        families[k].open = 0;
}

/* One step. The sum over full bins is S(k) = bb' S(k-1); the weight of the open bin is
 * m(k) = b m(k-1) + (1-b). The sum of F_j F'_j is S(k) = bb' (S(k-1) + 1), as the weight before
 * step k is 1 at step k-1; likewise b (S(k-1) + 1) for sum F_j. Only the added number is rounded,
 * which is small next to S. */
static void advance(struct phema_intervals *intervals, uint64_t step)
{
    for (size_t k = 0; k < intervals->set->n_families; k++) {
        struct family_sums *sums = &intervals->families[k];
        sums->drop = find_drop(sums, &intervals->set->families[k], step);
        add(&sums->single, 1 - sums->drop - sums->drop * sums->single.value);
        sums->open += sums->drop * (1 - sums->open);
        sums->kept *= 1 - sums->drop;
    }
    for (size_t i = 0; i < intervals->pairs->n; i++) {
        if (!is_active(intervals, i))
            continue;
        struct pair_sums *sums = &intervals->sums[i];
        long double a = intervals->families[intervals->pairs->items[i].a].drop;
        long double b = intervals->families[intervals->pairs->items[i].b].drop;
        long double drop = a + b - a * b;
        add(&sums->densities, -drop * sums->densities.value);
        add(&sums->both, 1 - drop - drop * sums->both.value);
    }
    if (step % intervals->resolution == 0)
        close_bin(intervals);
}

static void fill_stepwise(struct phema_intervals *intervals)
{
    const struct phema_profile_set *set = intervals->set;
    struct phema_interval *interval = &intervals->interval;
    for (size_t k = 0; k < set->n_families; k++) {
        intervals->families[k].single = (struct sum){0};
        intervals->families[k].kept = 1;
    }
    for (size_t i = 0; i < intervals->pairs->n; i++)
        intervals->sums[i] = (struct pair_sums){0};
    for (uint64_t end = (uint64_t)set->times[interval->time]; intervals->step < end;)
        advance(intervals, ++intervals->step);
    for (size_t k = 0; k < set->n_families; k++) {
        interval->decays[k] =
            interval->time ? phema_profile_set_decay(set, k, interval->time - 1, interval->time)
                           : (phema_quad)intervals->families[k].kept;
        interval->singles[k] = total(&intervals->families[k].single);
        interval->open[k] = (phema_quad)intervals->families[k].open;
    }
    for (size_t i = 0; i < intervals->pairs->n; i++) {
        interval->both[i] = total(&intervals->sums[i].both);
        interval->densities[i] =
            total(&intervals->sums[i].densities) / (phema_quad)intervals->resolution;
    }
}

phema_quad phema_intervals_bin_end(const struct phema_intervals *intervals)
{
    uint64_t resolution = intervals->resolution;
    uint64_t n_bins = (intervals->step + resolution - 1) / resolution;
    return (phema_quad)(n_bins * resolution);
}

/* Weight that b, which ends later, will have on the rest of the bin in which a ends. It is 0 for
 * averages that change at the first step of a bin alone, and counts as 0 for those without a closed
 * form. */
static phema_quad weight_to_come(const struct phema_intervals *intervals,
                                 const struct phema_member *a, const struct phema_member *b,
                                 phema_quad decay)
{
    const struct phema_profile_set *set = intervals->set;
    const struct phema_family *family = &set->families[b->family];
    if (intervals->resolution <= 1 || family->every > 1 || a->time == b->time ||
        family->form == PHEMA_FAMILY_TABLE || family->form == PHEMA_FAMILY_RAMPED)
        return 0;
    phema_quad bin_end = phema_intervals_bin_end(intervals);
    phema_quad end = set->times[b->time];
    return (bin_end < end ? phema_family_decay(family, bin_end, end) : 1) - decay;
}

phema_quad phema_intervals_open_bin(const struct phema_intervals *intervals,
                                    const struct phema_member *a, const struct phema_member *b,
                                    phema_quad decay)
{
    if (!intervals->set->is_stepwise)
        return 0;
    const phema_quad *open = intervals->interval.open;
    phema_quad of_b = decay * open[b->family] + weight_to_come(intervals, a, b, decay);
    return open[a->family] * of_b / (phema_quad)intervals->resolution;
}

/* ---- Iteration ---- */

static void alloc_intervals(struct phema_intervals *intervals)
{
    size_t n_families = intervals->set->n_families, n_pairs = intervals->pairs->n;
    struct phema_interval *interval = &intervals->interval;
    struct phema_arena *memory = &intervals->memory;
    interval->is_active = phema_arena_array(memory, n_families, sizeof(bool));
    interval->decays = phema_arena_array(memory, n_families, sizeof(phema_quad));
    interval->singles = phema_arena_array(memory, n_families, sizeof(phema_quad));
    interval->open = phema_arena_array(memory, n_families, sizeof(phema_quad));
    interval->both = phema_arena_array(memory, n_pairs, sizeof(phema_quad));
    interval->densities = phema_arena_array(memory, n_pairs, sizeof(phema_quad));
    intervals->locals = phema_arena_array(memory, n_families, sizeof(*intervals->locals));
}

enum phema_status phema_intervals_open(struct phema_intervals **out,
                                       const struct phema_profile_set *set,
                                       const struct phema_family_pairs *pairs,
                                       struct phema_error *err)
{
    struct phema_intervals *intervals = calloc(1, sizeof(*intervals));
    if (!intervals)
        return phema_fail_memory(err);
    intervals->set = set;
    intervals->pairs = pairs;
    alloc_intervals(intervals);
    enum phema_status status = intervals->memory.is_failed ? phema_fail_memory(err) : PHEMA_OK;
    if (!status && set->is_stepwise)
        status = begin_steps(intervals, err);
    if (status)
        phema_intervals_close(intervals);
    else
        *out = intervals;
    return status;
}

void phema_intervals_close(struct phema_intervals *intervals)
{
    phema_arena_clear(&intervals->memory);
    free(intervals);
}

static void fill_continuous(struct phema_intervals *intervals, phema_quad l, phema_quad u)
{
    const struct phema_profile_set *set = intervals->set;
    struct phema_interval *interval = &intervals->interval;
    for (size_t k = 0; k < set->n_families; k++) {
        if (!interval->is_active[k])
            continue;
        phema_quad decay = interval->time
                               ? phema_profile_set_decay(set, k, interval->time - 1, interval->time)
                               : phema_family_decay(&set->families[k], l, u);
        intervals->locals[k] = phema_family_local(&set->families[k], l, u, decay);
        interval->decays[k] = intervals->locals[k].decay;
        interval->singles[k] = phema_local_single(&intervals->locals[k], &intervals->rule);
    }
    for (size_t i = 0; i < intervals->pairs->n; i++) {
        if (!is_active(intervals, i))
            continue;
        const struct phema_local *a = &intervals->locals[intervals->pairs->items[i].a];
        const struct phema_local *b = &intervals->locals[intervals->pairs->items[i].b];
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
    if (set->is_stepwise)
        fill_stepwise(intervals);
    else
        fill_continuous(intervals, l, u);
    return interval;
}
