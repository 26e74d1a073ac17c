// SPDX-License-Identifier: Apache-2.0
/* zstd_encoder.c - a finished file as seekable zstd: independent frames, compressed by several
 * threads and placed in order, then the seek table. The content alone determines the frames, so the
 * bytes are the same for any number of threads and processes. */
#include "zstd_encoder.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define ZSTD_STATIC_LINKING_ONLY /* estimates of memory */
#include <zstd.h>
#include <zstd_errors.h>

#include "phema/array.h"
#include "phema/parallel.h"
#include "phema/strbuf.h"
#include "phema/zstd_seek_table.h"
#include "writer_internal.h"

/* The seekable format's own limit. */
#define MAX_FRAMES 0x8000000u

/* ---- Cutting ---- */

/* A frame ends with the last tensor that ends within ZSTD_FRAME_BYTES, or ZSTD_FRAME_BYTES into a
 * tensor that is larger. */
PHEMA_FALLIBLE phema_writer_cut_frames(struct phema_writer_frames *out, uint64_t content_size,
                                       const uint64_t *tensor_ends, size_t n_tensor_ends, int level,
                                       struct phema_error *err)
{
    struct phema_writer_frames frames = {.level = level, .library = ZSTD_versionNumber()};
    size_t capacity = 0, next = 0;
    uint64_t at = 0;
    for (size_t i = 0; i < n_tensor_ends; i++)
        assert(tensor_ends[i] <= content_size && (i == 0 || tensor_ends[i - 1] <= tensor_ends[i]));
    /* two neighbouring frames hold more than ZSTD_FRAME_BYTES together, else they would be one */
    if (content_size / ZSTD_FRAME_BYTES >= MAX_FRAMES / 2 - 1)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "too large for a seekable zstd file; write it uncompressed");
    do { /* an empty content has one frame */
        if (!phema_array_grow(&frames.ends, &capacity, frames.n, sizeof(*frames.ends))) {
            free(frames.ends);
            return phema_fail_memory(err);
        }
        bool is_last = content_size - at < ZSTD_FRAME_BYTES;
        uint64_t reach = is_last ? content_size : at + ZSTD_FRAME_BYTES, end = 0;
        for (; next < n_tensor_ends && tensor_ends[next] <= reach; next++)
            end = tensor_ends[next];
        at = end > at ? end : reach;
        frames.ends[frames.n++] = at;
    } while (at < content_size);
    *out = frames;
    return PHEMA_OK;
}

size_t zstd_frame_capacity(const struct phema_writer_frames *frames, size_t number)
{
    uint64_t start = number ? frames->ends[number - 1] : 0;
    return ZSTD_compressBound((size_t)(frames->ends[number] - start));
}

/* ---- Frames ---- */

/* Shared by the threads, which hold the lock to change it. */
struct compression {
    const struct zstd_job *job;

    pthread_mutex_t lock;
    pthread_cond_t turn_changed;
    size_t n_claimed;   /* frames */
    size_t turn;        /* the frame to be placed next */
    uint64_t file_size; /* placed */
    enum phema_status status;
    struct phema_error *err;
};

struct frame {
    uint64_t start; /* of its content */
    size_t size;    /* of its content, at most ZSTD_FRAME_BYTES */
    size_t number;
};

/* Of one thread. */
struct compressor {
    ZSTD_CCtx *context;
    uint8_t *content; /* [ZSTD_FRAME_BYTES] of one frame */
    uint8_t *compressed;
    size_t capacity; /* of compressed */
    struct zstd_source source;
};

static struct frame frame_of(const struct zstd_job *job, size_t number)
{
    uint64_t start = number ? job->frames->ends[number - 1] : 0;
    return (struct frame){start, (size_t)(job->frames->ends[number] - start), number};
}

/* The first wanted frame from this one on. */
static size_t skip_unwanted(const struct zstd_job *job, size_t number)
{
    while (number < job->frames->n && job->is_wanted && !job->is_wanted[number])
        number++;
    return number;
}

/* The next frame; false when all are claimed, or another thread has failed. */
static bool claim_frame(struct frame *frame, struct compression *all)
{
    const struct zstd_job *job = all->job;
    (void)pthread_mutex_lock(&all->lock);
    size_t number = skip_unwanted(job, all->n_claimed);
    bool is_claimed = !all->status && number < job->frames->n;
    if (is_claimed) {
        *frame = frame_of(job, number);
        all->n_claimed = number + 1;
    }
    (void)pthread_mutex_unlock(&all->lock);
    return is_claimed;
}

