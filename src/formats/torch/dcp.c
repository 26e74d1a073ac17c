// SPDX-License-Identifier: Apache-2.0
/* dcp.c - Distributed checkpoints: .metadata and its archives (docs/formats/dcp.md; torch/
 * distributed/checkpoint/metadata.py, filesystem.py). The pickle .metadata lists the chunks of each
 * tensor. Each chunk is an archive of torch.save inside a file of the directory. Every statement of
 * .metadata is checked against the archives. Its objects are records, identified by their class and
 * read by the names of their fields. A field that is None by default may be missing. */
#include <stdlib.h>
#include <string.h>

#include "chunks.h"
#include "format.h"
#include "torch/torch.h"

/* Length of a tensor's name. Names are looked up once for each chunk. */
#define MAX_NAME_BYTES 4096u

#define METADATA_CLASS(name)   "torch.distributed.checkpoint.metadata." name
#define FILESYSTEM_CLASS(name) "torch.distributed.checkpoint.filesystem." name
#define OLD_PROPERTIES         "torch.distributed._shard.sharded_tensor.metadata.TensorProperties"

/* An entry of storage_data. */
struct stored {
    size_t number;                    /* of the value */
    const struct pickle_node *offset; /* start of the chunk: a tuple of sizes */
    const struct pickle_node *info;   /* record */
    bool is_claimed;
};

/* A distributed checkpoint while its files are read. */
struct distributed {
    struct phema_checkpoint *checkpoint;
    const struct phema_checkpoint_options *options;
    struct phema_arena nodes;         /* of .metadata */
    const struct pickle_node *values; /* dict from names to records: the state dict */
    struct name_table names;          /* values are numbers in it */
    struct stored *stored;            /* sorted by number, then by offset */
    size_t n_stored, stored_capacity;
    uint64_t chunks_left; /* bound for lists that are shared: one chunk for each byte of the file */
    struct name_table files; /* by path; values are indices in the checkpoint's files */
};

/* Bytes [offset, offset + size) of a file. */
struct place {
    struct phema_span path;
    uint64_t offset, size;
};

static bool probe(struct phema_span content)
{
    /* the class of the root comes first, after at most 13 bytes of protocol, frame and opcode */
    static const char module[] = "torch.distributed.checkpoint.metadata";
    size_t size = content.size < 64 ? content.size : 64;
    return size >= 2 && content.data[0] == 0x80 &&
           memmem(content.data, size, module, sizeof(module) - 1);
}

/* ---- Nodes ---- */

/* A torch.Size. */
static bool is_size(const struct pickle_node *node)
{
    return pickle_holds_sizes(node) && node->items.n <= PHEMA_MAX_RANK;
}

static int compare_sizes(const struct pickle_node *a, const struct pickle_node *b)
{
    for (size_t i = 0; i < a->items.n && i < b->items.n; i++) {
        int64_t left = a->items.at[i]->integer;
        int64_t right = b->items.at[i]->integer;
        if (left != right)
            return left < right ? -1 : 1;
    }
    return (a->items.n > b->items.n) - (a->items.n < b->items.n);
}

static enum phema_status fail_expected(struct phema_error *err, const char *wanted)
{
    return phema_fail(err, PHEMA_ERR_FILE, "expected %s", wanted);
}

/* ---- The state dict ---- */

static enum phema_status index_names(struct distributed *distributed, struct phema_error *err)
{
    const struct pickle_items *items = &distributed->values->items;
    for (size_t i = 0; i + 1 < items->n; i += 2) {
        const struct pickle_node *key = items->at[i];
        if (key->kind != PICKLE_TEXT || key->span.size > MAX_NAME_BYTES)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "state_dict_metadata: expected names of at most %u bytes as keys",
                              MAX_NAME_BYTES);
        if (name_table_add(&distributed->names, (const char *)key->span.data, key->span.size,
                           i / 2) != NAME_ADDED)
            return phema_fail_memory(err); /* equal keys are one: the pickle reader merges them */
    }
    return PHEMA_OK;
}

