// SPDX-License-Identifier: Apache-2.0
/* publish.c - the rename or exchange of a pending output, what undoes that, and its removal. Steps
 * that can fail for lack of space, memory or descriptors come before the rename. Partial files lack
 * write permission for group and others: publishing adds it, as the umask or the directory's default
 * ACL say. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "writer_internal.h"

/* ---- Permissions ---- */

#define WRITE_OF_OTHERS ((mode_t)(S_IWGRP | S_IWOTH))
#define READ_OF_OTHERS  ((mode_t)(S_IRGRP | S_IROTH))

/* A nameless file shows the effect of the directory's default ACL. Else the umask is read from /proc:
 * umask(2) would change it for other threads for a moment. */
mode_t permissions_usual_write(const char *path)
{
    struct stat st;
    char *directory = phema_path_directory(path);
    int probe = directory ? open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    bool is_known = probe >= 0 && fstat(probe, &st) == 0;
    unsigned long mask = WRITE_OF_OTHERS;
    FILE *file = is_known ? NULL : fopen("/proc/self/status", "re");
    for (char line[256]; file && fgets(line, sizeof(line), file);)
        if (strncmp(line, "Umask:", 6) == 0)
            mask = strtoul(line + 6, NULL, 8);
    if (file)
        (void)fclose(file);
    if (probe >= 0)
        (void)close(probe);
    free(directory);
    return (is_known ? st.st_mode : 0666 & ~(mode_t)mask) & WRITE_OF_OTHERS;
}

/* Only users who may read get write permission. */
static mode_t opened_mode(mode_t mode, mode_t usual_write)
{
    return (mode | (usual_write & (mode & READ_OF_OTHERS) >> 1)) & 07777;
}

/* Adds these permissions, for those who may read the file. */
static void open_file(int descriptor, mode_t usual_write)
{
    struct stat st;
    if (!usual_write || fstat(descriptor, &st))
        return;
    if (opened_mode(st.st_mode, usual_write) != (st.st_mode & 07777))
        (void)fchmod(descriptor, opened_mode(st.st_mode, usual_write));
}

static void change_files(DIR *stream, mode_t usual_write, bool opens)
{
    rewinddir(stream);
    for (const char *name = NULL; (name = directory_next_name(stream));) {
        struct stat st;
        if (!directory_has_file(&st, dirfd(stream), name))
            continue;
        mode_t mode =
            opens ? opened_mode(st.st_mode, usual_write) : st.st_mode & 07777 & ~WRITE_OF_OTHERS;
        if (mode != (st.st_mode & 07777))
            (void)fchmodat(dirfd(stream), name, mode, 0);
    }
}

/* The directory comes last: until then no other user can exchange its files. */
void permissions_open_directory(int descriptor, mode_t usual_write)
{
    if (!usual_write)
        return;
    DIR *stream = directory_list(descriptor, ".");
    if (stream) {
        change_files(stream, usual_write, true);
        (void)closedir(stream);
    }
    open_file(descriptor, usual_write);
}

void permissions_close_directory(DIR *stream)
{
    struct stat st;
    if (fstat(dirfd(stream), &st) == 0 && (st.st_mode & WRITE_OF_OTHERS))
        (void)fchmod(dirfd(stream), st.st_mode & 07777 & ~WRITE_OF_OTHERS);
    change_files(stream, 0, false);
}

/* ---- The directory of a path ---- */

/* Errors of filesystems that cannot sync a directory, and then need no sync. */
static bool is_tolerable(int number)
{
    return number == EINVAL || number == EROFS || number == EACCES;
}

static enum phema_status fail_parent(const char *path, int number, struct phema_error *err)
{
    return writer_fail_errno(err, path, "its directory cannot be synced", number);
}

PHEMA_FALLIBLE writer_open_parent(int *out, const char *path, struct phema_error *err)
{
    char *directory = phema_path_directory(path);
    if (!directory)
        return writer_fail_memory(err, path);
    *out = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int number = errno;
    free(directory);
    return *out >= 0 || is_tolerable(number) ? PHEMA_OK : fail_parent(path, number, err);
}

