// SPDX-License-Identifier: Apache-2.0
/* mapped_file.c - a regular file mapped read-only; change detection; prefetch and evict. */
#include "phema/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/checksum.h"
#include "phema/cleanup.h"
#include "phema/memory.h"
#include "phema/path.h"

/* Through the page cache, and past it; -1: none. */
struct kept_descriptors {
    _Atomic int numbers[2];
};

struct phema_file {
    struct phema_span span; /* of map, for readers */
    void *map;
    bool is_uncached;
    char *path;
    dev_t device;
    ino_t inode;
    struct timespec modified;
    uint64_t head;                 /* expected, of a file that is not open */
    struct kept_descriptors *kept; /* NULL: none are kept */
    struct phema_cleanup_entry *entry;
};

/* Read for the hash that tells files apart: most headers are shorter. */
#define HEAD_BYTES ((size_t)64 << 10)

/* Headers, pickles and strided tensors are read through the mapping with any --io. */
static enum phema_status fail_map(struct phema_error *err, int number)
{
    if (number == ENOMEM)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "cannot be mapped: %s; a mapping takes address space (ulimit -v), not "
                          "memory, and a process has so many of them (sysctl vm.max_map_count)",
                          strerror(number));
    if (number == ENODEV)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "cannot be mapped: its filesystem does not do that; copy the file to "
                          "another");
    return phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be mapped", number);
}

/* A private mapping is allowed where a shared one is not: a FUSE server has asked for direct_io. The
 * kernel takes a short answer to a read of such pages for the end of the file. Single pages are short
 * least often. */
static void *map_pages(bool *is_uncached, size_t size, int descriptor)
{
    void *data = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
    *is_uncached = data == MAP_FAILED && errno == ENODEV;
    if (!*is_uncached)
        return data;
    data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data != MAP_FAILED)
        (void)madvise(data, size, MADV_RANDOM);
    return data;
}

static enum phema_status map_descriptor(struct phema_file *file, int descriptor,
                                        struct phema_error *err)
{
    struct stat st;
    if (fstat(descriptor, &st))
        return phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be examined", errno);
    if (S_ISDIR(st.st_mode))
        return phema_fail(err, PHEMA_ERR_FILE, "is a directory, expected a file");
    if (!S_ISREG(st.st_mode))
        return phema_fail(err, PHEMA_ERR_FILE, "is not a regular file");
    if (st.st_size == 0)
        return phema_fail(err, PHEMA_ERR_FILE, "is empty");
    if ((uint64_t)st.st_size > SIZE_MAX / 2)
        return phema_fail(err, PHEMA_ERR_FILE, "is too large to be mapped");

    void *data = map_pages(&file->is_uncached, (size_t)st.st_size, descriptor);
    if (data == MAP_FAILED)
        return fail_map(err, errno);
    file->map = data;
    file->span.data = data;
    file->span.size = (size_t)st.st_size;
    file->device = st.st_dev;
    file->inode = st.st_ino;
    file->modified = st.st_mtim;
    return phema_cleanup_add_map(&file->entry, file->span, file->path, false, err);
}

static enum phema_status map_path(struct phema_file *file, struct phema_error *err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer that never comes */
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    enum phema_status status =
        descriptor >= 0   ? map_descriptor(file, descriptor, err)
        : errno == ENOENT ? phema_fail(err, PHEMA_ERR_FILE, "cannot be opened: %s",
                                       phema_path_reason(file->path, ENOENT))
                          : phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be opened", errno);
    phema_file_give_descriptor(file, false, descriptor);
    return status;
}

/* Closes the kept descriptors, and keeps none from now on. */
static void drop_descriptors(struct phema_file *file)
{
    for (size_t i = 0; file->kept && i < ARRAY_LEN(file->kept->numbers); i++) {
        int descriptor = phema_file_take_descriptor(file, i);
        if (descriptor >= 0)
            (void)close(descriptor);
    }
    free(file->kept);
    file->kept = NULL;
}

static enum phema_status new_file(struct phema_file **out, const char *path,
                                  struct phema_error *err)
{
    struct phema_file *file = calloc(1, sizeof(*file));
    if (!file || !(file->path = strdup(path))) {
        phema_file_close(file);
        return phema_fail_memory(err);
    }
    *out = file;
    return PHEMA_OK;
}

