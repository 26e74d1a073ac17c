/* join.h - private to writer/: an output that is joined. */
#ifndef WRITER_JOIN_H
#define WRITER_JOIN_H

#include <stdatomic.h>

#include "part.h"
#include "phema/checksum.h"
#include "phema/strbuf.h"

/* What join knows of each part. */
struct join_part {
    char *marker_path, *frames_path;
    uint64_t frames_bytes, frames_hash; /* of its compressed frames */
    _Atomic uint64_t read_hash;         /* of the frames that join has read */
};

/* The frames that parts have compressed. */
struct join_frame {
    uint64_t offset; /* in the file of its part */
    uint32_t size;   /* 0: not compressed yet */
    uint32_t part;   /* from 1 */
};
struct join_frames {
    struct join_frame *items; /* [n] by number */
    size_t n;
    bool verifies; /* a part asks for it */
};

/* What the parts tell: the checksum of a block is the exclusive or of their shares. */
struct join_blocks {
    struct phema_writer_check_block *items; /* [n] by number */
    size_t n;
    uint64_t unchecked_part; /* the first part without checksums, or 0 */
};

/* Bytes that join fills in: digests of the data that all parts have read, and checksums of what
 * several have written. */
struct join_place {
    size_t file;
    uint64_t at;
    unsigned size;
    char by_parts; /* what the parts have written there, size times */
    uint8_t bytes[PHEMA_DIGEST - 1];
};
struct join_places {
    struct join_place *items; /* [n] by file and place */
    size_t n;
};

struct phema_writer_join {
    struct pending out;   /* PATH.partial */
    struct pending plain; /* of a compressed output its content, which then holds the data */
    struct phema_writer_options options;
    uint64_t n_parts, size_bytes;
    struct join_part *parts;  /* [n_parts] */
    struct part_marker first; /* the first part that is done; the others agree with it */
    struct join_blocks blocks;
    struct join_frames frames;
    struct join_places places;
    bool is_begun;     /* a part is being written, or was when its run ended */
    bool is_published; /* an earlier join was stopped after the rename */
};

/* The file or directory that holds the data of all parts. */
static inline const struct pending *join_data(const struct phema_writer_join *join)
{
    return join->first.is_compressed ? &join->plain : &join->out;
}

/* ---- join_compare.c, whose other functions are those of writer.h ---- */

/* Adds the checksums of a part that is done. */
PHEMA_FALLIBLE join_add_blocks(struct phema_writer_join *join, const struct part_marker *marker,
                               uint64_t part, struct phema_error *err);

/* ---- join_content.c ---- */

/* A list of numbers for messages, "2, 5-7". */
struct numbers {
    struct phema_strbuf text; /* the caller clears it */
    uint64_t first, last, n;
};
void numbers_add(struct numbers *numbers, uint64_t number); /* larger than those before */
void numbers_end(struct numbers *numbers);                  /* text is complete */

/* Lists the places, when all parts were added. */
PHEMA_FALLIBLE join_list_places(struct phema_writer_join *join, struct phema_error *err);

/* Checks that digits are where digests will be. */
PHEMA_FALLIBLE join_check_digits(const struct phema_writer_join *join, struct phema_error *err);

/* Writes the places. The next join writes the same bytes when this one is stopped here; so it does
 * below. */
PHEMA_FALLIBLE join_fill_places(const struct phema_writer_join *join, struct phema_error *err);

/* Opens the sidecar, whose text is that of the first part with the sums of all. */
PHEMA_FALLIBLE join_open_sidecar(struct phema_writer **out, const struct phema_writer_join *join,
                                 struct phema_error *err);

/* ---- compressed outputs ---- */

/* Adds the frames of a part that is done.
 * PHEMA_ERR_OUTPUT  another part has one of them */
PHEMA_FALLIBLE join_add_frames(struct phema_writer_join *join, const struct part_marker *marker,
                               uint64_t part, struct phema_error *err);

/* Checks the frames, and the files of all parts. */
PHEMA_FALLIBLE join_check_frames(struct phema_writer_join *join, struct phema_error *err);

/* Writes PATH.partial. */
PHEMA_FALLIBLE join_write_frames(struct phema_writer_join *join, struct phema_error *err);

#endif
