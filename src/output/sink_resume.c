// SPDX-License-Identifier: Apache-2.0
/* sink_resume.c - an output that another run may go on with: its journal, and what of a copy is no
 * tensor. Headers and files beside the tensors are written anew by every run; of a copy all that is
 * no replaced tensor's is made what the template has, checksums that were mended as well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/writer.h"
#include "sink_internal.h"

#define CHUNK_BYTES ((uint64_t)1 << 20)

bool sink_is_any_strided(const struct phema_plan *plan, const struct phema_outputs *outputs,
                         const struct phema_output *output)
{
    for (size_t i = 0; i < plan->series->n_tensors; i++)
        if (outputs->is_replaced[i] && output->places[i].stride)
            return true;
    return false;
}

bool sink_can_resume(const struct phema_plan *plan, const struct phema_outputs *outputs,
                     size_t output)
{
    return outputs->form != PHEMA_FORM_TEMPLATE ||
           (!outputs->is_in_order && !sink_is_any_strided(plan, outputs, &outputs->items[output]));
}

/* ---- The journal ---- */

/* "out.safetensors.journal", "out.safetensors.part-2-of-8.journal" */
static char *journal_path(const struct sink *sink)
{
    char part[64] = "", *path = NULL;
    size_t size = strlen(sink->output->path);
    while (size > 1 && sink->output->path[size - 1] == '/')
        size--;
    if (sink->options.n_parts)
        (void)snprintf(part, sizeof(part), ".part-%llu-of-%llu",
                       (unsigned long long)sink->options.part,
                       (unsigned long long)sink->options.n_parts);
    return asprintf(&path, "%.*s%s.journal", (int)size, sink->output->path, part) < 0 ? NULL : path;
}

PHEMA_FALLIBLE sink_look_for_journal(struct sink *sink, struct phema_error *err)
{
    sink->journal_path = journal_path(sink);
    if (!sink->journal_path)
        return phema_fail_memory(err);
    if (sink->options.resumes)
        return phema_writer_journal_look(&sink->found, sink->journal_path, sink->digest, err);
    return PHEMA_OK;
}

static bool are_all_resumed(const struct sink *sink)
{
    bool are_all = sink->found == PHEMA_WRITER_JOURNAL_OURS;
    for (size_t f = 0; f < sink->output->n_files && are_all && !sink->part; f++)
        are_all = phema_writer_is_resumed(sink->writers[f]);
    return are_all;
}

/* ---- What of a copy is no tensor ---- */

struct extent {
    uint64_t first, end;
};

static int compare_extents(const void *a, const void *b)
{
    uint64_t left = ((const struct extent *)a)->first, right = ((const struct extent *)b)->first;
    return (left > right) - (left < right);
}

/* Only what differs is written: a copy may share blocks with its template. */
static enum phema_status restore(struct sink *sink, uint8_t *chunk, uint64_t first, uint64_t end,
                                 struct phema_error *err)
{
    struct phema_span wanted = phema_file_span(phema_checkpoint_file(sink->output->template, 0));
    enum phema_status status = PHEMA_OK;
    for (uint64_t at = first; at < end && !status; at += CHUNK_BYTES) {
        size_t size = (size_t)(end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES);
        status = phema_writer_read(sink->writers[0], at, chunk, size, err);
        if (!status && memcmp(chunk, wanted.data + at, size) != 0)
            status = phema_writer_put(sink->writers[0], at, wanted.data + at, size, err);
    }
    return status;
}

static enum phema_status restore_between(struct sink *sink, const struct extent *extents, size_t n,
                                         struct phema_error *err)
{
    uint8_t *chunk = malloc((size_t)CHUNK_BYTES);
    if (!chunk)
        return phema_fail_memory(err);
    uint64_t at = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t x = 0; x < n && !status; x++) {
        status = restore(sink, chunk, at, extents[x].first, err);
        at = extents[x].end > at ? extents[x].end : at;
    }
    if (!status)
        status = restore(sink, chunk, at, sink->output->files[0].size_bytes, err);
    free(chunk);
    return status;
}

static enum phema_status restore_template(struct sink *sink, struct phema_error *err)
{
    const struct phema_series *series = sink->plan->series;
    struct extent *extents = calloc(series->n_tensors + 1, sizeof(*extents));
    if (!extents)
        return phema_fail_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        uint64_t first = sink->output->files[0].header_size + sink->output->places[i].offset +
                         sink->output->shift;
        if (sink->outputs->is_replaced[i])
            extents[n++] = (struct extent){
                first, first + phema_dtype_bytes(sink->outputs->dtypes[i],
                                                 series->tensors[i].tensor.n_elems)};
    }
    qsort(extents, n, sizeof(*extents), compare_extents);
    enum phema_status status = restore_between(sink, extents, n, err);
    free(extents);
    return status;
}

/* ---- Begun, and kept ---- */

PHEMA_FALLIBLE sink_begin_journal(struct sink *sink, struct phema_error *err)
{
    if (!sink->options.resumes) {
        phema_writer_journal_remove(sink->journal_path);
        return PHEMA_OK;
    }
    bool goes_on = are_all_resumed(sink);
    enum phema_status status =
        phema_writer_journal_open(&sink->journal, sink->journal_path, sink->digest, goes_on, err);
    if (!status && sink->found == PHEMA_WRITER_JOURNAL_OURS)
        sink_keep(sink, goes_on);
    if (!status && goes_on && sink->outputs->form == PHEMA_FORM_TEMPLATE)
        status = restore_template(sink, err);
    sink->begun = goes_on                                     ? SINK_RESUMED
                  : sink->found == PHEMA_WRITER_JOURNAL_OTHER ? SINK_STALE
                                                              : SINK_NEW;
    return status;
}

enum sink_start_state sink_start_state(const struct sink *sink)
{
    return sink->begun;
}

bool sink_is_kept(const struct sink *sink)
{
    return sink->is_kept;
}

struct phema_writer_journal *sink_journal(const struct sink *sink)
{
    return sink->journal;
}

void sink_keep(struct sink *sink, bool keeps)
{
    if (!sink->journal)
        return;
    sink->is_kept = keeps;
    phema_writer_journal_keep(sink->journal, keeps);
    for (size_t f = 0; f < sink->output->n_files && !sink->part; f++)
        if (sink->writers[f])
            phema_writer_keep(sink->writers[f], keeps);
    if (sink->directory)
        phema_writer_directory_keep(sink->directory, keeps);
}
