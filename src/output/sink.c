// SPDX-License-Identifier: Apache-2.0
/* sink.c - see sink.h. New files are filled in any order; a compressed one is written plain first
 * and compressed when it is whole; a copy is changed in place and its checksums mended; a directory
 * is published as one. One of several processes fills its part of new files alone. */
#include "phema/sink.h"

#include <stdlib.h>
#include <string.h>

#include "phema/cleanup.h"
#include "phema/strbuf.h"
#include "phema/writer.h"
#include "sink_internal.h"
#include "zip_checksum_update.h"

#define DEFAULT_LEVEL 3

bool sink_took_over(const struct sink *sink)
{
    if (sink->part)
        return false;
    if (sink->directory)
        return phema_writer_directory_took_over(sink->directory);
    return phema_writer_took_over(sink->writers[0]) ||
           (sink->compressed && phema_writer_took_over(sink->compressed)) ||
           (sink->sidecar && phema_writer_took_over(sink->sidecar));
}

/* ---- Tensors ---- */

PHEMA_FALLIBLE sink_put(struct sink *sink, size_t i, uint64_t first, uint64_t n, const void *data,
                        uint64_t *sum, struct phema_error *err)
{
    const struct phema_tensor_location *place = &sink->output->places[i];
    if (sink->outputs->is_replaced && !sink->outputs->is_replaced[i])
        return PHEMA_OK;
    enum phema_dtype dtype = sink->outputs->dtypes[i];
    const struct phema_output_file *file = &sink->output->files[place->file];
    uint64_t offset = file->header_size + place->offset + sink->output->shift;
    size_t size = (size_t)phema_dtype_bytes(dtype, n);
    if (!place->stride)
        offset += phema_dtype_bytes(dtype, first);
    if (!data)
        return sink_read_back(sink, i, offset, first, n, sum, err);
    uint64_t hash = sink->sums || sum ? sink_sum(sink, i, offset, first, data, size) : 0;
    if (sink->sums)
        atomic_fetch_add_explicit(&sink->sums[i], hash, memory_order_relaxed);
    if (sum)
        *sum += hash;
    if (place->stride) {
        struct phema_tensor tensor = sink->plan->series->tensors[i].tensor;
        tensor.dtype = dtype;
        tensor.stride = place->stride;
        phema_tensor_write(sink->map + offset, &tensor, first, n, data);
        return PHEMA_OK;
    }
    return phema_writer_put(sink->writers[place->file], offset, data, size, err);
}

/* Whether tensor b follows a in the file, so that their data can be put as one. */
static bool is_right_behind(const struct sink *sink, size_t a, size_t b)
{
    const struct phema_tensor_location *left = &sink->output->places[a],
                                       *right = &sink->output->places[b];
    const bool *is_replaced = sink->outputs->is_replaced;
    uint64_t size_bytes =
        phema_dtype_bytes(sink->outputs->dtypes[a], sink->plan->series->tensors[a].tensor.n_elems);
    return !left->stride && !right->stride && left->file == right->file &&
           right->offset == left->offset + size_bytes &&
           (!is_replaced || is_replaced[a] == is_replaced[b]);
}

PHEMA_FALLIBLE sink_put_run(struct sink *sink, const size_t *tensors, size_t n_tensors,
                            uint64_t first, uint64_t n, const void *data, uint64_t *sum,
                            struct phema_error *err)
{
    const struct phema_series *series = sink->plan->series;
    const uint8_t *bytes = data;
    enum phema_status status = PHEMA_OK;
    for (size_t t = 0; t < n_tensors && n && !status;) {
        size_t head = t; /* of tensors that are put together */
        uint64_t n_elems = series->tensors[tensors[t++]].tensor.n_elems;
        while (t < n_tensors && n_elems < first + n &&
               is_right_behind(sink, tensors[t - 1], tensors[t]))
            n_elems += series->tensors[tensors[t++]].tensor.n_elems;
        if (first >= n_elems) { /* in other tiles */
            first -= n_elems;
            continue;
        }
        uint64_t n_put = n < n_elems - first ? n : n_elems - first;
        status = sink_put(sink, tensors[head], first, n_put, bytes, sum, err);
        if (bytes) /* nothing is given where it is read back */
            bytes += phema_dtype_bytes(sink->outputs->dtypes[tensors[head]], n_put);
        n -= n_put;
        first = 0;
    }
    return status;
}

/* ---- After ---- */

static enum phema_status keep_sums(struct sink *sink, const struct phema_hash_sum *sums,
                                   struct phema_error *err)
{
    size_t n = sink->output->n_digests;
    sink->part_sums = calloc(n + 1, sizeof(*sink->part_sums));
    if (!sink->part_sums)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++)
        sink->part_sums[k] = (struct phema_writer_part_sum){sink->output->digests_at[k], sums[k]};
    sink->part_options.sums = sink->part_sums;
    sink->part_options.n_sums = n;
    return PHEMA_OK;
}

PHEMA_FALLIBLE sink_put_digests(struct sink *sink, const struct phema_hash_sum *sums,
                                struct phema_error *err)
{
    const struct phema_output *output = sink->output;
    if (sink->part)
        return keep_sums(sink, sums, err);
    const uint8_t *text =
        sink->sidecar ? (const uint8_t *)output->sidecar : output->files[0].header;
    size_t first = output->digests_at[0];
    size_t end = output->digests_at[output->n_digests - 1] + PHEMA_DIGEST - 1;
    return phema_writer_put(sink->sidecar ? sink->sidecar : sink->writers[0], first, text + first,
                            end - first, err);
}

