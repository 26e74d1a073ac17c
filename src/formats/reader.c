// SPDX-License-Identifier: Apache-2.0
/* reader.c - Read a range of elements: view, copy, gather or decompress; release mapped pages.
 * Elements that are mapped in C order are a view, all others a copy in the caller's scratch. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "reader.h"
#include "zstd/decoder.h"

struct phema_reader {
    const struct phema_checkpoint *checkpoint;
    struct zstd_content *content; /* of a compressed file, else NULL */
    struct source *sources; /* [n_files]; NULL: all files are mapped and stay in the page cache */
    bool drops_cache;
};

/* Access to a file, in addition to its mapping. */
struct source {
    enum phema_io io;
    struct phema_file_reader *input; /* NULL: the mapping is enough */
};

bool phema_checkpoint_is_compressed(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->frames != NULL;
}

bool phema_checkpoint_can_seek(const struct phema_checkpoint *checkpoint)
{
    return !checkpoint->frames || zstd_frames_can_seek(checkpoint->frames);
}

uint64_t phema_checkpoint_entry(const struct phema_checkpoint *checkpoint, uint64_t offset)
{
    const struct zstd_frames *frames = checkpoint->frames;
    if (!frames)
        return offset;
    return zstd_frames_has_index(frames) ? zstd_frames_find(frames, offset).first : 0;
}

uint64_t phema_checkpoint_decoder_bytes(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->frames ? zstd_content_memory_bytes(checkpoint->frames) : 0;
}

enum phema_status phema_reader_open(struct phema_reader **out,
                                    const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    struct phema_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return phema_fail_memory(err);
    reader->checkpoint = checkpoint;
    if (checkpoint->frames) {
        enum phema_status status = zstd_content_open(&reader->content, checkpoint->frames, err);
        if (status) {
            free(reader);
            return status;
        }
    }
    *out = reader;
    return PHEMA_OK;
}

void phema_reader_close(struct phema_reader *reader)
{
    if (!reader)
        return;
    zstd_content_close(reader->content);
    for (size_t i = 0; reader->sources && i < reader->checkpoint->n_files; i++) {
        const struct phema_file *file = reader->checkpoint->files[i].file;
        struct phema_file_reader *input = reader->sources[i].input;
        if (input && reader->drops_cache) { /* pages at the edges of releases, and headers */
            phema_file_evict(file, 0, phema_file_span(file).size);
            phema_file_reader_evict(input, 0, 0);
        }
        phema_file_reader_close(input);
    }
    free(reader->sources);
    free(reader);
}

const struct phema_checkpoint *reader_checkpoint(const struct phema_reader *reader)
{
    return reader->checkpoint;
}

/* ---- Access to the files ---- */

static enum phema_status fail_in_file(const struct phema_reader *reader, size_t file,
                                      enum phema_status status, struct phema_error *err)
{
    return phema_fail_in(err, status, "%s", phema_file_path(reader->checkpoint->files[file].file));
}

/* io: as chosen for the file. Direct reads that nobody demands may be refused. */
static enum phema_status open_source(struct source *source, const struct phema_reader *reader,
                                     const struct phema_file *file, enum phema_io io,
                                     const struct phema_reading *reading, struct phema_error *err)
{
    *source = (struct source){.io = io == PHEMA_IO_AUTO ? PHEMA_IO_READ : io};
    if (!phema_file_is_open(file)) /* nothing of it is read */
        source->io = PHEMA_IO_MMAP;
    if (reader->content) /* decompressed from the mapping: 128 KiB at a time, forward */
        source->io = PHEMA_IO_MMAP;
    if (source->io == PHEMA_IO_MMAP && (!reader->drops_cache || !phema_file_is_open(file)))
        return PHEMA_OK;
    bool is_direct = source->io == PHEMA_IO_DIRECT && !reading->rereads;
    enum phema_status status = phema_file_reader_open(&source->input, file, is_direct, err);
    if (!is_direct || !reading->of_files || reading->io == PHEMA_IO_DIRECT) /* demanded */
        return status;
    if (status)
        return phema_file_reader_open(&source->input, file, false, err);
    phema_file_reader_allow_cache(source->input);
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_reader_use(struct phema_reader *reader, const struct phema_reading *reading,
                                struct phema_error *err)
{
    size_t n_files = reader->checkpoint->n_files;
    reader->drops_cache = reading->drops_cache;
    reader->sources = calloc(n_files + 1, sizeof(*reader->sources));
    if (!reader->sources)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n_files; i++) {
        const struct phema_file *file = reader->checkpoint->files[i].file;
        if (reading->rereads && phema_file_is_open(file))
            phema_file_forget(file);
        enum phema_status status =
            open_source(&reader->sources[i], reader, file,
                        reading->of_files ? reading->of_files[i] : reading->io, reading, err);
        if (status)
            return fail_in_file(reader, i, status, err);
        if (reading->is_sparse && reader->sources[i].input)
            phema_file_reader_expect_sparse(reader->sources[i].input);
    }
    return PHEMA_OK;
}

