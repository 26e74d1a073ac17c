// SPDX-License-Identifier: Apache-2.0
/* resume.c - see resume.h. */
#include "resume/resume.h"

#include <stdlib.h>
#include <string.h>

#include "input_digests.h"
#include "read_back.h"
#include "resume/journal_read.h"

/* Something was counted or hashed in a segment: it is used as a whole or not at all, and so are all
 * of its unit. */
struct whole {
    uint64_t first, end;
    struct phema_narrow_counts counts;
    size_t unit; /* of all outputs */
};

struct resuming {
    struct run *run;
    struct tiling other; /* of another size of tiles than the run's; tile_elems 0: none yet */
    struct whole *wholes;
    size_t n_wholes, wholes_capacity;
    bool *is_dropped; /* [n_units] of all outputs so far */
    size_t n_units;
    size_t *ends; /* [outputs->m] of the units of each output of the pass */
};

/* ---- Seeing whether it is so ---- */

static enum phema_status cut_of(const struct tiling **out, struct resuming *resuming,
                                uint64_t tile_elems, struct phema_error *err)
{
    const struct run *run = resuming->run;
    *out = &run->cut;
    if (run->cut.tile_elems == tile_elems)
        return PHEMA_OK;
    *out = &resuming->other;
    if (resuming->other.tile_elems == tile_elems)
        return PHEMA_OK;
    struct part_range share = {run->options.part, run->options.n_parts};
    struct tiling_kinds kinds = {run->outputs->dtypes, run->plan->rule_of};
    tiling_clear(&resuming->other);
    return tiling_make(&resuming->other, run->plan->series, &kinds, share, (size_t)tile_elems, 1, 1,
                       err);
}

/* What cannot be read is made again; without memory there is no going on. */
static enum phema_status check_segment(bool *is_so, struct resuming *resuming, size_t output,
                                       const struct segment *segment, struct phema_error *err)
{
    const struct tiling *cut = NULL;
    enum phema_status status = cut_of(&cut, resuming, segment->tile_elems, err);
    if (status)
        return status;
    uint64_t at = segment->said.first, sum = 0;
    size_t hint = 0;
    for (uint64_t t = tiling_tile_at(cut, at); at < segment->said.end && !status; t++) {
        struct tile_range piece = tiling_tile(cut, t, &hint);
        if (piece.position != at)
            break;
        status = tile_reread(resuming->run, output, &piece, &sum, err);
        at += piece.n_elems;
    }
    *is_so = !status && at == segment->said.end && sum == segment->said.account.sum;
    return status == PHEMA_ERR_RESOURCE ? status : PHEMA_OK;
}

static enum phema_status keep_whole(struct resuming *resuming, const struct whole *whole,
                                    struct phema_error *err)
{
    if (resuming->n_wholes == resuming->wholes_capacity) {
        size_t capacity = resuming->wholes_capacity ? 2 * resuming->wholes_capacity : 16;
        struct whole *wholes = realloc(resuming->wholes, capacity * sizeof(*wholes));
        if (!wholes)
            return phema_fail_memory(err);
        resuming->wholes = wholes;
        resuming->wholes_capacity = capacity;
    }
    resuming->wholes[resuming->n_wholes++] = *whole;
    return PHEMA_OK;
}

static bool is_end_of_tile(const struct tiling *cut, uint64_t position)
{
    size_t hint = 0;
    return position == tiling_total(cut) ||
           tiling_tile(cut, tiling_tile_at(cut, position), &hint).position == position;
}

/* Of one in which something was counted the tiles must be the run's own, and of one that was hashed
 * none may go beyond it: what is done again would count twice. Where NaN is refused now, and was
 * not, it is met again. */
static bool is_usable(const struct run *run, const struct segment *segment)
{
    const struct phema_narrow_counts *counts = &segment->said.account.counts;
    if (run->digests && !(is_end_of_tile(&run->cut, segment->said.first) &&
                          is_end_of_tile(&run->cut, segment->said.end)))
        return false;
    if (!counts_any(counts))
        return true;
    return segment->tile_elems == run->cut.tile_elems &&
           !(run->options.refuses_nan && counts->n_nan + counts->n_inf);
}

