// SPDX-License-Identifier: Apache-2.0
/* part.c - one process' part of an output. Nothing here relies on locks alone, since network
 * filesystems may have none that reach over machines: what is shared is never emptied, only brought
 * to its size, which is the same for all parts that go together; and a part writes what it is part
 * of into its marker before it looks at those of the others, so that of two that do not go together
 * at least one sees the other. */
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "partial.h"
#include "phema/cleanup.h"

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum phema_status fail_memory(const char *path, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
}

/* ---- Files that several parts make ---- */

PHEMA_FALLIBLE part_open(int *out, bool *is_new, int directory, const char *name, const char *path,
                         struct phema_error *err)
{
    *out = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                  WRITER_PARTIAL_MODE);
    *is_new = *out >= 0;
    if (*is_new)
        return PHEMA_OK;
    if (errno != EEXIST)
        return writer_fail_errno(err, path, "cannot be made", errno);
    enum phema_status status = writer_open_left(out, directory, name, path, O_RDWR, S_IFREG, err);
    struct stat st;
    if (*out < 0 || fstat(*out, &st))
        return status;
    status = writer_check_one_name(&st, path, err);
    if (status) {
        (void)close(*out);
        *out = -1;
    }
    return status;
}

/* ---- The marker ---- */

/* Those who fail remove theirs: what we have opened may have lost its name before we lock it. */
static enum phema_status lock_marker(bool *is_named, struct phema_writer_part *part,
                                     struct phema_error *err)
{
    bool is_locked = false;
    enum phema_status status =
        part_lock(&is_locked, part->marker, LOCK_EX, part->part_marker_path, err);
    if (!status && !is_locked)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: part %llu of %llu is being written by another run", part->path,
                            (unsigned long long)part->options->part,
                            (unsigned long long)part->options->n_parts);
    *is_named = writer_is_still_named(part->marker, part->part_marker_path);
    return status;
}

/* One that we have made is removed when the program dies; one that was there says how far an
 * earlier run came, and stays until we begin. */
static enum phema_status open_marker(struct phema_writer_part *part, struct phema_error *err)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        bool is_new = false;
        enum phema_status status = part_open(&part->marker, &is_new, AT_FDCWD,
                                             part->part_marker_path, part->part_marker_path, err);
        if (status)
            return status;
        if (part->marker < 0)
            continue;
        bool is_named = false;
        status = lock_marker(&is_named, part, err);
        if (!status && is_named && is_new) {
            part->is_ours = true;
            status = phema_cleanup_add_partial(&part->entry, part->part_marker_path, false, err);
        }
        if (status || is_named)
            return status;
        (void)close(part->marker);
        part->marker = -1;
    }
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: other runs keep writing this part", part->path);
}

static enum phema_status write_marker(const struct phema_writer_part *part, bool is_done,
                                      struct phema_error *err)
{
    struct stat st;
    if (fstat(part->descriptor, &st))
        return writer_fail_errno(err, part->path, "cannot be examined", errno);
    return part_marker_write(part->marker, part->part_marker_path, part->options,
                             (uint64_t)st.st_ino, is_done, err);
}

/* From here on what the marker said before is void. */
static enum phema_status begin_marker(struct phema_writer_part *part, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    phema_cleanup_hold();
    if (!part->entry)
        status = phema_cleanup_add_partial(&part->entry, part->part_marker_path, false, err);
    if (!status) {
        part->is_ours = true;
        status = write_marker(part, false, err);
    }
    phema_cleanup_resume();
    return status;
}

/* ---- The others ---- */

static enum phema_status fail_strange(const struct phema_writer_part *part, const char *name,
                                      const char *what, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: %s is %s; to start anew, remove %s.partial and all %s.part-*",
                      part->path, name, what, last_name(part->path), last_name(part->path));
}