static enum phema_status open_file(struct phema_file **out, const char *path, bool keeps,
                                   struct phema_error *err)
{
    struct phema_file *file = NULL;
    enum phema_status status = new_file(&file, path, err);
    if (!status && keeps)
        status = phema_file_keep_descriptors(file, err);
    if (!status)
        status = map_path(file, err);
    if (status)
        phema_file_close(file);
    else
        *out = file;
    return status;
}

PHEMA_FALLIBLE phema_file_open(struct phema_file **out, const char *path, struct phema_error *err)
{
    return open_file(out, path, false, err);
}

PHEMA_FALLIBLE phema_file_open_once(struct phema_file **out, const char *path,
                                    struct phema_error *err)
{
    enum phema_status status = open_file(out, path, true, err);
    if (!status && atomic_load(&(*out)->kept->numbers[false]) >= PHEMA_MOST_KEPT_DESCRIPTORS)
        drop_descriptors(*out);
    return status;
}

/* ---- Descriptors ---- */

PHEMA_FALLIBLE phema_file_keep_descriptors(struct phema_file *file, struct phema_error *err)
{
    if (file->kept)
        return PHEMA_OK;
    file->kept = calloc(1, sizeof(*file->kept));
    if (!file->kept)
        return phema_fail_memory(err);
    for (size_t i = 0; i < ARRAY_LEN(file->kept->numbers); i++)
        atomic_store(&file->kept->numbers[i], -1);
    return PHEMA_OK;
}

int phema_file_take_descriptor(const struct phema_file *file, bool is_direct)
{
    return file->kept ? atomic_exchange(&file->kept->numbers[is_direct], -1) : -1;
}

void phema_file_give_descriptor(const struct phema_file *file, bool is_direct, int descriptor)
{
    if (file->kept && descriptor >= 0)
        descriptor = atomic_exchange(&file->kept->numbers[is_direct], descriptor);
    if (descriptor >= 0)
        (void)close(descriptor);
}

/* ---- Files of other processes ---- */

void phema_file_identify(struct phema_file_identity *out, const struct phema_file *file)
{
    phema_file_state(&out->size_bytes, &out->modified_s, &out->modified_ns, file);
    size_t size = file->span.size < HEAD_BYTES ? file->span.size : HEAD_BYTES;
    out->head = file->map ? phema_hash_name(file->span.data, size) : file->head;
}

PHEMA_FALLIBLE phema_file_expect(struct phema_file **out, const char *path,
                                 const struct phema_file_identity *identity,
                                 struct phema_error *err)
{
    struct phema_file *file = NULL;
    enum phema_status status = new_file(&file, path, err);
    if (status)
        return status;
    file->span.size = (size_t)identity->size_bytes;
    file->modified.tv_sec = (time_t)identity->modified_s;
    file->modified.tv_nsec = (long)identity->modified_ns;
    file->head = identity->head;
    *out = file;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_file_demand(struct phema_file *file, struct phema_error *err)
{
    if (file->map)
        return PHEMA_OK;
    struct phema_file_identity expected, found;
    phema_file_identify(&expected, file);
    enum phema_status status = map_path(file, err);
    if (status)
        return status;
    phema_file_identify(&found, file);
    if (found.size_bytes == expected.size_bytes && found.modified_s == expected.modified_s &&
        found.modified_ns == expected.modified_ns && found.head == expected.head)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_FILE,
                      "is not the file that the first process has found: %s differ; all processes "
                      "need the same files under the same names",
                      found.size_bytes != expected.size_bytes ? "their sizes"
                      : found.head != expected.head           ? "their contents"
                                                              : "their times of modification");
}

bool phema_file_is_open(const struct phema_file *file)
{
    return file->map != NULL;
}

bool phema_file_is_uncached(const struct phema_file *file)
{
    return file->is_uncached;
}

void phema_file_state(uint64_t *size_bytes, int64_t *modified_s, int64_t *modified_ns,
                      const struct phema_file *file)
{
    *size_bytes = file->span.size;
    *modified_s = (int64_t)file->modified.tv_sec;
    *modified_ns = (int64_t)file->modified.tv_nsec;
}

struct phema_span phema_file_span(const struct phema_file *file)
{
    return file->span;
}

const char *phema_file_path(const struct phema_file *file)
{
    return file->path;
}

static bool is_unchanged(const struct phema_file *file, const struct stat *st)
{
    return (uint64_t)st->st_size == file->span.size &&
           st->st_mtim.tv_sec == file->modified.tv_sec &&
           st->st_mtim.tv_nsec == file->modified.tv_nsec;
}

