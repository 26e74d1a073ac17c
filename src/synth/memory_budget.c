// SPDX-License-Identifier: Apache-2.0
/* memory_budget.c - tile size, passes and buffers under --max-ram. */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "gpu/gpu_run.h"
#include "input_digests.h"
#include "new_scales.h"
#include "phema/memory.h"
#include "phema/strbuf.h"
#include "read_ahead.h"
#include "resume/resume.h"

/* A tile of 64 Ki sums in float64 is half a megabyte. It stays in the L2 cache while eight inputs
 * at a time stream past. Each input is read in runs of 128 KiB and more (docs/speed.md); tiles that
 * go through buffers are no larger than that. */
#define TILE_ELEMS     ((size_t)64 << 10)
#define SLOT_BYTES     ((size_t)128 << 10)
#define MIN_TILE_ELEMS BLOCK_ELEMS
/* Of inputs that are read ahead in large requests, from a device that is slower than the L2
 * cache. */
#define MAX_TILE_ELEMS (4 * TILE_ELEMS)

/* Sums of a worker, which should stay in the L2 cache: many targets make smaller tiles. */
#define MAX_SUM_BYTES ((size_t)2 << 20)

#define CACHE_LINE ((size_t)64)

/* Inputs that are read ahead, of all workers: some 32 reads of half a megabyte in flight, or more
 * smaller ones, and those that are summed. More threads have smaller slots, but no smaller than
 * MIN_AHEAD_SLOT_BYTES. */
#define AHEAD_BYTES          ((size_t)24 << 20)
#define AHEAD_SLOT_BYTES     ((size_t)512 << 10)
#define MIN_AHEAD_SLOT_BYTES ((size_t)128 << 10)
#define LEAST_IN_FLIGHT      ((size_t)4)   /* of a worker */
#define MOST_IN_FLIGHT       ((size_t)256) /* of a worker whose reads are small */

/* Of a lane. Some are read into while the GPU copies others; results come back in them. */
#define GPU_SLOTS ((size_t)4)

/* For writers, messages and uncounted memory of libc. */
#define SMALL_BYTES ((uint64_t)192 << 10)

/* ---- Demands of the tensors ---- */

struct demands {
    uint64_t n_in[PHEMA_N_DTYPES], n_out[PHEMA_N_DTYPES]; /* elements, by dtype */
    size_t sums_per_elem;
    bool is_any_copied;    /* some inputs are not views */
    bool is_any_converted; /* some tensors are copied to another dtype */
};

/* The largest tile of any dtype. A tile of a rare dtype is never full. */
static size_t bytes_of_tile(const uint64_t *n_elems, size_t tile_elems)
{
    size_t most = 1;
    for (int d = 0; d < PHEMA_N_DTYPES; d++) {
        uint64_t n = n_elems[d] < tile_elems ? n_elems[d] : tile_elems;
        size_t bytes = (size_t)phema_dtype_bytes((enum phema_dtype)d, n);
        most = larger(bytes, most);
    }
    return most;
}

static struct demands demands_of(const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    struct demands demands = {.sums_per_elem = 1};
    for (size_t i = 0; i < series->n_tensors; i++) {
        enum phema_dtype dtype = series->tensors[i].tensor.dtype;
        uint64_t n_elems = (series->tensors[i].tensor.n_elems + 1) / 2 * 2; /* F4: whole bytes */
        demands.n_in[dtype] += n_elems;
        demands.n_out[run->outputs->dtypes[i]] += n_elems;
        if (dtype == PHEMA_C64 || dtype == PHEMA_C128)
            demands.sums_per_elem = 2;
        demands.is_any_converted =
            demands.is_any_converted ||
            (series->tensors[i].rule == PHEMA_RULE_COPY && run->outputs->dtypes[i] != dtype);
    }
    demands.is_any_copied = run_is_any_copied(run);
    return demands;
}

/* ---- Workers ---- */

