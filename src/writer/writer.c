// SPDX-License-Identifier: Apache-2.0
/* writer.c - PATH.partial, locked and preallocated; published by rename.
 * The lock (flock) tells a live run from the leftover of a killed one, which is taken over. It is
 * held through a second descriptor while the first is closed, since close may be what reports a
 * failed write on network filesystems. */
#include "phema/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "partial.h"
#include "phema/cleanup.h"
#include "phema/file_reader.h"
#include "phema/strbuf.h"

enum phema_status writer_fail_errno(struct phema_error *err, const char *path, const char *what,
                                    int number)
{
    enum phema_status status = number == ENOMEM || number == EMFILE || number == ENFILE
                                   ? PHEMA_ERR_RESOURCE
                                   : PHEMA_ERR_OUTPUT;
    return phema_fail(err, status, "%s: %s: %s", path, what, strerror(number));
}

/* What else the process keeps open: standard streams, a directory now and then. */
#define OTHER_DESCRIPTORS 32

PHEMA_FALLIBLE phema_writer_reserve_descriptors(size_t n_files, struct phema_error *err)
{
    uint64_t limit, needed = 2 * (uint64_t)n_files + OTHER_DESCRIPTORS; /* the file and its lock */
    if (phema_raise_fd_limit(needed, &limit))
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_RESOURCE,
                      "%zu files are written at once, which needs %llu descriptors, and this "
                      "process may have %llu; ask for fewer or raise ulimit -n",
                      n_files, (unsigned long long)needed, (unsigned long long)limit);
}

PHEMA_FALLIBLE phema_writer_check_absent(const char *path, struct phema_error *err)
{
    struct stat st;
    if (lstat(path, &st) == 0)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: exists already; --force replaces it", path);
    if (errno != ENOENT)
        return writer_fail_errno(err, path, "cannot be examined", errno);
    return PHEMA_OK;
}

bool writer_is_still_named(int descriptor, const char *path)
{
    struct stat opened, named;
    return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

enum phema_status writer_fail_locked(const char *path, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: another run is writing it; wait for it or choose another name", path);
}

PHEMA_FALLIBLE writer_lock(bool *is_held, int descriptor, const char *path, struct phema_error *err)
{
    *is_held = false;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        return PHEMA_OK;
    if (errno == EWOULDBLOCK) {
        *is_held = true;
        return writer_fail_locked(path, err);
    }
    if (errno != ENOLCK && errno != EOPNOTSUPP) /* filesystems without locks */
        return writer_fail_errno(err, path, "cannot be locked", errno);
    return PHEMA_OK;
}

/* Where a partial file was published by a link and the run was killed before it went: emptying it
 * would empty what was published. */
static bool is_published_too(int descriptor)
{
    struct stat st;
    return fstat(descriptor, &st) == 0 && st.st_nlink > 1;
}

/* New, or the leftover of a dead run; -1 where that has gone since. */
static enum phema_status open_partial(struct phema_writer *writer, struct phema_error *err)
{
    writer->descriptor =
        open(writer->partial_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
             WRITER_PARTIAL_MODE);
    writer->took_over = writer->descriptor < 0 && errno == EEXIST;
    if (writer->took_over)
        return writer_open_left(&writer->descriptor, AT_FDCWD, writer->partial_path,
                                writer->partial_path, O_RDWR, S_IFREG, err);
    return writer->descriptor < 0 ? writer_fail_errno(err, writer->path, "cannot be written", errno)
                                  : PHEMA_OK;
}

static enum phema_status open_locked(struct phema_writer *writer, struct phema_error *err)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        enum phema_status status = open_partial(writer, err);
        if (status)
            return status;
        if (writer->descriptor < 0)
            continue;
        bool is_held = false;
        status = writer_lock(&is_held, writer->descriptor, writer->path, err);
        if (status && !writer->took_over && !is_held)
            (void)unlink(writer->partial_path);
        if (!status && is_published_too(writer->descriptor))
            (void)unlink(writer->partial_path);
        if (status || writer_is_still_named(writer->descriptor, writer->partial_path))
            return status;
        (void)close(writer->descriptor);
        writer->descriptor = -1;
    }
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: other runs keep writing it", writer->path);
}

enum phema_status writer_fail_size(const struct phema_writer *writer, int number,
                                   struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s: %s are needed", writer->path,
                      strerror(number), phema_size_format(&shown, writer->size_bytes));
}

int writer_truncate(int descriptor, uint64_t size_bytes)
{
    int result = 0;
    do
        result = ftruncate(descriptor, (off_t)size_bytes);
    while (result && errno == EINTR);
    return result;
}

bool writer_resumes(struct phema_writer *writer, uint64_t size_bytes)
{
    struct stat st;
    writer->is_resumed = writer->options.resumes && writer->took_over &&
                         fstat(writer->descriptor, &st) == 0 && (uint64_t)st.st_size == size_bytes;
    if (writer->is_resumed)
        writer->size_bytes = size_bytes;
    struct phema_error ignored; /* without memory, a signal would leave it */
    bool is_off_list = writer->is_kept && !writer->is_inside;
    if (is_off_list && !writer->is_resumed &&
        phema_cleanup_add_partial(&writer->entry, writer->partial_path, false, &ignored))
        writer->entry = NULL;
    writer->is_kept = writer->is_resumed;
    return writer->is_resumed;
}

