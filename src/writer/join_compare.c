// SPDX-License-Identifier: Apache-2.0
/* join_compare.c - compares the bytes that parts have written with the checksums in their markers.
 * Between the last part and the join a disk may lose or change bytes: after --no-sync and a power
 * failure, blocks of zeros. Any process may compare: a list tells it the files, blocks and checksums,
 * and it reads no marker. Places that join fills in are left out, since a join that was killed may
 * have filled them already. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "join.h"
#include "phema/packed.h"
#include "phema/parallel.h"
#include "phema/setting.h"
#include "writer_internal.h"

/* Read at once: less than the cache of a core. */
#define CHUNK_BYTES ((size_t)128 << 10)

/* ---- What the parts tell ---- */

static enum phema_status make_room(struct join_blocks *blocks, size_t n, struct phema_error *err)
{
    if (n <= blocks->n)
        return PHEMA_OK;
    struct phema_writer_check_block *items = realloc(blocks->items, n * sizeof(*items));
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
    if (!marker->has_blocks && !all->unchecked_part)
        all->unchecked_part = part;
    enum phema_status status = make_room(all, marker->blocks.n, err);
    for (size_t b = 0; b < marker->blocks.n && !status; b++) {
        struct phema_writer_check_block *block = &all->items[b];
        if (!marker->blocks.items[b])
            continue;
        block->crc ^= (uint32_t)marker->blocks.items[b];
        block->last_part = (uint32_t)part;
        if (!block->first_part)
            block->first_part = (uint32_t)part;
    }
    return status;
}

/* ---- The list ---- */

static struct part_file_blocks blocks_of(const struct phema_writer_check *check, size_t file)
{
    return part_file_blocks_of(check->files[file].size_bytes, check->block_bytes,
                               check->frames.n ? &check->frames : NULL);
}

/* *n: the blocks of all files */
static enum phema_status count_blocks(size_t *n, const struct phema_writer_check *check,
                                      const struct phema_writer_join *join, struct phema_error *err)
{
    bool is_valid = true;
    *n = 0;
    for (size_t f = 0; f < check->n_files && is_valid; f++) {
        size_t own = blocks_of(check, f).n;
        is_valid = own <= PART_MOST_BLOCKS - *n;
        *n += own;
    }
    if (is_valid && join->blocks.n <= *n)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: its parts tell of other blocks than its files have; remove all "
                      "%s.part-*, and write all parts again",
                      join->out.path, join->out.path);
}

PHEMA_FALLIBLE phema_writer_join_list_blocks(struct phema_writer_check *out,
                                             struct phema_writer_join *join,
                                             struct phema_error *err)
{
    const struct part_marker *all = &join->first;
    size_t n = 0;
    *out = (struct phema_writer_check){.descriptor = -1};
    if (join->is_published || join->blocks.unchecked_part)
        return PHEMA_OK;
    struct phema_writer_check check = {.descriptor = join_data(join)->lock,
                                       .path = join_data(join)->partial_path,
                                       .files = all->files,
                                       .n_files = all->n_files,
                                       .block_bytes = all->block_bytes,
                                       .places = join->places.items,
                                       .n_places = join->places.n};
    if (all->is_compressed)
        check.frames = all->all_frames;
    enum phema_status status = count_blocks(&n, &check, join, err);
    if (!status)
        status = make_room(&join->blocks, n, err);
    if (status)
        return status;
    check.blocks = join->blocks.items;
    check.n_blocks = n;
    for (size_t b = 0; b < n && b < join->frames.n && all->is_compressed; b++)
        if (join->frames.items[b].size) /* the part's frame is published, not these bytes */
            check.blocks[b].share = PHEMA_CHECK_NOT;
    *out = check;
    return PHEMA_OK;
}

static void pack_file(struct phema_writer_part_file *file, struct phema_packer *packer)
{
    phema_pack_text(packer, &file->name);
    phema_pack_u64(packer, &file->size_bytes);
}

/* Of the parts a receiver learns nothing. */
static void pack_block(struct phema_writer_check_block *block, struct phema_packer *packer)
{
    uint64_t both = (uint64_t)block->share << 32 | block->crc;
    phema_pack_u64(packer, &both);
    block->share = (uint32_t)(both >> 32);
    block->crc = (uint32_t)both;
}

static void pack_place(struct join_place *place, struct phema_packer *packer)
{
    uint64_t size = place->size;
    phema_pack_size(packer, &place->file);
    phema_pack_u64(packer, &place->at);
    phema_pack_u64(packer, &size);
    place->size = (unsigned)size;
    place->by_parts =
        (char)phema_pack_choice(packer, (unsigned char)place->by_parts, UCHAR_MAX + 1);
}

