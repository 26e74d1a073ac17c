// SPDX-License-Identifier: Apache-2.0
/* decode_order.c - compressed snapshots are read tile by tile, in order, or frame by frame. */
#include "decode_order.h"

#include <pthread.h>
#include <stdlib.h>

#include "worker.h"

/* Snapshots that a worker lets the one before it go ahead. */
#define LEAD 2

struct turn {
    pthread_mutex_t lock;
    pthread_cond_t has_passed;
    uint64_t next; /* tile whose turn it is */
    size_t after;  /* the next compressed snapshot, or this one where there is none */
    bool is_stopped;
};

struct decode_order {
    size_t n;
    struct turn at[]; /* [n] snapshots */
};

PHEMA_FALLIBLE decode_order_new(struct decode_order **out, const struct phema_series *series,
                                struct phema_error *err)
{
    struct decode_order *order = calloc(1, sizeof(*order) + series->n * sizeof(order->at[0]));
    if (!order)
        return phema_fail_memory(err);
    order->n = series->n;
    size_t after = order->n;
    for (size_t k = order->n; k-- > 0;) {
        order->at[k].after = after < order->n ? after : k;
        after = series->snapshots[k].is_compressed ? k : after;
        (void)pthread_mutex_init(&order->at[k].lock, NULL);
        (void)pthread_cond_init(&order->at[k].has_passed, NULL);
    }
    *out = order;
    return PHEMA_OK;
}

void decode_order_free(struct decode_order *order)
{
    for (size_t k = 0; order && k < order->n; k++) {
        (void)pthread_cond_destroy(&order->at[k].has_passed);
        (void)pthread_mutex_destroy(&order->at[k].lock);
    }
    free(order);
}

/* Whether it is the tile's turn, or the run was stopped. */
static bool has_turn(struct turn *turn, uint64_t tile, bool may_wait, bool *is_stopped)
{
    (void)pthread_mutex_lock(&turn->lock);
    while (may_wait && turn->next != tile && !turn->is_stopped)
        (void)pthread_cond_wait(&turn->has_passed, &turn->lock);
    bool has_turn = turn->next == tile;
    *is_stopped = turn->is_stopped;
    (void)pthread_mutex_unlock(&turn->lock);
    return has_turn || *is_stopped;
}

/* A worker that has to wait lets the one before it go on for some snapshots. Otherwise it would
 * wait for each of them, and a thread takes a while to wake up. */
bool decode_order_acquire(struct decode_order *order, size_t k, uint64_t tile)
{
    bool is_stopped = false;
    if (has_turn(&order->at[k], tile, false, &is_stopped))
        return !is_stopped;
    for (unsigned i = 0; i < LEAD; i++)
        k = order->at[k].after;
    (void)has_turn(&order->at[k], tile, true, &is_stopped);
    return !is_stopped;
}

void decode_order_release(struct decode_order *order, size_t k, uint64_t tile)
{
    struct turn *turn = &order->at[k];
    (void)pthread_mutex_lock(&turn->lock);
    turn->next = tile + 1;
    (void)pthread_cond_broadcast(&turn->has_passed);
    (void)pthread_mutex_unlock(&turn->lock);
}

void decode_order_stop(struct decode_order *order)
{
    for (size_t k = 0; k < order->n; k++) {
        struct turn *turn = &order->at[k];
        (void)pthread_mutex_lock(&turn->lock);
        turn->is_stopped = true;
        (void)pthread_cond_broadcast(&turn->has_passed);
        (void)pthread_mutex_unlock(&turn->lock);
    }
}

/* ---- Jobs of frames ---- */

/* Of all workers. A decoder has 1 MiB for files that synth writes, 9 at most for other small
 * frames. */
#define MAX_DECODERS 64

/* As the frames that synth writes. A job of smaller frames has several of them; where frames are
 * larger, jobs between their beginnings are empty. */
#define JOB_BYTES ((uint64_t)4 << 20)

bool frame_jobs_suit(const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    size_t n_threads = run->options.n_threads;
    if (run->gpu_run || series->n >= n_threads || series->n * n_threads > MAX_DECODERS)
        return false;
    for (size_t k = 0; k < series->n; k++)
        if (!series->snapshots[k].is_compressed ||
            !phema_checkpoint_can_seek(series->snapshots[k].checkpoint))
            return false;
    return true;
}

void frame_jobs_size(struct run *run)
{
    struct tiling *tiling = &run->tiling;
    uint64_t n_tiles = tiling_n_tiles(tiling);
    if (!run->has_frame_jobs || n_tiles == 0)
        return;
    uint64_t n = JOB_BYTES / (tiling->read_bytes / n_tiles + 1);
    tiling->tiles_per_job = n ? n : 1;
    tiling->n_jobs = (n_tiles + tiling->tiles_per_job - 1) / tiling->tiles_per_job;
}

/* The frame of the first snapshot in which a tile begins. In others frames begin nearby: their
 * headers differ little in length. */
static uint64_t frame_of(const struct run *run, uint64_t tile)
{
    size_t hint = 0;
    const struct phema_series *series = run->plan->series;
    struct tile_range range = tiling_tile(&run->tiling, tile, &hint);
    struct phema_tensor tensor = phema_series_tensor_in(series, 0, range.tensor);
    return phema_checkpoint_entry(series->snapshots[0].checkpoint,
                                  tensor.offset + phema_dtype_bytes(tensor.dtype, range.first));
}

uint64_t frame_jobs_first_tile(const struct run *run, uint64_t job)
{
    uint64_t n_tiles = tiling_n_tiles(&run->tiling), tile = tiling_first_tile(&run->tiling, job);
    if (!run->has_frame_jobs || tile == 0 || tile == n_tiles)
        return tile;
    uint64_t before = frame_of(run, tile - 1);
    while (tile < n_tiles && frame_of(run, tile) == before)
        tile++;
    return tile;
}

PHEMA_FALLIBLE frame_jobs_open_readers(struct worker *worker, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct phema_series *series = run->plan->series;
    worker->readers = run->readers;
    if (!run->has_frame_jobs)
        return PHEMA_OK;
    worker->readers = calloc(series->n, sizeof(struct phema_reader *));
    if (!worker->readers)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < series->n && !status; k++)
        status = phema_reader_open(&worker->readers[k], series->snapshots[k].checkpoint, err);
    return status;
}

void frame_jobs_close_readers(struct worker *worker)
{
    const struct run *run = worker->run;
    if (worker->readers == run->readers || !worker->readers)
        return;
    for (size_t k = 0; k < run->plan->series->n; k++)
        phema_reader_close(worker->readers[k]);
    free(worker->readers);
}

PHEMA_FALLIBLE frame_jobs_finish(struct worker *worker, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < worker->run->plan->series->n && !status; k++)
        status = phema_reader_finish(worker->readers[k], err);
    return status;
}
