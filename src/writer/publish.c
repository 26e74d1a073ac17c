// SPDX-License-Identifier: Apache-2.0
/* publish.c - fsync, rename or exchange, or removal of a partial file. Steps that can fail for lack
 * of space, memory or descriptors come before the rename. Partial files lack write permission for
 * group and others: publishing adds it, as the umask or the directory's default ACL say. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "write_error.h"
#include "writer_internal.h"

/* ---- Permissions ---- */

#define WRITE_OF_OTHERS ((mode_t)(S_IWGRP | S_IWOTH))
#define READ_OF_OTHERS  ((mode_t)(S_IRGRP | S_IROTH))

/* Read from /proc: umask(2) would change it for other threads for a moment. */
static mode_t find_umask(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    unsigned long mask = WRITE_OF_OTHERS;
    for (char line[256]; file && fgets(line, sizeof(line), file);)
        if (strncmp(line, "Umask:", 6) == 0)
            mask = strtoul(line + 6, NULL, 8);
    if (file)
        (void)fclose(file);
    return (mode_t)mask;
}

/* A nameless file shows the effect of the directory's default ACL. */
mode_t permissions_usual_write(const char *path)
{
    struct stat st;
    char *directory = phema_path_directory(path);
    int probe = directory ? open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    mode_t mode = probe >= 0 && fstat(probe, &st) == 0 ? st.st_mode : 0666 & ~find_umask();
    if (probe >= 0)
        (void)close(probe);
    free(directory);
    return mode & WRITE_OF_OTHERS;
}

/* Only users who may read get write permission. */
static mode_t opened_mode(mode_t mode, mode_t usual_write)
{
    return (mode | (usual_write & (mode & READ_OF_OTHERS) >> 1)) & 07777;
}

void permissions_open_file(int descriptor, mode_t usual_write)
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
    DIR *stream = directory_list(descriptor);
    if (stream) {
        change_files(stream, usual_write, true);
        (void)closedir(stream);
    }
    permissions_open_file(descriptor, usual_write);
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
    if (status || parent < 0)
        return status;
    status = writer_sync_parent(parent, path, err);
    (void)close(parent);
    return status;
}

/* ---- Publishing ---- */

