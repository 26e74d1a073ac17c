// SPDX-License-Identifier: Apache-2.0
/* part_blocks.c - checksums of the bytes that a part writes, counted while they are written: in any
 * order, from any thread. Holes and order do not matter, since shares of a CRC are linear. */
#include "part_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "phema/checksum.h"
#include "phema/json.h"

#define LEAST_BLOCK_BYTES ((uint64_t)4 << 10)
#define MOST_BLOCK_BYTES  ((uint64_t)4 << 20)
#define BLOCKS_PER_PART   64

/* Blocks of very large outputs grow beyond MOST_BLOCK_BYTES. */
#define MOST_BLOCKS ((uint64_t)PART_MOST_BLOCKS / 2)

/* ---- Blocks ---- */

uint64_t part_block_bytes(const struct phema_writer_part_options *options)
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

/* The first block that ends behind this place. */
static size_t find_block(const struct part_file_blocks *blocks, uint64_t offset)
{
    if (!blocks->frames)
        return (size_t)(offset / blocks->block_bytes);
    size_t low = 0, high = blocks->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (blocks->frames->ends[middle] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t count_blocks(const struct phema_writer_part_options *options, size_t f,
                           uint64_t block_bytes)
{
    return options->frames ? options->frames->n
                           : (size_t)part_count_blocks(options->files[f].size_bytes, block_bytes);
}

PHEMA_FALLIBLE part_blocks_open(struct part_blocks *out,
                                const struct phema_writer_part_options *options,
                                struct phema_error *err)
{
    out->block_bytes = part_block_bytes(options);
    out->firsts = calloc(options->n_files + 1, sizeof(*out->firsts));
    if (!out->firsts)
        return phema_fail_memory(err);
    for (size_t f = 0; f < options->n_files; f++) {
        out->firsts[f] = out->n;
        out->n += count_blocks(options, f, out->block_bytes);
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
    return (struct part_file_blocks){.items = blocks->items + blocks->firsts[f],
                                     .n = count_blocks(options, f, blocks->block_bytes),
                                     .size_bytes = options->files[f].size_bytes,
                                     .block_bytes = blocks->block_bytes,
                                     .frames = options->frames};
}

uint32_t part_block_share(const void *data, size_t size, uint64_t bytes_behind)
{
    return phema_crc32_share(~phema_crc32(UINT32_MAX, data, size), bytes_behind);
}

void part_blocks_add(const struct part_file_blocks *blocks, uint64_t offset, const void *data,
                     size_t size)
{
    const uint8_t *bytes = data;
    for (size_t block = find_block(blocks, offset); size && block < blocks->n; block++) {
        uint64_t left = part_block_end(blocks, block) - offset;
        size_t n = left < size ? (size_t)left : size;
        _Atomic uint64_t *item = &blocks->items[block];
        atomic_fetch_xor_explicit(item, part_block_share(bytes, n, left - n), memory_order_relaxed);
        atomic_fetch_or_explicit(item, PART_BLOCK_WRITTEN, memory_order_relaxed);
        bytes += n;
        offset += n;
        size -= n;
    }
}

/* ---- In a marker ---- */

/* PHEMA_NO: no checksums of blocks behind those before. */
static enum phema_status read_run(struct part_block_run *run, size_t end,
                                  const struct phema_json *object, struct phema_error *err)
{
    const struct phema_json *crcs = phema_json_get(object, "crcs");
    size_t n = phema_json_length(crcs);
    uint64_t first = 0;
    if (!phema_json_u64(&first, phema_json_get(object, "first")) || first < end ||
        first > PART_MOST_BLOCKS || n > PART_MOST_BLOCKS)
        return PHEMA_NO;
    run->first = (size_t)first;
    run->crcs = calloc(n + 1, sizeof(*run->crcs));
    if (!run->crcs)
        return phema_fail_memory(err);
    for (; run->n < n; run->n++) {
        uint64_t crc = 0;
        if (!phema_json_u64(&crc, phema_json_at(crcs, run->n)) || crc > UINT32_MAX)
            return PHEMA_NO;
        run->crcs[run->n] = (uint32_t)crc;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE part_blocks_read(struct part_marker_blocks *out, const struct phema_json *object,
                                struct phema_error *err)
{
    const struct phema_json *runs = phema_json_get(object, "runs");
    size_t n = phema_json_length(runs), end = 0;
    out->are_there = object != NULL;
    if (!object)
        return PHEMA_OK;
    if (!phema_json_u64(&out->block_bytes, phema_json_get(object, "block_bytes")) ||
        !out->block_bytes)
        return PHEMA_NO;
    out->runs = calloc(n + 1, sizeof(*out->runs));
    if (!out->runs)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    while (out->n_runs < n && !status) {
        struct part_block_run *run = &out->runs[out->n_runs];
        status = read_run(run, end, phema_json_at(runs, out->n_runs++), err);
        end = run->first + run->n;
    }
    return status;
}

void part_marker_blocks_clear(struct part_marker_blocks *blocks)
{
    for (size_t r = 0; r < blocks->n_runs; r++)
        free(blocks->runs[r].crcs);
    free(blocks->runs);
    *blocks = (struct part_marker_blocks){0};
}

static bool is_written(const struct part_blocks *blocks, size_t block)
{
    return block < blocks->n && atomic_load(&blocks->items[block]);
}

void part_blocks_write(struct phema_json_out *out, const struct part_blocks *blocks)
{
    phema_json_out_open(out, "blocks", '{');
    phema_json_out_u64(out, "block_bytes", blocks->block_bytes);
    phema_json_out_open(out, "runs", '[');
    for (size_t b = 0; b < blocks->n; b++) {
        if (!is_written(blocks, b))
            continue;
        phema_json_out_open(out, NULL, '{');
        phema_json_out_u64(out, "first", b);
        phema_json_out_open(out, "crcs", '[');
        for (; is_written(blocks, b); b++)
            phema_json_out_u64(out, NULL, (uint32_t)atomic_load(&blocks->items[b]));
        phema_json_out_close(out, ']');
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
    phema_json_out_close(out, '}');
}
