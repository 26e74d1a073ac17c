// SPDX-License-Identifier: Apache-2.0
/* part_list.c - the markers of an output, PATH.part-I-of-N: their names, the outputs that have them,
 * whether an earlier run has finished a part, and the removal of those of an output that is published
 * already. Another team of processes that ran the same command may write a part when the output is
 * there: it looked before, and found none. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "part.h"
#include "phema/array.h"
#include "phema/path.h"

/* ---- Names ---- */

static const char infix[] = ".part-", of[] = "-of-";

char *part_marker_path(const char *path, uint64_t part, uint64_t n_parts)
{
    char *out = NULL;
    int size = asprintf(&out, "%s%s%llu%s%llu", path, infix, (unsigned long long)part, of,
                        (unsigned long long)n_parts);
    return size < 0 ? NULL : out;
}

char *part_frames_path(const char *marker_path)
{
    return path_add(marker_path, ".frames");
}

/* Parses a number from 1 on, without leading zeros. Returns the text after it, or NULL. */
static const char *read_number(uint64_t *out, const char *text)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && value <= PHEMA_MAX_PARTS; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    if (at == text || *text == '0' || value > PHEMA_MAX_PARTS)
        return NULL;
    *out = value;
    return at;
}

/* The ".part-I-of-N" at the end of a name, or NULL. */
static const char *find_suffix(uint64_t *part, uint64_t *n_parts, const char *name)
{
    const char *found = NULL;
    for (const char *at = name; (at = strstr(at, infix)); at++)
        found = at;
    const char *after = found ? read_number(part, found + strlen(infix)) : NULL;
    if (!after || strncmp(after, of, strlen(of)) != 0)
        return NULL;
    after = read_number(n_parts, after + strlen(of));
    return after && !*after && found != name && *part <= *n_parts ? found : NULL;
}

static int compare_names(const void *a, const void *b)
{
    const struct part_marker_name *left = a, *right = b;
    int order = strcmp(left->output, right->output);
    if (order)
        return order;
    if (left->n_parts != right->n_parts)
        return left->n_parts < right->n_parts ? -1 : 1;
    return (left->part > right->part) - (left->part < right->part);
}

/* ---- Lists ---- */

/* The markers of the output path in this directory, or with path NULL those of all outputs. Empty
 * where the directory does not exist. */
static enum phema_status list_markers(struct part_marker_list *out, const char *directory,
                                      const char *path, struct phema_error *err)
{
    DIR *stream = opendir(directory);
    if (!stream && (errno == ENOENT || errno == ENOTDIR))
        return PHEMA_OK;
    if (!stream)
        return writer_fail_errno(err, directory, "cannot be listed", errno);
    enum phema_status status = PHEMA_OK;
    const char *name = NULL, *base = path ? phema_path_last_name(path) : NULL;
    while (!status && (name = directory_next_name(stream))) {
        struct part_marker_name item = {.part = 0};
        const char *end = find_suffix(&item.part, &item.n_parts, name);
        size_t size = end ? (size_t)(end - name) : 0;
        if (!end || (base && (strlen(base) != size || memcmp(base, name, size) != 0)))
            continue;
        if (phema_array_grow(&out->items, &out->capacity, out->n, sizeof(*out->items))) {
            if (path)
                item.output = strdup(path);
            else if (asprintf(&item.output, "%s/%.*s", strcmp(directory, "/") == 0 ? "" : directory,
                              (int)size, name) < 0)
                item.output = NULL;
            item.path = path_add(item.output, end);
            out->items[out->n++] = item;
        }
        if (!item.path)
            status = phema_fail_memory(err);
    }
    if (!status && errno)
        status = writer_fail_errno(err, directory, "cannot be listed", errno);
    (void)closedir(stream);
    if (status)
        part_marker_list_clear(out);
    else if (out->n)
        qsort(out->items, out->n, sizeof(*out->items), compare_names);
    return status;
}

