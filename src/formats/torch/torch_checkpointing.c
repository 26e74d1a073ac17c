// SPDX-License-Identifier: Apache-2.0
/* torch_checkpointing.c - Directories of torch_checkpointing (docs/formats/torch-checkpointing.md).
 * Each process saves each item (model, optimizer, step) in a file of its own, ITEM_PROCESS.pt,
 * whose DTensors are parts of tensors. Other files are named by metadata.pkl, which not every
 * directory of a series has. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "assembly.h"
#include "format.h"
#include "phema/json.h"
#include "phema/sort.h"
#include "phema/strbuf.h"
#include "torch/torch.h"

#define VERSION "2.0" /* of metadata.pkl, as torch_checkpointing 0.1.1 writes it */

static const char metadata_name[] = "metadata.pkl";
static const char unfinished[] = "tmp_"; /* begins the name of a directory that is being written */

enum item_format {
    ITEM_TORCH,
    ITEM_SAFETENSORS,
    ITEM_OTHER /* JSON or bytes, without tensors */
};

/* An item of which metadata.pkl tells the sharding. */
struct item {
    const char *name;
    const struct pickle_node *files;   /* dict from processes to None or their file */
    const struct pickle_node *tensors; /* dict from JSON lists of keys to lists of shardings */
    struct name_table names;           /* keys joined by points; values are indices in tensors */
};

/* A file of one process. */
struct member {
    const char *item, *path; /* the path is relative to the directory */
    uint64_t process;
    enum item_format format;
    const struct item *metadata; /* NULL: metadata.pkl does not have the item */
};

struct checkpointing {
    struct phema_checkpoint *checkpoint;
    const struct phema_checkpoint_options *options;
    /* of metadata.pkl */
    bool has_metadata;
    struct phema_arena nodes;
    uint64_t n_processes;
    struct item *items;
    size_t n_items, items_capacity;

    bool has_dtensors;
    struct member *members; /* by item, then by process */
    size_t n, capacity;
    struct assembly assembly;
};

/* ---- Names ---- */

/* The digits of ITEM_PROCESS.EXT, before the last point; false: the name is another one. */
static bool split_name(size_t *item_size, uint64_t *process, const char *name)
{
    const char *end = strrchr(name, '.');
    const char *digits = end;
    while (digits > name && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    if (!end || digits == end || end - digits > 9 || digits < name + 2 || digits[-1] != '_' ||
        (*digits == '0' && end - digits > 1))
        return false;
    *process = 0;
    for (const char *at = digits; at < end; at++)
        *process = 10 * *process + (uint64_t)(*at - '0');
    *item_size = (size_t)(digits - 1 - name);
    return true;
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct directory_name *)entry)->text);
}

static bool has_name(const struct directory_names *names, const char *name)
{
    return names->n && bsearch(name, names->at, names->n, sizeof(*names->at), compare_name) != NULL;
}

/* The file of the process before has a name of the same kind. */
static bool has_previous(const struct directory_names *names, const char *name, size_t item_size,
                         uint64_t process)
{
    char *previous = NULL;
    if (asprintf(&previous, "%.*s_%llu%s", (int)item_size, name, (unsigned long long)process - 1,
                 strrchr(name, '.')) < 0)
        return false;
    bool is_there = has_name(names, previous);
    free(previous);
    return is_there;
}

/* Numbers from 0 tell processes from the steps of a series. */
static bool probe_directory(bool *is_certain, const struct directory_names *names)
{
    size_t n_numbered = 0;
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->at[i].text;
        size_t item_size = 0;
        uint64_t process = 0;
        if (!names->at[i].is_checkpoint || strcmp(name, metadata_name) == 0)
            continue;
        if (!split_name(&item_size, &process, name) ||
            (process && !has_previous(names, name, item_size, process)))
            return false;
        n_numbered++;
    }
    *is_certain = has_name(names, metadata_name);
    return *is_certain || n_numbered > 1;
}

/* ---- metadata.pkl: dicts, lists, tuples, integers and texts, without a class ---- */

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

