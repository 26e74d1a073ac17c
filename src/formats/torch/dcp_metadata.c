// SPDX-License-Identifier: Apache-2.0
/* dcp_metadata.c - the pickle .metadata of distributed checkpoints (torch/distributed/checkpoint/
 * metadata.py, filesystem.py). Its objects are records, identified by their class and read by the
 * names of their fields. A field that is None by default may be missing. */
#include "torch/dcp_metadata.h"

#include <stdlib.h>

#include "format.h"
#include "torch/torch.h"

/* Length of a tensor's name. Names are looked up once for each chunk. */
#define MAX_NAME_BYTES 4096u

#define METADATA_CLASS(name)   "torch.distributed.checkpoint.metadata." name
#define FILESYSTEM_CLASS(name) "torch.distributed.checkpoint.filesystem." name
#define OLD_PROPERTIES         "torch.distributed._shard.sharded_tensor.metadata.TensorProperties"

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

static enum phema_status index_names(struct dcp_metadata *metadata, struct phema_error *err)
{
    const struct pickle_items *items = &metadata->values->items;
    for (size_t i = 0; i + 1 < items->n; i += 2) {
        const struct pickle_node *key = items->at[i];
        if (key->kind != PICKLE_TEXT || key->span.size > MAX_NAME_BYTES)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "state_dict_metadata: expected names of at most %u bytes as keys",
                              MAX_NAME_BYTES);
        if (name_table_add(&metadata->names, (const char *)key->span.data, key->span.size, i / 2) !=
            NAME_ADDED)
            return phema_fail_memory(err); /* equal keys are one: the pickle reader merges them */
    }
    return PHEMA_OK;
}

struct phema_span dcp_metadata_name(const struct dcp_metadata *metadata, size_t number)
{
    return metadata->values->items.at[2 * number]->span;
}

static const struct pickle_node *value_of(const struct dcp_metadata *metadata, size_t number)
{
    return metadata->values->items.at[2 * number + 1];
}

/* The other values are pickled objects. */
bool dcp_metadata_is_tensor(const struct dcp_metadata *metadata, size_t number)
{
    return !pickle_is_record(value_of(metadata, number), METADATA_CLASS("BytesStorageMetadata"));
}

/* ---- Storage ---- */

/* Entries of objects other than the counter are ignored, and so are entries of unlisted names,
 * which no reader can reach. */
static enum phema_status note_stored(struct dcp_metadata *metadata, const struct pickle_node *key,
                                     const struct pickle_node *info, struct phema_error *err)
{
    if (!pickle_is_record(key, METADATA_CLASS("MetadataIndex")))
        return fail_expected(err, "a MetadataIndex as key");
    const struct pickle_node *name = pickle_field(key, "fqn");
    if (!pickle_is(name, PICKLE_TEXT) || name->span.size > MAX_NAME_BYTES)
        return fail_expected(err, "a MetadataIndex with the name of a tensor as fqn");
    size_t number = 0;
    if (!name_table_find(&number, &metadata->names, (const char *)name->span.data, name->span.size))
        return PHEMA_OK;
    if (!dcp_metadata_is_tensor(metadata, number)) {
        if (phema_bytes_are(name->span.data, name->span.size, DCP_COUNTER) &&
            pickle_is_record(info, FILESYSTEM_CLASS("_StorageInfo")))
            metadata->counter = (struct dcp_stored){.number = number, .info = info};
        return PHEMA_OK;
    }

    const struct pickle_node *offset = pickle_field(key, "offset");
    enum phema_status status = PHEMA_OK;
    if (!is_size(offset))
        status = fail_expected(err, "a MetadataIndex with a torch.Size as offset");
    else if (!pickle_is_record(info, FILESYSTEM_CLASS("_StorageInfo")))
        status = fail_expected(err, "a _StorageInfo for each piece");
    else if (!phema_array_grow(&metadata->stored, &metadata->stored_capacity, metadata->n_stored,
                               sizeof(*metadata->stored)))
        return phema_fail_memory(err);
    if (status)
        return fail_in_tensor(err, status, (const char *)name->span.data, name->span.size);
    metadata->stored[metadata->n_stored++] = (struct dcp_stored){number, offset, info, false};
    return PHEMA_OK;
}

static int compare_stored(const void *a, const void *b)
{
    const struct dcp_stored *left = a, *right = b;
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
        struct phema_span name = dcp_metadata_name(metadata, metadata->stored[i].number);
        (void)fail_expected(err, "each piece once in storage_data, found one twice");
        return fail_in_tensor(err, PHEMA_ERR_FILE, (const char *)name.data, name.size);
    }
    return PHEMA_OK;
}

struct dcp_stored *dcp_metadata_find(const struct dcp_metadata *metadata, size_t number,
                                     const struct pickle_node *chunk)
{
    const struct dcp_stored wanted = {number, pickle_field(chunk, "offsets"), NULL, false};
    return metadata->n_stored ? bsearch(&wanted, metadata->stored, metadata->n_stored,
                                        sizeof(wanted), compare_stored)
                              : NULL;
}

static bool is_none_or_empty(const struct pickle_node *node)
{
    return !node || node->kind == PICKLE_NONE ||
           ((node->kind == PICKLE_LIST || node->kind == PICKLE_TUPLE) && node->items.n == 0);
}

PHEMA_FALLIBLE dcp_place_read(struct dcp_place *place, const struct dcp_stored *stored,
                              struct phema_error *err)
{
    const struct pickle_node *info = stored->info;
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
    *place = (struct dcp_place){path->span, (uint64_t)offset->integer, (uint64_t)length->integer};
    return PHEMA_OK;
}

PHEMA_FALLIBLE dcp_metadata_read(struct dcp_metadata *metadata, struct phema_span content,
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
    if (!pickle_is_record(root, METADATA_CLASS("Metadata")))
        return fail_expected(err, "the Metadata of torch.distributed.checkpoint as its object");
    metadata->values = pickle_field(root, "state_dict_metadata");
    const struct pickle_node *storage = pickle_field(root, "storage_data");
    if (!pickle_is(metadata->values, PICKLE_DICT) || !pickle_is(storage, PICKLE_DICT))
        return fail_expected(err, "Metadata with dicts as state_dict_metadata and storage_data");
    status = index_names(metadata, err);
    return status ? status : index_storage(metadata, storage, err);
}

void dcp_metadata_clear(struct dcp_metadata *metadata)
{
    name_table_clear(&metadata->names);
    free(metadata->stored);
    phema_arena_clear(&metadata->nodes);
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

PHEMA_FALLIBLE dcp_tensor_read(struct phema_tensor *tensor, const struct pickle_items **chunks,
                               const struct dcp_metadata *metadata, size_t number,
                               struct phema_arena *arena, struct phema_error *err)
{
    const struct pickle_node *value = value_of(metadata, number);
    if (!pickle_is_record(value, METADATA_CLASS("TensorStorageMetadata")))
        return fail_expected(err, "TensorStorageMetadata or BytesStorageMetadata");
    enum phema_status status = read_dtype(tensor, value, err);
    if (!status)
        status = read_shape(tensor, pickle_field(value, "size"), arena, err);
    if (status)
        return status;
    const struct pickle_node *list = pickle_field(value, "chunks");
    if (!pickle_is(list, PICKLE_LIST))
        return fail_expected(err, "a list of chunks");
    *chunks = &list->items;
    return PHEMA_OK;
}

PHEMA_FALLIBLE dcp_bounds_read(struct phema_chunk *chunk, const struct pickle_node *node,
                               size_t rank, struct phema_arena *arena, struct phema_error *err)
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
