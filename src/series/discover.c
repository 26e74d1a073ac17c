// SPDX-License-Identifier: Apache-2.0
/* discover.c - SNAPSHOTS (directory, @list, manifest) to candidates; name_patterns.c reads their names.
 * The order of a directory, file times and the locale have no influence: candidates are sorted by
 * the bytes of their names. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/json.h"
#include "phema/mapped_file.h"
#include "phema/path.h"
#include "series_builder.h"
#include "sets.h"

/* ---- Paths ---- */

/* name: kept as the label; lives as long as the candidates */
static enum phema_status add_path(struct candidate_list *candidates, const char *directory,
                                  const char *name, struct phema_error *err)
{
    struct candidate *candidate = name ? candidates_add(candidates) : NULL;
    if (!candidate)
        return phema_fail_memory(err);
    bool is_slashed = directory && directory[strlen(directory) - 1] == '/';
    candidate->path = directory ? phema_arena_printf(candidates->arena, "%s%s%s", directory,
                                                     is_slashed ? "" : "/", name)
                                : name;
    candidate->label = candidates->has_several ? candidate->path : name;
    /* "run/snapshot-0001-0.05/" is that directory */
    size_t end = phema_path_trimmed_size(name);
    const char *slash = memrchr(name, '/', end);
    const char *base = slash ? slash + 1 : name;
    candidate->base = phema_arena_copy(candidates->arena, base, (size_t)(name + end - base));
    return candidate->path && candidate->base ? PHEMA_OK : phema_fail_memory(err);
}

static int compare_candidates(const void *a, const void *b)
{
    return strcmp(((const struct candidate *)a)->base, ((const struct candidate *)b)->base);
}

/* Hidden entries, and those that are neither file nor directory, cannot be snapshots.
 *   is_file  out: it is certainly no directory */
static bool may_be_snapshot(bool *is_file, const char *directory, const char *name)
{
    *is_file = false;
    if (name[0] == '.')
        return false;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return true; /* out of memory: the next allocation reports it */
    struct stat st;
    bool is_there = stat(path, &st) == 0;
    *is_file = is_there && S_ISREG(st.st_mode);
    free(path);
    return !is_there || *is_file || S_ISDIR(st.st_mode);
}

static enum phema_status list_directory(struct candidate_list *candidates, DIR *directory,
                                        const char *path, struct phema_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry && errno)
            return phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be listed: %s", path,
                              strerror(errno));
        if (!entry)
            return PHEMA_OK;
        bool is_file;
        if (!may_be_snapshot(&is_file, path, entry->d_name))
            continue;
        enum phema_status status = add_path(
            candidates, path,
            phema_arena_copy(candidates->arena, entry->d_name, strlen(entry->d_name)), err);
        if (status)
            return status;
        candidates->items[candidates->n - 1].is_undescribed = is_file;
    }
}

/* "step600-merged": the size of "step"; 0: another name. */
static size_t merged_name_size(const char *base)
{
    size_t size = strlen(base);
    size_t end =
        phema_ends_with(base, "-merged") || phema_ends_with(base, "_merged") ? size - 7 : 0;
    size_t begin = end;
    while (begin > 0 && isdigit((unsigned char)base[begin - 1]))
        begin--;
    return begin < end ? begin : 0;
}

/* Trainers such as OLMo-core write merges of their newest steps beside these. A merge is no snapshot
 * of the training, unless there are no others of its name. */
static enum phema_status leave_out_merged(struct candidate_list *candidates, size_t first,
                                          struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    size_t n = first;
    for (size_t i = first; i < candidates->n && !status; i++) {
        const struct candidate item = candidates->items[i];
        size_t size = candidates->takes_merged ? 0 : merged_name_size(item.base);
        bool is_beside = false;
        for (size_t j = first; j < candidates->n && size && !is_beside; j++) {
            const char *other = candidates->items[j].base;
            is_beside = strncmp(other, item.base, size) == 0 && !merged_name_size(other);
        }
        if (is_beside)
            status = recognised_leave_out(candidates, item.label,
                                          "a merge of snapshots, which is none itself", err);
        else
            candidates->items[n++] = item;
    }
    candidates->n = n;
    return status;
}

static enum phema_status scan_directory(struct candidate_list *candidates, const char *path,
                                        struct phema_error *err)
{
    enum phema_status status;
    size_t first = candidates->n;
    DIR *directory = opendir(path);
    if (!directory) {
        status = phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be opened", errno);
        return phema_fail_in(err, status, "%s", path);
    }
    status = list_directory(candidates, directory, path, err);
    (void)closedir(directory);
    size_t n = candidates->n - first;
    struct candidate *items = candidates->items + first;
    if (!status && n)
        qsort(items, n, sizeof(*items), compare_candidates);
    for (size_t i = 0; i < n && !status; i++) {
        struct candidate description = {
            .base = phema_arena_printf(candidates->arena, "%s.json", items[i].base)};
        if (!description.base ||
            bsearch(&description, items, n, sizeof(description), compare_candidates))
            items[i].is_undescribed = false;
    }
    return status ? status : leave_out_merged(candidates, first, err);
}

