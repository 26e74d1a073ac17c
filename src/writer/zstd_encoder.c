// SPDX-License-Identifier: Apache-2.0
/* zstd_encoder.c - a finished file as seekable zstd: independent frames, compressed by several
 * threads and placed in order, then the seek table. The content alone determines the frames, so the
 * bytes are the same for any number of threads. */
#include "phema/writer.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* estimates of memory */
#include <zstd.h>
#include <zstd_errors.h>

#include "phema/parallel.h"
#include "phema/strbuf.h"

/* A reader of one tensor decompresses no more than this before it. Larger frames compress hardly
 * better, since windows of the usual levels are smaller. */
#define FRAME_BYTES ((uint64_t)4 << 20)

#define SEEK_TABLE_MAGIC  0x184D2A5Eu
#define SEEK_FOOTER_MAGIC 0x8F92EAB1u
#define SEEK_HEAD_BYTES   8u /* magic number and size: written last */
#define SEEK_ENTRY_BYTES  8u
#define SEEK_FOOTER_BYTES 9u

/* The seekable format's own limit. */
#define MAX_FRAMES 0x8000000u

/* Shared by the threads, which hold the lock to change it. */
struct compression {
    struct phema_writer *writer;
    struct phema_writer *plain;
    uint64_t content_size;
    const uint64_t *ends;
    size_t n_ends;
    int level;
    _Atomic uint64_t *done_bytes; /* NULL: not counted */

    pthread_mutex_t lock;
    pthread_cond_t turn_changed;
    uint64_t at;        /* content up to here is claimed */
    size_t next_end;    /* of ends, the first after at */
    bool is_claimed;    /* all content; of an empty content one frame */
    size_t n_frames;    /* claimed */
    size_t turn;        /* the frame to be placed next */
    uint64_t file_size; /* placed */
    struct phema_strbuf table;
    enum phema_status status;
    struct phema_error *err;
};

struct frame {
    uint64_t start; /* of its content */
    size_t size;    /* of its content, at most FRAME_BYTES */
    size_t number;
};

/* Of one thread. */
struct compressor {
    ZSTD_CCtx *context; /* NULL until the first frame */
    uint8_t *content;   /* [FRAME_BYTES] of one frame */
    uint8_t *compressed;
    size_t capacity; /* of compressed */
};

static void append_u32(struct phema_strbuf *out, uint64_t value)
{
    uint8_t bytes[8];
    phema_store_u64(bytes, value);
    phema_strbuf_append(out, (const char *)bytes, 4);
}

/* The end of the frame that begins at `at`: the last of the ends within FRAME_BYTES, or FRAME_BYTES
 * into a tensor that is larger. */
static uint64_t choose_end(struct compression *all)
{
    uint64_t reach =
        all->content_size - all->at < FRAME_BYTES ? all->content_size : all->at + FRAME_BYTES;
    uint64_t end = 0;
    for (; all->next_end < all->n_ends && all->ends[all->next_end] <= reach; all->next_end++)
        end = all->ends[all->next_end];
    return end > all->at ? end : reach;
}

/* The next frame; false when all are claimed, or another thread has failed. */
static bool claim_frame(struct frame *frame, struct compression *all)
{
    (void)pthread_mutex_lock(&all->lock);
    bool is_claimed = !all->status && !all->is_claimed;
    if (is_claimed) {
        uint64_t end = choose_end(all);
        *frame = (struct frame){all->at, (size_t)(end - all->at), all->n_frames++};
        all->at = end;
        all->is_claimed = end == all->content_size;
    }
    (void)pthread_mutex_unlock(&all->lock);
    return is_claimed;
}

/* Waits for the turn of the frame and finds its offset; false when another thread has failed. */
static bool place_frame(uint64_t *offset, struct compression *all, const struct frame *frame,
                        size_t compressed_size)
{
    (void)pthread_mutex_lock(&all->lock);
    while (!all->status && all->turn != frame->number)
        (void)pthread_cond_wait(&all->turn_changed, &all->lock);
    bool is_placed = !all->status;
    if (is_placed) {
        *offset = all->file_size;
        all->file_size += compressed_size;
        append_u32(&all->table, compressed_size);
        append_u32(&all->table, frame->size);
        all->turn++;
    }
    (void)pthread_cond_broadcast(&all->turn_changed);
    (void)pthread_mutex_unlock(&all->lock);
    return is_placed;
}

/* Keeps the first failure and wakes the threads that wait. */
static void stop(struct compression *all, enum phema_status status, const struct phema_error *err)
{
    (void)pthread_mutex_lock(&all->lock);
    if (!all->status) {
        all->status = status;
        *all->err = *err;
    }
    (void)pthread_cond_broadcast(&all->turn_changed);
    (void)pthread_mutex_unlock(&all->lock);
}

static enum phema_status init_compressor(struct compressor *own, const struct compression *all,
                                         struct phema_error *err)
{
    own->capacity = ZSTD_compressBound((size_t)FRAME_BYTES);
    own->content = malloc((size_t)FRAME_BYTES);
    own->compressed = malloc(own->capacity);
    own->context = ZSTD_createCCtx();
    if (!own->content || !own->compressed || !own->context ||
        ZSTD_isError(ZSTD_CCtx_setParameter(own->context, ZSTD_c_compressionLevel, all->level)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(own->context, ZSTD_c_checksumFlag, 1)))
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: no memory for a zstd compressor",
                          phema_writer_path(all->writer));
    return PHEMA_OK;
}

