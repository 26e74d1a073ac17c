// SPDX-License-Identifier: Apache-2.0
/* checkpointing_metadata.c - metadata.pkl as torch_checkpointing 0.1.1 writes it: dicts, lists,
 * tuples, integers and texts, without a class. */
#include "torch/checkpointing_metadata.h"

#include <stdlib.h>

#include "format.h"
#include "phema/json.h"
#include "phema/strbuf.h"

#define VERSION "2.0"

static enum phema_status fail_expected(struct phema_error *err, const char *wanted)
{
    return phema_fail(err, PHEMA_ERR_FILE, "expected %s", wanted);
}

/* The value of a key of a small dict; NULL: there is none. */
static struct pickle_node *value_of(const struct pickle_node *dict, const char *key)
{
    return pickle_is(dict, PICKLE_DICT) && dict->items.n <= 64 ? pickle_find(dict, key) : NULL;
}

static bool is_text(const struct pickle_node *node, const char *text)
{
    return pickle_is(node, PICKLE_TEXT) && span_is(node->span, text);
}

/* ---- Items ---- */

/* Appends the keys of a JSON list, with points between. */
static enum phema_status join_keys(struct phema_strbuf *name, struct phema_span json,
                                   struct phema_error *err)
{
    struct phema_json *keys = NULL;
    enum phema_status status = phema_json_parse(&keys, json, err);
    if (status)
        return status;
    size_t n = phema_json_type(keys) == PHEMA_JSON_ARRAY ? phema_json_length(keys) : 0;
    for (size_t i = 0; i < n && !status; i++) {
        uint64_t number = 0;
        size_t size = 0;
        const char *text = phema_json_string(phema_json_at(keys, i), &size);
        phema_strbuf_puts(name, i ? "." : "");
        if (text)
            phema_strbuf_append(name, text, size);
        else if (phema_json_u64(&number, phema_json_at(keys, i)))
            phema_strbuf_printf(name, "%llu", (unsigned long long)number);
        else
            status = fail_expected(err, "texts and integers as keys");
    }
    if (!status && !n)
        status = fail_expected(err, "a list of keys");
    phema_json_free(keys);
    return status ? status : phema_strbuf_check(name, err);
}

static enum phema_status index_tensor(struct checkpointing_item *item, struct phema_arena *arena,
                                      size_t number, struct phema_error *err)
{
    const struct pickle_node *key = item->tensors->items.at[2 * number];
    struct phema_strbuf name = {0};
    enum phema_status status = key->kind == PICKLE_TEXT
                                   ? join_keys(&name, key->span, err)
                                   : fail_expected(err, "JSON lists of keys as names of tensors");
    const char *kept = status ? NULL : phema_arena_copy(arena, name.data, name.size);
    if (!status) {
        enum name_added added =
            kept ? name_table_add(&item->names, kept, name.size, number) : NAME_NO_MEMORY;
        if (added == NAME_NO_MEMORY)
            status = phema_fail_memory(err);
        if (added == NAME_EXISTS)
            status = phema_fail(err, PHEMA_ERR_FILE, "two tensors are named '%s'", kept);
    }
    phema_strbuf_clear(&name);
    return status;
}

static enum phema_status read_item(struct checkpointing_item *item, struct phema_arena *arena,
                                   const struct pickle_node *value, uint64_t n_processes,
                                   struct phema_error *err)
{
    item->tensors = value_of(value, "nested_path_to_metadata");
    item->files = value_of(value, "rank_to_layout_info");
    if (!pickle_is(item->tensors, PICKLE_DICT) || !pickle_is(item->files, PICKLE_DICT))
        return fail_expected(err, "dicts nested_path_to_metadata and rank_to_layout_info");
    if (item->files->items.n != 2 * n_processes)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "rank_to_layout_info: expected %llu processes, found %u",
                          (unsigned long long)n_processes, item->files->items.n / 2);
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < item->tensors->items.n / 2 && !status; i++)
        status = index_tensor(item, arena, i, err);
    return status;
}

