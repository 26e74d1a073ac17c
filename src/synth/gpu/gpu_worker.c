// SPDX-License-Identifier: Apache-2.0
/* gpu_worker.c - see gpu_worker.h. All inputs of a tile go to the device, each once; there all
 * targets are made of them, a few at a time, rounded, and copied back into the same slots. What the
 * device counted of a block is used where the block was summed; blocks that are equal in all inputs
 * are copied here, as the processor does it, so that the bytes are the same. */
#include "gpu/gpu_worker.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/gpu_setup.h"
#include "sum_dtypes.h"
#include "tile.h"
#include "tile_blocks.h"

struct feed {
    struct phema_lane lane;
    size_t n_slots;
    size_t slot;      /* the next input's */
    uint32_t *places; /* [series->n] on the device, of the tile's inputs */
    uint32_t *inputs; /* [series->n] those of a group, in the order of the sum */
    struct phema_cuda_block *blocks;
};

struct feed *gpu_worker_open(const struct run *run, unsigned index)
{
    const struct gpu_run *gpu_run = run->gpu_run;
    struct feed *feed = calloc(1, sizeof(*feed));
    if (!feed)
        return NULL;
    feed->lane = phema_devices_lane(gpu_run->devices, index);
    feed->n_slots = gpu_run->fit.layout.n_slots;
    feed->places = calloc(run->plan->series->n, sizeof(*feed->places));
    feed->inputs = calloc(run->plan->series->n, sizeof(*feed->inputs));
    feed->blocks = calloc(gpu_run->fit.layout.n_blocks, sizeof(*feed->blocks));
    if (feed->places && feed->inputs && feed->blocks)
        return feed;
    gpu_worker_close(feed);
    return NULL;
}

void gpu_worker_close(struct feed *feed)
{
    if (!feed)
        return;
    free(feed->places);
    free(feed->inputs);
    free(feed->blocks);
    free(feed);
}

uint8_t *gpu_worker_slots(const struct feed *feed)
{
    return feed ? phema_lane_slots(&feed->lane) : NULL;
}

static size_t next_slot(const struct feed *feed, size_t slot)
{
    return slot + 1 < feed->n_slots ? slot + 1 : 0;
}

/* ---- Inputs ---- */

static void start_groups(struct worker *worker)
{
    for (size_t g = 0; g < worker->ruled->n_groups; g++) {
        const struct group *group = &worker->ruled->groups[g];
        struct group_state *state = &worker->states[g];
        memset(state->equals, group->sums_to_one && group->n_inputs > 0, worker->n_blocks);
        state->n_taken = state->n_added = 0;
        state->data = NULL;
    }
}

static bool is_next(const struct worker *worker, size_t g, size_t k)
{
    const struct group *group = &worker->ruled->groups[g];
    size_t at = worker->states[g].n_taken;
    return at < group->n_inputs && group->inputs[at] == k;
}

/* A group's first input is kept, the others are compared with it. */
static void compare_input(struct worker *worker, size_t k, const uint8_t *data,
                          enum phema_dtype dtype, size_t n_bytes)
{
    const struct run *run = worker->run;
    const struct rule_state *ruled = worker->ruled;
    for (size_t g = 0; g < ruled->n_groups; g++) {
        struct group_state *state = &worker->states[g];
        if (!is_next(worker, g, k))
            continue;
        if (state->n_taken++) {
            tile_blocks_compare(worker, state->equals, dtype, state->data, data);
            continue;
        }
        uint8_t *reference =
            worker->references + ruled->reference_of[g] * run->budget.buffers.reference;
        memcpy(reference, data, n_bytes);
        state->data = reference;
    }
}

/* The tile in snapshot k, if it is an input: into a slot, and on to the device. */
static enum phema_status feed_input(struct worker *worker, size_t k, uint64_t tile,
                                    const struct tile_range *piece, uint32_t *n_fed,
                                    struct phema_error *err)
{
    struct feed *feed = worker->feed;
    enum phema_dtype dtype = worker->run->plan->series->tensors[piece->tensor].tensor.dtype;
    size_t n_bytes = (size_t)phema_dtype_bytes(dtype, piece->n_elems);
    size_t slot = feed->slot;
    bool is_needed = false;
    for (size_t g = 0; g < worker->ruled->n_groups; g++)
        is_needed = is_needed || is_next(worker, g, k);
    const uint8_t *data = NULL;
    enum phema_status status = is_needed ? phema_lane_wait(&feed->lane, slot, err) : PHEMA_OK;
    if (!status)
        status = tile_read_in_order(&data, worker, k, tile, is_needed, piece, slot, err);
    if (status || !data || worker->is_abandoned)
        return status;
    uint8_t *start = worker->slots + slot * worker->run->budget.buffers.slot;
    if (data < start || data >= start + worker->run->budget.buffers.slot) { /* a view of a file */
        memcpy(start, data, n_bytes);
        data = start;
    }
    compare_input(worker, k, data, dtype, n_bytes);
    feed->places[k] = *n_fed;
    feed->slot = next_slot(feed, slot);
    return phema_lane_feed(&feed->lane, slot, data, n_bytes, (*n_fed)++, err);
}

