// SPDX-License-Identifier: Apache-2.0
/* partial.c - creates, locks and takes over PATH.partial.
 * The lock (flock) distinguishes the file of a live run from the leftover of a killed one. Only a
 * leftover of the effective user that nobody else may write is used. Bytes of another writer would
 * be published under this user's name. Partial files are therefore created without write permission
 * for others, which publish.c adds. */
#include "pending.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/strbuf.h"

/* Each attempt after the first follows another run that ended between our open and our lock. */
#define OPEN_ATTEMPTS 16

/* Another part reads a marker for microseconds, and needs hardly longer from the creation of
 * PATH.partial to its lock. A run that writes holds its lock much longer. */
#define LOCK_ATTEMPTS 20
#define LOCK_PAUSE_NS 25000000

/* ---- Paths and failures ---- */

char *path_add(const char *path, const char *suffix)
{
    char *made = NULL;
    return path && asprintf(&made, "%s%s", path, suffix) >= 0 ? made : NULL;
}

char *path_inside(const char *path, const char *name)
{
    char *made = NULL;
    return path && asprintf(&made, "%s/%s", path, name) >= 0 ? made : NULL;
}

enum phema_status(writer_fail_errno)(struct phema_error *err, const char *path, const char *what,
                                     int number)
{
    enum phema_status status = phema_fail_errno(err, PHEMA_ERR_OUTPUT, what, number);
    return phema_fail_in(err, status, "%s", path);
}

enum phema_status(writer_fail_memory)(struct phema_error *err, const char *path)
{
    return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
}

enum phema_status(writer_fail_size)(struct phema_error *err, const char *path, uint64_t size_bytes,
                                    int number)
{
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s: %s are needed", path, strerror(number),
                      phema_size_format(&shown, size_bytes));
}

enum phema_status(writer_fail_locked)(struct phema_error *err, const char *path)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: another run is writing it; wait for it or choose another name", path);
}

/* ---- Leftovers ---- */

static enum phema_status check_leftover(const struct stat *st, mode_t kind, const char *path,
                                        struct phema_error *err)
{
    if ((st->st_mode & S_IFMT) != kind)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: is not a %s; remove it", path,
                          kind == S_IFDIR ? "directory" : "regular file");
    if (st->st_uid != geteuid())
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: belongs to user %u, and only leftovers of user %u, who runs this, "
                          "are used; remove it or choose another name",
                          path, (unsigned)st->st_uid, (unsigned)geteuid());
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: other users may write it (mode %04o), and only leftovers that they "
                          "may not write are used; remove it or choose another name",
                          path, (unsigned)st->st_mode & 07777);
    return PHEMA_OK;
}

PHEMA_FALLIBLE leftover_check_one_name(const struct stat *st, const char *path,
                                       struct phema_error *err)
{
    if (st->st_nlink == 1)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: has %llu names (hard links), so that another file would be written; "
                      "remove it",
                      path, (unsigned long long)st->st_nlink);
}

/* Examines the name first, since opening a device may have effects, and then the descriptor. */
PHEMA_FALLIBLE leftover_open(int *out, int directory, const char *name, const char *path, int flags,
                             mode_t kind, struct phema_error *err)
{
    struct stat st;
    *out = -1;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? PHEMA_OK
                               : writer_fail_errno(err, path, "cannot be examined", errno);
    enum phema_status status = check_leftover(&st, kind, path, err);
    if (status)
        return status;
    int descriptor = openat(directory, name,
                            flags | (kind == S_IFDIR ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY) |
                                O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return errno == ENOENT ? PHEMA_OK : writer_fail_errno(err, path, "cannot be opened", errno);
    if (fstat(descriptor, &st))
        status = writer_fail_errno(err, path, "cannot be examined", errno);
    else
        status = check_leftover(&st, kind, path, err);
    if (status)
        (void)close(descriptor);
    else
        *out = descriptor;
    return status;
}

/* ---- Creating ---- */

int partial_create_file(int directory, const char *name)
{
    return openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                  WRITER_PARTIAL_MODE);
}

/* shown, what: of a failure to create it */
static enum phema_status create_or_open(int *out, bool *is_new, int directory, const char *name,
                                        const char *path, const char *shown, const char *what,
                                        struct phema_error *err)
{
    *out = partial_create_file(directory, name);
    *is_new = *out >= 0;
    if (*is_new)
        return PHEMA_OK;
    return errno == EEXIST ? leftover_open(out, directory, name, path, O_RDWR, S_IFREG, err)
                           : writer_fail_errno(err, shown, what, errno);
}

PHEMA_FALLIBLE partial_open_shared_file(int *out, bool *is_new, int directory, const char *name,
                                        const char *path, struct phema_error *err)
{
    struct stat st;
    enum phema_status status =
        create_or_open(out, is_new, directory, name, path, path, "cannot be made", err);
    if (status || *is_new || *out < 0 || fstat(*out, &st))
        return status;
    status = leftover_check_one_name(&st, path, err);
    if (status) {
        (void)close(*out);
        *out = -1;
    }
    return status;
}

/* A new directory is not examined: filesystems with users and modes of their own accept new
 * directories too. */
