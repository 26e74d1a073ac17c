// SPDX-License-Identifier: Apache-2.0
/* sink_frames.c - A compressed output: its frames, and who compresses each. One process compresses
 * all of them. A part compresses the frames of which it has written all bytes. The others lie where
 * parts meet, or hold the header, whose digests come last: join compresses those. */
#include <stdlib.h>

#include "sink_internal.h"

static int compare_sizes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Frames end where tensors end: a reader of one tensor then decompresses little else. */
PHEMA_FALLIBLE sink_open_frames(struct sink *sink, struct phema_error *err)
{
    const struct phema_series *series = sink->plan->series;
    const struct phema_output_file *file = &sink->output->files[0];
    uint64_t *ends = calloc(series->n_tensors + 1, sizeof(*ends));
    if (!ends)
        return phema_fail_memory(err);
    size_t n = 0;
    ends[n++] = file->header_size;
    for (size_t i = 0; i < series->n_tensors; i++)
        ends[n++] = sink_tensor_offset(sink, i) +
                    phema_dtype_bytes(sink->outputs->dtypes[i], series->tensors[i].tensor.n_elems);
    qsort(ends, n, sizeof(*ends), compare_sizes);
    enum phema_status status = phema_writer_cut_frames(&sink->frames, file->size_bytes, ends, n,
                                                       sink->outputs->level, err);
    free(ends);
    if (status)
        return phema_fail_in(err, status, "%s", sink->output->path);
    if (!sink->options.n_parts)
        return PHEMA_OK;
    sink->frame_bytes = calloc(sink->frames.n, sizeof(*sink->frame_bytes));
    return sink->frame_bytes ? PHEMA_OK : phema_fail_memory(err);
}

/* The first frame that ends behind this place, or frames.n. */
static size_t find_frame(const struct sink *sink, uint64_t offset)
{
    size_t low = 0, high = sink->frames.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sink->frames.ends[middle] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void sink_note_frames(struct sink *sink, uint64_t offset, uint64_t size)
{
    uint64_t end = offset + size;
    if (!sink->frame_bytes)
        return;
    for (size_t f = find_frame(sink, offset); offset < end; f++) {
        uint64_t frame_end = sink->frames.ends[f] < end ? sink->frames.ends[f] : end;
        atomic_fetch_add_explicit(&sink->frame_bytes[f], frame_end - offset, memory_order_relaxed);
        offset = frame_end;
    }
}

static enum phema_status compress_part(struct sink *sink, struct phema_error *err)
{
    bool *is_own = calloc(sink->frames.n, sizeof(*is_own));
    if (!is_own)
        return phema_fail_memory(err);
    for (size_t f = 0; f < sink->frames.n; f++) {
        uint64_t start = f ? sink->frames.ends[f - 1] : 0;
        is_own[f] = atomic_load(&sink->frame_bytes[f]) == sink->frames.ends[f] - start;
    }
    enum phema_status status =
        phema_writer_part_compress(sink->part, sink->writers[0], is_own, sink->options.n_threads,
                                   sink->options.finished_bytes, err);
    free(is_own);
    return status;
}

PHEMA_FALLIBLE sink_compress(struct sink *sink, struct phema_error *err)
{
    if (sink->part)
        return compress_part(sink, err);
    return phema_writer_write_zstd(&sink->size_bytes, sink->compressed, sink->writers[0],
                                   &sink->frames, sink->options.n_threads,
                                   sink->options.finished_bytes, err);
}
