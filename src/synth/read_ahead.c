// SPDX-License-Identifier: Apache-2.0
/* read_ahead.c - the requests of one worker, in the order in which their data are summed. */
#include "read_ahead.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "phema/clock.h"
#include "phema/read_queue.h"

/* Jobs that are claimed before the worker needs them. */
#define MAX_JOBS ((size_t)64)
/* Reads in flight of a worker at the start, and windows of as many reads without a higher rate
 * after which their number stays. */
#define FIRST_DEPTH    8u
#define MAX_FLAT       2u
#define HIGHER_RATE_BY 1.05

/* Tiles [first_tile, end_tile) of snapshot k, in one request. */
struct slot {
    struct phema_read read;
    size_t start, end; /* in the buffer */
    size_t k;
    uint64_t end_tile;
    struct tile_range range; /* of all its tiles */
    const uint8_t *data;     /* NULL: not arrived, or not checked */
    bool has_ended;
    bool is_scattered; /* requested into the page cache; the buffer is not used */
};

/* How many reads are in flight, and the rate that fewer had. */
struct pace {
    unsigned depth, max_depth;
    double start_s, best_rate;
    uint64_t n_bytes;
    unsigned n_reads, n_flat;
};

struct read_ahead {
    struct run *run;
    struct phema_read_queue *queue;
    struct pace pace;
    uint8_t *buffer; /* [buffer_bytes], a ring as well: each slot takes as much as it needs */
    size_t buffer_bytes;
    struct slot *slots;         /* [n_slots], a ring */
    size_t n_slots, slot_bytes; /* of the largest slot */
    size_t first, n_used;       /* slots in use, from the oldest on */
    size_t n_taken;             /* of them, by the current tile */
    /* Where the next request begins. */
    uint64_t jobs[MAX_JOBS]; /* claimed and not begun by the worker, a ring */
    size_t first_job, n_jobs;
    uint64_t tile, end_tile; /* the next tile, and the end of its job */
    struct tile_range range; /* of tiles [.., tile), of which snapshots from k on are to be read */
    size_t k;
    size_t hint;
};

/* A buffer in huge pages is contiguous in memory. A request then has few segments, which took half
 * the time of a virtual disk that was measured. */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static size_t mapped_bytes(size_t buffer_bytes)
{
    size_t unit = buffer_bytes < HUGE_PAGE_BYTES ? PHEMA_INPUT_ALIGNMENT : HUGE_PAGE_BYTES;
    return (buffer_bytes + unit - 1) / unit * unit;
}

uint64_t read_ahead_bytes(size_t n_slots, size_t buffer_bytes)
{
    size_t n_threads =
        n_slots < PHEMA_READ_QUEUE_MAX_THREADS ? n_slots : PHEMA_READ_QUEUE_MAX_THREADS;
    return (uint64_t)mapped_bytes(buffer_bytes) + n_threads * READ_AHEAD_THREAD_BYTES +
           n_slots * READ_AHEAD_SLOT_BYTES;
}

/* Mapped, not allocated: malloc keeps such large blocks in the arena of each thread once it has
 * seen one freed, and a process of many runs would grow. */
static uint8_t *map_buffer(size_t bytes)
{
    size_t slack = bytes < HUGE_PAGE_BYTES ? 0 : HUGE_PAGE_BYTES;
    uint8_t *map =
        mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    size_t before = slack ? (HUGE_PAGE_BYTES - (uintptr_t)map % HUGE_PAGE_BYTES) % slack : 0;
    if (before)
        (void)munmap(map, before);
    if (slack > before)
        (void)munmap(map + before + bytes, slack - before);
    if (slack)
        (void)madvise(map + before, bytes, MADV_HUGEPAGE);
    return map + before;
}

PHEMA_FALLIBLE read_ahead_open(struct read_ahead **out, struct run *run, struct phema_error *err)
{
    const struct worker_buffers *buffers = &run->budget.buffers;
    *out = NULL;
    if (buffers->n_ahead == 0)
        return PHEMA_OK;
    struct read_ahead *ahead = calloc(1, sizeof(*ahead));
    if (!ahead)
        return phema_fail_memory(err);
    ahead->run = run;
    ahead->n_slots = buffers->n_ahead;
    ahead->slot_bytes = buffers->ahead_slot;
    ahead->buffer_bytes = mapped_bytes(buffers->ahead);
    ahead->slots = calloc(ahead->n_slots, sizeof(*ahead->slots));
    ahead->buffer = map_buffer(ahead->buffer_bytes);
    ahead->k = run->plan->series->n;
    unsigned n_threads = run->budget.n_threads;
    uint64_t depth = (run->options.io_depth + n_threads - 1) / n_threads;
    if (depth == 0 || depth > ahead->n_slots)
        depth = ahead->n_slots;
    ahead->pace.max_depth = (unsigned)depth;
    ahead->pace.depth =
        run->options.io_depth || depth < FIRST_DEPTH ? (unsigned)depth : FIRST_DEPTH;
    ahead->pace.start_s = phema_clock_s();
    if (!ahead->slots || !ahead->buffer) {
        read_ahead_close(ahead);
        return phema_fail_memory(err);
    }
    enum phema_status status =
        phema_read_queue_open(&ahead->queue, (unsigned)depth, run->engine, err);
    if (status) {
        read_ahead_close(ahead);
        return status;
    }
    phema_read_queue_limit(ahead->queue, ahead->pace.depth);
    *out = ahead;
    return PHEMA_OK;
}

