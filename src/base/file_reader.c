// SPDX-License-Identifier: Apache-2.0
/* file_reader.c - pread and O_DIRECT reads of a file that is also mapped; page-cache hints; the
 * limit on descriptors. Past the page cache (O_DIRECT) reads begin and end on block boundaries of
 * the filesystem. */
#include "phema/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "phema/filesystem.h"
#include "phema/setting.h"

struct phema_file_reader {
    const struct phema_file *file;
    bool is_direct; /* as it was opened */
    int descriptor;
    size_t block; /* reads begin and end on multiples of it; 1 through the page cache */
    bool is_sparse;
    bool is_local;
    bool allows_cache; /* where the filesystem refuses direct reads */
};

/* ---- Opening ---- */

static enum phema_status fail_direct(struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE,
                      "its filesystem cannot read past the page cache; use %sread",
                      phema_setting_equals(PHEMA_SET_IO));
}

/* Page alignment satisfies all current disks; a filesystem that needs more is refused. */
static enum phema_status find_block(struct phema_file_reader *reader, struct phema_error *err)
{
    reader->block = PHEMA_INPUT_ALIGNMENT;
#ifdef STATX_DIOALIGN /* which musl lacks */
    struct statx st;
    if (statx(reader->descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) ||
        !(st.stx_mask & STATX_DIOALIGN))
        return PHEMA_OK;
    size_t block = st.stx_dio_offset_align;
    if (block == 0 || PHEMA_INPUT_ALIGNMENT % block || st.stx_dio_mem_align > PHEMA_INPUT_ALIGNMENT)
        return fail_direct(err);
#else
    (void)err;
#endif
    return PHEMA_OK;
}

/* Fewer blocks than bytes. Other files have too few holes to ask for. */
static bool is_sparse(int descriptor)
{
    struct stat st;
    return fstat(descriptor, &st) == 0 && (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size;
}

static enum phema_status open_again(struct phema_file_reader *reader, const struct phema_file *file,
                                    bool is_direct, struct phema_error *err)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (is_direct ? O_DIRECT : 0);
    reader->block = 1;
    reader->file = file;
    reader->is_direct = is_direct;
    reader->descriptor = phema_file_take_descriptor(file, is_direct);
    if (reader->descriptor >= 0) /* a sparse reader may have had it */
        (void)posix_fadvise(reader->descriptor, 0, 0, POSIX_FADV_NORMAL);
    else
        reader->descriptor = open(phema_file_path(file), flags);
    if (reader->descriptor < 0 && is_direct && errno == EINVAL)
        return fail_direct(err);
    if (reader->descriptor < 0)
        return phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be opened again", errno);
    reader->is_sparse = is_sparse(reader->descriptor);
    reader->is_local = phema_filesystem_is_local(reader->descriptor);
    enum phema_status status = phema_file_check_same(file, reader->descriptor, err);
    return status || !is_direct ? status : find_block(reader, err);
}

PHEMA_FALLIBLE phema_file_reader_open(struct phema_file_reader **out, const struct phema_file *file,
                                      bool is_direct, struct phema_error *err)
{
    struct phema_file_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return phema_fail_memory(err);
    enum phema_status status = open_again(reader, file, is_direct, err);
    if (status)
        phema_file_reader_close(reader);
    else
        *out = reader;
    return status;
}

void phema_file_reader_allow_cache(struct phema_file_reader *reader)
{
    reader->allows_cache = true;
}

bool phema_file_can_be_direct(const struct phema_file *file)
{
    struct phema_error err;
    struct phema_file_reader *reader = NULL;
    bool is_open = phema_file_reader_open(&reader, file, true, &err) == PHEMA_OK;
    phema_file_reader_close(reader);
    return is_open;
}

void phema_file_reader_close(struct phema_file_reader *reader)
{
    if (!reader)
        return;
    phema_file_give_descriptor(reader->file, reader->is_direct, reader->descriptor);
    free(reader);
}

/* ---- Reading ---- */

/* true when these bytes are a hole, whose read would fill the page cache with zeros. false where
 * the kernel does not tell, and after the end of a file that was cut. */
static bool is_hole(const struct phema_file_reader *reader, uint64_t offset, uint64_t size)
{
    if (!reader->is_sparse)
        return false;
    off_t data = lseek(reader->descriptor, (off_t)offset, SEEK_DATA);
    if (data >= 0)
        return (uint64_t)data >= offset + size;
    struct stat st;
    return errno == ENXIO && fstat(reader->descriptor, &st) == 0 &&
           (uint64_t)st.st_size >= offset + size;
}

/* Reads through the page cache from now on, in all threads: their aligned reads stay possible. */
static bool leave_direct(const struct phema_file_reader *reader)
{
    int flags = reader->allows_cache ? fcntl(reader->descriptor, F_GETFL) : -1;
    return flags >= 0 && fcntl(reader->descriptor, F_SETFL, flags & ~O_DIRECT) == 0;
}

