// SPDX-License-Identifier: Apache-2.0
/* write.c - bytes to their place in a file: handed to the disk early, and zeros left out. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "partial.h"
#include "phema/cleanup.h"

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

static bool crosses(uint64_t before, uint64_t size, uint64_t step)
{
    return before / step != (before + size) / step;
}

/* All of it, when it is clean. The kernel tells once that it could not write: to who waits first,
 * and then not to fsync any more. */
void writer_drop_cache(struct phema_writer *writer)
{
    if (sync_file_range(writer->descriptor, 0, 0,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER) &&
        (errno == EIO || errno == ENOSPC || errno == EDQUOT))
        atomic_store(&writer->lost, errno);
    (void)posix_fadvise(writer->descriptor, 0, 0, POSIX_FADV_DONTNEED);
}

void writer_note_written(struct phema_writer *writer, uint64_t size)
{
    uint64_t before = atomic_fetch_add_explicit(&writer->put_bytes, size, memory_order_relaxed);
    bool drops = writer->options.drops_cache;
    if (drops && crosses(before, size, DROP_STEP_BYTES))
        writer_drop_cache(writer);
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

/* Blocks that were set aside are given back, where the filesystem does that: false where not. */
static bool make_hole(const struct phema_writer *writer, uint64_t offset, size_t size)
{
    return fallocate(writer->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                     (off_t)size) == 0;
}

/* The zeros around a hole, which share their blocks with others: [*start, *end) grows to them. */
static void take_in_edges(size_t *start, size_t *end, const uint8_t *bytes, size_t first,
                          size_t size)
{
    while (*start > first && bytes[*start - 1] == 0)
        --*start;
    while (*end < size && bytes[*end] == 0)
        ++*end;
}

PHEMA_FALLIBLE phema_writer_put(struct phema_writer *writer, uint64_t offset, const void *data,
                                size_t size, struct phema_error *err)
{
    const uint8_t *bytes = data;
    size_t done = 0, zeros = 0, end = 0;
    enum phema_status status = PHEMA_OK;
    while (writer->is_fresh && !status && find_zeros(&zeros, &end, offset, bytes, size)) {
        bool is_hole = make_hole(writer, offset + zeros, end - zeros);
        size_t next = end;
        if (!writer->is_resumed)
            take_in_edges(&zeros, &next, bytes, done, size);
        else if (!is_hole) /* what is there may be anything */
            zeros = end;
        status = write_all(writer, offset + done, bytes + done, zeros - done, err);
        done = next;
        zeros = end;
    }
    return status ? status : write_all(writer, offset + done, bytes + done, size - done, err);
}