void read_ahead_close(struct read_ahead *ahead)
{
    if (!ahead)
        return;
    phema_read_queue_close(ahead->queue);
    if (ahead->buffer)
        (void)munmap(ahead->buffer, ahead->buffer_bytes);
    free(ahead->slots);
    free(ahead);
}

/* ---- Completed reads ---- */

/* After a window of reads: more are in flight from now on, unless more have not raised the rate. */
static void adapt_depth(struct read_ahead *ahead)
{
    struct pace *pace = &ahead->pace;
    if (pace->depth == pace->max_depth || pace->n_flat == MAX_FLAT || pace->n_reads < pace->depth)
        return;
    double now_s = phema_clock_s();
    double rate = (double)pace->n_bytes / (now_s - pace->start_s + 1e-9);
    if (rate > pace->best_rate * HIGHER_RATE_BY) {
        pace->best_rate = rate;
        pace->n_flat = 0;
    } else {
        pace->n_flat++;
    }
    pace->depth = 2 * pace->depth < pace->max_depth ? 2 * pace->depth : pace->max_depth;
    pace->start_s = now_s;
    pace->n_bytes = pace->n_reads = 0;
    phema_read_queue_limit(ahead->queue, pace->depth);
}

static void note_ended(struct read_ahead *ahead, struct phema_read *read)
{
    struct slot *slot = (struct slot *)(void *)read; /* its first member */
    slot->has_ended = true;
    ahead->pace.n_reads++;
    ahead->pace.n_bytes += read->n_read;
    adapt_depth(ahead);
}

/* ---- Requests ---- */

static struct slot *slot_at(struct read_ahead *ahead, size_t position)
{
    return &ahead->slots[(ahead->first + position) % ahead->n_slots];
}

/* Where the largest slot after those in use fits. false: nowhere, before the oldest is free. */
static bool find_space(size_t *start, struct read_ahead *ahead)
{
    *start = 0;
    if (ahead->n_used == 0)
        return true;
    const struct slot *oldest = slot_at(ahead, 0), *newest = slot_at(ahead, ahead->n_used - 1);
    bool is_wrapped = newest->start < oldest->start;
    size_t limit = is_wrapped ? oldest->start : ahead->buffer_bytes;
    *start = newest->end;
    if (ahead->slot_bytes <= limit - newest->end)
        return true;
    *start = 0;
    return !is_wrapped && ahead->slot_bytes <= oldest->start;
}

/* Claims a job, and goes to its first tile. */
static bool claim_job(struct read_ahead *ahead)
{
    struct run *run = ahead->run;
    if (ahead->n_jobs == MAX_JOBS)
        return false;
    uint64_t job = atomic_fetch_add_explicit(&run->next_job, 1, memory_order_relaxed);
    if (job >= run->tiling.n_jobs)
        return false;
    ahead->jobs[(ahead->first_job + ahead->n_jobs++) % MAX_JOBS] = job;
    ahead->tile = tiling_first_tile(&run->tiling, job);
    ahead->end_tile = tiling_first_tile(&run->tiling, job + 1);
    return true;
}

/* The next tiles that are read together: of one tensor run, without one that is left out. */
static bool next_tiles(struct read_ahead *ahead)
{
    const struct run *run = ahead->run;
    struct tile_range range;
    for (;; ahead->tile++) {
        while (ahead->tile == ahead->end_tile)
            if (!claim_job(ahead))
                return false;
        range = tiling_tile(&run->tiling, ahead->tile, &ahead->hint);
        if (run_includes_tile(run, ahead->tile, &range))
            break;
    }
    ahead->range = range;
    for (size_t n = 1; ++ahead->tile < ahead->end_tile && n < run->budget.buffers.span; n++) {
        range = tiling_tile(&run->tiling, ahead->tile, &ahead->hint);
        if (range.tensors != ahead->range.tensors || !run_includes_tile(run, ahead->tile, &range))
            break;
        ahead->range.n_elems += range.n_elems;
    }
    ahead->k = 0;
    return true;
}

/* Bytes of the buffer that a read needs, also where it is repeated in another way. */
static size_t bytes_of_read(const struct phema_read *read)
{
    size_t bytes = read->needed - read->first + PHEMA_INPUT_ROOM;
    return (bytes + PHEMA_INPUT_ALIGNMENT - 1) / PHEMA_INPUT_ALIGNMENT * PHEMA_INPUT_ALIGNMENT;
}