PHEMA_FALLIBLE writer_allocate(struct phema_writer *writer, uint64_t size_bytes,
                               struct phema_error *err)
{
    writer->size_bytes = size_bytes;
    if (size_bytes > INT64_MAX)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: larger than any file can be", writer->path);
    if (writer_truncate(writer->descriptor, 0))
        return writer_fail_errno(err, writer->path, "cannot be emptied", errno);
    int result = 0;
    /* blocks of a file in memory are pages, which many threads allocate faster than one */
    struct statfs filesystem;
    if (fstatfs(writer->descriptor, &filesystem) == 0 && filesystem.f_type == TMPFS_MAGIC)
        return writer_truncate(writer->descriptor, size_bytes)
                   ? writer_fail_size(writer, errno, err)
                   : PHEMA_OK;
    do
        result = size_bytes ? fallocate(writer->descriptor, 0, 0, (off_t)size_bytes) : 0;
    while (result && errno == EINTR);
    /* filesystems that cannot preallocate find out about a full disk later */
    if (result && (errno == EOPNOTSUPP || errno == ENOSYS))
        result = writer_truncate(writer->descriptor, size_bytes);
    return result ? writer_fail_size(writer, errno, err) : PHEMA_OK;
}

struct phema_writer *writer_new(const char *path, const struct phema_writer_options *options)
{
    struct phema_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->descriptor = -1;
    writer->lock = -1;
    writer->parent = -1;
    writer->options = *options;
    writer->path = strdup(path);
    if (!writer->path) {
        free(writer);
        return NULL;
    }
    return writer;
}

static bool is_empty(int descriptor)
{
    struct stat st;
    return fstat(descriptor, &st) == 0 && st.st_size == 0;
}

PHEMA_FALLIBLE writer_begin(struct phema_writer **out, const char *path,
                            const struct phema_writer_options *options, struct phema_error *err)
{
    if (!options->replaces) {
        enum phema_status status = phema_writer_check_absent(path, err);
        if (status)
            return status;
    }
    struct phema_writer *writer = writer_new(path, options);
    if (!writer)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
    enum phema_status status = PHEMA_OK;
    if (asprintf(&writer->partial_path, "%s.partial", path) < 0) {
        writer->partial_path = NULL;
        status = phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
        goto fail;
    }
    phema_cleanup_hold();
    status = open_locked(writer, err);
    if (!status && !is_empty(writer->descriptor))
        status = writer_check_no_parts(path, err);
    writer->is_kept = options->resumes && writer->took_over;
    if (status) {
        /* not ours: it must not be removed */
        free(writer->partial_path);
        writer->partial_path = NULL;
    } else if (!writer->is_kept) {
        status = phema_cleanup_add_partial(&writer->entry, writer->partial_path, false, err);
        if (status)
            (void)phema_fail_in(err, status, "%s", path);
    }
    phema_cleanup_resume();
    if (status)
        goto fail;
    writer->lock = fcntl(writer->descriptor, F_DUPFD_CLOEXEC, 0);
    if (writer->lock < 0) {
        status = writer_fail_errno(err, path, "cannot be written", errno);
        goto fail;
    }
    writer->usual_write = writer_usual_write(path);
    *out = writer;
    return PHEMA_OK;

fail:
    phema_writer_abandon(writer);
    return status;
}

/* What is no plain file of one name makes room for a new one. */
static enum phema_status open_left_inside(struct phema_writer *writer, struct phema_error *err)
{
    struct stat st;
    const char *path = writer->partial_path;
    bool is_there = lstat(path, &st) == 0;
    if (is_there && (!S_ISREG(st.st_mode) || st.st_nlink != 1)) {
        (void)unlink(path);
        return PHEMA_OK;
    }
    enum phema_status status =
        writer_open_left(&writer->descriptor, AT_FDCWD, path, path, O_RDWR, S_IFREG, err);
    writer->took_over = writer->is_kept = writer->descriptor >= 0;
    return status;
}

PHEMA_FALLIBLE writer_begin_inside(struct phema_writer **out, const char *path,
                                   const char *partial_path,
                                   const struct phema_writer_options *options,
                                   struct phema_error *err)
{
    struct phema_writer *writer = writer_new(path, options);
    if (!writer)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
    enum phema_status status = PHEMA_OK;
    writer->is_inside = true;
    writer->partial_path = strdup(partial_path);
    if (!writer->partial_path) {
        status = phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
        goto fail;
    }
    if (options->resumes)
        status = open_left_inside(writer, err);
    if (status)
        goto fail;
    if (writer->descriptor < 0)
        writer->descriptor = open(partial_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                                  WRITER_PARTIAL_MODE);
    if (writer->descriptor < 0) {
        status = writer_fail_errno(err, path, "cannot be written", errno);
        goto fail;
    }
    *out = writer;
    return PHEMA_OK;

fail:
    phema_writer_abandon(writer);
    return status;
}

enum phema_status writer_hand_over(struct phema_writer **out, struct phema_writer *writer,
                                   enum phema_status status)
{
    if (status)
        phema_writer_abandon(writer);
    else
        *out = writer;
    return status;
}

PHEMA_FALLIBLE phema_writer_open(struct phema_writer **out, const char *path, uint64_t size_bytes,
                                 const struct phema_writer_options *options,
                                 struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = writer_begin(&writer, path, options, err);
    if (!status && !writer_resumes(writer, size_bytes))
        status = writer_allocate(writer, size_bytes, err);
    if (!status)
        writer->is_fresh = size_bytes > 0;
    return writer_hand_over(out, writer, status);
}

bool phema_writer_took_over(const struct phema_writer *writer)
{
    return writer->took_over;
}

bool phema_writer_is_resumed(const struct phema_writer *writer)
{
    return writer->is_resumed;
}

void phema_writer_keep(struct phema_writer *writer, bool keeps)
{
    writer->is_kept = keeps;
    if (!keeps)
        return;
    phema_cleanup_remove(writer->entry);
    writer->entry = NULL;
}

const char *phema_writer_path(const struct phema_writer *writer)
{
    return writer->path;
}
