/* file_reader.h - a file's bytes by reading them, beside its mapping; and on which filesystems they
 * must be read. Reading into a buffer that stays in the caches costs a copy; mapping costs a fault
 * and an unmapping for every piece, the more the less may be mapped at a time, and is the slower
 * one on current kernels (docs/speed.md). On network filesystems every fault is a message to a
 * server, and a server that goes away is a SIGBUS. */
#ifndef PHEMA_FILE_READER_H
#define PHEMA_FILE_READER_H

#include "phema/error.h"
#include "phema/mapped_file.h"

enum phema_io {
    PHEMA_IO_AUTO, /* one of the next two, file by file */
    PHEMA_IO_MMAP,
    PHEMA_IO_READ,
    PHEMA_IO_DIRECT /* past the page cache */
};

/* The name of the file's network filesystem ("NFS"), or NULL: local, or the kernel does not tell.
 */
const char *phema_network_filesystem(const char *path);

struct phema_file_reader;

/* Opens the mapped file once more. One descriptor until it is closed.
 * PHEMA_ERR_FILE      it is another file by now or has changed; with is_direct, its filesystem
 *                     cannot read past the page cache
 * PHEMA_ERR_RESOURCE  no memory or descriptors
 * Messages do not name the path. */
PHEMA_FALLIBLE phema_file_reader_open(struct phema_file_reader **out, const struct phema_file *file,
                                      bool is_direct, struct phema_error *err);
void phema_file_reader_close(struct phema_file_reader *input); /* takes NULL */

/* A buffer begins at a multiple of the first, and for reads past the page cache has room for the
 * second beyond the bytes that are read. */
#define PHEMA_INPUT_ALIGNMENT ((size_t)4096)
#define PHEMA_INPUT_ROOM      (2 * PHEMA_INPUT_ALIGNMENT)

/* Bytes [offset, offset + size), which lie inside the file as it was opened; from any thread. Zeros
 * of which nothing is stored (holes) are known without reading them.
 *   data    out: where they begin in buffer
 *   buffer  [size + room]
 * PHEMA_ERR_FILE  cannot be read, or was cut short */
PHEMA_FALLIBLE phema_file_reader_read(const uint8_t **data, const struct phema_file_reader *input,
                                      uint64_t offset, size_t size, uint8_t *buffer,
                                      struct phema_error *err);

/* The page cache: bring it in while others work; whether the byte is there already (false where the
 * kernel does not tell); let go of what lies wholly inside. Hints: failures are none. */
void phema_file_reader_prefetch(const struct phema_file_reader *input, uint64_t offset,
                                uint64_t size);
bool phema_file_reader_is_cached(const struct phema_file_reader *input, uint64_t offset);
void phema_file_reader_evict(const struct phema_file_reader *input, uint64_t offset, uint64_t size);

/* Before many files are opened at once: raises the soft limit on descriptors where it would not do.
 * false where the hard limit is below; limit: what this process may have then. */
bool phema_raise_fd_limit(uint64_t n, uint64_t *limit);

#endif
