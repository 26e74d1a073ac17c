/* decoder.h - the decompressed content of a zstd file, to be read at any offset by one thread.
 * Forward is cheap; what lies between is decompressed and dropped. Backward goes to the frame that
 * the index knows, and without one to the beginning of the file. The decoder exists from the first
 * read to the end of the content. */
#ifndef FORMATS_ZSTD_DECODER_H
#define FORMATS_ZSTD_DECODER_H

#include "zstd/frame_index.h"

struct zstd_content;

/* The frames, settled or not, are borrowed until close. */
PHEMA_FALLIBLE zstd_content_open(struct zstd_content **out, const struct zstd_frames *frames,
                                 struct phema_error *err);
void zstd_content_close(struct zstd_content *content); /* takes NULL */

/* PHEMA_ERR_FILE      the data are corrupt, a checksum is wrong, or they end before offset + size
 * PHEMA_ERR_RESOURCE  no memory for a decoder */
PHEMA_FALLIBLE zstd_content_read(struct zstd_content *content, uint64_t offset, size_t size,
                                 void *dst, struct phema_error *err);

/* Once frames are settled. With an index the frame that is being read is decompressed to its end,
 * for its size and checksum; without one all that is left of the file, and content that goes on
 * behind the last tensor is PHEMA_ERR_FILE. */
PHEMA_FALLIBLE zstd_content_finish(struct zstd_content *content, struct phema_error *err);

/* What reading takes at most: a decoder with its window and buffers. */
uint64_t zstd_content_memory_bytes(const struct zstd_frames *frames);

#endif