/* True when a read returns a view of the mapped file. */
static bool gives_views(const struct phema_reader *reader, const struct phema_tensor *tensor)
{
    if (tensor->is_compressed || tensor->stride || tensor->chunks)
        return false;
    return !reader->sources || reader->sources[tensor->file].io == PHEMA_IO_MMAP;
}

void phema_reader_prefetch(const struct phema_reader *reader, size_t file, uint64_t offset,
                           uint64_t size)
{
    enum phema_io io = reader->sources ? reader->sources[file].io : PHEMA_IO_MMAP;
    if (io == PHEMA_IO_MMAP)
        phema_file_prefetch(reader->checkpoint->files[file].file, offset, size);
    else if (io == PHEMA_IO_READ)
        phema_file_reader_prefetch(reader->sources[file].input, offset, size);
}

bool phema_reader_is_cached(const struct phema_reader *reader, size_t file, uint64_t offset)
{
    return !reader->sources || reader->sources[file].io != PHEMA_IO_READ ||
           phema_file_reader_is_cached(reader->sources[file].input, offset);
}

void phema_reader_release(const struct phema_reader *reader, size_t file, uint64_t offset,
                          uint64_t size)
{
    const struct source *source = reader->sources ? &reader->sources[file] : NULL;
    if (!source || source->io == PHEMA_IO_MMAP)
        phema_file_evict(reader->checkpoint->files[file].file, offset, size);
    if (source && source->input && reader->drops_cache && source->io != PHEMA_IO_DIRECT)
        phema_file_reader_evict(source->input, offset, size);
}

/* ---- Elements ---- */

/* The tensor as it is stored. */
static struct phema_tensor narrow_tensor(const struct phema_tensor *tensor)
{
    struct phema_tensor narrow = *tensor;
    narrow.dtype = tensor->stored_dtype;
    narrow.size_bytes = phema_dtype_bytes(narrow.dtype, narrow.n_elems);
    narrow.is_widened = false;
    if (!narrow.rank) /* the stride of a scalar says no more than that no view is possible */
        narrow.stride = NULL;
    return narrow;
}

/* Makes floats of narrower ones, which are read to the last bytes of the scratch: each is taken
 * before its bytes are overwritten. */
static enum phema_status read_widened(const uint8_t **data, struct phema_reader *reader,
                                      const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                      uint8_t *scratch, struct phema_error *err)
{
    const struct phema_tensor narrow = narrow_tensor(tensor);
    const uint8_t *stored = NULL;
    uint64_t tail = phema_dtype_bytes(tensor->dtype, n) - phema_dtype_bytes(narrow.dtype, n);
    enum phema_status status = PHEMA_OK;
    if (narrow.rank)
        status = reader_read_stored(&stored, reader, &narrow, first, n, scratch + tail, err);
    else
        stored = phema_tensor_start(reader->checkpoint, &narrow);
    for (uint64_t i = 0; i < n && !status; i++) {
        double value = phema_element_widen(narrow.dtype, stored, i);
        float single = (float)value; /* exact: a half or bfloat16 */
        if (tensor->dtype == PHEMA_F64)
            memcpy(scratch + i * sizeof(value), &value, sizeof(value));
        else
            memcpy(scratch + i * sizeof(single), &single, sizeof(single));
    }
    if (!status)
        *data = scratch;
    return status;
}