/* Whether PATH.partial is what a part that is done has left. */
static bool is_partial_there(const struct phema_writer_part *part)
{
    struct stat st;
    if (lstat(part->partial_path, &st))
        return false;
    return part->options->is_directory
               ? S_ISDIR(st.st_mode)
               : S_ISREG(st.st_mode) && (uint64_t)st.st_size == part->options->files[0].size_bytes;
}

static enum phema_status check_other(const struct phema_writer_part *part, const char *path,
                                     struct phema_error *err)
{
    struct part_marker marker = {0};
    enum phema_status status = part_marker_read(&marker, path, err);
    if (status)
        return status;
    if (*marker.digest && strcmp(marker.digest, part->options->digest) != 0)
        status = fail_strange(part, last_name(path),
                              "of another output: targets, options, the program's version or a "
                              "snapshot differ",
                              err);
    else if (marker.state == MARKER_DONE && !is_partial_there(part))
        status =
            phema_fail(err, PHEMA_ERR_OUTPUT,
                       "%s: %s says that its part is done, but %s.partial is not what it has "
                       "left; to start anew, remove all %s.part-*",
                       part->path, last_name(path), last_name(part->path), last_name(part->path));
    part_marker_clear(&marker);
    return status;
}

/* *is_alone: no other part has been seen. */
static enum phema_status check_others(bool *is_alone, const struct phema_writer_part *part,
                                      struct phema_error *err)
{
    struct part_marker_list list = {0};
    *is_alone = true;
    enum phema_status status = part_marker_list_make(&list, part->directory, part->path, err);
    for (size_t i = 0; i < list.n && !status; i++) {
        const struct part_marker_name *name = &list.items[i];
        bool is_alike = name->n_parts == part->options->n_parts;
        if (is_alike && name->part == part->options->part)
            continue;
        *is_alone = false;
        char *path = part_marker_path(part->path, name->part, name->n_parts);
        if (!path)
            status = fail_memory(part->path, err);
        else if (!is_alike)
            status = fail_strange(part, last_name(path), "of another number of parts", err);
        else
            status = check_other(part, path, err);
        free(path);
    }
    part_marker_list_clear(&list);
    return status;
}

/* ---- What is shared ---- */

/* -1: what was there has gone. */
static enum phema_status open_partial(struct phema_writer_part *part, struct phema_error *err)
{
    bool is_new = false;
    const char *path = part->partial_path;
    if (!part->options->is_directory)
        return part_open(&part->descriptor, &is_new, AT_FDCWD, path, path, err);
    return writer_make_directory(&part->descriptor, &is_new, part->path, path, err);
}

static enum phema_status share_partial(struct phema_writer_part *part, struct phema_error *err)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        enum phema_status status = open_partial(part, err);
        if (status)
            return status;
        if (part->descriptor < 0) /* an ordinary run has just ended */
            continue;
        bool is_locked = false;
        status = part_lock(&is_locked, part->descriptor, LOCK_SH, part->path, err);
        if (!status && !is_locked)
            status = writer_fail_locked(part->path, err);
        if (status || writer_is_still_named(part->descriptor, part->partial_path))
            return status;
        (void)close(part->descriptor);
        part->descriptor = -1;
    }
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: other runs keep writing it", part->path);
}

static bool is_wanted(const void *context, const char *name)
{
    const struct phema_writer_part *part = context;
    for (size_t f = 0; f < part->options->n_files; f++)
        if (strcmp(part->options->files[f].name, name) == 0)
            return true;
    return false;
}

/* What a killed run has left in the directory, of another plan; with no other part there. */
static enum phema_status remove_strangers(const struct phema_writer_part *part,
                                          struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status =
        writer_check_files_alone(&is_empty, part->descriptor, true, part->partial_path, err);
    if (!status)
        writer_remove_others(part->descriptor, is_wanted, part);
    return status;
}

