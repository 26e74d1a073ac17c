// SPDX-License-Identifier: Apache-2.0
/* dcp.c - Distributed checkpoints (docs/formats/dcp.md). The pickle .metadata lists the tensors and
 * their chunks (torch/distributed/checkpoint/metadata.py, filesystem.py). Each chunk is an archive
 * of torch.save inside a file of the directory. Every statement of .metadata is checked against the
 * archives. */
#include <string.h>

#include "assembly.h"
#include "format.h"
#include "torch/dcp_metadata.h"

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

/* ---- Archives ---- */

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

/* The file and the place of an archive that storage_data names; NULL: find_data says why. */
static const struct phema_file *find_archive(struct dcp_place *place,
                                             struct distributed *distributed, size_t i)
{
    struct phema_error ignored;
    size_t file = 0;
    if (dcp_read_place(place, &distributed->metadata.stored[i], &ignored) ||
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
    for (size_t i = 0; i < n; i++) {
        const struct phema_file *file = find_archive(&place, distributed, i);
        uint64_t edge = place.size < ARCHIVE_EDGE ? place.size : ARCHIVE_EDGE;
        if (!file)
            continue;
        phema_file_prefetch(file, place.offset, edge);
        phema_file_prefetch(file, place.offset + place.size - edge, edge);
    }
}

/* ---- Pieces ---- */

/* Finds the place of a piece in storage_data. No place: an empty piece that equals an earlier one,
 * as ranks without a share have them. */
static enum phema_status claim_place(struct dcp_place *place, bool *has_place,
                                     struct dcp_metadata *metadata, size_t number,
                                     const struct pickle_node *offset,
                                     const struct phema_chunk *piece, unsigned rank,
                                     struct phema_error *err)
{
    struct dcp_stored *stored = dcp_find_stored(metadata, number, offset);
    struct phema_name_buffer shown;
    if (!stored)
        return phema_fail(err, PHEMA_ERR_FILE, "storage_data does not say where the piece at %s is",
                          format_index(&shown, piece->start, rank));
    bool is_empty = false;
    for (unsigned d = 0; d < rank; d++)
        is_empty |= piece->size[d] == 0;
    *has_place = !stored->is_claimed;
    if (stored->is_claimed && is_empty)
        return PHEMA_OK;
    if (stored->is_claimed)
        return phema_fail(err, PHEMA_ERR_FILE, "two pieces begin at %s: they overlap",
                          format_index(&shown, piece->start, rank));
    stored->is_claimed = true;
    return dcp_read_place(place, stored, err);
}

static enum phema_status check_archived(const struct phema_tensor *archived,
                                        const struct phema_tensor *tensor,
                                        const struct phema_chunk *piece, struct phema_error *err)
{
    if (archived->dtype != tensor->dtype)
        return phema_fail(err, PHEMA_ERR_FILE, "the tensor in the archive is %s, expected %s",
                          phema_dtype_name(archived->dtype), phema_dtype_name(tensor->dtype));
    if (archived->rank == tensor->rank &&
        are_equal_sizes(archived->shape, piece->size, tensor->rank))
        return PHEMA_OK;
    struct phema_name_buffer found, wanted;
    return phema_fail(err, PHEMA_ERR_FILE, "the tensor in the archive has shape %s, expected %s",
                      format_index(&found, archived->shape, archived->rank),
                      format_index(&wanted, piece->size, tensor->rank));
}

/* Finds the data of a piece whose start and size are known. */
static enum phema_status find_data(struct phema_chunk *piece, struct distributed *distributed,
                                   const struct phema_tensor *tensor, const struct dcp_place *place,
                                   struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = distributed->checkpoint;
    enum phema_status status = find_file(&piece->file, distributed, place->path, err);
    if (status)
        return status;
    struct phema_span archive, content = checkpoint_content(checkpoint, piece->file);
    if (!phema_span_part(&archive, content, place->offset, place->size))
        return phema_fail(err, PHEMA_ERR_FILE, "expected %llu bytes at byte %llu, the file has %zu",
                          (unsigned long long)place->size, (unsigned long long)place->offset,
                          content.size);
    struct phema_tensor archived = {0};
    status = torch_zip_read_tensor(&archived, &checkpoint->arena, archive, piece->file,
                                   place->offset, distributed->options, err);
    if (!status)
        status = check_archived(&archived, tensor, piece, err);
    if (status)
        return phema_fail_in(err, status, "byte %llu", (unsigned long long)place->offset);
    piece->offset = archived.offset;
    piece->stride = archived.stride;
    return PHEMA_OK;
}

/* is_used: out, false for an empty piece that equals an earlier one */
static enum phema_status read_piece(struct phema_chunk *piece, bool *is_used,
                                    struct distributed *distributed,
                                    const struct phema_tensor *tensor, size_t number,
                                    const struct pickle_node *node, struct phema_error *err)
{
    if (!pickle_is_record(node, DCP_METADATA_CLASS("ChunkStorageMetadata")))
        return fail_expected(err, "ChunkStorageMetadata as chunks");
    struct phema_arena *arena = &distributed->checkpoint->arena;
    const struct pickle_node *offsets = pickle_field(node, "offsets");
    const struct pickle_node *sizes = pickle_field(node, "sizes");
    unsigned rank = tensor->rank;
    if (!dcp_is_size(offsets) || !dcp_is_size(sizes) || offsets->items.n != rank ||
        sizes->items.n != rank)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected offsets and sizes of each piece as torch.Size of %u "
                          "dimensions",
                          rank);
    piece->start = pickle_copy_sizes(arena, offsets);
    piece->size = pickle_copy_sizes(arena, sizes);
    if (!piece->start || !piece->size)
        return phema_fail_memory(err);
    struct dcp_place place = {0};
    enum phema_status status =
        claim_place(&place, is_used, &distributed->metadata, number, offsets, piece, rank, err);
    if (!status)
        status = assembly_check_inside(piece, tensor->shape, rank, err);
    if (status || !*is_used)
        return status;
    status = find_data(piece, distributed, tensor, &place, err);
    struct phema_name_buffer shown;
    const char *path = (const char *)place.path.data;
    return status ? phema_fail_in(err, status, "file '%s'",
                                  phema_name_escape(&shown, path, place.path.size))
                  : PHEMA_OK;
}

