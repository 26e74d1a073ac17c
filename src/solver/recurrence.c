// SPDX-License-Identifier: Apache-2.0
/* recurrence.c - exact inner products of averages e = beta(k) e + (1 - beta(k)) theta_k: one pass
 * over the steps of an interval carries the products of every pair of families at the same step.
 * Sums are compensated, so that long double (64 bits) gives some 22 digits after a million steps.
 */
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
    struct sum single; /* sum_j F_j */
    long double drop;  /* 1 - beta at this step */
    long double open;  /* weight in the bin of this step, so far */
    long double kept;  /* product of the betas of the interval */
    size_t next_beta;  /* of a table */
};

struct phema_steps {
    const struct phema_profile_set *set;
    const struct phema_family_pair *pairs;
    size_t n_pairs;
    uint64_t step;       /* the last completed one */
    uint64_t resolution; /* steps of a bin */
    struct family_sums *families;
    struct pair_sums *sums;
};

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

enum phema_status phema_steps_open(struct phema_steps **out, const struct phema_profile_set *set,
                                   const struct phema_family_pair *pairs, size_t n_pairs,
                                   struct phema_error *err)
{
    double n_steps = (double)set->times[set->n_times - 1];
    if (n_steps * (double)n_pairs > MAX_WORK) {
        (void)phema_fail(err, PHEMA_ERR_INPUTS,
                         "averages are followed step by step: expected at most 1e11 steps times "
                         "pairs of widths, found %.0f steps and %zu pairs; use fewer widths, or "
                         "times counted in updates with update_every 1",
                         n_steps, n_pairs);
        return PHEMA_ERR_INPUTS;
    }
    struct phema_steps *steps = calloc(1, sizeof(*steps));
    if (!steps)
        return phema_fail_memory(err);
    *steps = (struct phema_steps){
        .set = set, .pairs = pairs, .n_pairs = n_pairs, .resolution = find_resolution(set)};
    steps->families = calloc(set->n_families, sizeof(*steps->families));
    steps->sums = calloc(n_pairs + 1, sizeof(*steps->sums));
    if (!steps->families || !steps->sums) {
        phema_steps_close(steps);
        return phema_fail_memory(err);
    }
    for (size_t k = 0; k < set->n_families; k++) {
        const struct phema_family *family = &set->families[k];
        steps->families[k].power = (long double)family->power;
        steps->families[k].rate = (long double)family->rate;
        steps->families[k].origin = (long double)family->origin;
        steps->families[k].span = (long double)(family->end - family->origin);
        steps->families[k].half_life = (long double)(family->turn * family->ramp);
        steps->families[k].ramp = (long double)family->ramp;
    }
    *out = steps;
    return PHEMA_OK;
}

void phema_steps_close(struct phema_steps *steps)
{
    if (!steps)
        return;
    free(steps->families);
    free(steps->sums);
    free(steps);
}

/* beta = F(c-1)/F(c) = ((c-1-o)/(c-o))^power; with update_every U > 1 it is (c/(c+1))^power where
 * (c-1) mod U = 0, else 1, and the first call copies. */
