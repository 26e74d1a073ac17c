// SPDX-License-Identifier: Apache-2.0
/* sink.c - Write tensors of one output in any order, from any thread; commit. A compressed output
 * is written plain and compressed when it is complete. A copy is changed in place, and its
 * checksums are recomputed. A directory is published as a unit. A process that writes a part of the
 * output fills that part of the files only. */
#include "phema/sink.h"

#include <stdlib.h>
#include <string.h>

#include "sink_internal.h"

/* ---- State ---- */

enum sink_start_state sink_start_state(const struct sink *sink)
{
    return sink->start_state;
}

bool sink_needs_done_tiles(const struct sink *sink)
{
    bool has_new_zips = sink->pieces && !sink->records; /* records may be read back at the end */
    return sink->sums || has_new_zips || sink->part;
}

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

bool sink_is_kept(const struct sink *sink)
{
    return sink->is_kept;
}

uint64_t sink_size_bytes(const struct sink *sink)
{
    return sink->size_bytes;
}

/* ---- Tensors ---- */

/* Adjacent tensors are one, under the number of the first. */
static enum phema_status write_tensor(struct sink *sink, size_t i, uint64_t first, uint64_t n,
                                      const void *data, uint64_t *sum, struct phema_error *err)
{
    const struct phema_tensor_location *location = &sink->output->locations[i];
    if (sink->outputs->is_replaced && !sink->outputs->is_replaced[i])
        return PHEMA_OK;
    enum phema_dtype dtype = sink->outputs->dtypes[i];
    uint64_t offset = sink_tensor_offset(sink, i);
    size_t size = (size_t)phema_dtype_bytes(dtype, n);
    if (!location->stride)
        offset += phema_dtype_bytes(dtype, first);
    if (!data)
        return sink_reread(sink, i, offset, first, n, sum, err);
    uint64_t hash = sink->sums || sum ? sink_hash(sink, i, offset, first, data, size) : 0;
    if (sink->sums)
        atomic_fetch_add_explicit(&sink->sums[i], hash, memory_order_relaxed);
    if (sum)
        *sum += hash;
    if (location->stride) {
        const struct phema_tensor tensor =
            phema_output_tensor(sink->plan, sink->outputs, sink->output, i);
        phema_tensor_write(sink->map + offset, &tensor, first, n, data);
        return PHEMA_OK;
    }
    return sink_write_runs(sink, i, first, n, data, err);
}

/* Whether tensor b begins where a ends in the file, so that one write has the data of both. */
static bool is_adjacent(const struct sink *sink, size_t a, size_t b)
{
    const struct phema_tensor_location *left = &sink->output->locations[a],
                                       *right = &sink->output->locations[b];
    const bool *is_replaced = sink->outputs->is_replaced;
    uint64_t size_bytes =
        phema_dtype_bytes(sink->outputs->dtypes[a], sink->plan->series->tensors[a].tensor.n_elems);
    return !left->stride && !right->stride && !left->chunks && !right->chunks &&
           left->file == right->file && right->offset == left->offset + size_bytes &&
           (!is_replaced || is_replaced[a] == is_replaced[b]);
}

PHEMA_FALLIBLE sink_write(struct sink *sink, const size_t *tensors, size_t n_tensors,
                          uint64_t first, uint64_t n, const void *data, uint64_t *sum,
                          struct phema_error *err)
{
    const struct phema_series *series = sink->plan->series;
    const uint8_t *bytes = data;
    enum phema_status status = PHEMA_OK;
    for (size_t t = 0; t < n_tensors && n && !status;) {
        size_t head = t; /* the first of the tensors that are written together */
        uint64_t n_elems = series->tensors[tensors[t++]].tensor.n_elems;
        while (t < n_tensors && n_elems < first + n &&
               is_adjacent(sink, tensors[t - 1], tensors[t]))
            n_elems += series->tensors[tensors[t++]].tensor.n_elems;
        if (first >= n_elems) { /* these belong to other tiles */
            first -= n_elems;
            continue;
        }
        uint64_t n_written = n < n_elems - first ? n : n_elems - first;
        status = write_tensor(sink, tensors[head], first, n_written, bytes, sum, err);
        if (bytes) /* NULL where the file is read */
            bytes += phema_dtype_bytes(sink->outputs->dtypes[tensors[head]], n_written);
        n -= n_written;
        first = 0;
    }
    return status;
}

/* ---- Digests, compression and checksums ---- */

static enum phema_status set_part_sums(struct sink *sink, const struct phema_hash_sum *sums,
                                       struct phema_error *err)
{
    size_t n = sink->output->n_digests;
    sink->part_sums = calloc(n + 1, sizeof(*sink->part_sums));
    if (!sink->part_sums)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++)
        sink->part_sums[k] =
            (struct phema_writer_part_sum){sink->output->digest_offsets[k], sums[k]};
    sink->part_options.sums = sink->part_sums;
    sink->part_options.n_sums = n;
    return PHEMA_OK;
}

PHEMA_FALLIBLE sink_write_digests(struct sink *sink, const struct phema_hash_sum *sums,
                                  struct phema_error *err)
{
    const struct phema_output *output = sink->output;
    if (sink->part)
        return set_part_sums(sink, sums, err);
    size_t f = output->provenance_file;
    const uint8_t *text =
        sink->sidecar ? (const uint8_t *)output->sidecar : output->files[f].header;
    size_t first = output->digest_offsets[0];
    size_t end = output->digest_offsets[output->n_digests - 1] + PHEMA_DIGEST - 1;
    return phema_writer_write(sink->sidecar ? sink->sidecar : sink->writers[f], first, text + first,
                              end - first, err);
}

