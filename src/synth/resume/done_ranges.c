// SPDX-License-Identifier: Apache-2.0
/* done_ranges.c - see done_ranges.h. */
#include "resume/done_ranges.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends at or behind a position. */
static size_t find(const struct done_ranges *done, uint64_t position)
{
    size_t low = 0, high = done->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (done->items[middle].end < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool done_ranges_has(const struct done_ranges *done, uint64_t first, uint64_t end)
{
    size_t x = find(done, end);
    return x < done->n && done->items[x].first <= first && done->items[x].end >= end;
}

static enum phema_status make_room(struct done_ranges *done, struct phema_error *err)
{
    if (done->n < done->capacity)
        return PHEMA_OK;
    size_t capacity = done->capacity ? 2 * done->capacity : 16;
    struct done_ranges_range *items = realloc(done->items, capacity * sizeof(*items));
    if (!items)
        return phema_fail_memory(err);
    done->items = items;
    done->capacity = capacity;
    return PHEMA_OK;
}

/* n ranges from x on become that many others. */
static void replace(struct done_ranges *done, size_t x, size_t n,
                    const struct done_ranges_range *with, size_t n_with)
{
    memmove(done->items + x + n_with, done->items + x + n,
            (done->n - x - n) * sizeof(*done->items));
    memcpy(done->items + x, with, n_with * sizeof(*with));
    done->n = done->n - n + n_with;
}

PHEMA_FALLIBLE done_ranges_add(struct done_ranges *done, uint64_t first, uint64_t end,
                               struct phema_error *err)
{
    enum phema_status status = make_room(done, err);
    if (status || first >= end)
        return status;
    struct done_ranges_range range = {first, end};
    size_t x = find(done, first), n = 0;
    for (; x + n < done->n && done->items[x + n].first <= end; n++) {
        const struct done_ranges_range *met = &done->items[x + n];
        range.first = met->first < range.first ? met->first : range.first;
        range.end = met->end > range.end ? met->end : range.end;
    }
    replace(done, x, n, &range, 1);
    return PHEMA_OK;
}

PHEMA_FALLIBLE done_ranges_remove(struct done_ranges *done, uint64_t first, uint64_t end,
                                  struct phema_error *err)
{
    enum phema_status status = make_room(done, err);
    if (status || first >= end)
        return status;
    struct done_ranges_range left[2];
    size_t x = find(done, first), n = 0, n_left = 0;
    for (; x + n < done->n && done->items[x + n].first < end; n++) {
        const struct done_ranges_range *met = &done->items[x + n];
        if (met->first < first) /* of the first one met alone */
            left[n_left++] =
                (struct done_ranges_range){met->first, met->end < first ? met->end : first};
        if (met->end > end) /* of the last one */
            left[n_left++] = (struct done_ranges_range){end, met->end};
    }
    replace(done, x, n, left, n_left);
    return PHEMA_OK;
}

PHEMA_FALLIBLE done_ranges_intersect(struct done_ranges *done, const struct done_ranges *other,
                                     struct phema_error *err)
{
    uint64_t at = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t x = 0; x < other->n && !status; x++) {
        status = done_ranges_remove(done, at, other->items[x].first, err);
        at = other->items[x].end;
    }
    return status ? status : done_ranges_remove(done, at, UINT64_MAX, err);
}

void done_ranges_clear(struct done_ranges *done)
{
    free(done->items);
    *done = (struct done_ranges){0};
}
