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
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "partial.h"
#include "phema/cleanup.h"
#include "phema/input.h"
#include "phema/text.h"

/* Each time as much as this has been put, what is dirty is handed to the disk, so that the fsync at
 * the end finds little to do. */
#define WRITEBACK_STEP_BYTES (8u << 20)

/* What has been handed over for this long is on disk by now, or nearly: waiting for it before it is
 * dropped from the page cache costs little. */
#define DROP_STEP_BYTES (64u << 20)

/* Zeros are left out in whole blocks of this size, and in runs of at least so many bytes: a hole
 * costs a call, and shorter ones leave the rest of the file in pieces. */
#define HOLE_BLOCK_BYTES 4096u
#define MIN_HOLE_BYTES   (32u << 10)

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

PHEMA_FALLIBLE phema_writer_allow(size_t n_files, struct phema_error *err)
{
    uint64_t limit, needed = 2 * (uint64_t)n_files + OTHER_DESCRIPTORS; /* the file and its lock */
    if (phema_descriptors_allow(needed, &limit))
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

PHEMA_FALLIBLE writer_lock(int descriptor, const char *path, struct phema_error *err)
{
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        return PHEMA_OK;
    if (errno == EWOULDBLOCK)
        return writer_fail_locked(path, err);
    if (errno != ENOLCK && errno != EOPNOTSUPP) /* filesystems without locks */
        return writer_fail_errno(err, path, "cannot be locked", errno);
    return PHEMA_OK;
}

static enum phema_status open_locked(struct phema_writer *writer, struct phema_error *err)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        int descriptor = open(writer->partial_path,
                              O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (descriptor < 0)
            return writer_fail_errno(err, writer->path, "cannot be written", errno);
        writer->descriptor = descriptor;
        struct stat st;
        if (fstat(descriptor, &st) || !S_ISREG(st.st_mode))
            return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: is not a regular file; remove it",
                              writer->partial_path);
        enum phema_status status = writer_lock(descriptor, writer->path, err);
        if (status || writer_is_still_named(descriptor, writer->partial_path))
            return status;
        (void)close(descriptor);
        writer->descriptor = -1;
    }
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: other runs keep writing it", writer->path);
}

enum phema_status writer_fail_size(const struct phema_writer *writer, int number,
                                   struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s: %s are needed", writer->path,
                      strerror(number), phema_size_shown(&shown, writer->size_bytes));
}

PHEMA_FALLIBLE writer_allocate(struct phema_writer *writer, uint64_t size_bytes,
                               struct phema_error *err)
{
    writer->size_bytes = size_bytes;
    if (size_bytes > INT64_MAX)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: larger than any file can be", writer->path);
    if (ftruncate(writer->descriptor, 0))
        return writer_fail_errno(err, writer->path, "cannot be emptied", errno);
    int result = 0;
    /* blocks of a file in memory are pages, which many threads allocate faster than one */
    struct statfs filesystem;
    if (fstatfs(writer->descriptor, &filesystem) == 0 && filesystem.f_type == TMPFS_MAGIC)
        return ftruncate(writer->descriptor, (off_t)size_bytes)
                   ? writer_fail_size(writer, errno, err)
                   : PHEMA_OK;
    do
        result = size_bytes ? fallocate(writer->descriptor, 0, 0, (off_t)size_bytes) : 0;
    while (result && errno == EINTR);
    /* filesystems that cannot preallocate find out about a full disk later */
    if (result && (errno == EOPNOTSUPP || errno == ENOSYS))
        result = ftruncate(writer->descriptor, (off_t)size_bytes);
    return result ? writer_fail_size(writer, errno, err) : PHEMA_OK;
}

struct phema_writer *writer_new(const char *path, const struct phema_writer_options *options)
{
    struct phema_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->descriptor = -1;
    writer->lock = -1;
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
    if (status) {
        /* not ours: it must not be removed */
        free(writer->partial_path);
        writer->partial_path = NULL;
    } else {
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
    *out = writer;
    return PHEMA_OK;

fail:
    phema_writer_abandon(writer);
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
    writer->descriptor =
        open(partial_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
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
    if (!status)
        status = writer_allocate(writer, size_bytes, err);
    if (!status)
        writer->is_fresh = size_bytes > 0;
    return writer_hand_over(out, writer, status);
}

static bool crosses(uint64_t before, uint64_t size, uint64_t step)
{
    return before / step != (before + size) / step;
}

/* All of it, when it is clean. */
static void drop_cache(const struct phema_writer *writer)
{
    (void)sync_file_range(writer->descriptor, 0, 0,
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                              SYNC_FILE_RANGE_WAIT_AFTER);
    (void)posix_fadvise(writer->descriptor, 0, 0, POSIX_FADV_DONTNEED);
}

void writer_note_written(struct phema_writer *writer, uint64_t size)
{
    uint64_t before = atomic_fetch_add_explicit(&writer->put_bytes, size, memory_order_relaxed);
    bool drops = writer->options.drops_cache;
    if (drops && crosses(before, size, DROP_STEP_BYTES))
        drop_cache(writer);
    else if ((drops || writer->options.syncs) && crosses(before, size, WRITEBACK_STEP_BYTES))
        (void)sync_file_range(writer->descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); /* a hint alone */
}

static enum phema_status write_all(struct phema_writer *writer, uint64_t offset,
                                   const uint8_t *bytes, size_t size, struct phema_error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t written =
            pwrite(writer->descriptor, bytes + done, size - done, (off_t)(offset + done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EFAULT) {
            phema_cleanup_touch(bytes,
                                size); /* data of a snapshot that was cut: says so and ends */
            errno = EFAULT;
        }
        if (written <= 0)
            return writer_fail_errno(err, writer->path, "cannot be written",
                                     written ? errno : ENOSPC);
        done += (size_t)written;
    }
    writer_note_written(writer, size);
    return PHEMA_OK;
}

/* Most blocks have something in their first bytes. */
static bool is_zero_block(const uint8_t *bytes)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, HOLE_BLOCK_BYTES - 1) == 0;
}

