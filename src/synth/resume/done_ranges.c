// SPDX-License-Identifier: Apache-2.0
/* done_ranges.c - set of finished ranges. */
#include "resume/resume.h"

#include <stdlib.h>
#include <string.h>

#include "phema/array.h"

/* The first range that ends at or after a position. */
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

static enum phema_status reserve_one(struct done_ranges *done, struct phema_error *err)
{
    bool has_room = phema_array_grow(&done->items, &done->capacity, done->n, sizeof(*done->items));
    return has_room ? PHEMA_OK : phema_fail_memory(err);
}

/* Replaces n ranges from x on. */
static void replace(struct done_ranges *done, size_t x, size_t n, const struct done_range *with,
                    size_t n_with)
{
    memmove(done->items + x + n_with, done->items + x + n,
            (done->n - x - n) * sizeof(*done->items));
    memcpy(done->items + x, with, n_with * sizeof(*with));
    done->n = done->n - n + n_with;
}

PHEMA_FALLIBLE done_ranges_add(struct done_ranges *done, uint64_t first, uint64_t end,
                               struct phema_error *err)
{
    enum phema_status status = reserve_one(done, err);
    if (status || first >= end)
        return status;
    struct done_range range = {first, end};
    size_t x = find(done, first), n = 0;
    for (; x + n < done->n && done->items[x + n].first <= end; n++) {
        const struct done_range *met = &done->items[x + n];
        range.first = met->first < range.first ? met->first : range.first;
        range.end = met->end > range.end ? met->end : range.end;
    }
    replace(done, x, n, &range, 1);
    return PHEMA_OK;
}

PHEMA_FALLIBLE done_ranges_remove(struct done_ranges *done, uint64_t first, uint64_t end,
                                  struct phema_error *err)
{
    enum phema_status status = reserve_one(done, err);
    if (status || first >= end)
        return status;
    struct done_range left[2];
    size_t x = find(done, first), n = 0, n_left = 0;
    for (; x + n < done->n && done->items[x + n].first < end; n++) {
        const struct done_range *met = &done->items[x + n];
        if (met->first < first) /* true for the first one only */
            left[n_left++] = (struct done_range){met->first, met->end < first ? met->end : first};
        if (met->end > end) /* true for the last one only */
            left[n_left++] = (struct done_range){end, met->end};
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
