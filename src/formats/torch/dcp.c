// SPDX-License-Identifier: Apache-2.0
/* dcp.c - Distributed checkpoints: .metadata and its archives (docs/formats/dcp.md). The pickle
 * .metadata lists the chunks of each tensor. Each chunk is an archive of torch.save inside a file
 * of the directory. Every statement of .metadata is checked against the archives. */
#include <stdlib.h>
#include <string.h>

#include "chunks.h"
#include "format.h"
#include "torch/dcp_metadata.h"
#include "torch/torch_zip.h"

static bool probe(struct phema_span content)
{
    /* the class of the root comes first, after at most 13 bytes of protocol, frame and opcode */
    static const char module[] = "torch.distributed.checkpoint.metadata";
    size_t size = content.size < 64 ? content.size : 64;
    return size >= 2 && content.data[0] == 0x80 &&
           memmem(content.data, size, module, sizeof(module) - 1);
}

/* A distributed checkpoint while its files are read. */
struct distributed {
    struct phema_checkpoint *checkpoint;
    const struct phema_checkpoint_options *options;
    struct dcp_metadata *metadata;
    struct name_table files; /* by path; values are indices in the checkpoint's files */
};

static enum phema_status find_file(size_t *out, struct distributed *distributed,
                                   struct phema_span path, struct phema_error *err)
{
    const char *name = (const char *)path.data;
    if (name_table_find(out, &distributed->files, name, path.size))
        return PHEMA_OK;
    const char *fault = relative_path_fault(name, path.size);
    if (fault)
        return phema_fail(err, PHEMA_ERR_FILE, "its name %s", fault);
    enum phema_status status =
        checkpoint_add_relative(distributed->checkpoint, name, path.size, err);
    *out = distributed->checkpoint->n_files - 1;
    if (!status && name_table_add(&distributed->files, name, path.size, *out) != NAME_ADDED)
        return phema_fail_memory(err);
    return status;
}

static enum phema_status check_piece(const struct phema_tensor *piece,
                                     const struct phema_tensor *tensor,
                                     const struct phema_chunk *box, struct phema_error *err)
{
    if (piece->dtype != tensor->dtype)
        return phema_fail(err, PHEMA_ERR_FILE, "the tensor in the archive is %s, expected %s",
                          phema_dtype_name(piece->dtype), phema_dtype_name(tensor->dtype));
    bool is_same = piece->rank == tensor->rank;
    for (unsigned d = 0; d < tensor->rank && is_same; d++)
        is_same = piece->shape[d] == box->size[d];
    if (is_same)
        return PHEMA_OK;
    struct phema_name_buffer found, wanted;
    return phema_fail(err, PHEMA_ERR_FILE, "the tensor in the archive has shape %s, expected %s",
                      chunks_format_index(&found, piece->shape, piece->rank),
                      chunks_format_index(&wanted, box->size, tensor->rank));
}

/* Finds the data of a chunk whose start and size are known. */
static enum phema_status find_chunk(struct phema_chunk *box, struct distributed *distributed,
                                    const struct phema_tensor *tensor, struct phema_arena *arena,
                                    const struct dcp_place *place, struct phema_error *err)
{
    enum phema_status status = find_file(&box->file, distributed, place->path, err);
    if (status)
        return status;
    struct phema_span content = checkpoint_content(distributed->checkpoint, box->file);
    struct phema_span archive;
    if (!phema_span_part(&archive, content, place->offset, place->size))
        return phema_fail(err, PHEMA_ERR_FILE, "expected %llu bytes at byte %llu, the file has %zu",
                          (unsigned long long)place->size, (unsigned long long)place->offset,
                          content.size);
    struct phema_tensor piece = {0};
    status = torch_zip_read_tensor(&piece, arena, archive, box->file, place->offset,
                                   distributed->options, err);
    if (!status)
        status = check_piece(&piece, tensor, box, err);
    if (status)
        return phema_fail_in(err, status, "byte %llu", (unsigned long long)place->offset);
    box->offset = piece.offset;
    box->stride = piece.stride;
    return PHEMA_OK;
}

