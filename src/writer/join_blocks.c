// SPDX-License-Identifier: Apache-2.0
/* join_blocks.c - compares the bytes that parts have written with the checksums in their markers.
 * Between the last part and the join a disk may lose or change bytes: after --no-sync and a power
 * failure, blocks of zeros. Places that join fills in are left out, since a join that was killed may
 * have filled them already. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "join.h"
#include "numbers.h"
#include "phema/checksum.h"
#include "phema/parallel.h"
#include "phema/setting.h"
#include "write_error.h"
#include "writer_internal.h"

/* Read at once: less than the cache of a core. */
#define CHUNK_BYTES ((size_t)128 << 10)

/* ---- What the parts tell ---- */

static enum phema_status make_room(struct join_blocks *blocks, size_t n, struct phema_error *err)
{
    if (n <= blocks->n)
        return PHEMA_OK;
    struct join_block *items = realloc(blocks->items, n * sizeof(*items));
    if (!items)
        return phema_fail_memory(err);
    memset(&items[blocks->n], 0, (n - blocks->n) * sizeof(*items));
    blocks->items = items;
    blocks->n = n;
    return PHEMA_OK;
}

PHEMA_FALLIBLE join_add_blocks(struct phema_writer_join *join, const struct part_marker *marker,
                               uint64_t part, struct phema_error *err)
{
    struct join_blocks *all = &join->blocks;
    if (!marker->blocks.are_there && !all->unchecked_part)
        all->unchecked_part = part;
    for (size_t r = 0; r < marker->blocks.n_runs; r++) {
        const struct part_block_run *run = &marker->blocks.runs[r];
        enum phema_status status = make_room(all, run->first + run->n, err);
        if (status)
            return status;
        for (size_t x = 0; x < run->n; x++) {
            struct join_block *block = &all->items[run->first + x];
            block->crc ^= run->crcs[x];
            block->last_part = (uint32_t)part;
            if (!block->first_part)
                block->first_part = (uint32_t)part;
        }
    }
    return PHEMA_OK;
}

void join_blocks_clear(struct phema_writer_join *join)
{
    free(join->blocks.items);
}

/* ---- Places that join fills in ---- */

/* Bytes of the file that is checked, and what the parts have written there. */
struct filled_place {
    uint64_t at;
    unsigned size;
    char by_parts;
};

struct filled_places {
    struct filled_place *items; /* [n] by place */
    size_t n;
};

static int compare_places(const void *a, const void *b)
{
    const struct filled_place *left = a, *right = b;
    return (left->at > right->at) - (left->at < right->at);
}

static enum phema_status list_places(struct filled_places *out, const struct part_marker *all,
                                     size_t file, struct phema_error *err)
{
    bool has_sums = !all->sidecar_bytes && all->sums_file == file;
    size_t most = (has_sums ? all->n_sums : 0) + PHEMA_PART_CRC_PLACES * all->n_crcs;
    *out = (struct filled_places){.items = calloc(most + 1, sizeof(*out->items))};
    if (!out->items)
        return phema_fail_memory(err);
    for (size_t k = 0; has_sums && k < all->n_sums; k++)
        out->items[out->n++] = (struct filled_place){all->sums[k].offset, PHEMA_DIGEST - 1, '0'};
    for (size_t k = 0; k < all->n_crcs; k++)
        for (unsigned x = 0; all->crcs[k].file == file && x < all->crcs[k].n_places; x++)
            out->items[out->n++] =
                (struct filled_place){all->crcs[k].at[x], sizeof(all->crcs[k].crc), '\0'};
    qsort(out->items, out->n, sizeof(*out->items), compare_places);
    return PHEMA_OK;
}