PHEMA_FALLIBLE reader_read_stored(const uint8_t **data, struct phema_reader *reader,
                                  const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                  void *scratch, struct phema_error *err)
{
    if (tensor->is_widened)
        return read_widened(data, reader, tensor, first, n, scratch, err);
    size_t file = tensor->file;
    uint64_t offset = tensor->offset + phema_dtype_bytes(tensor->dtype, first);
    bool is_in_one = tensor->chunks && reader->sources && n > 0 && /* chunk that is not mapped */
                     chunks_find(&file, &offset, reader->checkpoint, tensor, first, n) &&
                     reader->sources[file].io != PHEMA_IO_MMAP;
    if (tensor->chunks && !is_in_one) {
        *data = chunks_read(reader->checkpoint, tensor, first, n, scratch);
        return PHEMA_OK;
    }
    if (tensor->stride || gives_views(reader, tensor)) {
        *data = phema_tensor_read(phema_tensor_start(reader->checkpoint, tensor), tensor, first, n,
                                  scratch);
        return PHEMA_OK;
    }
    size_t size = (size_t)phema_dtype_bytes(tensor->dtype, n);
    enum phema_status status;
    if (tensor->is_compressed) {
        status = zstd_content_read(reader->content, offset, size, scratch, err);
        if (!status)
            *data = scratch;
    } else {
        status =
            phema_file_reader_read(data, reader->sources[file].input, offset, size, scratch, err);
    }
    if (status)
        (void)fail_in_tensor(err, status, tensor->name, tensor->name_size);
    return status ? fail_in_file(reader, file, status, err) : PHEMA_OK;
}

PHEMA_FALLIBLE reader_read_scales(const uint8_t **data, struct phema_reader *reader,
                                  const struct phema_tensor *scale, uint64_t first, uint64_t n,
                                  void *scratch, struct phema_error *err)
{
    size_t file = scale->chunks ? scale->chunks[0].file : scale->file;
    if (!reader->sources || reader->sources[file].io != PHEMA_IO_DIRECT)
        return reader_read_stored(data, reader, scale, first, n, scratch, err);
    struct phema_reader mapped = {.checkpoint = reader->checkpoint};
    return reader_read_stored(data, &mapped, scale, first, n, scratch, err);
}

/* ---- Reads of a queue ---- */

bool reader_prepare_stored(struct phema_read *read, const struct phema_reader *reader,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                           uint8_t *buffer)
{
    size_t file = tensor->file;
    uint64_t offset = tensor->offset + phema_dtype_bytes(tensor->dtype, first);
    if (!reader->sources || tensor->is_compressed || tensor->stride || tensor->is_widened)
        return false;
    if (tensor->chunks && !chunks_find(&file, &offset, reader->checkpoint, tensor, first, n))
        return false;
    const struct source *source = &reader->sources[file];
    if (source->io != PHEMA_IO_DIRECT)
        return false;
    phema_file_reader_prepare(read, source->input, offset,
                              (size_t)phema_dtype_bytes(tensor->dtype, n), buffer);
    read->path = phema_file_path(reader->checkpoint->files[file].file);
    return true;
}

PHEMA_FALLIBLE phema_reader_complete(const uint8_t **data, const struct phema_read *read,
                                     const struct phema_tensor *tensor, struct phema_error *err)
{
    struct phema_read unnamed = *read; /* the path goes before the tensor */
    unnamed.path = NULL;
    enum phema_status status = phema_file_reader_complete(data, &unnamed, err);
    if (!status)
        return PHEMA_OK;
    (void)fail_in_tensor(err, status, tensor->name, tensor->name_size);
    return phema_fail_in(err, status, "%s", read->path);
}

