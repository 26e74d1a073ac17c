/* partial.h - private to writer/: PATH.partial and the other files that a run uses before it
 * publishes: created, taken over from an ended run, and locked. */
#ifndef WRITER_PARTIAL_H
#define WRITER_PARTIAL_H

#include <stdbool.h>
#include <sys/stat.h>

#include "phema/error.h"

/* Modes of new partial files and directories, which umask and ACLs restrict further. */
#define WRITER_PARTIAL_MODE           ((mode_t)0644)
#define WRITER_PARTIAL_DIRECTORY_MODE ((mode_t)0755)

/* "PATH.partial", the caller's; NULL without memory. */
char *path_partial(const char *path);

enum partial_use {
    PARTIAL_EXCLUSIVE, /* the output of an ordinary run: exclusive lock, at once */
    PARTIAL_SHARED,    /* the output of several parts: shared lock, after a short wait at most */
    PARTIAL_MARKER     /* the marker of one part: exclusive lock, after a short wait at most */
};

struct partial_request {
    enum partial_use use;
    bool is_directory;
    const char *path;         /* of the output, for messages */
    const char *partial_path; /* of the file or directory to open */
};

/* Opens and locks the file or directory, and creates it where it is absent. The caller holds ending
 * signals (phema/cleanup.h) until the path is on the list of files to remove.
 *   out     a file: for reading and writing; -1 on failure
 *   is_new  out: this call has created it
 * PHEMA_NO          another run holds the lock; there is no message
 * PHEMA_ERR_OUTPUT  cannot be created or locked; is not a usable leftover (leftover_open) */
PHEMA_FALLIBLE partial_open(int *out, bool *is_new, const struct partial_request *request,
                            struct phema_error *err);

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

/* ---- Leftovers of ended runs ---- */

/* PHEMA_ERR_OUTPUT when the file has other hard links: their bytes would change too. path: for
 * messages, here and below. */
PHEMA_FALLIBLE leftover_check_one_name(const struct stat *st, const char *path,
                                       struct phema_error *err);

/* Opens a file; -1 when it does not exist. Does not follow links and does not block.
 *   directory  AT_FDCWD, or the directory of name
 *   kind       S_IFREG or S_IFDIR
 * PHEMA_ERR_OUTPUT  it is of another kind, belongs to another user than the effective one, or group
 *                   or others may write it */
PHEMA_FALLIBLE leftover_open(int *out, int directory, const char *name, const char *path, int flags,
                             mode_t kind, struct phema_error *err);

#endif
