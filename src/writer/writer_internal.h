/* writer_internal.h - private to writer/: struct phema_writer and the steps that its files
 * share. */
#ifndef WRITER_WRITER_INTERNAL_H
#define WRITER_WRITER_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "part.h"
#include "pending.h"
#include "phema/writer.h"

/* The request to hand written pages of a file to the disk; starts empty, and its address must not
 * change. */
struct writeback {
    int descriptor;
    bool is_waiting;
    struct writeback *next;
};

struct phema_writer {
    struct pending out;
    bool is_inside; /* a file of a directory: it is not renamed, and the directory has the entry */
    int descriptor; /* of its data, until it is finished; or -1 */
    bool is_resumed;
    bool is_synced;
    int sync_error; /* errno when that failed, or 0 */
    bool leaves_entry;
    uint64_t size_bytes;
    uint8_t *map; /* NULL until asked for */
    struct phema_writer_options options;
    struct phema_cleanup_entry *map_entry;
    bool is_fresh; /* of a known size, and bytes that were not written read as zeros */
    struct part_file_blocks blocks; /* of a file that a part writes */
    struct writeback writeback;
    _Atomic uint64_t written_bytes;
    _Atomic int lost; /* errno when written bytes did not reach the disk, or 0 */
};

/* ---- writer.c ---- */

/* "PATH: exists already", with the setting that replaces it */
enum phema_status writer_fail_exists(struct phema_error *err, const char *path, const char *what);

/* A writer without descriptors. Owns both paths.  shown: the path for messages */
PHEMA_FALLIBLE writer_new(struct phema_writer **out, char *path, char *partial_path,
                          const struct phema_writer_options *options, const char *shown,
                          struct phema_error *err);

/* Opens DIRECTORY.partial/NAME for a new writer, which must not exist unless the run resumes. */
PHEMA_FALLIBLE writer_begin_inside(struct phema_writer *writer, struct phema_error *err);

/* A writer of PATH.partial that parts have filled. It stays where it is not published. Owns the
 * descriptor, which holds the lock, in any case. */
PHEMA_FALLIBLE writer_adopt(struct phema_writer **out, const char *path, int descriptor,
                            const struct phema_writer_options *options, struct phema_error *err);

/* Gives a writer a descriptor of its own of a file that is open.  what: failed without one */
PHEMA_FALLIBLE writer_share(struct phema_writer *writer, int lock, const char *what,
                            struct phema_error *err);

/* The last step of each function that opens a writer. Hands it to the caller, or abandons it where
 * status is a failure. Returns status. */
enum phema_status writer_hand_over(struct phema_writer **out, struct phema_writer *writer,
                                   enum phema_status status);

/* Gives a file its first bytes: those of the first size_bytes of source, or NULL: none that are known.
 * A file that is resumed keeps its own. */
PHEMA_FALLIBLE writer_fill(struct phema_writer *writer, const char *source, uint64_t size_bytes,
                           struct phema_error *err);

/* Copies the first size_bytes of a source, and commits the file or abandons it. */
PHEMA_FALLIBLE writer_commit_copy(struct phema_writer *writer, int source_descriptor,
                                  const char *source, uint64_t size_bytes, struct phema_error *err);

/* ---- write.c ---- */

/* pwrite and pread, as often as they do less than they were asked for or are interrupted.
 * file_write_fully: 0, or -1 and errno. file_read_fully: bytes read, fewer than size at the end of
 * the file; or -1 and errno. */
int file_write_fully(int descriptor, const void *data, size_t size, uint64_t offset);
ssize_t file_read_fully(int descriptor, void *data, size_t size, uint64_t offset);

/* ftruncate, fallocate and fsync, as often as they are interrupted: 0, or -1 and errno. reserve
 * accepts a size of 0. */
int file_truncate(int descriptor, uint64_t size_bytes);
int file_reserve(int descriptor, uint64_t size_bytes);
int file_sync(int descriptor);

/* Waits until all is on disk and drops it from the page cache. */
void writer_drop_cache(struct phema_writer *writer);

/* Requests that all written pages are handed to the disk, by a thread that runs while there are
 * requests. Any thread. Without another thread, this one does it. */
void writeback_request(struct writeback *writeback, int descriptor);

/* Before the descriptor is closed: withdraws the request, or waits until it has been met. */
void writeback_cancel(struct writeback *writeback);

/* Counts bytes that were written; from time to time they are handed to the disk. */
void writer_note_written(struct phema_writer *writer, uint64_t size);

/* ---- copy.c ---- */

/* Opens a regular file for reading and finds its size. Messages name it. */
PHEMA_FALLIBLE writer_open_source(int *descriptor, uint64_t *size_bytes, const char *source,
                                  struct phema_error *err);

/* Empties the file and reserves blocks for the whole size. */
PHEMA_FALLIBLE writer_allocate(struct phema_writer *writer, uint64_t size_bytes,
                               struct phema_error *err);

/* Fills an empty partial file with the first size_bytes of a source. */
PHEMA_FALLIBLE writer_copy(struct phema_writer *writer, int source_descriptor, const char *source,
                           uint64_t size_bytes, struct phema_error *err);
PHEMA_FALLIBLE writer_fail_cut(struct phema_error *err, const char *source); /* too short */

#endif
