// SPDX-License-Identifier: Apache-2.0
/* run_state.c - see run_state.h. */
#include "run_state.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/gpu_setup.h"
#include "input_digests.h"
#include "input_io.h"
#include "resume/journal_write.h"
#include "sum_dtypes.h"

/* Mapped input of a worker, of one snapshot and of all. */
#define MAX_JOB_BYTES    ((uint64_t)8 << 20)
#define MAX_MAPPED_BYTES ((uint64_t)40 << 20)
/* What is asked of the disk ahead of all workers. */
#define MAX_AHEAD_BYTES ((uint64_t)64 << 20)

void run_init(struct run *run, const struct phema_plan *plan, struct phema_outputs *outputs,
              const struct phema_synth_options *options)
{
    *run = (struct run){
        .plan = plan, .outputs = outputs, .options = *options, .backend = phema_backend_for_cpu()};
    if (outputs->is_in_order) /* the last one written stays */
        run->options.n_threads = 1;
}

static void link_aliases(struct run *run)
{
    const struct phema_series *series = run->plan->series;
    for (size_t i = 0; i < series->n_tensors; i++)
        run->next_alias[i] = SIZE_MAX;
    for (size_t i = 0; i < series->n_tensors; i++) {
        size_t first = series->tensors[i].same_as;
        if (first == i)
            continue;
        run->next_alias[i] = run->next_alias[first];
        run->next_alias[first] = i;
    }
}

bool run_is_any_copied(const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    if (run->n_read + run->n_direct || run->gpu_run)
        return true;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (snapshot->is_compressed)
            return true;
        if (k && snapshot->places == snapshot[-1].places)
            continue;
        for (size_t i = 0; i < series->n_tensors; i++)
            if (snapshot->places[i].stride || snapshot->places[i].parts)
                return true;
    }
    return false;
}

/* Where inputs are copied one after another, the first one of each group is kept to compare the
 * others with; most groups begin with the same. */
static enum phema_status find_references(struct run *run, struct phema_error *err)
{
    for (size_t r = 0; r < run->n_ruled; r++) {
        struct rule_state *ruled = &run->ruled[r];
        ruled->reference_of = calloc(ruled->n_groups + 1, sizeof(*ruled->reference_of));
        if (!ruled->reference_of)
            return phema_fail_memory(err);
        size_t n = 0;
        for (size_t g = 0; g < ruled->n_groups; g++) {
            size_t same = target_groups_alike(ruled->groups, g);
            ruled->reference_of[g] = same < g ? ruled->reference_of[same] : n++;
        }
    }
    return PHEMA_OK;
}

static enum phema_status make_ruled(struct run *run, struct phema_error *err)
{
    const struct phema_plan *plan = run->plan;
    run->ruled = calloc(plan->n_rules + 1, sizeof(*run->ruled));
    if (!run->ruled)
        return phema_fail_memory(err);
    run->n_ruled = plan->n_rules + 1;
    bool all_need_float64 = true;
    for (size_t i = 0; i < plan->series->n_tensors; i++) {
        if (plan->series->tensors[i].rule != PHEMA_RULE_AVERAGE)
            continue;
        struct rule_state *ruled = &run->ruled[plan->rule_of[i]];
        bool needs_float64 = sums_need_float64(run, i);
        ruled->is_needed = true;
        ruled->needs_float64 = ruled->needs_float64 || needs_float64;
        all_need_float64 = all_need_float64 && needs_float64;
    }
    if (all_need_float64) /* then targets are not grouped by what others would need */
        run->options.sums = PHEMA_SUMS_F64;
    return PHEMA_OK;
}

const struct rule_state *run_rule_of(const struct run *run, size_t tensor)
{
    bool is_copy = run->plan->series->tensors[tensor].rule == PHEMA_RULE_COPY;
    return &run->ruled[is_copy ? 0 : run->plan->rule_of[tensor]];
}

/* Of what is read of tensors that are averaged, by rule, and of those that are copied, in one
 * snapshot. */
