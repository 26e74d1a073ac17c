/* frame_header.h - What a zstd file says of its frames: their headers and its seek table, not yet
 * compared with anything. Nothing is read beyond the given bytes. */
#ifndef FORMATS_ZSTD_FRAME_HEADER_H
#define FORMATS_ZSTD_FRAME_HEADER_H

#include "phema/error.h"
#include "phema/mapped_file.h"

#define ZSTD_MAX_BLOCK_BYTES ((uint64_t)128 << 10)

struct zstd_frame_header {
    size_t size;
    uint64_t window, block_max;
    uint64_t content_size;
    bool has_content_size, has_checksum;
};

/* Whether a frame with this magic number holds data, or is to be skipped: 4 bytes of size and as
 * many bytes follow. */
bool zstd_is_data(uint32_t magic);
bool zstd_is_skippable(uint32_t magic);

/* frame: from the first byte of a frame with data to the end of the file, `at` in the file.
 * PHEMA_ERR_FILE: truncated, a reserved bit, a dictionary, a window above 128 MiB */
PHEMA_FALLIBLE zstd_read_frame_header(struct zstd_frame_header *out, struct phema_span frame,
                                      uint64_t at, struct phema_error *err);
enum phema_status zstd_fail_short_frame(uint64_t at, struct phema_error *err);

/* The n entries of the seek table at the end of a file, 4 bytes of a frame's size and 4 of its
 * content's each, and more up to entry_size; NULL: there is none. */
const uint8_t *zstd_find_seek_table(size_t *n, size_t *entry_size, struct phema_span file);

/* Reads the pages that zstd_frames_new looks at, those of many frames at once where a seek table
 * says where frames begin. Does nothing for a file that is not zstd. */
void zstd_frames_prefetch(const struct phema_file *file);

#endif
