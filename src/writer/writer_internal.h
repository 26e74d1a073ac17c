/* writer_internal.h - private to writer/: struct phema_writer and the steps that its files
 * share. */
#ifndef WRITER_WRITER_INTERNAL_H
#define WRITER_WRITER_INTERNAL_H

#include <dirent.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "part_blocks.h"
#include "phema/writer.h"
#include "writeback.h"

enum writer_published {
    WRITER_HIDDEN,    /* at its partial path */
    WRITER_NEW,       /* at its path, where nothing was */
    WRITER_EXCHANGED, /* at its path; the old file is at the partial path */
    WRITER_REPLACED   /* at its path; the old file is gone: the filesystem cannot exchange files */
};

struct phema_writer {
    char *path, *partial_path;
    bool is_inside; /* a file of a directory: it is not renamed, and the directory has the entry */
    int descriptor, lock; /* lock: -1 where the directory is locked */
    int parent;           /* its directory, opened by finish, to be synced; or -1 */
    bool is_finished, took_over, is_resumed;
    bool is_kept; /* stays when it is abandoned */
    bool is_synced;
    int sync_error; /* errno when that failed, or 0 */
    bool leaves_entry;
    enum writer_published published;
    mode_t usual_write; /* permissions that publishing adds (permissions_usual_write) */
    mode_t old_mode;    /* of the file that it was exchanged with */
    uint64_t size_bytes;
    uint8_t *map; /* NULL until asked for */
    struct phema_writer_options options;
    struct phema_cleanup_entry *entry, *map_entry;
    bool is_fresh; /* of a known size, and bytes that were not written read as zeros */
    struct part_file_blocks blocks; /* of a file that a part writes */
    struct writeback writeback;
    _Atomic uint64_t written_bytes;
    _Atomic int lost; /* errno when written bytes did not reach the disk, or 0 */
};

/* ---- writer.c ---- */

/* A writer without descriptors; NULL without memory. */
struct phema_writer *writer_new(const char *path, const struct phema_writer_options *options);

/* Opens and locks PATH.partial, of whatever size. */
PHEMA_FALLIBLE writer_begin(struct phema_writer **out, const char *path,
                            const struct phema_writer_options *options, struct phema_error *err);

/* The same for DIRECTORY.partial/NAME, which must not exist unless the run resumes. path:
 * DIRECTORY/NAME, for messages. */
PHEMA_FALLIBLE writer_begin_inside(struct phema_writer **out, const char *path,
                                   const char *partial_path,
                                   const struct phema_writer_options *options,
                                   struct phema_error *err);

/* A writer of PATH.partial that parts have filled. Nothing is written to it, and it stays where it
 * is not published. Owns the descriptor, which holds the lock, in any case. */
PHEMA_FALLIBLE writer_adopt(struct phema_writer **out, const char *path, int descriptor,
                            const struct phema_writer_options *options, struct phema_error *err);

/* The last step of each function that opens a writer. Hands it to the caller, or abandons it where
 * status is a failure. Returns status. */
enum phema_status writer_hand_over(struct phema_writer **out, struct phema_writer *writer,
                                   enum phema_status status);

/* true when an ended run has left a file of this size, and the options ask to resume. */
bool writer_resumes(struct phema_writer *writer, uint64_t size_bytes);

/* Empties the file and reserves blocks for the whole size. */
PHEMA_FALLIBLE writer_allocate(struct phema_writer *writer, uint64_t size_bytes,
                               struct phema_error *err);

/* Allocates a file that is no copy, unless it is resumed. */
PHEMA_FALLIBLE writer_make_fresh(struct phema_writer *writer, uint64_t size_bytes,
                                 struct phema_error *err);

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

/* Counts bytes that were written; from time to time they are handed to the disk. */
void writer_note_written(struct phema_writer *writer, uint64_t size);

/* ---- publish.c ---- */

/* The write permissions of group and others that a new file at path would have. */
mode_t permissions_usual_write(const char *path);

/* Adds these permissions to a published file, or to a directory and its files, for those who may
 * read it. Failures are ignored here and below: the file stays less accessible. */
void permissions_open_file(int descriptor, mode_t usual_write);
void permissions_open_directory(int descriptor, mode_t usual_write);

/* Removes them again from a directory and its files, before an old output is deleted. */
void permissions_close_directory(DIR *stream);

/* Renames a file or directory to its path, over an existing one or not. 0, or -1 and errno. */
int writer_publish(const char *partial_path, const char *path, bool replaces);

/* Opens the directory of path: -1 where it cannot be opened or synced and need not be. To be opened
 * before the rename that is synced with it. */
PHEMA_FALLIBLE writer_open_parent(int *out, const char *path, struct phema_error *err);
PHEMA_FALLIBLE writer_sync_parent(int parent, const char *path, struct phema_error *err);

/* ---- copy.c ---- */

/* Opens a regular file for reading and finds its size. Messages name it. */
PHEMA_FALLIBLE writer_open_source(int *descriptor, uint64_t *size_bytes, const char *source,
                                  struct phema_error *err);

/* Makes a writer that was begun a copy of the first size_bytes of source. */
PHEMA_FALLIBLE writer_make_copy(struct phema_writer *writer, const char *source,
                                uint64_t size_bytes, struct phema_error *err);

/* Fills an empty partial file with the first size_bytes of a source. The second function also
 * commits the file, or abandons it. */
PHEMA_FALLIBLE writer_copy(struct phema_writer *writer, int source_descriptor, const char *source,
                           uint64_t size_bytes, struct phema_error *err);
PHEMA_FALLIBLE writer_commit_copy(struct phema_writer *writer, int source_descriptor,
                                  const char *source, uint64_t size_bytes, struct phema_error *err);

#endif
