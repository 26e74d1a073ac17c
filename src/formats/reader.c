// SPDX-License-Identifier: Apache-2.0
/* reader.c - Read a range of elements: view, copy, gather or decompress; release mapped pages.
 * Elements that are mapped in C order are a view, all others a copy in the caller's scratch. */
#include <stdlib.h>

#include "chunks.h"
#include "format.h"
#include "zstd/decoder.h"

struct phema_reader {
    const struct phema_checkpoint *checkpoint;
    struct zstd_content **contents; /* [n_files] of compressed files; NULL before the first read */
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
    for (size_t i = 0; i < checkpoint->n_files; i++)
        if (checkpoint->files[i].frames)
            return true;
    return false;
}

bool phema_checkpoint_can_seek(const struct phema_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_files; i++)
        if (checkpoint->files[i].frames && !zstd_frames_can_seek(checkpoint->files[i].frames))
            return false;
    return true;
}

uint64_t phema_checkpoint_entry(const struct phema_checkpoint *checkpoint, size_t file,
                                uint64_t offset)
{
    const struct zstd_frames *frames = checkpoint->files[file].frames;
    if (!frames)
        return offset;
    return zstd_frames_has_index(frames) ? zstd_frames_find(frames, offset).first : 0;
}

uint64_t phema_checkpoint_decoder_bytes(const struct phema_checkpoint *checkpoint)
{
    uint64_t sum = 0; /* at most a little over 128 MiB for each open file */
    for (size_t i = 0; i < checkpoint->n_files; i++)
        if (checkpoint->files[i].frames)
            sum += zstd_content_memory_bytes(checkpoint->files[i].frames);
    return sum;
}

enum phema_status phema_reader_open(struct phema_reader **out,
                                    const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    struct phema_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return phema_fail_memory(err);
    reader->checkpoint = checkpoint;
    if (phema_checkpoint_is_compressed(checkpoint)) {
        reader->contents = calloc(checkpoint->n_files, sizeof(struct zstd_content *));
        if (!reader->contents) {
            free(reader);
            return phema_fail_memory(err);
        }
    }
    *out = reader;
    return PHEMA_OK;
}

/* Evicts the pages that releases during reading left behind: at their edges, and headers. */
static void close_sources(struct phema_reader *reader)
{
    for (size_t i = 0; reader->sources && i < reader->checkpoint->n_files; i++) {
        const struct phema_file *file = reader->checkpoint->files[i].file;
        if (reader->sources[i].input && reader->drops_cache) {
            phema_file_evict(file, 0, phema_file_span(file).size);
            phema_file_reader_evict(reader->sources[i].input, 0, 0);
        }
        phema_file_reader_close(reader->sources[i].input);
    }
    free(reader->sources);
    reader->sources = NULL;
}

void phema_reader_close(struct phema_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; reader->contents && i < reader->checkpoint->n_files; i++)
        zstd_content_close(reader->contents[i]);
    close_sources(reader);
    free(reader->contents);
    free(reader);
}

static enum phema_status content_of(struct zstd_content **out, struct phema_reader *reader,
                                    size_t file, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (!reader->contents[file])
        status =
            zstd_content_open(&reader->contents[file], reader->checkpoint->files[file].frames, err);
    *out = reader->contents[file];
    return status;
}

/* ---- Access to the files ---- */

static enum phema_status fail_in_file(const struct phema_reader *reader, size_t file,
                                      enum phema_status status, struct phema_error *err)
{
    return phema_fail_in(err, status, "%s", phema_file_path(reader->checkpoint->files[file].file));
}