static size_t rounded_up(size_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* Bytes of a slot for one tile. Direct reads begin and end at blocks. Other slots begin at
 * different offsets in their pages, so that they do not compete for the same cache sets. */
static size_t slot_bytes(const struct run *run, size_t tile_bytes)
{
    size_t page = PHEMA_INPUT_ALIGNMENT;
    size_t whole = (tile_bytes + page - 1) / page * page;
    return whole + (run->result->n_direct ? PHEMA_INPUT_ROOM : CACHE_LINE);
}

/* Raises the needs of a tile, and the memory of groups, to those of one pass. A tile has tensors of
 * one rule, or of none. */
static enum phema_status measure_pass(struct target_groups_needs *needs,
                                      struct memory_budget *budget, const struct run *run,
                                      const struct demands *demands, size_t first,
                                      struct phema_error *err)
{
    uint64_t bytes = 0;
    for (size_t r = 0; r < run->n_rule_states; r++) {
        struct group *groups = NULL;
        size_t n = 0;
        if (!run->rule_states[r].is_needed)
            continue;
        enum phema_status status = target_groups_make(&groups, &n, run->plan, run->options.sums, r,
                                                      first, budget->targets_per_pass, err);
        if (status)
            return status;
        struct target_groups_needs more = target_groups_count(groups, n, demands->is_any_copied,
                                                              run->rule_states[r].needs_float64);
        needs->n_rows = larger(more.n_rows, needs->n_rows);
        needs->n_references = larger(more.n_references, needs->n_references);
        needs->sum_bytes = larger(more.sum_bytes, needs->sum_bytes);
        bytes += target_groups_bytes(groups, n, run->plan->series->n);
        target_groups_free(groups, n);
    }
    budget->weights = bytes > budget->weights ? bytes : budget->weights;
    return PHEMA_OK;
}

/* Bytes of one input that are read at once, if memory allows. */
static size_t ahead_slot_bytes(const struct memory_budget *budget)
{
    size_t bytes = AHEAD_SLOT_BYTES, n = FEW_SLOTS + LEAST_IN_FLIGHT;
    while (bytes > MIN_AHEAD_SLOT_BYTES && bytes * n * budget->n_threads > AHEAD_BYTES)
        bytes /= 2;
    return bytes;
}

/* The slots of inputs that are read ahead. Small tiles are read several at a time, if the slots of
 * all snapshots have space for two such reads: a slot is used until its last tile is summed. */
static void size_ahead(struct memory_budget *budget, const struct run *run, size_t tile_bytes,
                       size_t n_batch)
{
    struct worker_buffers *buffers = &budget->buffers;
    size_t n_snapshots = run->plan->series->n, n_threads = budget->n_threads;
    size_t share = AHEAD_BYTES / n_threads, most = ahead_slot_bytes(budget);
    uint64_t depth_of_all = run->options.io_depth < PHEMA_READ_QUEUE_MAX_DEPTH
                                ? run->options.io_depth
                                : PHEMA_READ_QUEUE_MAX_DEPTH;
    size_t depth = (size_t)(depth_of_all + n_threads - 1) / n_threads;
    buffers->span = 1;
    while (!budget->is_tight && 2 * buffers->span * tile_bytes <= most &&
           4 * buffers->span * tile_bytes * n_snapshots <= share)
        buffers->span *= 2;
    buffers->ahead_slot = slot_bytes(run, buffers->span * tile_bytes);
    size_t held = buffers->span > 1 ? n_snapshots : n_batch;
    size_t n_whole = larger(share / buffers->ahead_slot, held + LEAST_IN_FLIGHT);
    size_t n = held + MOST_IN_FLIGHT;
    if (budget->is_tight)
        n = held + 1;
    else if (depth)
        n = held + depth;
    uint64_t n_reads = UINT64_MAX;
    if (run->tiling.n_jobs) /* known when the budget is trimmed */
        n_reads = n_snapshots * tiling_n_tiles(&run->tiling);
    buffers->n_ahead = n_reads < n ? (size_t)n_reads : n;
    bool is_as_asked = budget->is_tight || depth;
    if (is_as_asked || n_whole > buffers->n_ahead)
        n_whole = buffers->n_ahead;
    buffers->ahead = n_whole * buffers->ahead_slot;
}

/* The buffers of a worker, for the budget's tiles and targets of a pass. */
static enum phema_status size_buffers(struct memory_budget *budget, const struct run *run,
                                      const struct demands *demands, struct phema_error *err)
{
    size_t tile_elems = budget->tile_elems, n_snapshots = run->plan->series->n;
    /* tensors that are copied to another dtype pass through doubles */
    struct target_groups_needs needs = {1, 0, demands->is_any_converted ? sizeof(double) : 1};
    budget->weights = 0;
    for (size_t first = 0; first < run->plan->m; first += budget->targets_per_pass) {
        enum phema_status status = measure_pass(&needs, budget, run, demands, first, err);
        if (status)
            return status;
    }
    budget->weights += new_scales_bytes(run, budget->targets_per_pass);
    size_t tile_bytes = rounded_up(bytes_of_tile(demands->n_in, tile_elems));
    size_t n_slots = 0, slot = 0;
    if (demands->is_any_copied) {
        n_slots = needs.n_rows > FEW_TARGETS ? MAX_SLOTS : FEW_SLOTS;
        n_slots = n_slots < n_snapshots ? n_slots : n_snapshots;
        slot = slot_bytes(run, tile_bytes);
    }
    budget->sum_elems = tile_elems * demands->sums_per_elem;
    budget->buffers = (struct worker_buffers){
        .sums = rounded_up(budget->sum_elems * needs.sum_bytes),
        .n_slots = n_slots,
        .slot = slot,
        .copied = n_slots * slot,
        .written = rounded_up(bytes_of_tile(demands->n_out, tile_elems)),
        .reference = tile_bytes,
        .references = needs.n_references * tile_bytes,
        .digests = (size_t)input_digests_bytes(run),
    };
    bool has_batches = !run->gpu_run || gpu_leaves_tensors_to_cpu(run);
    if (run_reads_ahead(run)) /* a lane copies one input after the other */
        size_ahead(budget, run, tile_bytes, has_batches ? n_slots : 1);
    if (run_reads_all_ahead(run))
        budget->buffers.copied = 0;
    return PHEMA_OK;
}

uint64_t memory_budget_accumulate_bytes(const struct memory_budget *budget)
{
    const struct worker_buffers *buffers = &budget->buffers;
    uint64_t of_thread = (uint64_t)buffers->sums + buffers->copied + buffers->written +
                         buffers->references + buffers->digests +
                         read_ahead_bytes(buffers->n_ahead, buffers->ahead) + BUDGET_THREAD_BYTES;
    return budget->baseline + budget->weights + budget->decoders + budget->lanes +
           budget->n_threads * of_thread;
}

uint64_t memory_budget_write_bytes(const struct memory_budget *budget)
{
    return budget->baseline + budget->n_finishers * (budget->finisher + BUDGET_THREAD_BYTES);
}

/* ---- The limit ---- */

static enum phema_status fail_floor(const struct memory_budget *budget, uint64_t needed,
                                    const char *what, unsigned n_threads, struct phema_error *err)
{
    struct phema_name_buffer given, wanted;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_RESOURCE, "%s%s: at least %s are needed for %s, with %u thread%s",
                   budget->is_limit_of_cgroup ? "the control group allows "
                                              : phema_setting_equals(PHEMA_SET_MAX_RAM),
                   phema_size_format(&given, budget->limit),
                   phema_size_enough(&wanted, needed + PHEMA_MEMORY_VARIES), what, n_threads,
                   n_threads == 1 ? "" : "s");
    if (budget->is_limit_of_cgroup)
        return status;
    char enough[32];
    (void)snprintf(enough, sizeof(enough), "%lluMiB",
                   (unsigned long long)((needed + PHEMA_MEMORY_VARIES) >> 20) + 1);
    return phema_suggest(err, status, PHEMA_SET_MAX_RAM, enough);
}

