// SPDX-License-Identifier: Apache-2.0
/* part_done.c - whether an earlier run has finished a part, by its marker and what it has left. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "part.h"
#include "partial.h"
#include "phema/path.h"

static bool is_inode(const char *path, uint64_t inode)
{
    struct stat st;
    return inode && path && lstat(path, &st) == 0 && (uint64_t)st.st_ino == inode;
}

static bool is_file_of(const char *path, uint64_t size_bytes)
{
    struct stat st;
    return path && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == size_bytes;
}

/* Whether the content and the frames of a compressed output are still there. */
static bool are_frames_there(const char *path, const char *marker_path,
                             const struct part_marker *marker)
{
    char *plain_path = part_plain_path(path), *frames_path = part_frames_path(marker_path);
    bool are = is_file_of(plain_path, marker->files[0].size_bytes) &&
               (!marker->frames.size_bytes || is_file_of(frames_path, marker->frames.size_bytes));
    free(plain_path);
    free(frames_path);
    return are;
}

/* path has no slash at its end. */
static enum phema_status find_done(bool *out, const char *path, const char *marker_path,
                                   const char *digest, struct phema_error *err)
{
    struct part_marker marker = {0};
    enum phema_status status = part_marker_read(&marker, marker_path, err);
    if (!status && marker.state == MARKER_DONE && strcmp(marker.digest, digest) == 0) {
        char *partial_path = path_partial(path);
        *out = is_inode(path, marker.inode) ||
               (is_inode(partial_path, marker.inode) &&
                (!marker.is_compressed || are_frames_there(path, marker_path, &marker)));
        free(partial_path);
    }
    part_marker_clear(&marker);
    return status;
}

PHEMA_FALLIBLE phema_writer_part_is_done(bool *out, const char *path, uint64_t part,
                                         uint64_t n_parts, const char *digest,
                                         struct phema_error *err)
{
    char *own = phema_path_trim(path);
    char *marker_path = own ? part_marker_path(own, part, n_parts) : NULL;
    *out = false;
    enum phema_status status =
        marker_path ? find_done(out, own, marker_path, digest, err) : phema_fail_memory(err);
    free(marker_path);
    free(own);
    return status;
}
