// SPDX-License-Identifier: Apache-2.0
/* part_done.c - parts that are done: whether an earlier run has finished one, and the removal of
 * those of an output that is published already. Another team of processes that ran the same command
 * may write a part when the output is there: it looked before, and found none. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "part.h"
#include "phema/path.h"

static bool is_inode(const char *path, uint64_t inode)
{
    struct stat st;
    return inode && path && lstat(path, &st) == 0 && (uint64_t)st.st_ino == inode;
}

/* ---- One part ---- */

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
                 (is_file_of(part_plain_path(own), marker.files[0].size_bytes) &&
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
    bool is_made = pending_init(&left, path_add(path, ""), path_add(path, ".partial"));
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
        status = remove_file(part_plain_path(path), err);
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