void phema_file_reader_prepare(struct phema_read *read, struct phema_file_reader *reader,
                               uint64_t offset, size_t size, uint8_t *buffer)
{
    size_t block = reader->block, before = (size_t)(offset % block);
    *read = (struct phema_read){.descriptor = reader->descriptor,
                                .offset = offset - before,
                                .buffer = buffer,
                                .size = (before + size + block - 1) / block * block,
                                .needed = before + size,
                                .first = before,
                                .block = block,
                                .allows_uring = reader->is_local,
                                .user = reader};
    if (!is_hole(reader, offset, size))
        return;
    memset(buffer + before, 0, size);
    read->size = 0;
}

PHEMA_FALLIBLE phema_file_reader_complete(const uint8_t **data, struct phema_read *read,
                                          struct phema_error *err)
{
    const struct phema_file_reader *reader = read->user;
    bool is_refused = read->size && read->error == EINVAL && read->block > 1;
    if (is_refused && leave_direct(reader))
        phema_read_now(read);
    else if (is_refused)
        return fail_direct(err);
    enum phema_status status = read->size ? phema_read_check(read, err) : PHEMA_OK;
    if (!status)
        *data = (uint8_t *)read->buffer + read->first;
    return status;
}

PHEMA_FALLIBLE phema_file_reader_read(const uint8_t **data, struct phema_file_reader *reader,
                                      uint64_t offset, size_t size, uint8_t *buffer,
                                      struct phema_error *err)
{
    struct phema_read read;
    phema_file_reader_prepare(&read, reader, offset, size, buffer);
    if (read.size)
        phema_read_now(&read);
    return phema_file_reader_complete(data, &read, err);
}

/* ---- The page cache ---- */

void phema_file_reader_expect_sparse(const struct phema_file_reader *reader)
{
    (void)posix_fadvise(reader->descriptor, 0, 0, POSIX_FADV_RANDOM);
}

void phema_file_reader_prefetch(const struct phema_file_reader *reader, uint64_t offset,
                                uint64_t size)
{
    if (phema_file_is_uncached(reader->file) || is_hole(reader, offset, size))
        return;
    for (uint64_t at = offset, end = offset + size; at < end; at += PHEMA_PREFETCH_BYTES)
        (void)posix_fadvise(
            reader->descriptor, (off_t)at,
            (off_t)(end - at < PHEMA_PREFETCH_BYTES ? end - at : PHEMA_PREFETCH_BYTES),
            POSIX_FADV_WILLNEED);
}

bool phema_file_reader_is_cached(const struct phema_file_reader *reader, uint64_t offset)
{
    uint8_t byte;
    struct iovec into = {&byte, 1};
    if (is_hole(reader, offset, 1))
        return true;
    return preadv2(reader->descriptor, &into, 1, (off_t)offset, RWF_NOWAIT) == 1;
}

bool phema_file_is_cached_at(const struct phema_file *file, uint64_t offset)
{
    struct phema_error ignored;
    struct phema_file_reader *reader = NULL;
    if (phema_file_reader_open(&reader, file, false, &ignored))
        return true;
    phema_file_reader_expect_sparse(reader); /* or the look would fetch neighbours */
    bool is_cached = phema_file_reader_is_cached(reader, offset);
    phema_file_reader_close(reader);
    return is_cached;
}

void phema_file_forget(const struct phema_file *file)
{
    struct phema_error ignored;
    struct phema_file_reader *reader = NULL;
    if (phema_file_reader_open(&reader, file, false, &ignored))
        return;
    if (!reader->is_local) {
        phema_file_evict(file, 0, phema_file_span(file).size); /* the kernel keeps mapped pages */
        phema_file_reader_evict(reader, 0, 0);
    }
    phema_file_reader_close(reader);
}

void phema_file_reader_evict(const struct phema_file_reader *reader, uint64_t offset, uint64_t size)
{
    (void)posix_fadvise(reader->descriptor, (off_t)offset, (off_t)size, POSIX_FADV_DONTNEED);
}

/* The kernel's table of descriptors grows by doubling. In a process with threads each time waits
 * until no processor can see the old table: 10 ms. */
static void grow_table(uint64_t n)
{
    int descriptor = n <= INT_MAX ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)(n - 1)) : -1;
    if (descriptor >= 0)
        (void)close(descriptor);
}

bool phema_raise_fd_limit(uint64_t n, uint64_t *limit)
{
    struct rlimit now;
    *limit = UINT64_MAX;
    if (getrlimit(RLIMIT_NOFILE, &now))
        return true;
    if (now.rlim_cur < n) {
        *limit = now.rlim_max;
        now.rlim_cur = now.rlim_max;
        if (now.rlim_max < n || setrlimit(RLIMIT_NOFILE, &now))
            return false;
    }
    grow_table(n);
    return true;
}
