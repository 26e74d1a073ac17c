/* join.h - private to writer/: an output that is joined. */
#ifndef WRITER_JOIN_H
#define WRITER_JOIN_H

#include <stdatomic.h>
#include <sys/types.h>

#include "part.h"

/* The frames that parts have compressed. */
struct join_frame {
    uint64_t offset; /* in the file of its part */
    uint32_t size;   /* 0: not compressed yet */
    uint32_t part;   /* from 1 */
};
struct join_part_file {
    uint64_t size_bytes, hash;
    _Atomic uint64_t read_hash; /* of the frames that join has read */
};
struct join_frames {
    struct join_frame *items; /* [n] by number */
    size_t n;
    struct join_part_file *files; /* [n_parts] */
    bool verifies;                /* a part asks for it */
    bool are_written;             /* PATH.partial is complete */
};

/* What the parts tell of a block of the output: the exclusive or of their shares in its checksum. */
struct join_block {
    uint32_t crc;
    uint32_t first_part, last_part; /* that have written to it, from 1; 0: none */
};
struct join_blocks {
    struct join_block *items; /* [n] by number */
    size_t n;
    uint64_t unchecked_part; /* the first part without checksums, or 0 */
};

struct phema_writer_join {
    char *path, *partial_path;
    struct phema_writer_options options;
    uint64_t n_parts, size_bytes;
    struct part_marker first; /* the first part that is done; the others agree with it */
    int descriptor;           /* of PATH.partial, or -1 */
    int plain;                /* of PATH.plain.partial where the output is compressed, or -1 */
    char *plain_path;         /* NULL: not open */
    struct join_blocks blocks;
    struct join_frames frames;
    bool is_begun;     /* a part is being written, or was when its run ended */
    bool is_published; /* an earlier join was stopped after the rename */
};

/* The file that holds the data of all parts: a descriptor, and its path. */
static inline int join_data(const struct phema_writer_join *join)
{
    return join->plain_path ? join->plain : join->descriptor;
}
static inline const char *join_data_path(const struct phema_writer_join *join)
{
    return join->plain_path ? join->plain_path : join->partial_path;
}

/* ---- join_partial.c ---- */

/* *is_locked: false when a run holds PATH.partial. join->descriptor stays -1 where it is absent. */
PHEMA_FALLIBLE join_open_partial(bool *is_locked, struct phema_writer_join *join,
                                 struct phema_error *err);

/* Compares PATH.partial, or its files, with those that the parts tell, and syncs them. Opens and
 * locks the content of a compressed output. */
PHEMA_FALLIBLE join_check_partial(struct phema_writer_join *join, struct phema_error *err);

/* ---- join_blocks.c ---- */

/* Adds the checksums of a part that is done. */
PHEMA_FALLIBLE join_add_blocks(struct phema_writer_join *join, const struct part_marker *marker,
                               uint64_t part, struct phema_error *err);

/* Compares the bytes that are published with these checksums; of a compressed output the content of
 * frames that no part has compressed.
 * PHEMA_ERR_OUTPUT  they differ; the message names the parts */
PHEMA_FALLIBLE join_check_blocks(struct phema_writer_join *join, struct phema_error *err);

void join_blocks_clear(struct phema_writer_join *join);

/* ---- join_sums.c ---- */

/* A file of a directory, or the one that is joined. */
PHEMA_FALLIBLE join_open_file(int *descriptor, const struct phema_writer_join *join, size_t file,
                              struct phema_error *err);

/* Checks that the header has digits where the parts say so. */
PHEMA_FALLIBLE join_check_sums(const struct phema_writer_join *join, struct phema_error *err);

/* Writes the sums over the data of all parts into the header that the first part has written. The
 * next join writes the same bytes when this one is stopped here; so it does below. */
PHEMA_FALLIBLE join_write_sums(const struct phema_writer_join *join, struct phema_error *err);

/* Writes the checksums of what several parts have written. */
PHEMA_FALLIBLE join_write_crcs(const struct phema_writer_join *join, struct phema_error *err);

/* Opens the sidecar, whose text is that of the first part with the sums of all. */
PHEMA_FALLIBLE join_open_sidecar(struct phema_writer **out, const struct phema_writer_join *join,
                                 struct phema_error *err);

/* ---- join_frames.c: compressed outputs ---- */

/* Adds the frames of a part that is done.
 * PHEMA_ERR_OUTPUT  another part has one of them */
PHEMA_FALLIBLE join_add_frames(struct phema_writer_join *join, const struct part_marker *marker,
                               uint64_t part, struct phema_error *err);

/* Checks the frames, and the files of all parts. */
PHEMA_FALLIBLE join_check_frames(struct phema_writer_join *join, struct phema_error *err);

/* Writes PATH.partial. */
PHEMA_FALLIBLE join_write_frames(struct phema_writer_join *join, struct phema_error *err);

/* Removes PATH.plain.partial, when PATH is there. */
PHEMA_FALLIBLE join_remove_plain(const struct phema_writer_join *join, struct phema_error *err);

void join_frames_clear(struct phema_writer_join *join);

#endif
