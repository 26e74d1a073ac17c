// SPDX-License-Identifier: Apache-2.0
/* motion_pairs.c - which pairs of snapshots to compare, and the expected distance of each. */
#include "motion_work.h"

#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/sort.h"

#include "intervals.h"

/* More times or pairs do not improve the fit; these take some 1e-2 s. */
#define MAX_TIMES  64
#define MIN_TIMES  8
#define MANY_PAIRS 3000

/* Early intervals that add less than this fraction to the sums of a pair are left out. */
#define NEGLIGIBLE 1e-12L

/* ---- Which pairs to compare ---- */

struct timed {
    double t;
    size_t index;
};

static int compare_timed(const void *a, const void *b)
{
    const struct timed *x = a;
    const struct timed *y = b;
    if (x->t != y->t)
        return (x->t > y->t) - (x->t < y->t);
    return (x->index > y->index) - (x->index < y->index);
}

/* The end of the group of one time that begins at i */
static size_t group_end(const struct timed *order, size_t n, size_t i)
{
    size_t end = i;
    while (end < n && order[end].t == order[i].t)
        end++;
    return end;
}

/* Keeps the snapshots of the times to use at the front of the order: evenly chosen, the last one
 * included. starts [n_times + 1]: where each time begins. Returns how many are kept. */
static size_t choose_times(struct timed *order, const size_t *starts, size_t n_times, size_t n)
{
    size_t per_time = n_times ? (n + n_times - 1) / n_times : 1;
    size_t affordable = MANY_PAIRS / (per_time * (per_time - 1) / 2 + per_time * per_time);
    size_t most = affordable < MIN_TIMES   ? MIN_TIMES
                  : affordable > MAX_TIMES ? MAX_TIMES
                                           : affordable;
    size_t n_chosen = n_times < most ? n_times : most, kept = 0;
    for (size_t c = 0; c < n_chosen; c++) {
        size_t t = (c + 1) * n_times / n_chosen - 1;
        size_t size = starts[t + 1] - starts[t];
        memmove(order + kept, order + starts[t], size * sizeof(*order));
        kept += size;
    }
    return kept;
}

/* Counts the pairs of snapshots at one time or at neighbouring times, and lists them in `pairs`
 * unless it is NULL. With one snapshot at each time, neighbours of neighbours count as well:
 * distances of neighbours alone cannot distinguish a random walk, which leads away, from jitter,
 * which does not. */
static size_t list_pairs(struct phema_distance *pairs, const struct timed *order, size_t n,
                         bool is_alone)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        size_t end = group_end(order, n, group_end(order, n, i));
        if (is_alone)
            end = group_end(order, n, end);
        count += end - i - 1;
        for (size_t j = i + 1; pairs && j < end; j++)
            *pairs++ = (struct phema_distance){.i = order[i].index, .j = order[j].index};
    }
    return count;
}

PHEMA_FALLIBLE phema_motion_pairs(struct phema_distance **pairs, size_t *n_pairs,
                                  const struct phema_profile *snapshots, size_t n,
                                  struct phema_error *err)
{
    struct timed *order = calloc(n + 1, sizeof(*order));
    size_t *starts = calloc(n + 1, sizeof(*starts));
    struct phema_distance *made = NULL;
    size_t count = 0;
    if (order && starts) {
        for (size_t i = 0; i < n; i++)
            order[i] = (struct timed){snapshots[i].t, i};
        qsort(order, n, sizeof(*order), compare_timed);
        size_t n_times = 0;
        for (size_t i = 0; i < n; i = group_end(order, n, i))
            starts[n_times++] = i;
        starts[n_times] = n;
        bool is_alone = n_times == n;
        size_t n_chosen = choose_times(order, starts, n_times, n);
        count = list_pairs(NULL, order, n_chosen, is_alone);
        made = calloc(count ? count : 1, sizeof(*made));
        if (made)
            list_pairs(made, order, n_chosen, is_alone);
    }
    free(order);
    free(starts);
    if (!made)
        return phema_fail_memory(err);
    *pairs = made;
    *n_pairs = count;
    return PHEMA_OK;
}

/* ---- The expected distance of each pair ---- */

/* The integrals of all intervals, for every family and pair of families. */
struct phema_motion_table {
    struct phema_profile_set set;
    struct phema_family_pairs pairs;
    long double *lengths;   /* [n_times] */
    long double *decays;    /* [n_times x n_families] */
    long double *singles;   /* [n_times x n_families] */
    long double *both;      /* [n_times x n_pairs] */
    long double *densities; /* [n_times x n_pairs] */
    long double *open_bins; /* [n_times x n_pairs] of a, b both ending there */
    size_t *intervals;      /* [n_times] the piece in which one of the set lies */
    size_t n_pieces;
    double *ends;              /* [n_pieces] ascending */
    struct phema_arena memory; /* of all arrays */
};

