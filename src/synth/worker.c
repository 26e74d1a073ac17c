// SPDX-License-Identifier: Apache-2.0
/* worker.c - jobs: runs of tiles, and letting go of what they have read. */
#include "worker.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "gpu/gpu_worker.h"
#include "input_digests.h"
#include "input_io.h"
#include "tile.h"

static bool alloc_states(struct worker *worker)
{
    const struct run *run = worker->run;
    /* each tensor of a stretch may end with a block that is not full */
    size_t n_blocks = run->cut.tile_elems / BLOCK_ELEMS + MAX_STRETCH_TENSORS;
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
        worker->feed = gpu_worker_open(run, index);
    /* whole units, as C17 wants them; at least one, so that it is never NULL */
    size_t n_units = sizes->copied / PHEMA_INPUT_ALIGNMENT + 1;
    worker->slots = run->gpu_run
                        ? gpu_worker_slots(worker->feed)
                        : aligned_alloc(PHEMA_INPUT_ALIGNMENT, n_units * PHEMA_INPUT_ALIGNMENT);
    worker->references = aligned_alloc(64, sizes->references + 64);
    worker->inputs = calloc(run->plan->series->n, sizeof(*worker->inputs));
    if (run->progress)
        worker->accounts = calloc(run->outputs->m + 1, sizeof(*worker->accounts));
    if (run->digests)
        worker->digests = input_digests_new_sums(run);
    bool has_accounts = (worker->accounts || !run->progress) && (worker->digests || !run->digests);
    if (has_accounts && worker->sums && worker->slots && worker->written && worker->references &&
        worker->inputs && alloc_states(worker))
        return PHEMA_OK;
    worker_clear(worker);
    return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the sums of a tile");
}

void worker_clear(struct worker *worker)
{
    free(worker->sums);
    if (!worker->run || !worker->run->gpu_run)
        free(worker->slots);
    gpu_worker_close(worker->feed);
    worker->feed = NULL;
    free(worker->written);
    free(worker->references);
    free(worker->inputs);
    free(worker->blocks);
    free(worker->equals);
    free(worker->states);
    free(worker->accounts);
    free(worker->digests);
    worker->sums = NULL;
    worker->slots = worker->written = worker->references = NULL;
    worker->inputs = NULL;
    worker->blocks = NULL;
    worker->equals = NULL;
    worker->states = NULL;
    worker->accounts = NULL;
    worker->digests = NULL;
}

/* Whether anything came from the disk since the last look: by a fault, or because it was asked for.
 * Asking costs a look at every page, which files that are in the page cache need not pay. */
static bool is_cold(struct worker *worker)
{
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage))
        return true;
    long before = worker->n_from_disk;
    worker->n_from_disk = usage.ru_inblock + usage.ru_majflt;
    return before != worker->n_from_disk;
}

/* Whether none of these tiles is left to do, by an ended run. */
static bool is_done(const struct run *run, uint64_t first, uint64_t end)
{
    size_t hint = 0;
    for (uint64_t t = first; t < end && t < tiling_n_tiles(&run->cut) && run->progress; t++) {
        struct tile_range piece = tiling_tile(&run->cut, t, &hint);
        if (!journal_writer_has(run->progress, &piece))
            return false;
    }
    return run->progress != NULL;
}

/* At the start of a job: the job that comes when all that are being done now are done. */
static void ask_ahead(struct worker *worker, uint64_t job)
{
    const struct run *run = worker->run;
    uint64_t n = run->cut.tiles_per_job;
    bool asks = is_cold(worker) || !worker->has_asked;
    if (!worker->has_asked)
        input_io_prefetch(run, job * n, (job + 1) * n, asks);
    uint64_t next = job + run->budget.n_threads;
    if (next < run->cut.n_jobs && !is_done(run, next * n, (next + 1) * n))
        input_io_prefetch(run, next * n, (next + 1) * n, asks);
    worker->has_asked = true;
}

static enum phema_status do_job(struct worker *worker, uint64_t job, struct phema_error *err)
{
    struct run *run = worker->run;
    const struct phema_series *series = run->plan->series;
    uint64_t first = job * run->cut.tiles_per_job;
    uint64_t end = first + run->cut.tiles_per_job;
    if (end > tiling_n_tiles(&run->cut))
        end = tiling_n_tiles(&run->cut);
    uint64_t read_bytes = 0;               /* of all snapshots */
    uint64_t held = first, held_bytes = 0; /* of one: since this tile */
    size_t hint = 0;
    /* of a sample little would be used */
    if (!run->options.sample && !is_done(run, first, end))
        ask_ahead(worker, job);
    for (uint64_t t = first; t < end && !worker->is_abandoned; t++) {
        struct tile_range piece = tiling_tile(&run->cut, t, &hint);
        bool is_taken = run_includes_tile(run, t, &piece);
        enum phema_status status =
            is_taken ? tile_process(worker, t, &piece, err) : tile_skip(worker, t, err);
        if (!status && is_taken && run->progress && !worker->is_abandoned)
            status = journal_writer_note(run->progress, &piece, worker, err);
        if (status)
            return status;
        enum phema_dtype dtype = series->tensors[piece.tensor].tensor.dtype;
        uint64_t size = is_taken ? phema_dtype_bytes(dtype, piece.n_elems) : 0;
        read_bytes += is_taken ? run_read_bytes(run, &piece) : 0;
        held_bytes += size;
        if (t + 1 == end || held_bytes + size > run->max_mapped_bytes) {
            input_io_evict(run, held, t + 1, t + 1 == end);
            held = t + 1;
            held_bytes = 0;
        }
        if (t == first)
            atomic_store_explicit(&run->tensor, piece.tensor, memory_order_relaxed);
    }
    uint64_t before = atomic_fetch_add_explicit(&run->done_bytes, read_bytes, memory_order_relaxed);
    phema_memory_profile_mark(run->options.ledger, before + read_bytes, run->total_bytes);
    return PHEMA_OK;
}

void worker_run(struct worker *worker)
{
    struct run *run = worker->run;
    while (!worker->status && !atomic_load_explicit(&run->is_stopped, memory_order_relaxed)) {
        uint64_t job = atomic_fetch_add_explicit(&run->next_job, 1, memory_order_relaxed);
        if (job >= run->cut.n_jobs)
            return;
        worker->status = do_job(worker, job, &worker->err);
    }
    if (worker->status)
        run_stop(run);
}
