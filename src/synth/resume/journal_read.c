// SPDX-License-Identifier: Apache-2.0
/* journal_read.c - reads the journal of an interrupted run, and drops invalid records. */
#include "resume/journal_read.h"

#include <stdlib.h>
#include <string.h>

#include "input_digests.h"
#include "phema/array.h"

/* Larger tiles cannot occur; a journal that claims one is corrupt. */
#define MAX_TILE_ELEMS ((uint64_t)1 << 24)

void journal_contents_clear(struct journal_contents *contents)
{
    free(contents->items);
    free(contents->varies);
    free(contents->is_torn);
    *contents = (struct journal_contents){0};
}

static enum phema_status begin_unit(struct journal_contents *contents, uint64_t n_segments,
                                    bool is_torn, struct phema_error *err)
{
    if (!phema_array_grow(&contents->is_torn, &contents->unit_capacity, contents->n_units,
                          sizeof(*contents->is_torn)))
        return phema_fail_memory(err);
    if (contents->n_units && contents->n_missing)
        contents->is_torn[contents->n_units - 1] = true;
    contents->is_torn[contents->n_units++] = is_torn;
    contents->n_missing = n_segments;
    return PHEMA_OK;
}

/* A later segment replaces those that it overlaps: they were recomputed. */
static enum phema_status add_segment(struct journal_contents *contents,
                                     const struct segment *segment, struct phema_error *err)
{
    if (!phema_array_grow(&contents->items, &contents->capacity, contents->n,
                          sizeof(*contents->items)))
        return phema_fail_memory(err);
    size_t low = 0, high = contents->n; /* the first that ends after its start */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (contents->items[middle].recorded.end <= segment->recorded.first)
            low = middle + 1;
        else
            high = middle;
    }
    size_t n = 0;
    for (; low + n < contents->n && contents->items[low + n].recorded.first < segment->recorded.end;
         n++)
        contents->is_torn[contents->items[low + n].unit] = true;
    memmove(contents->items + low + 1, contents->items + low + n,
            (contents->n - low - n) * sizeof(*contents->items));
    contents->items[low] = *segment;
    contents->n = contents->n - n + 1;
    return PHEMA_OK;
}

bool journal_is_current_version(struct journal_record *record, struct phema_span bytes)
{
    return journal_record_open(record, bytes) && record->tile_elems >= BLOCK_ELEMS &&
           record->tile_elems <= MAX_TILE_ELEMS;
}

static enum phema_status add_record(struct journal_contents *contents, const struct run *run,
                                    struct phema_span bytes, struct phema_error *err)
{
    struct journal_record record;
    if (!journal_is_current_version(&record, bytes))
        return PHEMA_OK;
    enum phema_status status = PHEMA_OK;
    if (record.n_digests)
        status =
            begin_unit(contents, record.n_unit, record.n_digests != input_digests_n_sums(run), err);
    for (uint64_t i = 0; i < record.n_segments && !status; i++) {
        struct segment segment = {journal_record_segment(&record, i), record.tile_elems,
                                  contents->n_units - 1};
        contents->n_missing--; /* surplus segments make the unit torn as well */
        if (segment.recorded.first < segment.recorded.end &&
            segment.recorded.end <= tiling_total(&run->tiling))
            status = add_segment(contents, &segment, err);
        else
            contents->is_torn[contents->n_units - 1] = true;
    }
    for (uint64_t i = 0; i < record.n_varying; i++) {
        uint64_t tensor = journal_record_varying(&record, i);
        if (tensor < run->plan->series->n_tensors)
            contents->varies[tensor] = true;
    }
    if (record.nan_tensor < contents->nan_tensor)
        contents->nan_tensor = record.nan_tensor;
    return status;
}

PHEMA_FALLIBLE journal_read(struct journal_contents *contents, const struct run *run,
                            struct phema_writer_journal *journal, struct phema_error *err)
{
    *contents = (struct journal_contents){.varies = calloc(run->plan->series->n_tensors + 1, 1),
                                          .nan_tensor = SIZE_MAX};
    if (!contents->varies)
        return phema_fail_memory(err);
    struct phema_span bytes;
    enum phema_status status = begin_unit(contents, 0, true, err); /* segments without digests */
    if (!status)
        status = phema_writer_journal_next(&bytes, journal, err);
    while (!status && bytes.data) {
        status = add_record(contents, run, bytes, err);
        if (!status)
            status = phema_writer_journal_next(&bytes, journal, err);
    }
    if (!status && contents->n_missing)
        contents->is_torn[contents->n_units - 1] = true;
    return status;
}
