/* mapped_file.h - a regular file mapped read-only.
 * It is opened without blocking (a FIFO is refused), and its size and modification time are kept. A
 * file that shrinks while mapped ends the program with a message that names it, after partial
 * outputs were removed (cleanup.h). Safe from any thread once open. */
#ifndef PHEMA_MAPPED_FILE_H
#define PHEMA_MAPPED_FILE_H

#include "phema/error.h"
#include "phema/span.h"

struct phema_file;

/* Messages do not name the path: the caller adds it, since it knows how the user wrote it.
 * PHEMA_ERR_FILE      missing, not a regular file, empty, unreadable, not mappable
 * PHEMA_ERR_RESOURCE  no memory or descriptors */
PHEMA_FALLIBLE phema_file_open(struct phema_file **out, const char *path, struct phema_error *err);

/* What tells that a file in another process is the same one. */
struct phema_file_identity {
    uint64_t size_bytes;
    int64_t modified_s, modified_ns;
    uint64_t head; /* hash of the first 64 KiB */
};
void phema_file_identify(struct phema_file_identity *out, const struct phema_file *file);

/* A file that another process has open, without opening it: it has a span of that size, whose data
 * are NULL. Before phema_file_demand nothing is read of it and nothing checked; the functions below
 * do nothing then. demand opens it, unless it is open, and fails with PHEMA_ERR_FILE where it is
 * another one. */
PHEMA_FALLIBLE phema_file_expect(struct phema_file **out, const char *path,
                                 const struct phema_file_identity *identity,
                                 struct phema_error *err);
PHEMA_FALLIBLE phema_file_demand(struct phema_file *file, struct phema_error *err);
bool phema_file_is_open(const struct phema_file *file);

/* Whether its filesystem answers reads past the page cache (direct_io of FUSE). Pages of its mapping
 * are then read one by one, and other data should be read, not mapped. */
bool phema_file_is_uncached(const struct phema_file *file);

/* From then on descriptors of the file that are given back stay open until it is closed, and are
 * taken again: opening a file takes a message to the server of a network file system.
 *   take  -1: there is none
 *   give  closes the descriptor where none are kept; -1: nothing is given */
PHEMA_FALLIBLE phema_file_keep_descriptors(struct phema_file *file, struct phema_error *err);
int phema_file_take_descriptor(const struct phema_file *file, bool is_direct);
void phema_file_give_descriptor(const struct phema_file *file, bool is_direct, int descriptor);

/* phema_file_open that keeps descriptors, unless its own has this number or a larger one: the
 * process needs others too. */
#define PHEMA_MOST_KEPT_DESCRIPTORS 4096
PHEMA_FALLIBLE phema_file_open_once(struct phema_file **out, const char *path,
                                    struct phema_error *err);

/* Size and time of modification, as they were when the file was opened first. */
void phema_file_state(uint64_t *size_bytes, int64_t *modified_s, int64_t *modified_ns,
                      const struct phema_file *file);

struct phema_span phema_file_span(const struct phema_file *file);
const char *phema_file_path(const struct phema_file *file);

/* PHEMA_ERR_FILE when size or modification time differ from those at open. The message
 * names the path. */
PHEMA_FALLIBLE phema_file_check_unchanged(const struct phema_file *file, struct phema_error *err);

/* PHEMA_ERR_FILE when the descriptor's file is another one, or has changed. The message does not
 * name the path. */
PHEMA_FALLIBLE phema_file_check_same(const struct phema_file *file, int descriptor,
                                     struct phema_error *err);

/* The kernel reads no more for one request (read_ahead_kb, 128 unless somebody has raised it). */
#define PHEMA_PREFETCH_BYTES ((uint64_t)128 << 10)

/* Asks the kernel to read the pages of [offset, offset + size), without waiting. */
void phema_file_prefetch(const struct phema_file *file, uint64_t offset, uint64_t size);

/* Tells the kernel that accesses are few and far between, so that each fetches its page alone; or,
 * as at first, that neighbours are needed as well. */
void phema_file_expect_sparse(const struct phema_file *file, bool is_sparse);

/* Unmaps the resident pages wholly inside [offset, offset + size): the next access reads them
 * again. Bounds the resident size after a reader has passed. */
void phema_file_evict(const struct phema_file *file, uint64_t offset, uint64_t size);

/* Whether most of the file is in the page cache, judged by a few pages in so many places at most;
 * true where the kernel does not tell. */
bool phema_file_is_cached(const struct phema_file *file, uint64_t most_looks);

void phema_file_close(struct phema_file *file); /* takes NULL */

#endif
