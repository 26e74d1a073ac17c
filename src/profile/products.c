// SPDX-License-Identifier: Apache-2.0
/* products.c - inner products of all profiles of a set: in closed form for power functions and
 * amplitudes that never change, else summed over the intervals of the set. */
#include "gram.h"

#include <stdlib.h>
#include <string.h>

#include "pieces.h"

/* Where the product of members i and j goes: parts of a target add up. */
static void keep_product(struct phema_products *products, const struct phema_set *set, size_t i,
                         size_t j, const phema_quad *product)
{
    size_t n = set->n;
    size_t row = set->owners[i] > set->owners[j] ? set->owners[i] : set->owners[j];
    size_t column = set->owners[i] > set->owners[j] ? set->owners[j] : set->owners[i];
    bool is_plain = i < n && j < n; /* the factors are 1 */
    phema_quad factor = is_plain ? 1 : set->factors[i] * set->factors[j];
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++) {
        if (!products->with[g])
            continue;
        if (is_plain)
            products->with[g][row * n + column] = product[g];
        if (row == column)
            products->self[g][row] += (i == j ? 1 : 2) * factor * product[g];
        if (column < n && !is_plain)
            products->with[g][row * n + column] += factor * product[g];
    }
}

static bool is_wanted(const struct phema_set *set, size_t i, size_t j)
{
    return i < set->n || j < set->n || set->owners[i] == set->owners[j];
}

/* ---- Closed forms ---- */

struct closed {
    size_t *by_kind; /* [n + n_parts] members, kind by kind */
    size_t *starts;  /* [n_kinds + 1] of each in by_kind */
    phema_quad *inverse_times;
};

static void free_closed(struct closed *closed)
{
    free(closed->by_kind);
    free(closed->starts);
    free(closed->inverse_times);
}

/* Counting sort. */
static bool init_closed(struct closed *closed, const struct phema_set *set)
{
    size_t n_members = set->n + set->n_parts;
    closed->by_kind = calloc(n_members + 1, sizeof(*closed->by_kind));
    closed->starts = calloc(set->n_kinds + 2, sizeof(*closed->starts));
    closed->inverse_times = calloc(set->n_times + 1, sizeof(*closed->inverse_times));
    if (!closed->by_kind || !closed->starts || !closed->inverse_times)
        return false;
    for (size_t t = 0; t < set->n_times; t++)
        closed->inverse_times[t] = 1 / set->times[t];
    size_t *ends = closed->starts + 1; /* while they fill, kind k's is one place further */
    for (size_t i = 0; i < n_members; i++)
        ends[set->members[i].kind + 1]++;
    for (size_t k = 0; k < set->n_kinds; k++)
        ends[k + 1] += ends[k];
    for (size_t i = 0; i < n_members; i++)
        closed->by_kind[ends[set->members[i].kind]++] = i;
    return true;
}

/* Of the members of two kinds, those where the first ends before the second. Divisions are slow in
 * quad: there is none for each of them. */
static void find_of_kinds(struct phema_products *products, const struct phema_set *set,
                          const struct closed *closed, size_t x, size_t y)
{
    const struct phema_walk_terms walk = phema_walk_terms(set->kinds[x].power, set->kinds[y].power);
    const phema_quad white = phema_white_term(set->kinds[x].power, set->kinds[y].power);
    for (size_t p = closed->starts[x]; p < closed->starts[x + 1]; p++) {
        size_t i = closed->by_kind[p];
        const struct phema_member *a = &set->members[i];
        for (size_t q = closed->starts[y]; q < closed->starts[y + 1]; q++) {
            size_t j = closed->by_kind[q];
            const struct phema_member *b = &set->members[j];
            bool is_before = a->time < b->time || (a->time == b->time && i <= j);
            if (!is_before || !is_wanted(set, i, j))
                continue;
            phema_quad decay = phema_set_decay(set, b->kind, a->time, b->time);
            phema_quad product[PHEMA_N_GRAMS] = {white * decay * closed->inverse_times[a->time]};
            if (products->with[PHEMA_GRAM_WALK])
                product[PHEMA_GRAM_WALK] = set->times[a->time] * (walk.begun - decay * walk.lost);
            keep_product(products, set, i, j, product);
        }
    }
}

static bool find_plain(struct phema_products *products, const struct phema_set *set)
{
    struct closed closed = {0};
    bool has_memory = init_closed(&closed, set);
    for (size_t x = 0; has_memory && x < set->n_kinds; x++)
        for (size_t y = 0; y < set->n_kinds; y++)
            find_of_kinds(products, set, &closed, x, y);
    free_closed(&closed);
    return has_memory;
}