PHEMA_FALLIBLE part_marker_list_make(struct part_marker_list *out, const char *path,
                                     struct phema_error *err)
{
    char *directory = phema_path_directory(path);
    if (!directory)
        return phema_fail_memory(err);
    enum phema_status status = list_markers(out, directory, path, err);
    free(directory);
    return status;
}

void part_marker_list_clear(struct part_marker_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].output);
        free(list->items[i].path);
    }
    free(list->items);
    *list = (struct part_marker_list){0};
}

/* ---- Outputs that have parts ---- */

PHEMA_FALLIBLE writer_check_no_parts(const char *path, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, path, err);
    if (status || !list.n)
        return status;
    const char *name = phema_path_last_name(path);
    status = phema_fail(err, PHEMA_ERR_OUTPUT,
                        "%s: parts are here, such as %s.part-%llu-of-%llu; publish them "
                        "with posthoc-ema join, or remove %s.partial and all %s.part-*",
                        path, name, (unsigned long long)list.items[0].part,
                        (unsigned long long)list.items[0].n_parts, name, name);
    part_marker_list_clear(&list);
    return status;
}

PHEMA_FALLIBLE phema_writer_find_parts(char ***out, size_t *n, const char *path,
                                       struct phema_error *err)
{
    struct part_marker_list list = {0};
    char *own = phema_path_trim(path);
    enum phema_status status =
        own ? part_marker_list_make(&list, own, err) : phema_fail_memory(err);
    if (!status && !list.n) /* a directory of outputs */
        status = list_markers(&list, own, NULL, err);
    char **paths = status ? NULL : calloc(list.n + 1, sizeof(*paths));
    if (!status && !paths)
        status = phema_fail_memory(err);
    size_t n_paths = 0;
    for (size_t i = 0; i < list.n && !status; i++) {
        if (n_paths && strcmp(list.items[i].output, paths[n_paths - 1]) == 0)
            continue;
        paths[n_paths++] = list.items[i].output;
        list.items[i].output = NULL;
    }
    part_marker_list_clear(&list);
    free(own);
    if (status)
        return status;
    *out = paths;
    *n = n_paths;
    return PHEMA_OK;
}

/* ---- A part that is done ---- */

static bool is_inode(const char *path, uint64_t inode)
{
    struct stat st;
    return inode && path && lstat(path, &st) == 0 && (uint64_t)st.st_ino == inode;
}

/* Owns path, NULL without memory. */
static bool is_file_of(char *path, uint64_t size_bytes)
{
    struct stat st;
    bool is =
        path && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size_bytes;
    free(path);
    return is;
}

PHEMA_FALLIBLE phema_writer_part_is_done(bool *out, const char *path, uint64_t part,
                                         uint64_t n_parts, const char *digest,
                                         struct phema_error *err)
{
    struct part_marker marker = {0};
    char *own = phema_path_trim(path), *partial_path = path_add(own, ".partial");
    char *marker_path = own ? part_marker_path(own, part, n_parts) : NULL;
    *out = false;
    enum phema_status status =
        marker_path ? part_marker_read(&marker, marker_path, err) : phema_fail_memory(err);
    if (!status && marker.state == MARKER_DONE && strcmp(marker.digest, digest) == 0)
        *out = is_inode(own, marker.inode) ||
               (is_inode(partial_path, marker.inode) &&
                (!marker.is_compressed ||
                 (is_file_of(path_add(own, PHEMA_PLAIN_SUFFIX ".partial"),
                             marker.files[0].size_bytes) &&
                  (!marker.frames_bytes ||
                   is_file_of(part_frames_path(marker_path), marker.frames_bytes)))));
    part_marker_clear(&marker);
    free(marker_path);
    free(partial_path);
    free(own);
    return status;
}

/* Owns path, NULL without memory. */
static enum phema_status remove_file(char *path, struct phema_error *err)
{
    enum phema_status status = path ? PHEMA_OK : phema_fail_memory(err);
    if (!status && unlink(path) && errno != ENOENT)
        status = writer_fail_errno(err, path, "cannot be removed", errno);
    free(path);
    return status;
}

