// SPDX-License-Identifier: Apache-2.0
/* partial.c - creates, locks and takes over PATH.partial.
 * The lock (flock) distinguishes the file of a live run from the leftover of a killed one. Only a
 * leftover of the effective user that nobody else may write is used. Bytes of another writer would
 * be published under this user's name. Partial files are therefore created without write permission
 * for others, which publish.c adds. */
#include "partial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "write_error.h"

/* Each attempt after the first follows another run that ended between our open and our lock. */
#define OPEN_ATTEMPTS 16

/* Another part reads a marker for microseconds, and needs hardly longer from the creation of
 * PATH.partial to its lock. A run that writes holds its lock much longer. */
#define LOCK_ATTEMPTS 20
#define LOCK_PAUSE_NS 25000000

char *path_partial(const char *path)
{
    char *partial_path = NULL;
    return asprintf(&partial_path, "%s.partial", path) < 0 ? NULL : partial_path;
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

PHEMA_FALLIBLE partial_open_shared_file(int *out, bool *is_new, int directory, const char *name,
                                        const char *path, struct phema_error *err)
{
    *out = partial_create_file(directory, name);
    *is_new = *out >= 0;
    if (*is_new)
        return PHEMA_OK;
    if (errno != EEXIST)
        return writer_fail_errno(err, path, "cannot be made", errno);
    enum phema_status status = leftover_open(out, directory, name, path, O_RDWR, S_IFREG, err);
    struct stat st;
    if (*out < 0 || fstat(*out, &st))
        return status;
    status = leftover_check_one_name(&st, path, err);
    if (status) {
        (void)close(*out);
        *out = -1;
    }
    return status;
}

static enum phema_status open_exclusive_file(int *out, bool *is_new,
                                             const struct partial_request *request,
                                             struct phema_error *err)
{
    const char *partial = request->partial_path;
    *out = partial_create_file(AT_FDCWD, partial);
    *is_new = *out >= 0;
    if (*is_new)
        return PHEMA_OK;
    if (errno != EEXIST)
        return writer_fail_errno(err, request->path, "cannot be written", errno);
    return leftover_open(out, AT_FDCWD, partial, partial, O_RDWR, S_IFREG, err);
}

/* A new directory is not examined: filesystems with users and modes of their own accept new
 * directories too. */
static enum phema_status open_directory(int *out, bool *is_new,
                                        const struct partial_request *request,
                                        struct phema_error *err)
{
    const char *partial = request->partial_path;
    *is_new = mkdir(partial, WRITER_PARTIAL_DIRECTORY_MODE) == 0;
    if (!*is_new && errno == EEXIST)
        return leftover_open(out, AT_FDCWD, partial, partial, O_RDONLY, S_IFDIR, err);
    if (!*is_new)
        return writer_fail_errno(err, request->path, "cannot be made", errno);
    *out = open(partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*out >= 0 || errno == ENOENT)
        return PHEMA_OK;
    int number = errno;
    (void)rmdir(partial);
    return writer_fail_errno(err, request->path, "cannot be written", number);
}

/* *out: -1 where a leftover has gone since. */
static enum phema_status open_or_create(int *out, bool *is_new,
                                        const struct partial_request *request,
                                        struct phema_error *err)
{
    if (request->is_directory)
        return open_directory(out, is_new, request, err);
    if (request->use == PARTIAL_EXCLUSIVE)
        return open_exclusive_file(out, is_new, request, err);
    return partial_open_shared_file(out, is_new, AT_FDCWD, request->partial_path,
                                    request->partial_path, err);
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

/* The partial file was published by a link, and the run was killed before it removed the partial
 * name. To empty the file would empty the published one. */
static bool is_published_too(int descriptor)
{
    struct stat st;
    return fstat(descriptor, &st) == 0 && st.st_nlink > 1;
}

static enum phema_status lock_opened(int descriptor, bool is_new,
                                     const struct partial_request *request, struct phema_error *err)
{
    bool is_exclusive = request->use == PARTIAL_EXCLUSIVE, is_locked = false;
    const char *path = request->use == PARTIAL_MARKER ? request->partial_path : request->path;
    enum phema_status status =
        partial_lock(&is_locked, descriptor, request->use == PARTIAL_SHARED ? LOCK_SH : LOCK_EX,
                     !is_exclusive, path, err);
    if (status && is_exclusive && is_new)
        (void)(request->is_directory ? rmdir : unlink)(request->partial_path);
    if (status)
        return status;
    if (!is_locked)
        return PHEMA_NO;
    if (is_exclusive && !request->is_directory && is_published_too(descriptor))
        (void)unlink(request->partial_path);
    return PHEMA_OK;
}

PHEMA_FALLIBLE partial_open(int *out, bool *is_new, const struct partial_request *request,
                            struct phema_error *err)
{
    for (int attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
        *out = -1;
        enum phema_status status = open_or_create(out, is_new, request, err);
        if (status)
            return status;
        if (*out < 0)
            continue;
        status = lock_opened(*out, *is_new, request, err);
        if (!status && partial_is_named(*out, request->partial_path))
            return PHEMA_OK;
        (void)close(*out);
        *out = -1;
        if (status)
            return status;
    }
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: other runs keep writing %s", request->path,
                      request->use == PARTIAL_MARKER ? "this part" : "it");
}