/* The largest tiles, then the most targets per pass, that fit into the limit. */
static enum phema_status fit_workers(struct memory_budget *budget, const struct run *run,
                                     const struct demands *demands, struct phema_error *err)
{
    budget->tile_elems = run_reads_all_ahead(run) ? MAX_TILE_ELEMS : TILE_ELEMS;
    size_t most = run_reads_all_ahead(run) ? ahead_slot_bytes(budget) : SLOT_BYTES;
    while (demands->is_any_copied && bytes_of_tile(demands->n_in, budget->tile_elems) > most)
        budget->tile_elems /= 2;
    budget->targets_per_pass = run->plan->m;
    for (;;) {
        enum phema_status status = size_buffers(budget, run, demands, err);
        if (status)
            return status;
        uint64_t needed = memory_budget_accumulate_bytes(budget);
        bool is_small = budget->tile_elems <= MIN_TILE_ELEMS;
        bool is_crowded = budget->buffers.sums > MAX_SUM_BYTES && !is_small;
        if (!is_crowded && (!budget->limit || needed <= budget->limit))
            return PHEMA_OK;
        if (!is_crowded && run_reads_ahead(run) && !budget->is_tight)
            budget->is_tight = true;
        else if (!is_small)
            budget->tile_elems /= 2;
        else if (budget->targets_per_pass > 1)
            budget->targets_per_pass = (budget->targets_per_pass + 1) / 2;
        else
            return fail_floor(budget, needed,
                              budget->decoders ? "one target, decompression included"
                                               : "one target",
                              budget->n_threads, err);
    }
}