void phema_writer_check_pack(struct phema_writer_check *check, struct phema_packer *packer)
{
    phema_pack_text(packer, &check->path);
    phema_pack_u64(packer, &check->block_bytes);
    phema_pack_count(packer, &check->n_files, 2 * sizeof(uint64_t));
    phema_pack_count(packer, &check->frames.n, sizeof(uint64_t));
    phema_pack_count(packer, &check->n_blocks, sizeof(uint64_t));
    phema_pack_count(packer, &check->n_places, 4 * sizeof(uint64_t));
    struct phema_writer_part_file *files =
        phema_pack_array(packer, check->files, check->n_files, sizeof(*files));
    uint64_t *ends = phema_pack_array(packer, check->frames.ends, check->frames.n, sizeof(*ends));
    struct phema_writer_check_block *blocks =
        phema_pack_array(packer, check->blocks, check->n_blocks, sizeof(*blocks));
    struct join_place *places =
        phema_pack_array(packer, check->places, check->n_places, sizeof(*places));
    for (size_t f = 0; f < check->n_files && files; f++)
        pack_file(&files[f], packer);
    for (size_t f = 0; f < check->frames.n && ends; f++)
        phema_pack_u64(packer, &ends[f]);
    for (size_t b = 0; b < check->n_blocks && blocks; b++)
        pack_block(&blocks[b], packer);
    for (size_t k = 0; k < check->n_places && places; k++)
        pack_place(&places[k], packer);
    if (!phema_pack_receives(packer))
        return;
    check->descriptor = -1;
    check->files = files;
    check->frames.ends = ends;
    check->blocks = blocks;
    check->places = places;
}

/* ---- Places that join fills in ---- */

/* The first place of this file that may end behind offset, or of a later file. */
static size_t find_place(const struct phema_writer_check *check, size_t file, uint64_t offset)
{
    size_t low = 0, high = check->n_places;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct join_place *place = &check->places[middle];
        if (place->file < file || (place->file == file && place->at + PHEMA_DIGEST <= offset))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Puts back into bytes of the file what the parts have written. */
static void undo_places(const struct phema_writer_check *check, size_t file, uint8_t *bytes,
                        size_t size, uint64_t offset)
{
    for (size_t k = find_place(check, file, offset); k < check->n_places; k++) {
        const struct join_place *place = &check->places[k];
        if (place->file != file || place->at >= offset + size)
            return;
        uint64_t first = place->at > offset ? place->at : offset;
        uint64_t end = place->at + place->size, last = offset + size;
        last = end < last ? end : last;
        if (first < last)
            memset(bytes + (first - offset), place->by_parts, (size_t)(last - first));
    }
}

/* ---- Comparing ---- */

struct comparing {
    const struct phema_writer_check *check;
    const struct phema_writer_check_block *wanted; /* [blocks.n] */
    struct part_file_blocks blocks;                /* of the file; items are not set */
    size_t file;
    const char *path; /* of the file */
    int descriptor;
    uint32_t share;
    uint64_t *differs; /* [blocks.n] */
};

static enum phema_status compare_block(void *context, size_t block, struct phema_error *err)
{
    struct comparing *comparing = context;
    if (comparing->wanted[block].share != comparing->share)
        return PHEMA_OK;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        return phema_fail_memory(err);
    uint32_t crc = UINT32_MAX;
    uint64_t at = block ? part_block_end(&comparing->blocks, block - 1) : 0;
    uint64_t end = part_block_end(&comparing->blocks, block);
    enum phema_status status = PHEMA_OK;
    while (at < end) {
        size_t size = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;
        ssize_t n = file_read_fully(comparing->descriptor, chunk, size, at);
        if (n != (ssize_t)size) {
            status = writer_fail_errno(err, comparing->path, "cannot be read", n < 0 ? errno : EIO);
            break;
        }
        undo_places(comparing->check, comparing->file, chunk, size, at);
        crc = phema_crc32(crc, chunk, size);
        at += size;
    }
    free(chunk);
    comparing->differs[block] = !status && ~crc != comparing->wanted[block].crc;
    return status;
}

/* directory: of the name, or AT_FDCWD */
static enum phema_status open_left(int *out, int directory, const char *name, const char *path,
                                   mode_t kind, struct phema_error *err)
{
    enum phema_status status = leftover_open(out, directory, name, path, O_RDONLY, kind, err);
    return !status && *out < 0 ? writer_fail_errno(err, path, "cannot be opened", ENOENT) : status;
}

static enum phema_status compare_opened(struct comparing *comparing, struct phema_error *err)
{
    return phema_parallel_try(comparing->blocks.n, phema_parallel_threads(), compare_block,
                              comparing, err);
}

static enum phema_status compare_inside(struct comparing *comparing, int directory,
                                        const char *name, struct phema_error *err)
{
    char *path = path_inside(comparing->check->path, name);
    if (!path)
        return phema_fail_memory(err);
    comparing->path = path;
    enum phema_status status =
        open_left(&comparing->descriptor, directory, name, path, S_IFREG, err);
    if (!status)
        status = compare_opened(comparing, err);
    if (comparing->descriptor >= 0)
        (void)close(comparing->descriptor);
    free(path);
    return status;
}

/* descriptor: of check->path */
static enum phema_status compare_files(uint64_t *differs, const struct phema_writer_check *check,
                                       uint32_t share, int descriptor, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0, first = 0; f < check->n_files && !status; f++) {
        struct comparing comparing = {.check = check,
                                      .wanted = check->blocks + first,
                                      .blocks = blocks_of(check, f),
                                      .file = f,
                                      .path = check->path,
                                      .descriptor = descriptor,
                                      .share = share,
                                      .differs = differs + first};
        const char *name = check->files[f].name;
        status = name ? compare_inside(&comparing, descriptor, name, err)
                      : compare_opened(&comparing, err);
        first += comparing.blocks.n;
    }
    return status;
}

