// SPDX-License-Identifier: Apache-2.0
/* frame_header.c - Headers of zstd's frames (RFC 8878) and the table at the end of a file in zstd's
 * seekable format: their content, and requests for their pages before frame_index.c walks over
 * them. */
#include "zstd/frame_header.h"

#include "format.h"
#include "phema/zstd_seek_table.h"

#define FRAME_MAGIC     0xFD2FB528u
#define SKIPPABLE_MAGIC 0x184D2A50u /* to 0x184D2A5F */

/* libzstd's default, and the window of `zstd --long` (27). Each open file may keep that much. */
#define MAX_WINDOW_BYTES ((uint64_t)128 << 20)

bool zstd_is_data(uint32_t magic)
{
    return magic == FRAME_MAGIC;
}

bool zstd_is_skippable(uint32_t magic)
{
    return (magic & 0xFFFFFFF0u) == SKIPPABLE_MAGIC;
}

enum phema_status zstd_fail_short_frame(uint64_t at, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE,
                      "the zstd frame at offset %llu is cut short; the file is damaged",
                      (unsigned long long)at);
}

static enum phema_status check_descriptor(uint8_t descriptor, uint64_t at, struct phema_error *err)
{
    if (descriptor & 0x08)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the zstd frame at offset %llu has a reserved bit set; the file is "
                          "damaged, or newer than RFC 8878",
                          (unsigned long long)at);
    if (descriptor & 0x03)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the zstd frame at offset %llu needs a dictionary, which a checkpoint "
                          "does not bring along; compress it without one",
                          (unsigned long long)at);
    return PHEMA_OK;
}

enum phema_status zstd_read_frame_header(struct zstd_frame_header *out, struct phema_span frame,
                                         uint64_t at, struct phema_error *err)
{
    static const unsigned widths[] = {0, 2, 4, 8};
    if (frame.size < 6)
        return zstd_fail_short_frame(at, err);
    uint8_t descriptor = frame.data[4];
    enum phema_status status = check_descriptor(descriptor, at, err);
    if (status)
        return status;
    bool is_single = descriptor & 0x20; /* the window is the content */
    unsigned width = widths[descriptor >> 6];
    if (is_single && width == 0)
        width = 1;
    out->size = 5u + !is_single + width;
    if (frame.size < out->size)
        return zstd_fail_short_frame(at, err);
    out->has_checksum = descriptor & 0x04;
    out->has_content_size = width > 0;
    out->content_size = load_number(frame.data + 5 + !is_single, width);
    if (width == 2)
        out->content_size += 256;
    uint64_t base = (uint64_t)1 << (10 + (frame.data[5] >> 3));
    out->window = is_single ? out->content_size : base + base / 8 * (frame.data[5] & 7);
    if (out->window > MAX_WINDOW_BYTES)
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "is compressed with a zstd window of %llu MiB, more than the 128 MiB that "
            "are accepted",
            (unsigned long long)((out->window >> 20) + (out->window % (1u << 20) != 0)));
    out->block_max = out->window < ZSTD_MAX_BLOCK_BYTES ? out->window : ZSTD_MAX_BLOCK_BYTES;
    return PHEMA_OK;
}

const uint8_t *zstd_find_seek_table(size_t *n, size_t *entry_size, struct phema_span file)
{
    if (file.size < ZSTD_SEEK_HEAD_BYTES + ZSTD_SEEK_FOOTER_BYTES)
        return NULL;
    const uint8_t *footer = file.data + file.size - ZSTD_SEEK_FOOTER_BYTES;
    uint8_t descriptor = footer[4];
    *n = phema_load_u32(footer);
    *entry_size = ZSTD_SEEK_ENTRY_BYTES + (descriptor & 0x80 ? ZSTD_SEEK_CHECKSUM_BYTES : 0);
    uint64_t size = ZSTD_SEEK_HEAD_BYTES + (uint64_t)*n * *entry_size + ZSTD_SEEK_FOOTER_BYTES;
    if (phema_load_u32(footer + 5) != ZSTD_SEEK_FOOTER_MAGIC || descriptor & 0x7C ||
        size > file.size)
        return NULL;
    const uint8_t *table = file.data + (file.size - (size_t)size);
    bool is_table = phema_load_u32(table) == ZSTD_SEEK_HEAD_MAGIC &&
                    phema_load_u32(table + 4) == size - ZSTD_SEEK_HEAD_BYTES;
    return is_table ? table + ZSTD_SEEK_HEAD_BYTES : NULL;
}