/* ---- GPUs ---- */

/* The GPU holds the sums. The host keeps slots, which the GPU allocates, reference tiles, and
 * a tile that is copied to another dtype. If the CPU makes some averages too, its smaller tiles are
 * used. */
static enum phema_status size_gpu_buffers(struct memory_budget *budget, const struct run *run,
                                          const struct demands *demands, struct phema_error *err)
{
    const struct phema_cuda_layout *layout = &run->gpu_run->fit.layout;
    struct phema_cuda_layout rest = *layout;
    rest.n_slots = 0;
    budget->tile_elems = (size_t)run->gpu_run->fit.tile_elems;
    budget->n_threads = run->gpu_run->fit.n_threads;
    enum phema_status status = size_buffers(budget, run, demands, err);
    if (status)
        return status;
    struct worker_buffers *buffers = &budget->buffers;
    buffers->n_slots = layout->n_slots;
    buffers->slot = layout->slot_bytes;
    buffers->copied = buffers->n_slots * buffers->slot;
    if (!gpu_leaves_tensors_to_cpu(run)) {
        buffers->sums =
            demands->is_any_converted ? rounded_up(budget->sum_elems * sizeof(double)) : CACHE_LINE;
        buffers->written = demands->is_any_converted ? buffers->written : 64;
    }
    budget->lanes = budget->n_threads * phema_cuda_host_bytes(&rest);
    return PHEMA_OK;
}

static enum phema_status fit_gpus(struct memory_budget *budget, const struct run *run,
                                  const struct demands *demands, struct phema_error *err)
{
    unsigned n_threads = budget->n_threads;
    uint64_t n_slots = GPU_SLOTS, tile_elems = run->gpu_run->max_tile_elems;
    budget->targets_per_pass = run->plan->m;
    if (gpu_leaves_tensors_to_cpu(run)) {
        enum phema_status status = fit_workers(budget, run, demands, err);
        if (status)
            return status;
        tile_elems = budget->tile_elems < tile_elems ? budget->tile_elems : tile_elems;
        n_slots = budget->buffers.n_slots > n_slots ? budget->buffers.n_slots : n_slots;
    }
    while (run_reads_ahead(run) &&
           bytes_of_tile(demands->n_in, (size_t)tile_elems) > ahead_slot_bytes(budget))
        tile_elems /= 2;
    for (;;) {
        enum phema_status status = gpu_fit(run, tile_elems, n_threads, n_slots, err);
        if (status)
            return status;
        status = size_gpu_buffers(budget, run, demands, err);
        if (status)
            return status;
        uint64_t needed = memory_budget_accumulate_bytes(budget);
        if (!budget->limit || needed <= budget->limit)
            return PHEMA_OK;
        if (run_reads_ahead(run) && !budget->is_tight)
            budget->is_tight = true;
        else if (budget->tile_elems > PHEMA_GPU_LEAST_TILE_ELEMS)
            tile_elems = budget->tile_elems / 2;
        else if (budget->n_threads > 1)
            n_threads = (budget->n_threads + 1) / 2;
        else
            return fail_floor(budget, needed, "tiles on their way to a device", 1, err);
    }
}

