// SPDX-License-Identifier: Apache-2.0
/* tile.c - one tile: copied, summed on the CPU or summed on a GPU. */
#include "tile.h"

#include "gpu/gpu_run.h"
#include "gpu/gpu_worker.h"
#include "new_scales.h"
#include "read_ahead.h"

static enum phema_status write_copy(struct worker *worker, const struct group *group,
                                    const struct tile_range *range, const uint8_t *data,
                                    struct phema_error *err)
{
    const struct run *run = worker->run;
    bool is_converted = run->outputs->dtypes[range->tensor] != range->dtype;
    if (is_converted)
        phema_widen(worker->sums, component_dtype(range->dtype), data,
                    (size_t)range->n_elems * components_of(range->dtype));
    for (size_t j = 0; j < group->n_targets; j++) {
        size_t output = group->targets[j];
        enum phema_status status = PHEMA_OK;
        bool is_scale = new_scales_fill(run, output, range, worker->written);
        if (is_converted)
            status = tile_narrow(worker, output, range, worker->sums, PHEMA_ACCUMULATE_F64, err);
        if (status)
            return status;
        status = tile_write(worker, output, range,
                            is_converted || is_scale ? worker->written : data, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static enum phema_status copy_tile(struct worker *worker, uint64_t tile,
                                   const struct tile_range *range, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct rule_state *rule = worker->rule;
    for (size_t k = 0; k < run->plan->series->n && !worker->is_abandoned; k++) {
        bool is_needed = run_has_input(run, range->tensor, k);
        if (!is_needed && !run->plan->series->snapshots[k].is_compressed)
            continue;
        const uint8_t *data = NULL;
        enum phema_status status =
            tile_read_in_order(&data, worker, k, tile, is_needed, range, 0, err);
        for (size_t g = 0; g < rule->n_groups && data && !status; g++)
            if (rule->groups[g].newest == k)
                status = write_copy(worker, &rule->groups[g], range, data, err);
        if (status)
            return status;
        read_ahead_release(worker->ahead, tile);
    }
    return PHEMA_OK;
}

/* For the fingerprints alone. */
static enum phema_status read_inputs(struct worker *worker, uint64_t tile,
                                     const struct tile_range *range, struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < run->plan->series->n && !status && !worker->is_abandoned; k++) {
        bool is_needed = run_has_input(run, range->tensor, k);
        const uint8_t *data = NULL;
        if (is_needed || run->plan->series->snapshots[k].is_compressed)
            status = tile_read_in_order(&data, worker, k, tile, is_needed, range, 0, err);
        read_ahead_release(worker->ahead, tile);
    }
    return status;
}

PHEMA_FALLIBLE tile_process(struct worker *worker, uint64_t tile, const struct tile_range *range,
                            struct phema_error *err)
{
    tile_blocks_list(worker, range);
    read_ahead_begin_tile(worker->ahead, tile);
    worker->rule = run_rule_of(worker->run, range->tensor);
    if (worker->run->is_rereading)
        return read_inputs(worker, tile, range, err);
    if (worker->run->plan->series->tensors[range->tensor].rule == PHEMA_RULE_COPY)
        return copy_tile(worker, tile, range, err);
    if (gpu_can_sum(worker->run, range->tensor))
        return gpu_worker_sum_tile(worker, tile, range, err);
    return tile_sum(worker, tile, range, err);
}
