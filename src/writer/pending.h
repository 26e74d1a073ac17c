/* pending.h - private to writer/: an output that is not published yet. PATH.partial, a file or a
 * directory, is created or taken over from an ended run, and locked. It becomes PATH in one step, or
 * is removed. Markers, locks and journals live and end the same way, but are never renamed. */
#ifndef WRITER_PENDING_H
#define WRITER_PENDING_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "phema/error.h"
#include "phema/span.h"

/* Modes of new partial files and directories, which umask and ACLs restrict further. */
#define WRITER_PARTIAL_MODE           ((mode_t)0644)
#define WRITER_PARTIAL_DIRECTORY_MODE ((mode_t)0755)

/* ---- partial.c: paths and failures; files that are created, locked and taken over ---- */

/* PATH and a suffix, and "PATH/NAME": the caller's; NULL without memory, or where path is NULL. */
char *path_add(const char *path, const char *suffix);
char *path_inside(const char *path, const char *name);

/* "PATH: WHAT: strerror(number)". PHEMA_ERR_RESOURCE without memory or descriptors, else
 * PHEMA_ERR_OUTPUT. */
enum phema_status writer_fail_errno(struct phema_error *err, const char *path, const char *what,
                                    int number);

/* "PATH: out of memory" */
enum phema_status writer_fail_memory(struct phema_error *err, const char *path);

/* No space, or a limit on file sizes: the message tells how much is needed. */
enum phema_status writer_fail_size(struct phema_error *err, const char *path, uint64_t size_bytes,
                                   int number);

/* Another run holds the lock. */
enum phema_status writer_fail_locked(struct phema_error *err, const char *path);

/* clang's static analyser does not look into another file: these never return success (error.h). */
#ifdef __clang_analyzer__
#define writer_fail_errno(...)  ((void)(writer_fail_errno)(__VA_ARGS__), PHEMA_ERR_OUTPUT)
#define writer_fail_memory(...) ((void)(writer_fail_memory)(__VA_ARGS__), PHEMA_ERR_RESOURCE)
#define writer_fail_size(...)   ((void)(writer_fail_size)(__VA_ARGS__), PHEMA_ERR_OUTPUT)
#define writer_fail_locked(...) ((void)(writer_fail_locked)(__VA_ARGS__), PHEMA_ERR_OUTPUT)
#endif

enum pending_state {
    PENDING_HIDDEN,    /* at its partial path */
    PENDING_NEW,       /* at its path, where nothing was */
    PENDING_EXCHANGED, /* at its path; the old one is kept beside it */
    PENDING_FINAL      /* at its path, whatever fails afterwards */
};

struct pending {
    char *path;         /* of the output, for messages */
    char *partial_path; /* of the file or directory that is open */
    int lock;           /* the descriptor that holds its lock, or -1 */
    int parent;         /* the directory of path, opened before the rename, to be synced; or -1 */
    bool is_directory;
    bool replaces; /* an existing PATH */
    bool is_ours;  /* this run may remove it */
    bool is_kept;  /* stays when it is cleared */
    bool took_over;
    enum pending_state state;
    mode_t usual_write; /* permissions that publishing adds (permissions_usual_write) */
    mode_t old_mode;    /* of what it was exchanged with */
    DIR *old;           /* the directory to replace: opened before, to be emptied afterwards */
    char *aside_path;   /* where that is, if directories cannot be exchanged; or NULL */
    struct phema_cleanup_entry *entry;
};

/* path may end in slashes, its partial path is PATH and the suffix. false without memory, and where
 * the suffix is NULL for want of it; it can be cleared in any case. */
bool pending_init(struct pending *out, const char *path, const char *suffix);

enum pending_use {
    PENDING_EXCLUSIVE, /* the output of an ordinary run: exclusive lock, at once */
    PENDING_SHARED,    /* the output of several parts: shared lock, after a short wait at most */
    PENDING_MARKER     /* the marker of one part: exclusive lock, after a short wait at most */
};