PHEMA_FALLIBLE phema_writer_check_compare(uint64_t *differs, const struct phema_writer_check *check,
                                          uint32_t share, struct phema_error *err)
{
    bool has_any = false;
    for (size_t b = 0; b < check->n_blocks && !has_any; b++)
        has_any = check->blocks[b].share == share;
    if (!has_any)
        return PHEMA_OK;
    if (check->descriptor >= 0)
        return compare_files(differs, check, share, check->descriptor, err);
    int descriptor = -1;
    mode_t kind = check->files[0].name ? S_IFDIR : S_IFREG;
    enum phema_status status =
        open_left(&descriptor, AT_FDCWD, check->path, check->path, kind, err);
    if (!status)
        status = compare_files(differs, check, share, descriptor, err);
    if (descriptor >= 0)
        (void)close(descriptor);
    return status;
}

/* ---- Blocks that differ ---- */

/* Blocks of a file, of which some differ. */
struct different {
    const struct phema_writer_join *join;
    const struct phema_writer_check_block *wanted; /* [blocks.n] */
    const uint64_t *differs;                       /* [blocks.n] */
    struct part_file_blocks blocks;
};

/* Parts of which some block differs. */
static enum phema_status list_parts(struct numbers *out, const struct different *different,
                                    struct phema_error *err)
{
    uint64_t n_parts = different->join->n_parts;
    bool *is_in = calloc((size_t)n_parts + 1, sizeof(*is_in));
    if (!is_in)
        return phema_fail_memory(err);
    for (size_t b = 0; b < different->blocks.n; b++)
        for (uint64_t p = different->wanted[b].first_part;
             different->differs[b] && p && p <= different->wanted[b].last_part; p++)
            is_in[p] = true;
    for (uint64_t p = 1; p <= n_parts; p++)
        if (is_in[p])
            numbers_add(out, p);
    numbers_end(out);
    free(is_in);
    return phema_strbuf_check(&out->text, err);
}

static enum phema_status fail_different(const struct different *different, const char *name,
                                        struct phema_error *err)
{
    const struct phema_writer_join *join = different->join;
    struct numbers parts = {.n = 0};
    struct phema_name_buffer shown;
    size_t b = 0;
    while (!different->differs[b])
        b++;
    enum phema_status status = list_parts(&parts, different, err);
    const char *path = join_data(join)->partial_path, *slash = name ? "/" : "";
    const char *escaped = name ? phema_name_show(&shown, name) : "";
    unsigned long long n_parts = join->n_parts;
    unsigned long long start = b ? part_block_end(&different->blocks, b - 1) : 0;
    unsigned long long end = part_block_end(&different->blocks, b);
    if (!status && !parts.n)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s%s%s: bytes %llu to %llu are those of no part; remove %s and all "
                            "%s.part-*, and write all parts again",
                            path, slash, escaped, start, end, path, join->out.path);
    else if (!status && parts.n == 1)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s%s%s: bytes %llu to %llu are not what part %s has written; remove "
                            "%s.part-%s-of-%llu, and write part %s again, with synth %s%s/%llu",
                            path, slash, escaped, start, end, parts.text.data, join->out.path,
                            parts.text.data, n_parts, parts.text.data,
                            phema_setting_equals(PHEMA_SET_PART), parts.text.data, n_parts);
    else if (!status)
        status =
            phema_fail(err, PHEMA_ERR_OUTPUT,
                       "%s%s%s: bytes %llu to %llu are not what parts have written; remove "
                       "%s.part-I-of-%llu for parts %s, and write these again, with synth %sI/%llu",
                       path, slash, escaped, start, end, join->out.path, n_parts, parts.text.data,
                       phema_setting_equals(PHEMA_SET_PART), n_parts);
    phema_strbuf_clear(&parts.text);
    return status;
}

PHEMA_FALLIBLE phema_writer_join_check(const struct phema_writer_join *join,
                                       const struct phema_writer_check *check,
                                       const uint64_t *differs, struct phema_error *err)
{
    for (size_t f = 0, first = 0; first < check->n_blocks; f++) {
        struct different different = {join, check->blocks + first, differs + first,
                                      blocks_of(check, f)};
        for (size_t b = 0; b < different.blocks.n; b++)
            if (different.differs[b])
                return fail_different(&different, check->files[f].name, err);
        first += different.blocks.n;
    }
    return join->is_published ? PHEMA_OK : join_check_digits(join, err);
}
