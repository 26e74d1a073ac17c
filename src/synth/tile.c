// SPDX-License-Identifier: Apache-2.0
/* tile.c - one tile: copied, or summed on the CPU or a GPU. If all inputs are views of mapped files
 * they are summed together. If one has to be copied first (strided, in chunks, compressed, read), a
 * few inputs at a time are read, each once for all targets. Both ways give the same bits. Blocks
 * that are equal in all inputs are copied instead, provided that the weights sum to 1: so masks,
 * frozen layers and infinities do not change. */
#include "tile.h"

#include <string.h>

#include "gpu/gpu_run.h"
#include "input_digests.h"
#include "new_scales.h"
#include "read_ahead.h"

/* Views are hashed after they were summed, since the kernels prefetch their cache lines. They are
 * so few at a time that tile and sums are still in the L2 cache. */
#define FEW_VIEWS ((size_t)4)

/* ---- Groups of targets ---- */

/* Puts an equal block into a row of sums, so that it is converted and counted like all others. */
static void restore_block(void *row, const struct group_state *state, enum phema_dtype dtype,
                          const struct block *block)
{
    const uint8_t *data = state->data + phema_dtype_bytes(dtype, block->first);
    size_t n = block->n_elems * phema_dtype_n_parts(dtype);
    size_t at = block->first * phema_dtype_n_parts(dtype);
    if (state->accumulator == PHEMA_ACCUMULATE_F64) {
        phema_widen((double *)row + at, phema_dtype_of_parts(dtype), data, n);
        return;
    }
    double values[2 * BLOCK_ELEMS];
    phema_widen(values, phema_dtype_of_parts(dtype), data, n);
    for (size_t i = 0; i < n; i++)
        ((float *)row)[at + i] = (float)values[i];
}

/* Writes a row of sums to its output. Equal blocks keep even the bits of their NaNs. */
static enum phema_status write_row(struct worker *worker, size_t output, void *row,
                                   const struct group_state *state, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct tile_range *range = &worker->range;
    for (size_t b = 0; b < worker->n_blocks && state->data; b++)
        if (state->equals[b])
            restore_block(row, state, range->dtype, &worker->blocks[b]);
    if (run->is_measuring) {
        new_scales_note(run, output, range, row, state->accumulator);
        return PHEMA_OK;
    }
    enum phema_status status = tile_narrow(worker, output, row, state->accumulator, err);
    if (status)
        return status;
    bool is_same_dtype = run->outputs->dtypes[range->tensor] == range->dtype;
    for (size_t b = 0; b < worker->n_blocks && state->data && is_same_dtype; b++) {
        const struct block *block = &worker->blocks[b];
        uint64_t at = phema_dtype_bytes(range->dtype, block->first);
        if (state->equals[b])
            memcpy(worker->written + at, state->data + at,
                   (size_t)phema_dtype_bytes(range->dtype, block->n_elems));
    }
    return tile_write(worker, output, worker->written, err);
}

/* Returns the end of the group's sums. */
static uint8_t *start_group(struct worker *worker, size_t g, uint8_t *sums)
{
    struct group_state *state = tile_start_group(worker, g);
    state->accumulator = sum_dtype_of(worker->run, state->group, worker->range.tensor);
    state->row_bytes = worker->run->budget.sum_elems * phema_accumulator_size(state->accumulator);
    state->sums = sums;
    memset(sums, 0, state->group->n_rows * state->row_bytes);
    return sums + state->group->n_rows * state->row_bytes;
}

static enum phema_status finish_group(struct worker *worker, size_t g, struct phema_error *err)
{
    const struct group_state *state = &worker->states[g];
    const struct group *group = state->group;
    tile_mark_varying(worker, state);
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < group->n_targets && !status; j++)
        status = write_row(worker, group->targets[j],
                           state->sums + group->rows[j] * state->row_bytes, state, err);
    return status;
}

/* Adds the next n inputs of a group to its sums. */
static void add_inputs(const struct worker *worker, struct group_state *state,
                       const uint8_t *const *inputs, size_t n)
{
    const struct tile_range *range = &worker->range;
    const struct group *group = state->group;
    struct phema_tile tile = {.inputs = inputs,
                              .weights = group->weights + state->n_added * group->n_rows,
                              .n_inputs = n,
                              .n_targets = group->n_rows,
                              .n_elems = (size_t)range->n_elems * phema_dtype_n_parts(range->dtype),
                              .dtype = phema_dtype_of_parts(range->dtype)};
    phema_accumulate(worker->run->backend, state->accumulator, state->sums, state->row_bytes,
                     &tile);
    state->n_added += n;
}

/* ---- Views ---- */

/* Views are hashed once, for the first group that they are inputs of. */
static bool is_input_of_earlier_group(const struct worker *worker, size_t g, size_t k)
{
    for (size_t h = 0; h < g; h++)
        if (group_has_input(&worker->rule->groups[h], k))
            return true;
    return false;
}

/* All inputs of group g are views. */
static enum phema_status sum_views(struct worker *worker, size_t g, struct phema_error *err)
{
    (void)start_group(worker, g, worker->sums); /* one group after another */
    struct group_state *state = &worker->states[g];
    const struct group *group = state->group;
    size_t most = group->n_rows > FEW_TARGETS ? MAX_SLOTS : FEW_VIEWS;
    size_t n_at_once = worker->digests && most < group->n_inputs ? most : group->n_inputs;
    for (size_t x = 0; x < group->n_inputs; x += n_at_once) {
        size_t end = group->n_inputs - x < n_at_once ? group->n_inputs : x + n_at_once;
        for (size_t i = x; i < end; i++) {
            enum phema_status status =
                tile_read(&worker->inputs[i], worker, group->inputs[i], 0, err);
            if (status)
                return status;
            tile_compare(worker, state, worker->inputs[0], worker->inputs[i]);
        }
        add_inputs(worker, state, worker->inputs + x, end - x);
        for (size_t i = x; i < end && worker->digests; i++)
            if (!is_input_of_earlier_group(worker, g, group->inputs[i]))
                input_digests_add(worker, group->inputs[i], worker->inputs[i]);
    }
    state->data = worker->inputs[0];
    return finish_group(worker, g, err);
}