PHEMA_FALLIBLE part_marker_remove(const char *path, uint64_t inode, bool has_frames,
                                  struct phema_error *err)
{
    int descriptor = -1;
    struct part_marker marker = {0};
    enum phema_status status =
        leftover_open(&descriptor, AT_FDCWD, path, path, O_RDWR, S_IFREG, err);
    if (status)
        return status;
    bool is_running =
        descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (!is_running)
        status = part_marker_read(&marker, path, err);
    bool is_ours = !is_running && !status &&
                   (!inode || marker.state == MARKER_ABSENT || marker.inode == inode);
    part_marker_clear(&marker);
    if (is_ours && has_frames)
        status = remove_file(part_frames_path(path), err);
    if (is_ours && !status)
        status = remove_file(path_add(path, ""), err);
    char *journal = is_ours && !status ? path_add(path, ".journal") : NULL;
    if (journal)
        phema_writer_journal_remove(journal);
    free(journal);
    if (descriptor >= 0)
        (void)close(descriptor);
    return status;
}

/* ---- All parts of an output ---- */

/* *is_joined: a part is in PATH. Its join was killed, and the next one finishes it. */
static enum phema_status drop_markers(bool *is_joined, const char *path, const char *digest,
                                      bool removes, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, path, err);
    for (size_t i = 0; i < list.n && !status && !*is_joined; i++) {
        struct part_marker marker = {0};
        status = part_marker_read(&marker, list.items[i].path, err);
        bool is_ours = !status && marker.state == MARKER_DONE && strcmp(marker.digest, digest) == 0;
        *is_joined = is_ours && is_inode(path, marker.inode);
        if (is_ours && !*is_joined && removes)
            status =
                part_marker_remove(list.items[i].path, marker.inode, marker.is_compressed, err);
        part_marker_clear(&marker);
    }
    part_marker_list_clear(&list);
    return status;
}

/* Unless a run writes it, or it has a journal or a marker. It is locked then, so that no part opens
 * it before it has no name. */
static enum phema_status remove_partial(const char *path, struct phema_error *err)
{
    struct stat st, journal_st;
    struct pending left;
    struct part_marker_list list = {0};
    bool is_locked = false;
    char *journal = path_add(path, ".journal");
    bool is_made = pending_init(&left, path, ".partial");
    enum phema_status status = is_made && journal ? PHEMA_OK : phema_fail_memory(err);
    if (!status && lstat(left.partial_path, &st) == 0 && lstat(journal, &journal_st)) {
        left.is_directory = S_ISDIR(st.st_mode);
        status = pending_open_left(&left, &is_locked, false, err);
    }
    is_locked = is_locked && !status && left.lock >= 0;
    if (is_locked)
        status = part_marker_list_make(&list, path, err);
    bool is_removed = is_locked && !status && !list.n;
    if (is_removed)
        status = remove_file(path_add(path, PHEMA_PLAIN_SUFFIX ".partial"), err);
    if (is_removed && !status && left.is_directory) {
        directory_remove_unwanted(left.lock, 0, NULL, NULL);
        (void)rmdir(left.partial_path);
    } else if (is_removed && !status) {
        status = remove_file(path_add(left.partial_path, ""), err);
    }
    part_marker_list_clear(&list);
    free(journal);
    pending_clear(&left);
    return status;
}

PHEMA_FALLIBLE phema_writer_parts_drop(const char *path, const char *digest,
                                       struct phema_error *err)
{
    bool is_joined = false;
    char *own = phema_path_trim(path);
    enum phema_status status =
        own ? drop_markers(&is_joined, own, digest, false, err) : phema_fail_memory(err);
    if (!status && !is_joined)
        status = drop_markers(&is_joined, own, digest, true, err);
    if (!status && !is_joined)
        status = remove_partial(own, err);
    free(own);
    return status;
}