static enum phema_status add_item(struct checkpointing_metadata *metadata,
                                  const struct pickle_node *key, const struct pickle_node *value,
                                  struct phema_error *err)
{
    if (!pickle_is(key, PICKLE_TEXT) || !key->span.size ||
        relative_path_fault((const char *)key->span.data, key->span.size) ||
        memchr(key->span.data, '/', key->span.size))
        return fail_expected(err, "names of files as names of items");
    if (!phema_array_grow(&metadata->items, &metadata->items_capacity, metadata->n_items,
                          sizeof(*metadata->items)))
        return phema_fail_memory(err);
    struct checkpointing_item *item = &metadata->items[metadata->n_items++];
    *item = (struct checkpointing_item){
        .name = phema_arena_copy(&metadata->arena, key->span.data, key->span.size)};
    if (!item->name)
        return phema_fail_memory(err);
    enum phema_status status = read_item(item, &metadata->arena, value, metadata->n_processes, err);
    struct phema_name_buffer shown;
    if (status)
        return phema_fail_in(err, status, "item '%s'",
                             phema_name_escape(&shown, item->name, strlen(item->name)));
    return PHEMA_OK;
}

static enum phema_status read_root(struct checkpointing_metadata *out,
                                   const struct pickle_node *root, struct phema_error *err)
{
    const struct pickle_node *version = value_of(root, "version");
    const struct pickle_node *n_processes = value_of(root, "world_size");
    const struct pickle_node *items = value_of(root, "metadata");
    struct phema_name_buffer shown;
    if (!pickle_is(version, PICKLE_TEXT))
        return fail_expected(err, "a dict with a version, as torch_checkpointing writes it");
    if (!is_text(version, VERSION))
        return phema_fail(
            err, PHEMA_ERR_FILE, "is of version '%s', expected " VERSION,
            phema_name_escape(&shown, (const char *)version->span.data, version->span.size));
    if (!pickle_is(n_processes, PICKLE_INT) || n_processes->integer < 1 ||
        n_processes->integer > INT32_MAX || !pickle_is(items, PICKLE_DICT))
        return fail_expected(err, "a world_size of 1 or more and a dict metadata");
    out->n_processes = (uint64_t)n_processes->integer;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i + 1 < items->items.n && !status; i += 2)
        status = add_item(out, items->items.at[i], items->items.at[i + 1], err);
    return status;
}

PHEMA_FALLIBLE checkpointing_metadata_read(struct checkpointing_metadata *out,
                                           struct phema_span content,
                                           const struct phema_checkpoint_options *options,
                                           struct phema_error *err)
{
    const struct pickle_host host = {.options = options};
    struct pickle_node *root = NULL;
    size_t used = 0;
    enum phema_status status = pickle_read(&root, &used, content, &out->arena, &host, err);
    return status ? status : read_root(out, root, err);
}

void checkpointing_metadata_clear(struct checkpointing_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n_items; i++)
        name_table_clear(&metadata->items[i].names);
    free(metadata->items);
    phema_arena_clear(&metadata->arena);
}

/* ---- Files ---- */

static bool is_process(const struct pickle_node *node, uint64_t process)
{
    return pickle_is(node, PICKLE_INT) && node->integer >= 0 && (uint64_t)node->integer == process;
}

static const struct pickle_node *find_process(const struct pickle_node *dict, uint64_t process)
{
    size_t n = dict->items.n / 2;
    for (size_t k = 0; k < n; k++) {
        size_t i = (process + k) % n; /* in order, as torch writes them: found at once */
        if (is_process(dict->items.at[2 * i], process))
            return dict->items.at[2 * i + 1];
    }
    return NULL;
}

