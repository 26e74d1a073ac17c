// SPDX-License-Identifier: Apache-2.0
/* directory_publish.c - publishes PATH.partial/ as PATH: by rename, or by exchange with an old
 * directory, which is removed when the exchange is durable and comes back where that fails. Also
 * removes an abandoned PATH.partial/. Memory and descriptors are reserved before the exchange. */
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "permissions.h"
#include "phema/cleanup.h"
#include "write_error.h"
#include "writer_internal.h"

int directory_move_aside(const char *path, const char *partial_path, const char *aside_path)
{
    if (rename(path, aside_path))
        return -1;
    if (rename(partial_path, path) == 0)
        return 0;
    int number = errno;
    (void)rename(aside_path, path);
    errno = number;
    return -1;
}

/* Exchanges the new directory and the old one. *old_path: of the old one afterwards, the
 * caller's. */
static int exchange(char **old_path, const struct phema_writer_directory *directory)
{
    char *aside_path = NULL;
    char *partial_path = strdup(directory->partial_path);
    if (!partial_path || asprintf(&aside_path, "%s.replaced", directory->path) < 0) {
        free(partial_path);
        errno = ENOMEM;
        return -1;
    }
    int result = renameat2(AT_FDCWD, partial_path, AT_FDCWD, directory->path, RENAME_EXCHANGE);
    bool moves_aside = result && (errno == EINVAL || errno == ENOSYS);
    if (moves_aside)
        result = directory_move_aside(directory->path, partial_path, aside_path);
    int number = errno;
    *old_path = moves_aside ? aside_path : partial_path;
    free(moves_aside ? partial_path : aside_path);
    errno = number;
    return result;
}

/* Removes write permission for others, as publish.c does: the run may die before the old directory
 * is removed. Its files follow before the first one is removed. */
static void hide_old(struct phema_writer_directory *directory)
{
    struct stat st;
    if (!directory->old || fstat(dirfd(directory->old), &st))
        return;
    directory->old_mode = st.st_mode & 07777;
    mode_t hidden = directory->old_mode & ~(mode_t)(S_IWGRP | S_IWOTH);
    if (hidden != directory->old_mode)
        (void)fchmod(dirfd(directory->old), hidden);
}

void directory_forget(struct phema_writer_directory *directory)
{
    for (size_t i = 0; i < directory->n_files; i++) {
        phema_cleanup_remove(directory->files[i].entry);
        directory->files[i].entry = NULL;
    }
    phema_cleanup_remove(directory->entry);
    directory->entry = NULL;
}

/* rename replaces empty directories alone. */
static enum phema_status publish(char **old_path, struct phema_writer_directory *directory,
                                 struct phema_error *err)
{
    int result = rename(directory->partial_path, directory->path);
    int number = errno;
    if (result && (number == ENOTEMPTY || number == EEXIST) && directory->options.replaces) {
        result = exchange(old_path, directory);
        number = errno;
        if (!result)
            hide_old(directory);
    }
    if (!result) {
        directory->is_ours = false;
        directory_forget(directory);
        permissions_open_directory(directory->descriptor, directory->usual_write);
        return PHEMA_OK;
    }
    if (number == ENOTEMPTY || number == EEXIST || number == ENOTDIR)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: appeared while this run was writing; it was left as it is "
                          "(--force replaces directories of files)",
                          directory->path);
    return writer_fail_errno(err, directory->path, "cannot be renamed into place", number);
}

/* Exchanges the directories again, so that the new one can be removed. */
static void undo(struct phema_writer_directory *directory, const char *old_path)
{
    if (directory->old && directory->old_mode)
        (void)fchmod(dirfd(directory->old), directory->old_mode);
    bool is_aside = strcmp(old_path, directory->partial_path) != 0;
    int result = is_aside
                     ? directory_move_aside(directory->path, old_path, directory->partial_path)
                     : renameat2(AT_FDCWD, old_path, AT_FDCWD, directory->path, RENAME_EXCHANGE);
    directory->is_ours =
        result == 0 && directory->n_files; /* adopted directories have no files here, and stay */
}

static enum phema_status remove_replaced(const char *path, const char *old_path, DIR *old,
                                         struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status = directory_check_listed(&is_empty, old, false, old_path, err);
    if (!status) {
        permissions_close_directory(old); /* a kill would leave it behind */
        directory_remove_listed(old);
        if (rmdir(old_path))
            status = writer_fail_errno(err, old_path, "cannot be removed", errno);
    }
    if (status)
        (void)phema_fail_in(err, status, "%s: is in place, but what it replaced is left", path);
    return status;
}

PHEMA_FALLIBLE directory_remove_replaced(const char *path, const char *old_path,
                                         struct phema_error *err)
{
    DIR *old = opendir(old_path);
    if (!old)
        return writer_fail_errno(err, old_path, "cannot be opened", errno);
    enum phema_status status = remove_replaced(path, old_path, old, err);
    (void)closedir(old);
    return status;
}

static enum phema_status open_old(struct phema_writer_directory *directory, struct phema_error *err)
{
    if (!directory->options.replaces)
        return PHEMA_OK;
    directory->old = opendir(directory->path);
    if (directory->old || errno == ENOENT || errno == ENOTDIR)
        return PHEMA_OK;
    return writer_fail_errno(err, directory->path, "cannot be opened", errno);
}

static enum phema_status finish(struct phema_writer_directory *directory, struct phema_error *err)
{
    bool syncs = directory->options.syncs;
    if (syncs && file_sync(directory->descriptor) && errno != EINVAL)
        return writer_fail_errno(err, directory->path, "cannot be synced", errno);
    enum phema_status status =
        syncs ? writer_open_parent(&directory->parent, directory->path, err) : PHEMA_OK;
    return status ? status : open_old(directory, err);
}

PHEMA_FALLIBLE phema_writer_directory_commit(struct phema_writer_directory *directory,
                                             struct phema_error *err)
{
    char *old_path = NULL;
    enum phema_status status = finish(directory, err);
    phema_cleanup_hold(); /* a signal waits until the old directory is removed or restored */
    if (!status)
        status = publish(&old_path, directory, err);
    bool is_published = !status;
    if (is_published) {
        status = writer_sync_parent(directory->parent, directory->path, err);
        if (status && old_path)
            undo(directory, old_path);
        else if (old_path)
            status = remove_replaced(directory->path, old_path, directory->old, err);
    }
    free(old_path);
    phema_writer_directory_abandon(directory);
    phema_cleanup_resume();
    return status;
}

void phema_writer_directory_abandon(struct phema_writer_directory *directory)
{
    if (!directory)
        return;
    if (directory->is_ours && !directory->is_kept && directory->partial_path) {
        for (size_t i = 0; i < directory->n_files; i++)
            (void)unlinkat(directory->descriptor, directory->files[i].name, 0);
        (void)rmdir(directory->partial_path);
    }
    directory_forget(directory);
    if (directory->old)
        (void)closedir(directory->old);
    if (directory->parent >= 0)
        (void)close(directory->parent);
    if (directory->descriptor >= 0)
        (void)close(directory->descriptor);
    for (size_t i = 0; i < directory->n_files; i++)
        free(directory->files[i].name);
    free(directory->files);
    free(directory->partial_path);
    free(directory->path);
    free(directory);
}
