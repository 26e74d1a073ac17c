// SPDX-License-Identifier: Apache-2.0
/* reader.c - elements of tensors, wherever they lie: a view where they are mapped in C order, else
 * a copy in the caller's scratch. */
#include <stdlib.h>

#include "format.h"
#include "gather.h"
#include "zstd_content.h"

struct phema_reader {
    const struct phema_checkpoint *checkpoint;
    struct zstd_content **contents; /* [n_files] of compressed files that were read from */
};

bool phema_checkpoint_is_decoded(const struct phema_checkpoint *checkpoint)
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

uint64_t phema_checkpoint_decoder_bytes(const struct phema_checkpoint *checkpoint)
{
    uint64_t sum = 0; /* of 128 MiB and a little for each file that is open */
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
        return fail_memory(err);
    reader->checkpoint = checkpoint;
    if (phema_checkpoint_is_decoded(checkpoint)) {
        reader->contents = calloc(checkpoint->n_files, sizeof(struct zstd_content *));
        if (!reader->contents) {
            free(reader);
            return fail_memory(err);
        }
    }
    *out = reader;
    return PHEMA_OK;
}

void phema_reader_close(struct phema_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; reader->contents && i < reader->checkpoint->n_files; i++)
        zstd_content_close(reader->contents[i]);
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

static enum phema_status fail_in_file(const struct phema_reader *reader, size_t file,
                                      enum phema_status status, struct phema_error *err)
{
    return phema_fail_in(err, status, "%s", phema_file_path(reader->checkpoint->files[file].file));
}

/* Decompressed tensors lie in C order. */
static enum phema_status read_decoded(struct phema_reader *reader,
                                      const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                      void *scratch, struct phema_error *err)
{
    unsigned bits = phema_dtype_bits(tensor->dtype);
    /* groups of 8 elements are whole bytes: no product overflows where data exist */
    uint64_t offset = tensor->offset + first / 8 * bits + first % 8 * bits / 8;
    size_t size = (size_t)(n / 8 * bits + n % 8 * bits / 8);
    struct zstd_content *content = NULL;
    enum phema_status status = content_of(&content, reader, tensor->file, err);
    if (!status)
        status = zstd_content_read(content, offset, size, scratch, err);
    if (!status)
        return PHEMA_OK;
    (void)fail_in_tensor(err, status, tensor->name, tensor->name_size);
    return fail_in_file(reader, tensor->file, status, err);
}

enum phema_status phema_reader_read(const uint8_t **data, struct phema_reader *reader,
                                    const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                    void *scratch, struct phema_error *err)
{
    if (tensor->is_decoded) {
        enum phema_status status = read_decoded(reader, tensor, first, n, scratch, err);
        if (!status)
            *data = scratch;
        return status;
    }
    if (tensor->parts) {
        *data = parts_read(reader->checkpoint, tensor, first, n, scratch);
        return PHEMA_OK;
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
