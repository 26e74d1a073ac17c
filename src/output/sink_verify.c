// SPDX-License-Identifier: Apache-2.0
/* sink_verify.c - Reread a finished output before it is published. Each tensor has a sum of hashes
 * of the data written and their places, which does not depend on the order. Rereading subtracts the
 * same hashes: zero remains when the file has the written data. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/strbuf.h"
#include "sink_internal.h"

static enum phema_status fail_different(const struct sink *sink, const char *what,
                                        struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: %s: read back other bytes than were written; check the disk, its "
                      "controller and the memory of this machine",
                      sink->output->path, what);
}

static enum phema_status fail_tensor(const struct sink *sink, size_t i, struct phema_error *err)
{
    const struct phema_tensor *tensor = &sink->plan->series->tensors[i].tensor;
    struct phema_name_buffer shown;
    char what[sizeof(shown.text) + 16];
    (void)snprintf(what, sizeof(what), "tensor '%s'",
                   phema_name_escape(&shown, tensor->name, tensor->name_size));
    return fail_different(sink, what, err);
}

/* Evicts the file from the page cache, so that reading asks the disk. A file system in memory, or a
 * mapped file, keeps its pages: the cache is read then. */
static enum phema_status evict_file(const char *path, struct phema_error *err)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: cannot be opened: %s", path, strerror(errno));
    enum phema_status status = PHEMA_OK;
    if (fdatasync(descriptor))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: cannot be written to disk: %s", path,
                            strerror(errno));
    (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    (void)close(descriptor);
    return status;
}

/* Only the first part writes headers. */
static enum phema_status check_header(struct sink *sink, size_t f, struct phema_error *err)
{
    const struct phema_output_file *file = &sink->output->files[f];
    if (!file->header_size || sink->options.part > 1)
        return PHEMA_OK;
    uint8_t *header = malloc(file->header_size);
    if (!header)
        return phema_fail_memory(err);
    enum phema_status status =
        phema_writer_read(sink->writers[f], 0, header, file->header_size, err);
    if (!status && memcmp(header, file->header, file->header_size) != 0)
        status = fail_different(sink, "the header", err);
    free(header);
    return status;
}

PHEMA_FALLIBLE sink_begin_verify(struct sink *sink, struct phema_error *err)
{
    sink->is_verifying = true;
    for (size_t f = 0; f < sink->output->n_files; f++) {
        char *path = sink_path(sink->output->path, sink->form->plain_suffix, ".partial",
                               sink->output->files[f].name);
        enum phema_status status = path ? evict_file(path, err) : phema_fail_memory(err);
        free(path);
        if (!status)
            status = check_header(sink, f, err);
        if (status)
            return status;
    }
    bool is_same = true;
    enum phema_status status = sink_check_pieces(&is_same, sink, err);
    return status || is_same ? status : fail_different(sink, "the header of a piece", err);
}

static enum phema_status grow_scratch(struct sink *sink, size_t size, struct phema_error *err)
{
    if (size <= sink->scratch_size)
        return PHEMA_OK;
    free(sink->scratch);
    sink->scratch = malloc(size);
    sink->scratch_size = sink->scratch ? size : 0;
    return sink->scratch ? PHEMA_OK : phema_fail_memory(err);
}

PHEMA_FALLIBLE sink_reread(struct sink *sink, size_t i, uint64_t offset, uint64_t first, uint64_t n,
                           uint64_t *sum, struct phema_error *err)
{
    const struct phema_tensor tensor =
        phema_output_tensor(sink->plan, sink->outputs, sink->output, i);
    size_t size = (size_t)phema_dtype_bytes(tensor.dtype, n);
    enum phema_status status = grow_scratch(sink, size, err);
    if (status)
        return status;
    const uint8_t *data = sink->scratch;
    if (tensor.stride)
        data = phema_tensor_read(sink->map + offset, &tensor, first, n, sink->scratch);
    else
        status = sink_read_runs(sink, i, first, n, !sum && !sink->is_verifying, sink->scratch, err);
    if (status)
        return status;
    uint64_t hash = sink_hash(sink, i, offset, first, data, size);
    if (sum)
        *sum += hash;
    else if (sink->sums)
        atomic_fetch_add_explicit(&sink->sums[i], sink->is_verifying ? -hash : hash,
                                  memory_order_relaxed);
    return PHEMA_OK;
}

