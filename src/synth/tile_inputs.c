// SPDX-License-Identifier: Apache-2.0
/* tile_inputs.c - the current tile in the snapshots: reads it, and finds the blocks that are equal
 * in all of them. */
#include "tile.h"

#include <string.h>

#include "decode_order.h"
#include "input_digests.h"
#include "read_ahead.h"

/* ---- Reading ---- */

/* Decodes tensor by tensor, so that an error names the damaged one. */
static enum phema_status read_compressed(const struct worker *worker, size_t k, uint8_t *slot,
                                         struct phema_error *err)
{
    const struct tile_range *range = &worker->range;
    enum phema_status status = PHEMA_OK;
    for (size_t b = 0; b < worker->n_blocks && !status;) {
        struct block slice = next_tensor(worker, &b);
        struct phema_tensor tensor =
            phema_series_tensor_in(worker->run->plan->series, k, slice.tensor);
        const uint8_t *copy = NULL; /* in the slot */
        status = phema_reader_read(&copy, worker->readers[k], &tensor,
                                   slice.tensor == range->tensor ? range->first : 0, slice.n_elems,
                                   slot + phema_dtype_bytes(tensor.dtype, slice.first), err);
    }
    return status;
}

PHEMA_FALLIBLE tile_read(const uint8_t **data, const struct worker *worker, size_t k, size_t slot,
                         struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct tile_range *range = &worker->range;
    struct phema_tensor tensor = run_tile_tensor(run, k, range);
    const uint8_t *found = NULL;
    enum phema_status status = read_ahead_take(&found, worker->ahead, k, range, err);
    if (status)
        return status;
    if (found && !phema_tensor_is_converted(&tensor)) {
        *data = found;
        return PHEMA_OK;
    }
    if (run_reads_ahead(run) && !run->budget.buffers.copied) /* there are no slots */
        return phema_fail(err, PHEMA_BUG, "a tile of snapshot %zu was not read ahead", k);
    uint8_t *copy = worker->slots + slot * run->budget.buffers.slot;
    if (found)
        return phema_reader_convert(data, worker->readers[k], &tensor, range->first, range->n_elems,
                                    found, copy, err);
    if (tensor.is_compressed) {
        *data = copy;
        return read_compressed(worker, k, copy, err);
    }
    return phema_reader_read(data, worker->readers[k], &tensor, range->first, range->n_elems, copy,
                             err);
}

PHEMA_FALLIBLE tile_read_in_order(const uint8_t **data, struct worker *worker, size_t k,
                                  bool is_needed, size_t slot, struct phema_error *err)
{
    const struct run *run = worker->run;
    bool has_turns = run->decode_order && run->plan->series->snapshots[k].is_compressed;
    if (has_turns && !decode_order_acquire(run->decode_order, k, worker->tile)) {
        worker->is_abandoned = true;
        return PHEMA_OK;
    }
    enum phema_status status = is_needed ? tile_read(data, worker, k, slot, err) : PHEMA_OK;
    if (status)
        return status;
    if (has_turns)
        decode_order_release(run->decode_order, k, worker->tile);
    if (is_needed) /* a copy is still in the CPU cache */
        input_digests_add(worker, k, *data);
    return PHEMA_OK;
}

bool tile_claim_input(struct worker *worker, size_t k)
{
    bool is_needed = false;
    for (size_t g = 0; g < worker->rule->n_groups; g++) {
        struct group_state *state = &worker->states[g];
        if (state->n_claimed < state->group->n_inputs &&
            state->group->inputs[state->n_claimed] == k) {
            state->n_claimed++;
            is_needed = true;
        }
    }
    return is_needed;
}

/* ---- Blocks ---- */

void tile_begin(struct worker *worker)
{
    const struct phema_series *series = worker->run->plan->series;
    const struct tile_range *range = &worker->range;
    uint64_t skipped = range->first; /* elements of the tensor run before the tile */
    size_t at = 0;
    worker->rule = run_rule_of(worker->run, range->tensor);
    worker->n_blocks = 0;
    for (size_t t = 0; at < range->n_elems; t++) {
        size_t tensor = range->tensors[t];
        uint64_t left = series->tensors[tensor].tensor.n_elems;
        if (skipped >= left) {
            skipped -= left;
            continue;
        }
        left -= skipped;
        skipped = 0;
        while (left && at < range->n_elems) {
            struct block block = {tensor, at, (size_t)range->n_elems - at};
            block.n_elems = block.n_elems < left ? block.n_elems : (size_t)left;
            block.n_elems = block.n_elems < BLOCK_ELEMS ? block.n_elems : BLOCK_ELEMS;
            worker->blocks[worker->n_blocks++] = block;
            left -= block.n_elems;
            at += block.n_elems;
        }
    }
}

struct group_state *tile_start_group(struct worker *worker, size_t g)
{
    const struct group *group = &worker->rule->groups[g];
    struct group_state *state = &worker->states[g];
    memset(state->equals, group->sums_to_one && group->n_inputs > 0, worker->n_blocks);
    state->group = group;
    state->n_claimed = state->n_added = 0;
    state->data = NULL;
    return state;
}

void tile_compare(const struct worker *worker, const struct group_state *state, const uint8_t *a,
                  const uint8_t *b)
{
    enum phema_dtype dtype = worker->range.dtype;
    uint8_t *equals = state->equals;
    if (a == b || !memchr(equals, true, worker->n_blocks))
        return;
    for (size_t x = 0; x < worker->n_blocks; x++) {
        if (!equals[x])
            continue;
        /* most differ in their first bytes: one short comparison */
        const struct block *block = &worker->blocks[x];
        uint64_t at = phema_dtype_bytes(dtype, block->first);
        size_t size = (size_t)phema_dtype_bytes(dtype, block->n_elems);
        equals[x] = memcmp(a + at, b + at, size) == 0;
    }
}

void tile_compare_copy(const struct worker *worker, struct group_state *state, const uint8_t *data)
{
    if (state->data) {
        tile_compare(worker, state, state->data, data);
        return;
    }
    size_t reference = state->group->reference * worker->run->budget.buffers.reference;
    state->data = memcpy(worker->references + reference, data,
                         (size_t)phema_dtype_bytes(worker->range.dtype, worker->range.n_elems));
}

void tile_mark_varying(const struct worker *worker, const struct group_state *state)
{
    for (size_t b = 0; b < worker->n_blocks; b++) {
        _Atomic uint8_t *varies = &worker->run->varies[worker->blocks[b].tensor];
        if (!state->equals[b] && !atomic_load_explicit(varies, memory_order_relaxed))
            atomic_store_explicit(varies, true, memory_order_relaxed);
    }
}