static struct phema_span name_of(const struct distributed *distributed, size_t number)
{
    return distributed->values->items.at[2 * number]->span;
}

static const struct pickle_node *value_of(const struct distributed *distributed, size_t number)
{
    return distributed->values->items.at[2 * number + 1];
}

/* The other values are pickled objects. */
static bool is_tensor(const struct distributed *distributed, size_t number)
{
    return !pickle_is_record(value_of(distributed, number), METADATA_CLASS("BytesStorageMetadata"));
}

/* ---- Storage ---- */

/* Entries of other objects are ignored, and so are entries of unlisted names, which no reader can
 * reach. */
static enum phema_status note_stored(struct distributed *distributed, const struct pickle_node *key,
                                     const struct pickle_node *info, struct phema_error *err)
{
    if (!pickle_is_record(key, METADATA_CLASS("MetadataIndex")))
        return fail_expected(err, "a MetadataIndex as key");
    const struct pickle_node *name = pickle_field(key, "fqn");
    if (!pickle_is(name, PICKLE_TEXT) || name->span.size > MAX_NAME_BYTES)
        return fail_expected(err, "a MetadataIndex with the name of a tensor as fqn");
    size_t number = 0;
    if (!name_table_find(&number, &distributed->names, (const char *)name->span.data,
                         name->span.size) ||
        !is_tensor(distributed, number))
        return PHEMA_OK;

    const struct pickle_node *offset = pickle_field(key, "offset");
    enum phema_status status = PHEMA_OK;
    if (!is_size(offset))
        status = fail_expected(err, "a MetadataIndex with a torch.Size as offset");
    else if (!pickle_is_record(info, FILESYSTEM_CLASS("_StorageInfo")))
        status = fail_expected(err, "a _StorageInfo for each piece");
    else if (!phema_array_grow(&distributed->stored, &distributed->stored_capacity,
                               distributed->n_stored, sizeof(*distributed->stored)))
        return phema_fail_memory(err);
    if (status)
        return fail_in_tensor(err, status, (const char *)name->span.data, name->span.size);
    distributed->stored[distributed->n_stored++] = (struct stored){number, offset, info, false};
    return PHEMA_OK;
}

static int compare_stored(const void *a, const void *b)
{
    const struct stored *left = a, *right = b;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    return compare_sizes(left->offset, right->offset);
}

static enum phema_status index_storage(struct distributed *distributed,
                                       const struct pickle_node *storage, struct phema_error *err)
{
    for (size_t i = 0; i + 1 < storage->items.n; i += 2) {
        enum phema_status status =
            note_stored(distributed, storage->items.at[i], storage->items.at[i + 1], err);
        if (status)
            return phema_fail_in(err, status, "storage_data");
    }
    if (distributed->n_stored)
        qsort(distributed->stored, distributed->n_stored, sizeof(*distributed->stored),
              compare_stored);
    for (size_t i = 1; i < distributed->n_stored; i++) {
        if (compare_stored(&distributed->stored[i - 1], &distributed->stored[i]) != 0)
            continue;
        struct phema_span name = name_of(distributed, distributed->stored[i].number);
        (void)fail_expected(err, "each piece once in storage_data, found one twice");
        return fail_in_tensor(err, PHEMA_ERR_FILE, (const char *)name.data, name.size);
    }
    return PHEMA_OK;
}

/* NULL: no such entry. */
static struct stored *find_stored(const struct distributed *distributed, size_t number,
                                  const struct pickle_node *offset)
{
    const struct stored wanted = {number, offset, NULL, false};
    return distributed->n_stored ? bsearch(&wanted, distributed->stored, distributed->n_stored,
                                           sizeof(wanted), compare_stored)
                                 : NULL;
}

static bool is_none_or_empty(const struct pickle_node *node)
{
    return !node || node->kind == PICKLE_NONE ||
           ((node->kind == PICKLE_LIST || node->kind == PICKLE_TUPLE) && node->items.n == 0);
}

