// SPDX-License-Identifier: Apache-2.0
/* sink_template.c - The bytes of a copy that stay as in its template. A run that resumes restores
 * them all, updated checksums as well. Of several processes each restores an equal share of every
 * file; checksums that change come from sink_pieces.c. */
#include <stdlib.h>
#include <string.h>

#include "sink_internal.h"

struct restoring {
    struct sink *sink;
    uint8_t *chunk;            /* [SINK_CHUNK_BYTES] */
    size_t file;               /* index */
    uint64_t first, end;       /* of it, this process' share */
    struct phema_extent *kept; /* [n_kept] the bytes of all files that are not the template's */
    size_t n_kept;
};

/* part / n_parts of a file; no product is too large. */
static uint64_t bytes_before(uint64_t bytes, uint64_t part, uint64_t n_parts)
{
    return bytes / n_parts * part + bytes % n_parts * part / n_parts;
}

/* Writes only bytes that differ: a copy may share blocks with its template. */
static enum phema_status restore_range(const struct restoring *restoring, uint64_t first,
                                       uint64_t end, struct phema_error *err)
{
    struct sink *sink = restoring->sink;
    size_t f = restoring->file;
    struct phema_span wanted = phema_file_span(phema_checkpoint_file(sink->output->template, f));
    first = first > restoring->first ? first : restoring->first;
    end = end < restoring->end ? end : restoring->end;
    for (uint64_t at = first; at < end; at += SINK_CHUNK_BYTES) {
        size_t size = (size_t)(end - at < SINK_CHUNK_BYTES ? end - at : SINK_CHUNK_BYTES);
        const uint8_t *data = wanted.data + at;
        enum phema_status status =
            phema_writer_read(sink->writers[f], at, restoring->chunk, size, err);
        if (!status && memcmp(restoring->chunk, data, size) != 0)
            status = phema_writer_write(sink->writers[f], at, data, size, err);
        else if (!status)
            phema_writer_count(sink->writers[f], at, data, size);
        if (status)
            return status;
        sink_note_bytes(sink, f, at, data, size);
    }
    return PHEMA_OK;
}

/* *x: the first of the kept bytes of this file, then the first behind it */
static enum phema_status restore_file(struct restoring *restoring, size_t *x,
                                      struct phema_error *err)
{
    const struct sink_options *options = &restoring->sink->options;
    const struct phema_extent *kept = restoring->kept;
    uint64_t at = 0, size_bytes = restoring->sink->output->files[restoring->file].size_bytes;
    uint64_t n_parts = options->n_parts ? options->n_parts : 1;
    uint64_t part = options->n_parts ? options->part : 1;
    restoring->first = bytes_before(size_bytes, part - 1, n_parts);
    restoring->end = bytes_before(size_bytes, part, n_parts);
    enum phema_status status = PHEMA_OK;
    for (; *x < restoring->n_kept && kept[*x].file == restoring->file && !status; ++*x) {
        status = restore_range(restoring, at, kept[*x].start, err);
        at = kept[*x].end > at ? kept[*x].end : at;
    }
    return status ? status : restore_range(restoring, at, size_bytes, err);
}

PHEMA_FALLIBLE sink_restore_template(struct sink *sink, struct phema_error *err)
{
    struct restoring restoring = {.sink = sink, .chunk = malloc(SINK_CHUNK_BYTES)};
    size_t x = 0, n_files = phema_checkpoint_n_files(sink->output->template);
    size_t output = (size_t)(sink->output - sink->outputs->items);
    enum phema_status status =
        restoring.chunk
            ? phema_output_extents(&restoring.kept, &restoring.n_kept, sink->plan, sink->outputs,
                                   output, sink->records, sink->records ? sink->n_pieces : 0, err)
            : phema_fail_memory(err);
    for (; restoring.file < n_files && !status; restoring.file++)
        status = restore_file(&restoring, &x, err);
    free(restoring.kept);
    free(restoring.chunk);
    return status;
}