/* Opens and locks the file or directory, and creates it where it is absent. Sets is_ours where this
 * call has created it, unless it is shared, and else took_over. A file is open for reading and
 * writing. The caller holds ending signals (phema/cleanup.h) until pending_guard.
 * PHEMA_NO          another run holds the lock of a marker; there is no message
 * PHEMA_ERR_OUTPUT  cannot be created or locked; is not a usable leftover (leftover_open) */
PHEMA_FALLIBLE pending_open(struct pending *pending, enum pending_use use, struct phema_error *err);

/* Opens what runs have left, and locks it exclusively: the lock is -1 where it is absent, *is_locked
 * false where a run holds it.  waits: as of partial_lock */
PHEMA_FALLIBLE pending_open_left(struct pending *pending, bool *is_locked, bool waits,
                                 struct phema_error *err);

/* Puts it on the list of files to remove when the program dies; pending_keep takes it off. */
PHEMA_FALLIBLE pending_guard(struct pending *pending, struct phema_error *err);
void pending_keep(struct pending *pending, bool keeps);

/* Removes the file where it is ours and not kept, and takes back what was published but is not
 * final. Frees and closes everything. A directory must be empty. */
void pending_clear(struct pending *pending);

/* Creates a file that does not exist: a descriptor for reading and writing, or -1 and errno.
 *   directory  of the name, or AT_FDCWD */
int partial_create_file(int directory, const char *name);

/* Creates the file, or opens the one that another part has created: -1 when that has gone
 * meanwhile. The file has one name, and only this user may write it. path: for messages. */
PHEMA_FALLIBLE partial_open_shared_file(int *out, bool *is_new, int directory, const char *name,
                                        const char *path, struct phema_error *err);

/* Locks a descriptor: flock's LOCK_SH or LOCK_EX. waits: a moment, for those who only look.
 * *is_locked: false when another run holds it; true on filesystems without locks. */
PHEMA_FALLIBLE partial_lock(bool *is_locked, int descriptor, int operation, bool waits,
                            const char *path, struct phema_error *err);

/* true when the path still names the descriptor's file: a run that ended between our open and our
 * lock has renamed or removed it. */
bool partial_is_named(int descriptor, const char *path);

/* PHEMA_ERR_OUTPUT when the file has other hard links: their bytes would change too. path: for
 * messages, here and below. */
PHEMA_FALLIBLE leftover_check_one_name(const struct stat *st, const char *path,
                                       struct phema_error *err);

/* Opens a file that an ended run has left; -1 when it does not exist. Does not follow links and does
 * not block.
 *   directory  AT_FDCWD, or the directory of name
 *   kind       S_IFREG or S_IFDIR
 * PHEMA_ERR_OUTPUT  it is of another kind, belongs to another user than the effective one, or group
 *                   or others may write it */
PHEMA_FALLIBLE leftover_open(int *out, int directory, const char *name, const char *path, int flags,
                             mode_t kind, struct phema_error *err);

/* ---- publish.c ---- */

/* The write permissions of group and others that a new file at path would have. */
mode_t permissions_usual_write(const char *path);

/* Adds these permissions to a published directory and its files, for those who may read it. Failures
 * are ignored here and below: the file stays less accessible. */
void permissions_open_directory(int descriptor, mode_t usual_write);

/* Removes them again from a directory and its files, before an old output is deleted. */
void permissions_close_directory(DIR *stream);

/* Opens the directory of path: -1 where it cannot be opened or synced and need not be. To be opened
 * before the rename that is synced with it. */
PHEMA_FALLIBLE writer_open_parent(int *out, const char *path, struct phema_error *err);
PHEMA_FALLIBLE writer_sync_parent(int parent, const char *path, struct phema_error *err);

/* Renames it to its path. keeps_old: pending_undo can bring an old file back; else a file is final
 * at once. Old directories are kept always. */
PHEMA_FALLIBLE pending_publish(struct pending *pending, bool keeps_old, struct phema_error *err);

/* Puts back what the published one has replaced, where the filesystem can exchange files. Where
 * nothing was, the new file is removed. */
void pending_undo(struct pending *pending);

/* Where directories cannot be exchanged: moves path to aside_path and partial_path to path. 0; or
 * -1 and errno, and nothing has moved. */
int directory_move_aside(const char *path, const char *partial_path, const char *aside_path);

#endif