enum phema_status phema_reader_finish(struct phema_reader *reader, struct phema_error *err)
{
    if (!reader->content)
        return PHEMA_OK;
    enum phema_status status = zstd_content_finish(reader->content, err);
    return status ? fail_in_file(reader, 0, status, err) : PHEMA_OK;
}

/* ---- Mapped pages ---- */

bool phema_tensor_find(size_t *file, uint64_t *offset, const struct phema_tensor *tensor,
                       uint64_t element)
{
    if (phema_tensor_is_converted(tensor))
        return false;
    *file = tensor->file;
    *offset = tensor->offset + phema_dtype_bytes(tensor->dtype, element);
    if (tensor->chunks)
        chunks_find_element(file, offset, tensor, element);
    return !tensor->is_compressed && !tensor->stride;
}

void tensor_prefetch_stored(const struct phema_checkpoint *checkpoint,
                            const struct phema_tensor *tensor, uint64_t first, uint64_t n)
{
    uint64_t offset = tensor->offset + phema_dtype_bytes(tensor->dtype, first);
    uint64_t size = phema_dtype_bytes(tensor->dtype, n);
    const struct zstd_frames *frames = checkpoint->frames;
    if (tensor->is_widened)
        return;
    if (tensor->chunks) {
        chunks_prefetch(checkpoint, tensor, first, n);
    } else if (tensor->is_compressed && zstd_frames_has_index(frames)) {
        uint64_t begin = zstd_frames_find(frames, offset).file_offset;
        uint64_t end = zstd_frames_estimate(frames, offset + size - 1);
        phema_file_prefetch(checkpoint->files[tensor->file].file, begin, end - begin);
    } else if (!tensor->is_compressed && !tensor->stride) {
        phema_file_prefetch(checkpoint->files[tensor->file].file, offset, size);
    }
}

/* Releases the rows [row, end) of the first dimension that lie in the chunk. */
static void release_rows(const struct phema_checkpoint *checkpoint,
                         const struct phema_tensor *tensor, const struct phema_chunk *chunk,
                         uint64_t row, uint64_t end)
{
    uint64_t first = chunk->start[0], last = chunk->start[0] + chunk->size[0];
    row = row > first ? row : first;
    end = end < last ? end : last;
    if (chunk->stride || row >= end)
        return;
    uint64_t row_elems = 1;
    for (unsigned d = 1; d < tensor->rank; d++)
        row_elems *= chunk->size[d];
    phema_file_evict(phema_checkpoint_file(checkpoint, chunk->file),
                     chunk->offset + phema_dtype_bytes(phema_tensor_stored_dtype(tensor),
                                                       (row - first) * row_elems),
                     phema_dtype_bytes(phema_tensor_stored_dtype(tensor), (end - row) * row_elems));
}

void tensor_release_stored(const struct phema_checkpoint *checkpoint,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n)
{
    if (tensor->is_compressed || n == 0)
        return;
    if (tensor->is_widened) {
        const struct phema_tensor narrow = narrow_tensor(tensor);
        tensor_release_stored(checkpoint, &narrow, first, n);
        return;
    }
    if (tensor->chunks) {
        uint64_t row_elems = tensor->n_elems / tensor->shape[0]; /* rank 0 has no chunks */
        for (size_t c = 0; c < tensor->n_chunks; c++)
            release_rows(checkpoint, tensor, &tensor->chunks[c], first / row_elems,
                         (first + n - 1) / row_elems + 1);
        return;
    }
    const struct phema_file *file = phema_checkpoint_file(checkpoint, tensor->file);
    enum phema_dtype dtype = phema_tensor_stored_dtype(tensor);
    if (!tensor->stride)
        phema_file_evict(file, tensor->offset + phema_dtype_bytes(dtype, first),
                         phema_dtype_bytes(dtype, n));
    if (!tensor->stride || first + n != tensor->n_elems)
        return;
    uint64_t last = 0; /* elements are scattered up to it, inside the storage */
    for (unsigned d = 0; d < tensor->rank; d++)
        last += (tensor->shape[d] - 1) * tensor->stride[d];
    phema_file_evict(file, tensor->offset, phema_dtype_bytes(dtype, last + 1));
}