static enum phema_status read_place(struct place *place, const struct pickle_node *info,
                                    struct phema_error *err)
{
    if (!is_none_or_empty(pickle_field(info, "transform_descriptors")))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is stored compressed or otherwise transformed, which is not read; save "
                          "it without extensions");
    const struct pickle_node *path = pickle_field(info, "relative_path");
    const struct pickle_node *offset = pickle_field(info, "offset");
    const struct pickle_node *length = pickle_field(info, "length");
    if (!pickle_is(path, PICKLE_TEXT) || path->span.size > MAX_NAME_BYTES ||
        !pickle_is(offset, PICKLE_INT) || !pickle_is(length, PICKLE_INT) || offset->integer < 0 ||
        length->integer < 0)
        return fail_expected(err, "a _StorageInfo with relative_path, and offset and length of 0 "
                                  "or more");
    *place = (struct place){path->span, (uint64_t)offset->integer, (uint64_t)length->integer};
    return PHEMA_OK;
}

static enum phema_status read_metadata(struct distributed *distributed, struct phema_span content,
                                       struct phema_error *err)
{
    const struct pickle_host host = {.options = distributed->options, .is_distributed = true};
    struct pickle_node *root = NULL;
    size_t used = 0;
    enum phema_status status = pickle_read(&root, &used, content, &distributed->nodes, &host, err);
    if (status)
        return status;
    if (used != content.size)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu bytes behind its end, expected none",
                          content.size - used);
    if (!pickle_is_record(root, METADATA_CLASS("Metadata")))
        return fail_expected(err, "the Metadata of torch.distributed.checkpoint as its object");
    distributed->values = pickle_field(root, "state_dict_metadata");
    const struct pickle_node *storage = pickle_field(root, "storage_data");
    if (!pickle_is(distributed->values, PICKLE_DICT) || !pickle_is(storage, PICKLE_DICT))
        return fail_expected(err, "Metadata with dicts as state_dict_metadata and storage_data");
    distributed->chunks_left = content.size;
    status = index_names(distributed, err);
    return status ? status : index_storage(distributed, storage, err);
}

/* ---- Tensors ---- */

/* The dtype is the first item of the tuple that is the state of TensorProperties. */
static const struct pickle_node *dtype_of(const struct pickle_node *properties)
{
    if (!pickle_is_record(properties, METADATA_CLASS("TensorProperties")) &&
        !pickle_is_record(properties, OLD_PROPERTIES))
        return NULL;
    const struct pickle_node *state = properties->record->state;
    return pickle_is(state, PICKLE_TUPLE) && state->items.n ? state->items.at[0] : NULL;
}

static enum phema_status read_dtype(struct phema_tensor *tensor, const struct pickle_node *value,
                                    struct phema_error *err)
{
    const struct pickle_node *dtype = dtype_of(pickle_field(value, "properties"));
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

static enum phema_status read_shape(struct phema_tensor *tensor, const struct pickle_node *size,
                                    struct phema_arena *arena, struct phema_error *err)
{
    if (!is_size(size))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected as its size a torch.Size of at most %d dimensions",
                          PHEMA_MAX_RANK);
    uint64_t *shape = phema_arena_array(arena, size->items.n, sizeof(*shape));
    if (!shape)
        return phema_fail_memory(err);
    bool is_empty = false;
    uint64_t n_elems = 1;
    for (size_t d = 0; d < size->items.n; d++) {
        shape[d] = (uint64_t)size->items.at[d]->integer;
        is_empty |= shape[d] == 0;
    }
    bool fits = true;
    for (size_t d = 0; d < size->items.n && !is_empty && fits; d++)
        fits = phema_size_mul(&n_elems, n_elems, shape[d]);
    uint64_t bits = 0;
    if (!fits || !phema_size_mul(&bits, n_elems, 128))
        return phema_fail(err, PHEMA_ERR_FILE, "the size of the tensor overflows");
    tensor->shape = shape;
    tensor->rank = (unsigned)size->items.n;
    tensor->n_elems = is_empty ? 0 : n_elems;
    tensor->size_bytes = tensor->n_elems * (phema_dtype_bits(tensor->dtype) / 8);
    return PHEMA_OK;
}

