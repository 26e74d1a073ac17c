/* decoder.h - The decompressed content of a zstd file, read at any offset by one thread. Forward
 * reads are cheap: content in between is decompressed and discarded. Backward reads start at a
 * frame of the index, or without index at the beginning of the file. The decoder exists from the
 * first read to the end of the content. */
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

/* Once frames are settled. With an index, decompresses the current frame to its end, to check size
 * and checksum. Without an index, decompresses the rest of the file; content after the last tensor
 * is PHEMA_ERR_FILE. */
PHEMA_FALLIBLE zstd_content_finish(struct zstd_content *content, struct phema_error *err);

/* Memory of one reader at most: a decoder with its window and buffers [bytes]. */
uint64_t zstd_content_memory_bytes(const struct zstd_frames *frames);

#endif