/* ---- Pages of headers ---- */

/* Chains of headers that are followed at once; least and most bytes that are read of a header. */
enum { MAX_CHAINS = 64, LEAST_BYTES = 4, HEADER_BYTES = 14, PAGE_BYTES = 4096 };

/* The next header in [at, end) of the file: that of a frame, or inside one that of a block. */
struct chain {
    uint64_t at, end;
    bool is_in_table, is_inside, has_checksum;
};

/* Goes on to the next header. false: there is none, or it is damaged. */
static bool step(struct chain *chain, struct phema_span bytes)
{
    struct phema_span rest = {bytes.data + chain->at, (size_t)(chain->end - chain->at)};
    struct zstd_frame_header header = {0};
    struct phema_error ignored;
    uint32_t start = phema_load_u32(rest.data);
    if (chain->is_inside) {
        bool is_last = start & 1, is_repeated = (start >> 1 & 3) == 1;
        chain->at += 3 + (is_repeated ? 1 : (start & 0xFFFFFFu) >> 3);
        chain->at += is_last && chain->has_checksum ? 4 : 0;
        chain->is_inside = !is_last;
    } else if (zstd_is_skippable(start)) {
        if (rest.size < 8)
            return false;
        chain->at += 8 + (uint64_t)phema_load_u32(rest.data + 4);
    } else {
        if (!zstd_is_data(start) || zstd_read_frame_header(&header, rest, chain->at, &ignored))
            return false;
        if (chain->is_in_table && header.has_content_size) /* blocks are not walked over */
            return false;
        chain->at += header.size;
        chain->is_inside = true;
        chain->has_checksum = header.has_checksum;
    }
    return chain->at + LEAST_BYTES <= chain->end;
}

/* Goes on to the next header in another page. */
static bool leave_page(struct chain *chain, struct phema_span bytes)
{
    for (uint64_t page = chain->at / PAGE_BYTES; chain->at / PAGE_BYTES == page;)
        if (!step(chain, bytes))
            return false;
    return true;
}

static void follow_all(const struct phema_file *file, struct chain *chains, size_t n)
{
    while (n) {
        size_t n_left = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t left = chains[i].end - chains[i].at;
            phema_file_prefetch(file, chains[i].at, left < HEADER_BYTES ? left : HEADER_BYTES);
        }
        for (size_t i = 0; i < n; i++)
            if (leave_page(&chains[i], phema_file_span(file)))
                chains[n_left++] = chains[i];
        n = n_left;
    }
}

void zstd_frames_prefetch(const struct phema_file *file)
{
    struct phema_span bytes = phema_file_span(file);
    struct chain chains[MAX_CHAINS] = {{.end = bytes.size}};
    size_t n = 0, n_chains = 0, entry_size = 0;
    if (bytes.size < LEAST_BYTES || (!zstd_is_data(phema_load_u32(bytes.data)) &&
                                     !zstd_is_skippable(phema_load_u32(bytes.data))))
        return;
    const uint8_t *entries = zstd_find_seek_table(&n, &entry_size, bytes);
    if (!entries) {
        follow_all(file, chains, 1);
        return;
    }
    phema_file_prefetch(file, (uint64_t)(entries - bytes.data), (uint64_t)n * entry_size);
    uint64_t at = 0, end = 0;
    for (size_t i = 0; i < n && end <= bytes.size; i++, at = end) {
        end = at + phema_load_u32(entries + i * entry_size);
        if (end <= bytes.size && end - at >= LEAST_BYTES)
            chains[n_chains++] = (struct chain){.at = at, .end = end, .is_in_table = true};
        if (n_chains == MAX_CHAINS) {
            follow_all(file, chains, n_chains);
            n_chains = 0;
        }
    }
    follow_all(file, chains, n_chains);
}