static enum phema_status check_chunks(struct distributed *distributed,
                                      const struct pickle_node *chunks, struct phema_error *err)
{
    if (!pickle_is(chunks, PICKLE_LIST))
        return fail_expected(err, "a list of chunks");
    if (chunks->items.n > MAX_CHUNKS)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu pieces, expected %u at most",
                          chunks->items.n, MAX_CHUNKS);
    if (chunks->items.n > distributed->chunks_left)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the tensors share lists of pieces, as no real metadata do");
    distributed->chunks_left -= chunks->items.n;
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
static const struct phema_file *find_archive(struct place *place, struct distributed *distributed,
                                             size_t i)
{
    struct phema_error ignored;
    size_t file = 0;
    if (read_place(place, distributed->stored[i].info, &ignored) ||
        find_file(&file, distributed, place->path, &ignored))
        return NULL;
    return phema_checkpoint_file(distributed->checkpoint, file);
}

static bool is_archive_cached(struct distributed *distributed, size_t i)
{
    struct place place = {0};
    const struct phema_file *file = find_archive(&place, distributed, i);
    return !file || phema_file_is_cached_at(file, place.offset);
}

static void prefetch_archive(struct distributed *distributed, size_t i)
{
    struct place place = {0};
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
    size_t n = distributed->n_stored;
    struct place place = {0};
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
                                    const struct place *place, struct phema_error *err)
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

/* Reads start and size of a chunk into the arena. */
static enum phema_status read_bounds(struct phema_chunk *chunk, const struct pickle_node *node,
                                     size_t rank, struct phema_arena *arena,
                                     struct phema_error *err)
{
    uint64_t *start = phema_arena_array(arena, 2 * rank, sizeof(*start));
    if (!start)
        return phema_fail_memory(err);
    uint64_t *size = start + rank;
    if (!pickle_is_record(node, METADATA_CLASS("ChunkStorageMetadata")))
        return fail_expected(err, "ChunkStorageMetadata as chunks");
    const struct pickle_node *offsets = pickle_field(node, "offsets");
    const struct pickle_node *sizes = pickle_field(node, "sizes");
    if (!is_size(offsets) || !is_size(sizes) || offsets->items.n != rank || sizes->items.n != rank)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected offsets and sizes of each piece as torch.Size of %zu "
                          "dimensions",
                          rank);
    for (size_t d = 0; d < rank; d++) {
        start[d] = (uint64_t)offsets->items.at[d]->integer;
        size[d] = (uint64_t)sizes->items.at[d]->integer;
    }
    chunk->start = start;
    chunk->size = size;
    return PHEMA_OK;
}

/* Finds the place of a chunk in storage_data. No place: an empty chunk that equals an earlier one,
 * as ranks without a share have them. */
static enum phema_status claim_place(struct place *place, bool *has_place,
                                     struct distributed *distributed, size_t number,
                                     const struct pickle_node *offsets,
                                     const struct phema_chunk *chunk, struct phema_error *err)
{
    unsigned rank = (unsigned)offsets->items.n;
    struct stored *stored = find_stored(distributed, number, offsets);
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
    return read_place(place, stored->info, err);
}

