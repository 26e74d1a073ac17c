// SPDX-License-Identifier: Apache-2.0
/* gpu_worker.c - a worker whose tiles are summed on a GPU. Each input of a tile is copied to the
 * GPU once. The GPU sums and rounds a few targets at a time, and copies them back into the
 * same slots. Its counts are used for blocks that it summed. Blocks that are equal in all inputs
 * are copied on the host, as on the CPU, so that the bytes are the same. */

#include <stdlib.h>
#include <string.h>

#include "gpu/gpu_run.h"
#include "read_ahead.h"
#include "target_groups.h"
#include "tile.h"

struct gpu_worker {
    struct phema_lane lane;
    size_t n_slots;
    size_t slot;      /* of the next input */
    uint32_t *places; /* [series->n] indices of the tile's inputs on the GPU */
    uint32_t *inputs; /* [series->n] indices of a group's inputs, in the order of the sum */
    struct phema_cuda_block *blocks;
};

struct gpu_worker *gpu_worker_open(const struct run *run, unsigned index)
{
    const struct gpu_run *gpu_run = run->gpu_run;
    struct gpu_worker *gpu = calloc(1, sizeof(*gpu));
    if (!gpu)
        return NULL;
    gpu->lane = phema_gpus_lane(gpu_run->gpus, index);
    gpu->n_slots = gpu_run->fit.layout.n_slots;
    gpu->places = calloc(run->plan->series->n, sizeof(*gpu->places));
    gpu->inputs = calloc(run->plan->series->n, sizeof(*gpu->inputs));
    gpu->blocks = calloc(gpu_run->fit.layout.n_blocks, sizeof(*gpu->blocks));
    if (gpu->places && gpu->inputs && gpu->blocks)
        return gpu;
    gpu_worker_close(gpu);
    return NULL;
}

void gpu_worker_close(struct gpu_worker *gpu)
{
    if (!gpu)
        return;
    free(gpu->places);
    free(gpu->inputs);
    free(gpu->blocks);
    free(gpu);
}

uint8_t *gpu_worker_slots(const struct gpu_worker *gpu)
{
    return gpu ? phema_lane_slots(&gpu->lane) : NULL;
}

static size_t next_slot(const struct gpu_worker *gpu, size_t slot)
{
    return slot + 1 < gpu->n_slots ? slot + 1 : 0;
}

/* ---- Inputs ---- */

/* Reads the tile of snapshot k into a slot, if it is an input, and copies it to the GPU. */
static enum phema_status copy_input(struct worker *worker, size_t k, uint32_t *n_fed,
                                    struct phema_error *err)
{
    struct gpu_worker *gpu = worker->gpu;
    size_t n_bytes = (size_t)phema_dtype_bytes(worker->range.dtype, worker->range.n_elems);
    size_t slot = gpu->slot, slot_bytes = worker->run->budget.buffers.slot;
    bool is_needed = tile_claim_input(worker, k);
    const uint8_t *data = NULL;
    enum phema_status status = is_needed ? phema_lane_wait(&gpu->lane, slot, err) : PHEMA_OK;
    if (status)
        return status;
    status = tile_read_in_order(&data, worker, k, is_needed, slot, err);
    if (status || !data || worker->is_abandoned)
        return status;
    uint8_t *start = worker->slots + slot * slot_bytes;
    if (data < start || data >= start + slot_bytes) /* a view of the mapped file, or read ahead */
        data = memcpy(start, data, n_bytes);
    read_ahead_release(worker->ahead, worker->tile);
    for (size_t g = 0; g < worker->rule->n_groups; g++) {
        struct group_state *state = &worker->states[g];
        if (state->n_claimed && state->group->inputs[state->n_claimed - 1] == k)
            tile_compare_copy(worker, state, data);
    }
    gpu->places[k] = *n_fed;
    gpu->slot = next_slot(gpu, slot);
    return phema_lane_feed(&gpu->lane, slot, data, n_bytes, (*n_fed)++, err);
}

/* ---- Results ---- */

/* A block that is equal in all inputs is converted and counted like all others. Its own bytes are
 * kept where the dtype does not change. */
static void restore_block(struct phema_narrow_counts *counts, const struct worker *worker,
                          const struct block *block, const uint8_t *data, uint8_t *row)
{
    const struct run *run = worker->run;
    enum phema_dtype from = worker->range.dtype;
    enum phema_dtype to = run->outputs->dtypes[worker->range.tensor];
    const uint8_t *source = data + phema_dtype_bytes(from, block->first);
    uint8_t *target = row + phema_dtype_bytes(to, block->first);
    size_t n_numbers = block->n_elems * phema_dtype_n_parts(from);
    double sums[2 * BLOCK_ELEMS]; /* hold any input dtype exactly */
    phema_widen(sums, phema_dtype_of_parts(from), source, n_numbers);
    phema_narrow(run->backend, target, phema_dtype_of_parts(to), PHEMA_ACCUMULATE_F64, sums,
                 n_numbers, run_overflow(run), counts);
    if (from == to)
        memcpy(target, source, (size_t)phema_dtype_bytes(from, block->n_elems));
}

/* Restores the equal blocks of one tensor in a row that came back. Returns the tensor's counts.
 *   found  the GPU's counts of the row's blocks */
static struct phema_narrow_counts finish_tensor(const struct worker *worker, size_t first,
                                                size_t end, const struct group_state *state,
                                                uint8_t *row, const struct phema_cuda_counts *found)
{
    struct phema_narrow_counts counts = {0, 0, 0};
    for (size_t b = first; b < end; b++) {
        struct phema_narrow_counts more = {found[b].n_overflow, found[b].n_nan, found[b].n_inf};
        if (state->data && state->equals[b])
            restore_block(&counts, worker, &worker->blocks[b], state->data, row);
        else
            counts_add(&counts, &more);
    }
    return counts;
}