static long double power_drop(const struct family_sums *sums, uint64_t every, uint64_t step)
{
    if (every > 1) {
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
    long double ramped = sums->ramp * (long double)step;
    return -expm1l(-ln_2 / (ramped < sums->half_life ? ramped : sums->half_life));
}

static long double table_drop(struct family_sums *sums, const struct phema_betas *betas,
                              uint64_t step)
{
    if (sums->next_beta == betas->n || betas->steps[sums->next_beta] != step)
        return 0;
    return 1 - (long double)betas->betas[sums->next_beta++];
}

static void find_drops(struct phema_steps *steps, uint64_t step)
{
    for (size_t k = 0; k < steps->set->n_families; k++) {
        const struct phema_family *family = &steps->set->families[k];
        struct family_sums *sums = &steps->families[k];
        switch (family->form) {
        case PHEMA_FAMILY_POWER:
            sums->drop = power_drop(sums, family->every, step);
            break;
        case PHEMA_FAMILY_EXPONENTIAL:
            sums->drop = -expm1l(-sums->rate);
            break;
        case PHEMA_FAMILY_RAMPED:
            sums->drop = ramped_drop(sums, step);
            break;
        case PHEMA_FAMILY_COSINE:
            sums->drop = cosine_drop(sums, step);
            break;
        case PHEMA_FAMILY_RAW:
            sums->drop = 1;
            break;
        case PHEMA_FAMILY_TABLE:
            sums->drop = table_drop(sums, family->betas, step);
            break;
        }
    }
}

/* A full bin counts with the product of its weights. */
static void close_bin(struct phema_steps *steps, const struct phema_interval *interval)
{
    for (size_t i = 0; i < steps->n_pairs; i++) {
        const struct phema_family_pair *pair = &steps->pairs[i];
        if (interval->is_active[pair->a] && interval->is_active[pair->b])
            add(&steps->sums[i].densities,
                steps->families[pair->a].open * steps->families[pair->b].open);
    }
    for (size_t k = 0; k < steps->set->n_families; k++)
        steps->families[k].open = 0;
}

/* One step. The sum over full bins is S(k) = bb' S(k-1); the weight of the open bin is
 * m(k) = b m(k-1) + (1-b). The sum of F_j F'_j is S(k) = bb' (S(k-1) + 1), as the weight before
 * step k is 1 at step k-1; likewise b (S(k-1) + 1) for sum F_j. Only the added number is rounded,
 * which is small next to S. */
static void advance(struct phema_steps *steps, const struct phema_interval *interval, uint64_t step)
{
    for (size_t k = 0; k < steps->set->n_families; k++) {
        struct family_sums *sums = &steps->families[k];
        add(&sums->single, 1 - sums->drop - sums->drop * sums->single.value);
        sums->open += sums->drop * (1 - sums->open);
        sums->kept *= 1 - sums->drop;
    }
    for (size_t i = 0; i < steps->n_pairs; i++) {
        const struct phema_family_pair *pair = &steps->pairs[i];
        if (!interval->is_active[pair->a] || !interval->is_active[pair->b])
            continue;
        struct pair_sums *sums = &steps->sums[i];
        long double a = steps->families[pair->a].drop;
        long double b = steps->families[pair->b].drop;
        long double drop = a + b - a * b;
        add(&sums->densities, -drop * sums->densities.value);
        add(&sums->both, 1 - drop - drop * sums->both.value);
    }
    if (step % steps->resolution == 0)
        close_bin(steps, interval);
}

void phema_steps_fill(struct phema_steps *steps, struct phema_interval *interval)
{
    const struct phema_profile_set *set = steps->set;
    for (size_t k = 0; k < set->n_families; k++) {
        steps->families[k].single = (struct sum){0};
        steps->families[k].kept = 1;
    }
    for (size_t i = 0; i < steps->n_pairs; i++)
        steps->sums[i] = (struct pair_sums){0};
    for (uint64_t end = (uint64_t)set->times[interval->time]; steps->step < end;) {
        find_drops(steps, ++steps->step);
        advance(steps, interval, steps->step);
    }
    for (size_t k = 0; k < set->n_families; k++) {
        interval->decays[k] =
            interval->time ? phema_profile_set_decay(set, k, interval->time - 1, interval->time)
                           : (phema_quad)steps->families[k].kept;
        interval->singles[k] = total(&steps->families[k].single);
        interval->open[k] = (phema_quad)steps->families[k].open;
    }
    for (size_t i = 0; i < steps->n_pairs; i++) {
        interval->both[i] = total(&steps->sums[i].both);
        interval->densities[i] = total(&steps->sums[i].densities) / (phema_quad)steps->resolution;
    }
}

/* Weight that b, which ends later, will have on the rest of the bin in which a ends. It is 0 for
 * averages that change at the first step of a bin alone, and counts as 0 for those without a closed
 * form. */
static phema_quad weight_to_come(const struct phema_steps *steps, const struct phema_member *a,
                                 const struct phema_member *b, phema_quad decay)
{
    const struct phema_profile_set *set = steps->set;
    const struct phema_family *family = &set->families[b->family];
    if (steps->resolution <= 1 || family->every > 1 || a->time == b->time ||
        family->form == PHEMA_FAMILY_TABLE || family->form == PHEMA_FAMILY_RAMPED)
        return 0;
    phema_quad bin_end = (phema_quad)phema_steps_bin_end(steps);
    phema_quad end = set->times[b->time];
    return (bin_end < end ? phema_family_decay(family, bin_end, end) : 1) - decay;
}

uint64_t phema_steps_bin_end(const struct phema_steps *steps)
{
    return (steps->step + steps->resolution - 1) / steps->resolution * steps->resolution;
}

phema_quad phema_steps_open_bin(const struct phema_steps *steps,
                                const struct phema_interval *interval, const struct phema_member *a,
                                const struct phema_member *b, phema_quad decay)
{
    phema_quad of_b = decay * interval->open[b->family] + weight_to_come(steps, a, b, decay);
    return interval->open[a->family] * of_b / (phema_quad)steps->resolution;
}
