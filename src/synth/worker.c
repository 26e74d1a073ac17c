// SPDX-License-Identifier: Apache-2.0
/* worker.c - one thread: claims jobs, processes their tiles, releases pages. */
#include "worker.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "decode_order.h"
#include "gpu/gpu_run.h"
#include "input_digests.h"
#include "input_io.h"
#include "read_ahead.h"
#include "resume/resume.h"
#include "tile.h"

static bool alloc_states(struct worker *worker)
{
    const struct run *run = worker->run;
    /* each tensor of a run may end with a partial block */
    size_t n_blocks = run->tiling.tile_elems / BLOCK_ELEMS + MAX_RUN_TENSORS;
    worker->blocks = calloc(n_blocks, sizeof(*worker->blocks));
    worker->states = calloc(run->max_groups + 1, sizeof(*worker->states));
    worker->equals = calloc(run->max_groups + 1, n_blocks);
    if (!worker->blocks || !worker->states || !worker->equals)
        return false;
    for (size_t g = 0; g < run->max_groups; g++)
        worker->states[g].equals = worker->equals + g * n_blocks;
    return true;
}

PHEMA_FALLIBLE worker_init(struct worker *worker, struct run *run, unsigned index,
                           struct phema_error *err)
{
    *worker = (struct worker){.run = run, .nan_tensor = SIZE_MAX};
    const struct worker_buffers *sizes = &run->budget.buffers;
    worker->sums = aligned_alloc(64, sizes->sums);
    worker->written = aligned_alloc(64, sizes->written);
    if (run->gpu_run)
        worker->gpu = gpu_worker_open(run, index);
    /* a multiple of the alignment, as C17 requires; never 0, so that NULL means failure */
    size_t n_units = sizes->copied / PHEMA_INPUT_ALIGNMENT + 1;
    worker->slots = run->gpu_run
                        ? gpu_worker_slots(worker->gpu)
                        : aligned_alloc(PHEMA_INPUT_ALIGNMENT, n_units * PHEMA_INPUT_ALIGNMENT);
    worker->references = aligned_alloc(64, sizes->references + 64);
    worker->inputs = calloc(run->plan->series->n, sizeof(*worker->inputs));
    if (run->journal)
        worker->accounts = calloc(run->outputs->m + 1, sizeof(*worker->accounts));
    if (run->input_digests)
        worker->digests = input_digests_new_sums(run);
    bool has_accounts =
        (worker->accounts || !run->journal) && (worker->digests || !run->input_digests);
    enum phema_status status = read_ahead_open(&worker->ahead, run, err);
    if (!status)
        status = frame_jobs_open_readers(worker, err);
    if (status) {
        worker_clear(worker);
        return status;
    }
    if (has_accounts && worker->sums && worker->slots && worker->written && worker->references &&
        worker->inputs && alloc_states(worker))
        return PHEMA_OK;
    worker_clear(worker);
    return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the sums of a tile");
}

void worker_clear(struct worker *worker)
{
    read_ahead_close(worker->ahead);
    frame_jobs_close_readers(worker);
    free(worker->sums);
    if (!worker->run->gpu_run)
        free(worker->slots);
    gpu_worker_close(worker->gpu);
    free(worker->written);
    free(worker->references);
    free(worker->inputs);
    free(worker->blocks);
    free(worker->equals);
    free(worker->states);
    free(worker->accounts);
    free(worker->digests);
    *worker = (struct worker){0};
}

/* Whether this thread has caused disk reads since the last call, by page faults or prefetch.
 * Prefetching checks every page, a cost that cached files avoid. */
static bool is_cold(struct worker *worker)
{
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage))
        return true;
    long before = worker->n_from_disk;
    worker->n_from_disk = usage.ru_inblock + usage.ru_majflt;
    return before != worker->n_from_disk;
}

