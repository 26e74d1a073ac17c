// SPDX-License-Identifier: Apache-2.0
/* file_reader.c - pread and O_DIRECT reads of a file that is also mapped; page-cache hints; the
 * limit on descriptors. Reads continue where the kernel returns less than asked for. Past the page
 * cache (O_DIRECT) they begin and end on block boundaries of the filesystem. */
#include "phema/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

struct phema_file_reader {
    const struct phema_file *file;
    bool is_direct; /* as it was opened */
    int descriptor;
    size_t block; /* reads begin and end on multiples of it; 1 through the page cache */
    bool is_sparse;
    bool allows_cache; /* where the filesystem refuses direct reads */
};

/* ---- Filesystems ---- */

/* Filesystems that may be on another machine; numbers of linux/magic.h and of the filesystems' own
 * sources. */
static const struct {
    uint32_t magic;
    const char *name;
} remote[] = {{0x00006969, "NFS"},        {0x0BD00BD0, "Lustre"}, {0x65735546, "FUSE"},
              {0xFF534D42, "CIFS"},       {0xFE534D42, "SMB"},    {0x0000517B, "SMB"},
              {0x01021997, "9p"},         {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"},
              {0x00C36400, "Ceph"},       {0x5346414F, "AFS"},    {0x6B414653, "AFS"},
              {0x73757245, "Coda"},       {0x01161970, "GFS2"},   {0x7461636F, "OCFS2"},
              {0x20030528, "OrangeFS"},   {0xAAD7AAEA, "PanFS"},  {0x786F4256, "vboxsf"},
              {0xBACBACBC, "VMware HGFS"}};

const char *phema_network_filesystem(const char *path)
{
    struct statfs st;
    if (statfs(path, &st))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(remote); i++)
        if ((uint32_t)st.f_type == remote[i].magic)
            return remote[i].name;
    return NULL;
}

/* ---- Opening ---- */

static enum phema_status fail_direct(struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE,
                      "its filesystem cannot read past the page cache; use --io read");
}

/* Page alignment satisfies all current disks; a filesystem that needs more is refused. */
static enum phema_status find_block(struct phema_file_reader *reader, struct phema_error *err)
{
    reader->block = PHEMA_INPUT_ALIGNMENT;
    struct statx st;
    if (statx(reader->descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) ||
        !(st.stx_mask & STATX_DIOALIGN))
        return PHEMA_OK;
    size_t block = st.stx_dio_offset_align;
    if (block == 0 || PHEMA_INPUT_ALIGNMENT % block || st.stx_dio_mem_align > PHEMA_INPUT_ALIGNMENT)
        return fail_direct(err);
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

PHEMA_FALLIBLE phema_file_reader_read(const uint8_t **data, const struct phema_file_reader *reader,
                                      uint64_t offset, size_t size, uint8_t *buffer,
                                      struct phema_error *err)
{
    if (is_hole(reader, offset, size)) {
        memset(buffer, 0, size);
        *data = buffer;
        return PHEMA_OK;
    }
    size_t block = reader->block;
    size_t before = (size_t)(offset % block);
    size_t wanted = before + size; /* bytes from the start of the first block */
    size_t whole = (wanted + block - 1) / block * block;
    bool is_direct = block > 1;
    for (size_t done = 0; done < wanted;) {
        ssize_t got =
            pread(reader->descriptor, buffer + done, whole - done, (off_t)(offset - before + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EINVAL && is_direct) {
            is_direct = false; /* refused again, it fails */
            if (leave_direct(reader))
                continue;
            return fail_direct(err);
        }
        if (got < 0)
            return phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be read", errno);
        size_t reached = done + (size_t)got;
        if (reached >= wanted)
            break;
        /* a read that ended inside a block continues at the start of that block */
        size_t next = reached / block * block;
        if (got == 0 || next == done)
            return phema_fail(
                err, PHEMA_ERR_FILE,
                "expected %zu bytes at offset %llu, found %zu; the file was cut short "
                "while it was being read",
                size, (unsigned long long)offset, reached > before ? reached - before : 0);
        done = next;
    }
    *data = buffer + before;
    return PHEMA_OK;
}

/* ---- Reads of a queue ---- */

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
                                .user = reader};
    if (!is_hole(reader, offset, size))
        return;
    memset(buffer + before, 0, size);
    read->size = 0;
}

PHEMA_FALLIBLE phema_file_reader_complete(const uint8_t **data, const struct phema_read *read,
                                          struct phema_error *err)
{
    const struct phema_file_reader *reader = read->user;
    uint8_t *buffer = read->buffer;
    if (read->error == EINVAL && read->block > 1)
        return phema_file_reader_read(data, reader, read->offset + read->first,
                                      read->needed - read->first, buffer, err);
    enum phema_status status = read->size ? phema_read_check(read, err) : PHEMA_OK;
    if (!status)
        *data = buffer + read->first;
    return status;
}

/* ---- The page cache ---- */

void phema_file_reader_expect_sparse(const struct phema_file_reader *reader)
{
    (void)posix_fadvise(reader->descriptor, 0, 0, POSIX_FADV_RANDOM);
}

void phema_file_reader_prefetch(const struct phema_file_reader *reader, uint64_t offset,
                                uint64_t size)
{
    if (is_hole(reader, offset, size))
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

void phema_file_reader_evict(const struct phema_file_reader *reader, uint64_t offset, uint64_t size)
{
    (void)posix_fadvise(reader->descriptor, (off_t)offset, (off_t)size, POSIX_FADV_DONTNEED);
}

bool phema_raise_fd_limit(uint64_t n, uint64_t *limit)
{
    struct rlimit now;
    *limit = UINT64_MAX;
    if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur >= n)
        return true;
    *limit = now.rlim_max;
    if (now.rlim_max < n)
        return false;
    now.rlim_cur = now.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &now) == 0;
}
