// SPDX-License-Identifier: Apache-2.0
/* motion_pairs.c - which distances between snapshots say how parameters move. */
#include "phema/profile.h"

#include <stdlib.h>

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

PHEMA_FALLIBLE phema_motion_pairs(struct phema_distance **pairs, size_t *n_pairs,
                                  const struct phema_profile *snapshots, size_t n,
                                  struct phema_error *err)
{
    struct timed *order = calloc(n + 1, sizeof(*order));
    struct phema_distance *made = NULL;
    size_t count = 0;
    for (size_t i = 0; order && i < n; i++)
        order[i] = (struct timed){snapshots[i].t, i};
    if (order)
        qsort(order, n, sizeof(*order), compare_timed);
    bool is_alone = order && is_single(order, n);
    /* first counted, then made */
    for (int pass = 0; order && pass < 2; pass++) {
        if (pass && !(made = calloc(count + 1, sizeof(*made))))
            break;
        count = 0;
        for (size_t i = 0; i < n; i++) {
            size_t end = group_end(order, n, group_end(order, n, i));
            if (is_alone)
                end = group_end(order, n, end);
            for (size_t j = i + 1; j < end; j++, count++)
                if (pass)
                    made[count] = (struct phema_distance){.i = order[i].index, .j = order[j].index};
        }
    }
    free(order);
    if (!made)
        return phema_fail_memory(err);
    *pairs = made;
    *n_pairs = count;
    return PHEMA_OK;
}