/* Without digests each segment is a unit by itself. */
static enum phema_status add_units(struct resuming *resuming, size_t output,
                                   const struct journal_contents *left, struct phema_error *err)
{
    size_t n = resuming->run->digests ? left->n_units : left->n;
    bool *is_dropped = realloc(resuming->is_dropped, resuming->n_units + n + 1);
    if (!is_dropped)
        return phema_fail_memory(err);
    resuming->is_dropped = is_dropped;
    for (size_t u = 0; u < n; u++)
        is_dropped[resuming->n_units + u] = resuming->run->digests && left->is_torn[u];
    resuming->n_units += n;
    resuming->ends[output] = resuming->n_units;
    return PHEMA_OK;
}

/* What is there and whole is done; first: of the output's units. */
static enum phema_status add_done(struct done_ranges *done, struct resuming *resuming,
                                  const struct journal_contents *left, size_t first,
                                  struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t x = 0; x < left->n && !status; x++) {
        const struct journal_writer_segment *said = &left->items[x].said;
        size_t unit = first + (resuming->run->digests ? left->items[x].unit : x);
        if (resuming->is_dropped[unit])
            continue;
        status = done_ranges_add(done, said->first, said->end, err);
        const struct whole whole = {said->first, said->end, said->account.counts, unit};
        if (!status && (resuming->run->digests || counts_any(&whole.counts)))
            status = keep_whole(resuming, &whole, err);
    }
    return status;
}

static enum phema_status check_output(struct done_ranges *done, struct resuming *resuming,
                                      size_t output, const struct journal_contents *left,
                                      struct phema_error *err)
{
    size_t first = resuming->n_units;
    enum phema_status status = add_units(resuming, output, left, err);
    for (size_t x = 0; x < left->n && !status; x++) {
        const struct segment *segment = &left->items[x];
        bool *is_dropped =
            &resuming->is_dropped[first + (resuming->run->digests ? segment->unit : x)];
        bool is_so = false;
        if (!*is_dropped && is_usable(resuming->run, segment))
            status = check_segment(&is_so, resuming, output, segment, err);
        *is_dropped |= !is_so;
    }
    return status ? status : add_done(done, resuming, left, first, err);
}

/* ---- A pass ---- */

/* What goes takes others with it, where they overlap. */
static enum phema_status drop_torn(struct done_ranges *done, struct resuming *resuming,
                                   struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (bool has_dropped = true; has_dropped && !status;) {
        has_dropped = false;
        for (size_t x = 0; x < resuming->n_wholes; x++) {
            const struct whole *whole = &resuming->wholes[x];
            if (!resuming->is_dropped[whole->unit] &&
                !done_ranges_has(done, whole->first, whole->end))
                has_dropped = resuming->is_dropped[whole->unit] = true;
        }
        for (size_t x = 0; x < resuming->n_wholes && has_dropped && !status; x++) {
            const struct whole *whole = &resuming->wholes[x];
            if (resuming->is_dropped[whole->unit])
                status = done_ranges_remove(done, whole->first, whole->end, err);
        }
    }
    return status;
}

static void take_over(struct run *run, const struct journal_contents *left,
                      struct phema_synth_result *result)
{
    for (size_t i = 0; i < run->plan->series->n_tensors; i++)
        if (left->varies[i])
            atomic_store_explicit(&run->varies[i], true, memory_order_relaxed);
    if (left->nan_tensor < result->nan_tensor && left->nan_tensor < run->plan->series->n_tensors)
        result->nan_tensor = (size_t)left->nan_tensor;
}

/* done: of the outputs before it, and then of this one as well */
static enum phema_status resume_output(struct done_ranges *done, struct resuming *resuming,
                                       size_t output, bool is_first, bool is_used,
                                       struct phema_synth_result *result, struct phema_error *err)
{
    struct run *run = resuming->run;
    struct journal_contents left = {0};
    struct done_ranges own = {0};
    enum phema_status status = journal_read(&left, run, sink_journal(run->sinks[output]), err);
    if (!status && is_used)
        status = check_output(&own, resuming, output, &left, err);
    if (!status && is_used && own.n)
        take_over(run, &left, result);
    if (!status && is_used && is_first) {
        *done = own;
        own = (struct done_ranges){0};
    } else if (!status && is_used) {
        status = done_ranges_intersect(done, &own, err);
    }
    done_ranges_clear(&own);
    journal_contents_clear(&left);
    return status;
}

static void add_counts(const struct resuming *resuming, struct phema_synth_result *result)
{
    for (size_t x = 0; x < resuming->n_wholes; x++) {
        const struct whole *whole = &resuming->wholes[x];
        if (resuming->is_dropped[whole->unit])
            continue;
        result->n_nan += whole->counts.n_nan;
        result->n_inf += whole->counts.n_inf;
        result->n_overflow += whole->counts.n_overflow;
    }
}