/* The path of a line: relative to the current directory, as `ls` and `find` print them, or where
 * nothing is there, to that of the list. NULL: no memory */
static char *find_listed(struct phema_arena *arena, const char *list, struct phema_span line)
{
    char *path = phema_arena_copy(arena, line.data, line.size);
    const char *slash = strrchr(list, '/');
    if (!path || !slash || path[0] == '/' || phema_path_exists(path))
        return path;
    char *beside = phema_arena_printf(arena, "%.*s/%s", (int)(slash - list), list, path);
    return beside && phema_path_exists(beside) ? beside : path;
}

/* ---- Several operands ---- */

/* Whether a directory is a checkpoint, or has the name of one, whatever it holds. */
static enum phema_status is_snapshot_folder(bool *is_snapshot, struct phema_arena *arena,
                                            const char *path, struct phema_error *err)
{
    struct candidate_list named = {.arena = arena};
    *is_snapshot = phema_directory_has_model(path, true) ||
                   phema_directory_is_checkpoint(path, true) || phema_directory_has_parts(path);
    if (*is_snapshot)
        return PHEMA_OK;
    enum phema_status status = add_path(&named, NULL, path, err);
    return status ? status : names_are_known(is_snapshot, &named, err);
}

/* JSON files beside checkpoints, which a pattern of a shell lists as well, are something else. */
static bool is_manifest(const char *path)
{
    struct phema_file *file = NULL;
    struct phema_json *root = NULL;
    struct phema_error ignored = {0};
    if (!phema_ends_with(path, ".json") || phema_file_open(&file, path, &ignored))
        return false;
    bool is_read = !phema_json_parse(&root, phema_file_span(file), &ignored);
    bool has_snapshots =
        is_read && phema_json_type(root) == PHEMA_JSON_OBJECT && phema_json_get(root, "snapshots");
    phema_json_free(root);
    phema_file_close(file);
    return has_snapshots;
}

/* A snapshot, or a directory of some. */
static enum phema_status scan_path(struct candidate_list *candidates, const char *path,
                                   struct phema_error *err)
{
    struct stat st;
    if (!*path || stat(path, &st))
        return phema_fail(err, PHEMA_ERR_FILE, "%s: %s", path,
                          phema_path_reason(path, *path ? errno : ENOENT));
    bool is_snapshot = !S_ISDIR(st.st_mode);
    if (is_snapshot && is_manifest(path))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "%s: is a manifest, which names all snapshots; expected no others "
                          "beside it",
                          path);
    enum phema_status status = PHEMA_OK;
    if (!is_snapshot)
        status = is_snapshot_folder(&is_snapshot, candidates->arena, path, err);
    if (status)
        return status;
    return is_snapshot ? add_path(candidates, NULL, path, err)
                       : scan_directory(candidates, path, err);
}

static enum phema_status scan_listed(struct candidate_list *candidates, const char *list,
                                     struct phema_span line, struct phema_error *err)
{
    const char *path = find_listed(candidates->arena, list, line);
    if (!path)
        return phema_fail_memory(err);
    if (!phema_path_exists(path))
        return phema_fail(err, PHEMA_ERR_FILE, "%s: %s: %s", list, path,
                          phema_path_reason(path, ENOENT));
    return scan_path(candidates, path, err);
}

static enum phema_status scan_list(struct candidate_list *candidates, const char *path,
                                   struct phema_error *err)
{
    struct phema_file *file = NULL;
    enum phema_status status = phema_file_open(&file, path, err);
    if (status)
        return phema_fail_in(err, status, "%s", path);
    struct phema_span text = phema_file_span(file);
    while (text.size && !status) {
        struct phema_span line = phema_span_split(&text, '\n');
        line.size -= line.size && line.data[line.size - 1] == '\r';
        if (memchr(line.data, '\0', line.size))
            status = phema_fail(err, PHEMA_ERR_FILE,
                                "%s: holds a NUL byte; expected one path a line", path);
        else if (line.size)
            status = scan_listed(candidates, path, line, err);
    }
    phema_file_close(file);
    return status;
}

static enum phema_status scan_operand(struct candidate_list *candidates, const char *operand,
                                      struct phema_error *err)
{
    return operand[0] == '@' ? scan_list(candidates, operand + 1, err)
                             : scan_path(candidates, operand, err);
}

static int compare_places(const void *a, const void *b)
{
    int order = compare_candidates(a, b);
    return order ? order
                 : strcmp(((const struct candidate *)a)->path, ((const struct candidate *)b)->path);
}

