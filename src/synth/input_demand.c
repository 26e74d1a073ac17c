// SPDX-License-Identifier: Apache-2.0
/* input_demand.c - opens the files that the run reads, where another process has found the
 * snapshots (phema_checkpoint_unpack). The others stay closed. */
#include "input_demand.h"

/* Descriptors of the process for other things than snapshots, at most. */
#define OTHER_DESCRIPTORS 512

struct demand {
    const struct run *run;
    bool keeps_descriptors;
    const struct phema_checkpoint *checkpoint; /* in visits of runs */
};

static bool are_all_open(const struct phema_checkpoint *checkpoint)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++)
        if (!phema_file_is_open(phema_checkpoint_file(checkpoint, f)))
            return false;
    return true;
}

static enum phema_status demand_file(const struct demand *demand, size_t f, struct phema_error *err)
{
    return phema_checkpoint_demand(demand->checkpoint, f, demand->keeps_descriptors, err);
}

static enum phema_status demand_all(const struct demand *demand, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < phema_checkpoint_n_files(demand->checkpoint) && !status; f++)
        status = demand_file(demand, f, err);
    return status;
}

/* Whether some output needs data of the snapshot. */
static bool is_used(const struct phema_plan *plan, size_t k)
{
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        if (target->newest == k || target->solution.weights[k] != 0)
            return true;
        for (size_t r = 0; r < plan->n_rules; r++)
            if (target->ruled[r].weights && target->ruled[r].weights[k] != 0)
                return true;
    }
    return false;
}

static enum phema_status demand_run(void *context, const struct phema_run *run,
                                    struct phema_error *err)
{
    return demand_file(context, run->file, err);
}

/* Elements [first, first + n) of a tensor, and their scales. */
static enum phema_status demand_elements(struct demand *demand, const struct phema_tensor *tensor,
                                         uint64_t first, uint64_t n, struct phema_error *err)
{
    const struct phema_scaling *scaling = tensor->scaling;
    enum phema_status status =
        tensor->chunks ? phema_tensor_visit_runs(tensor, first, n, demand_run, demand, err)
                       : demand_file(demand, tensor->file, err);
    if (status || !scaling)
        return status;
    for (size_t c = 0; scaling->chunks && c < scaling->n_chunks && !status; c++)
        status = demand_file(demand, scaling->chunks[c].file, err);
    return status || scaling->chunks ? status : demand_file(demand, scaling->file, err);
}

static enum phema_status demand_part(struct demand *demand, const struct tiling *tiling, size_t k,
                                     struct phema_error *err)
{
    const struct phema_series *series = demand->run->plan->series;
    enum phema_status status = PHEMA_OK;
    for (size_t x = 0; x < tiling->n && !status; x++) {
        struct phema_tensor tensor = phema_series_tensor_in(series, k, tiling->order[x]);
        uint64_t n = tiling_n_elems(tiling, x);
        if (n)
            status = demand_elements(demand, &tensor, x ? 0 : tiling->first_elem, n, err);
    }
    return status;
}

static enum phema_status demand_snapshots(struct demand *demand, struct phema_error *err)
{
    const struct run *run = demand->run;
    const struct phema_series *series = run->plan->series;
    struct tiling tiling = {.n = 0};
    struct part_range part = {run->options.part, run->options.n_parts};
    struct tiling_kinds kinds = {run->outputs->dtypes, run->plan->rule_of};
    enum phema_status status =
        tiling_make(&tiling, series, &kinds, part, BLOCK_ELEMS, BLOCK_ELEMS, 1, err);
    for (size_t k = 0; k < series->n && !status; k++) {
        demand->checkpoint = series->snapshots[k].checkpoint;
        if (is_used(run->plan, k))
            status = run->outputs->has_new_scales ? demand_all(demand, err)
                                                  : demand_part(demand, &tiling, k, err);
    }
    tiling_clear(&tiling);
    return status;
}

/* Whether all files of the snapshots can be open at once, for reads through the page cache and past
 * it. */
static bool may_keep_descriptors(const struct phema_series *series)
{
    uint64_t n = 0, limit = 0;
    for (size_t k = 0; k < series->n; k++)
        n += phema_checkpoint_n_files(series->snapshots[k].checkpoint);
    return phema_raise_fd_limit(2 * n + OTHER_DESCRIPTORS, &limit);
}

PHEMA_FALLIBLE input_demand(const struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    struct demand demand = {.run = run};
    bool is_needed = run->options.is_repeated;
    for (size_t k = 0; k < series->n && !is_needed; k++)
        is_needed = !are_all_open(series->snapshots[k].checkpoint);
    if (!is_needed)
        return PHEMA_OK;
    demand.keeps_descriptors = run->options.is_repeated && may_keep_descriptors(series);
    enum phema_status status = demand_snapshots(&demand, err);
    for (size_t j = 0; j < run->outputs->m && !status; j++) {
        demand.checkpoint = run->outputs->items[j].template;
        if (demand.checkpoint)
            status = demand_all(&demand, err);
    }
    return status;
}
