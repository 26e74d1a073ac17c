// SPDX-License-Identifier: Apache-2.0
/* shares.c - integrals of squared differences of two profiles, interval by interval. */
#include "shares.h"

#include <stdlib.h>

#include "intervals.h"

/* Intervals so far back that they add less than this to a pair's sums are left out. */
#define NEGLIGIBLE 1e-12L

/* What one interval of the set has for every kind and pair of kinds, kept for all intervals. */
struct table {
    struct phema_profile_set set;
    struct phema_family_pair *pairs; /* of kinds */
    size_t n_pairs;
    size_t *pair_at;        /* [n_families x n_families] */
    long double *lengths;   /* [n_times] */
    long double *decays;    /* [n_times x n_families] */
    long double *singles;   /* [n_times x n_families] */
    long double *both;      /* [n_times x n_pairs] */
    long double *densities; /* [n_times x n_pairs] */
    long double *open_bins; /* [n_times x n_pairs] of a, b both ending there */
    size_t *intervals;      /* [n_times] of the shares, in which one of the set lies */
};

static void clear_table(struct table *table)
{
    phema_profile_set_clear(&table->set);
    free(table->pairs);
    free(table->pair_at);
    free(table->lengths);
    free(table->decays);
    free(table->singles);
    free(table->both);
    free(table->densities);
    free(table->open_bins);
    free(table->intervals);
}

static void want_pair(struct table *table, size_t a, size_t b)
{
    size_t *at = &table->pair_at[a * table->set.n_families + b];
    if (*at)
        return;
    table->pairs[table->n_pairs++] = (struct phema_family_pair){a, b};
    *at = table->n_pairs; /* index + 1 */
    table->pair_at[b * table->set.n_families + a] = *at;
}

static size_t pair_of(const struct table *table, size_t a, size_t b)
{
    return table->pair_at[a * table->set.n_families + b] - 1;
}

static bool alloc_table(struct table *table, const struct phema_distance *wanted, size_t n_wanted)
{
    size_t n_families = table->set.n_families;
    size_t n_times = table->set.n_times;
    table->pair_at = calloc(n_families * n_families, sizeof(*table->pair_at));
    table->pairs = calloc(n_families + n_wanted, sizeof(*table->pairs));
    if (!table->pair_at || !table->pairs)
        return false;
    for (size_t k = 0; k < n_families; k++)
        want_pair(table, k, k);
    for (size_t p = 0; p < n_wanted; p++)
        want_pair(table, table->set.members[wanted[p].i].kind,
                  table->set.members[wanted[p].j].kind);
    table->lengths = calloc(n_times, sizeof(long double));
    table->decays = calloc(n_times * n_families, sizeof(long double));
    table->singles = calloc(n_times * n_families, sizeof(long double));
    table->both = calloc(n_times * table->n_pairs, sizeof(long double));
    table->densities = calloc(n_times * table->n_pairs, sizeof(long double));
    table->open_bins = calloc(n_times * table->n_pairs, sizeof(long double));
    table->intervals = calloc(n_times, sizeof(size_t));
    return table->lengths && table->decays && table->singles && table->both && table->densities &&
           table->open_bins && table->intervals;
}

static enum phema_status fill_table(struct table *table, struct phema_error *err)
{
    size_t n_families = table->set.n_families;
    struct phema_intervals *pieces = NULL;
    enum phema_status status =
        phema_intervals_open(&pieces, &table->set, table->pairs, table->n_pairs, err);
    if (status)
        return status;
    for (const struct phema_interval *piece; (piece = phema_intervals_next(pieces));) {
        size_t t = piece->time;
        table->lengths[t] = (long double)piece->length;
        for (size_t k = 0; k < n_families; k++) {
            table->decays[t * n_families + k] = (long double)piece->decays[k];
            table->singles[t * n_families + k] = (long double)piece->singles[k];
        }
        for (size_t p = 0; p < table->n_pairs; p++) {
            struct phema_member a = {table->pairs[p].a, t};
            struct phema_member b = {table->pairs[p].b, t};
            table->both[t * table->n_pairs + p] = (long double)piece->both[p];
            table->densities[t * table->n_pairs + p] = (long double)piece->densities[p];
            table->open_bins[t * table->n_pairs + p] =
                (long double)phema_intervals_open_bin(pieces, &a, &b, 1);
        }
    }
    phema_intervals_close(pieces);
    return PHEMA_OK;
}

/* Intervals are those between the snapshots' times; the set may divide them further. */
static bool find_intervals(struct phema_motion_terms *shares, struct table *table)
{
    const struct phema_profile_set *set = &table->set;
    shares->ends = calloc(set->n_times, sizeof(*shares->ends));
    bool *is_end = calloc(set->n_times, sizeof(*is_end));
    if (shares->ends && is_end) {
        for (size_t i = 0; i < set->n; i++)
            is_end[set->members[i].time] = true;
        for (size_t t = 0; t < set->n_times; t++) {
            table->intervals[t] = shares->n_intervals;
            if (is_end[t])
                shares->ends[shares->n_intervals++] = (double)set->times[t];
        }
    }
    bool has_memory = shares->ends && is_end;
    free(is_end);
    return has_memory;
}