int writer_publish(const char *partial_path, const char *path, bool replaces)
{
    if (replaces)
        return rename(partial_path, path);
    if (renameat2(AT_FDCWD, partial_path, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* this filesystem has no such rename: a link never replaces either */
    if (link(partial_path, path))
        return -1;
    (void)unlink(partial_path);
    return 0;
}

static void unmap(struct phema_writer *writer)
{
    phema_cleanup_remove(writer->map_entry);
    writer->map_entry = NULL;
    if (writer->map)
        (void)munmap(writer->map, writer->size_bytes);
    writer->map = NULL;
}

/* The kernel reports a failed write to one fsync only: its error is kept. */
void phema_writer_sync(struct phema_writer *writer)
{
    if (!writer->options.syncs || writer->is_synced || writer->descriptor < 0)
        return;
    writeback_cancel(&writer->writeback);
    writer->sync_error = file_sync(writer->descriptor) ? errno : 0;
    writer->is_synced = true;
}

void phema_writer_leave_entry(struct phema_writer *writer)
{
    writer->leaves_entry = true;
}

PHEMA_FALLIBLE phema_writer_finish(struct phema_writer *writer, struct phema_error *err)
{
    if (writer->descriptor < 0)
        return PHEMA_OK;
    unmap(writer);
    writeback_cancel(&writer->writeback);
    phema_writer_sync(writer);
    if (writer->sync_error)
        return writer_fail_errno(err, writer->path, "cannot be synced", writer->sync_error);
    if (writer->options.drops_cache)
        writer_drop_cache(writer);
    int lost = atomic_load(&writer->lost);
    if (lost)
        return writer_fail_errno(err, writer->path, "cannot be written", lost);
    if (writer->options.syncs && !writer->is_inside && !writer->leaves_entry) {
        enum phema_status status = writer_open_parent(&writer->parent, writer->path, err);
        if (status)
            return status;
    }
    int closed = close(writer->descriptor);
    writer->descriptor = -1;
    writer->is_finished = true;
    if (closed && errno != EINTR)
        return writer_fail_errno(err, writer->path, "cannot be written", errno);
    return PHEMA_OK;
}

/* The old file is removed soon. If the run dies first, the next run must find a leftover that
 * others cannot write. */
static void hide_old(struct phema_writer *writer, mode_t mode)
{
    mode_t hidden = mode & ~(mode_t)(S_IWGRP | S_IWOTH);
    writer->published = WRITER_EXCHANGED;
    writer->old_mode = mode & 07777;
    if (hidden != mode)
        (void)chmod(writer->partial_path, hidden & 07777);
}

PHEMA_FALLIBLE phema_writer_publish(struct phema_writer *writer, struct phema_error *err)
{
    enum phema_status status = phema_writer_finish(writer, err);
    if (status)
        return status;
    struct stat old;
    bool was_there = lstat(writer->path, &old) == 0;
    if (writer->options.replaces && was_there && S_ISREG(old.st_mode) &&
        renameat2(AT_FDCWD, writer->partial_path, AT_FDCWD, writer->path, RENAME_EXCHANGE) == 0)
        hide_old(writer, old.st_mode);
    else if (writer_publish(writer->partial_path, writer->path, writer->options.replaces) == 0)
        writer->published = was_there ? WRITER_REPLACED : WRITER_NEW;
    else
        return writer_fail_publish(err, writer->path, errno);
    permissions_open_file(writer->lock, writer->usual_write);
    phema_cleanup_remove(writer->entry);
    writer->entry = NULL;
    return writer_sync_parent(writer->parent, writer->path, err);
}

static enum phema_status commit(struct phema_writer *writer, struct phema_error *err)
{
    enum phema_status status = phema_writer_finish(writer, err);
    if (status)
        return status;
    if (writer->published == WRITER_EXCHANGED)
        (void)unlink(writer->partial_path);
    else if (writer->published == WRITER_HIDDEN && !writer->is_inside &&
             writer_publish(writer->partial_path, writer->path, writer->options.replaces))
        return writer_fail_publish(err, writer->path, errno);
    if (!writer->is_inside)
        permissions_open_file(writer->lock, writer->usual_write);
    if (writer->options.is_published)
        *writer->options.is_published = true;
    free(writer->partial_path);
    writer->partial_path = NULL;
    phema_cleanup_remove(writer->entry);
    writer->entry = NULL;
    return writer_sync_parent(writer->parent, writer->path, err);
}

PHEMA_FALLIBLE phema_writer_commit(struct phema_writer *writer, struct phema_error *err)
{
    enum phema_status status = commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}

/* ---- Abandoning ---- */

/* Removes the new file, and restores the old one where phema_writer_publish has exchanged them. */
static void undo(const struct phema_writer *writer)
{
    switch (writer->published) {
    case WRITER_HIDDEN:
        if (!writer->is_kept &&
            (writer->descriptor >= 0 || writer->is_finished || writer->lock >= 0))
            (void)unlink(writer->partial_path);
        break;
    case WRITER_NEW:
        (void)unlink(writer->path);
        break;
    case WRITER_EXCHANGED:
        (void)chmod(writer->partial_path, writer->old_mode);
        (void)rename(writer->partial_path, writer->path);
        break;
    case WRITER_REPLACED:
        break;
    }
}

void phema_writer_abandon(struct phema_writer *writer)
{
    if (!writer)
        return;
    unmap(writer);
    if (writer->partial_path)
        undo(writer);
    phema_cleanup_remove(writer->entry);
    writeback_cancel(&writer->writeback);
    const int descriptors[] = {writer->descriptor, writer->lock, writer->parent};
    for (size_t i = 0; i < ARRAY_LEN(descriptors); i++)
        if (descriptors[i] >= 0)
            (void)close(descriptors[i]);
    free(writer->partial_path);
    free(writer->path);
    free(writer);
}
