/* frame_index.h - The frames of a zstd file, without decompressing them. A walk from block to block
 * refuses a file at once that is not zstd, needs too much memory, or cannot hold the content it
 * claims. A seek table that agrees with the headers of all frames spares the walk. Where the size of every frame is known, there is an index, and reading can start at any
 * frame. Constant once settled, and then safe for any number of threads. */
#ifndef FORMATS_ZSTD_FRAME_INDEX_H
#define FORMATS_ZSTD_FRAME_INDEX_H

#include "phema/error.h"
#include "phema/mapped_file.h"

struct zstd_frames;

/* The file is borrowed until free. Messages do not name it.
 * PHEMA_ERR_FILE      not only frames, truncated, a dictionary, a window above 128 MiB
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE zstd_frames_new(struct zstd_frames **out, const struct phema_file *file,
                               struct phema_error *err);
void zstd_frames_free(struct zstd_frames *frames); /* takes NULL */

/* Called once the length of the content is known: builds the index where sizes are known.
 * PHEMA_ERR_FILE      the frames cannot hold that much, or hold more
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE zstd_frames_settle(struct zstd_frames *frames, uint64_t content_size,
                                  struct phema_error *err);

const struct phema_file *zstd_frames_file(const struct zstd_frames *frames);
uint64_t zstd_frames_content_size(const struct zstd_frames *frames); /* once settled */
/* Before it is settled: by a seek table alone. */
bool zstd_frames_has_index(const struct zstd_frames *frames);
/* True with an index of frames so small that backward reads are cheap. */
bool zstd_frames_can_seek(const struct zstd_frames *frames);

/* The largest window of a frame, and the most content that a decoder keeps: the window and a block,
 * or the whole content of a smaller frame. */
uint64_t zstd_frames_window(const struct zstd_frames *frames);
uint64_t zstd_frames_history_bytes(const struct zstd_frames *frames);

/* The frame that holds a byte of content. */
struct zstd_place {
    uint64_t file_offset, file_end; /* the frame in the file */
    uint64_t first, end;            /* its content [first, end) */
};

/* For offset < content size, with an index. */
struct zstd_place zstd_frames_find(const struct zstd_frames *frames, uint64_t offset);
/* About how far the file is read for the byte, if its frame is compressed evenly: a block is read
 * whole. */
uint64_t zstd_frames_estimate(const struct zstd_frames *frames, uint64_t offset);

#endif
