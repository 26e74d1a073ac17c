// SPDX-License-Identifier: Apache-2.0
/* tile_blocks.c - blocks equal in all inputs are copied instead of summed. */
#include "tile.h"

#include <string.h>

void tile_blocks_list(struct worker *worker, const struct tile_range *range)
{
    const struct phema_series *series = worker->run->plan->series;
    uint64_t skipped = range->first; /* elements of the tensor run before the tile */
    size_t at = 0;
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

struct block tile_blocks_next_tensor(const struct worker *worker, size_t *b)
{
    struct block slice = worker->blocks[(*b)++];
    for (; *b < worker->n_blocks && worker->blocks[*b].tensor == slice.tensor; ++*b)
        slice.n_elems += worker->blocks[*b].n_elems;
    return slice;
}

void tile_blocks_start_group(struct worker *worker, size_t g)
{
    const struct group *group = &worker->rule->groups[g];
    struct group_state *state = &worker->states[g];
    memset(state->equals, group->sums_to_one && group->n_inputs > 0, worker->n_blocks);
    state->n_claimed = state->n_added = 0;
    state->data = NULL;
}

void tile_blocks_compare(const struct worker *worker, size_t g, const struct tile_range *range,
                         const uint8_t *a, const uint8_t *b)
{
    uint8_t *equals = worker->states[g].equals;
    if (a == b || !memchr(equals, true, worker->n_blocks))
        return;
    for (size_t x = 0; x < worker->n_blocks; x++) {
        if (!equals[x])
            continue;
        /* most differ in their first bytes: one short comparison */
        const struct block *block = &worker->blocks[x];
        uint64_t at = phema_dtype_bytes(range->dtype, block->first);
        size_t size = (size_t)phema_dtype_bytes(range->dtype, block->n_elems);
        equals[x] = memcmp(a + at, b + at, size) == 0;
    }
}

void tile_blocks_compare_copy(struct worker *worker, size_t g, const struct tile_range *range,
                              const uint8_t *data)
{
    struct group_state *state = &worker->states[g];
    if (state->data) {
        tile_blocks_compare(worker, g, range, state->data, data);
        return;
    }
    size_t reference = worker->rule->groups[g].reference * worker->run->budget.buffers.reference;
    state->data = memcpy(worker->references + reference, data,
                         (size_t)phema_dtype_bytes(range->dtype, range->n_elems));
}

void tile_blocks_mark_varying(const struct worker *worker, size_t g)
{
    const uint8_t *equals = worker->states[g].equals;
    for (size_t b = 0; b < worker->n_blocks; b++) {
        _Atomic uint8_t *varies = &worker->run->varies[worker->blocks[b].tensor];
        if (!equals[b] && !atomic_load_explicit(varies, memory_order_relaxed))
            atomic_store_explicit(varies, true, memory_order_relaxed);
    }
}
