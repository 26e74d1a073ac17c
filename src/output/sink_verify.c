// SPDX-License-Identifier: Apache-2.0
/* sink_verify.c - an output that is finished but not published, read again. Of each tensor there
 * is a sum over hashes of what was put to it and where, which does not depend on the order; what is
 * read back is taken from it, so that nothing is left when all is as it was. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/strbuf.h"
#include "sink_internal.h"

#define CHUNK_BYTES ((size_t)1 << 20)

static enum phema_status fail_other(const struct sink *sink, const char *what,
                                    struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: %s: what was read back is not what was written; the disk, its "
                      "controller or the memory of this machine is to be distrusted",
                      sink->output->path, what);
}

static enum phema_status fail_tensor(const struct sink *sink, size_t i, struct phema_error *err)
{
    const struct phema_tensor *tensor = &sink->plan->series->tensors[i].tensor;
    struct phema_name_buffer shown;
    char what[sizeof(shown.text) + 16];
    (void)snprintf(what, sizeof(what), "tensor '%s'",
                   phema_name_escape(&shown, tensor->name, tensor->name_size));
    return fail_other(sink, what, err);
}

/* What is safe on the disk may leave the page cache, so that reading asks the disk. Where it cannot
 * (in memory, mapped) the cache is read. */
static enum phema_status drop_cache(const char *path, struct phema_error *err)
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

/* "PATH.partial", "PATH.partial/model.safetensors" */
static char *partial_path(const struct sink *sink, const char *end, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s%s.partial%s%s", sink->output->path, end, name ? "/" : "",
                 name ? name : "") < 0)
        return NULL;
    return path;
}

static enum phema_status drop_file(const struct sink *sink, const char *end, const char *name,
                                   struct phema_error *err)
{
    char *path = partial_path(sink, end, name);
    enum phema_status status = path ? drop_cache(path, err) : phema_fail_memory(err);
    free(path);
    return status;
}

/* A part that is not the first has written no header. */
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
        status = fail_other(sink, "the header", err);
    free(header);
    return status;
}

PHEMA_FALLIBLE sink_begin_verify(struct sink *sink, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < sink->output->n_files && !status; f++) {
        status =
            drop_file(sink, sink->compressed ? ".plain" : "", sink->output->files[f].name, err);
        if (!status)
            status = check_header(sink, f, err);
    }
    sink->is_read_back = true;
    return status;
}

static enum phema_status make_scratch(struct sink *sink, size_t size, struct phema_error *err)
{
    if (size <= sink->scratch_size)
        return PHEMA_OK;
    free(sink->scratch);
    sink->scratch = malloc(size);
    sink->scratch_size = sink->scratch ? size : 0;
    return sink->scratch ? PHEMA_OK : phema_fail_memory(err);
}

PHEMA_FALLIBLE sink_read_back(struct sink *sink, size_t i, uint64_t offset, uint64_t first,
                              uint64_t n, uint64_t *sum, struct phema_error *err)
{
    const struct phema_tensor_location *place = &sink->output->places[i];
    struct phema_tensor tensor = sink->plan->series->tensors[i].tensor;
    tensor.dtype = sink->outputs->dtypes[i];
    size_t size = (size_t)phema_dtype_bytes(tensor.dtype, n);
    enum phema_status status = make_scratch(sink, size, err);
    const uint8_t *data = sink->scratch;
    if (!status && place->stride) {
        tensor.stride = place->stride;
        data = phema_tensor_read(sink->map + offset, &tensor, first, n, sink->scratch);
    } else if (!status) {
        status = phema_writer_read(sink->writers[place->file], offset, sink->scratch, size, err);
    }
    if (status)
        return status;
    uint64_t hash = sink_sum(sink, i, offset, first, data, size);
    if (sum)
        *sum += hash;
    else
        atomic_fetch_add_explicit(&sink->sums[i], sink->is_read_back ? -hash : hash,
                                  memory_order_relaxed);
    return PHEMA_OK;
}

/* ---- Compressed ---- */

/* Decompressed, it is the plain file. */
static enum phema_status check_tensor(struct sink *sink, struct phema_reader *reader,
                                      const struct phema_tensor *tensor, size_t i,
                                      struct phema_error *err)
{
    enum phema_dtype dtype = sink->outputs->dtypes[i];
    uint64_t step = CHUNK_BYTES * 8 / phema_dtype_bits(dtype) / 8 * 8; /* whole bytes */
    uint64_t offset = sink->output->files[0].header_size + sink->output->places[i].offset;
    uint8_t *decoded = sink->scratch + CHUNK_BYTES;
    enum phema_status status = PHEMA_OK;
    for (uint64_t first = 0; first < tensor->n_elems && !status; first += step) {
        uint64_t n = tensor->n_elems - first < step ? tensor->n_elems - first : step;
        size_t size = (size_t)phema_dtype_bytes(dtype, n);
        const uint8_t *data = NULL;
        status = phema_writer_read(sink->writers[0], offset + phema_dtype_bytes(dtype, first),
                                   sink->scratch, size, err);
        if (!status)
            status = phema_reader_read(&data, reader, tensor, first, n, decoded, err);
        if (!status && memcmp(data, sink->scratch, size) != 0)
            status = fail_tensor(sink, i, err);
    }
    return status;
}

static enum phema_status check_decompressed(struct sink *sink,
                                            const struct phema_checkpoint *checkpoint,
                                            struct phema_error *err)
{
    const struct phema_series *series = sink->plan->series;
    struct phema_reader *reader = NULL;
    enum phema_status status = make_scratch(sink, 2 * CHUNK_BYTES, err);
    if (!status)
        status = phema_reader_open(&reader, checkpoint, err);
    for (size_t i = 0; i < series->n_tensors && !status; i++) {
        const struct phema_tensor *wanted = &series->tensors[i].tensor;
        const struct phema_tensor *tensor =
            phema_checkpoint_find(checkpoint, wanted->name, wanted->name_size);
        bool is_alike = tensor && tensor->dtype == sink->outputs->dtypes[i] &&
                        tensor->n_elems == wanted->n_elems;
        status = is_alike ? check_tensor(sink, reader, tensor, i, err) : fail_tensor(sink, i, err);
    }
    if (!status)
        status = phema_reader_finish(reader, err);
    phema_reader_close(reader);
    return status;
}

static enum phema_status check_compressed(struct sink *sink, struct phema_error *err)
{
    char *path = partial_path(sink, "", NULL);
    if (!path)
        return phema_fail_memory(err);
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status = drop_cache(path, err);
    if (!status) {
        status = phema_checkpoint_open(&checkpoint, path, NULL, err);
        if (!status)
            status = check_decompressed(sink, checkpoint, err);
        if (status == PHEMA_ERR_FILE) /* it is ours */
            status = PHEMA_ERR_OUTPUT;
    }
    phema_checkpoint_close(checkpoint);
    free(path);
    return status;
}

PHEMA_FALLIBLE sink_end_verify(struct sink *sink, struct phema_error *err)
{
    for (size_t i = 0; i < sink->plan->series->n_tensors; i++)
        if (atomic_load(&sink->sums[i]))
            return fail_tensor(sink, i, err);
    return sink->compressed ? check_compressed(sink, err) : PHEMA_OK;
}
