/* part.h - private to writer/: the marker files that tell how far each part of an output is, and
 * what it has written. */
#ifndef WRITER_PART_H
#define WRITER_PART_H

#include <stdatomic.h>
#include <string.h>

#include "pending.h"
#include "phema/writer.h"

/* ---- Names: PATH.part-I-of-N ---- */

struct part_marker_name {
    char *output; /* its path, before ".part-" */
    char *path;   /* of the marker */
    uint64_t part, n_parts;
};

struct part_marker_list {
    struct part_marker_name *items; /* [n] by output, then number of parts, then part */
    size_t n, capacity;
};

/* "dir/out.safetensors.part-2-of-8"; the caller's, NULL without memory. path has no slash at its
 * end. */
char *part_marker_path(const char *path, uint64_t part, uint64_t n_parts);

/* "dir/out.safetensors.zst.part-2-of-8.frames", of a marker; as above. */
char *part_frames_path(const char *marker_path);

/* The markers of path. Empty where its directory does not exist. */
PHEMA_FALLIBLE part_marker_list_make(struct part_marker_list *out, const char *path,
                                     struct phema_error *err);
void part_marker_list_clear(struct part_marker_list *list);

/* PHEMA_ERR_OUTPUT when there are parts of path, done or under way: an ordinary run must not
 * replace them. */
PHEMA_FALLIBLE writer_check_no_parts(const char *path, struct phema_error *err);

/* ---- Contents and lock ---- */

enum part_marker_state {
    MARKER_ABSENT,
    MARKER_UNFINISHED, /* its run has just begun, or was ended before its end */
    MARKER_RUNNING,    /* locked */
    MARKER_DONE
};

/* Numbers of which most are absent, 0. */
struct part_numbers {
    uint64_t *items; /* [n] */
    size_t n;        /* of a marker that was read: up to the last one that is there */
};

struct part_marker {
    enum part_marker_state state;
    uint64_t part, n_parts;         /* of a marker that is written */
    char digest[PHEMA_PART_DIGEST]; /* "" where nothing is written yet */
    bool is_directory;
    struct phema_writer_part_file *files; /* [n_files] by name; of a file one without a name */
    size_t n_files;
    uint64_t sidecar_bytes; /* 0: the output has no PATH.json */
    char *sidecar;          /* [sidecar_bytes] in the first part's marker; NULL in others */
    size_t sums_file;
    struct phema_writer_part_sum *sums; /* [n_sums] of a part that is done, by ascending offsets */
    size_t n_sums;
    struct phema_writer_part_crc *crcs; /* [n_crcs] of a part that is done */
    size_t n_crcs;
    bool has_blocks; /* false: not done, or of an earlier version, without checksums */
    uint64_t block_bytes;
    struct part_numbers blocks; /* shares of their checksums, with PART_BLOCK_WRITTEN */
    bool is_compressed, verifies;
    struct phema_writer_frames
        all_frames;                     /* of the whole output; ends in the first part's marker */
    struct part_numbers frames;         /* sizes of the frames that the part has compressed */
    uint64_t frames_bytes, frames_hash; /* of their file: phema_hash_at of all frames, added up */
    uint64_t inode; /* of PATH.partial, which identifies PATH after a join; 0: unknown */
};

/* *out: zeros before, and where the marker is absent. PHEMA_ERR_OUTPUT when it cannot be read or is
 * not a marker of this program. */
PHEMA_FALLIBLE part_marker_read(struct part_marker *out, const char *path, struct phema_error *err);
void part_marker_clear(struct part_marker *marker);

/* The same address without const. A marker borrows what is written, and owns what was read. */
static inline void *part_writable(const void *data)
{
    void *out = NULL;
    memcpy(&out, &data, sizeof(out));
    return out;
}

/* Replaces the contents of the file; nothing in the marker changes. */
PHEMA_FALLIBLE part_marker_write(int descriptor, const char *path, struct part_marker *marker,
                                 bool syncs, struct phema_error *err);

/* Removes the marker of a part that is in the output of this inode, its journal and with has_frames
 * its frames. Another team may have written the part again since, or hold the marker: it stays. */
PHEMA_FALLIBLE part_marker_remove(const char *path, uint64_t inode, bool has_frames,
                                  struct phema_error *err);

/* ---- part_blocks.c: checksums of the bytes that parts write ----
 * Files are divided into blocks. Each part has a share in the CRC-32 of each block that it writes to,
 * which join compares with the block. */

/* More blocks would not fit into a marker. */
#define PART_MOST_BLOCKS ((size_t)8 << 20)

/* The blocks of one file: frames of a compressed output, or of a fixed size. */
struct part_file_blocks {
    _Atomic uint64_t *items; /* [n]; NULL: not counted */
    size_t n;
    uint64_t size_bytes;  /* of the file */
    uint64_t block_bytes; /* of each but the last */
    const struct phema_writer_frames *frames;
};

/* The blocks of all files of a part, one file after the other. */
struct part_blocks {
    _Atomic uint64_t *items; /* [n] the share, and PART_BLOCK_WRITTEN */
    size_t n;
    size_t *firsts; /* [n_files] the first block of each file */
    uint64_t block_bytes;
};
#define PART_BLOCK_WRITTEN ((uint64_t)1 << 32)

/* block_bytes is not 0; items are not set */
struct part_file_blocks part_file_blocks_of(uint64_t size_bytes, uint64_t block_bytes,
                                            const struct phema_writer_frames *frames);

/* Where a block ends in its file; it begins where the one before it ends. */
uint64_t part_block_end(const struct part_file_blocks *blocks, size_t block);

PHEMA_FALLIBLE part_blocks_open(struct part_blocks *out,
                                const struct phema_writer_part_options *options,
                                struct phema_error *err);
void part_blocks_clear(struct part_blocks *blocks);

/* The blocks of file f, which stay those of the part. */
struct part_file_blocks part_blocks_of_file(const struct part_blocks *blocks,
                                            const struct phema_writer_part_options *options,
                                            size_t f);

/* Adds bytes, each of which a part adds once. From any thread. */
void part_blocks_add(const struct part_file_blocks *blocks, uint64_t offset, const void *data,
                     size_t size);

#endif