static bool are_views(const struct run *run, size_t i)
{
    const struct phema_series *series = run->plan->series;
    if (run->result->n_read + run->result->n_direct)
        return false;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_tensor_location *place = &series->snapshots[k].locations[i];
        if (series->snapshots[k].is_compressed || !phema_location_is_plain(place))
            return false;
    }
    return true;
}

/* ---- Copies in slots ---- */

/* Adds to each group its inputs among the snapshots before `end` that were not added yet. Then the
 * buffers of a batch serve reads again. */
static void add_batch(struct worker *worker, size_t end)
{
    for (size_t g = 0; g < worker->rule->n_groups; g++) {
        struct group_state *state = &worker->states[g];
        const struct group *group = state->group;
        const uint8_t *inputs[MAX_SLOTS];
        size_t n = 0;
        for (size_t x = state->n_added; x < group->n_inputs && group->inputs[x] < end; x++) {
            inputs[n] = worker->inputs[group->inputs[x]];
            tile_compare_copy(worker, state, inputs[n++]);
        }
        if (n)
            add_inputs(worker, state, inputs, n);
    }
    read_ahead_release(worker->ahead, worker->tile);
}

/* Some inputs have to be copied: as many at a time as there are slots. A batch does not wait for
 * more inputs while others could be read into its buffers. */
static enum phema_status sum_in_order(struct worker *worker, struct phema_error *err)
{
    const struct run *run = worker->run;
    size_t n_batch = 0;
    uint8_t *sums = worker->sums; /* all groups are summed at once */
    for (size_t g = 0; g < worker->rule->n_groups; g++)
        sums = start_group(worker, g, sums);
    for (size_t k = 0; k < run->plan->series->n; k++) {
        const uint8_t *data = NULL;
        bool is_full = n_batch == run->budget.buffers.n_slots;
        if (is_full || (n_batch && !read_ahead_has_next(worker->ahead))) {
            add_batch(worker, k);
            n_batch = 0;
        }
        enum phema_status status =
            tile_read_in_order(&data, worker, k, tile_claim_input(worker, k), n_batch, err);
        if (status || worker->is_abandoned)
            return status;
        if (!data)
            continue;
        worker->inputs[k] = data;
        n_batch++;
    }
    add_batch(worker, run->plan->series->n);
    enum phema_status status = PHEMA_OK;
    for (size_t g = 0; g < worker->rule->n_groups && !status; g++)
        status = finish_group(worker, g, err);
    return status;
}

/* ---- Tensors that are copied ---- */

static enum phema_status write_copy(struct worker *worker, const struct group *group,
                                    const uint8_t *data, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct tile_range *range = &worker->range;
    bool is_converted = run->outputs->dtypes[range->tensor] != range->dtype;
    if (is_converted)
        phema_widen(worker->sums, phema_dtype_of_parts(range->dtype), data,
                    (size_t)range->n_elems * phema_dtype_n_parts(range->dtype));
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < group->n_targets && !status; j++) {
        size_t output = group->targets[j];
        bool is_scale = new_scales_fill(run, output, range, worker->written);
        if (is_converted)
            status = tile_narrow(worker, output, worker->sums, PHEMA_ACCUMULATE_F64, err);
        if (!status)
            status =
                tile_write(worker, output, is_converted || is_scale ? worker->written : data, err);
    }
    return status;
}

/* Reads one input after the other, and writes those that are copied. A tile that is left out, or
 * read for the fingerprints alone, is not written. */
static enum phema_status copy_tile(struct worker *worker, bool is_included, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct phema_series *series = run->plan->series;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < series->n && !status && !worker->is_abandoned; k++) {
        bool is_needed = is_included && run_has_input(run, worker->range.tensor, k);
        const uint8_t *data = NULL;
        if (is_needed || series->snapshots[k].is_compressed)
            status = tile_read_in_order(&data, worker, k, is_needed, 0, err);
        if (!data || status)
            continue;
        for (size_t g = 0; g < worker->rule->n_groups && !run->is_rereading && !status; g++)
            if (worker->rule->groups[g].newest == k)
                status = write_copy(worker, &worker->rule->groups[g], data, err);
        read_ahead_release(worker->ahead, worker->tile);
    }
    return status;
}

PHEMA_FALLIBLE tile_process(struct worker *worker, bool is_included, struct phema_error *err)
{
    const struct run *run = worker->run;
    size_t tensor = worker->range.tensor;
    if (!is_included)
        return copy_tile(worker, false, err);
    tile_begin(worker);
    read_ahead_begin_tile(worker->ahead, worker->tile);
    if (run->is_rereading || run->plan->series->tensors[tensor].rule == PHEMA_RULE_COPY)
        return copy_tile(worker, true, err);
    if (gpu_can_sum(run, tensor))
        return gpu_worker_sum_tile(worker, err);
    if (!are_views(run, tensor))
        return sum_in_order(worker, err);
    enum phema_status status = PHEMA_OK;
    for (size_t g = 0; g < worker->rule->n_groups && !status; g++)
        status = sum_views(worker, g, err);
    return status;
}
