// SPDX-License-Identifier: Apache-2.0
/* run_prepare.c - builds what all workers share: groups, tiling, inputs, GPUs. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "decode_order.h"
#include "gpu/gpu_run.h"
#include "input_digests.h"
#include "input_io.h"
#include "new_scales.h"
#include "phema/clock.h"
#include "resume/resume.h"

/* Mapped input of a worker, of one snapshot and of all. */
#define MAX_JOB_BYTES    ((uint64_t)8 << 20)
#define MAX_MAPPED_BYTES ((uint64_t)40 << 20)

/* Then targets are not split by precision. */
static bool is_float64_needed_everywhere(const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].rule == PHEMA_RULE_AVERAGE && !sums_need_float64(run, i))
            return false;
    return true;
}

void run_init(struct run *run, const struct phema_plan *plan, struct phema_outputs *outputs,
              const struct phema_synth_options *options, struct phema_synth_result *result)
{
    *run = (struct run){.plan = plan,
                        .outputs = outputs,
                        .options = *options,
                        .result = result,
                        .start_s = phema_clock_s(),
                        .backend = phema_backend_for_cpu()};
    if (outputs->is_in_order) /* elements share places: the last one written stays */
        run->options.n_threads = 1;
    if (is_float64_needed_everywhere(run))
        run->options.sums = PHEMA_SUMS_F64;
}

static enum phema_status make_rule_states(struct run *run, struct phema_error *err)
{
    const struct phema_plan *plan = run->plan;
    run->rule_states = calloc(plan->n_rules + 1, sizeof(*run->rule_states));
    if (!run->rule_states)
        return phema_fail_memory(err);
    run->n_rule_states = plan->n_rules + 1;
    for (size_t i = 0; i < plan->series->n_tensors; i++) {
        if (plan->series->tensors[i].rule != PHEMA_RULE_AVERAGE)
            continue;
        struct rule_state *rule = &run->rule_states[plan->rule_of[i]];
        rule->is_needed = true;
        rule->needs_float64 = rule->needs_float64 || sums_need_float64(run, i);
    }
    return PHEMA_OK;
}

/* Sets the bytes of one snapshot's averaged tensors for each rule. Returns those of its copied
 * tensors. */
static uint64_t count_rule_bytes(struct run *run)
{
    const struct phema_series *series = run->plan->series;
    uint64_t copied = 0;
    for (size_t r = 0; r < run->n_rule_states; r++)
        run->rule_states[r].bytes = 0;
    for (size_t x = 0; x < run->tiling.n; x++) {
        size_t i = run->tiling.order[x];
        const struct phema_series_tensor *entry = &series->tensors[i];
        *(entry->rule == PHEMA_RULE_COPY ? &copied
                                         : &run->rule_states[run->plan->rule_of[i]].bytes) +=
            phema_dtype_bytes(phema_tensor_stored_dtype(&entry->tensor),
                              tiling_n_elems(&run->tiling, x));
    }
    return copied;
}

static enum phema_status make_groups(struct run *run, size_t pass, struct phema_error *err)
{
    size_t n = run->budget.targets_per_pass;
    run->max_groups = 0;
    for (size_t r = 0; r < run->n_rule_states; r++) {
        struct rule_state *rule = &run->rule_states[r];
        if (r && !rule->is_needed) /* the first one is also the source of copies */
            continue;
        enum phema_status status = target_groups_make(&rule->groups, &rule->n_groups, run->plan,
                                                      run->options.sums, r, pass * n, n, err);
        if (status)
            return status;
        /* n_newest is the same for all */
        target_groups_count_inputs(&rule->n_used, &run->n_newest, rule->groups, rule->n_groups,
                                   run->plan->series->n);
        run->max_groups = rule->n_groups > run->max_groups ? rule->n_groups : run->max_groups;
    }
    return PHEMA_OK;
}

static void clear_groups(struct run *run)
{
    for (size_t r = 0; r < run->n_rule_states; r++) {
        target_groups_free(run->rule_states[r].groups, run->rule_states[r].n_groups);
        run->rule_states[r].groups = NULL;
        run->rule_states[r].n_groups = 0;
    }
}

