// SPDX-License-Identifier: Apache-2.0
/* gram_closed_form.c - inner products of all profiles of a set: in closed form for power functions
 * and amplitudes that never change, else summed over the intervals of the set (sums.c). */
#include "gram_closed_form.h"

#include <stdlib.h>

void phema_product_keep(struct phema_products *products, const struct phema_profile_set *set,
                        size_t i, size_t j, const phema_quad *product)
{
    size_t n = set->n;
    size_t first = set->owners[i] < set->owners[j] ? set->owners[i] : set->owners[j];
    size_t last = set->owners[i] < set->owners[j] ? set->owners[j] : set->owners[i];
    bool is_plain = last < n; /* the factors are 1 */
    phema_quad factor = is_plain ? 1 : set->factors[i] * set->factors[j];
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++) {
        if (!products->with[g])
            continue;
        if (is_plain)
            products->with[g][first * n + last] = product[g];
        if (first == last)
            products->self[g][last] += (i == j ? 1 : 2) * factor * product[g];
        if (first < n && !is_plain)
            products->with[g][last * n + first] += factor * product[g];
    }
}

bool phema_product_is_wanted(const struct phema_profile_set *set, size_t i, size_t j)
{
    return i < set->n || j < set->n || set->owners[i] == set->owners[j];
}

/* A counting sort. */
size_t *phema_profile_set_by_time(const struct phema_profile_set *set)
{
    size_t n_members = set->n + set->n_parts;
    size_t *by_time = calloc(n_members + 1, sizeof(*by_time));
    size_t *starts = calloc(set->n_times + 1, sizeof(*starts));
    if (by_time && starts) {
        for (size_t i = 0; i < n_members; i++)
            starts[set->members[i].time + 1]++;
        for (size_t t = 0; t < set->n_times; t++)
            starts[t + 1] += starts[t];
        for (size_t i = 0; i < n_members; i++)
            by_time[starts[set->members[i].time]++] = i;
    } else {
        free(by_time);
        by_time = NULL;
    }
    free(starts);
    return by_time;
}

/* ---- Lines ---- */

/* Powers that a quad cannot hold are found for each pair. */
void phema_line_scale(struct phema_line *line, const struct phema_products *products,
                      const struct phema_profile_set *set, const struct phema_member *a,
                      size_t kind)
{
    struct phema_scaled kept;
    line->is_scaled = phema_profile_set_divides(set, kind, a->time) &&
                      phema_scaled_take(&kept, &set->kept[kind * set->n_times + a->time]);
    for (size_t g = 0; line->is_scaled && g < PHEMA_N_GRAMS; g++) {
        if (!products->with[g])
            continue;
        line->is_scaled = phema_scaled_take(&line->from[g], &line->begun[g]) &&
                          phema_scaled_take(&line->loss[g], &line->lost[g]);
        line->loss[g] = phema_scaled_times(line->loss[g], kept);
    }
}

/* Of two snapshots. */
static void keep_scaled(struct phema_products *products, const struct phema_profile_set *set,
                        size_t i, size_t j, const struct phema_line *line)
{
    const struct phema_member *b = &set->members[j];
    struct phema_scaled inverse;
    (void)phema_scaled_take(&inverse, &set->inverse_kept[b->kind * set->n_times + b->time]);
    size_t at = i < j ? i * set->n + j : j * set->n + i;
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++)
        if (products->with[g])
            phema_scaled_put(
                &products->with[g][at],
                phema_scaled_minus(line->from[g], phema_scaled_times(line->loss[g], inverse)));
}

void phema_line_keep(struct phema_products *products, const struct phema_profile_set *set, size_t i,
                     size_t j, const struct phema_line *line)
{
    if (i < set->n && j < set->n && i != j && line->is_scaled) {
        keep_scaled(products, set, i, j, line);
        return;
    }
    const struct phema_member *b = &set->members[j];
    phema_quad product[PHEMA_N_GRAMS] = {0};
    phema_quad decay = phema_profile_set_decay(set, b->kind, set->members[i].time, b->time);
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++)
        if (products->with[g])
            product[g] = line->begun[g] - decay * line->lost[g];
    phema_product_keep(products, set, i, j, product);
}

/* ---- Closed forms ---- */

struct closed {
    size_t *by_family; /* [n + n_parts] members, kind by kind, each by time */
    size_t *starts;    /* [n_families + 1] of each in by_family */
    size_t *ranks;     /* [n + n_parts] by time */
};

