// SPDX-License-Identifier: Apache-2.0
/* tile_blocks.c - blocks equal in all inputs are copied instead of summed. */
#include "tile_blocks.h"

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

void tile_blocks_compare(const struct worker *worker, uint8_t *equals, enum phema_dtype dtype,
                         const uint8_t *a, const uint8_t *b)
{
    if (a == b || !memchr(equals, true, worker->n_blocks))
        return;
    for (size_t x = 0; x < worker->n_blocks; x++) {
        if (!equals[x])
            continue;
        /* most differ in their first bytes: one short comparison */
        const struct block *block = &worker->blocks[x];
        uint64_t at = phema_dtype_bytes(dtype, block->first);
        equals[x] = memcmp(a + at, b + at, (size_t)phema_dtype_bytes(dtype, block->n_elems)) == 0;
    }
}

void tile_blocks_mark_varying(const struct worker *worker, const uint8_t *equals)
{
    for (size_t b = 0; b < worker->n_blocks; b++) {
        _Atomic uint8_t *varies = &worker->run->varies[worker->blocks[b].tensor];
        if (!equals[b] && !atomic_load_explicit(varies, memory_order_relaxed))
            atomic_store_explicit(varies, true, memory_order_relaxed);
    }
}

void block_restore(void *row, enum phema_accumulator accumulator, enum phema_dtype dtype,
                   const struct block *block, const uint8_t *data)
{
    double values[2 * BLOCK_ELEMS];
    size_t n = block->n_elems * components_of(dtype);
    size_t at = block->first * components_of(dtype);
    phema_widen(values, component_dtype(dtype), data + phema_dtype_bytes(dtype, block->first), n);
    if (accumulator == PHEMA_ACCUMULATE_F64) {
        memcpy((double *)row + at, values, n * sizeof(*values));
        return;
    }
    for (size_t i = 0; i < n; i++)
        ((float *)row)[at + i] = (float)values[i];
}