/* A component of a path, counted from its end; its size is 0 where there is none. */
static struct phema_span component_of(const char *path, size_t depth)
{
    for (size_t end = strlen(path);;) {
        while (end > 0 && path[end - 1] == '/')
            end--;
        const char *slash = memrchr(path, '/', end);
        size_t begin = slash ? (size_t)(slash - path) + 1 : 0;
        if (end == 0 || depth-- == 0)
            return (struct phema_span){(const uint8_t *)path + begin, end - begin};
        end = begin;
    }
}

static bool are_alike(const struct candidate_list *candidates, size_t depth)
{
    struct phema_span first = component_of(candidates->items[0].path, depth);
    for (size_t i = 1; i < candidates->n; i++) {
        struct phema_span other = component_of(candidates->items[i].path, depth);
        if (other.size != first.size || memcmp(other.data, first.data, first.size) != 0)
            return false;
    }
    return first.size > 0;
}

/* Listed files of one name are called as the folders that tell them apart: "200/unet" is 200. */
static enum phema_status name_by_folders(struct candidate_list *candidates, struct phema_error *err)
{
    size_t depth = 0;
    while (candidates->n > 1 && are_alike(candidates, depth))
        depth++;
    for (size_t i = 0; i < candidates->n && depth; i++) {
        struct candidate *candidate = &candidates->items[i];
        struct phema_span folder = component_of(candidate->path, depth);
        const char *dot =
            phema_path_is_directory(candidate->path) ? NULL : strchr(candidate->base, '.');
        candidate->base =
            phema_arena_printf(candidates->arena, "%.*s%s", (int)folder.size,
                               folder.size ? (const char *)folder.data : "", dot ? dot : "");
        if (!candidate->base)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

/* A directory that is named twice, or beside a file of it. Links of other names are other snapshots. */
static enum phema_status check_twice(const struct candidate_list *candidates,
                                     struct phema_error *err)
{
    struct stat first, second;
    for (size_t i = 1; i < candidates->n; i++) {
        const struct candidate *a = &candidates->items[i - 1], *b = &candidates->items[i];
        if (strcmp(a->base, b->base) == 0 && stat(a->path, &first) == 0 &&
            stat(b->path, &second) == 0 && first.st_dev == second.st_dev &&
            first.st_ino == second.st_ino)
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "%s: is among SNAPSHOTS twice; name each directory and file once",
                              b->path);
    }
    return PHEMA_OK;
}

static enum phema_status scan_several(struct candidate_list *candidates,
                                      const struct phema_series_options *options,
                                      struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    candidates->has_several = true;
    for (size_t i = 0; i < options->n_several && !status; i++)
        status = scan_operand(candidates, options->several[i], err);
    return status;
}

/* The order of operands and lines has no influence. */
static enum phema_status sort_places(struct candidate_list *candidates, struct phema_error *err)
{
    if (candidates->n)
        qsort(candidates->items, candidates->n, sizeof(*candidates->items), compare_places);
    return check_twice(candidates, err);
}

PHEMA_FALLIBLE discover_snapshots(struct candidate_list *candidates,
                                  const struct phema_series_options *options,
                                  struct phema_error *err)
{
    const char *operand = options->snapshots;
    enum phema_status status;
    if (options->n_several || operand[0] == '@') {
        status = options->n_several ? scan_several(candidates, options, err)
                                    : scan_list(candidates, operand + 1, err);
        if (!status)
            status = name_by_folders(candidates, err);
        if (!status)
            status = sort_places(candidates, err);
        return status ? status : names_read(candidates, options, err);
    }
    if (!*operand)
        return phema_fail(err, PHEMA_ERR_USAGE, "SNAPSHOTS is empty");
    struct stat st;
    if (stat(operand, &st))
        return phema_fail(err, PHEMA_ERR_FILE, "%s: %s", operand,
                          phema_path_reason(operand, errno));
    if (S_ISDIR(st.st_mode)) {
        status = scan_directory(candidates, operand, err);
        return status ? status : names_read(candidates, options, err);
    }
    if (phema_ends_with(operand, ".json")) {
        candidates->layout = &layout_manifest;
        return manifest_read(candidates, operand, err);
    }
    candidates->is_one_file = true;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: is one file; expected several, a directory of snapshots, a manifest "
                      "(*.json) or @list.txt with one path a line",
                      operand);
}

PHEMA_FALLIBLE discover_checkpoint(struct candidate_list *candidates,
                                   const struct phema_series_options *options,
                                   struct phema_error *err)
{
    candidates->layout = &layout_custom;
    enum phema_status status = add_path(candidates, NULL, options->snapshots, err);
    if (!status && !options->is_conversion)
        status = names_read(candidates, options, err);
    if (status)
        return status;
    candidates->items[0].is_left_out = false; /* its name need not fit a pattern */
    return PHEMA_OK;
}
