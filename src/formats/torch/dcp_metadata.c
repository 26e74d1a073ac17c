// SPDX-License-Identifier: Apache-2.0
/* dcp_metadata.c - Decoding of .metadata into names, chunks and places (torch/distributed/
 * checkpoint/metadata.py, filesystem.py). The objects are records, identified by their class and
 * read by the names of their fields. A field that is None by default may be missing. */
#include "torch/dcp_metadata.h"

#include <stdlib.h>
#include <string.h>

#include "chunks.h"
#include "format.h"
#include "pickle/machine.h"

/* torch's classes have at most six fields. Repeated look-ups in a dict of thousands would take time
 * out of proportion to the size of the file. */
#define MAX_FIELDS 64u
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
    bool is_taken;
};

struct dcp_metadata {
    struct phema_arena nodes;
    const struct pickle_node *values; /* dict from names to records */
    struct name_table names;          /* values are numbers in it */
    struct stored *stored;            /* sorted by number, then by offset */
    size_t n_stored, stored_capacity;
    uint64_t chunks_left; /* bound for lists that are shared: one chunk for each byte of the file */
};

/* ---- Nodes ---- */

static bool is_record(const struct pickle_node *node, const char *class)
{
    return node && node->kind == PICKLE_RECORD && strcmp(node->record->class->name, class) == 0;
}

/* The value of a field; NULL when it is missing. */
static struct pickle_node *field(const struct pickle_node *record, const char *name)
{
    const struct pickle_node *state = record->record->state;
    size_t size = strlen(name);
    if (!state || state->kind != PICKLE_DICT || state->items.n > (size_t)2 * MAX_FIELDS)
        return NULL;
    for (size_t i = 0; i + 1 < state->items.n; i += 2) {
        const struct pickle_node *key = state->items.at[i];
        if (key->kind == PICKLE_TEXT && key->span.size == size &&
            memcmp(key->span.data, name, size) == 0)
            return state->items.at[i + 1];
    }
    return NULL;
}

static bool is_kind(const struct pickle_node *node, enum pickle_kind kind)
{
    return node && node->kind == kind;
}

/* A torch.Size. */
static bool are_sizes(const struct pickle_node *tuple)
{
    if (!is_kind(tuple, PICKLE_TUPLE) || tuple->items.n > PHEMA_MAX_RANK)
        return false;
    for (size_t i = 0; i < tuple->items.n; i++)
        if (!is_kind(tuple->items.at[i], PICKLE_INT) || tuple->items.at[i]->integer < 0)
            return false;
    return true;
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

static enum phema_status index_names(struct dcp_metadata *metadata, struct phema_error *err)
{
    const struct pickle_items *items = &metadata->values->items;
    for (size_t i = 0; i + 1 < items->n; i += 2) {
        const struct pickle_node *key = items->at[i];
        if (key->kind != PICKLE_TEXT || key->span.size > MAX_NAME_BYTES)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "state_dict_metadata: expected names of at most %u bytes as keys",
                              MAX_NAME_BYTES);
        const char *name = (const char *)key->span.data;
        switch (name_table_add(&metadata->names, name, key->span.size, i / 2)) {
        case NAME_ADDED:
            break;
        case NAME_EXISTS:
            (void)fail_expected(err, "each name once, found it twice");
            return fail_in_tensor(err, PHEMA_ERR_FILE, name, key->span.size);
        case NAME_NO_MEMORY:
            return phema_fail_memory(err);
        }
    }
    return PHEMA_OK;
}

size_t dcp_n_values(const struct dcp_metadata *metadata)
{
    return metadata->values->items.n / 2;
}

struct phema_span dcp_name(const struct dcp_metadata *metadata, size_t number)
{
    return metadata->values->items.at[2 * number]->span;
}

static const struct pickle_node *value_of(const struct dcp_metadata *metadata, size_t number)
{
    return metadata->values->items.at[2 * number + 1];
}

bool dcp_is_tensor(const struct dcp_metadata *metadata, size_t number)
{
    return !is_record(value_of(metadata, number), METADATA_CLASS("BytesStorageMetadata"));
}

/* ---- Storage ---- */

/* Entries of other objects are ignored, and so are entries of unlisted names, which no reader can
 * reach. */
static enum phema_status note_stored(struct dcp_metadata *metadata, const struct pickle_node *key,
                                     const struct pickle_node *info, struct phema_error *err)
{
    if (!is_record(key, METADATA_CLASS("MetadataIndex")))
        return fail_expected(err, "a MetadataIndex as key");
    const struct pickle_node *name = field(key, "fqn");
    if (!is_kind(name, PICKLE_TEXT) || name->span.size > MAX_NAME_BYTES)
        return fail_expected(err, "a MetadataIndex with the name of a tensor as fqn");
    size_t number = 0;
    if (!name_table_find(&number, &metadata->names, (const char *)name->span.data,
                         name->span.size) ||
        !dcp_is_tensor(metadata, number))
        return PHEMA_OK;

    const struct pickle_node *offset = field(key, "offset");
    enum phema_status status = PHEMA_OK;
    if (!are_sizes(offset))
        status = fail_expected(err, "a MetadataIndex with a torch.Size as offset");
    else if (!is_record(info, FILESYSTEM_CLASS("_StorageInfo")))
        status = fail_expected(err, "a _StorageInfo for each piece");
    else if (!phema_array_grow(&metadata->stored, &metadata->stored_capacity, metadata->n_stored,
                               sizeof(*metadata->stored)))
        return phema_fail_memory(err);
    if (status)
        return fail_in_tensor(err, status, (const char *)name->span.data, name->span.size);
    metadata->stored[metadata->n_stored++] = (struct stored){number, offset, info, false};
    return PHEMA_OK;
}

