// SPDX-License-Identifier: Apache-2.0
/* write.c - writes bytes at their offset in a file, and makes holes for zeros. A thread hands written
 * pages to the disk early, for all files of the process. */
#include "writer_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/parallel.h"

/* After this many written bytes, dirty pages are handed to the disk, so that the fsync at the end
 * finds little to do. */
#define WRITEBACK_STEP_BYTES (8u << 20)

/* When this many further bytes were handed over, pages are on disk, or nearly. The wait before they
 * are dropped from the page cache costs little. */
#define DROP_STEP_BYTES (64u << 20)

/* Holes are whole blocks of the first size and have at least the second: a hole costs a call, and
 * shorter ones fragment the file. */
#define HOLE_BLOCK_BYTES 4096u
#define MIN_HOLE_BYTES   (32u << 10)

/* ---- System calls, as often as needed ---- */

int file_write_fully(int descriptor, const void *data, size_t size, uint64_t offset)
{
    const uint8_t *bytes = data;
    for (size_t done = 0; done < size;) {
        ssize_t written = TEMP_FAILURE_RETRY(
            pwrite(descriptor, bytes + done, size - done, (off_t)(offset + done)));
        if (written == 0)
            errno = ENOSPC;
        if (written <= 0)
            return -1;
        done += (size_t)written;
    }
    return 0;
}

ssize_t file_read_fully(int descriptor, void *data, size_t size, uint64_t offset)
{
    uint8_t *bytes = data;
    size_t done = 0;
    while (done < size) {
        ssize_t n = TEMP_FAILURE_RETRY(
            pread(descriptor, bytes + done, size - done, (off_t)(offset + done)));
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int file_truncate(int descriptor, uint64_t size_bytes)
{
    return (int)TEMP_FAILURE_RETRY(ftruncate(descriptor, (off_t)size_bytes));
}

/* Blocks of a file in memory are pages: the threads and processes that write them allocate them
 * faster than one call, and a call over pages that are there walks all of them. Filesystems that
 * cannot reserve blocks find out about a full disk later. */
int file_reserve(int descriptor, uint64_t size_bytes)
{
    struct stat st;
    struct statfs filesystem;
    if (!size_bytes)
        return 0;
    bool is_in_memory = fstatfs(descriptor, &filesystem) == 0 && filesystem.f_type == TMPFS_MAGIC;
    if (!is_in_memory) {
        int result = (int)TEMP_FAILURE_RETRY(fallocate(descriptor, 0, 0, (off_t)size_bytes));
        if (!result || (errno != EOPNOTSUPP && errno != ENOSYS))
            return result;
    }
    bool is_large_enough = fstat(descriptor, &st) == 0 && (uint64_t)st.st_size >= size_bytes;
    return is_large_enough ? 0 : file_truncate(descriptor, size_bytes);
}

int file_sync(int descriptor)
{
    return (int)TEMP_FAILURE_RETRY(fsync(descriptor));
}

/* ---- Handing pages to the disk ---- */

/* The call waits while the disk is busy, and two such calls for one file slow each other down: workers
 * that made it themselves would sum nothing meanwhile. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct writeback *first, *last; /* that wait; linked by next */
    struct writeback *current;      /* whose pages are handed over */
    pthread_t thread;
    bool is_running; /* the thread looks at the list again before it ends */
    bool has_thread; /* to be joined, running or not */
} handing = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void hand_over(int descriptor)
{
    (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); /* only a hint */
}

static void *hand_over_all(void *unused)
{
    (void)unused;
    (void)pthread_mutex_lock(&handing.lock);
    while (handing.first) {
        struct writeback *writeback = handing.first;
        handing.first = writeback->next;
        writeback->is_waiting = false;
        handing.current = writeback;
        int descriptor = writeback->descriptor;
        (void)pthread_mutex_unlock(&handing.lock);
        hand_over(descriptor);
        (void)pthread_mutex_lock(&handing.lock);
        handing.current = NULL;
        (void)pthread_cond_broadcast(&handing.changed);
    }
    handing.is_running = false;
    (void)pthread_mutex_unlock(&handing.lock);
    return NULL;
}

/* Holds the lock. */
static void join_ended(void)
{
    if (handing.has_thread && !handing.is_running) {
        (void)pthread_join(handing.thread, NULL); /* it needs the lock no more */
        handing.has_thread = false;
    }
}

void writeback_request(struct writeback *writeback, int descriptor)
{
    bool is_left = false; /* to this thread */
    (void)pthread_mutex_lock(&handing.lock);
    if (!writeback->is_waiting) {
        join_ended();
        if (!handing.is_running)
            handing.has_thread = handing.is_running =
                phema_thread_start(&handing.thread, hand_over_all, NULL) == 0;
        if (handing.is_running) {
            *writeback = (struct writeback){.descriptor = descriptor, .is_waiting = true};
            if (handing.first)
                handing.last->next = writeback;
            else
                handing.first = writeback;
            handing.last = writeback;
        } else {
            is_left = true;
        }
    }
    (void)pthread_mutex_unlock(&handing.lock);
    if (is_left)
        hand_over(descriptor);
}

void writeback_cancel(struct writeback *writeback)
{
    (void)pthread_mutex_lock(&handing.lock);
    if (writeback->is_waiting) { /* leaves the list */
        struct writeback *before = NULL;
        for (struct writeback *at = handing.first; at != writeback; at = at->next)
            before = at;
        *(before ? &before->next : &handing.first) = writeback->next;
        if (handing.last == writeback)
            handing.last = before;
        writeback->is_waiting = false;
    }
    while (handing.current == writeback)
        (void)pthread_cond_wait(&handing.changed, &handing.lock);
    join_ended();
    (void)pthread_mutex_unlock(&handing.lock);
}

static bool crosses(uint64_t before, uint64_t size, uint64_t step)
{
    return before / step != (before + size) / step;
}

/* Drops clean pages only, hence the wait. The kernel reports a failed write once: to the first call
 * that waits, and then no more to fsync. */
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
    uint64_t before = atomic_fetch_add_explicit(&writer->written_bytes, size, memory_order_relaxed);
    bool drops = writer->options.drops_cache;
    if (drops && crosses(before, size, DROP_STEP_BYTES))
        writer_drop_cache(writer);
    else if ((drops || writer->options.syncs) && crosses(before, size, WRITEBACK_STEP_BYTES))
        writeback_request(&writer->writeback, writer->descriptor);
}