static size_t pair_of(const struct phema_motion_table *table, size_t a, size_t b)
{
    return table->pairs.at[a * table->set.n_families + b];
}

static bool alloc_table(struct phema_motion_table *table, const struct phema_distance *wanted,
                        size_t n_wanted, size_t reach)
{
    size_t n_families = table->set.n_families;
    size_t n_times = table->set.n_times;
    const struct phema_member *members = table->set.members;
    struct phema_arena *memory = &table->memory;
    if (!phema_family_pairs_begin(&table->pairs, n_families, memory))
        return false;
    for (size_t k = 0; k < n_families; k++)
        phema_family_pairs_want(&table->pairs, k, k);
    for (size_t p = 0; p < n_wanted; p++)
        phema_family_pairs_want(&table->pairs, members[wanted[p].i].family,
                                members[wanted[p].j].family);
    for (size_t i = 0; i < table->set.n; i++)
        for (size_t j = i + 1; j < table->set.n && j < i + reach; j++)
            phema_family_pairs_want(&table->pairs, members[i].family, members[j].family);
    size_t n_pairs = table->pairs.n;
    table->lengths = phema_arena_array(memory, n_times, sizeof(long double));
    table->decays = phema_arena_array(memory, n_times * n_families, sizeof(long double));
    table->singles = phema_arena_array(memory, n_times * n_families, sizeof(long double));
    table->both = phema_arena_array(memory, n_times * n_pairs, sizeof(long double));
    table->densities = phema_arena_array(memory, n_times * n_pairs, sizeof(long double));
    table->open_bins = phema_arena_array(memory, n_times * n_pairs, sizeof(long double));
    table->intervals = phema_arena_array(memory, n_times, sizeof(size_t));
    return !memory->is_failed && phema_family_pairs_list(&table->pairs, memory);
}

static enum phema_status fill_table(struct phema_motion_table *table, struct phema_error *err)
{
    size_t n_families = table->set.n_families, n_pairs = table->pairs.n;
    struct phema_intervals *intervals = NULL;
    enum phema_status status = phema_intervals_open(&intervals, &table->set, &table->pairs, err);
    if (status)
        return status;
    for (const struct phema_interval *interval; (interval = phema_intervals_next(intervals));) {
        size_t t = interval->time;
        table->lengths[t] = (long double)interval->length;
        for (size_t k = 0; k < n_families; k++) {
            table->decays[t * n_families + k] = (long double)interval->decays[k];
            table->singles[t * n_families + k] = (long double)interval->singles[k];
        }
        for (size_t p = 0; p < n_pairs; p++) {
            struct phema_member a = {table->pairs.items[p].a, t};
            struct phema_member b = {table->pairs.items[p].b, t};
            table->both[t * n_pairs + p] = (long double)interval->both[p];
            table->densities[t * n_pairs + p] = (long double)interval->densities[p];
            table->open_bins[t * n_pairs + p] =
                (long double)phema_intervals_open_bin(intervals, &a, &b, 1);
        }
    }
    phema_intervals_close(intervals);
    for (size_t t = 0, piece = 0; t < table->set.n_times; t++) { /* which the set may divide */
        while (piece + 1 < table->n_pieces && (phema_quad)table->ends[piece] < table->set.times[t])
            piece++;
        table->intervals[t] = piece;
    }
    return PHEMA_OK;
}

/* Divides the intervals between the snapshots' times into pieces. */
static bool find_pieces(struct phema_motion_table *table, const struct phema_profile *snapshots,
                        size_t n, size_t n_pieces)
{
    double *times = phema_arena_array(&table->memory, n + 1, sizeof(*times));
    table->ends = phema_arena_array(&table->memory, n * n_pieces + 1, sizeof(*table->ends));
    if (!times || !table->ends)
        return false;
    for (size_t i = 0; i < n; i++)
        times[i] = snapshots[i].t;
    qsort(times, n, sizeof(*times), phema_compare_doubles);
    double begin = 0;
    for (size_t i = 0; i < n; i++) {
        if (times[i] == begin)
            continue;
        for (size_t k = 1; k < n_pieces; k++)
            table->ends[table->n_pieces++] =
                begin + (times[i] - begin) * (double)k / (double)n_pieces;
        begin = table->ends[table->n_pieces++] = times[i];
    }
    return true;
}

