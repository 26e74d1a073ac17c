// SPDX-License-Identifier: Apache-2.0
/* resume.c - checks recorded tiles against the files, and skips them. */
#include "resume/resume.h"

#include <stdlib.h>

#include "input_digests.h"
#include "phema/array.h"
#include "tile.h"

struct resuming {
    struct run *run;
    struct tiling other; /* with other tiles than the run's; tile_elems 0: not made yet */
    /* Segments in which something was counted or hashed. Each is used entirely or not at all, and
     * so is its unit. */
    struct segment *segments; /* [n_segments] */
    size_t n_segments, segments_capacity;
    bool *is_dropped; /* [n_units] of all outputs so far */
    size_t n_units;
    size_t *ends; /* [outputs->m] end of the units of each output of the pass */
};

/* ---- Checking the files ---- */

static enum phema_status tiling_of(const struct tiling **out, struct resuming *resuming,
                                   uint64_t tile_elems, struct phema_error *err)
{
    const struct run *run = resuming->run;
    *out = &run->tiling;
    if (run->tiling.tile_elems == tile_elems)
        return PHEMA_OK;
    *out = &resuming->other;
    if (resuming->other.tile_elems == tile_elems)
        return PHEMA_OK;
    tiling_clear(&resuming->other);
    return run_make_tiling(&resuming->other, run, (size_t)tile_elems, 1, 1, err);
}

/* Unreadable segments are recomputed. Only a lack of memory is an error. */
static enum phema_status check_segment(bool *is_intact, struct resuming *resuming, size_t output,
                                       const struct segment *segment, struct phema_error *err)
{
    const struct tiling *tiling = NULL;
    enum phema_status status = tiling_of(&tiling, resuming, segment->tile_elems, err);
    if (status)
        return status;
    uint64_t at = segment->first, sum = 0;
    size_t hint = 0;
    for (uint64_t t = tiling_tile_at(tiling, at); at < segment->end && !status; t++) {
        struct tile_range range = tiling_tile(tiling, t, &hint);
        if (range.position != at)
            break;
        status = tile_transfer(resuming->run, output, &range, NULL, &sum, err);
        at += range.n_elems;
    }
    *is_intact = !status && at == segment->end && sum == segment->account.sum;
    return status == PHEMA_ERR_RESOURCE ? status : PHEMA_OK;
}

static bool is_end_of_tile(const struct tiling *tiling, uint64_t position)
{
    size_t hint = 0;
    return position == tiling_total(tiling) ||
           tiling_tile(tiling, tiling_tile_at(tiling, position), &hint).position == position;
}

/* A segment with counts needs the run's own tiles, and a hashed one must begin and end at tiles of
 * the run: elements that are recomputed would count twice. If NaN is refused now, and was not
 * before, segments with NaN are recomputed to report it. */
static bool is_usable(const struct run *run, const struct segment *segment)
{
    const struct phema_narrow_counts *counts = &segment->account.counts;
    if (run->input_digests && !(is_end_of_tile(&run->tiling, segment->first) &&
                                is_end_of_tile(&run->tiling, segment->end)))
        return false;
    if (!counts_any(counts))
        return true;
    return segment->tile_elems == run->tiling.tile_elems &&
           !(run->options.refuses_nan && counts->n_nan + counts->n_inf);
}

/* Numbers the units of an output after those of the outputs before it. Without digests each segment
 * is its own unit. */
static enum phema_status add_units(struct resuming *resuming, size_t output,
                                   struct journal_contents *contents, struct phema_error *err)
{
    bool is_hashed = resuming->run->input_digests != NULL;
    size_t n = is_hashed ? contents->n_units : contents->n;
    bool *is_dropped = realloc(resuming->is_dropped, resuming->n_units + n + 1);
    if (!is_dropped)
        return phema_fail_memory(err);
    resuming->is_dropped = is_dropped;
    for (size_t u = 0; u < n; u++)
        is_dropped[resuming->n_units + u] = is_hashed && contents->is_torn[u];
    for (size_t x = 0; x < contents->n; x++)
        contents->items[x].unit = resuming->n_units + (is_hashed ? contents->items[x].unit : x);
    resuming->n_units += n;
    resuming->ends[output] = resuming->n_units;
    return PHEMA_OK;
}