/* ---- Results ---- */

/* A block that is equal in all inputs: converted and counted like all others, and its own bytes
 * where the dtype stays. */
static void restore_block(struct phema_narrow_counts *counts, const struct worker *worker, size_t b,
                          const struct tile_range *piece, const uint8_t *data, uint8_t *row)
{
    const struct run *run = worker->run;
    enum phema_dtype from = run->plan->series->tensors[piece->tensor].tensor.dtype;
    enum phema_dtype to = run->outputs->dtypes[piece->tensor];
    struct block block = worker->blocks[b];
    const uint8_t *source = data + phema_dtype_bytes(from, block.first);
    uint8_t *target = row + phema_dtype_bytes(to, block.first);
    double sums[2 * BLOCK_ELEMS]; /* which hold it exactly */
    block.first = 0;
    block_restore(sums, PHEMA_ACCUMULATE_F64, from, &block, source);
    phema_narrow(run->backend, target, part_dtype(to), PHEMA_ACCUMULATE_F64, sums,
                 block.n_elems * parts_of(from),
                 run->options.overflow == PHEMA_OVERFLOW_SATURATES ? PHEMA_OVERFLOW_SATURATE
                                                                   : PHEMA_OVERFLOW_INF,
                 counts);
    if (from == to)
        memcpy(target, source, (size_t)phema_dtype_bytes(from, block.n_elems));
}

/* What a row that came back holds of one tensor, with its equal blocks restored; found: the
 * device's counts of the row's blocks. */
static struct phema_narrow_counts finish_part(const struct worker *worker, size_t first, size_t end,
                                              const struct tile_range *piece,
                                              const struct group_state *state, uint8_t *row,
                                              const struct phema_cuda_counts *found)
{
    struct phema_narrow_counts counts = {0, 0, 0};
    for (size_t b = first; b < end; b++) {
        struct phema_narrow_counts more = {found[b].n_overflow, found[b].n_nan, found[b].n_inf};
        if (state->data && state->equals[b])
            restore_block(&counts, worker, b, piece, state->data, row);
        else
            counts_add(&counts, &more);
    }
    return counts;
}

/* One row of sums, to all outputs that it is for. */
static enum phema_status put_row(struct worker *worker, size_t g, size_t row_index,
                                 const struct tile_range *piece, uint8_t *row,
                                 const struct phema_cuda_counts *found, struct phema_error *err)
{
    const struct group *group = &worker->ruled->groups[g];
    const struct group_state *state = &worker->states[g];
    struct phema_narrow_counts total = {0, 0, 0};
    enum phema_status status = PHEMA_OK;
    for (size_t b = 0; b < worker->n_blocks && !status;) {
        size_t first = b;
        struct block part = tile_blocks_next_part(worker, &b);
        struct phema_narrow_counts counts = finish_part(worker, first, b, piece, state, row, found);
        bool is_any = counts.n_overflow || counts.n_nan || counts.n_inf;
        for (size_t j = 0; j < group->n_targets && is_any && !status; j++)
            if (group->rows[j] == row_index)
                status = tile_check_values(worker, group->targets[j], part.tensor, &counts, err);
        counts_add(&total, &counts);
    }
    for (size_t j = 0; j < group->n_targets && !status; j++) {
        if (group->rows[j] != row_index)
            continue;
        counts_add(&worker->counts, &total);
        if (worker->accounts)
            counts_add(&worker->accounts[group->targets[j]].counts, &total);
        status = tile_write(worker, group->targets[j], piece, row, err);
    }
    return status;
}

/* Rows [first, first + n) of a group, which the device is making: while one is put others are on
 * their way. */
