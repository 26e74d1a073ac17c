/* partial.h - inside the writer room: a file while it is written, and directories of such files. */
#ifndef WRITER_PARTIAL_H
#define WRITER_PARTIAL_H

#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "phema/writer.h"

enum writer_published {
    WRITER_HIDDEN,    /* at its partial path */
    WRITER_NEW,       /* under its name, where nothing was */
    WRITER_EXCHANGED, /* what was there is at the partial path now */
    WRITER_REPLACED   /* what was there is gone: the filesystem cannot exchange files */
};

struct phema_writer {
    char *path, *partial_path;
    bool is_inside; /* a directory's: stays where it is, the directory has the cleanup entry */
    int descriptor, lock; /* lock: -1 where the directory is locked */
    int parent;           /* its directory, opened by finish, to be synced; or -1 */
    bool is_finished, took_over, is_resumed;
    bool is_kept; /* stays when it is abandoned */
    enum writer_published published;
    mode_t usual_write; /* permissions that publishing adds (writer_usual_write) */
    mode_t old_mode;    /* of the file that it was exchanged with */
    uint64_t size_bytes;
    uint8_t *map; /* NULL until asked for */
    struct phema_writer_options options;
    struct phema_cleanup_entry *entry, *map_entry;
    bool is_fresh; /* of a known size, and what was not put reads as zeros */
    _Atomic uint64_t put_bytes;
    _Atomic int lost; /* the errno with which what was put did not reach the disk, or 0 */
};

enum phema_status writer_fail_errno(struct phema_error *err, const char *path, const char *what,
                                    int number);

/* No space, a limit on sizes: says how much is needed. */
enum phema_status writer_fail_size(const struct phema_writer *writer, int number,
                                   struct phema_error *err);

enum phema_status writer_fail_locked(const char *path, struct phema_error *err);

/* Nothing open yet; NULL without memory. */
struct phema_writer *writer_new(const char *path, const struct phema_writer_options *options);

/* Parts of it that are done, or under way, are not an ordinary run's to throw away (parts.h). */
PHEMA_FALLIBLE writer_check_no_parts(const char *path, struct phema_error *err);

/* Under its name, in the place of another or not. 0, or -1 and errno. */
int writer_publish(const char *partial_path, const char *path, bool replaces);
enum phema_status writer_fail_publish(const char *path, int number, struct phema_error *err);

/* An open and locked partial file. */
PHEMA_FALLIBLE writer_begin(struct phema_writer **out, const char *path,
                            const struct phema_writer_options *options, struct phema_error *err);

/* The same for DIRECTORY.partial/NAME, which must not exist unless it is gone on with. path:
 * DIRECTORY/NAME, for messages. */
PHEMA_FALLIBLE writer_begin_inside(struct phema_writer **out, const char *path,
                                   const char *partial_path,
                                   const struct phema_writer_options *options,
                                   struct phema_error *err);

/* The end of whatever opens a writer: it is the caller's, or abandoned where that failed. */
enum phema_status writer_hand_over(struct phema_writer **out, struct phema_writer *writer,
                                   enum phema_status status);

/* What an ended run has left is of this size, and is gone on with. */
bool writer_resumes(struct phema_writer *writer, uint64_t size_bytes);

/* Room for the whole file. */
PHEMA_FALLIBLE writer_allocate(struct phema_writer *writer, uint64_t size_bytes,
                               struct phema_error *err);

/* The directory of path: -1 where it cannot be opened or synced and need not be. To be opened
 * before what is synced with it. */
PHEMA_FALLIBLE writer_open_parent(int *out, const char *path, struct phema_error *err);
PHEMA_FALLIBLE writer_sync_parent(int parent, const char *path, struct phema_error *err);

void writer_drop_cache(struct phema_writer *writer);

/* So many bytes have come: from time to time they are handed to the disk. */
void writer_note_written(struct phema_writer *writer, uint64_t size);

/* ---- Leftovers: files under names that are used before publishing (leftover.c) ---- */

/* Modes of new partial files and directories, which umask and ACLs restrict further. */
#define WRITER_PARTIAL_MODE           ((mode_t)0644)
#define WRITER_PARTIAL_DIRECTORY_MODE ((mode_t)0755)