static enum phema_status open_directory(struct pending *pending, bool *is_new,
                                        struct phema_error *err)
{
    const char *partial = pending->partial_path;
    *is_new = mkdir(partial, WRITER_PARTIAL_DIRECTORY_MODE) == 0;
    if (!*is_new && errno == EEXIST)
        return leftover_open(&pending->lock, AT_FDCWD, partial, partial, O_RDONLY, S_IFDIR, err);
    if (!*is_new)
        return writer_fail_errno(err, pending->path, "cannot be made", errno);
    pending->lock = open(partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (pending->lock >= 0 || errno == ENOENT)
        return PHEMA_OK;
    int number = errno;
    (void)rmdir(partial);
    return writer_fail_errno(err, pending->path, "cannot be written", number);
}

/* ---- Locking ---- */

PHEMA_FALLIBLE partial_lock(bool *is_locked, int descriptor, int operation, bool waits,
                            const char *path, struct phema_error *err)
{
    *is_locked = true;
    for (int attempt = 0; attempt < (waits ? LOCK_ATTEMPTS : 1); attempt++) {
        if (attempt) {
            struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
            (void)nanosleep(&pause, NULL);
        }
        if (flock(descriptor, operation | LOCK_NB) == 0)
            return PHEMA_OK;
        if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS) /* without locks */
            return PHEMA_OK;
        if (errno != EWOULDBLOCK && (errno != EINTR || !waits))
            return writer_fail_errno(err, path, "cannot be locked", errno);
    }
    *is_locked = false;
    return PHEMA_OK;
}

bool partial_is_named(int descriptor, const char *path)
{
    struct stat opened, named;
    return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static enum phema_status lock_opened(const struct pending *pending, bool is_new,
                                     enum pending_use use, struct phema_error *err)
{
    struct stat st;
    bool is_exclusive = use == PENDING_EXCLUSIVE, is_locked = false;
    const char *path = use == PENDING_MARKER ? pending->partial_path : pending->path;
    enum phema_status status =
        partial_lock(&is_locked, pending->lock, use == PENDING_SHARED ? LOCK_SH : LOCK_EX,
                     !is_exclusive, path, err);
    if (status && is_exclusive && is_new)
        (void)(pending->is_directory ? rmdir : unlink)(pending->partial_path);
    if (status)
        return status;
    if (!is_locked)
        return use == PENDING_MARKER ? PHEMA_NO : writer_fail_locked(err, path);
    /* published by a link, and killed before the partial name was removed: to empty the file would
     * empty the published one */
    if (is_exclusive && !pending->is_directory && fstat(pending->lock, &st) == 0 && st.st_nlink > 1)
        (void)unlink(pending->partial_path);
    return PHEMA_OK;
}

/* ---- Pending files ---- */

bool pending_init(struct pending *out, const char *path, const char *suffix)
{
    char *own = phema_path_trim(path);
    *out = (struct pending){.path = own, .lock = -1, .parent = -1};
    out->partial_path = suffix ? path_add(own, suffix) : NULL;
    return out->partial_path;
}

PHEMA_FALLIBLE pending_open(struct pending *pending, enum pending_use use, struct phema_error *err)
{
    const char *partial = pending->partial_path;
    for (int attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
        bool is_new = false;
        enum phema_status status =
            pending->is_directory ? open_directory(pending, &is_new, err)
            : use == PENDING_EXCLUSIVE
                ? create_or_open(&pending->lock, &is_new, AT_FDCWD, partial, partial, pending->path,
                                 "cannot be written", err)
                : partial_open_shared_file(&pending->lock, &is_new, AT_FDCWD, partial, partial,
                                           err);
        if (status)
            return status;
        if (pending->lock < 0) /* a leftover has gone since */
            continue;
        status = lock_opened(pending, is_new, use, err);
        if (!status && partial_is_named(pending->lock, pending->partial_path)) {
            pending->took_over = !is_new;
            pending->is_ours = is_new && use != PENDING_SHARED;
            return PHEMA_OK;
        }
        (void)close(pending->lock);
        pending->lock = -1;
        if (status)
            return status;
    }
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: other runs keep writing %s", pending->path,
                      use == PENDING_MARKER ? "this part" : "it");
}

/* For writing: network filesystems require that for an exclusive lock. */
PHEMA_FALLIBLE pending_open_left(struct pending *pending, bool *is_locked, bool waits,
                                 struct phema_error *err)
{
    const char *partial = pending->partial_path;
    bool is_directory = pending->is_directory;
    enum phema_status status =
        leftover_open(&pending->lock, AT_FDCWD, partial, partial, is_directory ? O_RDONLY : O_RDWR,
                      is_directory ? S_IFDIR : S_IFREG, err);
    *is_locked = true;
    if (status || pending->lock < 0)
        return status;
    return partial_lock(is_locked, pending->lock, LOCK_EX, waits, pending->path, err);
}

PHEMA_FALLIBLE pending_guard(struct pending *pending, struct phema_error *err)
{
    return phema_cleanup_add_partial(&pending->entry, pending->partial_path, pending->is_directory,
                                     err);
}

void pending_keep(struct pending *pending, bool keeps)
{
    pending->is_kept = keeps;
    if (!keeps)
        return;
    phema_cleanup_remove(pending->entry);
    pending->entry = NULL;
}
