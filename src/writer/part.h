/* part.h - inside the writer room: a part of an output that several processes write, and the
 * markers that say how far each is. */
#ifndef WRITER_PART_H
#define WRITER_PART_H

#include "phema/strbuf.h"
#include "phema/writer.h"

struct phema_writer_part {
    char *path, *partial_path, *directory, *part_marker_path;
    const struct phema_writer_part_options *options;
    int marker;     /* locked exclusively, or -1 */
    int descriptor; /* of PATH.partial, file or directory, locked shared, or -1 */
    bool is_ours;   /* the marker was made by us or says that we are at work: goes with a failure */
    struct phema_cleanup_entry *entry;
};

/* Makes the file, or opens the one that another part has made: -1 when that has gone meanwhile. The
 * file has one name and only this user may write it. */
PHEMA_FALLIBLE part_open(int *out, bool *is_new, int directory, const char *name, const char *path,
                         struct phema_error *err);

/* ---- Names: PATH.part-I-of-N (markers.c) ---- */

struct part_marker_name {
    char *base; /* of the output: what stands before ".part-" */
    uint64_t part, n_parts;
};

struct part_marker_list {
    struct part_marker_name *items; /* [n] by base, then number of parts, then part */
    size_t n;
};

/* "dir/out.safetensors.part-2-of-8"; NULL without memory. path has no slash at its end. */
char *part_marker_path(const char *path, uint64_t part, uint64_t n_parts);

/* Those of path, or with path NULL those of all outputs in the directory. A directory that does not
 * exist has none. */
PHEMA_FALLIBLE part_marker_list_make(struct part_marker_list *out, const char *directory,
                                     const char *path, struct phema_error *err);
void part_marker_list_clear(struct part_marker_list *list);

/* path without slashes at its end; the caller's, NULL without memory. */
char *part_marker_base_of(const char *path);

/* The directory in which path lies; the caller's, NULL without memory. */
char *part_marker_directory_of(const char *path);

/* ---- What is in them (marker.c) ---- */

enum part_marker_state {
    MARKER_ABSENT,
    MARKER_UNFINISHED, /* its run has just begun, or has ended before its end */
    MARKER_RUNNING,    /* locked */
    MARKER_DONE
};

struct part_marker_file {
    char *name;
    uint64_t size_bytes;
};

struct part_marker {
    enum part_marker_state state;
    char digest[PHEMA_PART_DIGEST]; /* "" where nothing is written yet */
    bool is_directory;
    struct part_marker_file *files; /* [n_files] by name; of a file one without a name */
    size_t n_files;
    struct phema_writer_part_sum *sums; /* [n_sums] of one that is done, by ascending offsets */
    size_t n_sums;
    uint64_t inode; /* of PATH.partial, by which PATH is known to be what it became; 0: unknown */
};

/* PHEMA_ERR_OUTPUT when it cannot be read or is no marker of this program. */
PHEMA_FALLIBLE part_marker_read(struct part_marker *out, const char *path, struct phema_error *err);
void part_marker_clear(struct part_marker *marker);

/* Replaces what is in it. */
PHEMA_FALLIBLE part_marker_write(int descriptor, const char *path,
                                 const struct phema_writer_part_options *options, uint64_t inode,
                                 bool is_done, struct phema_error *err);

/* Locks, waiting a moment for those who only look: flock's LOCK_SH or LOCK_EX. false: somebody else
 * holds it. Where there are no locks, true. */
PHEMA_FALLIBLE part_lock(bool *is_locked, int descriptor, int operation, const char *path,
                         struct phema_error *err);

#endif