/* Whether an earlier run has done all of these tiles. */
static bool is_done(const struct run *run, uint64_t first, uint64_t end)
{
    size_t hint = 0;
    for (uint64_t t = first; t < end && run->journal; t++) {
        struct tile_range range = tiling_tile(&run->tiling, t, &hint);
        if (!journal_writer_has(run->journal, &range))
            return false;
    }
    return run->journal != NULL;
}

/* At the start of a job: prefetches the job that follows all those in progress. */
static void prefetch_next(struct worker *worker, uint64_t job)
{
    const struct run *run = worker->run;
    const struct tiling *tiling = &run->tiling;
    bool asks = is_cold(worker) || !worker->has_prefetched;
    if (!worker->has_prefetched)
        input_io_prefetch(run, tiling_first_tile(tiling, job), tiling_first_tile(tiling, job + 1),
                          asks);
    uint64_t next = job + run->budget.n_threads;
    uint64_t first = tiling_first_tile(tiling, next), end = tiling_first_tile(tiling, next + 1);
    if (!is_done(run, first, end))
        input_io_prefetch(run, first, end, asks);
    worker->has_prefetched = true;
}

static bool is_stopped(const struct run *run)
{
    return atomic_load_explicit(&run->is_stopped, memory_order_relaxed);
}

static enum phema_status run_job(struct worker *worker, uint64_t job, struct phema_error *err)
{
    struct run *run = worker->run;
    uint64_t first = frame_jobs_first_tile(run, job), end = frame_jobs_first_tile(run, job + 1);
    uint64_t read_bytes = 0;                         /* of all snapshots */
    uint64_t mapped_since = first, mapped_bytes = 0; /* of one snapshot, since that tile */
    size_t hint = 0;
    /* a sample would use little of a prefetched job */
    if (!run->options.sample && !is_done(run, first, end))
        prefetch_next(worker, job);
    for (uint64_t t = first; t < end && !worker->is_abandoned; t++) {
        if (is_stopped(run)) /* a job may be many seconds of reading */
            return PHEMA_OK;
        struct tile_range range = tiling_tile(&run->tiling, t, &hint);
        bool is_included = run_includes_tile(run, t, &range);
        worker->tile = t;
        worker->range = range;
        enum phema_status status = tile_process(worker, is_included, err);
        if (!status && is_included && run->journal && !worker->is_abandoned)
            status = journal_writer_note(run->journal, worker, err);
        if (status)
            return status;
        uint64_t size = is_included ? phema_dtype_bytes(range.dtype, range.n_elems) : 0;
        read_bytes += is_included ? run_read_bytes(run, &range) : 0;
        mapped_bytes += size;
        if (t + 1 == end || mapped_bytes + size > run->max_mapped_bytes) {
            input_io_evict(run, mapped_since, t + 1, t + 1 == end);
            mapped_since = t + 1;
            mapped_bytes = 0;
        }
        if (t == first)
            atomic_store_explicit(&run->tensor, range.tensor, memory_order_relaxed);
    }
    uint64_t before = atomic_fetch_add_explicit(
        run->is_rereading ? &run->stage_bytes : &run->done_bytes, read_bytes, memory_order_relaxed);
    phema_memory_profile_mark(run->options.memory_profile, before + read_bytes, run->total_bytes);
    if (run->has_frame_jobs && end == tiling_n_tiles(&run->tiling))
        return frame_jobs_finish(worker, err);
    return PHEMA_OK;
}

void worker_run(struct worker *worker)
{
    struct run *run = worker->run;
    while (!worker->status && !is_stopped(run)) {
        uint64_t job = worker->ahead
                           ? read_ahead_next_job(worker->ahead)
                           : atomic_fetch_add_explicit(&run->next_job, 1, memory_order_relaxed);
        if (job >= run->tiling.n_jobs)
            return;
        worker->status = run_job(worker, job, &worker->err);
    }
    if (worker->status)
        run_stop(run);
}
