// SPDX-License-Identifier: Apache-2.0
/* dcp.c - Distributed checkpoints (docs/formats/dcp.md). Each chunk of a tensor is an archive of
 * torch.save inside a file of the directory. Every statement of .metadata is checked against the
 * archives. */
#include <string.h>

#include "chunks.h"
#include "format.h"
#include "torch/dcp_metadata.h"
#include "torch/torch.h"

/* A distributed checkpoint while its files are read. */
struct distributed {
    struct phema_checkpoint *checkpoint;
    const struct phema_checkpoint_options *options;
    struct dcp_metadata metadata;
    uint64_t chunks_left; /* bound for lists that are shared: one chunk for each byte of the file */
    struct name_table files; /* by path; values are indices in the checkpoint's files */
};

static bool probe(struct phema_span content)
{
    /* the class of the root comes first, after at most 13 bytes of protocol, frame and opcode */
    static const char module[] = "torch.distributed.checkpoint.metadata";
    size_t size = content.size < 64 ? content.size : 64;
    return size >= 2 && content.data[0] == 0x80 &&
           memmem(content.data, size, module, sizeof(module) - 1);
}

/* ---- Tensors ---- */

static enum phema_status check_chunks(struct distributed *distributed,
                                      const struct pickle_items *chunks, struct phema_error *err)
{
    if (chunks->n > MAX_CHUNKS)
        return phema_fail(err, PHEMA_ERR_FILE, "has %u pieces, expected %u at most", chunks->n,
                          MAX_CHUNKS);
    if (chunks->n > distributed->chunks_left)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the tensors share lists of pieces, as no real metadata do");
    distributed->chunks_left -= chunks->n;
    return PHEMA_OK;
}

/* ---- Chunks ---- */

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

/* Bytes at both ends of an archive of one tensor: pickle and header, directory. */
#define ARCHIVE_EDGE ((uint64_t)4096)

/* The file and the place of an archive that storage_data names; NULL: find_chunk says why. */
static const struct phema_file *find_archive(struct dcp_place *place,
                                             struct distributed *distributed, size_t i)
{
    struct phema_error ignored;
    size_t file = 0;
    if (dcp_place_read(place, &distributed->metadata.stored[i], &ignored) ||
        find_file(&file, distributed, place->path, &ignored))
        return NULL;
    return phema_checkpoint_file(distributed->checkpoint, file);
}

static bool is_archive_cached(struct distributed *distributed, size_t i)
{
    struct dcp_place place = {0};
    const struct phema_file *file = find_archive(&place, distributed, i);
    return !file || phema_file_is_cached_at(file, place.offset);
}

static void prefetch_archive(struct distributed *distributed, size_t i)
{
    struct dcp_place place = {0};
    const struct phema_file *file = find_archive(&place, distributed, i);
    uint64_t edge = place.size < ARCHIVE_EDGE ? place.size : ARCHIVE_EDGE;
    if (!file)
        return;
    phema_file_prefetch(file, place.offset, edge);
    phema_file_prefetch(file, place.offset + place.size - edge, edge);
}

/* Headers of thousands of archives lie all over the files. They are requested at once, before the
 * first is read. */
static void prefetch_archives(struct distributed *distributed)
{
    size_t n = distributed->metadata.n_stored;
    struct dcp_place place = {0};
    for (size_t i = 0; i < n; i++) /* the order of the files does not depend on the page cache */
        (void)find_archive(&place, distributed, i);
    if (n < 2 || (is_archive_cached(distributed, 0) && is_archive_cached(distributed, n / 2) &&
                  is_archive_cached(distributed, n - 1)))
        return;
    for (size_t i = 0; i < n; i++)
        prefetch_archive(distributed, i);
}