/* Prepares the next request in the slot. false: there is none now. */
static bool next_request(struct read_ahead *ahead, struct slot *slot, size_t start)
{
    const struct run *run = ahead->run;
    for (;;) {
        if (ahead->k == run->plan->series->n && !next_tiles(ahead))
            return false;
        size_t k = ahead->k++;
        if (!run_has_input(run, ahead->range.tensor, k))
            continue;
        struct phema_tensor tensor = run_tile_tensor(run, k, &ahead->range);
        slot->is_scattered =
            !phema_reader_prepare(&slot->read, run->readers[k], &tensor, ahead->range.first,
                                  ahead->range.n_elems, ahead->buffer + start);
        if (slot->is_scattered && !tensor.chunks)
            continue;
        if (slot->is_scattered)
            phema_tensor_prefetch(run->plan->series->snapshots[k].checkpoint, &tensor,
                                  ahead->range.first, ahead->range.n_elems);
        slot->start = start;
        slot->end = start + (slot->is_scattered ? 0 : bytes_of_read(&slot->read));
        slot->k = k;
        slot->end_tile = ahead->tile;
        slot->range = ahead->range;
        slot->data = NULL;
        slot->has_ended = slot->is_scattered || slot->read.size == 0;
        return true;
    }
}

/* Makes requests until all slots are in use, or the buffer is full. */
static void fill(struct read_ahead *ahead)
{
    struct phema_read *read;
    while ((read = phema_read_queue_poll(ahead->queue)))
        note_ended(ahead, read);
    size_t start = 0;
    while (ahead->n_used < ahead->n_slots && find_space(&start, ahead)) {
        struct slot *slot = slot_at(ahead, ahead->n_used);
        if (!next_request(ahead, slot, start))
            return;
        ahead->n_used++;
        if (!slot->has_ended)
            phema_read_queue_submit(ahead->queue, &slot->read);
    }
}

/* ---- The worker ---- */

uint64_t read_ahead_next_job(struct read_ahead *ahead)
{
    fill(ahead);
    if (ahead->n_jobs == 0 && !claim_job(ahead))
        return ahead->run->tiling.n_jobs;
    uint64_t job = ahead->jobs[ahead->first_job];
    ahead->first_job = (ahead->first_job + 1) % MAX_JOBS;
    ahead->n_jobs--;
    return job;
}

static void wait_for(struct read_ahead *ahead, const struct slot *slot)
{
    struct phema_read *read;
    while (!slot->has_ended && (read = phema_read_queue_wait(ahead->queue)))
        note_ended(ahead, read);
}

/* Frees the oldest slots whose last tile is before end_tile, up to n. */
static void free_slots(struct read_ahead *ahead, size_t n, uint64_t end_tile)
{
    for (; n && slot_at(ahead, 0)->end_tile <= end_tile; n--) {
        wait_for(ahead, slot_at(ahead, 0));
        ahead->first = (ahead->first + 1) % ahead->n_slots;
        ahead->n_used--;
        ahead->n_taken -= ahead->n_taken > 0;
    }
}

void read_ahead_begin_tile(struct read_ahead *ahead, uint64_t tile)
{
    if (!ahead)
        return;
    ahead->n_taken = 0;
    free_slots(ahead, ahead->n_used, tile); /* none, unless a tile was left half-way */
    fill(ahead);
}

bool read_ahead_has_next(struct read_ahead *ahead)
{
    if (!ahead || ahead->n_taken == ahead->n_used)
        return true;
    const struct slot *slot = slot_at(ahead, ahead->n_taken);
    struct phema_read *read;
    while (!slot->has_ended && (read = phema_read_queue_poll(ahead->queue)))
        note_ended(ahead, read);
    return slot->has_ended;
}

void read_ahead_release(struct read_ahead *ahead, uint64_t tile)
{
    if (!ahead)
        return;
    free_slots(ahead, ahead->n_taken, tile + 1);
    fill(ahead);
}

PHEMA_FALLIBLE read_ahead_take(const uint8_t **data, struct read_ahead *ahead, size_t k,
                               const struct tile_range *range, struct phema_error *err)
{
    if (!ahead || ahead->n_taken == ahead->n_used)
        return PHEMA_OK;
    struct slot *slot = slot_at(ahead, ahead->n_taken);
    if (slot->k != k || range->tensors != slot->range.tensors || range->first < slot->range.first ||
        range->first - slot->range.first >= slot->range.n_elems)
        return PHEMA_OK;
    ahead->n_taken++;
    if (slot->is_scattered)
        return PHEMA_OK;
    wait_for(ahead, slot);
    struct phema_tensor tensor = run_tile_tensor(ahead->run, k, range);
    if (!slot->data) {
        enum phema_status status = phema_reader_complete(&slot->data, &slot->read, &tensor, err);
        if (status)
            return status;
    }
    *data = slot->data +
            phema_dtype_bytes(phema_tensor_stored_dtype(&tensor), range->first - slot->range.first);
    return PHEMA_OK;
}