static bool has_checksums(const struct phema_checkpoint *template)
{
    const char *format = phema_checkpoint_format(template);
    return strcmp(format, "torch-zip") == 0 || strcmp(format, "dcp") == 0;
}

uint64_t sink_finish_thread_bytes(uint64_t *n_tasks, const struct phema_outputs *outputs,
                                  size_t n_tensors)
{
    const struct phema_output_traits *form = phema_output_traits(outputs);
    uint64_t thread_bytes = 0;
    *n_tasks = 0;
    for (size_t j = 0; j < outputs->m && form->is_compressed; j++) {
        uint64_t n_frames = 0;
        thread_bytes =
            phema_writer_zstd_bytes(&n_frames, outputs->level, outputs->items[j].size_bytes);
        *n_tasks = n_frames > *n_tasks ? n_frames : *n_tasks;
    }
    if (form->is_copy && outputs->m && has_checksums(outputs->items[0].template)) {
        thread_bytes = SINK_CHUNK_BYTES;
        *n_tasks = n_tensors;
    }
    return thread_bytes;
}

PHEMA_FALLIBLE sink_try_finish(const struct phema_outputs *outputs, const uint8_t *data,
                               size_t size, struct phema_error *err)
{
    if (phema_output_traits(outputs)->is_compressed)
        return phema_writer_try_zstd(outputs->level, data, size, err);
    (void)phema_crc32(0, data, size);
    return PHEMA_OK;
}

/* ---- Files without tensors ---- */

/* Of a directory, or of the part that writes the side files. */
static enum phema_status add_side_file(struct sink *sink, size_t f, struct phema_error *err)
{
    const struct phema_side_file *file = &sink->outputs->side_files[f];
    size_t index = sink->output->n_files + f; /* in the files of a part */
    if (file->source && sink->part)
        return phema_writer_part_copy_file(sink->part, index, file->source, err);
    if (file->source)
        return phema_writer_directory_copy_file(sink->directory, file->name, file->source, err);
    struct phema_writer *writer = NULL;
    enum phema_status status = sink->part
                                   ? phema_writer_part_file(&writer, sink->part, index, err)
                                   : phema_writer_directory_add(&writer, sink->directory,
                                                                file->name, NULL, file->size, err);
    if (status)
        return status;
    status = phema_writer_write(writer, 0, file->text, file->size, err);
    if (!status)
        return phema_writer_commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}

PHEMA_FALLIBLE sink_add_side_files(struct sink *sink, bool are_last, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (sink->options.part > 1)
        return PHEMA_OK;
    for (size_t f = 0; f < sink->outputs->n_side_files && !status; f++)
        if (sink->outputs->side_files[f].is_last == are_last)
            status = add_side_file(sink, f, err);
    return status;
}

PHEMA_FALLIBLE sink_finish(struct sink *sink, struct phema_error *err)
{
    if (sink->form->is_compressed)
        return sink_compress(sink, err);
    enum phema_status status = sink_finish_pieces(sink, err);
    return status || !sink->form->is_directory ? status : sink_add_side_files(sink, true, err);
}

/* ---- Publishing ---- */

size_t sink_n_synced_files(const struct sink *sink)
{
    return sink->compressed ? 1 : sink->output->n_files + (sink->sidecar != NULL);
}

void sink_sync_file(struct sink *sink, size_t i)
{
    struct phema_writer *plain = i < sink->output->n_files ? sink->writers[i] : sink->sidecar;
    struct phema_writer *writer = sink->compressed ? sink->compressed : plain;
    if (writer)
        phema_writer_sync(writer);
}

bool sink_leave_entry(struct sink *sink)
{
    if (sink->part || sink->directory || sink->sidecar || sink->journal)
        return false;
    phema_writer_leave_entry(sink->compressed ? sink->compressed : sink->writers[0]);
    return true;
}

static enum phema_status commit(struct phema_writer **writer, struct phema_error *err)
{
    struct phema_writer *committed = *writer;
    *writer = NULL; /* freed also when it fails */
    return phema_writer_commit(committed, err);
}

static enum phema_status commit_copy(struct sink *sink, struct phema_error *err)
{
    struct phema_writer *sidecar = sink->sidecar, *copy = sink->writers[0];
    sink->sidecar = sink->writers[0] = NULL; /* both are freed also when this fails */
    return phema_writer_commit_both(sidecar, copy, err);
}

/* Removes the plain file before the rename: a kill after the rename would leave it forever. */
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

static enum phema_status commit_part_or_directory(struct sink *sink, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < sink->output->n_files && !status; f++)
        status = commit(&sink->writers[f], err);
    if (status)
        return status;
    struct phema_writer_part *part = sink->part;
    struct phema_writer_directory *directory = sink->directory;
    sink->part = NULL; /* both are freed also when they fail */
    sink->directory = NULL;
    return part ? phema_writer_part_finish(part, err)
                : phema_writer_directory_commit(directory, err);
}

PHEMA_FALLIBLE sink_commit(struct sink *sink, struct phema_error *err)
{
    enum phema_status status = sink->part || sink->directory ? commit_part_or_directory(sink, err)
                               : sink->sidecar               ? commit_copy(sink, err)
                               : sink->compressed            ? commit_compressed(sink, err)
                                                             : commit(&sink->writers[0], err);
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
    free(sink->part_crcs);
    free(sink->pieces);
    free(sink->records);
    free(sink->frames.ends);
    free(sink->frame_bytes);
    phema_writer_directory_abandon(sink->directory);
    phema_writer_abandon(sink->compressed);
    phema_writer_abandon(sink->sidecar);
    phema_writer_journal_close(sink->journal);
    free(sink->writers);
    free(sink->sums);
    free(sink->scratch);
    free(sink);
}
