// SPDX-License-Identifier: Apache-2.0
/* part_blocks.c - checksums of the bytes that a part writes, counted while they are written: in any
 * order, from any thread. Holes and order do not matter, since shares of a CRC are linear. */
#include "part.h"

#include <stdlib.h>

#include "phema/checksum.h"

#define LEAST_BLOCK_BYTES ((uint64_t)4 << 10)
#define MOST_BLOCK_BYTES  ((uint64_t)4 << 20)
#define BLOCKS_PER_PART   64

/* Blocks of very large outputs grow beyond MOST_BLOCK_BYTES. */
#define MOST_BLOCKS ((uint64_t)PART_MOST_BLOCKS / 2)

/* ---- Blocks ---- */

/* Equal for all parts of these files. Small outputs have small blocks, so that few blocks are of
 * several parts. */
static uint64_t choose_block_bytes(const struct phema_writer_part_options *options)
{
    uint64_t total = 0, bytes = LEAST_BLOCK_BYTES;
    for (size_t f = 0; f < options->n_files; f++)
        total += options->files[f].size_bytes;
    uint64_t wanted = total / BLOCKS_PER_PART / options->n_parts;
    while (bytes < wanted && bytes < MOST_BLOCK_BYTES)
        bytes *= 2;
    while (total / bytes > MOST_BLOCKS)
        bytes *= 2;
    return bytes;
}

uint64_t part_block_end(const struct part_file_blocks *blocks, size_t block)
{
    if (blocks->frames)
        return blocks->frames->ends[block];
    return block + 1 < blocks->n ? (block + 1) * blocks->block_bytes : blocks->size_bytes;
}

struct part_file_blocks part_file_blocks_of(uint64_t size_bytes, uint64_t block_bytes,
                                            const struct phema_writer_frames *frames)
{
    struct part_file_blocks out = {
        .size_bytes = size_bytes, .block_bytes = block_bytes, .frames = frames};
    out.n =
        frames ? frames->n : (size_t)(size_bytes / block_bytes + (size_bytes % block_bytes != 0));
    return out;
}

PHEMA_FALLIBLE part_blocks_open(struct part_blocks *out,
                                const struct phema_writer_part_options *options,
                                struct phema_error *err)
{
    out->block_bytes = choose_block_bytes(options);
    out->firsts = calloc(options->n_files + 1, sizeof(*out->firsts));
    if (!out->firsts)
        return phema_fail_memory(err);
    for (size_t f = 0; f < options->n_files; f++) {
        out->firsts[f] = out->n;
        out->n +=
            part_file_blocks_of(options->files[f].size_bytes, out->block_bytes, options->frames).n;
    }
    out->items = calloc(out->n + 1, sizeof(*out->items));
    return out->items ? PHEMA_OK : phema_fail_memory(err);
}

void part_blocks_clear(struct part_blocks *blocks)
{
    free(blocks->items);
    free(blocks->firsts);
    *blocks = (struct part_blocks){0};
}

struct part_file_blocks part_blocks_of_file(const struct part_blocks *blocks,
                                            const struct phema_writer_part_options *options,
                                            size_t f)
{
    struct part_file_blocks out =
        part_file_blocks_of(options->files[f].size_bytes, blocks->block_bytes, options->frames);
    out.items = blocks->items + blocks->firsts[f];
    return out;
}

/* The share of bytes in the checksum of their block depends on how many bytes follow. Shares are
 * combined by exclusive or. That of zeros is 0, so that bytes which nobody writes have none. */
void part_blocks_add(const struct part_file_blocks *blocks, uint64_t offset, const void *data,
                     size_t size)
{
    const uint8_t *bytes = data;
    size_t block = 0, high = blocks->frames ? blocks->n : 0;
    if (!blocks->frames)
        block = (size_t)(offset / blocks->block_bytes);
    while (block < high) { /* the first block that ends behind this place */
        size_t middle = block + (high - block) / 2;
        if (blocks->frames->ends[middle] <= offset)
            block = middle + 1;
        else
            high = middle;
    }
    for (; size && block < blocks->n; block++) {
        uint64_t left = part_block_end(blocks, block) - offset;
        size_t n = left < size ? (size_t)left : size;
        _Atomic uint64_t *item = &blocks->items[block];
        uint32_t share = phema_crc32_share(~phema_crc32(UINT32_MAX, bytes, n), left - n);
        atomic_fetch_xor_explicit(item, share, memory_order_relaxed);
        atomic_fetch_or_explicit(item, PART_BLOCK_WRITTEN, memory_order_relaxed);
        bytes += n;
        offset += n;
        size -= n;
    }
}
