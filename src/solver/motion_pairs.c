// SPDX-License-Identifier: Apache-2.0
/* motion_pairs.c - which distances between snapshots say how parameters move. */
#include "phema/solver.h"

#include <stdlib.h>
#include <string.h>

/* More times, or pairs, tell no more than they cost: some 1e-2 s. */
#define MAX_TIMES  64
#define MIN_TIMES  8
#define MANY_PAIRS 3000

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

/* One snapshot at each time: distances of neighbours alone do not tell a random walk, which leads
 * away, from jitter, which does not. */
static bool is_single(const struct timed *order, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (order[i].t == order[i - 1].t)
            return false;
    return true;
}

/* Where each time begins: starts [n_times + 1]. Returns n_times. */
static size_t find_groups(size_t *starts, const struct timed *order, size_t n)
{
    size_t n_times = 0;
    for (size_t i = 0; i < n; i = group_end(order, n, i))
        starts[n_times++] = i;
    starts[n_times] = n;
    return n_times;
}

/* So many times are looked at, evenly chosen, the last one among them. */
static size_t count_chosen(size_t n_times, size_t n)
{
    size_t per_time = n_times ? (n + n_times - 1) / n_times : 1;
    size_t affordable = MANY_PAIRS / (per_time * (per_time - 1) / 2 + per_time * per_time);
    size_t most = affordable < MIN_TIMES   ? MIN_TIMES
                  : affordable > MAX_TIMES ? MAX_TIMES
                                           : affordable;
    return n_times < most ? n_times : most;
}

/* Keeps the snapshots of the chosen times at the front of the order; returns how many. */
static size_t choose_times(struct timed *order, const size_t *starts, size_t n_times, size_t n)
{
    size_t n_chosen = count_chosen(n_times, n);
    size_t kept = 0;
    for (size_t c = 0; c < n_chosen; c++) {
        size_t t = (c + 1) * n_times / n_chosen - 1;
        size_t size = starts[t + 1] - starts[t];
        memmove(order + kept, order + starts[t], size * sizeof(*order));
        kept += size;
    }
    return kept;
}

/* Counts the pairs of snapshots at one time or at neighbouring times, and lists them in `pairs`
 * unless it is NULL. With one snapshot at each time, neighbours of neighbours count as well. */
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
        bool is_alone = is_single(order, n);
        size_t n_chosen = choose_times(order, starts, find_groups(starts, order, n), n);
        count = list_pairs(NULL, order, n_chosen, is_alone);
        made = calloc(count + 1, sizeof(*made));
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