struct row {                          /* one pair of snapshots, from its later end backwards */
    const struct phema_member *a, *b; /* a ends first */
    long double a_left, b_left;       /* of each at the end of the interval */
    long double walked, jittered;     /* so far */
};

static void measure(struct phema_motion_term *term, struct row *row,
                    const struct phema_motion_table *table, size_t t)
{
    size_t n_families = table->set.n_families, n_pairs = table->pairs.n;
    size_t a = row->a->family;
    size_t b = row->b->family;
    const long double *both = table->both + t * n_pairs;
    const long double *densities = table->densities + t * n_pairs;
    const long double *open = table->open_bins + t * n_pairs;
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
    term->interval = table->intervals[t];
    term->walk = walk > 0 ? (double)walk : 0;
    term->jitter = jitter > 0 ? (double)jitter : 0;
    row->walked += walk;
    row->jittered += jitter;
}

/* Shares of a pair, the last interval first; returns how many. */
static size_t measure_pair(struct phema_motion_term *items, const struct phema_motion_table *table,
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
        struct phema_motion_term term = {0};
        measure(&term, &row, table, t);
        if (n && items[n - 1].interval == term.interval) {
            items[n - 1].walk += term.walk;
            items[n - 1].jitter += term.jitter;
        } else {
            items[n++] = term;
        }
        bool is_faded = t < row.a->time && (long double)term.walk < NEGLIGIBLE * row.walked &&
                        (long double)term.jitter <= NEGLIGIBLE * row.jittered;
        if (is_faded)
            break;
    }
    return n;
}

PHEMA_FALLIBLE phema_motion_table_open(struct phema_motion_table **out,
                                       const struct phema_profile *snapshots, size_t n,
                                       size_t n_pieces, const struct phema_distance *pairs,
                                       size_t n_pairs, size_t reach, struct phema_error *err)
{
    struct phema_motion_table *table = calloc(1, sizeof(*table));
    if (!table || !find_pieces(table, snapshots, n, n_pieces)) {
        phema_motion_table_close(table);
        return phema_fail_memory(err);
    }
    const struct phema_motion pieces = {.n_intervals = table->n_pieces, .ends = table->ends};
    const struct phema_problem problem = {.snapshots = snapshots, .n = n, .motion = &pieces};
    enum phema_status status = phema_profile_set_build(&table->set, &problem, err);
    if (!status && !alloc_table(table, pairs, n_pairs, reach))
        status = phema_fail_memory(err);
    if (!status)
        status = fill_table(table, err);
    if (status)
        phema_motion_table_close(table);
    else
        *out = table;
    return status;
}

void phema_motion_table_close(struct phema_motion_table *table)
{
    if (!table)
        return;
    phema_profile_set_clear(&table->set);
    phema_arena_clear(&table->memory);
    free(table);
}

static bool measure_pairs(struct phema_motion_terms *terms, const struct phema_motion_table *table,
                          const struct phema_distance *pairs, struct phema_motion_term *line)
{
    size_t used = 0;
    for (size_t p = 0; p < terms->n_pairs; p++) {
        size_t n = measure_pair(line, table, &pairs[p]);
        for (size_t i = 0; i < n; i++, used++) {
            if (!phema_array_grow(&terms->items, &terms->capacity, used, sizeof(*terms->items)))
                return false;
            terms->items[used] = line[i];
        }
        terms->starts[p + 1] = used;
    }
    return true;
}

PHEMA_FALLIBLE phema_motion_terms_find(struct phema_motion_terms *out,
                                       const struct phema_motion_table *table,
                                       const struct phema_distance *pairs, size_t n_pairs,
                                       struct phema_error *err)
{
    struct phema_motion_terms terms = {.n_intervals = table->n_pieces,
                                       .n_pairs = n_pairs,
                                       .items = out->items,
                                       .capacity = out->capacity};
    out->items = NULL;
    phema_motion_terms_clear(out);
    struct phema_motion_term *line = calloc(table->set.n_times + 1, sizeof(*line));
    terms.ends = calloc(table->n_pieces + 1, sizeof(*terms.ends));
    terms.starts = calloc(n_pairs + 1, sizeof(*terms.starts));
    bool is_made = line && terms.ends && terms.starts && measure_pairs(&terms, table, pairs, line);
    free(line);
    if (!is_made) {
        phema_motion_terms_clear(&terms);
        return phema_fail_memory(err);
    }
    memcpy(terms.ends, table->ends, table->n_pieces * sizeof(*terms.ends));
    *out = terms;
    return PHEMA_OK;
}

void phema_motion_terms_clear(struct phema_motion_terms *terms)
{
    free(terms->ends);
    free(terms->starts);
    free(terms->items);
    *terms = (struct phema_motion_terms){0};
}