static enum phema_status count_read_bytes(struct run *run, struct phema_error *err)
{
    uint64_t copied = count_rule_bytes(run);
    run->total_bytes = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t pass = 0; pass < run->budget.n_passes && !status; pass++) {
        status = make_groups(run, pass, err);
        run->total_bytes += copied * run->n_newest;
        for (size_t r = 0; r < run->n_rule_states; r++)
            run->total_bytes += run->rule_states[r].bytes * run->rule_states[r].n_used;
        run->total_bytes += new_scales_read_bytes(run);
        clear_groups(run);
    }
    return status;
}

/* Chooses the memory budget, the tiling and the jobs. */
static enum phema_status divide_work(struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = memory_budget_make(&run->budget, run, err);
    if (status == PHEMA_ERR_RESOURCE && run->has_frame_jobs) { /* decoders take less if shared */
        run->has_frame_jobs = false;
        status = memory_budget_make(&run->budget, run, err);
    }
    if (status)
        return status;
    uint64_t job_bytes = MAX_MAPPED_BYTES / series->n;
    run->max_mapped_bytes = job_bytes > FAULT_AROUND_BYTES ? job_bytes - FAULT_AROUND_BYTES : 0;
    status = run_make_tiling(&run->tiling, run, run->budget.tile_elems,
                             job_bytes < MAX_JOB_BYTES ? job_bytes : MAX_JOB_BYTES,
                             run->options.n_threads, err);
    if (status)
        return status;
    frame_jobs_size(run);
    status = memory_budget_trim(&run->budget, run, err);
    return status ? status : count_read_bytes(run, err);
}

PHEMA_FALLIBLE run_prepare(struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = input_io_demand(run, err);
    if (!status)
        status = input_io_choose(run, err);
    if (!status)
        status = make_rule_states(run, err);
    if (!status)
        status = gpu_run_choose(run, err);
    if (status)
        return status;
    run->has_frame_jobs = frame_jobs_suit(run);
    status = divide_work(run, err);
    if (!status && !run->is_dry_run)
        status = input_digests_open(&run->input_digests, run, err);
    if (!status && !run->is_dry_run)
        status = new_scales_open(&run->new_scales, run, err);
    if (status)
        return status;
    run->next_alias = calloc(series->n_tensors + 1, sizeof(*run->next_alias));
    run->varies = calloc(series->n_tensors + 1, sizeof(*run->varies));
    run->sinks = calloc(run->outputs->m + 1, sizeof(struct sink *));
    if (!run->next_alias || !run->varies || !run->sinks)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++)
        run->next_alias[i] = SIZE_MAX;
    for (size_t i = 0; i < series->n_tensors; i++) {
        size_t first = series->tensors[i].same_as;
        if (first == i)
            continue;
        run->next_alias[i] = run->next_alias[first];
        run->next_alias[first] = i;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE run_start_gpus(struct run *run, struct phema_error *err)
{
    if (!run->gpu_run)
        return PHEMA_OK;
    enum phema_status status = gpu_run_start(run, err);
    while (status == PHEMA_NO && run->gpu_run->fit.tile_elems > PHEMA_GPU_LEAST_TILE_ELEMS) {
        gpu_run_shrink(run);
        tiling_clear(&run->tiling);
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
    size_t n = run->budget.targets_per_pass, m = run->outputs->m;
    run->first_output = pass * n;
    run->end_output = n < m - run->first_output ? run->first_output + n : m;
    clear_groups(run);
    atomic_store(&run->next_job, 0);
    if (run->is_measuring)
        new_scales_begin(run);
    if (run->input_digests)
        memset(run->input_digests->sums, 0, (size_t)input_digests_bytes(run));
    enum phema_status status = make_groups(run, pass, err);
    return status ? status : input_io_open(run, err);
}

PHEMA_FALLIBLE run_end_pass(struct run *run, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < run->plan->series->n && !status; k++)
        status = phema_reader_finish(run->readers[k], err);
    input_io_close(run);
    return status;
}

void run_clear(struct run *run)
{
    for (size_t j = 0; run->sinks && j < run->outputs->m; j++)
        sink_abandon(run->sinks[j]);
    journal_writer_close(run->journal);
    input_digests_close(run->input_digests);
    new_scales_close(run->new_scales);
    input_io_close(run);
    gpu_run_close(run);
    tiling_clear(&run->tiling);
    clear_groups(run);
    free(run->rule_states);
    free(run->ios);
    free(run->next_alias);
    free(run->varies);
    free(run->sinks);
}