/* Threads that finish outputs after all tensors are written, and their memory. */
static enum phema_status fit_finishers(struct memory_budget *budget, const struct run *run,
                                       struct phema_error *err)
{
    uint64_t n_tasks = 0;
    unsigned n_threads = run->options.n_threads;
    budget->finisher =
        sink_finish_thread_bytes(&n_tasks, run->outputs, run->plan->series->n_tensors);
    budget->n_finishers = n_tasks < n_threads ? (unsigned)n_tasks : n_threads;
    while (budget->limit && budget->n_finishers > 1 &&
           memory_budget_write_bytes(budget) > budget->limit)
        budget->n_finishers--;
    if (!budget->limit || memory_budget_write_bytes(budget) <= budget->limit)
        return PHEMA_OK;
    return fail_floor(budget, memory_budget_write_bytes(budget), "compression at this level",
                      budget->n_finishers, err);
}

PHEMA_FALLIBLE memory_budget_make(struct memory_budget *budget, const struct run *run,
                                  struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    *budget = (struct memory_budget){.limit = run->options.max_ram_bytes,
                                     .n_threads = run->options.n_threads,
                                     .baseline = phema_memory_now().anonymous_bytes + SMALL_BYTES};
    budget->baseline += input_digests_shared_bytes(run);
    if (run->options.resumes)
        budget->baseline += journal_writer_bytes(run);
    uint64_t allowed = phema_memory_limit();
    if (allowed && (!budget->limit || allowed < budget->limit)) {
        budget->limit = allowed;
        budget->is_limit_of_cgroup = true;
    }
    for (size_t k = 0; k < series->n; k++)
        budget->decoders += phema_checkpoint_decoder_bytes(series->snapshots[k].checkpoint);
    if (run->has_frame_jobs)
        budget->decoders *= budget->n_threads;
    struct demands demands = demands_of(run);
    enum phema_status status = run->gpu_run ? fit_gpus(budget, run, &demands, err)
                                            : fit_workers(budget, run, &demands, err);
    if (status)
        return status;
    size_t n = budget->targets_per_pass;
    budget->n_passes = (run->plan->m + n - 1) / n;
    return fit_finishers(budget, run, err);
}

PHEMA_FALLIBLE memory_budget_trim(struct memory_budget *budget, const struct run *run,
                                  struct phema_error *err)
{
    uint64_t n_elems = tiling_largest(&run->tiling), n_jobs = run->tiling.n_jobs;
    if (n_jobs < budget->n_threads)
        budget->n_threads = n_jobs ? (unsigned)n_jobs : 1;
    size_t needed = (size_t)((n_elems + BLOCK_ELEMS - 1) / BLOCK_ELEMS * BLOCK_ELEMS);
    if (needed > budget->tile_elems || needed == 0)
        needed = budget->tile_elems;
    if (needed == budget->tile_elems && !run->gpu_run && !run_reads_ahead(run))
        return PHEMA_OK;
    struct demands demands = demands_of(run);
    if (!run->gpu_run) {
        budget->tile_elems = needed;
        return size_buffers(budget, run, &demands, err);
    }
    /* fewer lanes need less memory */
    enum phema_status status =
        gpu_fit(run, needed, budget->n_threads, budget->buffers.n_slots, err);
    return status ? status : size_gpu_buffers(budget, run, &demands, err);
}