static void free_closed(struct closed *closed)
{
    free(closed->by_family);
    free(closed->starts);
    free(closed->ranks);
}

/* Counting sort. */
static bool init_closed(struct closed *closed, const struct phema_profile_set *set)
{
    size_t n_members = set->n + set->n_parts;
    closed->by_family = calloc(n_members + 1, sizeof(*closed->by_family));
    closed->starts = calloc(set->n_families + 2, sizeof(*closed->starts));
    closed->ranks = calloc(n_members + 1, sizeof(*closed->ranks));
    size_t *by_time = phema_profile_set_by_time(set);
    bool has_memory = closed->by_family && closed->starts && closed->ranks && by_time;
    if (has_memory) {
        size_t *ends = closed->starts + 1; /* while they fill, kind k's is one place further */
        for (size_t i = 0; i < n_members; i++)
            ends[set->members[i].kind + 1]++;
        for (size_t k = 0; k < set->n_families; k++)
            ends[k + 1] += ends[k];
        for (size_t rank = 0; rank < n_members; rank++) {
            size_t i = by_time[rank];
            closed->ranks[i] = rank;
            closed->by_family[ends[set->members[i].kind]++] = i;
        }
    }
    free(by_time);
    return has_memory;
}

/* Of the members of two kinds, those where the first ends before the second. */
static void find_of_kinds(struct phema_products *products, const struct phema_profile_set *set,
                          const struct closed *closed, size_t x, size_t y)
{
    const struct phema_walk_terms walk =
        phema_walk_terms(set->families[x].power, set->families[y].power);
    const phema_quad white = phema_white_term(set->families[x].power, set->families[y].power);
    size_t later = closed->starts[y];
    for (size_t p = closed->starts[x]; p < closed->starts[x + 1]; p++) {
        size_t i = closed->by_family[p];
        const struct phema_member *a = &set->members[i];
        phema_quad time = set->times[a->time];
        struct phema_line line = {
            .begun = {[PHEMA_GRAM_WALK] = time * walk.begun},
            .lost = {[PHEMA_GRAM_WHITE] = -white / time, [PHEMA_GRAM_WALK] = time * walk.lost}};
        phema_line_scale(&line, products, set, a, y);
        while (later < closed->starts[y + 1] &&
               closed->ranks[closed->by_family[later]] < closed->ranks[i])
            later++;
        for (size_t q = later; q < closed->starts[y + 1]; q++)
            if (phema_product_is_wanted(set, i, closed->by_family[q]))
                phema_line_keep(products, set, i, closed->by_family[q], &line);
    }
}

struct finding {
    struct phema_products *products;
    const struct phema_profile_set *set;
    struct closed closed;
};

static void find_of_kind(void *context, size_t x)
{
    struct finding *finding = context;
    for (size_t y = 0; y < finding->set->n_families; y++)
        find_of_kinds(finding->products, finding->set, &finding->closed, x, y);
}

/* No product is of two kinds that come first: threads write to different places. */
static bool find_plain(struct phema_products *products, const struct phema_profile_set *set)
{
    struct finding finding = {.products = products, .set = set};
    bool has_memory = init_closed(&finding.closed, set);
    if (has_memory)
        phema_parallel(set->n_families, phema_threads_for(set->n), find_of_kind, &finding);
    free_closed(&finding.closed);
    return has_memory;
}

/* ---- Together ---- */

/* White and walk in closed form, motion by sums, side by side. */
struct both {
    struct phema_products closed, summed;
    const struct phema_profile_set *set;
    const struct phema_motion *motion;
};

static enum phema_status find_one_of_both(void *context, size_t index, struct phema_error *err)
{
    struct both *both = context;
    if (index == 1)
        return phema_products_sum(&both->summed, both->set, both->motion, err);
    return find_plain(&both->closed, both->set) ? PHEMA_OK : phema_fail_memory(err);
}

PHEMA_FALLIBLE phema_products_find(struct phema_products *products,
                                   const struct phema_profile_set *set,
                                   const struct phema_motion *motion, struct phema_error *err)
{
    if (!set->is_plain)
        return phema_products_sum(products, set, motion, err);
    struct both both = {.closed = *products, .summed = *products, .set = set, .motion = motion};
    both.closed.with[PHEMA_GRAM_MOTION] = NULL;
    both.summed.with[PHEMA_GRAM_WHITE] = both.summed.with[PHEMA_GRAM_WALK] = NULL;
    return phema_parallel_try(motion ? 2 : 1, phema_threads_for(set->n), find_one_of_both, &both,
                              err);
}