/* ---- Writing ---- */

PHEMA_FALLIBLE phema_writer_write_uncounted(struct phema_writer *writer, uint64_t offset,
                                            const void *data, size_t size, struct phema_error *err)
{
    if (file_write_fully(writer->descriptor, data, size, offset)) {
        int number = errno;
        if (number == EFAULT) /* mapped snapshot that was cut: reports that and ends the program */
            phema_cleanup_touch(data, size);
        return writer_fail_errno(err, writer->out.path, "cannot be written", number);
    }
    writer_note_written(writer, size);
    return PHEMA_OK;
}

/* Finds the next run of zeros, in whole blocks of the file, among bytes [*from, size). */
static bool find_zeros(size_t *from, size_t *end, uint64_t offset, const uint8_t *bytes,
                       size_t size)
{
    size_t aligned = (size_t)(-offset % HOLE_BLOCK_BYTES); /* where the first whole block begins */
    size_t at = *from > aligned ? *from : aligned;
    while (at + MIN_HOLE_BYTES <= size) {
        size_t start = at;
        while (at + HOLE_BLOCK_BYTES <= size && bytes[at] == 0 && /* as in few blocks */
               memcmp(bytes + at, bytes + at + 1, HOLE_BLOCK_BYTES - 1) == 0)
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

void phema_writer_count(struct phema_writer *writer, uint64_t offset, const void *data, size_t size)
{
    if (writer->blocks.items)
        part_blocks_add(&writer->blocks, offset, data, size);
}

PHEMA_FALLIBLE phema_writer_write(struct phema_writer *writer, uint64_t offset, const void *data,
                                  size_t size, struct phema_error *err)
{
    const uint8_t *bytes = data;
    size_t done = 0, zeros = 0, end = 0;
    enum phema_status status = PHEMA_OK;
    phema_writer_count(writer, offset, data, size);
    while (writer->is_fresh && !status && find_zeros(&zeros, &end, offset, bytes, size)) {
        bool is_hole = fallocate(writer->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                 (off_t)(offset + zeros), (off_t)(end - zeros)) == 0;
        size_t next = end;
        if (!writer->is_resumed) { /* with the zeros around it, in blocks of other bytes */
            while (zeros > done && bytes[zeros - 1] == 0)
                zeros--;
            while (next < size && bytes[next] == 0)
                next++;
        } else if (!is_hole) { /* the file may hold any bytes there */
            zeros = end;
        }
        status =
            phema_writer_write_uncounted(writer, offset + done, bytes + done, zeros - done, err);
        done = next;
        zeros = end;
    }
    return status ? status
                  : phema_writer_write_uncounted(writer, offset + done, bytes + done, size - done,
                                                 err);
}
