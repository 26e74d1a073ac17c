// SPDX-License-Identifier: Apache-2.0
/* decoder.c - Random access to decompressed content (libzstd), from a mapped file. frame_index.c
 * has seen all frames before, so that the decoder meets zstd frames only, with accepted windows.
 * libzstd checks sizes and checksums of frames. */
#include "zstd/decoder.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "format.h"

/* Several blocks: libzstd reads one that is there as a whole where it lies, and copies a part. */
#define FEED_BYTES ((size_t)1 << 20)

#define SKIP_BYTES ((size_t)64 << 10)

/* Memory of libzstd for a block of compressed data and its tables: 160 KiB in 1.5. */
#define DECODER_BYTES ((uint64_t)512 << 10)

#define RELEASE_BYTES ((size_t)8 << 20)

/* Bytes of the file that are requested ahead, once as many were read in a row, and at least in one
 * request. A sample decompresses little of each frame. */
#define AHEAD_BYTES   ((size_t)2 << 20)
#define REQUEST_BYTES ((size_t)256 << 10)

/* Places of a file that tell whether it is in the page cache. */
#define MOST_LOOKS ((uint64_t)4)

#define WINDOW_LOG_MAX 27 /* 128 MiB */

struct zstd_content {
    const struct zstd_frames *frames;
    struct phema_span bytes;
    ZSTD_DCtx *decoder;           /* NULL before the first read and after the end */
    uint8_t *skipped;             /* [SKIP_BYTES] with the decoder: content to discard */
    size_t at;                    /* next byte of the file */
    size_t released;              /* pages before are released */
    size_t start;                 /* where it began to read in a row */
    size_t requested;             /* pages before are requested */
    bool is_looked_at, is_cached; /* in the page cache: requests would only take time */
    uint64_t position;            /* next byte of the content */
    /* With an index: the frame of the next byte of content. Skippable and empty frames may lie
     * between at and its first byte. */
    uint64_t frame_offset;   /* in the file */
    uint64_t frame_file_end; /* in the file */
    uint64_t frame_end;      /* end of its content */
    bool is_inside;          /* inside a frame, before its end */
};

enum phema_status zstd_content_open(struct zstd_content **out, const struct zstd_frames *frames,
                                    struct phema_error *err)
{
    struct zstd_content *content = calloc(1, sizeof(*content));
    if (!content)
        return phema_fail_memory(err);
    content->frames = frames;
    content->bytes = phema_file_span(zstd_frames_file(frames));
    *out = content;
    return PHEMA_OK;
}

static void free_decoder(struct zstd_content *content)
{
    (void)ZSTD_freeDCtx(content->decoder);
    free(content->skipped);
    content->decoder = NULL;
    content->skipped = NULL;
}

void zstd_content_close(struct zstd_content *content)
{
    if (!content)
        return;
    free_decoder(content);
    free(content);
}

/* Continues at the start of a frame. */
static void move(struct zstd_content *content, uint64_t file_offset, uint64_t position)
{
    if (content->decoder)
        (void)ZSTD_DCtx_reset(content->decoder, ZSTD_reset_session_only);
    content->at = content->released = (size_t)file_offset;
    content->start = content->requested = (size_t)file_offset;
    content->position = position;
    content->frame_end = position;
    content->is_inside = false;
}

/* After a failure: a decoder that has failed cannot be used again. */
static void start_over(struct zstd_content *content)
{
    free_decoder(content);
    move(content, 0, 0);
}

static enum phema_status need_decoder(struct zstd_content *content, struct phema_error *err)
{
    if (content->decoder)
        return PHEMA_OK;
    content->decoder = ZSTD_createDCtx();
    content->skipped = malloc(SKIP_BYTES);
    if (!content->decoder || !content->skipped ||
        ZSTD_isError(
            ZSTD_DCtx_setParameter(content->decoder, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        free_decoder(content);
        return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

static enum phema_status fail_decoder(const struct zstd_content *content, size_t code,
                                      struct phema_error *err)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "no memory for a zstd decoder with a window of %llu MiB",
                          (unsigned long long)(zstd_frames_window(content->frames) >> 20));
    return phema_fail(err, PHEMA_ERR_FILE,
                      "the zstd data are damaged at offset %zu, after %llu bytes of content: %s",
                      content->at, (unsigned long long)content->position, ZSTD_getErrorName(code));
}

static enum phema_status fail_frame_size(const struct zstd_content *content,
                                         struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE,
                      "the zstd frame before offset %zu holds another size than the seek table "
                      "says; decompress the file with zstd -d",
                      content->at);
}

/* Requests the bytes up to end that are not requested yet. The kernel alone would read ahead of
 * mapped pages one request at a time. */
static void request_until(struct zstd_content *content, size_t end)
{
    const struct phema_file *file = zstd_frames_file(content->frames);
    size_t begin = content->requested > content->at ? content->requested : content->at;
    if (end <= begin)
        return;
    content->requested = end;
    if (!content->is_looked_at)
        content->is_cached = phema_file_is_cached(file, MOST_LOOKS);
    content->is_looked_at = true;
    if (!content->is_cached)
        phema_file_prefetch(file, begin, end - begin);
}

static void request_ahead(struct zstd_content *content)
{
    size_t read = content->at - content->start, ahead = read < AHEAD_BYTES ? read : AHEAD_BYTES;
    size_t left = content->bytes.size - content->at;
    size_t end = content->at + (ahead < left ? ahead : left);
    if (end >= content->requested + REQUEST_BYTES)
        request_until(content, end);
}

/* Decompresses up to size bytes, at most to the end of the frame; *made may be 0. */
static enum phema_status step(size_t *made, struct zstd_content *content, uint8_t *dst, size_t size,
                              struct phema_error *err)
{
    size_t left = content->bytes.size - content->at;
    ZSTD_inBuffer in = {content->bytes.data + content->at, left < FEED_BYTES ? left : FEED_BYTES,
                        0};
    ZSTD_outBuffer out = {dst, size, 0};
    size_t result = ZSTD_decompressStream(content->decoder, &out, &in);
    if (ZSTD_isError(result))
        return fail_decoder(content, result, err);
    content->at += in.pos;
    content->position += out.pos;
    content->is_inside = result != 0;
    *made = out.pos;
    request_ahead(content);
    if (content->at - content->released >= RELEASE_BYTES) {
        phema_file_evict(zstd_frames_file(content->frames), content->released,
                         content->at - content->released);
        content->released = content->at;
    }
    if (in.pos == 0 && out.pos == 0) { /* the frame holds more, or its end is missing */
        if (content->at < content->bytes.size)
            return fail_frame_size(content, err);
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the content ends too early, after %llu bytes; the file is cut short "
                          "or damaged",
                          (unsigned long long)content->position);
    }
    return PHEMA_OK;
}

