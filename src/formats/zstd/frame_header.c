// SPDX-License-Identifier: Apache-2.0
/* frame_header.c - Headers of zstd's frames (RFC 8878) and the table at the end of a file in zstd's
 * seekable format. */
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
    return phema_load_u32(table) == ZSTD_SEEK_HEAD_MAGIC ? table + ZSTD_SEEK_HEAD_BYTES : NULL;
}
