// SPDX-License-Identifier: Apache-2.0
/* part_drop.c - removes parts of an output that is published already. Another team of processes that
 * ran the same command may write a part when the output is there: it looked before, and found none. */
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
#include "partial.h"
#include "phema/path.h"
#include "write_error.h"
#include "writer_internal.h"

/* ---- A marker ---- */

static enum phema_status remove_file(const char *path, struct phema_error *err)
{
    if (unlink(path) && errno != ENOENT)
        return writer_fail_errno(err, path, "cannot be removed", errno);
    return PHEMA_OK;
}

static enum phema_status remove_frames(const char *marker_path, struct phema_error *err)
{
    char *path = part_frames_path(marker_path);
    enum phema_status status = path ? remove_file(path, err) : phema_fail_memory(err);
    free(path);
    return status;
}

static enum phema_status remove_with_journal(const char *path, struct phema_error *err)
{
    char *journal = NULL;
    enum phema_status status = remove_file(path, err);
    if (status || asprintf(&journal, "%s.journal", path) < 0)
        return status;
    phema_writer_journal_remove(journal);
    free(journal);
    return PHEMA_OK;
}

/* *is_of: its part is in the output of this inode; 0: unknown. */
static enum phema_status is_part_of(bool *is_of, const char *path, uint64_t inode,
                                    struct phema_error *err)
{
    struct part_marker marker = {0};
    enum phema_status status = part_marker_read(&marker, path, err);
    *is_of = !status && (!inode || marker.state == MARKER_ABSENT || marker.inode == inode);
    part_marker_clear(&marker);
    return status;
}

PHEMA_FALLIBLE part_marker_remove(const char *path, uint64_t inode, bool has_frames,
                                  struct phema_error *err)
{
    int descriptor = -1;
    bool is_ours = false;
    enum phema_status status =
        leftover_open(&descriptor, AT_FDCWD, path, path, O_RDWR, S_IFREG, err);
    if (status)
        return status;
    bool is_running =
        descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (!is_running)
        status = is_part_of(&is_ours, path, inode, err);
    if (is_ours && has_frames)
        status = remove_frames(path, err);
    if (is_ours && !status)
        status = remove_with_journal(path, err);
    if (descriptor >= 0)
        (void)close(descriptor);
    return status;
}

/* ---- All markers of an output ---- */

/* *is_joined: this part is in PATH. Its join was killed, and the next one finishes it. */
static enum phema_status drop_marker(bool *is_joined, const char *path, const char *marker_path,
                                     const char *digest, bool removes, struct phema_error *err)
{
    struct part_marker marker = {0};
    struct stat st;
    enum phema_status status = part_marker_read(&marker, marker_path, err);
    bool is_ours = !status && marker.state == MARKER_DONE && strcmp(marker.digest, digest) == 0;
    if (is_ours && marker.inode && lstat(path, &st) == 0 && (uint64_t)st.st_ino == marker.inode)
        *is_joined = true;
    else if (is_ours && removes)
        status = part_marker_remove(marker_path, marker.inode, marker.is_compressed, err);
    part_marker_clear(&marker);
    return status;
}

static enum phema_status drop_markers(bool *is_joined, const char *path, const char *digest,
                                      bool removes, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, path, err);
    for (size_t i = 0; i < list.n && !status && !*is_joined; i++) {
        char *marker_path = part_marker_path(path, list.items[i].part, list.items[i].n_parts);
        status = marker_path ? drop_marker(is_joined, path, marker_path, digest, removes, err)
                             : phema_fail_memory(err);
        free(marker_path);
    }
    part_marker_list_clear(&list);
    return status;
}

/* ---- Their data ---- */

static bool is_wanted(const void *context, const char *name)
{
    (void)context;
    (void)name;
    return false;
}

static bool has_journal(const char *path)
{
    struct stat st;
    char *journal = NULL;
    if (asprintf(&journal, "%s.journal", path) < 0)
        return true;
    bool has = lstat(journal, &st) == 0;
    free(journal);
    return has;
}

static enum phema_status has_markers(bool *has, const char *path, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, path, err);
    *has = list.n > 0;
    part_marker_list_clear(&list);
    return status;
}

/* PATH.partial is locked, so that no part opens it before it has no name. */
static enum phema_status remove_locked(const char *path, const char *partial_path, int descriptor,
                                       bool is_directory, struct phema_error *err)
{
    bool has = false;
    char *plain_path = part_plain_path(path);
    enum phema_status status = plain_path ? has_markers(&has, path, err) : phema_fail_memory(err);
    if (!status && !has) {
        status = remove_file(plain_path, err);
        if (!status && is_directory)
            directory_remove_unwanted(descriptor, 0, is_wanted, NULL);
        if (!status && is_directory)
            (void)rmdir(partial_path);
        else if (!status)
            status = remove_file(partial_path, err);
    }
    free(plain_path);
    return status;
}

static enum phema_status remove_partial(const char *path, const char *partial_path,
                                        struct phema_error *err)
{
    struct stat st;
    int descriptor = -1;
    bool is_locked = false;
    if (lstat(partial_path, &st) || has_journal(path))
        return PHEMA_OK;
    bool is_directory = S_ISDIR(st.st_mode);
    enum phema_status status =
        leftover_open(&descriptor, AT_FDCWD, partial_path, partial_path,
                      is_directory ? O_RDONLY : O_RDWR, is_directory ? S_IFDIR : S_IFREG, err);
    if (status || descriptor < 0)
        return status;
    status = partial_lock(&is_locked, descriptor, LOCK_EX, false, path, err);
    if (!status && is_locked)
        status = remove_locked(path, partial_path, descriptor, is_directory, err);
    (void)close(descriptor);
    return status;
}

static enum phema_status drop(const char *path, const char *digest, struct phema_error *err)
{
    bool is_joined = false;
    enum phema_status status = drop_markers(&is_joined, path, digest, false, err);
    if (status || is_joined)
        return status;
    char *partial_path = path_partial(path);
    status =
        partial_path ? drop_markers(&is_joined, path, digest, true, err) : phema_fail_memory(err);
    if (!status)
        status = remove_partial(path, partial_path, err);
    free(partial_path);
    return status;
}

PHEMA_FALLIBLE phema_writer_parts_drop(const char *path, const char *digest,
                                       struct phema_error *err)
{
    char *own = phema_path_trim(path);
    enum phema_status status = own ? drop(own, digest, err) : phema_fail_memory(err);
    free(own);
    return status;
}
