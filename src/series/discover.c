// SPDX-License-Identifier: Apache-2.0
/* discover.c - a directory, a @list or a manifest becomes candidates. The order of a directory,
 * file times and the locale have no influence: candidates are sorted by the bytes of their names.
 */
#include "discover.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/mapped_file.h"

void discover_note(struct discovery *scan, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    phema_strbuf_append(scan->notes, sentence, strlen(sentence) + 1);
}

struct candidate *discover_add(struct discovery *scan)
{
    if (scan->n == scan->capacity) {
        size_t capacity = scan->capacity ? 2 * scan->capacity : 64;
        struct candidate *items = phema_arena_array(scan->arena, capacity, sizeof(*items));
        if (!items)
            return NULL;
        if (scan->n)
            memcpy(items, scan->items, scan->n * sizeof(*items));
        scan->items = items;
        scan->capacity = capacity;
    }
    struct candidate *candidate = &scan->items[scan->n++];
    *candidate = (struct candidate){.named_time = PHEMA_UNKNOWN,
                                    .sigma_rel = PHEMA_UNKNOWN,
                                    .gamma = PHEMA_UNKNOWN,
                                    .index = UINT64_MAX};
    return candidate;
}

static enum phema_status add_path(struct discovery *scan, const char *directory, const char *name,
                                  struct phema_error *err)
{
    struct phema_strbuf path = {0};
    if (directory)
        phema_strbuf_printf(&path, "%s%s", directory,
                            directory[strlen(directory) - 1] == '/' ? "" : "/");
    phema_strbuf_puts(&path, name);
    enum phema_status status = phema_strbuf_check(&path, err);
    struct candidate *candidate = status ? NULL : discover_add(scan);
    if (candidate) {
        candidate->path = phema_arena_copy(scan->arena, path.data, path.size);
        candidate->label = phema_arena_copy(scan->arena, name, strlen(name));
    }
    phema_strbuf_clear(&path);
    if (!candidate || !candidate->path || !candidate->label)
        return phema_fail_memory(err);
    /* "run/snapshot-0001-0.05/" is that directory */
    size_t end = strlen(name);
    while (end > 1 && name[end - 1] == '/')
        end--;
    const char *slash = memrchr(name, '/', end);
    const char *base = slash ? slash + 1 : name;
    candidate->base = phema_arena_copy(scan->arena, base, (size_t)(name + end - base));
    return candidate->base ? PHEMA_OK : phema_fail_memory(err);
}

static int compare_candidates(const void *a, const void *b)
{
    return strcmp(((const struct candidate *)a)->base, ((const struct candidate *)b)->base);
}

/* What is hidden, and what is neither file nor directory, cannot be a snapshot. */
static bool may_be_snapshot(const char *directory, const char *name)
{
    if (name[0] == '.')
        return false;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return true; /* out of memory: the next allocation says so */
    struct stat st;
    bool is_kept = stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
    free(path);
    return is_kept;
}

static enum phema_status scan_directory(struct discovery *scan, const char *path,
                                        struct phema_error *err)
{
    DIR *directory = opendir(path);
    if (!directory)
        return phema_fail(err,
                          errno == ENOMEM || errno == EMFILE ? PHEMA_ERR_RESOURCE : PHEMA_ERR_FILE,
                          "%s: cannot be opened: %s", path, strerror(errno));
    enum phema_status status = PHEMA_OK;
    while (!status) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry) {
            if (errno)
                status = phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be listed: %s", path,
                                    strerror(errno));
            break;
        }
        if (may_be_snapshot(path, entry->d_name))
            status = add_path(scan, path, entry->d_name, err);
    }
    (void)closedir(directory);
    if (!status && scan->n)
        qsort(scan->items, scan->n, sizeof(*scan->items), compare_candidates);
    return status;
}

/* One path a line, relative to the current directory, as `ls` and `find` print them. */
static enum phema_status scan_lines(struct discovery *scan, const char *path,
                                    struct phema_span text, struct phema_error *err)
{
    const char *data = (const char *)text.data;
    enum phema_status status = PHEMA_OK;
    for (size_t at = 0; !status && at < text.size;) {
        const char *newline = memchr(data + at, '\n', text.size - at);
        size_t size = newline ? (size_t)(newline - (data + at)) : text.size - at;
        size_t next = at + size + 1;
        if (size && data[at + size - 1] == '\r')
            size--;
        if (memchr(data + at, '\0', size))
            return phema_fail(err, PHEMA_ERR_FILE, "%s: holds a NUL byte; expected one path a line",
                              path);
        char *line = size ? strndup(data + at, size) : NULL;
        if (size && !line)
            return phema_fail_memory(err);
        if (line)
            status = add_path(scan, NULL, line, err);
        free(line);
        at = next;
    }
    return status;
}

static enum phema_status scan_list(struct discovery *scan, const char *path,
                                   struct phema_error *err)
{
    struct phema_file *file = NULL;
    enum phema_status status = phema_file_open(&file, path, err);
    if (status)
        return phema_fail_in(err, status, "%s", path);
    status = scan_lines(scan, path, phema_file_span(file), err);
    phema_file_close(file);
    return status;
}

PHEMA_FALLIBLE discover_snapshots(struct discovery *scan,
                                  const struct phema_series_options *options,
                                  struct phema_error *err)
{
    const char *operand = options->snapshots;
    if (operand[0] == '@') {
        enum phema_status status = scan_list(scan, operand + 1, err);
        return status ? status : discover_names(scan, options, err);
    }
    struct stat st;
    if (stat(operand, &st))
        return phema_fail(err, PHEMA_ERR_FILE, "%s: %s", operand, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        enum phema_status status = scan_directory(scan, operand, err);
        return status ? status : discover_names(scan, options, err);
    }
    if (phema_ends_with(operand, ".json")) {
        scan->layout = &layout_manifest;
        return discover_manifest(scan, operand, err);
    }
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: is one file; expected a directory of snapshots, a manifest (*.json) or "
                      "@list.txt with one path a line",
                      operand);
}

PHEMA_FALLIBLE discover_alone(struct discovery *scan, const struct phema_series_options *options,
                              struct phema_error *err)
{
    enum phema_status status = add_path(scan, NULL, options->snapshots, err);
    scan->layout = &layout_custom;
    if (!status && !options->is_conversion)
        status = discover_names(scan, options, err);
    if (!status)
        scan->items[0].is_left_out = false;
    return status;
}
