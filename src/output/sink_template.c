// SPDX-License-Identifier: Apache-2.0
/* sink_template.c - The bytes of a copy that stay as in its template. A run that resumes restores
 * them all, updated checksums as well. Of several processes each restores an equal share of every
 * file; checksums that change come from sink_pieces.c. */
#include <stdlib.h>
#include <string.h>

#include "outputs.h"
#include "sink_internal.h"

#define CHUNK_BYTES ((uint64_t)1 << 20)

struct restoring {
    struct sink *sink;
    uint8_t *chunk;          /* [CHUNK_BYTES] */
    size_t file;             /* index */
    uint64_t first, end;     /* of it, this process' share */
    struct extent_list kept; /* the bytes of all files that are not the template's */
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
    for (uint64_t at = first; at < end; at += CHUNK_BYTES) {
        size_t size = (size_t)(end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES);
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
    const struct extent_list *kept = &restoring->kept;
    uint64_t at = 0, size_bytes = restoring->sink->output->files[restoring->file].size_bytes;
    uint64_t n_parts = options->n_parts ? options->n_parts : 1;
    uint64_t part = options->n_parts ? options->part : 1;
    restoring->first = bytes_before(size_bytes, part - 1, n_parts);
    restoring->end = bytes_before(size_bytes, part, n_parts);
    enum phema_status status = PHEMA_OK;
    for (; *x < kept->n && kept->items[*x].file == restoring->file && !status; ++*x) {
        status = restore_range(restoring, at, kept->items[*x].start, err);
        at = kept->items[*x].end > at ? kept->items[*x].end : at;
    }
    return status ? status : restore_range(restoring, at, size_bytes, err);
}

/* The replaced tensors, and the checksums that change. */
static enum phema_status list_kept(struct extent_list *list, const struct sink *sink,
                                   struct phema_error *err)
{
    size_t output = (size_t)(sink->output - sink->outputs->items);
    enum phema_status status =
        phema_output_extents(&list->items, &list->n, sink->plan, sink->outputs, output, err);
    if (status || !sink->records)
        return status;
    size_t n = list->n + PHEMA_RECORD_CRCS * sink->n_pieces;
    struct phema_extent *items = realloc(list->items, (n + 1) * sizeof(*items));
    if (!items)
        return phema_fail_memory(err);
    list->items = items;
    for (size_t p = 0; p < sink->n_pieces; p++)
        for (unsigned c = 0; c < sink->records[p].n_crc; c++) {
            uint64_t at = sink->records[p].crc_at[c];
            items[list->n++] = (struct phema_extent){sink->records[p].file, at, at + 4};
        }
    extents_sort(list);
    return PHEMA_OK;
}

PHEMA_FALLIBLE sink_restore_template(struct sink *sink, struct phema_error *err)
{
    struct restoring restoring = {.sink = sink, .chunk = malloc((size_t)CHUNK_BYTES)};
    size_t x = 0, n_files = phema_checkpoint_n_files(sink->output->template);
    enum phema_status status =
        restoring.chunk ? list_kept(&restoring.kept, sink, err) : phema_fail_memory(err);
    for (; restoring.file < n_files && !status; restoring.file++)
        status = restore_file(&restoring, &x, err);
    free(restoring.kept.items);
    free(restoring.chunk);
    return status;
}