/* Puts back into bytes of the file what the parts have written. */
static void undo_places(const struct filled_places *places, uint8_t *bytes, size_t size,
                        uint64_t offset)
{
    size_t low = 0, high = places->n;
    while (low < high) { /* the first that ends behind offset */
        size_t middle = low + (high - low) / 2;
        if (places->items[middle].at + PHEMA_DIGEST <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < places->n && places->items[low].at < offset + size; low++) {
        const struct filled_place *place = &places->items[low];
        uint64_t first = place->at > offset ? place->at : offset;
        uint64_t end = place->at + place->size, last = offset + size;
        last = end < last ? end : last;
        if (first < last)
            memset(bytes + (first - offset), place->by_parts, (size_t)(last - first));
    }
}

/* ---- Comparing ---- */

struct checking {
    struct phema_writer_join *join;
    struct part_file_blocks blocks;  /* of the file; items are not set */
    const struct join_block *wanted; /* [blocks.n] */
    struct filled_places places;
    int descriptor;
    bool *differs; /* [blocks.n] */
};

static enum phema_status sum_block(uint32_t *crc, uint8_t *chunk, const struct checking *checking,
                                   uint64_t at, uint64_t end, struct phema_error *err)
{
    *crc = UINT32_MAX;
    while (at < end) {
        size_t size = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;
        ssize_t n = file_read_fully(checking->descriptor, chunk, size, at);
        if (n != (ssize_t)size)
            return writer_fail_errno(err, join_data_path(checking->join), "cannot be read",
                                     n < 0 ? errno : EIO);
        undo_places(&checking->places, chunk, size, at);
        *crc = phema_crc32(*crc, chunk, size);
        at += size;
    }
    return PHEMA_OK;
}

/* Whether join publishes these bytes: not those of a frame that a part has compressed. */
static bool is_published_here(const struct phema_writer_join *join, size_t block)
{
    return !join->first.is_compressed || block >= join->frames.n || !join->frames.items[block].size;
}

static enum phema_status check_block(void *context, size_t block, struct phema_error *err)
{
    struct checking *checking = context;
    if (!is_published_here(checking->join, block))
        return PHEMA_OK;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        return phema_fail_memory(err);
    uint32_t crc = 0;
    enum phema_status status =
        sum_block(&crc, chunk, checking, block ? part_block_end(&checking->blocks, block - 1) : 0,
                  part_block_end(&checking->blocks, block), err);
    free(chunk);
    checking->differs[block] = !status && ~crc != checking->wanted[block].crc;
    return status;
}

/* Parts of which some block differs. */
static enum phema_status list_parts(struct numbers *out, const struct checking *checking,
                                    struct phema_error *err)
{
    uint64_t n_parts = checking->join->n_parts;
    bool *is_in = calloc((size_t)n_parts + 1, sizeof(*is_in));
    if (!is_in)
        return phema_fail_memory(err);
    for (size_t b = 0; b < checking->blocks.n; b++)
        for (uint64_t p = checking->wanted[b].first_part;
             checking->differs[b] && p && p <= checking->wanted[b].last_part; p++)
            is_in[p] = true;
    for (uint64_t p = 1; p <= n_parts; p++)
        if (is_in[p])
            numbers_add(out, p);
    numbers_end(out);
    free(is_in);
    return phema_strbuf_check(&out->text, err);
}

static enum phema_status fail_different(const struct checking *checking, const char *name,
                                        struct phema_error *err)
{
    const struct phema_writer_join *join = checking->join;
    struct numbers parts = {.n = 0};
    struct phema_name_buffer shown;
    size_t b = 0;
    while (!checking->differs[b])
        b++;
    enum phema_status status = list_parts(&parts, checking, err);
    const char *path = join_data_path(join), *slash = name ? "/" : "";
    const char *escaped = name ? phema_name_escape(&shown, name, strlen(name)) : "";
    unsigned long long n_parts = join->n_parts;
    unsigned long long start = b ? part_block_end(&checking->blocks, b - 1) : 0;
    unsigned long long end = part_block_end(&checking->blocks, b);
    if (!status && !parts.n)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s%s%s: bytes %llu to %llu are those of no part; remove %s and all "
                            "%s.part-*, and write all parts again",
                            path, slash, escaped, start, end, path, join->path);
    else if (!status && parts.n == 1)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s%s%s: bytes %llu to %llu are not what part %s has written; remove "
                            "%s.part-%s-of-%llu, and write part %s again, with synth %s%s/%llu",
                            path, slash, escaped, start, end, parts.text.data, join->path,
                            parts.text.data, n_parts, parts.text.data,
                            phema_setting_equals(PHEMA_SET_PART), parts.text.data, n_parts);
    else if (!status)
        status =
            phema_fail(err, PHEMA_ERR_OUTPUT,
                       "%s%s%s: bytes %llu to %llu are not what parts have written; remove "
                       "%s.part-I-of-%llu for parts %s, and write these again, with synth %sI/%llu",
                       path, slash, escaped, start, end, join->path, n_parts, parts.text.data,
                       phema_setting_equals(PHEMA_SET_PART), n_parts);
    phema_strbuf_clear(&parts.text);
    return status;
}

