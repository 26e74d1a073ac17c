/* zstd_encoder.h - private to writer/: some frames of a seekable zstd file, for one part of it, or
 * all of them, of which parts have compressed some. */
#ifndef WRITER_ZSTD_ENCODER_H
#define WRITER_ZSTD_ENCODER_H

#include "phema/writer.h"

/* The content of a frame, at most: a reader of one tensor decompresses no more than this before it.
 * Larger frames compress hardly better, since windows of the usual levels are smaller. */
#define ZSTD_FRAME_BYTES ((uint64_t)4 << 20)

/* The file that a thread has read compressed frames from last. */
struct zstd_source {
    int descriptor; /* or -1 */
    size_t number;  /* of the part */
};

struct zstd_job;

/* Reads a frame that is compressed already.
 *   size        out: 0 where the frame must be compressed
 *   compressed  [zstd_frame_capacity] out */
typedef enum phema_status zstd_read_ready(size_t *size, uint8_t *compressed,
                                          struct zstd_source *source, const struct zstd_job *job,
                                          size_t number, struct phema_error *err);

struct zstd_job {
    struct phema_writer *writer, *plain;
    const struct phema_writer_frames *frames;
    const bool *is_wanted;       /* [frames->n]; NULL: all */
    uint64_t *sizes;             /* [frames->n] out: compressed, of the wanted frames */
    zstd_read_ready *read_ready; /* NULL: none */
    void *context;               /* of read_ready */
    _Atomic uint64_t *hash;      /* of the frames and their places in the file; NULL: unwanted */
    unsigned n_threads;
    _Atomic uint64_t *done_bytes; /* NULL: not counted */
};

/* Writes the wanted frames one after the other, without a seek table. */
PHEMA_FALLIBLE zstd_write_frames(uint64_t *size_bytes, const struct zstd_job *job,
                                 struct phema_error *err);

/* Writes all frames and the seek table. */
PHEMA_FALLIBLE zstd_write_file(uint64_t *size_bytes, const struct zstd_job *job,
                               struct phema_error *err);

/* Reads what zstd_write_file has written, and compares its content with the plain file.
 * PHEMA_ERR_OUTPUT  they differ */
PHEMA_FALLIBLE zstd_check_frames(const struct zstd_job *job, struct phema_error *err);

/* Most bytes of a compressed frame. */
size_t zstd_frame_capacity(const struct phema_writer_frames *frames, size_t number);

#endif
