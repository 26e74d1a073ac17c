// SPDX-License-Identifier: Apache-2.0
/* zstd_encoder.c - a finished content as a seekable zstd file: independent frames, compressed by
 * several threads and placed in order, then the seek table. What is in a frame depends on the
 * content alone, so the bytes are the same for any number of threads. */
#include "phema/writer.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* estimates of memory */
#include <zstd.h>
#include <zstd_errors.h>

#include "phema/parallel.h"
#include "phema/strbuf.h"

/* A reader that wants one tensor decompresses no more than this before it; larger frames compress
 * hardly better, since windows of the usual levels are smaller. */
#define FRAME_BYTES ((uint64_t)4 << 20)

#define SEEK_TABLE_MAGIC  0x184D2A5Eu
#define SEEK_FOOTER_MAGIC 0x8F92EAB1u
#define SEEK_ENTRY_BYTES  8u
#define SEEK_FOOTER_BYTES 9u

/* The seekable format's own limit. */
#define MAX_FRAMES 0x8000000u

#define MAX_THREADS 1024u

/* Shared by the threads, and changed with the lock held. */
struct compression {
    struct phema_writer *writer;
    struct phema_writer *plain;
    uint64_t content_size;
    const uint64_t *ends;
    size_t n_ends;
    int level;

    pthread_mutex_t lock;
    pthread_cond_t turn_changed;
    uint64_t at;        /* content that was given out */
    size_t next_end;    /* of ends, the first behind at */
    bool is_given_out;  /* all of it, and an empty content once */
    size_t n_frames;    /* given out */
    size_t turn;        /* frame to be placed next */
    uint64_t file_size; /* placed */
    struct phema_strbuf table;
    enum phema_status status;
    struct phema_error *err;
};

/* What a thread owns. */
struct compressor {
    ZSTD_CCtx *context;
    uint8_t *part; /* of the content, at most FRAME_BYTES */
    uint8_t *frame;
    size_t capacity;
};

static void put_u32(struct phema_strbuf *out, uint64_t value)
{
    char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(uint8_t)(value >> (8 * i));
    phema_strbuf_append(out, bytes, sizeof(bytes));
}

/* Where the frame that begins at `at` ends: at the last of the ends within reach, or as far as it
 * reaches into a tensor that is larger. */
static uint64_t choose_end(struct compression *all)
{
    uint64_t reach =
        all->content_size - all->at < FRAME_BYTES ? all->content_size : all->at + FRAME_BYTES;
    uint64_t end = 0;
    for (; all->next_end < all->n_ends && all->ends[all->next_end] <= reach; all->next_end++)
        end = all->ends[all->next_end];
    return end > all->at ? end : reach;
}

/* The next part of the content; false when there is none, or something failed. */
static bool take(struct compression *all, uint64_t *start, size_t *size, size_t *number)
{
    (void)pthread_mutex_lock(&all->lock);
    bool is_taken = !all->status && !all->is_given_out;
    if (is_taken) {
        uint64_t end = choose_end(all);
        *start = all->at;
        *size = (size_t)(end - all->at);
        *number = all->n_frames++;
        all->at = end;
        all->is_given_out = end == all->content_size;
    }
    (void)pthread_mutex_unlock(&all->lock);
    return is_taken;
}

/* Waits for its turn and gives a finished frame its place; false when something failed. */
static bool place(uint64_t *offset, struct compression *all, size_t number, size_t frame_size,
                  size_t content_size)
{
    (void)pthread_mutex_lock(&all->lock);
    while (!all->status && all->turn != number)
        (void)pthread_cond_wait(&all->turn_changed, &all->lock);
    bool is_placed = !all->status;
    if (is_placed) {
        *offset = all->file_size;
        all->file_size += frame_size;
        put_u32(&all->table, frame_size);
        put_u32(&all->table, content_size);
        all->turn++;
    }
    (void)pthread_cond_broadcast(&all->turn_changed);
    (void)pthread_mutex_unlock(&all->lock);
    return is_placed;
}

/* The first failure stays. */
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

static enum phema_status compress(size_t *out, struct compressor *own, struct compression *all,
                                  uint64_t start, size_t size, struct phema_error *err)
{
    enum phema_status status = phema_writer_read(all->plain, start, own->part, size, err);
    if (status)
        return status;
    size_t result = ZSTD_compress2(own->context, own->frame, own->capacity, own->part, size);
    if (ZSTD_isError(result)) /* the room is enough for anything: what is left is memory */
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: zstd at level %d: %s",
                          phema_writer_path(all->writer), all->level, ZSTD_getErrorName(result));
    *out = result;
    return PHEMA_OK;
}