/* is_used: out, false for an empty chunk that equals an earlier one */
static enum phema_status read_chunk(struct phema_chunk *chunk, bool *is_used,
                                    struct distributed *distributed,
                                    const struct phema_tensor *tensor, struct phema_arena *arena,
                                    size_t number, const struct pickle_node *node,
                                    struct phema_error *err)
{
    struct place place = {0};
    enum phema_status status = read_bounds(chunk, node, tensor->rank, arena, err);
    if (status)
        return status;
    status = claim_place(&place, is_used, distributed, number, pickle_field(node, "offsets"), chunk,
                         err);
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
    const struct pickle_node *value = value_of(distributed, number);
    if (!pickle_is_record(value, METADATA_CLASS("TensorStorageMetadata")))
        return fail_expected(err, "TensorStorageMetadata or BytesStorageMetadata");
    const struct pickle_node *chunks = pickle_field(value, "chunks");
    struct phema_span name = name_of(distributed, number), part = distributed->checkpoint->part;
    struct phema_tensor tensor = {.name_size = part.size + name.size};
    enum phema_status status = read_dtype(&tensor, value, err);
    if (status)
        return status;
    status = read_shape(&tensor, pickle_field(value, "size"), arena, err);
    if (status)
        return status;
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
    status = read_chunks(&tensor, distributed, number, &chunks->items, err);
    return status ? status : checkpoint_add_tensor(distributed->checkpoint, &tensor, err);
}

static enum phema_status read_tensors(struct distributed *distributed, struct phema_error *err)
{
    for (size_t i = 0; i < distributed->values->items.n / 2; i++) {
        struct phema_span name = name_of(distributed, i);
        enum phema_status status =
            is_tensor(distributed, i) ? read_tensor(distributed, i, err) : PHEMA_OK;
        if (status)
            return fail_in_tensor(err, status, (const char *)name.data, name.size);
    }
    return PHEMA_OK;
}

static void clear(struct distributed *distributed)
{
    name_table_clear(&distributed->files);
    name_table_clear(&distributed->names);
    free(distributed->stored);
    phema_arena_clear(&distributed->nodes);
}

static enum phema_status open_distributed(struct phema_checkpoint *checkpoint,
                                          const struct phema_checkpoint_options *options,
                                          struct phema_error *err)
{
    struct distributed distributed = {.checkpoint = checkpoint, .options = options};
    enum phema_status status =
        read_metadata(&distributed, checkpoint_content(checkpoint, checkpoint->base), err);
    if (!status) {
        prefetch_archives(&distributed);
        status = read_tensors(&distributed, err);
    }
    clear(&distributed);
    return status;
}

/* ---- Records ---- */

/* Names of the files that hold pieces, to their indices. */
static enum phema_status index_files(struct distributed *distributed, struct phema_error *err)
{
    for (size_t f = 1; f < distributed->checkpoint->n_files; f++) {
        const char *name = phema_checkpoint_file_label(distributed->checkpoint, f);
        if (name_table_add(&distributed->files, name, strlen(name), f) != NAME_ADDED)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

/* Of the zip of one piece. Places in files that no piece uses are ignored. */
static enum phema_status add_records(struct phema_record **records, size_t *n, size_t *capacity,
                                     const struct distributed *distributed,
                                     const struct stored *stored, struct phema_error *err)
{
    struct place place = {0};
    size_t file = 0;
    struct phema_span archive;
    enum phema_status status = read_place(&place, stored->info, err);
    if (status)
        return status;
    if (!name_table_find(&file, &distributed->files, (const char *)place.path.data,
                         place.path.size) ||
        !phema_span_part(&archive, checkpoint_content(distributed->checkpoint, file), place.offset,
                         place.size))
        return PHEMA_OK;
    struct zip_archive zip;
    status = zip_open(&zip, archive, TORCH_ONE_TENSOR_RECORDS, err);
    if (status)
        return status;
    status = torch_zip_add_records(records, n, capacity, &zip, file, place.offset, err);
    zip_close(&zip);
    return status;
}

static enum phema_status list_records(struct phema_record **out, size_t *n,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    void *constant = NULL; /* to which nothing is added */
    memcpy(&constant, &checkpoint, sizeof(constant));
    struct distributed distributed = {.checkpoint = constant};
    size_t capacity = 0;
    enum phema_status status = read_metadata(&distributed, checkpoint_content(checkpoint, 0), err);
    if (!status)
        status = index_files(&distributed, err);
    for (size_t i = 0; i < distributed.n_stored && !status; i++)
        status = add_records(out, n, &capacity, &distributed, &distributed.stored[i], err);
    clear(&distributed);
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