/* PHEMA_ERR_OUTPUT unless the file is of this kind (S_IFREG, S_IFDIR), belongs to the effective
 * user, and neither group nor others may write it. path: for messages, here and below. */
PHEMA_FALLIBLE writer_check_left(const struct stat *st, mode_t kind, const char *path,
                                 struct phema_error *err);

/* PHEMA_ERR_OUTPUT when the file has other hard links: their bytes would change too. */
PHEMA_FALLIBLE writer_check_one_name(const struct stat *st, const char *path,
                                     struct phema_error *err);

/* Opens a file that passes writer_check_left; -1 when there is none. directory: AT_FDCWD, or the
 * directory of name. Does not follow links and does not block. */
PHEMA_FALLIBLE writer_open_left(int *out, int directory, const char *name, const char *path,
                                int flags, mode_t kind, struct phema_error *err);

/* Makes the directory partial, or opens a leftover; -1 when that has gone meanwhile. path: for
 * messages about a new one. */
PHEMA_FALLIBLE writer_make_directory(int *out, bool *is_new, const char *path, const char *partial,
                                     struct phema_error *err);

/* The write permissions of group and others that a new file at path would have. */
mode_t writer_usual_write(const char *path);

/* Adds these permissions to a published file, or to a directory and its files, for those who may
 * read it. Failures are ignored: the file stays less accessible. */
void writer_open_to_others(int descriptor, mode_t usual_write);
void writer_open_directory_to_others(int descriptor, mode_t usual_write);
/* Removes them again, before an old output is deleted. */
void writer_close_directory_to_others(DIR *stream);

/* Locks a descriptor against other runs; PHEMA_ERR_OUTPUT when one has it (is_held), and when it
 * cannot be locked. path: for messages. */
PHEMA_FALLIBLE writer_lock(bool *is_held, int descriptor, const char *path,
                           struct phema_error *err);

/* ftruncate and fsync, as often as they are interrupted. */
int writer_truncate(int descriptor, uint64_t size_bytes);
int writer_sync(int descriptor);

/* true when the descriptor's file is what stands under the name: a run that ended between our open
 * and our lock has renamed or removed it. */
bool writer_is_still_named(int descriptor, const char *path);

/* A regular file for reading, and its size. Messages name it. */
PHEMA_FALLIBLE writer_open_source(int *descriptor, uint64_t *size_bytes, const char *source,
                                  struct phema_error *err);

/* Fills an empty partial file with the first size_bytes of a source. */
PHEMA_FALLIBLE writer_copy(struct phema_writer *writer, int source_descriptor, const char *source,
                           uint64_t size_bytes, struct phema_error *err);

/* Whether an open directory holds anything; PHEMA_ERR_OUTPUT when it is not plain files alone, or,
 * of what is left over, not the effective user's. */
PHEMA_FALLIBLE writer_check_files_alone(bool *is_empty, int descriptor, bool is_leftover,
                                        const char *path, struct phema_error *err);

PHEMA_FALLIBLE writer_check_listed(bool *is_empty, DIR *stream, bool is_leftover, const char *path,
                                   struct phema_error *err);

/* Its plain files go, as far as they can be removed; what else there is stays. */
PHEMA_FALLIBLE writer_remove_files(int descriptor, const char *path, struct phema_error *err);
/* The same, but for those that is_wanted says are. */
void writer_remove_others(int descriptor, bool (*is_wanted)(const void *context, const char *name),
                          const void *context);
void writer_remove_listed(DIR *stream);

/* One that is whole in PATH.partial, opened and locked as descriptor, which it takes: for commit.
 * Whatever fails, it stays. */
PHEMA_FALLIBLE writer_directory_adopt(struct phema_writer_directory **out, const char *path,
                                      int descriptor, const struct phema_writer_options *options,
                                      struct phema_error *err);

/* The directory old_path, which path has replaced, goes, where it holds plain files alone. */
PHEMA_FALLIBLE writer_remove_replaced(const char *path, const char *old_path,
                                      struct phema_error *err);

/* Where directories cannot be exchanged: path moves to aside_path, partial_path to path. 0; or -1
 * and errno, and nothing has moved. */
int writer_move_aside(const char *path, const char *partial_path, const char *aside_path);

#endif