PHEMA_FALLIBLE checkpointing_find_file(struct phema_span *path, enum item_format *format,
                                       const struct checkpointing_item *item, uint64_t process,
                                       struct phema_error *err)
{
    const struct pickle_node *info = find_process(item->files, process);
    *path = (struct phema_span){NULL, 0};
    *format = ITEM_TORCH;
    if (!info)
        return phema_fail(err, PHEMA_ERR_FILE, "rank_to_layout_info: has no process %llu",
                          (unsigned long long)process);
    if (info->kind == PICKLE_NONE)
        return PHEMA_OK;
    const struct pickle_node *file = value_of(info, "file_path");
    const struct pickle_node *type = value_of(value_of(info, "serialization_format"), "type");
    if (!pickle_is(file, PICKLE_TEXT) || !pickle_is(type, PICKLE_TEXT))
        return fail_expected(err, "a file_path and a serialization_format of each process");
    const char *fault = relative_path_fault((const char *)file->span.data, file->span.size);
    if (fault)
        return phema_fail(err, PHEMA_ERR_FILE, "the file_path of process %llu %s",
                          (unsigned long long)process, fault);
    *path = file->span;
    *format = is_text(type, "TorchSerialization")         ? ITEM_TORCH
              : is_text(type, "SafetensorsSerialization") ? ITEM_SAFETENSORS
                                                          : ITEM_OTHER;
    return PHEMA_OK;
}

/* ---- Shardings ---- */

/* The process's place in the list of at most max processes; SIZE_MAX: it is not there. */
static size_t place_in(const struct pickle_node *processes, uint64_t process, size_t max)
{
    if (!sharding_holds_sizes(processes, max))
        return SIZE_MAX;
    size_t n = processes->items.n;
    for (size_t k = 0; k < n; k++) {
        size_t i = (process + k) % n;
        if (is_process(processes->items.at[i], process))
            return i;
    }
    return SIZE_MAX;
}

static enum phema_status read_cut(struct mesh_cut *cut, const struct pickle_node *placement,
                                  struct phema_error *err)
{
    const struct pickle_node *type = value_of(placement, "type");
    const struct pickle_node *dimension = value_of(placement, "dim");
    struct phema_name_buffer shown;
    if (is_text(type, "Replicate"))
        return PHEMA_OK;
    if (!pickle_is(type, PICKLE_TEXT))
        return fail_expected(err, "placements with a type");
    if (!is_text(type, "Shard"))
        return phema_fail(
            err, PHEMA_ERR_FILE, "the placement '%s' is not read, expected Shard or Replicate",
            phema_name_escape(&shown, (const char *)type->span.data, type->span.size));
    if (!pickle_is(dimension, PICKLE_INT) || dimension->integer < 0)
        return fail_expected(err, "a Shard with a dim of 0 or more");
    cut->is_shard = true;
    cut->dimension = (uint64_t)dimension->integer;
    return PHEMA_OK;
}

/* Processes of the mesh are listed in C order of its shape. */
static enum phema_status read_mesh(struct sharding *out, const struct pickle_node *mesh,
                                   size_t n_processes, struct phema_error *err)
{
    const struct pickle_node *shape = value_of(mesh, "mesh_shape");
    const struct pickle_node *processes = value_of(mesh, "mesh_data");
    size_t place = place_in(processes, out->process, n_processes);
    uint64_t n = 1;
    if (!sharding_holds_sizes(shape, MAX_MESH_RANK) || place == SIZE_MAX)
        return fail_expected(err,
                             "a mesh_spec with a mesh_shape, and the process in its mesh_data");
    out->n_cuts = shape->items.n;
    for (size_t i = out->n_cuts; i-- > 0;) {
        out->cuts[i].n = (uint64_t)shape->items.at[i]->integer;
        if (out->cuts[i].n == 0 || !phema_size_mul(&n, n, out->cuts[i].n))
            return fail_expected(err, "a mesh_shape of 1 or more in each dimension");
        out->cuts[i].part = place % out->cuts[i].n;
        place /= out->cuts[i].n;
    }
    if (n != processes->items.n)
        return fail_expected(err, "as many processes in mesh_data as mesh_shape says");
    return PHEMA_OK;
}