PHEMA_FALLIBLE writer_sync_parent(int parent, const char *path, struct phema_error *err)
{
    if (parent >= 0 && file_sync(parent) && !is_tolerable(errno))
        return fail_parent(path, errno, err);
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_writer_sync_entry(const char *path, struct phema_error *err)
{
    int parent = -1;
    enum phema_status status = writer_open_parent(&parent, path, err);
    if (!status)
        status = writer_sync_parent(parent, path, err);
    if (parent >= 0)
        (void)close(parent);
    return status;
}

/* ---- Publishing ---- */

static int exchange(const struct pending *pending)
{
    return renameat2(AT_FDCWD, pending->partial_path, AT_FDCWD, pending->path, RENAME_EXCHANGE);
}

/* The old one is removed soon. If the run dies first, the next run must find a leftover that others
 * cannot write. The files of a directory follow before the first one is removed. */
static void hide_old(struct pending *pending, mode_t mode)
{
    mode_t hidden = mode & 07777 & ~WRITE_OF_OTHERS;
    pending->old_mode = mode & 07777;
    if (hidden != pending->old_mode)
        (void)(pending->old ? fchmod(dirfd(pending->old), hidden)
                            : chmod(pending->partial_path, hidden));
}

/* The old file is kept where the filesystem can exchange files, or replaced, as asked. */
static int publish_file(struct pending *pending, bool keeps_old)
{
    const char *partial_path = pending->partial_path, *path = pending->path;
    struct stat old;
    bool was_there = keeps_old && lstat(path, &old) == 0;
    if (was_there && pending->replaces && S_ISREG(old.st_mode) && exchange(pending) == 0) {
        pending->state = PENDING_EXCHANGED;
        hide_old(pending, old.st_mode);
        return 0;
    }
    int result = pending->replaces
                     ? rename(partial_path, path)
                     : renameat2(AT_FDCWD, partial_path, AT_FDCWD, path, RENAME_NOREPLACE);
    if (result && !pending->replaces && (errno == EINVAL || errno == ENOSYS)) {
        /* this filesystem has no such rename: a link never replaces either */
        result = link(partial_path, path);
        if (!result)
            (void)unlink(partial_path);
    }
    if (!result)
        pending->state = keeps_old && !was_there ? PENDING_NEW : PENDING_FINAL;
    return result;
}

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

static int exchange_directory(struct pending *pending)
{
    struct stat old;
    char *aside_path = path_add(pending->path, ".replaced");
    if (!aside_path) {
        errno = ENOMEM;
        return -1;
    }
    int result = exchange(pending), number = errno;
    if (result && (number == EINVAL || number == ENOSYS)) {
        pending->aside_path = aside_path;
        result = directory_move_aside(pending->path, pending->partial_path, aside_path);
    } else {
        free(aside_path);
        errno = number;
    }
    if (result)
        return result;
    pending->state = PENDING_EXCHANGED;
    if (pending->old && fstat(dirfd(pending->old), &old) == 0)
        hide_old(pending, old.st_mode);
    return 0;
}

/* rename replaces empty directories alone. */
PHEMA_FALLIBLE pending_publish(struct pending *pending, bool keeps_old, struct phema_error *err)
{
    bool is_directory = pending->is_directory;
    int result = is_directory ? rename(pending->partial_path, pending->path)
                              : publish_file(pending, keeps_old);
    if (is_directory && !result)
        pending->state = PENDING_FINAL;
    else if (is_directory && (errno == ENOTEMPTY || errno == EEXIST) && pending->replaces)
        result = exchange_directory(pending);
    if (result && (errno == EEXIST || (is_directory && (errno == ENOTEMPTY || errno == ENOTDIR))))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: appeared while this run was writing; it was left as it is (%s "
                          "replaces %s)",
                          pending->path, phema_setting_name(PHEMA_SET_FORCE),
                          is_directory ? "directories of files" : "it");
    if (result)
        return writer_fail_errno(err, pending->path, "cannot be renamed into place", errno);
    if (!is_directory)
        open_file(pending->lock, pending->usual_write);
    phema_cleanup_remove(pending->entry);
    pending->entry = NULL;
    return PHEMA_OK;
}

void pending_undo(struct pending *pending)
{
    const char *path = pending->path, *partial_path = pending->partial_path;
    if (pending->state == PENDING_NEW) {
        (void)unlink(path);
    } else if (pending->state == PENDING_EXCHANGED && !pending->is_directory) {
        (void)chmod(partial_path, pending->old_mode);
        (void)rename(partial_path, path);
    } else if (pending->state == PENDING_EXCHANGED) { /* the new one is hidden again */
        if (pending->old && pending->old_mode)
            (void)fchmod(dirfd(pending->old), pending->old_mode);
        if ((pending->aside_path ? directory_move_aside(path, pending->aside_path, partial_path)
                                 : exchange(pending)) == 0) {
            pending->state = PENDING_HIDDEN;
            return;
        }
    }
    if (pending->state != PENDING_HIDDEN)
        pending->state = PENDING_FINAL;
}

void pending_clear(struct pending *pending)
{
    pending_undo(pending);
    if (pending->state == PENDING_HIDDEN && pending->is_ours && !pending->is_kept)
        (void)(pending->is_directory ? rmdir : unlink)(pending->partial_path);
    phema_cleanup_remove(pending->entry);
    if (pending->old)
        (void)closedir(pending->old);
    const int descriptors[] = {pending->lock, pending->parent};
    for (size_t i = 0; i < ARRAY_LEN(descriptors); i++)
        if (descriptors[i] >= 0)
            (void)close(descriptors[i]);
    free(pending->aside_path);
    free(pending->partial_path);
    free(pending->path);
    *pending = (struct pending){.lock = -1, .parent = -1};
}