/* ---- Over intervals ---- */

struct sums { /* up to the time that is reached */
    const struct phema_set *set;
    const struct phema_motion *motion;
    struct phema_kind_pair *pairs;
    size_t n_pairs;
    size_t *pair_at;          /* [n_kinds x n_kinds] index in pairs */
    phema_quad *densities;    /* [n_pairs] integral of p_a p_b */
    phema_quad *both;         /* [n_pairs] integral of F_a F_b */
    phema_quad *moved;        /* [n_pairs] integral of jitter p_a p_b + wander F_a F_b */
    phema_quad *singles;      /* [n_kinds] integral of F */
    phema_quad *moved_single; /* [n_kinds] integral of wander F */
    phema_quad wandered;      /* integral of wander */
    size_t motion_at;         /* interval of the motion */
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
    free(sums->by_time);
}

/* Marks the pairs of kinds of which a product is wanted: one is the snapshots', or both are of one
 * target. Returns how many. */
static size_t mark_pairs(size_t *pair_at, const struct phema_set *set)
{
    size_t n_kinds = set->n_kinds;
    for (size_t a = 0; a < n_kinds; a++)
        for (size_t b = 0; b <= a; b++)
            pair_at[a * n_kinds + b] =
                a == b || set->kinds[a].is_snapshots || set->kinds[b].is_snapshots;
    for (size_t i = set->n; i < set->n + set->n_parts; i++) {
        for (size_t j = i; j > set->n && set->owners[j - 1] == set->owners[i]; j--) {
            size_t a = set->members[i].kind;
            size_t b = set->members[j - 1].kind;
            pair_at[(a > b ? a : b) * n_kinds + (a > b ? b : a)] = 1;
        }
    }
    size_t n_pairs = 0;
    for (size_t a = 0; a < n_kinds; a++)
        for (size_t b = 0; b <= a; b++)
            n_pairs += pair_at[a * n_kinds + b];
    return n_pairs;
}

static void list_pairs(struct sums *sums)
{
    size_t n_kinds = sums->set->n_kinds;
    size_t n_pairs = 0;
    for (size_t a = 0; a < n_kinds; a++) {
        for (size_t b = 0; b <= a; b++) {
            if (!sums->pair_at[a * n_kinds + b])
                continue;
            sums->pair_at[a * n_kinds + b] = n_pairs;
            sums->pair_at[b * n_kinds + a] = n_pairs;
            sums->pairs[n_pairs++] = (struct phema_kind_pair){a, b};
        }
    }
}

/* Counting sort: members in order of their time, those of one time in order of their index. */
static bool sort_members(struct sums *sums)
{
    const struct phema_set *set = sums->set;
    size_t n_members = set->n + set->n_parts;
    size_t *starts = calloc(set->n_times + 1, sizeof(*starts));
    if (!starts)
        return false;
    for (size_t i = 0; i < n_members; i++)
        starts[set->members[i].time + 1]++;
    for (size_t t = 0; t < set->n_times; t++)
        starts[t + 1] += starts[t];
    for (size_t i = 0; i < n_members; i++)
        sums->by_time[starts[set->members[i].time]++] = i;
    free(starts);
    return true;
}

static bool init_sums(struct sums *sums, const struct phema_set *set,
                      const struct phema_motion *motion)
{
    size_t n_kinds = set->n_kinds;
    *sums = (struct sums){.set = set, .motion = motion};
    sums->pair_at = calloc(n_kinds * n_kinds + 1, sizeof(*sums->pair_at));
    if (!sums->pair_at)
        return false;
    sums->n_pairs = mark_pairs(sums->pair_at, set);
    sums->pairs = calloc(sums->n_pairs + 1, sizeof(*sums->pairs));
    sums->densities = calloc(sums->n_pairs + 1, sizeof(*sums->densities));
    sums->both = calloc(sums->n_pairs + 1, sizeof(*sums->both));
    sums->moved = calloc(sums->n_pairs + 1, sizeof(*sums->moved));
    sums->singles = calloc(n_kinds + 1, sizeof(*sums->singles));
    sums->moved_single = calloc(n_kinds + 1, sizeof(*sums->moved_single));
    sums->by_time = calloc(set->n + set->n_parts + 1, sizeof(*sums->by_time));
    if (!sums->pairs || !sums->densities || !sums->both || !sums->moved || !sums->singles ||
        !sums->moved_single || !sums->by_time || !sort_members(sums))
        return false;
    list_pairs(sums);
    return true;
}

/* The amplitudes of an interval of the set, which lies within one of the motion; behind its last
 * they stay as they were there. */
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