static enum phema_status read_pieces(struct phema_tensor *tensor, struct distributed *distributed,
                                     size_t number, const struct pickle_items *list,
                                     struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = distributed->checkpoint;
    struct phema_chunk *pieces = phema_arena_array(&checkpoint->arena, list->n, sizeof(*pieces));
    if (!pieces)
        return phema_fail_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        bool is_used = false;
        enum phema_status status =
            read_piece(&pieces[n], &is_used, distributed, tensor, number, list->at[i], err);
        if (status)
            return status;
        n += is_used;
    }
    return assembly_join(tensor, checkpoint, pieces, n, err);
}

/* ---- Tensors ---- */

/* The dtype is the first item of the tuple that is the state of TensorProperties. */
static enum phema_status read_dtype(struct phema_tensor *tensor,
                                    const struct pickle_node *properties, struct phema_error *err)
{
    bool is_known = pickle_is_record(properties, DCP_METADATA_CLASS("TensorProperties")) ||
                    pickle_is_record(properties, DCP_OLD_PROPERTIES);
    const struct pickle_node *state = is_known ? properties->record->state : NULL;
    const struct pickle_node *dtype =
        pickle_is(state, PICKLE_TUPLE) && state->items.n ? state->items.at[0] : NULL;
    if (!pickle_is(dtype, PICKLE_GLOBAL))
        return fail_expected(err, "TensorProperties with a dtype");
    if (dtype->global->action == ACTION_PACKED_DTYPE)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is of packed float4 elements, which are not read here");
    if (dtype->global->action != ACTION_DTYPE)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a dtype of torch, found '%s'",
                          dtype->global->name);
    tensor->dtype = dtype->global->dtype;
    return PHEMA_OK;
}

static enum phema_status read_tensor(struct distributed *distributed, size_t number,
                                     struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = distributed->checkpoint;
    const struct pickle_node *value = distributed->metadata.values->items.at[2 * number + 1];
    if (!pickle_is_record(value, DCP_METADATA_CLASS("TensorStorageMetadata")))
        return fail_expected(err, "TensorStorageMetadata or BytesStorageMetadata");
    struct phema_tensor tensor = {0};
    enum phema_status status = read_dtype(&tensor, pickle_field(value, "properties"), err);
    if (status)
        return status;
    const struct pickle_node *size = pickle_field(value, "size");
    if (!dcp_is_size(size))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected as its size a torch.Size of at most %d dimensions",
                          PHEMA_MAX_RANK);
    tensor.rank = (unsigned)size->items.n;
    tensor.shape = pickle_copy_sizes(&checkpoint->arena, size);
    status = tensor.shape ? assembly_set_size(&tensor, err) : phema_fail_memory(err);
    if (status)
        return status;
    const struct pickle_node *list = pickle_field(value, "chunks");
    if (!pickle_is(list, PICKLE_LIST))
        return fail_expected(err, "a list of chunks");
    if (list->items.n > MAX_CHUNKS)
        return phema_fail(err, PHEMA_ERR_FILE, "has %u pieces, expected %u at most", list->items.n,
                          MAX_CHUNKS);
    if (list->items.n > distributed->chunks_left)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the tensors share lists of pieces, as no real metadata do");
    distributed->chunks_left -= list->items.n;
    struct phema_span name = dcp_name_of(&distributed->metadata, number);
    if (!set_part_name(&tensor, &checkpoint->arena, checkpoint->part, name))
        return phema_fail_memory(err);
    status = read_pieces(&tensor, distributed, number, &list->items, err);
    return status ? status : checkpoint_add_tensor(checkpoint, &tensor, err);
}