static enum phema_status compare_blocks(struct checking *checking, const char *name,
                                        struct phema_error *err)
{
    checking->differs = calloc(checking->blocks.n + 1, sizeof(*checking->differs));
    enum phema_status status = checking->differs ? PHEMA_OK : phema_fail_memory(err);
    if (!status)
        status = phema_parallel_try(checking->blocks.n, phema_parallel_threads(), check_block,
                                    checking, err);
    for (size_t b = 0; b < checking->blocks.n && !status; b++)
        if (checking->differs[b])
            status = fail_different(checking, name, err);
    free(checking->differs);
    return status;
}

/* first: the number of its first block */
static enum phema_status check_file(struct phema_writer_join *join, size_t file, size_t first,
                                    const struct part_file_blocks *blocks, struct phema_error *err)
{
    struct checking checking = {
        .join = join, .blocks = *blocks, .wanted = join->blocks.items + first, .descriptor = -1};
    enum phema_status status = list_places(&checking.places, &join->first, file, err);
    if (!status)
        status = join_open_file(&checking.descriptor, join, file, err);
    if (!status)
        status = compare_blocks(&checking, join->first.files[file].name, err);
    if (checking.descriptor >= 0 && checking.descriptor != join_data(join))
        (void)close(checking.descriptor);
    free(checking.places.items);
    return status;
}

static struct part_file_blocks blocks_of(const struct phema_writer_join *join, size_t file)
{
    const struct part_marker *all = &join->first;
    struct part_file_blocks blocks = {.size_bytes = all->files[file].size_bytes,
                                      .block_bytes = all->blocks.block_bytes,
                                      .frames = all->is_compressed ? &all->all_frames : NULL};
    blocks.n = all->is_compressed
                   ? all->all_frames.n
                   : (size_t)part_count_blocks(blocks.size_bytes, blocks.block_bytes);
    return blocks;
}

static enum phema_status fail_number(const struct phema_writer_join *join, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: its parts tell of other blocks than its files have; remove all "
                      "%s.part-*, and write all parts again",
                      join->path, join->path);
}

PHEMA_FALLIBLE join_check_blocks(struct phema_writer_join *join, struct phema_error *err)
{
    const struct part_marker *all = &join->first;
    size_t n = 0;
    if (join->blocks.unchecked_part)
        return PHEMA_OK;
    for (size_t f = 0; f < all->n_files; f++) {
        struct part_file_blocks blocks = blocks_of(join, f);
        if (blocks.n > PART_MOST_BLOCKS - n)
            return fail_number(join, err);
        n += blocks.n;
    }
    if (join->blocks.n > n)
        return fail_number(join, err);
    enum phema_status status = make_room(&join->blocks, n, err);
    for (size_t f = 0, first = 0; f < all->n_files && !status; f++) {
        struct part_file_blocks blocks = blocks_of(join, f);
        status = check_file(join, f, first, &blocks, err);
        first += blocks.n;
    }
    return status;
}