/* ---- Compressed ---- */

/* Compares elements [first, first + n) of tensor i, decompressed, with the plain file. */
static enum phema_status compare_range(struct sink *sink, struct phema_reader *reader,
                                       const struct phema_tensor *tensor, size_t i, uint64_t first,
                                       uint64_t n, struct phema_error *err)
{
    enum phema_dtype dtype = sink->outputs->dtypes[i];
    uint64_t offset = sink_tensor_offset(sink, i) + phema_dtype_bytes(dtype, first);
    size_t size = (size_t)phema_dtype_bytes(dtype, n);
    const uint8_t *data = NULL;
    enum phema_status status =
        phema_writer_read(sink->writers[0], offset, sink->scratch, size, err);
    if (status)
        return status;
    status =
        phema_reader_read(&data, reader, tensor, first, n, sink->scratch + SINK_CHUNK_BYTES, err);
    if (status)
        return status;
    return memcmp(data, sink->scratch, size) == 0 ? PHEMA_OK : fail_tensor(sink, i, err);
}

static enum phema_status compare_tensor(struct sink *sink, struct phema_reader *reader,
                                        const struct phema_checkpoint *checkpoint, size_t i,
                                        struct phema_error *err)
{
    enum phema_dtype dtype = sink->outputs->dtypes[i];
    const struct phema_tensor *wanted = &sink->plan->series->tensors[i].tensor;
    const struct phema_tensor *tensor =
        phema_checkpoint_find(checkpoint, wanted->name, wanted->name_size);
    if (!tensor || tensor->dtype != dtype || tensor->n_elems != wanted->n_elems)
        return fail_tensor(sink, i, err);
    uint64_t step = SINK_CHUNK_BYTES * 8 / phema_dtype_bits(dtype) / 8 * 8; /* whole bytes */
    enum phema_status status = PHEMA_OK;
    for (uint64_t first = 0; first < tensor->n_elems && !status; first += step) {
        uint64_t n = tensor->n_elems - first < step ? tensor->n_elems - first : step;
        status = compare_range(sink, reader, tensor, i, first, n, err);
    }
    return status;
}

static enum phema_status compare_tensors(struct sink *sink,
                                         const struct phema_checkpoint *checkpoint,
                                         struct phema_error *err)
{
    struct phema_reader *reader = NULL;
    enum phema_status status = grow_scratch(sink, 2 * SINK_CHUNK_BYTES, err);
    if (status)
        return status;
    status = phema_reader_open(&reader, checkpoint, err);
    for (size_t i = 0; i < sink->plan->series->n_tensors && !status; i++)
        status = compare_tensor(sink, reader, checkpoint, i, err);
    if (!status)
        status = phema_reader_finish(reader, err);
    phema_reader_close(reader);
    return status;
}

static enum phema_status verify_compressed(struct sink *sink, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    char *path = sink_path(sink->output->path, ".partial", "", NULL);
    enum phema_status status = path ? evict_file(path, err) : phema_fail_memory(err);
    if (!status)
        status = phema_checkpoint_open(&checkpoint, path, NULL, err);
    if (!status)
        status = compare_tensors(sink, checkpoint, err);
    phema_checkpoint_close(checkpoint);
    free(path);
    return status == PHEMA_ERR_FILE ? PHEMA_ERR_OUTPUT : status; /* the file is this output */
}

PHEMA_FALLIBLE sink_end_verify(struct sink *sink, struct phema_error *err)
{
    for (size_t i = 0; i < sink->plan->series->n_tensors; i++)
        if (atomic_load(&sink->sums[i]))
            return fail_tensor(sink, i, err);
    return sink->compressed ? verify_compressed(sink, err) : PHEMA_OK;
}