/* The next run of zeros, in whole blocks of the file, among bytes [*from, size); false for none. */
static bool find_zeros(size_t *from, size_t *end, uint64_t offset, const uint8_t *bytes,
                       size_t size)
{
    size_t aligned = (size_t)(-offset % HOLE_BLOCK_BYTES); /* where the first whole block begins */
    size_t at = *from > aligned ? *from : aligned;
    while (at + MIN_HOLE_BYTES <= size) {
        size_t start = at;
        while (at + HOLE_BLOCK_BYTES <= size && is_zero_block(bytes + at))
            at += HOLE_BLOCK_BYTES;
        if (at - start >= MIN_HOLE_BYTES) {
            *from = start;
            *end = at;
            return true;
        }
        at += HOLE_BLOCK_BYTES;
    }
    return false;
}

/* Blocks that were set aside are given back, where the filesystem does that. */
static void make_hole(const struct phema_writer *writer, uint64_t offset, size_t size)
{
    (void)fallocate(writer->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                    (off_t)size);
}

PHEMA_FALLIBLE phema_writer_put(struct phema_writer *writer, uint64_t offset, const void *data,
                                size_t size, struct phema_error *err)
{
    const uint8_t *bytes = data;
    size_t done = 0, zeros = 0, end = 0;
    enum phema_status status = PHEMA_OK;
    while (writer->is_fresh && !status && find_zeros(&zeros, &end, offset, bytes, size)) {
        make_hole(writer, offset + zeros, end - zeros);
        status = write_all(writer, offset + done, bytes + done, zeros - done, err);
        done = zeros = end;
    }
    return status ? status : write_all(writer, offset + done, bytes + done, size - done, err);
}

PHEMA_FALLIBLE phema_writer_sync_entry(const char *path, struct phema_error *err)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    const char *slash = memrchr(path, '/', size);
    char *directory = slash == path ? strdup("/")
                      : slash       ? strndup(path, (size_t)(slash - path))
                                    : strdup(".");
    if (!directory)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
    int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    int result = descriptor < 0 ? -1 : fsync(descriptor);
    int number = errno;
    if (descriptor >= 0)
        (void)close(descriptor);
    /* some filesystems cannot sync a directory, and have nothing to sync then */
    if (result && number != EINVAL && number != EROFS && number != EACCES)
        return writer_fail_errno(err, path, "its directory cannot be synced", number);
    return PHEMA_OK;
}

static void unmap(struct phema_writer *writer)
{
    phema_cleanup_remove(writer->map_entry);
    writer->map_entry = NULL;
    if (writer->map)
        (void)munmap(writer->map, writer->size_bytes);
    writer->map = NULL;
}

int writer_publish(const char *partial_path, const char *path, bool replaces)
{
    if (replaces)
        return rename(partial_path, path);
    if (renameat2(AT_FDCWD, partial_path, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* no such rename on this filesystem: a link never replaces either */
    if (link(partial_path, path))
        return -1;
    (void)unlink(partial_path);
    return 0;
}

enum phema_status writer_fail_publish(const char *path, int number, struct phema_error *err)
{
    if (number == EEXIST)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: appeared while this run was writing; it was "
                          "left as it is (--force replaces it)",
                          path);
    return writer_fail_errno(err, path, "cannot be renamed into place", number);
}

PHEMA_FALLIBLE phema_writer_commit(struct phema_writer *writer, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    unmap(writer);
    if (writer->options.syncs && fsync(writer->descriptor)) {
        status = writer_fail_errno(err, writer->path, "cannot be synced", errno);
        goto done;
    }
    if (writer->options.drops_cache)
        drop_cache(writer);
    int closed = close(writer->descriptor);
    writer->descriptor = -1;
    if (closed && errno != EINTR) {
        status = writer_fail_errno(err, writer->path, "cannot be written", errno);
        goto done;
    }
    if (!writer->is_inside &&
        writer_publish(writer->partial_path, writer->path, writer->options.replaces)) {
        status = writer_fail_publish(writer->path, errno, err);
        goto done;
    }
    free(writer->partial_path);
    writer->partial_path = NULL;
    phema_cleanup_remove(writer->entry);
    writer->entry = NULL;
    if (writer->options.syncs && !writer->is_inside)
        status = phema_writer_sync_entry(writer->path, err);

done:
    phema_writer_abandon(writer);
    return status;
}

void phema_writer_abandon(struct phema_writer *writer)
{
    if (!writer)
        return;
    unmap(writer);
    if (writer->partial_path && (writer->descriptor >= 0 || writer->lock >= 0))
        (void)unlink(writer->partial_path);
    phema_cleanup_remove(writer->entry);
    if (writer->descriptor >= 0)
        (void)close(writer->descriptor);
    if (writer->lock >= 0)
        (void)close(writer->lock);
    free(writer->partial_path);
    free(writer->path);
    free(writer);
}

const char *phema_writer_path(const struct phema_writer *writer)
{
    return writer->path;
}