static enum phema_status check_piece(const struct phema_tensor *piece,
                                     const struct phema_tensor *tensor,
                                     const struct phema_chunk *chunk, struct phema_error *err)
{
    if (piece->dtype != tensor->dtype)
        return phema_fail(err, PHEMA_ERR_FILE, "the tensor in the archive is %s, expected %s",
                          phema_dtype_name(piece->dtype), phema_dtype_name(tensor->dtype));
    bool is_same = piece->rank == tensor->rank;
    for (unsigned d = 0; d < tensor->rank && is_same; d++)
        is_same = piece->shape[d] == chunk->size[d];
    if (is_same)
        return PHEMA_OK;
    struct phema_name_buffer found, wanted;
    return phema_fail(err, PHEMA_ERR_FILE, "the tensor in the archive has shape %s, expected %s",
                      chunks_format_index(&found, piece->shape, piece->rank),
                      chunks_format_index(&wanted, chunk->size, tensor->rank));
}

/* Finds the data of a chunk whose start and size are known. */
static enum phema_status find_chunk(struct phema_chunk *chunk, struct distributed *distributed,
                                    const struct phema_tensor *tensor, struct phema_arena *arena,
                                    const struct dcp_place *place, struct phema_error *err)
{
    enum phema_status status = find_file(&chunk->file, distributed, place->path, err);
    if (status)
        return status;
    struct phema_span content = checkpoint_content(distributed->checkpoint, chunk->file);
    struct phema_span archive;
    if (!phema_span_part(&archive, content, place->offset, place->size))
        return phema_fail(err, PHEMA_ERR_FILE, "expected %llu bytes at byte %llu, the file has %zu",
                          (unsigned long long)place->size, (unsigned long long)place->offset,
                          content.size);
    struct phema_tensor piece = {0};
    status = torch_zip_read_tensor(&piece, arena, archive, chunk->file, place->offset,
                                   distributed->options, err);
    if (!status)
        status = check_piece(&piece, tensor, chunk, err);
    if (status)
        return phema_fail_in(err, status, "byte %llu", (unsigned long long)place->offset);
    chunk->offset = piece.offset;
    chunk->stride = piece.stride;
    return PHEMA_OK;
}

/* Finds the place of a chunk in storage_data. No place: an empty chunk that equals an earlier one,
 * as ranks without a share have them. */
static enum phema_status claim_place(struct dcp_place *place, bool *has_place,
                                     struct distributed *distributed, size_t number,
                                     const struct pickle_node *node,
                                     const struct phema_chunk *chunk, unsigned rank,
                                     struct phema_error *err)
{
    struct dcp_stored *stored = dcp_metadata_find(&distributed->metadata, number, node);
    struct phema_name_buffer shown;
    if (!stored)
        return phema_fail(err, PHEMA_ERR_FILE, "storage_data does not say where the piece at %s is",
                          chunks_format_index(&shown, chunk->start, rank));
    bool is_empty = false;
    for (unsigned d = 0; d < rank; d++)
        is_empty |= chunk->size[d] == 0;
    *has_place = !stored->is_claimed;
    if (stored->is_claimed && is_empty)
        return PHEMA_OK;
    if (stored->is_claimed)
        return phema_fail(err, PHEMA_ERR_FILE, "two pieces begin at %s: they overlap",
                          chunks_format_index(&shown, chunk->start, rank));
    stored->is_claimed = true;
    return dcp_place_read(place, stored, err);
}

/* is_used: out, false for an empty chunk that equals an earlier one */
static enum phema_status read_chunk(struct phema_chunk *chunk, bool *is_used,
                                    struct distributed *distributed,
                                    const struct phema_tensor *tensor, struct phema_arena *arena,
                                    size_t number, const struct pickle_node *node,
                                    struct phema_error *err)
{
    struct dcp_place place = {0};
    enum phema_status status = dcp_bounds_read(chunk, node, tensor->rank, arena, err);
    if (status)
        return status;
    status = claim_place(&place, is_used, distributed, number, node, chunk, tensor->rank, err);
    if (status)
        return status;
    status = chunks_check_inside(chunk, tensor->shape, tensor->rank, err);
    if (status || !*is_used)
        return status;
    status = find_chunk(chunk, distributed, tensor, arena, &place, err);
    struct phema_name_buffer shown;
    if (status)
        return phema_fail_in(
            err, status, "file '%s'",
            phema_name_escape(&shown, (const char *)place.path.data, place.path.size));
    return PHEMA_OK;
}