static enum phema_status open_source(struct source *source, const struct checkpoint_file *file,
                                     const struct phema_reading *reading, struct phema_error *err)
{
    *source = (struct source){.io = reading->io};
    if (file->frames) /* decompressed from the mapping: 128 KiB at a time, forward */
        source->io = PHEMA_IO_MMAP;
    if (source->io == PHEMA_IO_AUTO) {
        bool is_local = !phema_network_filesystem(phema_file_path(file->file));
        source->io = reading->maps_local && is_local ? PHEMA_IO_MMAP : PHEMA_IO_READ;
    }
    if (source->io == PHEMA_IO_MMAP && !reading->drops_cache)
        return PHEMA_OK;
    return phema_file_reader_open(&source->input, file->file, source->io == PHEMA_IO_DIRECT, err);
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
        enum phema_status status =
            open_source(&reader->sources[i], &reader->checkpoint->files[i], reading, err);
        if (status)
            return fail_in_file(reader, i, status, err);
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

static enum phema_status fail_in_place(const struct phema_reader *reader,
                                       const struct phema_tensor *tensor, enum phema_status status,
                                       struct phema_error *err)
{
    (void)fail_in_tensor(err, status, tensor->name, tensor->name_size);
    return fail_in_file(reader, tensor->file, status, err);
}

/* Bytes of n elements in C order. */
static uint64_t bytes_of(const struct phema_tensor *tensor, uint64_t n)
{
    unsigned bits = phema_dtype_bits(tensor->dtype);
    /* groups of 8 elements are whole bytes: no product overflows where data exist */
    return n / 8 * bits + n % 8 * bits / 8;
}

/* Decompressed tensors lie in C order. */
static enum phema_status read_decoded(struct phema_reader *reader,
                                      const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                      void *scratch, struct phema_error *err)
{
    uint64_t offset = tensor->offset + bytes_of(tensor, first);
    size_t size = (size_t)bytes_of(tensor, n);
    struct zstd_content *content = NULL;
    enum phema_status status = content_of(&content, reader, tensor->file, err);
    if (!status)
        status = zstd_content_read(content, offset, size, scratch, err);
    return status ? fail_in_place(reader, tensor, status, err) : PHEMA_OK;
}

enum phema_status phema_reader_read(const uint8_t **data, struct phema_reader *reader,
                                    const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                    void *scratch, struct phema_error *err)
{
    if (tensor->is_compressed) {
        enum phema_status status = read_decoded(reader, tensor, first, n, scratch, err);
        if (!status)
            *data = scratch;
        return status;
    }
    if (tensor->chunks) {
        *data = chunks_read(reader->checkpoint, tensor, first, n, scratch);
        return PHEMA_OK;
    }
    if (!tensor->stride && !gives_views(reader, tensor)) {
        enum phema_status status = phema_file_reader_read(
            data, reader->sources[tensor->file].input, tensor->offset + bytes_of(tensor, first),
            (size_t)bytes_of(tensor, n), scratch, err);
        return status ? fail_in_place(reader, tensor, status, err) : PHEMA_OK;
    }
    *data = phema_tensor_read(phema_tensor_start(reader->checkpoint, tensor), tensor, first, n,
                              scratch);
    return PHEMA_OK;
}

enum phema_status phema_reader_finish(struct phema_reader *reader, struct phema_error *err)
{
    for (size_t i = 0; reader->contents && i < reader->checkpoint->n_files; i++) {
        if (!reader->checkpoint->files[i].frames)
            continue;
        struct zstd_content *content = NULL;
        enum phema_status status = content_of(&content, reader, i, err);
        if (!status)
            status = zstd_content_finish(content, err);
        if (status)
            return fail_in_file(reader, i, status, err);
    }
    return PHEMA_OK;
}

/* ---- Releasing mapped pages ---- */

/* Bytes from the first element to the end of the last one. */
static uint64_t extent(const struct phema_tensor *tensor)
{
    uint64_t last = 0; /* inside the storage: checked when the tensor was listed */
    for (unsigned d = 0; d < tensor->rank; d++)
        last += (tensor->shape[d] - 1) * tensor->stride[d];
    return phema_dtype_bytes(tensor->dtype, last + 1);
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
                     chunk->offset + phema_dtype_bytes(tensor->dtype, (row - first) * row_elems),
                     phema_dtype_bytes(tensor->dtype, (end - row) * row_elems));
}

void phema_tensor_release(const struct phema_checkpoint *checkpoint,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n)
{
    if (tensor->is_compressed || n == 0)
        return;
    if (tensor->chunks) {
        uint64_t row_elems = tensor->n_elems / tensor->shape[0]; /* rank 0 has no chunks */
        for (size_t c = 0; c < tensor->n_chunks; c++)
            release_rows(checkpoint, tensor, &tensor->chunks[c], first / row_elems,
                         (first + n - 1) / row_elems + 1);
        return;
    }
    const struct phema_file *file = phema_checkpoint_file(checkpoint, tensor->file);
    if (!tensor->stride)
        phema_file_evict(file, tensor->offset + phema_dtype_bytes(tensor->dtype, first),
                         phema_dtype_bytes(tensor->dtype, n));
    else if (first + n == tensor->n_elems) /* the elements are scattered over the extent */
        phema_file_evict(file, tensor->offset, extent(tensor));
}