/* With an index: after the content of a frame only its checksum remains. */
static enum phema_status end_frame(struct zstd_content *content, struct phema_error *err)
{
    while (content->is_inside) {
        size_t made = 0;
        enum phema_status status = step(&made, content, content->skipped, 0, err);
        if (status)
            return status;
    }
    if (content->at != content->frame_file_end)
        return fail_frame_size(content, err);
    if (content->position == zstd_frames_content_size(content->frames))
        free_decoder(content);
    return PHEMA_OK;
}

/* Reads the next size bytes into dst; NULL discards them. */
static enum phema_status advance(struct zstd_content *content, uint64_t size, uint8_t *dst,
                                 struct phema_error *err)
{
    bool has_index = zstd_frames_has_index(content->frames);
    while (size) {
        enum phema_status status = need_decoder(content, err);
        if (status)
            return status;
        if (has_index && content->position == content->frame_end) { /* on to the next frame */
            struct zstd_place place = zstd_frames_find(content->frames, content->position);
            content->frame_offset = place.file_offset;
            content->frame_file_end = place.file_end;
            content->frame_end = place.end;
        }
        uint64_t wanted = size;
        if (has_index && wanted > content->frame_end - content->position)
            wanted = content->frame_end - content->position;
        if (!dst && wanted > SKIP_BYTES)
            wanted = SKIP_BYTES;
        size_t made = 0;
        status = step(&made, content, dst ? dst : content->skipped, (size_t)wanted, err);
        if (status)
            return status;
        if (has_index && content->position == content->frame_end)
            status = end_frame(content, err);
        else if (has_index && !content->is_inside &&
                 content->at > content->frame_offset) /* the content ended too early */
            status = fail_frame_size(content, err);
        if (status)
            return status;
        size -= made;
        dst = dst ? dst + made : NULL;
    }
    return PHEMA_OK;
}

enum phema_status zstd_content_read(struct zstd_content *content, uint64_t offset, size_t size,
                                    void *dst, struct phema_error *err)
{
    if (size == 0)
        return PHEMA_OK;
    bool is_back = offset < content->position;
    uint64_t content_size = zstd_frames_content_size(content->frames);
    if (zstd_frames_has_index(content->frames) &&
        (offset > content_size || size > content_size - offset)) /* as the header is read */
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the content ends too early, after %llu bytes; the file is cut short or "
                          "damaged",
                          (unsigned long long)content_size);
    if (zstd_frames_has_index(content->frames)) {
        struct zstd_place place = zstd_frames_find(content->frames, offset);
        if (is_back || place.first > content->position)
            move(content, place.file_offset, place.first);
        request_until(content, (size_t)zstd_frames_estimate(content->frames, offset + size - 1));
    } else if (is_back) {
        move(content, 0, 0);
    }
    enum phema_status status = advance(content, offset - content->position, NULL, err);
    if (!status)
        status = advance(content, size, dst, err);
    if (status)
        start_over(content);
    return status;
}

/* Without an index: only ends of frames may follow the last tensor. */
static enum phema_status finish_file(struct zstd_content *content, struct phema_error *err)
{
    uint64_t content_size = zstd_frames_content_size(content->frames);
    enum phema_status status = advance(content, content_size - content->position, NULL, err);
    if (status)
        return status;
    while (content->at < content->bytes.size || content->is_inside) {
        size_t made = 0;
        status = need_decoder(content, err);
        if (status)
            return status;
        status = step(&made, content, content->skipped, SKIP_BYTES, err);
        if (status)
            return status;
        if (made)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "the content continues behind the last tensor, which ends after %llu "
                              "bytes; the file is damaged",
                              (unsigned long long)content_size);
    }
    return PHEMA_OK;
}

enum phema_status zstd_content_finish(struct zstd_content *content, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (!zstd_frames_has_index(content->frames))
        status = finish_file(content, err);
    else if (content->is_inside)
        status = advance(content, content->frame_end - content->position, NULL, err);
    if (status)
        start_over(content);
    else
        free_decoder(content);
    return status;
}

uint64_t zstd_content_memory_bytes(const struct zstd_frames *frames)
{
    return zstd_frames_history_bytes(frames) + DECODER_BYTES + SKIP_BYTES;
}