static enum phema_status index_tensor(struct item *item, struct phema_arena *arena, size_t number,
                                      struct phema_error *err)
{
    const struct pickle_node *key = item->tensors->items.at[2 * number];
    if (key->kind != PICKLE_TEXT)
        return fail_expected(err, "JSON lists of keys as names of tensors");
    struct phema_strbuf name = {0};
    enum phema_status status = join_keys(&name, key->span, err);
    const char *kept = status ? NULL : phema_arena_copy(arena, name.data, name.size);
    enum name_added added =
        kept ? name_table_add(&item->names, kept, name.size, number) : NAME_NO_MEMORY;
    phema_strbuf_clear(&name);
    if (status || added == NAME_ADDED)
        return status;
    return added == NAME_NO_MEMORY
               ? phema_fail_memory(err)
               : phema_fail(err, PHEMA_ERR_FILE, "two tensors are named '%s'", kept);
}

static enum phema_status read_item(struct item *item, struct phema_arena *arena,
                                   const struct pickle_node *value, uint64_t n_processes,
                                   struct phema_error *err)
{
    item->tensors = metadata_value(value, "nested_path_to_metadata");
    item->files = metadata_value(value, "rank_to_layout_info");
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

static enum phema_status add_item(struct checkpointing *reading, const struct pickle_node *key,
                                  const struct pickle_node *value, struct phema_error *err)
{
    if (!pickle_is(key, PICKLE_TEXT) || !key->span.size ||
        relative_path_fault((const char *)key->span.data, key->span.size) ||
        memchr(key->span.data, '/', key->span.size))
        return fail_expected(err, "names of files as names of items");
    const char *name = phema_arena_copy(&reading->nodes, key->span.data, key->span.size);
    if (!name || !phema_array_grow(&reading->items, &reading->items_capacity, reading->n_items,
                                   sizeof(*reading->items)))
        return phema_fail_memory(err);
    struct item *item = &reading->items[reading->n_items++];
    *item = (struct item){.name = name};
    enum phema_status status = read_item(item, &reading->nodes, value, reading->n_processes, err);
    struct phema_name_buffer shown;
    return status ? phema_fail_in(err, status, "item '%s'", phema_name_show(&shown, name))
                  : PHEMA_OK;
}

static enum phema_status read_root(struct checkpointing *reading, const struct pickle_node *root,
                                   struct phema_error *err)
{
    const struct pickle_node *version = metadata_value(root, "version");
    const struct pickle_node *n_processes = metadata_value(root, "world_size");
    const struct pickle_node *items = metadata_value(root, "metadata");
    struct phema_name_buffer shown;
    if (!pickle_is(version, PICKLE_TEXT))
        return fail_expected(err, "a dict with a version, as torch_checkpointing writes it");
    if (!pickle_is_text(version, VERSION))
        return phema_fail(
            err, PHEMA_ERR_FILE, "is of version '%s', expected " VERSION,
            phema_name_escape(&shown, (const char *)version->span.data, version->span.size));
    if (!pickle_is(n_processes, PICKLE_INT) || n_processes->integer < 1 ||
        n_processes->integer > INT32_MAX || !pickle_is(items, PICKLE_DICT))
        return fail_expected(err, "a world_size of 1 or more and a dict metadata");
    reading->n_processes = (uint64_t)n_processes->integer;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i + 1 < items->items.n && !status; i += 2)
        status = add_item(reading, items->items.at[i], items->items.at[i + 1], err);
    return status;
}

static enum phema_status read_metadata(struct checkpointing *reading, const char *path,
                                       struct phema_error *err)
{
    const struct pickle_host host = {.options = reading->options};
    struct phema_checkpoint *checkpoint = reading->checkpoint;
    struct pickle_node *root = NULL;
    size_t used = 0;
    reading->has_metadata = true;
    enum phema_status status = checkpoint_add_member(checkpoint, path, err);
    if (!status)
        status = pickle_read(&root, &used, checkpoint_content(checkpoint, checkpoint->n_files - 1),
                             &reading->nodes, &host, err);
    if (!status)
        status = read_root(reading, root, err);
    return status ? phema_fail_in(err, status, "file '%s'", path) : PHEMA_OK;
}

/* The number at the end of a directory's name, of at most 18 digits; false: there is none. */
static bool split_number(size_t *stem_size, uint64_t *number, const char *name)
{
    size_t size = strlen(name), at = size;
    while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    if (at == size || size - at > 18)
        return false;
    *stem_size = at;
    *number = strtoull(name + at, NULL, 10);
    return true;
}