static int compare_stored(const void *a, const void *b)
{
    const struct stored *left = a, *right = b;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    return compare_sizes(left->offset, right->offset);
}

static enum phema_status index_storage(struct dcp_metadata *metadata,
                                       const struct pickle_node *storage, struct phema_error *err)
{
    for (size_t i = 0; i + 1 < storage->items.n; i += 2) {
        enum phema_status status =
            note_stored(metadata, storage->items.at[i], storage->items.at[i + 1], err);
        if (status)
            return phema_fail_in(err, status, "storage_data");
    }
    if (metadata->n_stored)
        qsort(metadata->stored, metadata->n_stored, sizeof(*metadata->stored), compare_stored);
    for (size_t i = 1; i < metadata->n_stored; i++) {
        if (compare_stored(&metadata->stored[i - 1], &metadata->stored[i]) != 0)
            continue;
        struct phema_span name = dcp_name(metadata, metadata->stored[i].number);
        (void)fail_expected(err, "each piece once in storage_data, found one twice");
        return fail_in_tensor(err, PHEMA_ERR_FILE, (const char *)name.data, name.size);
    }
    return PHEMA_OK;
}

/* NULL: no such entry. */
static struct stored *find_stored(const struct dcp_metadata *metadata, size_t number,
                                  const struct pickle_node *offset)
{
    const struct stored wanted = {number, offset, NULL, false};
    return metadata->n_stored ? bsearch(&wanted, metadata->stored, metadata->n_stored,
                                        sizeof(wanted), compare_stored)
                              : NULL;
}

static bool is_none_or_empty(const struct pickle_node *node)
{
    return !node || node->kind == PICKLE_NONE ||
           ((node->kind == PICKLE_LIST || node->kind == PICKLE_TUPLE) && node->items.n == 0);
}

static enum phema_status read_place(struct dcp_place *place, const struct pickle_node *info,
                                    struct phema_error *err)
{
    if (!is_none_or_empty(field(info, "transform_descriptors")))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is stored compressed or otherwise transformed, which is not read; save "
                          "it without extensions");
    const struct pickle_node *path = field(info, "relative_path");
    const struct pickle_node *offset = field(info, "offset");
    const struct pickle_node *length = field(info, "length");
    if (!is_kind(path, PICKLE_TEXT) || path->span.size > MAX_NAME_BYTES ||
        !is_kind(offset, PICKLE_INT) || !is_kind(length, PICKLE_INT) || offset->integer < 0 ||
        length->integer < 0)
        return fail_expected(err, "a _StorageInfo with relative_path, and offset and length of 0 "
                                  "or more");
    *place = (struct dcp_place){path->span, (uint64_t)offset->integer, (uint64_t)length->integer};
    return PHEMA_OK;
}

/* ---- Tensors ---- */

/* The dtype is the first item of the tuple that is the state of TensorProperties. */
static const struct pickle_node *dtype_of(const struct pickle_node *properties)
{
    if (!is_record(properties, METADATA_CLASS("TensorProperties")) &&
        !is_record(properties, OLD_PROPERTIES))
        return NULL;
    const struct pickle_node *state = properties->record->state;
    return is_kind(state, PICKLE_TUPLE) && state->items.n ? state->items.at[0] : NULL;
}