/* Markers are JSON, and join holds what it finds against the names in them. */
static enum phema_status check_names(const struct phema_writer_part *part, struct phema_error *err)
{
    struct phema_name_buffer shown;
    for (size_t f = 0; f < part->options->n_files; f++) {
        const char *name = part->options->files[f].name;
        if (name && !phema_is_utf8(name, strlen(name)))
            return phema_fail(err, PHEMA_ERR_OUTPUT,
                              "%s: the name '%s' is not UTF-8, and what is written in parts has to "
                              "have such names",
                              part->path, phema_name_escape(&shown, name, strlen(name)));
    }
    return PHEMA_OK;
}

static enum phema_status new_part(struct phema_writer_part **out, const char *path,
                                  const struct phema_writer_part_options *options,
                                  struct phema_error *err)
{
    struct phema_writer_part *part = calloc(1, sizeof(*part));
    if (!part)
        return fail_memory(path, err);
    *part = (struct phema_writer_part){.options = options, .marker = -1, .descriptor = -1};
    part->path = part_marker_base_of(path);
    if (part->path) {
        part->directory = part_marker_directory_of(part->path);
        part->part_marker_path = part_marker_path(part->path, options->part, options->n_parts);
        if (asprintf(&part->partial_path, "%s.partial", part->path) < 0)
            part->partial_path = NULL;
    }
    if (!part->directory || !part->part_marker_path || !part->partial_path) {
        phema_writer_part_abandon(part);
        return fail_memory(path, err);
    }
    *out = part;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_writer_part_open(struct phema_writer_part **out, const char *path,
                                      const struct phema_writer_part_options *options,
                                      struct phema_error *err)
{
    struct phema_writer_part *part = NULL;
    enum phema_status status = new_part(&part, path, options, err);
    if (status)
        return status;
    bool is_alone = false;
    status = check_names(part, err);
    phema_cleanup_hold();
    if (!status)
        status = open_marker(part, err);
    phema_cleanup_resume();
    if (!status)
        status = check_others(&is_alone, part, err);
    if (!status)
        status = share_partial(part, err);
    if (!status)
        status = begin_marker(part, err);
    if (!status) /* once more, now that the others see what this one is part of */
        status = check_others(&is_alone, part, err);
    if (!status && options->is_directory && is_alone)
        status = remove_strangers(part, err);
    if (status)
        phema_writer_part_abandon(part);
    else
        *out = part;
    return status;
}

/* ---- The end ---- */

static void close_part(struct phema_writer_part *part)
{
    phema_cleanup_remove(part->entry);
    if (part->descriptor >= 0)
        (void)close(part->descriptor);
    if (part->marker >= 0)
        (void)close(part->marker);
    free(part->path);
    free(part->partial_path);
    free(part->directory);
    free(part->part_marker_path);
    free(part);
}

/* What was written into a file that has lost its name is lost. */
static enum phema_status check_partial(const struct phema_writer_part *part,
                                       struct phema_error *err)
{
    if (writer_is_still_named(part->descriptor, part->partial_path))
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: was removed or replaced while part %llu of %llu was being written",
                      part->partial_path, (unsigned long long)part->options->part,
                      (unsigned long long)part->options->n_parts);
}

PHEMA_FALLIBLE phema_writer_part_finish(struct phema_writer_part *part, struct phema_error *err)
{
    enum phema_status status = check_partial(part, err);
    if (!status && part->options->syncs && part->options->is_directory &&
        writer_sync(part->descriptor) && errno != EINVAL)
        status = writer_fail_errno(err, part->path, "cannot be synced", errno);
    if (!status && part->options->syncs)
        status = phema_writer_sync_entry(part->path, err);
    if (!status) {
        phema_cleanup_hold();
        status = write_marker(part, true, err);
        if (!status) {
            phema_cleanup_remove(part->entry);
            part->entry = NULL;
        }
        phema_cleanup_resume();
    }
    if (status)
        phema_writer_part_abandon(part);
    else
        close_part(part);
    return status;
}

void phema_writer_part_abandon(struct phema_writer_part *part)
{
    if (!part)
        return;
    if (part->is_ours && part->marker >= 0 && part->part_marker_path)
        (void)unlink(part->part_marker_path);
    close_part(part);
}
