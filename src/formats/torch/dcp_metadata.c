// SPDX-License-Identifier: Apache-2.0
/* dcp_metadata.c - what the pickle .metadata of a distributed checkpoint says. */
#include "torch/dcp_metadata.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"

/* Length of a tensor's name. Names are looked up once for each chunk. */
#define MAX_NAME_BYTES 4096u

#define FILESYSTEM_CLASS(name) "torch.distributed.checkpoint.filesystem." name

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

struct phema_span dcp_name_of(const struct dcp_metadata *metadata, size_t number)
{
    return metadata->values->items.at[2 * number]->span;
}

bool dcp_is_tensor(const struct dcp_metadata *metadata, size_t number)
{
    return !pickle_is_record(metadata->values->items.at[2 * number + 1],
                             DCP_METADATA_CLASS("BytesStorageMetadata"));
}

/* ---- Storage ---- */

bool dcp_is_size(const struct pickle_node *node)
{
    return pickle_holds_sizes(node) && node->items.n <= PHEMA_MAX_RANK;
}

/* Entries of objects other than the counter are ignored, and so are entries of unlisted names,
 * which no reader can reach. */
static enum phema_status note_stored(struct dcp_metadata *metadata, const struct pickle_node *key,
                                     const struct pickle_node *info, struct phema_error *err)
{
    if (!pickle_is_record(key, DCP_METADATA_CLASS("MetadataIndex")))
        return fail_expected(err, "a MetadataIndex as key");
    const struct pickle_node *name = pickle_field(key, "fqn");
    if (!pickle_is(name, PICKLE_TEXT) || name->span.size > MAX_NAME_BYTES)
        return fail_expected(err, "a MetadataIndex with the name of a tensor as fqn");
    size_t number = 0;
    if (!name_table_find(&number, &metadata->names, (const char *)name->span.data, name->span.size))
        return PHEMA_OK;
    bool is_stored = pickle_is_record(info, FILESYSTEM_CLASS("_StorageInfo"));
    if (!dcp_is_tensor(metadata, number)) {
        if (span_is(name->span, DCP_COUNTER_NAME) && is_stored)
            metadata->counter = (struct dcp_stored){.number = number, .info = info};
        return PHEMA_OK;
    }
    const struct pickle_node *offset = pickle_field(key, "offset");
    if (!dcp_is_size(offset) || !is_stored) {
        (void)fail_expected(err, dcp_is_size(offset)
                                     ? "a _StorageInfo for each piece"
                                     : "a MetadataIndex with a torch.Size as offset");
        return fail_in_tensor(err, PHEMA_ERR_FILE, (const char *)name->span.data, name->span.size);
    }
    if (!phema_array_grow(&metadata->stored, &metadata->stored_capacity, metadata->n_stored,
                          sizeof(*metadata->stored)))
        return phema_fail_memory(err);
    metadata->stored[metadata->n_stored++] = (struct dcp_stored){number, offset, info, false};
    return PHEMA_OK;
}

static int compare_stored(const void *a, const void *b)
{
    const struct dcp_stored *left = a, *right = b;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    const struct pickle_items *one = &left->offset->items, *other = &right->offset->items;
    for (size_t i = 0; i < one->n && i < other->n; i++)
        if (one->at[i]->integer != other->at[i]->integer)
            return one->at[i]->integer < other->at[i]->integer ? -1 : 1;
    return (one->n > other->n) - (one->n < other->n);
}

struct dcp_stored *dcp_find_stored(const struct dcp_metadata *metadata, size_t number,
                                   const struct pickle_node *offset)
{
    const struct dcp_stored wanted = {number, offset, NULL, false};
    return metadata->n_stored ? bsearch(&wanted, metadata->stored, metadata->n_stored,
                                        sizeof(wanted), compare_stored)
                              : NULL;
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
        struct phema_span name = dcp_name_of(metadata, metadata->stored[i].number);
        (void)fail_expected(err, "each piece once in storage_data, found one twice");
        return fail_in_tensor(err, PHEMA_ERR_FILE, (const char *)name.data, name.size);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE dcp_read_place(struct dcp_place *place, const struct dcp_stored *stored,
                              struct phema_error *err)
{
    const struct pickle_node *transforms = pickle_field(stored->info, "transform_descriptors");
    bool is_sequence = pickle_is(transforms, PICKLE_LIST) || pickle_is(transforms, PICKLE_TUPLE);
    if (transforms && transforms->kind != PICKLE_NONE && (!is_sequence || transforms->items.n > 0))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is stored compressed or otherwise transformed, which is not read; save "
                          "it without extensions");
    const struct pickle_node *path = pickle_field(stored->info, "relative_path");
    const struct pickle_node *offset = pickle_field(stored->info, "offset");
    const struct pickle_node *length = pickle_field(stored->info, "length");
    if (!pickle_is(path, PICKLE_TEXT) || path->span.size > MAX_NAME_BYTES ||
        !pickle_is_count(offset) || !pickle_is_count(length))
        return fail_expected(err, "a _StorageInfo with relative_path, and offset and length of 0 "
                                  "or more");
    *place = (struct dcp_place){path->span, (uint64_t)offset->integer, (uint64_t)length->integer};
    return PHEMA_OK;
}

PHEMA_FALLIBLE dcp_read_metadata(struct dcp_metadata *metadata, struct phema_span content,
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
    if (!pickle_is_record(root, DCP_METADATA_CLASS("Metadata")))
        return fail_expected(err, "the Metadata of torch.distributed.checkpoint as its object");
    metadata->values = pickle_field(root, "state_dict_metadata");
    metadata->paths = pickle_field(root, "planner_data");
    const struct pickle_node *storage = pickle_field(root, "storage_data");
    if (!pickle_is(metadata->values, PICKLE_DICT) || !pickle_is(storage, PICKLE_DICT))
        return fail_expected(err, "Metadata with dicts as state_dict_metadata and storage_data");
    status = index_names(metadata, err);
    return status ? status : index_storage(metadata, storage, err);
}

void dcp_clear_metadata(struct dcp_metadata *metadata)
{
    name_table_clear(&metadata->names);
    free(metadata->stored);
    phema_arena_clear(&metadata->nodes);
}

/* ---- The root ---- */

struct phema_span dcp_root_key(const struct dcp_metadata *metadata)
{
    static const struct phema_span none = {NULL, 0};
    const struct pickle_node *paths = metadata->paths, *key = NULL;
    if (!pickle_is(paths, PICKLE_DICT))
        return none;
    for (size_t i = 0; i + 1 < paths->items.n; i += 2) {
        const struct pickle_node *path = paths->items.at[i + 1];
        if (!pickle_is(path, PICKLE_TUPLE) || path->items.n < 2 ||
            !pickle_is(path->items.at[0], PICKLE_TEXT))
            return none;
        const struct pickle_node *first = path->items.at[0];
        if (key && phema_spans_compare(key->span, first->span) != 0)
            return none;
        key = first;
    }
    return key && !memchr(key->span.data, '\0', key->span.size) ? key->span : none;
}
