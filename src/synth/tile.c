// SPDX-License-Identifier: Apache-2.0
/* tile.c - one tile: what of it is read of each snapshot, and in its turn; copies; and who makes
 * averages. */
#include "tile.h"

#include "gpu/gpu_setup.h"
#include "gpu/gpu_worker.h"
#include "input_digests.h"
#include "tile_blocks.h"

/* ---- Reading ---- */

/* Tensor by tensor, so that what is damaged is called by its name. */
static enum phema_status read_decoded(const struct worker *worker, size_t k,
                                      const struct tile_range *piece, uint8_t *slot,
                                      struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_status status = PHEMA_OK;
    for (size_t b = 0; b < worker->n_blocks && !status;) {
        struct block part = tile_blocks_next_part(worker, &b);
        struct phema_tensor tensor = phema_series_tensor_in(run->plan->series, k, part.tensor);
        const uint8_t *copy = NULL; /* in the slot */
        status = phema_reader_read(&copy, run->readers[k], &tensor,
                                   part.tensor == piece->tensor ? piece->first : 0, part.n_elems,
                                   slot + phema_dtype_bytes(tensor.dtype, part.first), err);
    }
    return status;
}

PHEMA_FALLIBLE tile_read(const uint8_t **data, const struct worker *worker, size_t k,
                         const struct tile_range *piece, size_t slot, struct phema_error *err)
{
    const struct run *run = worker->run;
    struct phema_tensor tensor = phema_series_tensor_in(run->plan->series, k, piece->tensor);
    uint8_t *copy = worker->slots + slot * run->budget.buffers.slot;
    if (tensor.is_compressed) {
        *data = copy;
        return read_decoded(worker, k, piece, copy, err);
    }
    if (piece->n_tensors > 1) { /* the stretch, as far as the tile goes, is one tensor */
        tensor.n_elems = piece->first + piece->n_elems;
        tensor.size_bytes = phema_dtype_bytes(tensor.dtype, tensor.n_elems);
    }
    return phema_reader_read(data, run->readers[k], &tensor, piece->first, piece->n_elems, copy,
                             err);
}

PHEMA_FALLIBLE tile_read_in_order(const uint8_t **data, struct worker *worker, size_t k,
                                  uint64_t tile, bool is_needed, const struct tile_range *piece,
                                  size_t slot, struct phema_error *err)
{
    struct run *run = worker->run;
    bool is_compressed = run->plan->series->snapshots[k].is_compressed;
    if (is_compressed && !decode_order_acquire(run->turns, k, tile)) {
        worker->is_abandoned = true;
        return PHEMA_OK;
    }
    enum phema_status status = is_needed ? tile_read(data, worker, k, piece, slot, err) : PHEMA_OK;
    if (is_compressed && !status)
        decode_order_release(run->turns, k, tile);
    if (is_needed && !status) /* what was copied is still in the cache */
        input_digests_add(worker, k, piece, *data);
    return status;
}

/* ---- Tensors that are copied ---- */

static enum phema_status put_copy(struct worker *worker, const struct group *group,
                                  const struct tile_range *piece, const uint8_t *data,
                                  struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    bool is_converted = run->outputs->dtypes[piece->tensor] != dtype;
    if (is_converted)
        phema_widen(worker->sums, part_dtype(dtype), data,
                    (size_t)piece->n_elems * parts_of(dtype));
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < group->n_targets && !status; j++) {
        if (is_converted)
            status = tile_narrow(worker, group->targets[j], piece, worker->sums,
                                 PHEMA_ACCUMULATE_F64, err);
        if (!status)
            status = tile_write(worker, group->targets[j], piece,
                                is_converted ? worker->written : data, err);
    }
    return status;
}

static enum phema_status copy_tile(struct worker *worker, uint64_t tile,
                                   const struct tile_range *piece, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct rule_state *ruled = worker->ruled;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < run->plan->series->n && !status && !worker->is_abandoned; k++) {
        bool is_needed = false;
        for (size_t g = 0; g < ruled->n_groups; g++)
            is_needed = is_needed || ruled->groups[g].newest == k;
        const uint8_t *data = NULL;
        if (is_needed || run->plan->series->snapshots[k].is_compressed)
            status = tile_read_in_order(&data, worker, k, tile, is_needed, piece, 0, err);
        for (size_t g = 0; g < ruled->n_groups && data && !status; g++)
            if (ruled->groups[g].newest == k)
                status = put_copy(worker, &ruled->groups[g], piece, data, err);
    }
    return status;
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

PHEMA_FALLIBLE tile_process(struct worker *worker, uint64_t tile, const struct tile_range *piece,
                            struct phema_error *err)
{
    tile_blocks_list(worker, piece);
    worker->ruled = run_rule_of(worker->run, piece->tensor);
    if (worker->run->plan->series->tensors[piece->tensor].rule == PHEMA_RULE_COPY)
        return copy_tile(worker, tile, piece, err);
    if (gpu_can_sum(worker->run, piece->tensor))
        return gpu_worker_sum_tile(worker, tile, piece, err);
    return tile_average(worker, tile, piece, err);
}