/* A tensor of one chunk is an ordinary tensor. Several chunks outlive the listing. */
static enum phema_status read_chunks(struct phema_tensor *tensor, struct distributed *distributed,
                                     size_t number, const struct pickle_items *list,
                                     struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = distributed->checkpoint;
    struct phema_arena *arena = list->n > 1 ? &checkpoint->chunk_arena : &checkpoint->arena;
    struct phema_chunk *chunks = phema_arena_array(arena, list->n, sizeof(*chunks));
    if (!chunks)
        return phema_fail_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        bool is_used = false;
        enum phema_status status =
            read_chunk(&chunks[n], &is_used, distributed, tensor, arena, number, list->at[i], err);
        if (status)
            return status;
        n += is_used;
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
    struct phema_arena *arena = &distributed->checkpoint->arena;
    const struct pickle_items *chunks = NULL;
    struct phema_span name = dcp_metadata_name(&distributed->metadata, number);
    struct phema_span part = distributed->checkpoint->part;
    struct phema_tensor tensor = {.name_size = part.size + name.size};
    enum phema_status status =
        dcp_tensor_read(&tensor, &chunks, &distributed->metadata, number, arena, err);
    if (!status)
        status = check_chunks(distributed, chunks, err);
    if (status)
        return status;
    char *full_name = phema_arena_alloc(arena, tensor.name_size + 1);
    if (!full_name)
        return phema_fail_memory(err);
    if (part.size)
        memcpy(full_name, part.data, part.size);
    if (name.size)
        memcpy(full_name + part.size, name.data, name.size);
    full_name[tensor.name_size] = '\0';
    tensor.name = full_name;
    status = read_chunks(&tensor, distributed, number, chunks, err);
    return status ? status : checkpoint_add_tensor(distributed->checkpoint, &tensor, err);
}

static enum phema_status read_tensors(struct distributed *distributed, struct phema_error *err)
{
    for (size_t i = 0; i < dcp_metadata_n_values(&distributed->metadata); i++) {
        struct phema_span name = dcp_metadata_name(&distributed->metadata, i);
        enum phema_status status = dcp_metadata_is_tensor(&distributed->metadata, i)
                                       ? read_tensor(distributed, i, err)
                                       : PHEMA_OK;
        if (status)
            return fail_in_tensor(err, status, (const char *)name.data, name.size);
    }
    return PHEMA_OK;
}

/* ---- Counters ---- */

/* The step that a trainer stores as an object of its own tells whether a directory has the right
 * name. No other object is opened. One that is no number, or damaged, tells nothing. */
static void read_counter(struct distributed *distributed)
{
    const struct dcp_stored *counter = &distributed->metadata.counter;
    struct dcp_place place = {0};
    struct phema_span archive;
    struct phema_error ignored = {0};
    size_t file = 0;
    if (counter->info && !distributed->checkpoint->part.size &&
        !dcp_place_read(&place, counter, &ignored) &&
        !find_file(&file, distributed, place.path, &ignored) &&
        phema_span_part(&archive, checkpoint_content(distributed->checkpoint, file), place.offset,
                        place.size))
        (void)!torch_zip_list_values(distributed->checkpoint, DCP_COUNTER, archive, file,
                                     place.offset, distributed->options, &ignored);
}