static enum phema_status put_rows(struct worker *worker, size_t g, size_t first, size_t n,
                                  const struct tile_range *piece, struct phema_error *err)
{
    struct feed *feed = worker->feed;
    enum phema_dtype dtype = worker->run->outputs->dtypes[piece->tensor];
    uint64_t n_bytes = phema_dtype_bytes(dtype, piece->n_elems);
    const struct phema_cuda_counts *counts = phema_lane_counts(&feed->lane);
    enum phema_status status = PHEMA_OK;
    size_t n_asked = 0, asked_slot = 0, slot = 0;
    for (size_t r = 0; r < n && !status; r++) {
        for (; n_asked < n && n_asked < r + feed->n_slots && !status; n_asked++) {
            status = phema_lane_wait(&feed->lane, asked_slot, err);
            if (!status)
                status = phema_lane_fetch(&feed->lane, n_asked, n_bytes, asked_slot, err);
            asked_slot = next_slot(feed, asked_slot);
        }
        if (!status)
            status = phema_lane_wait(&feed->lane, slot, err);
        if (!status)
            status = put_row(worker, g, first + r, piece,
                             worker->slots + slot * worker->run->budget.buffers.slot,
                             counts + r * worker->n_blocks, err);
        slot = next_slot(feed, slot);
    }
    return status;
}

static struct phema_cuda_job job_of(const struct worker *worker, size_t g,
                                    const struct tile_range *piece)
{
    const struct run *run = worker->run;
    const struct feed *feed = worker->feed;
    const struct group *group = &worker->ruled->groups[g];
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    for (size_t i = 0; i < group->n_inputs; i++)
        feed->inputs[i] = feed->places[group->inputs[i]];
    return (struct phema_cuda_job){
        .input = phema_device_dtype(dtype),
        .output = phema_device_dtype(run->outputs->dtypes[piece->tensor]),
        .is_f64 = sum_dtype_of(run, group, piece->tensor) == PHEMA_ACCUMULATE_F64,
        .saturates = run->options.overflow == PHEMA_OVERFLOW_SATURATES,
        .inputs = feed->inputs,
        .stride = group->n_rows,
        .n_inputs = group->n_inputs,
        .blocks = feed->blocks,
        .n_blocks = worker->n_blocks,
        .n_numbers = piece->n_elems * parts_of(dtype),
    };
}

/* As many targets at a time as there are rows for, all of the inputs that are there. */
static enum phema_status finish_group(struct worker *worker, size_t g,
                                      const struct tile_range *piece, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct group *group = &worker->ruled->groups[g];
    size_t most = run->gpu_run->fit.layout.n_rows;
    struct phema_cuda_job job = job_of(worker, g, piece);
    tile_blocks_mark_varying(worker, worker->states[g].equals);
    enum phema_status status = PHEMA_OK;
    for (size_t first = 0; first < group->n_rows && !status; first += most) {
        size_t n = group->n_rows - first < most ? group->n_rows - first : most;
        job.weights = group->weights + first;
        job.n_rows = n;
        job.uses_blas = run->options.device.uses_blas && n > PHEMA_CUDA_GROUP;
        status = phema_lane_average(&worker->feed->lane, &job, err);
        if (!status)
            status = put_rows(worker, g, first, n, piece, err);
    }
    return status;
}

static void list_blocks(const struct worker *worker, const struct tile_range *piece)
{
    enum phema_dtype dtype = worker->run->plan->series->tensors[piece->tensor].tensor.dtype;
    uint32_t parts = (uint32_t)parts_of(dtype);
    for (size_t b = 0; b < worker->n_blocks; b++) {
        const struct block *block = &worker->blocks[b];
        worker->feed->blocks[b] = (struct phema_cuda_block){(uint32_t)block->first * parts,
                                                            (uint32_t)block->n_elems * parts};
    }
}

PHEMA_FALLIBLE gpu_worker_sum_tile(struct worker *worker, uint64_t tile,
                                   const struct tile_range *piece, struct phema_error *err)
{
    start_groups(worker);
    list_blocks(worker, piece);
    uint32_t n_fed = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < worker->run->plan->series->n && !status && !worker->is_abandoned; k++)
        status = feed_input(worker, k, tile, piece, &n_fed, err);
    if (worker->is_abandoned)
        return status;
    for (size_t g = 0; g < worker->ruled->n_groups && !status; g++)
        status = finish_group(worker, g, piece, err);
    return status;
}
