/* parts.h - inside the writer room: a part of an output that several processes write, and the
 * markers that say how far each is. */
#ifndef PHEMA_WRITER_PARTS_H
#define PHEMA_WRITER_PARTS_H

#include "phema/strbuf.h"
#include "phema/writer.h"

struct phema_writer_part {
    char *path, *partial_path, *directory, *marker_path;
    const struct phema_writer_part_options *options;
    int marker;     /* locked exclusively, or -1 */
    int descriptor; /* of PATH.partial, file or directory, locked shared, or -1 */
    bool is_ours;   /* the marker was made by us or says that we are at work: goes with a failure */
    struct phema_cleanup_entry *entry;
};

/* Makes the file, or opens the one that another part has made: -1 when that has gone meanwhile. The
 * file has one name and only this user may write it. */
PHEMA_FALLIBLE parts_open(int *out, bool *is_new, int directory, const char *name, const char *path,
                          struct phema_error *err);

/* ---- Names: PATH.part-I-of-N (markers.c) ---- */

struct marker_name {
    char *base; /* of the output: what stands before ".part-" */
    uint64_t part, n_parts;
};

struct marker_list {
    struct marker_name *items; /* [n] by base, then number of parts, then part */
    size_t n;
};

/* "dir/out.safetensors.part-2-of-8"; NULL without memory. path has no slash at its end. */
char *marker_path(const char *path, uint64_t part, uint64_t n_parts);

/* Those of path, or with path NULL those of all outputs in the directory. A directory that does not
 * exist has none. */
PHEMA_FALLIBLE marker_list_make(struct marker_list *out, const char *directory, const char *path,
                                struct phema_error *err);
void marker_list_clear(struct marker_list *list);

/* path without slashes at its end; the caller's, NULL without memory. */
char *marker_base_of(const char *path);

/* The directory in which path lies; the caller's, NULL without memory. */
char *marker_directory_of(const char *path);

/* ---- What is in them (marker.c) ---- */

enum marker_state {
    MARKER_ABSENT,
    MARKER_UNFINISHED, /* its run has just begun, or has ended before its end */
    MARKER_RUNNING,    /* locked */
    MARKER_DONE
};

struct marker_file {
    char *name;
    uint64_t size_bytes;
};

struct marker {
    enum marker_state state;
    char digest[PHEMA_PART_DIGEST]; /* "" where nothing is written yet */
    bool is_directory;
    struct marker_file *files; /* [n_files] by name; of a file one without a name */
    size_t n_files;
    struct phema_writer_part_sum *sums; /* [n_sums] of one that is done, by ascending offsets */
    size_t n_sums;
    uint64_t inode; /* of PATH.partial, by which PATH is known to be what it became; 0: unknown */
};

/* PHEMA_ERR_OUTPUT when it cannot be read or is no marker of this program. */
PHEMA_FALLIBLE marker_read(struct marker *out, const char *path, struct phema_error *err);
void marker_clear(struct marker *marker);

/* Replaces what is in it. */
PHEMA_FALLIBLE marker_write(int descriptor, const char *path,
                            const struct phema_writer_part_options *options, uint64_t inode,
                            bool is_done, struct phema_error *err);

/* Locks, waiting a moment for those who only look: flock's LOCK_SH or LOCK_EX. false: somebody else
 * holds it. Where there are no locks, true. */
PHEMA_FALLIBLE parts_lock(bool *is_locked, int descriptor, int operation, const char *path,
                          struct phema_error *err);

#endif