static enum phema_status open_distributed(struct phema_checkpoint *checkpoint,
                                          const struct phema_checkpoint_options *options,
                                          struct phema_error *err)
{
    struct distributed distributed = {.checkpoint = checkpoint, .options = options};
    struct phema_span content = checkpoint_content(checkpoint, checkpoint->base);
    checkpoint->files[checkpoint->base].is_metadata = true;
    distributed.chunks_left = content.size;
    enum phema_status status = dcp_metadata_read(&distributed.metadata, content, options, err);
    if (!status) {
        prefetch_archives(&distributed);
        status = read_tensors(&distributed, err);
    }
    if (!status)
        read_counter(&distributed);
    name_table_clear(&distributed.files);
    dcp_metadata_clear(&distributed.metadata);
    return status;
}

/* ---- Records ---- */

/* The zips of all pieces while they are listed. */
struct record_list {
    const struct phema_checkpoint *checkpoint;
    struct name_table files; /* by label; values are indices in the checkpoint's files */
    struct phema_record *items;
    size_t n, capacity;
};

static enum phema_status index_files(struct record_list *list, struct phema_error *err)
{
    for (size_t f = 0; f < list->checkpoint->n_files; f++) {
        const char *label = phema_checkpoint_file_label(list->checkpoint, f);
        if (!list->checkpoint->files[f].is_metadata &&
            name_table_add(&list->files, label, strlen(label), f) != NAME_ADDED)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

/* The file that a path in .metadata names; false: no piece uses it. */
static bool find_labelled(size_t *file, const struct record_list *list, const char *metadata_label,
                          struct phema_span path)
{
    const char *slash = strrchr(metadata_label, '/');
    struct phema_strbuf label = {0};
    phema_strbuf_append(&label, metadata_label, slash ? (size_t)(slash + 1 - metadata_label) : 0);
    phema_strbuf_append(&label, (const char *)path.data, path.size);
    bool is_found = !label.is_failed && name_table_find(file, &list->files, label.data, label.size);
    phema_strbuf_clear(&label);
    return is_found;
}

/* Of the zip of one piece. Places in files that no piece uses are ignored. */
static enum phema_status add_records(struct record_list *list, const char *metadata_label,
                                     const struct dcp_stored *stored, struct phema_error *err)
{
    struct dcp_place place = {0};
    size_t file = 0;
    struct phema_span archive;
    enum phema_status status = dcp_place_read(&place, stored, err);
    if (status)
        return status;
    if (!find_labelled(&file, list, metadata_label, place.path) ||
        !phema_span_part(&archive, checkpoint_content(list->checkpoint, file), place.offset,
                         place.size))
        return PHEMA_OK;
    struct zip_archive zip;
    status = zip_open(&zip, archive, TORCH_ONE_TENSOR_RECORDS, err);
    if (status)
        return status;
    status = torch_zip_add_records(&list->items, &list->n, &list->capacity, &zip, file,
                                   place.offset, err);
    zip_close(&zip);
    return status;
}

static enum phema_status add_part_records(struct record_list *list, size_t metadata_file,
                                          struct phema_error *err)
{
    struct dcp_metadata metadata = {0};
    const char *label = phema_checkpoint_file_label(list->checkpoint, metadata_file);
    enum phema_status status = dcp_metadata_read(
        &metadata, checkpoint_content(list->checkpoint, metadata_file), NULL, err);
    for (size_t i = 0; i < metadata.n_stored && !status; i++)
        status = add_records(list, label, &metadata.stored[i], err);
    dcp_metadata_clear(&metadata);
    return status;
}

static enum phema_status list_records(struct phema_record **out, size_t *n,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    struct record_list list = {.checkpoint = checkpoint};
    enum phema_status status = index_files(&list, err);
    for (size_t f = 0; f < checkpoint->n_files && !status; f++)
        if (checkpoint->files[f].is_metadata)
            status = add_part_records(&list, f, err);
    name_table_clear(&list.files);
    *out = list.items;
    *n = list.n;
    return status;
}

const struct phema_format dcp_format = {
    .info = {.name = "dcp",
             .extensions = (const struct phema_extension[]){{".distcp", 0}, {NULL, 0}},
             .can_be_template = true,
             .is_directory = true},
    .probe = probe,
    .open = open_distributed,
    .list_records = list_records,
};