/* ---- What was read for it ---- */

/* Sums that an output before did not have; has: [input_digests_n_sums] whether they are there. */
static void add_digests(struct run *run, size_t output, const bool *has,
                        const struct journal_record *record)
{
    size_t n = run->digests->n_snapshots;
    for (size_t x = 0; x < input_digests_n_sums(run); x++) {
        struct phema_hash_sum sum = journal_record_digest(record, x);
        if (!has[x] && input_digests_is_input(run, output, x / n, x % n))
            phema_hash_sum_add(&run->digests->sums[x], &sum);
    }
}

/* Of the units of an output that are used, which begin at *unit and become those of the next. The
 * first one has none. */
static enum phema_status read_digests(struct resuming *resuming, size_t output, size_t *unit,
                                      bool *has, struct phema_error *err)
{
    struct run *run = resuming->run;
    struct phema_writer_journal *journal = sink_journal(run->sinks[output]);
    struct phema_span bytes;
    phema_writer_journal_again(journal);
    enum phema_status status = phema_writer_journal_next(&bytes, journal, err);
    while (!status && bytes.data) {
        struct journal_record record;
        if (journal_is_current_version(&record, bytes) && record.n_digests &&
            ++*unit < resuming->ends[output] && !resuming->is_dropped[*unit])
            add_digests(run, output, has, &record);
        status = phema_writer_journal_next(&bytes, journal, err);
    }
    if (!status && ++*unit != resuming->ends[output])
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: its journal could be read once only",
                            run->outputs->items[output].path);
    for (size_t x = 0; x < input_digests_n_sums(run); x++)
        has[x] = has[x] || input_digests_is_input(run, output, x / run->digests->n_snapshots,
                                                  x % run->digests->n_snapshots);
    return status;
}

/* Each output was made of some of what a run has read, of the same tiles in all of them. */
static enum phema_status take_digests(struct resuming *resuming, size_t first, size_t end,
                                      struct phema_error *err)
{
    struct run *run = resuming->run;
    size_t unit = 0;
    if (!resuming->is_dropped) /* no output is gone on with */
        return PHEMA_OK;
    bool *has = calloc(input_digests_n_sums(run) + 1, sizeof(*has));
    if (!has)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    for (size_t j = first; j < end && !status; j++)
        if (sink_journal(run->sinks[j]))
            status = read_digests(resuming, j, &unit, has, err);
    free(has);
    return status;
}

/* What is not put again is read back in the end nevertheless. */
static enum phema_status take_for_given(const struct done_ranges *done, struct run *run,
                                        size_t first, size_t end, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    size_t hint = 0;
    for (uint64_t t = 0; t < tiling_n_tiles(&run->cut) && run->options.verifies && !status; t++) {
        struct tile_range piece = tiling_tile(&run->cut, t, &hint);
        if (!done_ranges_has(done, piece.position, piece.position + piece.n_elems))
            continue;
        for (size_t j = first; j < end && !status; j++)
            status = tile_reread(run, j, &piece, NULL, err);
    }
    return status;
}

PHEMA_FALLIBLE resume_pass(struct done_ranges *done, struct run *run, size_t first, size_t end,
                           struct phema_synth_result *result, struct phema_error *err)
{
    struct resuming resuming = {.run = run,
                                .ends = calloc(run->outputs->m + 1, sizeof(*resuming.ends))};
    struct done_ranges found = {0};
    bool are_all = true;
    for (size_t j = first; j < end; j++)
        are_all = are_all && sink_start_state(run->sinks[j]) == SINK_RESUMED;
    enum phema_status status = resuming.ends ? PHEMA_OK : phema_fail_memory(err);
    for (size_t j = first; j < end && !status; j++)
        if (sink_journal(run->sinks[j]))
            status = resume_output(&found, &resuming, j, j == first, are_all, result, err);
    if (!status)
        status = drop_torn(&found, &resuming, err);
    if (!status && are_all && run->digests)
        status = take_digests(&resuming, first, end, err);
    if (!status)
        status = take_for_given(&found, run, first, end, err);
    if (!status) {
        add_counts(&resuming, result);
        *done = found;
    } else {
        done_ranges_clear(&found);
    }
    tiling_clear(&resuming.other);
    free(resuming.wholes);
    free(resuming.is_dropped);
    free(resuming.ends);
    return status;
}
