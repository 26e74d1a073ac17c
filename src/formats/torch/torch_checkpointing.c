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
#include "phema/sort.h"
#include "phema/strbuf.h"
#include "torch/checkpointing_metadata.h"
#include "torch/torch.h"

static const char metadata_name[] = "metadata.pkl";
static const char unfinished[] = "tmp_"; /* begins the name of a directory that is being written */

/* A file of one process. */
struct member {
    const char *item, *path; /* the path is relative to the directory */
    uint64_t process;
    enum item_format format;
    const struct checkpointing_item *metadata; /* NULL: metadata.pkl does not have the item */
};

struct checkpointing {
    struct phema_checkpoint *checkpoint;
    const struct phema_checkpoint_options *options;
    struct checkpointing_metadata metadata;
    bool has_metadata, has_dtensors;
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

/* ---- metadata.pkl ---- */

static enum phema_status read_metadata(struct checkpointing *reading, const char *path,
                                       struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = reading->checkpoint;
    reading->has_metadata = true;
    enum phema_status status = checkpoint_add_member(checkpoint, path, err);
    if (!status)
        status = checkpointing_metadata_read(
            &reading->metadata, checkpoint_content(checkpoint, checkpoint->n_files - 1),
            reading->options, err);
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
static enum phema_status choose_sibling(char **path, DIR *parent, const char *own,
                                        const char *directory, struct phema_error *err)
{
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
        char *file = NULL, *full = NULL;
        if (asprintf(&file, "../%s/%s", entry->d_name, metadata_name) < 0)
            return phema_fail_memory(err);
        if (asprintf(&full, "%s/%s", directory, file) < 0) {
            free(file);
            return phema_fail_memory(err);
        }
        struct stat st;
        bool is_there = stat(full, &st) == 0 && S_ISREG(st.st_mode);
        free(full);
        if (!is_there) {
            free(file);
            continue;
        }
        free(*path);
        *path = file;
        best_distance = distance;
    }
    return PHEMA_OK;
}

/* The synchronous saver writes metadata.pkl with its first checkpoint only. */
static enum phema_status find_sibling(char **path, const struct checkpointing *reading,
                                      struct phema_error *err)
{
    const char *directory = reading->checkpoint->path;
    char *own = realpath(directory, NULL), *above = NULL;
    DIR *parent = NULL;
    if (asprintf(&above, "%s/..", directory) < 0)
        above = NULL;
    if (above)
        parent = opendir(above);
    enum phema_status status = PHEMA_OK;
    if (own && parent)
        status = choose_sibling(path, parent, strrchr(own, '/') + 1, directory, err);
    if (parent)
        (void)closedir(parent);
    free(above);
    free(own);
    return status;
}

static enum phema_status find_metadata(struct checkpointing *reading,
                                       const struct directory_names *names, struct phema_error *err)
{
    char *path = NULL;
    if (has_name(names, metadata_name))
        return read_metadata(reading, metadata_name, err);
    enum phema_status status = find_sibling(&path, reading, err);
    if (!status && path)
        status = read_metadata(reading, path, err);
    free(path);
    return status;
}

/* ---- Members ---- */

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

static enum phema_status add_files_of_item(struct checkpointing *reading,
                                           const struct checkpointing_item *item,
                                           struct phema_error *err)
{
    struct phema_arena *arena = &reading->checkpoint->arena;
    for (uint64_t process = 0; process < reading->metadata.n_processes; process++) {
        struct member member = {.item = item->name, .process = process, .metadata = item};
        struct phema_span path = {NULL, 0};
        enum phema_status status =
            checkpointing_find_file(&path, &member.format, item, process, err);
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

static bool metadata_has_item(const struct checkpointing *reading, const char *name, size_t size)
{
    for (size_t i = 0; i < reading->metadata.n_items; i++)
        if (strlen(reading->metadata.items[i].name) == size &&
            memcmp(reading->metadata.items[i].name, name, size) == 0)
            return true;
    return false;
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
            strcmp(strrchr(name, '.'), torch_extensions[0].text) != 0 ||
            metadata_has_item(reading, name, size))
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
    uint64_t n_wanted = reading->has_metadata ? reading->metadata.n_processes : 0;
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

/* Tensors of one safetensors file, whose names lack the item. */
static enum phema_status add_parts(struct checkpointing *reading, const struct member *member,
                                   size_t n, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = reading->checkpoint;
    struct phema_arena *arena = &checkpoint->arena;
    for (size_t i = 0; i < n; i++) {
        struct phema_tensor part = checkpoint->tensors[i];
        struct sharding sharding;
        const uint64_t *start = NULL;
        enum phema_status status = checkpointing_find_sharding(&sharding, arena, member->metadata,
                                                               member->process, &part, err);
        if (!status)
            status = sharding_find_part(&start, arena, &sharding, &part, err);
        if (status)
            return fail_in_tensor(err, status, part.name, part.name_size);
        size_t item_size = strlen(member->item);
        char *name = phema_arena_alloc(arena, item_size + part.name_size + 2);
        if (!name)
            return phema_fail_memory(err);
        memcpy(name, member->item, item_size);
        name[item_size] = '.';
        memcpy(name + item_size + 1, part.name, part.name_size);
        part.name = name;
        part.name_size += item_size + 1;
        status = assembly_add(&reading->assembly, &part, start, sharding.shape, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static enum phema_status read_safetensors(struct checkpointing *reading,
                                          const struct member *member, size_t file,
                                          struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = reading->checkpoint;
    struct phema_span ignored = {NULL, 0};
    enum phema_status status = safetensors_read_shard(&ignored, checkpoint, file, false, err);
    size_t n = checkpoint->n_tensors;
    checkpoint->n_tensors = 0; /* these were the parts */
    if (!status && n != member->metadata->tensors->items.n / 2)
        status = phema_fail(err, PHEMA_ERR_FILE, "has %zu tensors, but metadata.pkl %u", n,
                            member->metadata->tensors->items.n / 2);
    return status ? status : add_parts(reading, member, n, err);
}

static enum phema_status read_member(struct checkpointing *reading, const struct member *member,
                                     struct phema_error *err)
{
    size_t file = reading->checkpoint->n_files;
    if (member->format == ITEM_OTHER)
        return PHEMA_OK;
    reading->assembly.source = (size_t)member->process;
    enum phema_status status = checkpoint_add_member(reading->checkpoint, member->path, err);
    if (!status && member->format == ITEM_SAFETENSORS)
        status = read_safetensors(reading, member, file, err);
    else if (!status)
        status = torch_zip_list_item(&(struct torch_item){.assembly = &reading->assembly,
                                                          .name = member->item,
                                                          .process = member->process,
                                                          .has_dtensors = &reading->has_dtensors},
                                     file, reading->options, err);
    struct phema_name_buffer shown;
    if (status)
        return phema_fail_in(err, status, "file '%s'",
                             phema_name_escape(&shown, member->path, strlen(member->path)));
    return PHEMA_OK;
}

static enum phema_status read_members(struct checkpointing *reading,
                                      const struct directory_names *names, struct phema_error *err)
{
    enum phema_status status = find_metadata(reading, names, err);
    for (size_t i = 0; i < reading->metadata.n_items && !status; i++)
        status = add_files_of_item(reading, &reading->metadata.items[i], err);
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

static bool is_unfinished(const char *path)
{
    size_t size = strlen(path);
    while (size && path[size - 1] == '/')
        size--;
    while (size && path[size - 1] != '/')
        size--;
    return strncmp(path + size, unfinished, sizeof(unfinished) - 1) == 0;
}

static enum phema_status open_checkpointing(struct phema_checkpoint *checkpoint,
                                            const struct directory_names *names,
                                            const struct phema_checkpoint_options *options,
                                            struct phema_error *err)
{
    if (is_unfinished(checkpoint->path))
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "is a checkpoint that torch_checkpointing did not finish: its name begins "
            "with %s",
            unfinished);
    struct checkpointing reading = {
        .checkpoint = checkpoint, .options = options, .assembly = {.checkpoint = checkpoint}};
    enum phema_status status = read_members(&reading, names, err);
    assembly_clear(&reading.assembly);
    checkpointing_metadata_clear(&reading.metadata);
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
