// SPDX-License-Identifier: Apache-2.0
/* join_partial.c - PATH.partial, and the content of a compressed output: opened, locked, and compared
 * with what the parts tell. */
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
#include "join.h"
#include "partial.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "write_error.h"
#include "writer_internal.h"

PHEMA_FALLIBLE join_open_partial(bool *is_locked, struct phema_writer_join *join,
                                 struct phema_error *err)
{
    *is_locked = true;
    struct stat st;
    bool is_directory = lstat(join->partial_path, &st) == 0 && S_ISDIR(st.st_mode);
    /* for writing: network filesystems require that for an exclusive lock */
    enum phema_status status =
        leftover_open(&join->descriptor, AT_FDCWD, join->partial_path, join->partial_path,
                      is_directory ? O_RDONLY : O_RDWR, is_directory ? S_IFDIR : S_IFREG, err);
    if (status || join->descriptor < 0) /* absent: reported when the markers are known */
        return status;
    return partial_lock(is_locked, join->descriptor, LOCK_EX, true, join->path, err);
}

/* path: for messages */
static enum phema_status check_file(const struct phema_writer_join *join, int descriptor,
                                    const struct part_marker_file *file, const char *path,
                                    struct phema_error *err)
{
    struct stat st;
    if (fstat(descriptor, &st))
        return writer_fail_errno(err, join->partial_path, "cannot be examined", errno);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->size_bytes)
        return leftover_check_one_name(&st, path, err);
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: expected a file of %llu bytes, found %llu; remove it and all "
                      "%s.part-*, and write all parts again",
                      path, (unsigned long long)file->size_bytes, (unsigned long long)st.st_size,
                      join->path);
}

/* The file is synced too, since parts may have run with --no-sync. */
static enum phema_status check_opened(struct phema_writer_join *join, int descriptor,
                                      const struct part_marker_file *file, const char *path,
                                      struct phema_error *err)
{
    enum phema_status status = check_file(join, descriptor, file, path, err);
    if (status)
        return status;
    if (join->options.syncs && file_sync(descriptor))
        return writer_fail_errno(err, join->path, "cannot be synced", errno);
    join->size_bytes += file->size_bytes;
    return PHEMA_OK;
}

static enum phema_status check_file_inside(struct phema_writer_join *join,
                                           const struct part_marker_file *file,
                                           struct phema_error *err)
{
    int descriptor = -1;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", join->partial_path, file->name) < 0)
        return phema_fail_memory(err);
    enum phema_status status =
        leftover_open(&descriptor, join->descriptor, file->name, path, O_RDONLY, S_IFREG, err);
    if (descriptor >= 0) {
        status = check_opened(join, descriptor, file, path, err);
        (void)close(descriptor);
    } else if (!status) {
        status = writer_fail_errno(err, path, "cannot be opened", ENOENT);
    }
    free(path);
    return status;
}

static enum phema_status check_no_other_files(const struct phema_writer_join *join,
                                              struct phema_error *err)
{
    DIR *stream = directory_list(join->descriptor);
    if (!stream)
        return writer_fail_errno(err, join->partial_path, "cannot be listed", errno);
    enum phema_status status = PHEMA_OK;
    const char *name = NULL;
    while (!status && (name = directory_next_name(stream))) {
        bool is_known = false;
        for (size_t f = 0; f < join->first.n_files && !is_known; f++)
            is_known = strcmp(join->first.files[f].name, name) == 0;
        struct phema_name_buffer shown;
        if (!is_known)
            status = phema_fail(err, PHEMA_ERR_OUTPUT,
                                "%s: holds '%s', which no part has written; remove it",
                                join->partial_path, phema_name_escape(&shown, name, strlen(name)));
    }
    if (!status && errno)
        status = writer_fail_errno(err, join->partial_path, "cannot be listed", errno);
    (void)closedir(stream);
    return status;
}

static enum phema_status fail_gone(const struct phema_writer_join *join, const char *path,
                                   struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: is gone, though all its parts are done; remove all %s.part-*, and "
                      "write all parts again unless %s is there and whole",
                      path, join->path, join->path);
}

/* Opens, locks and checks the content of a compressed output. */
static enum phema_status open_plain(struct phema_writer_join *join, struct phema_error *err)
{
    bool is_locked = false;
    const char *path = join->plain_path = part_plain_path(join->path);
    if (!path)
        return phema_fail_memory(err);
    enum phema_status status =
        leftover_open(&join->plain, AT_FDCWD, path, path, O_RDWR, S_IFREG, err);
    if (status)
        return status;
    if (join->plain < 0)
        return fail_gone(join, path, err);
    status = partial_lock(&is_locked, join->plain, LOCK_EX, true, join->path, err);
    if (status)
        return status;
    return is_locked ? check_file(join, join->plain, &join->first.files[0], path, err)
                     : writer_fail_locked(err, join->path);
}

PHEMA_FALLIBLE join_check_partial(struct phema_writer_join *join, struct phema_error *err)
{
    struct stat st;
    const struct part_marker *wanted = &join->first;
    if (join->descriptor < 0)
        return fail_gone(join, join->partial_path, err);
    if (fstat(join->descriptor, &st))
        return writer_fail_errno(err, join->partial_path, "cannot be examined", errno);
    if (S_ISDIR(st.st_mode) != wanted->is_directory)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: expected a %s, as its parts say; remove it and all %s.part-*, and "
                          "write all parts again",
                          join->partial_path, wanted->is_directory ? "directory" : "file",
                          join->path);
    if (wanted->is_compressed) {
        enum phema_status status = leftover_check_one_name(&st, join->partial_path, err);
        if (!status)
            status = open_plain(join, err);
        return status ? status : join_check_frames(join, err);
    }
    if (!wanted->is_directory) {
        join->size_bytes = wanted->files[0].size_bytes;
        return check_file(join, join->descriptor, &wanted->files[0], join->partial_path, err);
    }
    for (size_t f = 0; f < wanted->n_files; f++) {
        enum phema_status status = check_file_inside(join, &wanted->files[f], err);
        if (status)
            return status;
    }
    return check_no_other_files(join, err);
}