static enum phema_status read_tensors(struct distributed *distributed, struct phema_error *err)
{
    const struct dcp_metadata *metadata = &distributed->metadata;
    for (size_t i = 0; i < metadata->values->items.n / 2; i++) {
        struct phema_span name = dcp_name_of(metadata, i);
        enum phema_status status =
            dcp_is_tensor(metadata, i) ? read_tensor(distributed, i, err) : PHEMA_OK;
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
        !dcp_read_place(&place, counter, &ignored) &&
        !find_file(&file, distributed, place.path, &ignored) &&
        phema_span_part(&archive, checkpoint_content(distributed->checkpoint, file), place.offset,
                        place.size))
        (void)!torch_zip_list_values(distributed->checkpoint, DCP_COUNTER_NAME, archive, file,
                                     place.offset, distributed->options, &ignored);
}

static enum phema_status keep_root_key(struct distributed *distributed, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = distributed->checkpoint;
    struct phema_span key = dcp_root_key(&distributed->metadata);
    if (!key.size || checkpoint->part.size)
        return PHEMA_OK;
    checkpoint->root_key = phema_arena_copy(&checkpoint->arena, (const char *)key.data, key.size);
    return checkpoint->root_key ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status open_distributed(struct phema_checkpoint *checkpoint,
                                          const struct phema_checkpoint_options *options,
                                          struct phema_error *err)
{
    struct distributed distributed = {.checkpoint = checkpoint, .options = options};
    struct phema_span content = checkpoint_content(checkpoint, checkpoint->base);
    checkpoint->files[checkpoint->base].is_metadata = true;
    distributed.chunks_left = content.size;
    enum phema_status status = dcp_read_metadata(&distributed.metadata, content, options, err);
    if (!status) {
        prefetch_archives(&distributed);
        status = read_tensors(&distributed, err);
    }
    if (!status)
        status = keep_root_key(&distributed, err);
    if (!status)
        read_counter(&distributed);
    name_table_clear(&distributed.files);
    dcp_clear_metadata(&distributed.metadata);
    return status;
}

/* ---- Records ---- */

/* The zips of all pieces while they are listed. */
struct record_list {
    const struct phema_checkpoint *checkpoint;
    struct name_table files; /* by label; values are indices in the checkpoint's files */
    struct torch_records records;
};

/* Of the zip of one piece. Places in files that no piece uses are ignored. */
static enum phema_status add_records(struct record_list *list, const char *metadata_label,
                                     const struct dcp_stored *stored, struct phema_error *err)
{
    struct dcp_place place = {0};
    size_t file = 0;
    struct phema_span archive;
    enum phema_status status = dcp_read_place(&place, stored, err);
    if (status)
        return status;
    const char *slash = strrchr(metadata_label, '/');
    struct phema_strbuf label = {0}; /* of the file that the path in .metadata names */
    phema_strbuf_append(&label, metadata_label, slash ? (size_t)(slash + 1 - metadata_label) : 0);
    phema_strbuf_append(&label, (const char *)place.path.data, place.path.size);
    bool is_used = !label.is_failed && name_table_find(&file, &list->files, label.data, label.size);
    phema_strbuf_clear(&label);
    if (!is_used || !phema_span_part(&archive, checkpoint_content(list->checkpoint, file),
                                     place.offset, place.size))
        return PHEMA_OK;
    return torch_zip_add_records(&list->records, archive, file, place.offset, true, err);
}

static enum phema_status add_part_records(struct record_list *list, size_t metadata_file,
                                          struct phema_error *err)
{
    struct dcp_metadata metadata = {0};
    const char *label = phema_checkpoint_file_label(list->checkpoint, metadata_file);
    enum phema_status status = dcp_read_metadata(
        &metadata, checkpoint_content(list->checkpoint, metadata_file), NULL, err);
    for (size_t i = 0; i < metadata.n_stored && !status; i++)
        status = add_records(list, label, &metadata.stored[i], err);
    dcp_clear_metadata(&metadata);
    return status;
}

static enum phema_status list_records(struct phema_record **out, size_t *n,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    struct record_list list = {.checkpoint = checkpoint};
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < checkpoint->n_files && !status; f++) {
        const char *label = phema_checkpoint_file_label(checkpoint, f);
        if (!checkpoint->files[f].is_metadata &&
            name_table_add(&list.files, label, strlen(label), f) != NAME_ADDED)
            status = phema_fail_memory(err);
    }
    for (size_t f = 0; f < checkpoint->n_files && !status; f++)
        if (checkpoint->files[f].is_metadata)
            status = add_part_records(&list, f, err);
    name_table_clear(&list.files);
    *out = list.records.items;
    *n = list.records.n;
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