/* The sibling with metadata.pkl whose number is nearest to that of own; of two the smaller one. */
static enum phema_status choose_sibling(const char **path, DIR *parent, const char *own,
                                        struct phema_checkpoint *checkpoint,
                                        struct phema_error *err)
{
    struct phema_arena *arena = &checkpoint->arena;
    size_t own_size = 0, size = 0;
    uint64_t own_number = 0, number = 0, best_distance = UINT64_MAX;
    if (!split_number(&own_size, &own_number, own))
        return PHEMA_OK;
    for (const struct dirent *entry; (entry = readdir(parent));) {
        if (!split_number(&size, &number, entry->d_name) || size != own_size ||
            strncmp(entry->d_name, own, size) != 0 || number == own_number)
            continue;
        uint64_t distance = number > own_number ? number - own_number : own_number - number;
        if (distance > best_distance || (distance == best_distance && number > own_number))
            continue;
        const char *file = phema_arena_printf(arena, "../%s/%s", entry->d_name, metadata_name);
        const char *full = file ? phema_arena_printf(arena, "%s/%s", checkpoint->path, file) : NULL;
        struct stat st;
        if (!full)
            return phema_fail_memory(err);
        if (stat(full, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        *path = file;
        best_distance = distance;
    }
    return PHEMA_OK;
}

/* The synchronous saver writes metadata.pkl with its first checkpoint only. */
static enum phema_status find_sibling(const char **path, struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    char *own = realpath(checkpoint->path, NULL);
    const char *above = phema_arena_printf(&checkpoint->arena, "%s/..", checkpoint->path);
    DIR *parent = above ? opendir(above) : NULL;
    enum phema_status status = PHEMA_OK;
    if (own && parent)
        status = choose_sibling(path, parent, strrchr(own, '/') + 1, checkpoint, err);
    if (parent)
        (void)closedir(parent);
    free(own);
    return status;
}

/* ---- Files of an item ---- */

static const struct pickle_node *find_process(const struct pickle_node *dict, uint64_t process)
{
    size_t n = dict->items.n / 2;
    for (size_t k = 0; k < n; k++) {
        size_t i = (process + k) % n; /* in order, as torch writes them: found at once */
        if (pickle_is_number(dict->items.at[2 * i], process))
            return dict->items.at[2 * i + 1];
    }
    return NULL;
}

/* Where a process keeps the item.
 *   path  out: relative to the checkpoint; NULL: ITEM_PROCESS.pt */
static enum phema_status find_file(struct phema_span *path, enum item_format *format,
                                   const struct item *item, uint64_t process,
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
    const struct pickle_node *file = metadata_value(info, "file_path");
    const struct pickle_node *type =
        metadata_value(metadata_value(info, "serialization_format"), "type");
    if (!pickle_is(file, PICKLE_TEXT) || !pickle_is(type, PICKLE_TEXT))
        return fail_expected(err, "a file_path and a serialization_format of each process");
    const char *fault = relative_path_fault((const char *)file->span.data, file->span.size);
    if (fault)
        return phema_fail(err, PHEMA_ERR_FILE, "the file_path of process %llu %s",
                          (unsigned long long)process, fault);
    *path = file->span;
    *format = pickle_is_text(type, "TorchSerialization")         ? ITEM_TORCH
              : pickle_is_text(type, "SafetensorsSerialization") ? ITEM_SAFETENSORS
                                                                 : ITEM_OTHER;
    return PHEMA_OK;
}

static enum phema_status add_member(struct checkpointing *reading, const struct member *member,
                                    struct phema_error *err)
{
    if (!member->item || !member->path ||
        !phema_array_grow(&reading->members, &reading->capacity, reading->n,
                          sizeof(*reading->members)))
        return phema_fail_memory(err);
    reading->members[reading->n++] = *member;
    return PHEMA_OK;
}

static enum phema_status add_files_of_item(struct checkpointing *reading, const struct item *item,
                                           struct phema_error *err)
{
    struct phema_arena *arena = &reading->checkpoint->arena;
    for (uint64_t process = 0; process < reading->n_processes; process++) {
        struct member member = {.item = item->name, .process = process, .metadata = item};
        struct phema_span path = {NULL, 0};
        enum phema_status status = find_file(&path, &member.format, item, process, err);
        if (status)
            return phema_fail_in(err, status, "%s: item '%s'", metadata_name, item->name);
        member.path =
            path.data ? phema_arena_copy(arena, path.data, path.size)
                      : phema_arena_printf(arena, "%s_%llu%s", item->name,
                                           (unsigned long long)process, torch_extensions[0].text);
        status = add_member(reading, &member, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* Items without a declared resharder are in no metadata.pkl. */
static enum phema_status add_named_files(struct checkpointing *reading,
                                         const struct directory_names *names,
                                         struct phema_error *err)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->at[i].text;
        struct member member = {.path = name, .format = ITEM_TORCH};
        size_t size = 0;
        if (!names->at[i].is_checkpoint || !split_name(&size, &member.process, name) ||
            strcmp(strrchr(name, '.'), torch_extensions[0].text) != 0)
            continue;
        bool is_known = false;
        for (size_t k = 0; k < reading->n_items; k++)
            is_known |= phema_bytes_are(name, size, reading->items[k].name);
        if (is_known)
            continue;
        member.item = phema_arena_copy(&reading->checkpoint->arena, name, size);
        enum phema_status status = add_member(reading, &member, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static int compare_members(const void *a, const void *b, void *unused)
{
    (void)unused;
    const struct member *left = a, *right = b;
    int order = strcmp(left->item, right->item);
    return order ? order : (left->process > right->process) - (left->process < right->process);
}

/* Every item has a file of each process. */
static enum phema_status check_processes(const struct checkpointing *reading,
                                         struct phema_error *err)
{
    uint64_t n_wanted = reading->has_metadata ? reading->n_processes : 0;
    for (size_t at = 0, end = 0; at < reading->n; at = end) {
        while (end < reading->n &&
               strcmp(reading->members[end].item, reading->members[at].item) == 0)
            end++;
        uint64_t last = reading->members[end - 1].process;
        n_wanted = n_wanted ? n_wanted : end - at;
        if (last + 1 != end - at || end - at != n_wanted)
            return phema_fail(
                err, PHEMA_ERR_FILE,
                "file '%s': is of process %llu, item '%s' has files of %zu processes, "
                "expected %llu",
                reading->members[end - 1].path, (unsigned long long)last, reading->members[at].item,
                end - at, (unsigned long long)n_wanted);
    }
    return PHEMA_OK;
}

/* ---- Tensors ---- */

/* Finds the place of a tensor of a safetensors file, whose name lacks the item. */
static enum phema_status find_part(struct sharding *sharding, const uint64_t **start,
                                   struct phema_arena *arena, const struct member *member,
                                   const struct phema_tensor *part, struct phema_error *err)
{
    const struct item *item = member->metadata;
    size_t number = 0;
    enum phema_status status = PHEMA_OK;
    if (name_table_find(&number, &item->names, part->name, part->name_size))
        status = sharding_read_listed(sharding, arena, item->tensors->items.at[2 * number + 1],
                                      member->process, item->files->items.n / 2, part, err);
    else
        status = phema_fail(err, PHEMA_ERR_FILE, "is not in metadata.pkl");
    if (!status)
        status = sharding_find_part(start, arena, sharding, part, err);
    return status ? fail_in_tensor(err, status, part->name, part->name_size) : PHEMA_OK;
}

static enum phema_status read_safetensors(struct checkpointing *reading,
                                          const struct member *member, size_t file,
                                          struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = reading->checkpoint;
    struct phema_span ignored = {NULL, 0};
    enum phema_status status = safetensors_read(checkpoint, file, false, &ignored, err);
    size_t n = checkpoint->n_tensors;
    checkpoint->n_tensors = 0; /* these were the parts */
    if (!status && n != member->metadata->tensors->items.n / 2)
        status = phema_fail(err, PHEMA_ERR_FILE, "has %zu tensors, but metadata.pkl %u", n,
                            member->metadata->tensors->items.n / 2);
    const char *start_of_names = phema_arena_printf(&checkpoint->arena, "%s.", member->item);
    if (!status && !start_of_names)
        status = phema_fail_memory(err);
    for (size_t i = 0; i < n && !status; i++) {
        struct phema_tensor part = checkpoint->tensors[i];
        struct phema_span name = {(const uint8_t *)part.name, part.name_size};
        struct phema_span item = {(const uint8_t *)start_of_names, strlen(start_of_names)};
        struct sharding sharding = {.shape = NULL};
        const uint64_t *start = NULL;
        status = find_part(&sharding, &start, &checkpoint->arena, member, &part, err);
        if (!status && !set_part_name(&part, &checkpoint->arena, item, name))
            status = phema_fail_memory(err);
        if (!status)
            status = assembly_add(&reading->assembly, &part, start, sharding.shape, err);
    }
    return status;
}

static enum phema_status read_member(struct checkpointing *reading, const struct member *member,
                                     struct phema_error *err)
{
    size_t file = reading->checkpoint->n_files;
    if (member->format == ITEM_OTHER)
        return PHEMA_OK;
    reading->assembly.source = (size_t)member->process;
    const struct torch_item item = {.assembly = &reading->assembly,
                                    .name = member->item,
                                    .process = member->process,
                                    .has_dtensors = &reading->has_dtensors};
    enum phema_status status = checkpoint_add_member(reading->checkpoint, member->path, err);
    if (!status && member->format == ITEM_SAFETENSORS)
        status = read_safetensors(reading, member, file, err);
    else if (!status)
        status = torch_zip_list(reading->checkpoint, file, &item, reading->options, err);
    struct phema_name_buffer shown;
    if (status)
        return phema_fail_in(err, status, "file '%s'", phema_name_show(&shown, member->path));
    return PHEMA_OK;
}

static enum phema_status read_members(struct checkpointing *reading,
                                      const struct directory_names *names, struct phema_error *err)
{
    const char *metadata = has_name(names, metadata_name) ? metadata_name : NULL;
    enum phema_status status =
        metadata ? PHEMA_OK : find_sibling(&metadata, reading->checkpoint, err);
    if (!status && metadata)
        status = read_metadata(reading, metadata, err);
    for (size_t i = 0; i < reading->n_items && !status; i++)
        status = add_files_of_item(reading, &reading->items[i], err);
    if (!status)
        status = add_named_files(reading, names, err);
    if (status)
        return status;
    phema_sort(reading->members, reading->n, sizeof(*reading->members), compare_members, NULL);
    status = check_processes(reading, err);
    for (size_t i = 0; i < reading->n && !status; i++)
        status = read_member(reading, &reading->members[i], err);
    if (status)
        return status;
    if (!reading->has_metadata && !reading->has_dtensors)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds %zu checkpoint files and no index, metadata.pkl or DTensor, "
                          "expected one checkpoint; name the one that is meant",
                          reading->n);
    return assembly_list(&reading->assembly, err);
}

static enum phema_status open_checkpointing(struct phema_checkpoint *checkpoint,
                                            const struct directory_names *names,
                                            const struct phema_checkpoint_options *options,
                                            struct phema_error *err)
{
    const char *path = checkpoint->path;
    size_t size = strlen(path);
    while (size && path[size - 1] == '/')
        size--;
    while (size && path[size - 1] != '/')
        size--;
    if (strncmp(path + size, unfinished, sizeof(unfinished) - 1) == 0)
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "is a checkpoint that torch_checkpointing did not finish: its name begins "
            "with %s",
            unfinished);
    struct checkpointing reading = {
        .checkpoint = checkpoint, .options = options, .assembly = {.checkpoint = checkpoint}};
    enum phema_status status = read_members(&reading, names, err);
    assembly_clear(&reading.assembly);
    for (size_t i = 0; i < reading.n_items; i++)
        name_table_clear(&reading.items[i].names);
    free(reading.items);
    phema_arena_clear(&reading.nodes);
    free(reading.members);
    return status;
}

const struct phema_format torch_checkpointing_format = {
    .info = {.name = "torch-checkpointing",
             .extensions = (const struct phema_extension[]){{NULL, 0}},
             .model = "model"},
    .probe_directory = probe_directory,
    .open_directory = open_checkpointing,
};
