// SPDX-License-Identifier: Apache-2.0
/* resume.c - see resume.h. */
#include "resume.h"

#include <stdlib.h>
#include <string.h>

#include "phema/writer.h"
#include "progress.h"
#include "read_back.h"

/* No tile is larger; what a journal says beyond that is none of ours. */
#define MAX_TILE_ELEMS ((uint64_t)1 << 24)

/* What a journal says of an output. */
struct left {
    struct segment {
        struct progress_segment said;
        uint64_t tile_elems;
    } * items; /* [n] sorted; none overlap */
    size_t n, capacity;
    uint8_t *varies; /* [n_tensors] */
    uint64_t nan_tensor;
};

/* In a segment something was counted: it is used as a whole or not at all. */
struct counted {
    uint64_t first, end;
    struct phema_narrow_counts counts;
};

struct resuming {
    struct run *run;
    struct cut other; /* of another size of tiles than the run's; tile_elems 0: none yet */
    struct counted *counted;
    size_t n_counted, counted_capacity;
};

static void clear_left(struct left *left)
{
    free(left->items);
    free(left->varies);
    *left = (struct left){0};
}

/* ---- Reading a journal ---- */

/* A later one stands for what it overlaps: that was made again. */
static enum phema_status add_segment(struct left *left, const struct segment *segment,
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
    while (low + n < left->n && left->items[low + n].said.first < segment->said.end)
        n++;
    memmove(left->items + low + 1, left->items + low + n,
            (left->n - low - n) * sizeof(*left->items));
    left->items[low] = *segment;
    left->n = left->n - n + 1;
    return PHEMA_OK;
}

static enum phema_status add_record(struct left *left, const struct run *run,
                                    struct phema_span bytes, struct phema_error *err)
{
    struct progress_record record;
    if (!progress_record_open(&record, bytes) || record.tile_elems < BLOCK_ELEMS ||
        record.tile_elems > MAX_TILE_ELEMS)
        return PHEMA_OK;
    enum phema_status status = PHEMA_OK;
    for (uint64_t i = 0; i < record.n_segments && !status; i++) {
        struct segment segment = {progress_record_segment(&record, i), record.tile_elems};
        if (segment.said.first < segment.said.end && segment.said.end <= cut_total(&run->cut))
            status = add_segment(left, &segment, err);
    }
    for (uint64_t i = 0; i < record.n_varying; i++) {
        uint64_t tensor = progress_record_varying(&record, i);
        if (tensor < run->plan->series->n_tensors)
            left->varies[tensor] = true;
    }
    if (record.nan_tensor < left->nan_tensor)
        left->nan_tensor = record.nan_tensor;
    return status;
}

static enum phema_status read_journal(struct left *left, const struct run *run,
                                      struct phema_writer_journal *journal, struct phema_error *err)
{
    *left = (struct left){.varies = calloc(run->plan->series->n_tensors + 1, 1),
                          .nan_tensor = SIZE_MAX};
    if (!left->varies)
        return phema_fail_memory(err);
    struct phema_span bytes;
    enum phema_status status = phema_writer_journal_next(&bytes, journal, err);
    while (!status && bytes.data) {
        status = add_record(left, run, bytes, err);
        if (!status)
            status = phema_writer_journal_next(&bytes, journal, err);
    }
    return status;
}

/* ---- Seeing whether it is so ---- */

static enum phema_status cut_of(const struct cut **out, struct resuming *resuming,
                                uint64_t tile_elems, struct phema_error *err)
{
    const struct run *run = resuming->run;
    *out = &run->cut;
    if (run->cut.tile_elems == tile_elems)
        return PHEMA_OK;
    *out = &resuming->other;
    if (resuming->other.tile_elems == tile_elems)
        return PHEMA_OK;
    struct share share = {run->options.part, run->options.n_parts};
    struct cut_kinds kinds = {run->outputs->dtypes, run->plan->rule_of};
    cut_clear(&resuming->other);
    return cut_make(&resuming->other, run->plan->series, &kinds, share, (size_t)tile_elems, 1, 1,
                    err);
}

/* What cannot be read is made again; without memory there is no going on. */
static enum phema_status check_segment(bool *is_so, struct resuming *resuming, size_t output,
                                       const struct segment *segment, struct phema_error *err)
{
    const struct cut *cut = NULL;
    enum phema_status status = cut_of(&cut, resuming, segment->tile_elems, err);
    if (status)
        return status;
    uint64_t at = segment->said.first, sum = 0;
    size_t hint = 0;
    for (uint64_t t = cut_tile_at(cut, at); at < segment->said.end && !status; t++) {
        struct piece piece = cut_tile(cut, t, &hint);
        if (piece.position != at)
            break;
        status = read_back_tile(resuming->run, output, &piece, &sum, err);
        at += piece.n_elems;
    }
    *is_so = !status && at == segment->said.end && sum == segment->said.account.sum;
    return status == PHEMA_ERR_RESOURCE ? status : PHEMA_OK;
}