/* The segment is done. */
static enum phema_status add_done(struct done_ranges *done, struct resuming *resuming,
                                  const struct segment *segment, struct phema_error *err)
{
    enum phema_status status = done_ranges_add(done, segment->first, segment->end, err);
    if (status || !(resuming->run->input_digests || counts_any(&segment->account.counts)))
        return status;
    if (!phema_array_grow(&resuming->segments, &resuming->segments_capacity, resuming->n_segments,
                          sizeof(*resuming->segments)))
        return phema_fail_memory(err);
    resuming->segments[resuming->n_segments++] = *segment;
    return PHEMA_OK;
}

/* Intact units are done. */
static enum phema_status check_output(struct done_ranges *done, struct resuming *resuming,
                                      size_t output, struct journal_contents *contents,
                                      struct phema_error *err)
{
    enum phema_status status = add_units(resuming, output, contents, err);
    for (size_t x = 0; x < contents->n && !status; x++) {
        const struct segment *segment = &contents->items[x];
        bool *is_dropped = &resuming->is_dropped[segment->unit];
        bool is_intact = false;
        if (!*is_dropped && is_usable(resuming->run, segment))
            status = check_segment(&is_intact, resuming, output, segment, err);
        *is_dropped |= !is_intact;
    }
    for (size_t x = 0; x < contents->n && !status; x++)
        if (!resuming->is_dropped[contents->items[x].unit])
            status = add_done(done, resuming, &contents->items[x], err);
    return status;
}

/* ---- A pass ---- */

/* A dropped unit takes overlapping units with it. */
static enum phema_status drop_torn(struct done_ranges *done, struct resuming *resuming,
                                   struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (bool has_dropped = true; has_dropped && !status;) {
        has_dropped = false;
        for (size_t x = 0; x < resuming->n_segments; x++) {
            const struct segment *segment = &resuming->segments[x];
            if (!resuming->is_dropped[segment->unit] &&
                !done_ranges_has(done, segment->first, segment->end))
                has_dropped = resuming->is_dropped[segment->unit] = true;
        }
        for (size_t x = 0; x < resuming->n_segments && has_dropped && !status; x++) {
            const struct segment *segment = &resuming->segments[x];
            if (resuming->is_dropped[segment->unit])
                status = done_ranges_remove(done, segment->first, segment->end, err);
        }
    }
    return status;
}

/* own: the finished tiles of the output */
static enum phema_status intersect_output(struct done_ranges *done, struct done_ranges *own,
                                          struct journal_contents *contents,
                                          struct resuming *resuming, size_t output, bool is_first,
                                          struct phema_error *err)
{
    enum phema_status status = check_output(own, resuming, output, contents, err);
    if (status)
        return status;
    struct run *run = resuming->run;
    size_t n_tensors = run->plan->series->n_tensors;
    for (size_t i = 0; i < n_tensors && own->n; i++)
        if (contents->varies[i])
            atomic_store_explicit(&run->varies[i], true, memory_order_relaxed);
    if (own->n && contents->nan_tensor < run->result->nan_tensor &&
        contents->nan_tensor < n_tensors)
        run->result->nan_tensor = (size_t)contents->nan_tensor;
    if (!is_first)
        return done_ranges_intersect(done, own, err);
    *done = *own;
    *own = (struct done_ranges){0};
    return PHEMA_OK;
}

/* Reads the journal to its end, even if it is not used.
 *   done  the finished tiles of all outputs before this one; then of this one as well */
static enum phema_status resume_output(struct done_ranges *done, struct resuming *resuming,
                                       size_t output, bool is_first, bool is_used,
                                       struct phema_error *err)
{
    struct run *run = resuming->run;
    struct journal_contents contents = {0};
    struct done_ranges own = {0};
    enum phema_status status = journal_read(&contents, run, sink_journal(run->sinks[output]), err);
    if (!status && is_used)
        status = intersect_output(done, &own, &contents, resuming, output, is_first, err);
    done_ranges_clear(&own);
    journal_contents_clear(&contents);
    return status;
}

/* ---- Digests ---- */

/* Adds the sums that earlier outputs lacked. has: [input_digests_n_sums] sums that are present */
static void add_digests(struct run *run, size_t output, const bool *has,
                        const struct journal_record *record)
{
    for (size_t x = 0; x < input_digests_n_sums(run); x++) {
        struct phema_hash_sum sum = journal_record_digest(record, x);
        if (!has[x] && input_digests_is_input(run, output, x))
            phema_hash_sum_add(&run->input_digests->sums[x], &sum);
    }
}