static enum phema_status write_frame(struct compressor *own, struct compression *all,
                                     const struct frame *frame, struct phema_error *err)
{
    enum phema_status status =
        phema_writer_read(all->plain, frame->start, own->content, frame->size, err);
    if (status)
        return status;
    size_t size =
        ZSTD_compress2(own->context, own->compressed, own->capacity, own->content, frame->size);
    if (ZSTD_isError(size)) /* the capacity suffices for any content: lack of memory remains */
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: zstd at level %d: %s",
                          phema_writer_path(all->writer), all->level, ZSTD_getErrorName(size));
    uint64_t offset = 0;
    if (!place_frame(&offset, all, frame, size))
        return PHEMA_OK;
    return phema_writer_write(all->writer, offset, own->compressed, size, err);
}

/* Compresses frames until all are claimed; then further calls do nothing. */
static void compress_frames(void *context, size_t index)
{
    (void)index;
    struct compression *all = context;
    struct compressor own = {0};
    struct frame frame;
    struct phema_error err = {""};
    enum phema_status status = PHEMA_OK;
    while (!status && claim_frame(&frame, all)) {
        status = own.context ? PHEMA_OK : init_compressor(&own, all, &err);
        if (!status)
            status = write_frame(&own, all, &frame, &err);
        if (!status && all->done_bytes)
            atomic_fetch_add(all->done_bytes, frame.size);
    }
    if (status)
        stop(all, status, &err);
    (void)ZSTD_freeCCtx(own.context);
    free(own.content);
    free(own.compressed);
}

/* As zstd's contrib/seekable_format has it; without checksums, which the frames have. */
static enum phema_status write_table(struct compression *all, struct phema_error *err)
{
    struct phema_strbuf *table = &all->table;
    append_u32(table, all->n_frames);
    phema_strbuf_append(table, "", 1); /* the descriptor: no checksums */
    append_u32(table, SEEK_FOOTER_MAGIC);
    enum phema_status status = phema_strbuf_check(table, err);
    if (status)
        return status;
    uint64_t size = all->n_frames * SEEK_ENTRY_BYTES + SEEK_FOOTER_BYTES;
    phema_store_u64((uint8_t *)table->data, SEEK_TABLE_MAGIC | size << 32);
    status = phema_writer_write(all->writer, all->file_size, table->data, table->size, err);
    all->file_size += table->size;
    return status;
}

PHEMA_FALLIBLE phema_writer_write_zstd(uint64_t *size_bytes, struct phema_writer *writer,
                                       struct phema_writer *plain, uint64_t content_size,
                                       const uint64_t *ends, size_t n_ends, int level,
                                       unsigned n_threads, _Atomic uint64_t *done_bytes,
                                       struct phema_error *err)
{
    for (size_t i = 0; i < n_ends; i++)
        assert(ends[i] <= content_size && (i == 0 || ends[i - 1] <= ends[i]));
    /* two neighbouring frames hold more than FRAME_BYTES together, else they would be one */
    if (content_size / FRAME_BYTES >= MAX_FRAMES / 2 - 1)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: too large for a seekable zstd file; write it uncompressed",
                          phema_writer_path(writer));
    struct compression all = {.writer = writer,
                              .plain = plain,
                              .content_size = content_size,
                              .ends = ends,
                              .n_ends = n_ends,
                              .level = level,
                              .done_bytes = done_bytes,
                              .err = err};
    phema_strbuf_append(&all.table, (const char[SEEK_HEAD_BYTES]){0}, SEEK_HEAD_BYTES);
    (void)pthread_mutex_init(&all.lock, NULL);
    (void)pthread_cond_init(&all.turn_changed, NULL);
    /* more threads than frames have nothing to do */
    phema_parallel((size_t)(content_size / FRAME_BYTES) + 1, n_threads, compress_frames, &all);
    enum phema_status status = all.status ? all.status : write_table(&all, err);
    if (!status)
        *size_bytes = all.file_size;
    phema_strbuf_clear(&all.table);
    (void)pthread_cond_destroy(&all.turn_changed);
    (void)pthread_mutex_destroy(&all.lock);
    return status;
}

uint64_t phema_writer_zstd_bytes(uint64_t *n_frames, int level, uint64_t content_size)
{
    uint64_t frame = content_size < FRAME_BYTES ? content_size : FRAME_BYTES;
    *n_frames = (content_size + FRAME_BYTES - 1) / FRAME_BYTES;
    ZSTD_compressionParameters parameters = ZSTD_getCParams(level, frame, 0);
    return frame + ZSTD_compressBound(frame) + ZSTD_estimateCCtxSize_usingCParams(parameters);
}

PHEMA_FALLIBLE phema_writer_try_zstd(int level, const void *data, size_t size,
                                     struct phema_error *err)
{
    size_t capacity = ZSTD_compressBound(size);
    void *frame = malloc(capacity);
    size_t result = frame ? ZSTD_compress(frame, capacity, data, size, level) : 0;
    free(frame);
    return result == 0 || ZSTD_isError(result) ? phema_fail_memory(err) : PHEMA_OK;
}
