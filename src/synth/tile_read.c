// SPDX-License-Identifier: Apache-2.0
/* tile_read.c - one tile of one snapshot. */
#include "tile.h"

#include "input_digests.h"
#include "read_ahead.h"

/* Decodes tensor by tensor, so that an error names the damaged one. */
static enum phema_status read_compressed(const struct worker *worker, size_t k,
                                         const struct tile_range *range, uint8_t *slot,
                                         struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_status status = PHEMA_OK;
    for (size_t b = 0; b < worker->n_blocks && !status;) {
        struct block slice = tile_blocks_next_tensor(worker, &b);
        struct phema_tensor tensor = phema_series_tensor_in(run->plan->series, k, slice.tensor);
        const uint8_t *copy = NULL; /* in the slot */
        status = phema_reader_read(&copy, worker->readers[k], &tensor,
                                   slice.tensor == range->tensor ? range->first : 0, slice.n_elems,
                                   slot + phema_dtype_bytes(tensor.dtype, slice.first), err);
    }
    return status;
}

PHEMA_FALLIBLE tile_read(const uint8_t **data, const struct worker *worker, size_t k,
                         const struct tile_range *range, size_t slot, struct phema_error *err)
{
    const struct run *run = worker->run;
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
        return read_compressed(worker, k, range, copy, err);
    }
    return phema_reader_read(data, worker->readers[k], &tensor, range->first, range->n_elems, copy,
                             err);
}

PHEMA_FALLIBLE tile_read_in_order(const uint8_t **data, struct worker *worker, size_t k,
                                  uint64_t tile, bool is_needed, const struct tile_range *range,
                                  size_t slot, struct phema_error *err)
{
    struct run *run = worker->run;
    bool has_turns = run->decode_order && run->plan->series->snapshots[k].is_compressed;
    if (has_turns && !decode_order_acquire(run->decode_order, k, tile)) {
        worker->is_abandoned = true;
        return PHEMA_OK;
    }
    enum phema_status status = is_needed ? tile_read(data, worker, k, range, slot, err) : PHEMA_OK;
    if (status)
        return status;
    if (has_turns)
        decode_order_release(run->decode_order, k, tile);
    if (is_needed) /* a copy is still in the CPU cache */
        input_digests_add(worker, k, range, *data);
    return PHEMA_OK;
}

bool tile_claim_input(struct worker *worker, size_t k)
{
    bool is_needed = false;
    for (size_t g = 0; g < worker->rule->n_groups; g++) {
        const struct group *group = &worker->rule->groups[g];
        struct group_state *state = &worker->states[g];
        if (state->n_claimed < group->n_inputs && group->inputs[state->n_claimed] == k) {
            state->n_claimed++;
            is_needed = true;
        }
    }
    return is_needed;
}

PHEMA_FALLIBLE tile_skip(struct worker *worker, uint64_t tile, struct phema_error *err)
{
    const struct phema_series *series = worker->run->plan->series;
    enum phema_status status = PHEMA_OK;
    const uint8_t *data = NULL;
    for (size_t k = 0; k < series->n && !status && !worker->is_abandoned; k++)
        if (series->snapshots[k].is_compressed)
            status = tile_read_in_order(&data, worker, k, tile, false, NULL, 0, err);
    return status;
}