/* Waits for the turn of the frame and finds its offset; false when another thread has failed. */
static bool place_frame(uint64_t *offset, struct compression *all, const struct frame *frame,
                        size_t compressed_size)
{
    const struct zstd_job *job = all->job;
    (void)pthread_mutex_lock(&all->lock);
    while (!all->status && all->turn != frame->number)
        (void)pthread_cond_wait(&all->turn_changed, &all->lock);
    bool is_placed = !all->status;
    if (is_placed) {
        *offset = all->file_size;
        all->file_size += compressed_size;
        job->sizes[frame->number] = compressed_size;
        all->turn = skip_unwanted(job, frame->number + 1);
    }
    (void)pthread_cond_broadcast(&all->turn_changed);
    (void)pthread_mutex_unlock(&all->lock);
    return is_placed;
}

static enum phema_status init_compressor(struct compressor *own, const struct zstd_job *job,
                                         struct phema_error *err)
{
    int level = job->frames->level;
    own->capacity = ZSTD_compressBound((size_t)ZSTD_FRAME_BYTES);
    own->content = malloc((size_t)ZSTD_FRAME_BYTES);
    own->compressed = malloc(own->capacity);
    own->context = ZSTD_createCCtx();
    if (!own->content || !own->compressed || !own->context ||
        ZSTD_isError(ZSTD_CCtx_setParameter(own->context, ZSTD_c_compressionLevel, level)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(own->context, ZSTD_c_checksumFlag, 1)))
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: no memory for a zstd compressor",
                          job->writer->out.path);
    return PHEMA_OK;
}

static enum phema_status write_frame(struct compressor *own, struct compression *all,
                                     const struct frame *frame, struct phema_error *err)
{
    const struct zstd_job *job = all->job;
    size_t size = 0;
    enum phema_status status =
        job->read_ready
            ? job->read_ready(&size, own->compressed, &own->source, job, frame->number, err)
            : PHEMA_OK;
    if (!status && !size) {
        status = phema_writer_read(job->plain, frame->start, own->content, frame->size, err);
        size = status ? 0
                      : ZSTD_compress2(own->context, own->compressed, own->capacity, own->content,
                                       frame->size);
    }
    if (status)
        return status;
    if (ZSTD_isError(size)) /* the capacity suffices for any content: lack of memory remains */
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: zstd at level %d: %s",
                          job->writer->out.path, job->frames->level, ZSTD_getErrorName(size));
    uint64_t offset = 0;
    if (!place_frame(&offset, all, frame, size))
        return PHEMA_OK;
    if (job->hash)
        atomic_fetch_add(job->hash, phema_hash_at(own->compressed, size, offset));
    return phema_writer_write(job->writer, offset, own->compressed, size, err);
}

/* Compresses frames until all are claimed; then further calls do nothing. */
static void compress_frames(void *context, size_t index)
{
    (void)index;
    struct compression *all = context;
    struct compressor own = {.source.descriptor = -1};
    struct frame frame;
    struct phema_error err = {0};
    enum phema_status status = PHEMA_OK;
    while (!status && claim_frame(&frame, all)) {
        status = own.compressed ? PHEMA_OK : init_compressor(&own, all->job, &err);
        if (!status)
            status = write_frame(&own, all, &frame, &err);
        if (!status && all->job->done_bytes)
            atomic_fetch_add(all->job->done_bytes, frame.size);
    }
    if (status) { /* the first failure is kept, and threads that wait are woken */
        (void)pthread_mutex_lock(&all->lock);
        if (!all->status) {
            all->status = status;
            *all->err = err;
        }
        (void)pthread_cond_broadcast(&all->turn_changed);
        (void)pthread_mutex_unlock(&all->lock);
    }
    if (own.source.descriptor >= 0)
        (void)close(own.source.descriptor);
    (void)ZSTD_freeCCtx(own.context);
    free(own.content);
    free(own.compressed);
}

PHEMA_FALLIBLE zstd_write_frames(uint64_t *size_bytes, const struct zstd_job *job,
                                 struct phema_error *err)
{
    struct compression all = {.job = job, .turn = skip_unwanted(job, 0), .err = err};
    (void)pthread_mutex_init(&all.lock, NULL);
    (void)pthread_cond_init(&all.turn_changed, NULL);
    /* more threads than frames have nothing to do */
    phema_parallel(job->frames->n, job->n_threads, compress_frames, &all);
    if (!all.status)
        *size_bytes = all.file_size;
    (void)pthread_cond_destroy(&all.turn_changed);
    (void)pthread_mutex_destroy(&all.lock);
    return all.status;
}

/* ---- The seek table ---- */

static void append_u32(struct phema_strbuf *out, uint64_t value)
{
    uint8_t bytes[8];
    phema_store_u64(bytes, value);
    phema_strbuf_append(out, (const char *)bytes, 4);
}