static uint64_t weigh_rules(struct run *run)
{
    const struct phema_series *series = run->plan->series;
    uint64_t copied = 0;
    for (size_t r = 0; r < run->n_ruled; r++)
        run->ruled[r].bytes = 0;
    for (size_t x = 0; x < run->cut.n; x++) {
        size_t i = run->cut.order[x];
        const struct phema_series_tensor *entry = &series->tensors[i];
        *(entry->rule == PHEMA_RULE_COPY ? &copied : &run->ruled[run->plan->rule_of[i]].bytes) +=
            phema_dtype_bytes(entry->tensor.dtype, tiling_n_elems(&run->cut, x));
    }
    return copied;
}

static enum phema_status make_groups(struct run *run, size_t pass, struct phema_error *err)
{
    size_t n = run->budget.targets_per_pass;
    enum phema_status status = PHEMA_OK;
    run->max_groups = 0;
    for (size_t r = 0; r < run->n_ruled && !status; r++) {
        struct rule_state *ruled = &run->ruled[r];
        if (r && !ruled->is_needed) /* the first one also says where copies come from */
            continue;
        size_t n_newest = 0;
        status = target_groups_make(&ruled->groups, &ruled->n_groups, run->plan, run->options.sums,
                                    r, pass * n, n, err);
        if (!status)
            status = target_groups_count_inputs(&ruled->n_used, &n_newest, ruled->groups,
                                                ruled->n_groups, run->plan->series->n, err);
        run->n_newest = n_newest; /* the same for all */
        run->max_groups = ruled->n_groups > run->max_groups ? ruled->n_groups : run->max_groups;
    }
    return status;
}

static void clear_groups(struct run *run)
{
    for (size_t r = 0; r < run->n_ruled; r++) {
        struct rule_state *ruled = &run->ruled[r];
        target_groups_free(ruled->groups, ruled->n_groups);
        free(ruled->reference_of);
        ruled->groups = NULL;
        ruled->reference_of = NULL;
        ruled->n_groups = 0;
    }
}

static enum phema_status add_up_reading(struct run *run, struct phema_error *err)
{
    uint64_t copied = weigh_rules(run);
    run->total_bytes = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t pass = 0; pass < run->budget.n_passes && !status; pass++) {
        status = make_groups(run, pass, err);
        run->total_bytes += copied * run->n_newest;
        for (size_t r = 0; r < run->n_ruled; r++)
            run->total_bytes += run->ruled[r].bytes * run->ruled[r].n_used;
        clear_groups(run);
    }
    return status;
}

/* Tiles, memory, jobs. */
static enum phema_status divide_work(struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = memory_budget_make(&run->budget, run, err);
    if (status)
        return status;
    unsigned n_threads = run->options.n_threads;
    uint64_t job_bytes = MAX_MAPPED_BYTES / series->n;
    run->max_mapped_bytes = job_bytes > FAULT_AROUND_BYTES ? job_bytes - FAULT_AROUND_BYTES : 0;
    run->max_prefetch_bytes = MAX_AHEAD_BYTES;
    struct part_range share = {run->options.part, run->options.n_parts};
    struct tiling_kinds kinds = {run->outputs->dtypes, run->plan->rule_of};
    status = tiling_make(&run->cut, series, &kinds, share, run->budget.tile_elems,
                         job_bytes < MAX_JOB_BYTES ? job_bytes : MAX_JOB_BYTES, n_threads, err);
    if (!status)
        status =
            memory_budget_trim(&run->budget, run, tiling_largest(&run->cut), run->cut.n_jobs, err);
    return status ? status : add_up_reading(run, err);
}