static enum phema_status fail_changed(struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE,
                      "the file changed while it was being read; run again when nothing writes to "
                      "it");
}

PHEMA_FALLIBLE phema_file_check_unchanged(const struct phema_file *file, struct phema_error *err)
{
    struct stat st;
    enum phema_status status = PHEMA_OK;
    if (!file->map)
        return PHEMA_OK;
    if (stat(file->path, &st))
        status = phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be examined again", errno);
    else if (!is_unchanged(file, &st))
        status = fail_changed(err);
    return status ? phema_fail_in(err, PHEMA_ERR_FILE, "%s", file->path) : PHEMA_OK;
}

PHEMA_FALLIBLE phema_file_check_same(const struct phema_file *file, int descriptor,
                                     struct phema_error *err)
{
    struct stat st;
    if (fstat(descriptor, &st))
        return phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be examined again", errno);
    if (st.st_dev != file->device || st.st_ino != file->inode || !is_unchanged(file, &st))
        return fail_changed(err);
    return PHEMA_OK;
}

void phema_file_evict(const struct phema_file *file, uint64_t offset, uint64_t size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct phema_span part;
    if (!file->map || !phema_span_part(&part, file->span, offset, size))
        return;
    uint64_t first = (offset + page - 1) / page * page;
    uint64_t end = (offset + size) / page * page;
    if (first >= end)
        return;
    /* drops pages of the mapping, which is read-only: the page cache keeps the data */
    (void)madvise((char *)file->map + first, end - first, MADV_DONTNEED);
}

void phema_file_prefetch(const struct phema_file *file, uint64_t offset, uint64_t size)
{
    struct phema_span part;
    if (!file->map || file->is_uncached || !phema_span_part(&part, file->span, offset, size))
        return;
    uint64_t before = offset % (uint64_t)sysconf(_SC_PAGESIZE); /* to the start of the page */
    for (uint64_t at = offset - before, end = offset + size; at < end; at += PHEMA_PREFETCH_BYTES)
        (void)madvise((char *)file->map + at,
                      end - at < PHEMA_PREFETCH_BYTES ? end - at : PHEMA_PREFETCH_BYTES,
                      MADV_WILLNEED);
}

/* Pages that are looked at together, in each so many pages; evenly over a file. To look at all
 * would take a tenth of the time of reading them. */
enum { PAGES_AT_ONCE = 16, PAGES_OF_LOOK = 256 };

/* Pages [first, first + n) that are in the page cache; all where the kernel does not tell. */
static uint64_t count_cached(const struct phema_file *file, int descriptor, uint64_t first,
                             uint64_t n)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n_cached = 0;
    uint8_t is_resident[PAGES_AT_ONCE];
    if (descriptor >= 0 && phema_page_cache_pages(&n_cached, descriptor, first * page, n * page))
        return n_cached;
    if (mincore((char *)file->map + first * page, n * page, is_resident))
        return n;
    for (uint64_t x = 0; x < n; x++)
        n_cached += is_resident[x] & 1;
    return n_cached;
}

bool phema_file_is_cached(const struct phema_file *file, uint64_t most_looks)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n_asked = 0, n_cached = 0;
    uint64_t n_pages = (file->span.size + page - 1) / page;
    uint64_t n_looks = n_pages / PAGES_OF_LOOK + 1;
    n_looks = n_looks < most_looks ? n_looks : most_looks;
    if (!file->map)
        return true;
    int descriptor = phema_file_take_descriptor(file, false);
    if (descriptor < 0)
        descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    for (uint64_t i = 0; i < n_looks; i++) {
        uint64_t first = n_pages / n_looks * i + n_pages % n_looks * i / n_looks;
        uint64_t n = n_pages - first < PAGES_AT_ONCE ? n_pages - first : PAGES_AT_ONCE;
        n_cached += count_cached(file, descriptor, first, n);
        n_asked += n;
    }
    phema_file_give_descriptor(file, false, descriptor);
    return n_cached * 2 >= n_asked;
}

void phema_file_expect_sparse(const struct phema_file *file, bool is_sparse)
{
    if (file->map && !file->is_uncached)
        (void)madvise(file->map, file->span.size, is_sparse ? MADV_RANDOM : MADV_NORMAL);
}

void phema_file_close(struct phema_file *file)
{
    if (!file)
        return;
    phema_cleanup_remove(file->entry);
    drop_descriptors(file);
    if (file->map)
        (void)munmap(file->map, file->span.size);
    free(file->path);
    free(file);
}
