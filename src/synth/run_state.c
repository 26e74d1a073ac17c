// SPDX-License-Identifier: Apache-2.0
/* run_state.c - queries on the state of a run. */
#include "run.h"

#include "decode_order.h"
#include "resume/resume.h"

/* Whether some tensors are compressed, strided, in chunks or multiplied by scales. */
static bool is_any_scattered(const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (snapshot->is_compressed)
            return true;
        if (k && snapshot->locations == snapshot[-1].locations)
            continue;
        for (size_t i = 0; i < series->n_tensors; i++)
            if (!phema_location_is_plain(&snapshot->locations[i]))
                return true;
    }
    return false;
}

bool run_is_any_copied(const struct run *run)
{
    return run->result->n_read + run->result->n_direct || run->gpu_run || is_any_scattered(run);
}

bool run_reads_ahead(const struct run *run)
{
    return run->result->n_direct > 0;
}

bool run_reads_all_ahead(const struct run *run)
{
    return run_reads_ahead(run) && run->result->n_read + run->result->n_mapped == 0 &&
           !is_any_scattered(run);
}

bool run_has_input(const struct run *run, size_t tensor, size_t k)
{
    const struct rule_state *rule = run_rule_of(run, tensor);
    bool is_copy = run->plan->series->tensors[tensor].rule == PHEMA_RULE_COPY;
    for (size_t g = 0; g < rule->n_groups; g++)
        if (is_copy ? rule->groups[g].newest == k : group_has_input(&rule->groups[g], k))
            return true;
    return false;
}

const struct rule_state *run_rule_of(const struct run *run, size_t tensor)
{
    bool is_copy = run->plan->series->tensors[tensor].rule == PHEMA_RULE_COPY;
    return &run->rule_states[is_copy ? 0 : run->plan->rule_of[tensor]];
}

bool run_makes_codes(const struct run *run, size_t tensor)
{
    return run->outputs->has_new_scales && run->plan->series->tensors[tensor].tensor.scaling;
}

bool run_measures(const struct run *run, size_t tensor)
{
    return run_makes_codes(run, tensor) &&
           run->plan->series->tensors[tensor].rule == PHEMA_RULE_AVERAGE;
}

PHEMA_FALLIBLE run_make_tiling(struct tiling *out, const struct run *run, size_t tile_elems,
                               uint64_t max_job_bytes, unsigned n_threads, struct phema_error *err)
{
    const struct part_range part = {run->options.part, run->options.n_parts};
    const struct tiling_kinds kinds = {run->outputs->dtypes, run->plan->rule_of};
    return tiling_make(out, run->plan->series, &kinds, part, tile_elems, max_job_bytes, n_threads,
                       err);
}

enum phema_overflow run_overflow(const struct run *run)
{
    return run->options.overflow == PHEMA_OVERFLOW_SATURATES ? PHEMA_OVERFLOW_SATURATE
                                                             : PHEMA_OVERFLOW_INF;
}

struct phema_tensor run_tile_tensor(const struct run *run, size_t k, const struct tile_range *range)
{
    struct phema_tensor tensor = phema_series_tensor_in(run->plan->series, k, range->tensor);
    if (range->n_tensors > 1) {
        tensor.n_elems = range->first + range->n_elems;
        tensor.size_bytes = phema_dtype_bytes(tensor.dtype, tensor.n_elems);
    }
    return tensor;
}

uint64_t run_read_bytes(const struct run *run, const struct tile_range *range)
{
    const struct phema_series_tensor *entry = &run->plan->series->tensors[range->tensor];
    size_t n_read =
        entry->rule == PHEMA_RULE_COPY ? run->n_newest : run_rule_of(run, range->tensor)->n_used;
    return phema_dtype_bytes(phema_tensor_stored_dtype(&entry->tensor), range->n_elems) * n_read;
}

bool run_includes_tile(const struct run *run, uint64_t tile, const struct tile_range *range)
{
    uint64_t n = run->options.sample, n_tiles = tiling_n_tiles(&run->tiling);
    if (run->is_measuring && !run_measures(run, range->tensor))
        return false;
    if (run->journal && journal_writer_has(run->journal, range))
        return false;
    if (n == 0 || n >= n_tiles)
        return true;
    /* below 2^32 both, up to tensors of 4 TiB of bytes in the smallest tiles */
    return (tile + 1) * n / n_tiles != tile * n / n_tiles;
}

void run_add_counts(struct run *run, const struct phema_narrow_counts *counts)
{
    run->result->n_nan += counts->n_nan;
    run->result->n_inf += counts->n_inf;
    run->result->n_overflow += counts->n_overflow;
}

void run_stop(struct run *run)
{
    atomic_store_explicit(&run->is_stopped, true, memory_order_relaxed);
    if (run->decode_order)
        decode_order_stop(run->decode_order);
}
