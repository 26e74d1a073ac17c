// SPDX-License-Identifier: Apache-2.0
/* copy.c - the bytes that a file begins with: none, in blocks that are reserved, or those of another,
 * by reflink, copy_file_range, or read and write, the first of them that works. Also reading and
 * mapping of a file while it is written. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "writer_internal.h"

/* Bytes of one call to the kernel, so that ending signals do not wait for long. */
#define KERNEL_STEP_BYTES (16u << 20)
#define MEMORY_STEP_BYTES (1u << 20)

static enum phema_status fail_source(struct phema_error *err, const char *source, const char *what,
                                     int number)
{
    enum phema_status status = phema_fail_errno(err, PHEMA_ERR_FILE, what, number);
    return phema_fail_in(err, status, "%s", source);
}

PHEMA_FALLIBLE writer_fail_cut(struct phema_error *err, const char *source)
{
    return phema_fail(err, PHEMA_ERR_FILE, "%s: the file was cut short while it was copied",
                      source);
}

PHEMA_FALLIBLE writer_open_source(int *descriptor, uint64_t *size_bytes, const char *source,
                                  struct phema_error *err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer that never comes */
    int opened = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0)
        return fail_source(err, source, "cannot be opened", errno);
    struct stat st;
    enum phema_status status = PHEMA_OK;
    if (fstat(opened, &st))
        status = fail_source(err, source, "cannot be examined", errno);
    else if (!S_ISREG(st.st_mode))
        status = phema_fail(err, PHEMA_ERR_FILE, "%s: is not a regular file", source);
    if (status) {
        (void)close(opened);
        return status;
    }
    *descriptor = opened;
    *size_bytes = (uint64_t)st.st_size;
    return PHEMA_OK;
}

static void drop_source(const struct phema_writer *writer, int source_descriptor, uint64_t offset,
                        uint64_t size)
{
    if (writer->options.drops_cache)
        (void)posix_fadvise(source_descriptor, (off_t)offset, (off_t)size, POSIX_FADV_DONTNEED);
}

/* Copies bytes [*done, size) inside the kernel; PHEMA_OK with *done < size where it cannot. */
static enum phema_status copy_in_kernel(uint64_t *done, struct phema_writer *writer,
                                        int source_descriptor, struct phema_error *err)
{
    while (*done < writer->size_bytes) {
        uint64_t left = writer->size_bytes - *done;
        off_t from = (off_t)*done;
        off_t to = (off_t)*done;
        ssize_t copied =
            copy_file_range(source_descriptor, &from, writer->descriptor, &to,
                            left < KERNEL_STEP_BYTES ? (size_t)left : KERNEL_STEP_BYTES, 0);
        if (copied < 0 && errno == EINTR)
            continue;
        if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
            return writer_fail_size(err, writer->out.path, writer->size_bytes, errno);
        if (copied <= 0) /* other filesystem, no such call, ...; reading reports any fault */
            return PHEMA_OK;
        drop_source(writer, source_descriptor, *done, (uint64_t)copied);
        *done += (uint64_t)copied;
        writer_note_written(writer, (uint64_t)copied);
    }
    return PHEMA_OK;
}

static enum phema_status copy_through(uint64_t done, struct phema_writer *writer,
                                      int source_descriptor, const char *source,
                                      struct phema_error *err)
{
    uint8_t *buffer = malloc(MEMORY_STEP_BYTES);
    enum phema_status status = buffer ? PHEMA_OK : writer_fail_memory(err, writer->out.path);
    while (done < writer->size_bytes && !status) {
        uint64_t left = writer->size_bytes - done;
        size_t size = left < MEMORY_STEP_BYTES ? (size_t)left : MEMORY_STEP_BYTES;
        ssize_t n = file_read_fully(source_descriptor, buffer, size, done);
        if (n < 0)
            status = fail_source(err, source, "cannot be read", errno);
        else if ((size_t)n < size)
            status = writer_fail_cut(err, source);
        else
            status = phema_writer_write(writer, done, buffer, size, err);
        if (!status)
            drop_source(writer, source_descriptor, done, size);
        done += size;
    }
    free(buffer);
    return status;
}

PHEMA_FALLIBLE writer_allocate(struct phema_writer *writer, uint64_t size_bytes,
                               struct phema_error *err)
{
    const char *path = writer->out.path;
    writer->size_bytes = size_bytes;
    if (size_bytes > INT64_MAX)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: larger than any file can be", path);
    if (file_truncate(writer->descriptor, 0))
        return writer_fail_errno(err, path, "cannot be emptied", errno);
    return file_reserve(writer->descriptor, size_bytes)
               ? writer_fail_size(err, path, size_bytes, errno)
               : PHEMA_OK;
}

PHEMA_FALLIBLE writer_copy(struct phema_writer *writer, int source_descriptor, const char *source,
                           uint64_t size_bytes, struct phema_error *err)
{
    struct stat st;
    bool may_share = !writer->options.owns_blocks;
    if (may_share && ioctl(writer->descriptor, FICLONE, source_descriptor) == 0) {
        writer->size_bytes = size_bytes;
        /* a source that has grown or shrunk since: the copy below reports it */
        if (fstat(writer->descriptor, &st) == 0 && (uint64_t)st.st_size == size_bytes)
            return PHEMA_OK;
    }
    enum phema_status status = writer_allocate(writer, size_bytes, err);
    uint64_t done = 0;
    if (!status && may_share)
        status = copy_in_kernel(&done, writer, source_descriptor, err);
    return status || done == size_bytes
               ? status
               : copy_through(done, writer, source_descriptor, source, err);
}

PHEMA_FALLIBLE phema_writer_map(uint8_t **out, struct phema_writer *writer, struct phema_error *err)
{
    if (!writer->map) {
        void *map = mmap(NULL, writer->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                         writer->descriptor, 0);
        if (map == MAP_FAILED)
            return writer_fail_errno(err, writer->out.path, "cannot be mapped for writing", errno);
        struct phema_span span = {map, writer->size_bytes};
        enum phema_status status =
            phema_cleanup_add_map(&writer->map_entry, span, writer->out.path, true, err);
        if (status) {
            (void)munmap(map, writer->size_bytes);
            return phema_fail_in(err, status, "%s", writer->out.path);
        }
        writer->map = map;
    }
    *out = writer->map;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_writer_read(struct phema_writer *writer, uint64_t offset, void *data,
                                 size_t size, struct phema_error *err)
{
    ssize_t n = file_read_fully(writer->descriptor, data, size, offset);
    if (n < 0)
        return writer_fail_errno(err, writer->out.path, "cannot be read back", errno);
    if ((size_t)n < size)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: the file was cut short while it was being written",
                          writer->out.path);
    return PHEMA_OK;
}
