// SPDX-License-Identifier: Apache-2.0
/* gpu_fit.c - which tensors the GPU sums; its memory demand. */
#include "gpu/gpu_run.h"

static bool is_averaged(const struct run *run, size_t i)
{
    return run->plan->series->tensors[i].rule == PHEMA_RULE_AVERAGE;
}

static bool has_gpu_dtypes(const struct run *run, size_t i)
{
    return !run_makes_codes(run, i) &&
           phema_gpu_can_sum(run->plan->series->tensors[i].tensor.dtype) &&
           phema_gpu_can_sum(run->outputs->dtypes[i]);
}

bool gpu_can_sum(const struct run *run, size_t tensor)
{
    return run->gpu_run && has_gpu_dtypes(run, tensor);
}

bool gpu_leaves_tensors_to_cpu(const struct run *run)
{
    for (size_t i = 0; i < run->plan->series->n_tensors; i++)
        if (is_averaged(run, i) && !has_gpu_dtypes(run, i))
            return true;
    return false;
}

uint64_t gpu_work_bytes(const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    uint64_t bytes = 0;
    for (size_t i = 0; i < series->n_tensors; i++)
        if (is_averaged(run, i) && has_gpu_dtypes(run, i) && series->tensors[i].same_as == i)
            bytes += series->tensors[i].tensor.size_bytes;
    return bytes * series->n;
}

/* The most inputs and rows of sums: a tile follows one rule. */
static enum phema_status count_groups(struct phema_gpu_demand *demand, const struct run *run,
                                      struct phema_error *err)
{
    size_t n = run->plan->series->n;
    demand->n_inputs = demand->n_rows = 1;
    for (size_t r = 0; r < run->n_rule_states; r++) {
        struct group *groups = NULL;
        size_t n_groups = 0, n_used = 0, n_newest = 0;
        if (!run->rule_states[r].is_needed)
            continue;
        enum phema_status status = target_groups_make(&groups, &n_groups, run->plan,
                                                      run->options.sums, r, 0, run->plan->m, err);
        if (status)
            return status;
        target_groups_count_inputs(&n_used, &n_newest, groups, n_groups, n);
        for (size_t g = 0; g < n_groups; g++) {
            if (groups[g].n_rows > demand->n_rows)
                demand->n_rows = groups[g].n_rows;
            demand->is_f64 = demand->is_f64 || !groups[g].fits_float32;
        }
        if (n_used > demand->n_inputs)
            demand->n_inputs = n_used;
        target_groups_free(groups, n_groups);
    }
    return PHEMA_OK;
}

static void count_elems(struct phema_gpu_demand *demand, const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    demand->numbers_per_elem = 1;
    for (size_t i = 0; i < series->n_tensors; i++) {
        enum phema_dtype from = series->tensors[i].tensor.dtype, to = run->outputs->dtypes[i];
        uint64_t n = series->tensors[i].tensor.n_elems;
        demand->n_through[from] += n;
        demand->n_through[to] += n;
        if (!is_averaged(run, i) || !has_gpu_dtypes(run, i))
            continue;
        demand->n_in[from] += n;
        demand->n_out[to] += n;
        demand->is_f64 = demand->is_f64 || sums_need_float64(run, i);
        if (from == PHEMA_C64)
            demand->numbers_per_elem = 2;
    }
}

PHEMA_FALLIBLE gpu_fit(const struct run *run, uint64_t max_tile_elems, unsigned n_threads,
                       uint64_t n_slots, struct phema_error *err)
{
    struct phema_gpu_demand demand = {
        .slot_extra_bytes = run->result->n_direct ? PHEMA_INPUT_ROOM : 0,
        .block_elems = BLOCK_ELEMS,
        .n_more_blocks = MAX_RUN_TENSORS,
        .n_slots = n_slots,
        .max_tile_elems = max_tile_elems,
        .n_threads = n_threads,
        .n_gpus = run->gpu_run->n_gpus,
        .uses_blas = run->options.gpu.uses_blas,
    };
    count_elems(&demand, run);
    enum phema_status status = count_groups(&demand, run, err);
    return status ? status : phema_gpu_fit(&run->gpu_run->fit, &demand, run->gpu_run->limit, err);
}