static enum phema_status take_dtype(struct phema_tensor *tensor, const struct pickle_node *value,
                                    struct phema_error *err)
{
    const struct pickle_node *dtype = dtype_of(field(value, "properties"));
    if (!is_kind(dtype, PICKLE_GLOBAL))
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

static enum phema_status take_shape(struct phema_tensor *tensor, const struct pickle_node *size,
                                    struct phema_arena *arena, struct phema_error *err)
{
    if (!are_sizes(size))
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

static enum phema_status count_chunks(size_t *n_chunks, struct dcp_metadata *metadata,
                                      const struct pickle_node *chunks, struct phema_error *err)
{
    if (!is_kind(chunks, PICKLE_LIST))
        return fail_expected(err, "a list of chunks");
    if (chunks->items.n > MAX_CHUNKS)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu pieces, expected %u at most",
                          chunks->items.n, MAX_CHUNKS);
    if (chunks->items.n > metadata->chunks_left)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the tensors share lists of pieces, as no real metadata do");
    metadata->chunks_left -= chunks->items.n;
    *n_chunks = chunks->items.n;
    return PHEMA_OK;
}

enum phema_status dcp_read_tensor(struct phema_tensor *tensor, size_t *n_chunks,
                                  struct dcp_metadata *metadata, size_t number,
                                  struct phema_arena *arena, struct phema_error *err)
{
    const struct pickle_node *value = value_of(metadata, number);
    struct phema_span name = dcp_name(metadata, number);
    if (!is_record(value, METADATA_CLASS("TensorStorageMetadata")))
        return fail_expected(err, "TensorStorageMetadata or BytesStorageMetadata");
    enum phema_status status = take_dtype(tensor, value, err);
    if (!status)
        status = take_shape(tensor, field(value, "size"), arena, err);
    if (!status)
        status = count_chunks(n_chunks, metadata, field(value, "chunks"), err);
    if (status)
        return status;
    tensor->name = phema_arena_copy(arena, name.data, name.size);
    tensor->name_size = name.size;
    return tensor->name ? PHEMA_OK : phema_fail_memory(err);
}

/* True when the chunk is empty. */
static bool take_box(uint64_t *start, uint64_t *size, const struct pickle_node *offsets,
                     const struct pickle_node *sizes)
{
    bool is_empty = false;
    for (size_t d = 0; d < offsets->items.n; d++) {
        start[d] = (uint64_t)offsets->items.at[d]->integer;
        size[d] = (uint64_t)sizes->items.at[d]->integer;
        is_empty |= size[d] == 0;
    }
    return is_empty;
}

enum phema_status dcp_read_chunk(uint64_t *start, uint64_t *size, struct dcp_place *place,
                                 bool *is_repeated, struct dcp_metadata *metadata, size_t number,
                                 size_t chunk, struct phema_error *err)
{
    const struct pickle_node *value = value_of(metadata, number);
    const struct pickle_node *box = field(value, "chunks")->items.at[chunk];
    size_t rank = field(value, "size")->items.n;
    if (!is_record(box, METADATA_CLASS("ChunkStorageMetadata")))
        return fail_expected(err, "ChunkStorageMetadata as chunks");
    const struct pickle_node *offsets = field(box, "offsets");
    const struct pickle_node *sizes = field(box, "sizes");
    if (!are_sizes(offsets) || !are_sizes(sizes) || offsets->items.n != rank ||
        sizes->items.n != rank)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected offsets and sizes of each piece as torch.Size of %zu "
                          "dimensions",
                          rank);
    bool is_empty = take_box(start, size, offsets, sizes);
    struct stored *stored = find_stored(metadata, number, offsets);
    *is_repeated = stored && stored->is_taken && is_empty;
    struct phema_name_buffer shown;
    if (!stored)
        return phema_fail(err, PHEMA_ERR_FILE, "storage_data does not say where the piece at %s is",
                          chunks_format_index(&shown, start, (unsigned)rank));
    if (*is_repeated)
        return PHEMA_OK;
    if (stored->is_taken)
        return phema_fail(err, PHEMA_ERR_FILE, "two pieces begin at %s: they overlap",
                          chunks_format_index(&shown, start, (unsigned)rank));
    stored->is_taken = true;
    return read_place(place, stored->info, err);
}

/* ---- Together ---- */

static enum phema_status read_metadata(struct dcp_metadata *metadata, struct phema_span content,
                                       const struct phema_checkpoint_options *options,
                                       struct phema_error *err)
{
    const struct pickle_host host = {.options = options, .is_distributed = true};
    struct pickle_node *root = NULL;
    size_t used = 0;
    enum phema_status status = pickle_read(&root, &used, content, &metadata->nodes, &host, err);
    if (status)
        return status;
    if (used != content.size)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu bytes behind its end, expected none",
                          content.size - used);
    if (!is_record(root, METADATA_CLASS("Metadata")))
        return fail_expected(err, "the Metadata of torch.distributed.checkpoint as its object");
    metadata->values = field(root, "state_dict_metadata");
    const struct pickle_node *storage = field(root, "storage_data");
    if (!is_kind(metadata->values, PICKLE_DICT) || !is_kind(storage, PICKLE_DICT))
        return fail_expected(err, "Metadata with dicts as state_dict_metadata and storage_data");
    metadata->chunks_left = content.size;
    status = index_names(metadata, err);
    return status ? status : index_storage(metadata, storage, err);
}

enum phema_status dcp_metadata_open(struct dcp_metadata **out, struct phema_span content,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    struct dcp_metadata *metadata = calloc(1, sizeof(*metadata));
    if (!metadata)
        return phema_fail_memory(err);
    enum phema_status status = read_metadata(metadata, content, options, err);
    if (status) {
        dcp_metadata_close(metadata);
        return status;
    }
    *out = metadata;
    return PHEMA_OK;
}

void dcp_metadata_close(struct dcp_metadata *metadata)
{
    if (!metadata)
        return;
    name_table_clear(&metadata->names);
    free(metadata->stored);
    phema_arena_clear(&metadata->nodes);
    free(metadata);
}