static enum phema_status read_chunk(struct phema_chunk *box, bool *is_repeated,
                                    struct distributed *distributed,
                                    const struct phema_tensor *tensor, struct phema_arena *arena,
                                    size_t number, size_t chunk, struct phema_error *err)
{
    uint64_t *start = phema_arena_array(arena, 2 * (size_t)tensor->rank, sizeof(*start));
    if (!start)
        return phema_fail_memory(err);
    box->start = start;
    box->size = start + tensor->rank;
    struct dcp_place place;
    enum phema_status status = dcp_read_chunk(start, start + tensor->rank, &place, is_repeated,
                                              distributed->metadata, number, chunk, err);
    if (!status)
        status = chunks_check_inside(box, tensor->shape, tensor->rank, err);
    if (status || *is_repeated)
        return status;
    status = find_chunk(box, distributed, tensor, arena, &place, err);
    struct phema_name_buffer shown;
    return status ? phema_fail_in(
                        err, status, "file '%s'",
                        phema_name_escape(&shown, (const char *)place.path.data, place.path.size))
                  : PHEMA_OK;
}

/* A tensor of one chunk is an ordinary tensor. Several chunks outlive the listing. */
static enum phema_status read_chunks(struct phema_tensor *tensor, struct distributed *distributed,
                                     size_t number, size_t n_chunks, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = distributed->checkpoint;
    struct phema_arena *arena = n_chunks > 1 ? &checkpoint->chunk_arena : &checkpoint->arena;
    struct phema_chunk *chunks = phema_arena_array(arena, n_chunks, sizeof(*chunks));
    if (!chunks)
        return phema_fail_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < n_chunks; i++) {
        bool is_repeated = false;
        enum phema_status status =
            read_chunk(&chunks[n], &is_repeated, distributed, tensor, arena, number, i, err);
        if (status)
            return status;
        n += !is_repeated;
    }
    enum phema_status status = chunks_check(chunks, n, tensor->rank, tensor->n_elems, err);
    if (status)
        return status;
    if (n > 1) {
        tensor->chunks = chunks;
        tensor->n_chunks = n;
    } else if (n == 1) {
        tensor->file = chunks[0].file;
        tensor->offset = chunks[0].offset;
        tensor->stride = chunks[0].stride;
    }
    return PHEMA_OK;
}

static enum phema_status read_tensor(struct distributed *distributed, size_t number,
                                     struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = distributed->checkpoint;
    struct phema_tensor tensor = {0};
    size_t n_chunks = 0;
    enum phema_status status =
        dcp_read_tensor(&tensor, &n_chunks, distributed->metadata, number, &checkpoint->arena, err);
    if (!status)
        status = read_chunks(&tensor, distributed, number, n_chunks, err);
    return status ? status : checkpoint_add_tensor(checkpoint, &tensor, err);
}

static enum phema_status open_distributed(struct phema_checkpoint *checkpoint,
                                          const struct phema_checkpoint_options *options,
                                          struct phema_error *err)
{
    struct dcp_metadata *metadata = NULL;
    enum phema_status status =
        dcp_metadata_open(&metadata, checkpoint_content(checkpoint, 0), options, err);
    if (status)
        return status;
    struct distributed distributed = {
        .checkpoint = checkpoint, .options = options, .metadata = metadata};
    for (size_t i = 0; i < dcp_n_values(metadata) && !status; i++) {
        if (!dcp_is_tensor(metadata, i))
            continue;
        struct phema_span name = dcp_name(metadata, i);
        status = read_tensor(&distributed, i, err);
        if (status)
            (void)fail_in_tensor(err, status, (const char *)name.data, name.size);
    }
    name_table_clear(&distributed.files);
    dcp_metadata_close(metadata);
    return status;
}

const struct phema_format dcp_format = {
    .info = {.name = "dcp",
             .extensions = (const struct phema_extension[]){{".distcp", 0}, {NULL, 0}}},
    .probe = probe,
    .open = open_distributed,
};
