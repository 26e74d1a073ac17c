// SPDX-License-Identifier: Apache-2.0
/* discover.c - SNAPSHOTS (directory, @list, manifest) to candidates. The order of a directory, file
 * times and the locale have no influence: candidates are sorted by the bytes of their names. */
#include "candidates.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/mapped_file.h"
#include "phema/path.h"
#include "phema/setting.h"

/* name: kept as the label; lives as long as the candidates */
static enum phema_status add_path(struct candidate_list *candidates, const char *directory,
                                  const char *name, struct phema_error *err)
{
    struct candidate *candidate = name ? candidates_add(candidates) : NULL;
    if (!candidate)
        return phema_fail_memory(err);
    bool is_slashed = directory && directory[strlen(directory) - 1] == '/';
    candidate->label = name;
    candidate->path = directory ? phema_arena_printf(candidates->arena, "%s%s%s", directory,
                                                     is_slashed ? "" : "/", name)
                                : name;
    /* "run/snapshot-0001-0.05/" is that directory */
    size_t end = strlen(name);
    while (end > 1 && name[end - 1] == '/')
        end--;
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

/* Whether the directory has NAME.json.  candidates: sorted */
static bool has_description(const struct candidate_list *candidates, const char *name)
{
    char *description = NULL;
    if (asprintf(&description, "%s.json", name) < 0)
        return true; /* it is looked for later */
    struct candidate wanted = {.base = description};
    bool has_one = bsearch(&wanted, candidates->items, candidates->n, sizeof(*candidates->items),
                           compare_candidates);
    free(description);
    return has_one;
}

static enum phema_status scan_directory(struct candidate_list *candidates, const char *path,
                                        struct phema_error *err)
{
    DIR *directory = opendir(path);
    if (!directory)
        return phema_fail(err,
                          errno == ENOMEM || errno == EMFILE ? PHEMA_ERR_RESOURCE : PHEMA_ERR_FILE,
                          "%s: cannot be opened: %s", path, strerror(errno));
    enum phema_status status = list_directory(candidates, directory, path, err);
    (void)closedir(directory);
    if (!status && candidates->n)
        qsort(candidates->items, candidates->n, sizeof(*candidates->items), compare_candidates);
    for (size_t i = 0; i < candidates->n && !status; i++)
        if (has_description(candidates, candidates->items[i].base))
            candidates->items[i].is_undescribed = false;
    return status;
}

/* Lines are paths relative to the current directory, as `ls` and `find` print them. */
static enum phema_status scan_lines(struct candidate_list *candidates, const char *path,
                                    struct phema_span text, struct phema_error *err)
{
    const char *data = (const char *)text.data;
    for (size_t at = 0; at < text.size;) {
        const char *newline = memchr(data + at, '\n', text.size - at);
        size_t size = newline ? (size_t)(newline - (data + at)) : text.size - at;
        size_t next = at + size + 1;
        if (size && data[at + size - 1] == '\r')
            size--;
        if (memchr(data + at, '\0', size))
            return phema_fail(err, PHEMA_ERR_FILE, "%s: holds a NUL byte; expected one path a line",
                              path);
        if (size) {
            const char *line = phema_arena_copy(candidates->arena, data + at, size);
            enum phema_status status = add_path(candidates, NULL, line, err);
            if (status)
                return status;
        }
        at = next;
    }
    return PHEMA_OK;
}

static enum phema_status scan_list(struct candidate_list *candidates, const char *path,
                                   struct phema_error *err)
{
    struct phema_file *file = NULL;
    enum phema_status status = phema_file_open(&file, path, err);
    if (status)
        return phema_fail_in(err, status, "%s", path);
    status = scan_lines(candidates, path, phema_file_span(file), err);
    phema_file_close(file);
    return status;
}

PHEMA_FALLIBLE discover_snapshots(struct candidate_list *candidates,
                                  const struct phema_series_options *options,
                                  struct phema_error *err)
{
    const char *operand = options->snapshots;
    if (operand[0] == '@') {
        enum phema_status status = scan_list(candidates, operand + 1, err);
        return status ? status : file_names_read(candidates, options, err);
    }
    if (!*operand)
        return phema_fail(err, PHEMA_ERR_USAGE, "SNAPSHOTS is empty");
    struct stat st;
    if (stat(operand, &st))
        return phema_fail(err, PHEMA_ERR_FILE, "%s: %s", operand,
                          phema_path_reason(operand, errno));
    if (S_ISDIR(st.st_mode)) {
        enum phema_status status = scan_directory(candidates, operand, err);
        return status ? status : file_names_read(candidates, options, err);
    }
    if (phema_ends_with(operand, ".json")) {
        candidates->layout = &layout_manifest;
        return manifest_read(candidates, operand, err);
    }
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_INPUTS,
                   "%s: is one file; expected a directory of snapshots, a manifest (*.json) or "
                   "@list.txt with one path a line",
                   operand);
    const char *slash = strrchr(operand, '/');
    const char *directory =
        phema_arena_printf(candidates->arena, "%.*s", slash ? (int)(slash - operand) : 0, operand);
    if (slash && directory && *directory)
        return phema_suggest(err, status, PHEMA_SET_SNAPSHOTS, directory);
    if (phema_ends_with(operand, ".txt") || phema_ends_with(operand, ".list"))
        return phema_suggest(err, status, PHEMA_SET_SNAPSHOTS,
                             phema_arena_printf(candidates->arena, "@%s", operand));
    return phema_format_from_path(NULL, operand, 0)
               ? phema_suggest(err, status, PHEMA_SET_INSPECTED, operand)
               : status;
}

PHEMA_FALLIBLE discover_checkpoint(struct candidate_list *candidates,
                                   const struct phema_series_options *options,
                                   struct phema_error *err)
{
    candidates->layout = &layout_custom;
    enum phema_status status = add_path(candidates, NULL, options->snapshots, err);
    if (!status && !options->is_conversion)
        status = file_names_read(candidates, options, err);
    if (status)
        return status;
    candidates->items[0].is_left_out = false; /* its name need not fit a pattern */
    return PHEMA_OK;
}