static void add_piece(struct sums *sums, const struct phema_piece *piece)
{
    phema_quad wander;
    phema_quad jitter;
    find_amplitudes(sums, sums->set->times[piece->time], &wander, &jitter);
    sums->wandered += wander * piece->length;
    for (size_t k = 0; k < sums->set->n_kinds; k++) {
        if (!piece->is_active[k])
            continue;
        sums->singles[k] = piece->decays[k] * sums->singles[k] + piece->singles[k];
        sums->moved_single[k] =
            piece->decays[k] * sums->moved_single[k] + wander * piece->singles[k];
    }
    for (size_t i = 0; i < sums->n_pairs; i++) {
        const struct phema_kind_pair *pair = &sums->pairs[i];
        if (!piece->is_active[pair->a] || !piece->is_active[pair->b])
            continue;
        phema_quad decay = piece->decays[pair->a] * piece->decays[pair->b];
        sums->densities[i] = decay * sums->densities[i] + piece->densities[i];
        sums->both[i] = decay * sums->both[i] + piece->both[i];
        if (sums->motion)
            sums->moved[i] =
                decay * sums->moved[i] + wander * piece->both[i] + jitter * piece->densities[i];
    }
}

/* <Q_a, Q_b> = integral (1 - F_a)(1 - F_b) up to the end of a; b ends there or later. */
static void read_pair(phema_quad *product, const struct phema_products *wanted,
                      const struct sums *sums, const struct phema_pieces *pieces,
                      const struct phema_member *a, const struct phema_member *b)
{
    const struct phema_set *set = sums->set;
    size_t pair = sums->pair_at[a->kind * set->n_kinds + b->kind];
    phema_quad decay = phema_set_decay(set, b->kind, a->time, b->time);
    phema_quad open = phema_pieces_open_bin(pieces, a, b, decay);
    if (wanted->with[PHEMA_GRAM_WHITE])
        product[PHEMA_GRAM_WHITE] = decay * sums->densities[pair] + open;
    if (wanted->with[PHEMA_GRAM_WALK])
        product[PHEMA_GRAM_WALK] = set->times[a->time] - sums->singles[a->kind] -
                                   decay * (sums->singles[b->kind] - sums->both[pair]);
    if (wanted->with[PHEMA_GRAM_MOTION])
        product[PHEMA_GRAM_MOTION] = sums->wandered - sums->moved_single[a->kind] -
                                     decay * (sums->moved_single[b->kind] - sums->moved[pair]) +
                                     open * jitter_at(sums, phema_pieces_bin_end(pieces));
}

/* Products of a member, which ends at this time, with all that end now or later. */
static void read_member(struct phema_products *products, const struct sums *sums,
                        const struct phema_pieces *pieces, size_t at)
{
    const struct phema_set *set = sums->set;
    size_t i = sums->by_time[at];
    for (size_t later = at; later < set->n + set->n_parts; later++) {
        size_t j = sums->by_time[later];
        if (!is_wanted(set, i, j))
            continue;
        phema_quad product[PHEMA_N_GRAMS] = {0};
        read_pair(product, products, sums, pieces, &set->members[i], &set->members[j]);
        keep_product(products, set, i, j, product);
    }
}

static enum phema_status sum_pieces(struct phema_products *products, const struct phema_set *set,
                                    const struct phema_motion *motion, struct phema_error *err)
{
    struct sums sums;
    struct phema_pieces *pieces = NULL;
    enum phema_status status = init_sums(&sums, set, motion) ? PHEMA_OK : phema_fail_memory(err);
    if (!status)
        status = phema_pieces_open(&pieces, set, sums.pairs, sums.n_pairs, err);
    size_t at = 0;
    for (const struct phema_piece *piece; !status && (piece = phema_pieces_next(pieces));) {
        add_piece(&sums, piece);
        for (; at < set->n + set->n_parts && set->members[sums.by_time[at]].time == piece->time;
             at++)
            read_member(products, &sums, pieces, at);
    }
    phema_pieces_close(pieces);
    free_sums(&sums);
    return status;
}

PHEMA_FALLIBLE phema_products_find(struct phema_products *products, const struct phema_set *set,
                                   const struct phema_motion *motion, struct phema_error *err)
{
    if (!set->is_plain)
        return sum_pieces(products, set, motion, err);
    if (!find_plain(products, set))
        return phema_fail_memory(err);
    if (!motion)
        return PHEMA_OK;
    /* the others are there, in closed form */
    struct phema_products moved = *products;
    moved.with[PHEMA_GRAM_WHITE] = moved.with[PHEMA_GRAM_WALK] = NULL;
    return sum_pieces(&moved, set, motion, err);
}