static enum phema_status keep_counted(struct resuming *resuming,
                                      const struct progress_segment *said, struct phema_error *err)
{
    if (resuming->n_counted == resuming->counted_capacity) {
        size_t capacity = resuming->counted_capacity ? 2 * resuming->counted_capacity : 16;
        struct counted *counted = realloc(resuming->counted, capacity * sizeof(*counted));
        if (!counted)
            return phema_fail_memory(err);
        resuming->counted = counted;
        resuming->counted_capacity = capacity;
    }
    resuming->counted[resuming->n_counted++] =
        (struct counted){said->first, said->end, said->account.counts};
    return PHEMA_OK;
}

/* Of one in which something was counted the tiles must be the run's own; where NaN is refused now,
 * and was not, it is met again. */
static bool is_usable(const struct run *run, const struct segment *segment)
{
    const struct phema_narrow_counts *counts = &segment->said.account.counts;
    if (!counts_any(counts))
        return true;
    return segment->tile_elems == run->cut.tile_elems &&
           !(run->options.refuses_nan && counts->n_nan + counts->n_inf);
}

static enum phema_status check_output(struct done *done, struct resuming *resuming, size_t output,
                                      const struct left *left, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t x = 0; x < left->n && !status; x++) {
        const struct segment *segment = &left->items[x];
        bool is_so = false;
        if (!is_usable(resuming->run, segment))
            continue;
        status = check_segment(&is_so, resuming, output, segment, err);
        if (!status && is_so)
            status = done_add(done, segment->said.first, segment->said.end, err);
        if (!status && is_so && counts_any(&segment->said.account.counts))
            status = keep_counted(resuming, &segment->said, err);
    }
    return status;
}

/* ---- A pass ---- */

/* What goes takes others with it, where they overlap. */
static enum phema_status drop_torn_counts(struct done *done, struct resuming *resuming,
                                          struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (bool has_dropped = true; has_dropped && !status;) {
        has_dropped = false;
        for (size_t x = 0; x < resuming->n_counted && !status;) {
            struct counted counted = resuming->counted[x];
            if (done_has(done, counted.first, counted.end)) {
                x++;
                continue;
            }
            status = done_remove(done, counted.first, counted.end, err);
            resuming->counted[x] = resuming->counted[--resuming->n_counted];
            has_dropped = true;
        }
    }
    return status;
}

static void take_over(struct run *run, const struct left *left, struct phema_synth_result *result)
{
    for (size_t i = 0; i < run->plan->series->n_tensors; i++)
        if (left->varies[i])
            atomic_store_explicit(&run->varies[i], true, memory_order_relaxed);
    if (left->nan_tensor < result->nan_tensor && left->nan_tensor < run->plan->series->n_tensors)
        result->nan_tensor = (size_t)left->nan_tensor;
}

/* done: of the outputs before it, and then of this one as well */
static enum phema_status resume_output(struct done *done, struct resuming *resuming, size_t output,
                                       bool is_first, bool is_used,
                                       struct phema_synth_result *result, struct phema_error *err)
{
    struct run *run = resuming->run;
    struct left left = {0};
    struct done own = {0};
    enum phema_status status = read_journal(&left, run, sink_journal(run->sinks[output]), err);
    if (!status && is_used)
        status = check_output(&own, resuming, output, &left, err);
    if (!status && is_used && own.n)
        take_over(run, &left, result);
    if (!status && is_used && is_first) {
        *done = own;
        own = (struct done){0};
    } else if (!status && is_used) {
        status = done_intersect(done, &own, err);
    }
    done_clear(&own);
    clear_left(&left);
    return status;
}

static void add_counts(const struct resuming *resuming, struct phema_synth_result *result)
{
    for (size_t x = 0; x < resuming->n_counted; x++) {
        result->n_nan += resuming->counted[x].counts.n_nan;
        result->n_inf += resuming->counted[x].counts.n_inf;
        result->n_overflow += resuming->counted[x].counts.n_overflow;
    }
}

/* What is not put again is read back in the end nevertheless. */
static enum phema_status take_for_given(const struct done *done, struct run *run, size_t first,
                                        size_t end, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    size_t hint = 0;
    for (uint64_t t = 0; t < cut_n_tiles(&run->cut) && run->options.verifies && !status; t++) {
        struct piece piece = cut_tile(&run->cut, t, &hint);
        if (!done_has(done, piece.position, piece.position + piece.n_elems))
            continue;
        for (size_t j = first; j < end && !status; j++)
            status = read_back_tile(run, j, &piece, NULL, err);
    }
    return status;
}

PHEMA_FALLIBLE resume_pass(struct done *done, struct run *run, size_t first, size_t end,
                           struct phema_synth_result *result, struct phema_error *err)
{
    struct resuming resuming = {.run = run};
    struct done found = {0};
    bool are_all = true;
    for (size_t j = first; j < end; j++)
        are_all = are_all && sink_begun(run->sinks[j]) == SINK_GOES_ON;
    enum phema_status status = PHEMA_OK;
    for (size_t j = first; j < end && !status; j++)
        if (sink_journal(run->sinks[j]))
            status = resume_output(&found, &resuming, j, j == first, are_all, result, err);
    if (!status)
        status = drop_torn_counts(&found, &resuming, err);
    if (!status)
        status = take_for_given(&found, run, first, end, err);
    if (!status) {
        add_counts(&resuming, result);
        *done = found;
    } else {
        done_clear(&found);
    }
    cut_clear(&resuming.other);
    free(resuming.counted);
    return status;
}
