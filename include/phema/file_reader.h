/* file_reader.h - pread and O_DIRECT reads of a file that is also mapped; page-cache hints; the
 * limit on descriptors. Reading into a buffer that stays in the caches costs a copy. Mapping costs
 * a fault and an unmapping for every range, and is slower on current kernels (docs/speed.md). Less
 * memory for mappings means more ranges. On network filesystems every fault is a message to a
 * server, and a server that goes away raises SIGBUS. */
#ifndef PHEMA_FILE_READER_H
#define PHEMA_FILE_READER_H

#include "phema/error.h"
#include "phema/mapped_file.h"
#include "phema/read_queue.h"

enum phema_io {
    PHEMA_IO_AUTO, /* one of the next two, file by file */
    PHEMA_IO_MMAP,
    PHEMA_IO_READ,
    PHEMA_IO_DIRECT /* past the page cache */
};

struct phema_file_reader;

/* Opens the mapped file again; holds one descriptor until it is closed.
 * PHEMA_ERR_FILE      the path now names another file, or the file has changed; with is_direct, its
 *                     filesystem cannot read past the page cache
 * PHEMA_ERR_RESOURCE  no memory or descriptors
 * Messages do not name the path. */
PHEMA_FALLIBLE phema_file_reader_open(struct phema_file_reader **out, const struct phema_file *file,
                                      bool is_direct, struct phema_error *err);
void phema_file_reader_close(struct phema_file_reader *reader); /* takes NULL */

/* A direct reader that the filesystem refuses later reads through the page cache instead, from the
 * first refusal on. Without this call, such a read fails. */
void phema_file_reader_allow_cache(struct phema_file_reader *reader);

/* Whether the file can be opened for reads past the page cache. */
bool phema_file_can_be_direct(const struct phema_file *file);

/* Alignment of buffers, and the bytes that a buffer needs beyond those that are read past the page
 * cache. */
#define PHEMA_INPUT_ALIGNMENT ((size_t)4096)
#define PHEMA_INPUT_ROOM      (2 * PHEMA_INPUT_ALIGNMENT)

/* Reads bytes [offset, offset + size), which lie inside the file as it was opened; from any thread.
 * Holes are zeroed without reading.
 *   data    out: the first byte, in buffer
 *   buffer  [size + PHEMA_INPUT_ROOM]
 * PHEMA_ERR_FILE  cannot be read, or was cut short */
PHEMA_FALLIBLE phema_file_reader_read(const uint8_t **data, struct phema_file_reader *reader,
                                      uint64_t offset, size_t size, uint8_t *buffer,
                                      struct phema_error *err);

/* The same read for a queue: prepare, then submit unless read->size is 0 (a hole), then complete
 * when the queue has returned the read, which sets *data. read->user is the reader.
 *   buffer  [size + PHEMA_INPUT_ROOM], aligned to PHEMA_INPUT_ALIGNMENT */
void phema_file_reader_prepare(struct phema_read *read, struct phema_file_reader *reader,
                               uint64_t offset, size_t size, uint8_t *buffer);
PHEMA_FALLIBLE phema_file_reader_complete(const uint8_t **data, struct phema_read *read,
                                          struct phema_error *err);

/* Hints for the page cache, which never fail. expect_sparse: reads fetch single pages, no
 * neighbours. prefetch: the kernel begins to read. is_cached: the byte is in the page cache; false
 * where the kernel does not tell. evict: drops pages that lie wholly inside. */
void phema_file_reader_expect_sparse(const struct phema_file_reader *reader);
void phema_file_reader_prefetch(const struct phema_file_reader *reader, uint64_t offset,
                                uint64_t size);
bool phema_file_reader_is_cached(const struct phema_file_reader *reader, uint64_t offset);
void phema_file_reader_evict(const struct phema_file_reader *reader, uint64_t offset,
                             uint64_t size);

/* Drops cached pages, so that later reads ask the filesystem again. Does nothing where
 * phema_filesystem_is_local. A hint. */
void phema_file_forget(const struct phema_file *file);

/* Whether a byte of the file is in the page cache, which the look does not change; true also where
 * the file cannot be opened again. */
bool phema_file_is_cached_at(const struct phema_file *file, uint64_t offset);

/* Before n files are opened at once, best while this is the only thread: raises the soft limit on
 * descriptors where it is lower, and the size of their table. false: the hard limit is lower too.
 * *limit: the hard limit then. */
bool phema_raise_fd_limit(uint64_t n, uint64_t *limit);
/* To add to n: standard streams, and directories for a moment. */
#define PHEMA_OTHER_DESCRIPTORS 32

#endif