/* Adds the digests of an output's usable units. *unit: its first unit, which has no digests; then
 * the first of the next output. */
static enum phema_status read_digests(struct resuming *resuming, size_t output, size_t *unit,
                                      bool *has, struct phema_error *err)
{
    struct run *run = resuming->run;
    struct phema_writer_journal *journal = sink_journal(run->sinks[output]);
    phema_writer_journal_again(journal);
    for (;;) {
        struct phema_span bytes;
        struct journal_record record;
        enum phema_status status = phema_writer_journal_next(&bytes, journal, err);
        if (status)
            return status;
        if (!bytes.data)
            break;
        if (journal_record_open(&record, bytes) && record.n_digests &&
            ++*unit < resuming->ends[output] && !resuming->is_dropped[*unit])
            add_digests(run, output, has, &record);
    }
    if (++*unit != resuming->ends[output])
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: its journal could be read once only",
                          run->outputs->items[output].path);
    for (size_t x = 0; x < input_digests_n_sums(run); x++)
        has[x] = has[x] || input_digests_is_input(run, output, x);
    return PHEMA_OK;
}

/* Each output was made from some of the data that a run has read, of the same tiles in all. */
static enum phema_status add_journal_digests(struct resuming *resuming, struct phema_error *err)
{
    struct run *run = resuming->run;
    size_t unit = 0;
    if (!resuming->is_dropped) /* no output is resumed */
        return PHEMA_OK;
    bool *has = calloc(input_digests_n_sums(run) + 1, sizeof(*has));
    if (!has)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    for (size_t j = run->first_output; j < run->end_output && !status; j++)
        if (sink_journal(run->sinks[j]))
            status = read_digests(resuming, j, &unit, has, err);
    free(has);
    return status;
}

/* Sinks note the data of tiles that are not written again, where they need them. */
static enum phema_status accept_done_tiles(const struct done_ranges *done, struct run *run,
                                           struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    size_t hint = 0;
    bool are_needed =
        run->first_output < run->end_output && sink_needs_done_tiles(run->sinks[run->first_output]);
    for (uint64_t t = 0; t < tiling_n_tiles(&run->tiling) && are_needed && !status; t++) {
        struct tile_range range = tiling_tile(&run->tiling, t, &hint);
        if (!done_ranges_has(done, range.position, range.position + range.n_elems))
            continue;
        for (size_t j = run->first_output; j < run->end_output && !status; j++)
            status = tile_transfer(run, j, &range, NULL, NULL, err);
    }
    return status;
}

static enum phema_status find_done(struct done_ranges *done, struct resuming *resuming,
                                   struct phema_error *err)
{
    struct run *run = resuming->run;
    bool are_all = true;
    for (size_t j = run->first_output; j < run->end_output; j++)
        are_all = are_all && sink_start_state(run->sinks[j]) == SINK_RESUMED;
    enum phema_status status = PHEMA_OK;
    for (size_t j = run->first_output; j < run->end_output && !status; j++)
        if (sink_journal(run->sinks[j]))
            status = resume_output(done, resuming, j, j == run->first_output, are_all, err);
    if (status)
        return status;
    status = drop_torn(done, resuming, err);
    if (status)
        return status;
    if (are_all && run->input_digests) {
        status = add_journal_digests(resuming, err);
        if (status)
            return status;
    }
    return accept_done_tiles(done, run, err);
}

PHEMA_FALLIBLE resume_pass(struct done_ranges *done, struct run *run, struct phema_error *err)
{
    struct resuming resuming = {.run = run,
                                .ends = calloc(run->outputs->m + 1, sizeof(*resuming.ends))};
    struct done_ranges found = {0};
    enum phema_status status =
        resuming.ends ? find_done(&found, &resuming, err) : phema_fail_memory(err);
    for (size_t x = 0; x < resuming.n_segments && !status; x++) {
        const struct segment *segment = &resuming.segments[x];
        if (!resuming.is_dropped[segment->unit])
            run_add_counts(run, &segment->account.counts);
    }
    if (status)
        done_ranges_clear(&found);
    else
        *done = found;
    tiling_clear(&resuming.other);
    free(resuming.segments);
    free(resuming.is_dropped);
    free(resuming.ends);
    return status;
}
