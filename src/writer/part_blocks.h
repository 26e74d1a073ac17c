/* part_blocks.h - private to writer/: checksums of the bytes that parts write. Files are divided into
 * blocks. Each part has a share in the CRC-32 of each block that it writes to, which join compares
 * with the block. */
#ifndef WRITER_PART_BLOCKS_H
#define WRITER_PART_BLOCKS_H

#include <stdatomic.h>

#include "phema/writer.h"

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

/* Of parts of these files: equal for all of them. Small outputs have small blocks, so that few blocks
 * are of several parts. */
uint64_t part_block_bytes(const struct phema_writer_part_options *options);

/* Blocks of a file; block_bytes is not 0. */
static inline uint64_t part_count_blocks(uint64_t size_bytes, uint64_t block_bytes)
{
    return size_bytes / block_bytes + (size_bytes % block_bytes != 0);
}

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

/* The share of bytes in the checksum of a block that has bytes_behind more bytes. Shares are
 * combined by exclusive or. That of zeros is 0, so that bytes which nobody writes have none. */
uint32_t part_block_share(const void *data, size_t size, uint64_t bytes_behind);

/* ---- In a marker ---- */

struct part_block_run {
    size_t first, n;
    uint32_t *crcs; /* [n] */
};

struct part_marker_blocks {
    bool are_there; /* false: the part is of an earlier version, without checksums */
    uint64_t block_bytes;
    struct part_block_run *runs; /* [n_runs] by block */
    size_t n_runs;
};

struct phema_json;
struct phema_json_out;

/* object: "blocks" of the marker; NULL: absent. PHEMA_NO: incomplete. */
PHEMA_FALLIBLE part_blocks_read(struct part_marker_blocks *out, const struct phema_json *object,
                                struct phema_error *err);
void part_marker_blocks_clear(struct part_marker_blocks *blocks);
void part_blocks_write(struct phema_json_out *out, const struct part_blocks *blocks);

#endif