/* The table is as zstd's contrib/seekable_format has it; without checksums, which the frames have. */
PHEMA_FALLIBLE zstd_write_file(uint64_t *size_bytes, const struct zstd_job *job,
                               struct phema_error *err)
{
    struct phema_strbuf table = {0};
    uint64_t n = job->frames->n, size = n * ZSTD_SEEK_ENTRY_BYTES + ZSTD_SEEK_FOOTER_BYTES, at = 0;
    uint8_t head[ZSTD_SEEK_HEAD_BYTES];
    enum phema_status status = zstd_write_frames(&at, job, err);
    if (status)
        return status;
    phema_store_u64(head, ZSTD_SEEK_HEAD_MAGIC | size << 32);
    phema_strbuf_append(&table, (const char *)head, sizeof(head));
    for (size_t f = 0; f < n; f++) {
        append_u32(&table, job->sizes[f]);
        append_u32(&table, frame_of(job, f).size);
    }
    append_u32(&table, n);
    phema_strbuf_append(&table, "", 1); /* the descriptor: no checksums */
    append_u32(&table, ZSTD_SEEK_FOOTER_MAGIC);
    status = phema_strbuf_check(&table, err);
    if (!status)
        status = phema_writer_write(job->writer, at, table.data, table.size, err);
    if (!status)
        *size_bytes = at + table.size;
    phema_strbuf_clear(&table);
    return status;
}

PHEMA_FALLIBLE phema_writer_write_zstd(uint64_t *size_bytes, struct phema_writer *writer,
                                       struct phema_writer *plain,
                                       const struct phema_writer_frames *frames, unsigned n_threads,
                                       _Atomic uint64_t *done_bytes, struct phema_error *err)
{
    uint64_t *sizes = calloc(frames->n + 1, sizeof(*sizes));
    if (!sizes)
        return phema_fail_memory(err);
    const struct zstd_job job = {.writer = writer,
                                 .plain = plain,
                                 .frames = frames,
                                 .sizes = sizes,
                                 .n_threads = n_threads,
                                 .done_bytes = done_bytes};
    enum phema_status status = zstd_write_file(size_bytes, &job, err);
    free(sizes);
    return status;
}

/* ---- Rereading ---- */

struct check {
    const struct zstd_job *job;
    uint64_t *starts; /* [frames->n] of the compressed frames in the file */
};

static enum phema_status compare_frame(const struct check *check, size_t number, uint8_t *space,
                                       struct phema_error *err)
{
    const struct zstd_job *job = check->job;
    struct frame frame = frame_of(job, number);
    uint8_t *decoded = space + frame.size, *compressed = decoded + frame.size;
    size_t compressed_size = job->sizes[number];
    enum phema_status status = phema_writer_read(job->plain, frame.start, space, frame.size, err);
    if (!status)
        status =
            phema_writer_read(job->writer, check->starts[number], compressed, compressed_size, err);
    if (status)
        return status;
    size_t size = ZSTD_decompress(decoded, frame.size, compressed, compressed_size);
    if (size == frame.size && (!size || memcmp(decoded, space, size) == 0))
        return PHEMA_OK;
    if (ZSTD_isError(size) && ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
        return phema_fail_memory(err);
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: verification failed: bytes %llu to %llu of its content differ from what "
                      "was written",
                      job->writer->out.path, (unsigned long long)frame.start,
                      (unsigned long long)(frame.start + frame.size));
}

static enum phema_status check_frame(void *context, size_t number, struct phema_error *err)
{
    const struct check *check = context;
    uint8_t *space = malloc(2 * frame_of(check->job, number).size + check->job->sizes[number] + 1);
    if (!space)
        return phema_fail_memory(err);
    enum phema_status status = compare_frame(check, number, space, err);
    free(space);
    return status;
}

PHEMA_FALLIBLE zstd_check_frames(const struct zstd_job *job, struct phema_error *err)
{
    struct check check = {job, calloc(job->frames->n + 1, sizeof(*check.starts))};
    if (!check.starts)
        return phema_fail_memory(err);
    for (size_t f = 1; f < job->frames->n; f++)
        check.starts[f] = check.starts[f - 1] + job->sizes[f - 1];
    enum phema_status status =
        phema_parallel_try(job->frames->n, job->n_threads, check_frame, &check, err);
    free(check.starts);
    return status;
}

/* ---- Estimates ---- */

uint64_t phema_writer_zstd_bytes(uint64_t *n_frames, int level, uint64_t content_size)
{
    uint64_t frame = content_size < ZSTD_FRAME_BYTES ? content_size : ZSTD_FRAME_BYTES;
    *n_frames = (content_size + ZSTD_FRAME_BYTES - 1) / ZSTD_FRAME_BYTES;
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