static enum phema_status check_dtype(const struct pickle_node *dtype,
                                     const struct phema_tensor *part, struct phema_error *err)
{
    const struct pickle_host host = {.options = NULL};
    struct pickle_global found = {0};
    const char *why = NULL;
    char name[32];
    if (!pickle_is(dtype, PICKLE_TEXT) || dtype->span.size >= sizeof(name))
        return fail_expected(err, "a dtype");
    memcpy(name, dtype->span.data, dtype->span.size);
    name[dtype->span.size] = '\0';
    if (!pickle_global_find(&found, &why, name, &host) || found.action != ACTION_DTYPE ||
        found.dtype != part->dtype)
        return phema_fail(err, PHEMA_ERR_FILE, "is %s, but metadata.pkl says another dtype",
                          phema_dtype_name(part->dtype));
    return PHEMA_OK;
}

static enum phema_status read_sharding(struct sharding *out, struct phema_arena *arena,
                                       const struct pickle_node *value, size_t n_processes,
                                       const struct phema_tensor *part, struct phema_error *err)
{
    const struct pickle_node *data = value_of(value, "data");
    if (!is_text(value_of(value, "type"), "DTensorShardingMetadata") || !data)
        return fail_expected(err, "sharding_metadata of type DTensorShardingMetadata");
    const struct pickle_node *shape = value_of(data, "global_shape");
    const struct pickle_node *placements = value_of(data, "placements");
    enum phema_status status = read_mesh(out, value_of(data, "mesh_spec"), n_processes, err);
    if (status)
        return status;
    if (!pickle_is(placements, PICKLE_LIST) || placements->items.n != out->n_cuts)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected %zu placements, one for each dimension of the mesh",
                          out->n_cuts);
    for (size_t i = 0; i < out->n_cuts && !status; i++)
        status = read_cut(&out->cuts[i], placements->items.at[i], err);
    if (!status)
        status = check_dtype(value_of(data, "dtype"), part, err);
    if (status)
        return status;
    if (!sharding_holds_sizes(shape, PHEMA_MAX_RANK))
        return fail_expected(err, "a global_shape of at most 64 sizes");
    out->rank = (unsigned)shape->items.n;
    out->shape = sharding_copy_sizes(arena, shape);
    return out->shape ? PHEMA_OK : phema_fail_memory(err);
}

PHEMA_FALLIBLE checkpointing_find_sharding(struct sharding *out, struct phema_arena *arena,
                                           const struct checkpointing_item *item, uint64_t process,
                                           const struct phema_tensor *part, struct phema_error *err)
{
    size_t number = 0;
    *out = (struct sharding){.process = process};
    if (!name_table_find(&number, &item->names, part->name, part->name_size))
        return phema_fail(err, PHEMA_ERR_FILE, "is not in metadata.pkl");
    const struct pickle_node *list = item->tensors->items.at[2 * number + 1];
    size_t n_processes = item->files->items.n / 2;
    size_t n_entries =
        pickle_is(list, PICKLE_LIST) && list->items.n <= n_processes ? list->items.n : 0;
    for (size_t i = 0; i < n_entries; i++) {
        const struct pickle_node *entry = list->items.at[i];
        if (place_in(value_of(entry, "ranks"), process, n_processes) == SIZE_MAX)
            continue;
        enum phema_status status =
            read_sharding(out, arena, value_of(entry, "sharding_metadata"), n_processes, part, err);
        return status ? phema_fail_in(err, status, "metadata.pkl") : PHEMA_OK;
    }
    return phema_fail(err, PHEMA_ERR_FILE, "metadata.pkl does not say what process %llu has",
                      (unsigned long long)process);
}