static int compare_sizes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Frames end where tensors do, so that a reader who wants one decompresses little else. */
static enum phema_status compress(struct sink *sink, struct phema_error *err)
{
    const struct phema_series *series = sink->plan->series;
    const struct phema_output_file *file = &sink->output->files[0];
    uint64_t *ends = calloc(series->n_tensors + 1, sizeof(*ends));
    if (!ends)
        return phema_fail_memory(err);
    size_t n = 0;
    ends[n++] = file->header_size;
    for (size_t i = 0; i < series->n_tensors; i++)
        ends[n++] = file->header_size + sink->output->places[i].offset +
                    phema_dtype_bytes(sink->outputs->dtypes[i], series->tensors[i].tensor.n_elems);
    qsort(ends, n, sizeof(*ends), compare_sizes);
    enum phema_status status = phema_writer_put_zstd(
        &sink->size_bytes, sink->compressed, sink->writers[0], file->size_bytes, ends, n,
        sink->outputs->level ? sink->outputs->level : DEFAULT_LEVEL, sink->options.n_threads, err);
    free(ends);
    return status;
}

PHEMA_FALLIBLE sink_finish(struct sink *sink, struct phema_error *err)
{
    if (sink->compressed)
        return compress(sink, err);
    if (sink->outputs->form == PHEMA_FORM_TEMPLATE)
        return zip_checksums_update(sink->writers[0], sink->output->template, sink->output->places,
                                    sink->output->shift, sink->outputs->is_replaced,
                                    sink->plan->series->n_tensors, sink->options.n_threads, err);
    return PHEMA_OK;
}

uint64_t sink_size_bytes(const struct sink *sink)
{
    return sink->size_bytes;
}

static enum phema_status commit(struct phema_writer **writer, struct phema_error *err)
{
    struct phema_writer *committed = *writer;
    *writer = NULL; /* freed also when it fails */
    return phema_writer_commit(committed, err);
}

static enum phema_status commit_part(struct sink *sink, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < sink->output->n_files && !status; f++)
        status = commit(&sink->writers[f], err);
    struct phema_writer_part *part = sink->part;
    if (status)
        return status;
    sink->part = NULL; /* freed also when it fails */
    return phema_writer_part_finish(part, err);
}

/* The provenance appears first: a checkpoint without it would be taken for a snapshot. Where the
 * copy cannot follow, that of the one before it is there again. */
static enum phema_status commit_copy(struct sink *sink, struct phema_error *err)
{
    if (!sink->sidecar)
        return commit(&sink->writers[0], err);
    enum phema_status status = phema_writer_finish(sink->sidecar, err);
    if (!status)
        status = phema_writer_finish(sink->writers[0], err);
    if (status)
        return status;
    phema_cleanup_hold();
    status = phema_writer_publish(sink->sidecar, err);
    if (!status)
        status = commit(&sink->writers[0], err);
    if (sink->is_published) { /* also where its directory could not be synced */
        struct phema_error later;
        enum phema_status kept = commit(&sink->sidecar, status ? &later : err);
        status = status ? status : kept;
    }
    phema_writer_abandon(sink->sidecar);
    sink->sidecar = NULL;
    phema_cleanup_resume();
    return status;
}

/* The plain file goes first: behind the rename nothing would remove it where the run is killed. */
static enum phema_status commit_compressed(struct sink *sink, struct phema_error *err)
{
    enum phema_status status = phema_writer_finish(sink->compressed, err);
    if (status)
        return status;
    phema_writer_keep(sink->writers[0], false);
    phema_writer_abandon(sink->writers[0]);
    sink->writers[0] = NULL;
    return commit(&sink->compressed, err);
}

PHEMA_FALLIBLE sink_commit(struct sink *sink, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (sink->part) {
        status = commit_part(sink, err);
    } else if (sink->directory) {
        for (size_t f = 0; f < sink->output->n_files && !status; f++)
            status = commit(&sink->writers[f], err);
        struct phema_writer_directory *directory = sink->directory;
        if (!status) {
            sink->directory = NULL;
            status = phema_writer_directory_commit(directory, err);
        }
    } else if (sink->outputs->form == PHEMA_FORM_TEMPLATE) {
        status = commit_copy(sink, err);
    } else {
        status = sink->compressed ? commit_compressed(sink, err) : commit(&sink->writers[0], err);
    }
    if (!status && sink->journal)
        phema_writer_journal_keep(sink->journal, false);
    sink_abandon(sink);
    return status;
}

void sink_abandon(struct sink *sink)
{
    if (!sink)
        return;
    for (size_t f = 0; sink->writers && f < sink->output->n_files; f++)
        phema_writer_abandon(sink->writers[f]);
    phema_writer_part_abandon(sink->part);
    free(sink->part_files);
    free(sink->part_sums);
    phema_writer_directory_abandon(sink->directory);
    phema_writer_abandon(sink->compressed);
    phema_writer_abandon(sink->sidecar);
    phema_writer_journal_close(sink->journal);
    free(sink->journal_path);
    free(sink->writers);
    free(sink->sums);
    free(sink->scratch);
    free(sink);
}