struct row {                          /* one pair of snapshots, from its later end backwards */
    const struct phema_member *a, *b; /* a ends first */
    long double a_left, b_left;       /* of each at the end of the interval */
    long double walked, jittered;     /* so far */
};

static void measure(struct phema_motion_term *share, struct row *row, const struct table *table,
                    size_t t)
{
    size_t n_families = table->set.n_families;
    size_t a = row->a->kind;
    size_t b = row->b->kind;
    const long double *both = table->both + t * table->n_pairs;
    const long double *densities = table->densities + t * table->n_pairs;
    const long double *open = table->open_bins + t * table->n_pairs;
    size_t bb = pair_of(table, b, b);
    long double left = row->b_left;
    long double walk = left * left * both[bb];
    long double jitter = left * left * densities[bb];
    if (t == row->b->time)
        jitter += open[bb];
    if (t > row->a->time) { /* a is over: D is 1 - F_b */
        walk += table->lengths[t] - 2 * left * table->singles[t * n_families + b];
    } else {
        size_t aa = pair_of(table, a, a);
        size_t ab = pair_of(table, a, b);
        walk += row->a_left * (row->a_left * both[aa] - 2 * left * both[ab]);
        jitter += row->a_left * (row->a_left * densities[aa] - 2 * left * densities[ab]);
        if (t == row->a->time)
            jitter += open[aa] - 2 * left * open[ab];
        row->a_left *= table->decays[t * n_families + a];
    }
    row->b_left *= table->decays[t * n_families + b];
    share->interval = table->intervals[t];
    share->walk = walk > 0 ? (double)walk : 0;
    share->jitter = jitter > 0 ? (double)jitter : 0;
    row->walked += walk;
    row->jittered += jitter;
}

/* Shares of a pair, the last interval first; returns how many. */
static size_t measure_pair(struct phema_motion_term *items, const struct table *table,
                           const struct phema_distance *pair)
{
    const struct phema_member *members = table->set.members;
    bool is_later = members[pair->i].time > members[pair->j].time;
    struct row row = {.a = &members[is_later ? pair->j : pair->i],
                      .b = &members[is_later ? pair->i : pair->j],
                      .a_left = 1,
                      .b_left = 1};
    size_t n = 0;
    for (size_t t = row.b->time + 1; t-- > 0;) {
        struct phema_motion_term share = {0};
        measure(&share, &row, table, t);
        if (n && items[n - 1].interval == share.interval) {
            items[n - 1].walk += share.walk;
            items[n - 1].jitter += share.jitter;
        } else {
            items[n++] = share;
        }
        bool is_faded = t < row.a->time && (long double)share.walk < NEGLIGIBLE * row.walked &&
                        (long double)share.jitter <= NEGLIGIBLE * row.jittered;
        if (is_faded)
            break;
    }
    return n;
}

static bool measure_pairs(struct phema_motion_terms *shares, const struct table *table,
                          const struct phema_distance *pairs)
{
    struct phema_motion_term *line = calloc(table->set.n_times, sizeof(*line));
    size_t capacity = 0;
    bool has_memory = line != NULL;
    for (size_t p = 0; has_memory && p < shares->n_pairs; p++) {
        size_t n = measure_pair(line, table, &pairs[p]);
        size_t used = shares->starts[p];
        if (used + n > capacity) {
            capacity = 2 * (used + n);
            struct phema_motion_term *grown = realloc(shares->items, capacity * sizeof(*grown));
            has_memory = grown != NULL;
            shares->items = grown ? grown : shares->items;
        }
        for (size_t i = 0; has_memory && i < n; i++)
            shares->items[used + i] = line[i];
        shares->starts[p + 1] = used + n;
    }
    free(line);
    return has_memory;
}

PHEMA_FALLIBLE phema_motion_terms_find(struct phema_motion_terms *out,
                                       const struct phema_profile *snapshots, size_t n,
                                       const struct phema_distance *pairs, size_t n_pairs,
                                       struct phema_error *err)
{
    const struct phema_problem problem = {.snapshots = snapshots, .n = n};
    struct phema_motion_terms shares = {.n_pairs = n_pairs};
    struct table table = {0};
    enum phema_status status = phema_profile_set_build(&table.set, &problem, err);
    if (!status && !alloc_table(&table, pairs, n_pairs))
        status = phema_fail_memory(err);
    if (!status)
        status = fill_table(&table, err);
    if (!status) {
        shares.starts = calloc(n_pairs + 1, sizeof(*shares.starts));
        bool has_memory = shares.starts && find_intervals(&shares, &table) &&
                          measure_pairs(&shares, &table, pairs);
        status = has_memory ? PHEMA_OK : phema_fail_memory(err);
    }
    clear_table(&table);
    if (status)
        phema_motion_terms_clear(&shares);
    else
        *out = shares;
    return status;
}

void phema_motion_terms_clear(struct phema_motion_terms *shares)
{
    free(shares->ends);
    free(shares->starts);
    free(shares->items);
    *shares = (struct phema_motion_terms){0};
}