PHEMA_FALLIBLE run_prepare(struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = input_io_choose(run, err);
    if (!status)
        status = make_ruled(run, err);
    if (!status)
        status = gpu_run_choose(run, err);
    if (!status)
        status = divide_work(run, err);
    if (!status && !run->is_dry_run)
        status = input_digests_open(&run->digests, run, err);
    if (status)
        return status;
    run->next_alias = calloc(series->n_tensors + 1, sizeof(*run->next_alias));
    run->varies = calloc(series->n_tensors + 1, sizeof(*run->varies));
    run->sinks = calloc(run->outputs->m + 1, sizeof(struct sink *));
    if (!run->next_alias || !run->varies || !run->sinks)
        return phema_fail_memory(err);
    link_aliases(run);
    return PHEMA_OK;
}

PHEMA_FALLIBLE run_start_devices(struct run *run, struct phema_error *err)
{
    if (!run->gpu_run)
        return PHEMA_OK;
    enum phema_status status = gpu_run_start(run, err);
    while (status == PHEMA_NO && gpu_run_may_shrink(run)) {
        gpu_run_shrink(run);
        tiling_clear(&run->cut);
        status = divide_work(run, err);
        if (!status)
            status = gpu_run_start(run, err);
    }
    return status == PHEMA_NO
               ? phema_fail_in(err, PHEMA_ERR_RESOURCE, "even the smallest tiles do not fit")
               : status;
}

PHEMA_FALLIBLE run_begin_pass(struct run *run, size_t pass, struct phema_error *err)
{
    clear_groups(run);
    atomic_store(&run->next_job, 0);
    if (run->digests)
        memset(run->digests->sums, 0, (size_t)input_digests_bytes(run));
    enum phema_status status = make_groups(run, pass, err);
    if (!status)
        status = find_references(run, err);
    if (!status)
        status = input_io_open(run, err);
    return status;
}

PHEMA_FALLIBLE run_end_pass(struct run *run, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < run->plan->series->n && !status; k++)
        status = phema_reader_finish(run->readers[k], err);
    input_io_close(run);
    return status;
}

void run_outputs_of(const struct run *run, size_t pass, size_t *first, size_t *end)
{
    size_t n = run->budget.targets_per_pass, m = run->outputs->m;
    *first = pass * n;
    *end = n < m - *first ? *first + n : m;
}

uint64_t run_read_bytes(const struct run *run, const struct tile_range *piece)
{
    const struct phema_series_tensor *entry = &run->plan->series->tensors[piece->tensor];
    size_t n_read =
        entry->rule == PHEMA_RULE_COPY ? run->n_newest : run_rule_of(run, piece->tensor)->n_used;
    return phema_dtype_bytes(entry->tensor.dtype, piece->n_elems) * n_read;
}

uint64_t run_subtract_done(struct run *run)
{
    uint64_t bytes = 0;
    size_t hint = 0;
    for (uint64_t t = 0; t < tiling_n_tiles(&run->cut); t++) {
        struct tile_range piece = tiling_tile(&run->cut, t, &hint);
        if (!run_includes_tile(run, t, &piece))
            bytes += run_read_bytes(run, &piece);
    }
    run->total_bytes -= bytes;
    return bytes;
}

bool run_includes_tile(const struct run *run, uint64_t tile, const struct tile_range *piece)
{
    uint64_t n = run->options.sample, n_tiles = tiling_n_tiles(&run->cut);
    if (run->progress && journal_writer_has(run->progress, piece))
        return false;
    if (n == 0 || n >= n_tiles)
        return true;
    /* below 2^32 both, up to tensors of 4 TiB of bytes in the smallest tiles */
    return (tile + 1) * n / n_tiles != tile * n / n_tiles;
}

void run_clear(struct run *run)
{
    for (size_t j = 0; run->sinks && j < run->outputs->m; j++)
        sink_abandon(run->sinks[j]);
    journal_writer_close(run->progress);
    input_digests_close(run->digests);
    input_io_close(run);
    gpu_run_close(run);
    tiling_clear(&run->cut);
    clear_groups(run);
    free(run->ruled);
    free(run->next_alias);
    free(run->varies);
    free(run->sinks);
}

void run_stop(struct run *run)
{
    atomic_store_explicit(&run->is_stopped, true, memory_order_relaxed);
    if (run->turns)
        decode_order_stop(run->turns);
}