/* Writes one row of sums to all its outputs. */
static enum phema_status write_row(struct worker *worker, const struct group_state *state,
                                   size_t row_index, uint8_t *row,
                                   const struct phema_cuda_counts *found, struct phema_error *err)
{
    const struct group *group = state->group;
    struct phema_narrow_counts total = {0, 0, 0};
    enum phema_status status = PHEMA_OK;
    for (size_t b = 0; b < worker->n_blocks && !status;) {
        size_t first = b;
        struct block slice = next_tensor(worker, &b);
        struct phema_narrow_counts counts = finish_tensor(worker, first, b, state, row, found);
        bool has_any = counts_any(&counts);
        for (size_t j = 0; j < group->n_targets && has_any && !status; j++)
            if (group->rows[j] == row_index)
                status = tile_check_values(worker, group->targets[j], slice.tensor, &counts, err);
        counts_add(&total, &counts);
    }
    for (size_t j = 0; j < group->n_targets && !status; j++) {
        if (group->rows[j] != row_index)
            continue;
        counts_add(&worker->counts, &total);
        if (worker->accounts)
            counts_add(&worker->accounts[group->targets[j]].counts, &total);
        status = tile_write(worker, group->targets[j], row, err);
    }
    return status;
}

/* Writes rows [first, first + n) of a group, which the GPU is computing. While one is written
 * others are copied back. */
static enum phema_status write_rows(struct worker *worker, const struct group_state *state,
                                    size_t first, size_t n, struct phema_error *err)
{
    struct gpu_worker *gpu = worker->gpu;
    enum phema_dtype dtype = worker->run->outputs->dtypes[worker->range.tensor];
    uint64_t n_bytes = phema_dtype_bytes(dtype, worker->range.n_elems);
    const struct phema_cuda_counts *counts = phema_lane_counts(&gpu->lane);
    enum phema_status status;
    size_t n_fetched = 0, fetch_slot = 0, slot = 0;
    for (size_t r = 0; r < n; r++) {
        for (; n_fetched < n && n_fetched < r + gpu->n_slots; n_fetched++) {
            status = phema_lane_fetch(&gpu->lane, n_fetched, n_bytes, fetch_slot, err);
            if (status)
                return status;
            fetch_slot = next_slot(gpu, fetch_slot);
        }
        status = phema_lane_wait(&gpu->lane, slot, err);
        if (status)
            return status;
        status = write_row(worker, state, first + r,
                           worker->slots + slot * worker->run->budget.buffers.slot,
                           counts + r * worker->n_blocks, err);
        if (status)
            return status;
        slot = next_slot(gpu, slot);
    }
    return PHEMA_OK;
}

static struct phema_cuda_job job_of(const struct worker *worker, const struct group *group)
{
    const struct tile_range *range = &worker->range;
    const struct run *run = worker->run;
    const struct gpu_worker *gpu = worker->gpu;
    for (size_t i = 0; i < group->n_inputs; i++)
        gpu->inputs[i] = gpu->places[group->inputs[i]];
    return (struct phema_cuda_job){
        .input = phema_gpu_dtype(range->dtype),
        .output = phema_gpu_dtype(run->outputs->dtypes[range->tensor]),
        .is_f64 = sum_dtype_of(run, group, range->tensor) == PHEMA_ACCUMULATE_F64,
        .saturates = run->options.overflow == PHEMA_OVERFLOW_SATURATES,
        .inputs = gpu->inputs,
        .stride = group->n_rows,
        .n_inputs = group->n_inputs,
        .blocks = gpu->blocks,
        .n_blocks = worker->n_blocks,
        .n_numbers = range->n_elems * phema_dtype_n_parts(range->dtype),
    };
}

/* As many targets at a time as the GPU has rows for, from all inputs. */
static enum phema_status finish_group(struct worker *worker, const struct group_state *state,
                                      struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct group *group = state->group;
    size_t most = run->gpu_run->fit.layout.n_rows;
    struct phema_cuda_job job = job_of(worker, group);
    tile_mark_varying(worker, state);
    for (size_t first = 0; first < group->n_rows; first += most) {
        size_t n = group->n_rows - first < most ? group->n_rows - first : most;
        job.weights = group->weights + first;
        job.n_rows = n;
        job.uses_blas = run->options.gpu.uses_blas && n > PHEMA_CUDA_GROUP;
        enum phema_status status = phema_lane_average(&worker->gpu->lane, &job, err);
        if (status)
            return status;
        status = write_rows(worker, state, first, n, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE gpu_worker_sum_tile(struct worker *worker, struct phema_error *err)
{
    for (size_t g = 0; g < worker->rule->n_groups; g++)
        (void)tile_start_group(worker, g);
    uint32_t parts = (uint32_t)phema_dtype_n_parts(worker->range.dtype);
    for (size_t b = 0; b < worker->n_blocks; b++)
        worker->gpu->blocks[b] = (struct phema_cuda_block){
            (uint32_t)worker->blocks[b].first * parts, (uint32_t)worker->blocks[b].n_elems * parts};
    uint32_t n_fed = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < worker->run->plan->series->n && !status && !worker->is_abandoned; k++)
        status = copy_input(worker, k, &n_fed, err);
    if (worker->is_abandoned)
        return status;
    for (size_t g = 0; g < worker->rule->n_groups && !status; g++)
        status = finish_group(worker, &worker->states[g], err);
    return status;
}