static enum phema_status init_compressor(struct compressor *own, const struct compression *all,
                                         struct phema_error *err)
{
    own->capacity = ZSTD_compressBound((size_t)FRAME_BYTES);
    own->part = malloc((size_t)FRAME_BYTES);
    own->frame = malloc(own->capacity);
    own->context = ZSTD_createCCtx();
    if (!own->part || !own->frame || !own->context ||
        ZSTD_isError(ZSTD_CCtx_setParameter(own->context, ZSTD_c_compressionLevel, all->level)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(own->context, ZSTD_c_checksumFlag, 1)))
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: no memory for a zstd compressor",
                          phema_writer_path(all->writer));
    return PHEMA_OK;
}

static void *work(void *argument)
{
    struct compression *all = argument;
    struct compressor own = {0};
    struct phema_error err = {""};
    enum phema_status status = init_compressor(&own, all, &err);
    uint64_t start = 0;
    size_t size = 0, number = 0;
    while (!status && take(all, &start, &size, &number)) {
        size_t frame_size = 0;
        uint64_t offset = 0;
        status = compress(&frame_size, &own, all, start, size, &err);
        if (!status && !place(&offset, all, number, frame_size, size))
            break;
        if (!status)
            status = phema_writer_put(all->writer, offset, own.frame, frame_size, &err);
    }
    if (status)
        stop(all, status, &err);
    (void)ZSTD_freeCCtx(own.context);
    free(own.part);
    free(own.frame);
    return NULL;
}

/* The caller's thread works too, and does all of it where no other can be had. */
static void work_together(struct compression *all, unsigned n_threads)
{
    uint64_t n_parts = all->content_size / FRAME_BYTES + 1;
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;
    if (n_threads > n_parts)
        n_threads = (unsigned)n_parts;
    pthread_t *threads = n_threads > 1 ? calloc(n_threads - 1, sizeof(*threads)) : NULL;
    unsigned n_started = 0;
    while (threads && n_started + 1 < n_threads &&
           phema_thread_start(&threads[n_started], work, all) == 0)
        n_started++;
    (void)work(all);
    for (unsigned i = 0; i < n_started; i++)
        (void)pthread_join(threads[i], NULL);
    free(threads);
}

/* As zstd's contrib/seekable_format has it; without checksums, which the frames have. */
static enum phema_status put_table(struct compression *all, struct phema_error *err)
{
    struct phema_strbuf head = {0};
    put_u32(&head, SEEK_TABLE_MAGIC);
    put_u32(&head, all->n_frames * SEEK_ENTRY_BYTES + SEEK_FOOTER_BYTES);
    put_u32(&all->table, all->n_frames);
    phema_strbuf_append(&all->table, "", 1); /* the descriptor: no checksums */
    put_u32(&all->table, SEEK_FOOTER_MAGIC);
    enum phema_status status = phema_strbuf_check(&all->table, err);
    if (!status)
        status = phema_strbuf_check(&head, err);
    if (!status)
        status = phema_writer_put(all->writer, all->file_size, head.data, head.size, err);
    if (!status)
        status = phema_writer_put(all->writer, all->file_size + head.size, all->table.data,
                                  all->table.size, err);
    all->file_size += head.size + all->table.size;
    phema_strbuf_clear(&head);
    return status;
}

PHEMA_FALLIBLE phema_writer_put_zstd(uint64_t *size_bytes, struct phema_writer *writer,
                                     struct phema_writer *plain, uint64_t content_size,
                                     const uint64_t *ends, size_t n_ends, int level,
                                     unsigned n_threads, struct phema_error *err)
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
                              .err = err};
    (void)pthread_mutex_init(&all.lock, NULL);
    (void)pthread_cond_init(&all.turn_changed, NULL);
    work_together(&all, n_threads);
    enum phema_status status = all.status;
    if (!status)
        status = put_table(&all, err);
    if (!status)
        *size_bytes = all.file_size;
    phema_strbuf_clear(&all.table);
    (void)pthread_cond_destroy(&all.turn_changed);
    (void)pthread_mutex_destroy(&all.lock);
    return status;
}

uint64_t phema_writer_zstd_bytes(uint64_t *n_frames, int level, uint64_t content_size)
{
    uint64_t part = content_size < FRAME_BYTES ? content_size : FRAME_BYTES;
    *n_frames = (content_size + FRAME_BYTES - 1) / FRAME_BYTES;
    ZSTD_compressionParameters parameters = ZSTD_getCParams(level, part, 0);
    return part + ZSTD_compressBound(part) + ZSTD_estimateCCtxSize_usingCParams(parameters);
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
