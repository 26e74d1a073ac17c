// SPDX-License-Identifier: Apache-2.0
/* recurrence.c - exact inner products of averages e = beta(k) e + (1 - beta(k)) theta_k, for
 * update_every above 1: one pass over the steps carries the products of every two kinds of average
 * at the same step, and the profiles that end there read them. Sums are compensated, so that long
 * double (64 bits) gives some 22 digits after a million steps. */
#include "gram.h"

#include <stdlib.h>

#define MAX_STEPS 1e9  /* minutes */
#define MAX_WORK  1e11 /* steps times pairs of kinds */

struct sum { /* Kahan's: value and what its roundings left out */
    long double value;
    long double rest;
};

struct pair {
    size_t a, b;       /* kinds */
    struct sum white;  /* sum over full bins of weight of a times weight of b */
    struct sum before; /* sum_j F_j G_j, F and G the weights before step j, both at this step */
};

struct pass {
    const struct phema_set *set;
    long double *powers; /* [n_kinds] gamma + 1 */
    long double *drops;  /* [n_kinds] 1 - beta at this step */
    struct sum *befores; /* [n_kinds] sum_j F_j */
    long double *open;   /* [n_kinds] weight in the bin of this step, so far */
    uint64_t resolution; /* steps of a bin */
    struct pair *pairs;  /* every two kinds of which one is the snapshots', and each with itself */
    size_t n_pairs;
    size_t *pair_at; /* [n_kinds x n_kinds] index in pairs */
    size_t *by_time; /* [n + m] members in order of their time */
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

static void free_pass(struct pass *pass)
{
    free(pass->powers);
    free(pass->drops);
    free(pass->befores);
    free(pass->open);
    free(pass->pairs);
    free(pass->pair_at);
    free(pass->by_time);
}

/* The U that all averages with U > 1 share, 1 when they differ. */
static uint64_t find_resolution(const struct phema_set *set)
{
    uint64_t resolution = 1;
    for (size_t k = 0; k < set->n_kinds; k++) {
        uint64_t every = set->kinds[k].every;
        if (every > 1 && resolution > 1 && every != resolution)
            return 1;
        if (every > 1)
            resolution = every;
    }
    return resolution;
}

static size_t count_pairs(const struct phema_set *set)
{
    size_t n_snapshots = 0;
    for (size_t k = 0; k < set->n_kinds; k++)
        n_snapshots += set->kinds[k].is_snapshots;
    size_t n_others = set->n_kinds - n_snapshots;
    return n_snapshots * (n_snapshots + 1) / 2 + n_snapshots * n_others + n_others;
}

static void list_pairs(struct pass *pass)
{
    const struct phema_set *set = pass->set;
    for (size_t a = 0; a < set->n_kinds; a++) {
        for (size_t b = 0; b <= a; b++) {
            if (a != b && !set->kinds[a].is_snapshots && !set->kinds[b].is_snapshots)
                continue;
            pass->pair_at[a * set->n_kinds + b] = pass->n_pairs;
            pass->pair_at[b * set->n_kinds + a] = pass->n_pairs;
            pass->pairs[pass->n_pairs++] = (struct pair){.a = a, .b = b};
        }
    }
}

/* Counting sort: members in order of their time, those of one time in order of their index. */
static void sort_members(size_t *by_time, size_t *starts, const struct phema_set *set)
{
    size_t n_members = set->n + set->m;
    for (size_t i = 0; i < n_members; i++)
        starts[set->members[i].time + 1]++;
    for (size_t t = 0; t < set->n_times; t++)
        starts[t + 1] += starts[t];
    for (size_t i = 0; i < n_members; i++)
        by_time[starts[set->members[i].time]++] = i;
}

static enum phema_status begin_pass(struct pass *pass, const struct phema_set *set,
                                    struct phema_error *err)
{
    size_t n_kinds = set->n_kinds;
    size_t n_pairs = count_pairs(set);
    double steps = (double)set->times[set->n_times - 1];
    if (steps > MAX_STEPS || steps * (double)n_pairs > MAX_WORK) {
        (void)phema_fail(err, PHEMA_ERR_INPUTS,
                         "with update_every above 1 averages are followed step by step: expected "
                         "at most 1e9 steps, and 1e11 steps times pairs of widths, found %.0f "
                         "steps and %zu pairs; use fewer widths, or times counted in updates with "
                         "update_every 1",
                         steps, n_pairs);
        return PHEMA_ERR_INPUTS;
    }
    *pass = (struct pass){.set = set, .resolution = find_resolution(set)};
    pass->powers = calloc(n_kinds, sizeof(*pass->powers));
    pass->drops = calloc(n_kinds, sizeof(*pass->drops));
    pass->befores = calloc(n_kinds, sizeof(*pass->befores));
    pass->open = calloc(n_kinds, sizeof(*pass->open));
    pass->pairs = calloc(n_pairs, sizeof(*pass->pairs));
    pass->pair_at = calloc(n_kinds * n_kinds, sizeof(*pass->pair_at));
    pass->by_time = calloc(set->n + set->m, sizeof(*pass->by_time));
    size_t *starts = calloc(set->n_times + 1, sizeof(*starts));
    bool has_memory = pass->powers && pass->drops && pass->befores && pass->open && pass->pairs &&
                      pass->pair_at && pass->by_time && starts;
    if (has_memory) {
        for (size_t k = 0; k < n_kinds; k++)
            pass->powers[k] = (long double)set->kinds[k].power;
        list_pairs(pass);
        sort_members(pass->by_time, starts, set);
    }
    free(starts);
    if (has_memory)
        return PHEMA_OK;
    free_pass(pass);
    (void)phema_fail(err, PHEMA_ERR_RESOURCE, "no memory for %zu pairs of widths", n_pairs);
    return PHEMA_ERR_RESOURCE;
}

/* beta is ((c-1)/c)^power at every step c; with update_every U > 1 it is (c/(c+1))^power where
 * (c-1) mod U = 0, else 1, and the first call copies. */
static void find_drops(struct pass *pass, uint64_t step)
{
    long double every_step = step > 1 ? log1pl(-1 / (long double)step) : 0;
    long double some_steps = log1pl(-1 / ((long double)step + 1));
    for (size_t k = 0; k < pass->set->n_kinds; k++) {
        uint64_t every = pass->set->kinds[k].every;
        if (step == 1)
            pass->drops[k] = 1;
        else if (every <= 1)
            pass->drops[k] = -expm1l(pass->powers[k] * every_step);
        else if ((step - 1) % every == 0)
            pass->drops[k] = -expm1l(pass->powers[k] * some_steps);
        else
            pass->drops[k] = 0;
    }
}

/* A bin that is full counts with the product of its weights. */
static void close_bin(struct pass *pass)
{
    for (size_t i = 0; i < pass->n_pairs; i++) {
        struct pair *pair = &pass->pairs[i];
        add(&pair->white, pass->open[pair->a] * pass->open[pair->b]);
    }
    for (size_t k = 0; k < pass->set->n_kinds; k++)
        pass->open[k] = 0;
}

/* S(k) = bb' S(k-1) for what stands in full bins, m(k) = b m(k-1) + (1-b) for the weight of the
 * open one; S(k) = bb' (S(k-1) + 1) for sum F_j F'_j, as the weight before step k is 1 at step k-1;
 * likewise b (S(k-1) + 1) for sum F_j. What is added is small beside S: that, and not S, is
 * rounded. */
static void advance(struct pass *pass, uint64_t step)
{
    if (pass->resolution <= 1 || (step - 1) % pass->resolution == 0)
        close_bin(pass);
    for (size_t k = 0; k < pass->set->n_kinds; k++) {
        long double drop = pass->drops[k];
        struct sum *before = &pass->befores[k];
        add(before, 1 - drop - drop * before->value);
        pass->open[k] += drop * (1 - pass->open[k]);
    }
    for (size_t i = 0; i < pass->n_pairs; i++) {
        struct pair *pair = &pass->pairs[i];
        long double both = pass->drops[pair->a] * pass->drops[pair->b];
        long double drop = pass->drops[pair->a] + pass->drops[pair->b] - both;
        add(&pair->white, -drop * pair->white.value);
        add(&pair->before, 1 - drop - drop * pair->before.value);
    }
}

/* Weight that b, which ends later, will have on the rest of the bin in which a ends now. Averages
 * that are touched at the first step of a bin alone have none. */
static phema_quad weight_to_come(const struct pass *pass, const struct phema_member *a,
                                 const struct phema_member *b)
{
    const struct phema_set *set = pass->set;
    const struct phema_kind *kind = &set->kinds[b->kind];
    if (pass->resolution <= 1 || kind->every > 1 || a->time == b->time)
        return 0;
    uint64_t now = (uint64_t)set->times[a->time];
    uint64_t bin_end = ((now - 1) / pass->resolution + 1) * pass->resolution;
    phema_quad end = set->times[b->time];
    phema_quad share = (phema_quad)bin_end / end;
    phema_quad kept = share < 1 ? phema_quad_pow(share, kind->power) : 1;
    return kept - phema_set_decay(set, b->kind, a->time, b->time);
}

/* <a at this step, b later>: from here to its end b only decays, and past the bin in which a ends
 * nothing of b counts. */
static void read_pair(phema_quad *white, phema_quad *walk, const struct pass *pass,
                      const struct phema_member *a, const struct phema_member *b)
{
    const struct phema_set *set = pass->set;
    const struct pair *pair = &pass->pairs[pass->pair_at[a->kind * set->n_kinds + b->kind]];
    phema_quad decay = phema_set_decay(set, b->kind, a->time, b->time);
    phema_quad open_a = (phema_quad)pass->open[a->kind];
    phema_quad open_b = (phema_quad)pass->open[b->kind];
    phema_quad bins =
        decay * (total(&pair->white) + open_a * open_b) + open_a * weight_to_come(pass, a, b);
    *white = bins / (phema_quad)pass->resolution;
    *walk = set->times[a->time] - total(&pass->befores[a->kind]) -
            decay * (total(&pass->befores[b->kind]) - total(&pair->before));
}

/* Products of member i, which ends at this step, with all that end now or later. */
static void read_member(struct phema_products *products, const struct pass *pass, size_t at)
{
    const struct phema_set *set = pass->set;
    size_t n = set->n;
    size_t i = pass->by_time[at];
    read_pair(&products->white_self[i], &products->walk_self[i], pass, &set->members[i],
              &set->members[i]);
    for (size_t later = at; later < n + set->m; later++) {
        size_t j = pass->by_time[later];
        size_t row = i > j ? i : j;
        size_t column = i > j ? j : i;
        if (column < n)
            read_pair(&products->white[row * n + column], &products->walk[row * n + column], pass,
                      &set->members[i], &set->members[j]);
    }
}

enum phema_status phema_recurrence_products(struct phema_products *products,
                                            const struct phema_set *set, struct phema_error *err)
{
    struct pass pass;
    enum phema_status status = begin_pass(&pass, set, err);
    if (status)
        return status;

    size_t at = 0;
    uint64_t step = 0;
    for (size_t t = 0; t < set->n_times; t++) {
        for (uint64_t end = (uint64_t)set->times[t]; step < end;) {
            find_drops(&pass, ++step);
            advance(&pass, step);
        }
        for (; at < set->n + set->m && set->members[pass.by_time[at]].time == t; at++)
            read_member(products, &pass, at);
    }
    free_pass(&pass);
    return PHEMA_OK;
}
