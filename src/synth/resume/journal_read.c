// SPDX-License-Identifier: Apache-2.0
/* journal_read.c - see journal_read.h. */
#include "resume/journal_read.h"

#include <stdlib.h>
#include <string.h>

#include "input_digests.h"
#include "tile_blocks.h"

/* No tile is larger; what a journal says beyond that is none of ours. */
#define MAX_TILE_ELEMS ((uint64_t)1 << 24)

void journal_contents_clear(struct journal_contents *left)
{
    free(left->items);
    free(left->varies);
    free(left->is_torn);
    *left = (struct journal_contents){0};
}

static enum phema_status begin_unit(struct journal_contents *left, uint64_t n_segments,
                                    bool is_torn, struct phema_error *err)
{
    if (left->n_units == left->unit_capacity) {
        size_t capacity = left->unit_capacity ? 2 * left->unit_capacity : 64;
        bool *larger = realloc(left->is_torn, capacity * sizeof(*larger));
        if (!larger)
            return phema_fail_memory(err);
        left->is_torn = larger;
        left->unit_capacity = capacity;
    }
    if (left->n_units && left->n_missing)
        left->is_torn[left->n_units - 1] = true;
    left->is_torn[left->n_units++] = is_torn;
    left->n_missing = n_segments;
    return PHEMA_OK;
}

/* A later one stands for what it overlaps: that was made again. */
static enum phema_status add_segment(struct journal_contents *left, const struct segment *segment,
                                     struct phema_error *err)
{
    if (left->n == left->capacity) {
        size_t capacity = left->capacity ? 2 * left->capacity : 64;
        struct segment *items = realloc(left->items, capacity * sizeof(*items));
        if (!items)
            return phema_fail_memory(err);
        left->items = items;
        left->capacity = capacity;
    }
    size_t low = 0, high = left->n; /* the first that ends behind where it begins */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (left->items[middle].said.end <= segment->said.first)
            low = middle + 1;
        else
            high = middle;
    }
    size_t n = 0;
    for (; low + n < left->n && left->items[low + n].said.first < segment->said.end; n++)
        left->is_torn[left->items[low + n].unit] = true;
    memmove(left->items + low + 1, left->items + low + n,
            (left->n - low - n) * sizeof(*left->items));
    left->items[low] = *segment;
    left->n = left->n - n + 1;
    return PHEMA_OK;
}

bool journal_is_current_version(struct journal_record *record, struct phema_span bytes)
{
    return journal_record_open(record, bytes) && record->tile_elems >= BLOCK_ELEMS &&
           record->tile_elems <= MAX_TILE_ELEMS;
}

static enum phema_status add_record(struct journal_contents *left, const struct run *run,
                                    struct phema_span bytes, struct phema_error *err)
{
    struct journal_record record;
    if (!journal_is_current_version(&record, bytes))
        return PHEMA_OK;
    enum phema_status status = PHEMA_OK;
    if (record.n_digests)
        status =
            begin_unit(left, record.n_unit, record.n_digests != input_digests_n_sums(run), err);
    for (uint64_t i = 0; i < record.n_segments && !status; i++) {
        struct segment segment = {journal_record_segment(&record, i), record.tile_elems,
                                  left->n_units - 1};
        left->n_missing--; /* of more than there should be something is missing as well */
        if (segment.said.first < segment.said.end && segment.said.end <= tiling_total(&run->cut))
            status = add_segment(left, &segment, err);
        else
            left->is_torn[left->n_units - 1] = true;
    }
    for (uint64_t i = 0; i < record.n_varying; i++) {
        uint64_t tensor = journal_record_varying(&record, i);
        if (tensor < run->plan->series->n_tensors)
            left->varies[tensor] = true;
    }
    if (record.nan_tensor < left->nan_tensor)
        left->nan_tensor = record.nan_tensor;
    return status;
}

PHEMA_FALLIBLE journal_read(struct journal_contents *left, const struct run *run,
                            struct phema_writer_journal *journal, struct phema_error *err)
{
    *left = (struct journal_contents){.varies = calloc(run->plan->series->n_tensors + 1, 1),
                                      .nan_tensor = SIZE_MAX};
    if (!left->varies)
        return phema_fail_memory(err);
    struct phema_span bytes;
    enum phema_status status = begin_unit(left, 0, true, err); /* that of no digests */
    if (!status)
        status = phema_writer_journal_next(&bytes, journal, err);
    while (!status && bytes.data) {
        status = add_record(left, run, bytes, err);
        if (!status)
            status = phema_writer_journal_next(&bytes, journal, err);
    }
    if (!status && left->n_missing)
        left->is_torn[left->n_units - 1] = true;
    return status;
}
