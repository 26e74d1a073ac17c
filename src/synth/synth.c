// SPDX-License-Identifier: Apache-2.0
/* synth.c - runs a plan: opens the outputs, runs the passes, tells the result. One tensor in memory
 * is a run of a plan that has nothing else, so that its bytes are those of any run. */
#include "phema/synth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/clock.h"
#include "phema/memory.h"
#include "phema/setting.h"
#include "phema/writer.h"
#include "resume/resume.h"
#include "run.h"

/* ---- Opening ---- */

static enum phema_status check_form(const struct phema_plan *plan,
                                    const struct phema_outputs *outputs,
                                    const struct phema_synth_options *options,
                                    struct phema_error *err)
{
    const char *path = outputs->m ? outputs->items[0].path : "";
    if (options->n_parts && phema_outputs_check_parts(plan, outputs, err))
        return PHEMA_ERR_USAGE;
    if (options->verifies && plan->n_rules + 2 > PHEMA_MAX_DIGESTS / plan->series->n)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_VERIFY,
                                  "fingerprints of %zu snapshots for each of %zu rules take too "
                                  "much memory; posthoc-ema verify compares the output afterwards",
                                  plan->series->n, plan->n_rules);
    if (options->verifies && outputs->is_in_order)
        return phema_fail_setting(
            err, PHEMA_ERR_USAGE, PHEMA_SET_VERIFY,
            "%s is a copy of a checkpoint in which elements have several places, so that not all "
            "that is written stays; posthoc-ema verify compares it afterwards",
            path);
    return PHEMA_OK;
}

/* Snapshots and outputs, whose mapped pages the memory profile counts. */
static enum phema_status watch_files(const struct run *run, struct phema_error *err)
{
    struct phema_memory_profile *memory_profile = run->options.memory_profile;
    const struct phema_series *series = run->plan->series;
    enum phema_status status = PHEMA_OK;
    if (!memory_profile)
        return PHEMA_OK;
    for (size_t k = 0; k < series->n && !status; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        if (series->snapshots[k].is_checkpoint_shared)
            continue;
        for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint) && !status; f++)
            status = phema_memory_profile_watch_file(
                memory_profile, phema_file_path(phema_checkpoint_file(checkpoint, f)), err);
    }
    for (size_t j = 0; j < run->outputs->m && !status; j++)
        status = sink_watch_files(run->outputs, j, memory_profile, err);
    return status;
}

/* Journals, and the markers of parts, begin with the digest of the run. */
static enum phema_status open_sinks(struct run *run, const struct sink_options *options,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < run->outputs->m; j++) {
        struct run_digest digest = {""};
        if (options->n_parts || options->resumes)
            digest = run_digest_make(run->plan, run->outputs, j, &run->options);
        struct sink_options own = *options;
        own.digest = digest.text;
        status = sink_open(&run->sinks[j], run->plan, run->outputs, j, &own, err);
        if (status)
            return status;
        enum sink_start_state begun = sink_start_state(run->sinks[j]);
        run->result->n_resumed += begun == SINK_RESUMED;
        run->result->n_stale_journals += begun == SINK_STALE;
        run->result->n_not_resumable += options->resumes && !sink_journal(run->sinks[j]);
        run->result->n_stale_partials += begun == SINK_NEW && sink_took_over(run->sinks[j]);
    }
    return PHEMA_OK;
}

static enum phema_status open_outputs(struct run *run, struct phema_error *err)
{
    const struct phema_synth_options *options = &run->options;
    unsigned n_finishers = run->budget.n_finishers;
    struct sink_options sink_options = {.replaces = options->replaces,
                                        .syncs = options->syncs,
                                        .n_threads = n_finishers ? n_finishers : 1,
                                        .part = options->part,
                                        .n_parts = options->n_parts,
                                        .has_made_part = options->has_made_part,
                                        .drops_cache = options->drops_cache,
                                        .verifies = options->verifies,
                                        .finished_bytes = &run->stage_bytes,
                                        .resumes = options->resumes};
    enum phema_status status = phema_writer_reserve_descriptors(
        run->outputs->m * sink_n_files(run->outputs, options->resumes), err);
    for (size_t j = 0; !status && j < run->outputs->m; j++)
        status = sink_check(run->plan, run->outputs, j, &sink_options, err);
    if (status)
        return status;
    status = open_sinks(run, &sink_options, err);
    if (status)
        return status;
    bool is_resumable = options->resumes && run->result->n_not_resumable < run->outputs->m;
    return is_resumable ? journal_writer_open(&run->journal, run, err) : PHEMA_OK;
}

/* ---- Passes ---- */

static enum phema_status make_outputs(struct run *run, struct phema_error *err)
{
    for (size_t pass = 0; pass < run->budget.n_passes; pass++) {
        if (pass)
            phema_memory_profile_begin_stage(run->options.memory_profile, PHEMA_STAGE_ACCUMULATE);
        enum phema_status status = run_measure(run, pass, err);
        if (!status)
            status = run_pass(run, pass, err);
        if (!status)
            status = run_reread(run, pass, err);
        if (!status)
            status = run_publish(run, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Result ---- */

static void count_tensor(const struct run *run, size_t i)
{
    const struct phema_series *series = run->plan->series;
    if (series->tensors[i].rule == PHEMA_RULE_COPY)
        run->result->n_copied++;
    else if (series->tensors[i].tensor.n_elems &&
             !atomic_load(&run->varies[series->tensors[i].same_as]))
        run->result->n_constant++;
    else
        run->result->n_averaged++;
}

/* Of a part the tensors are counted of which it holds elements, aliases included, and their written
 * bytes. */
static void fill_result(const struct run *run)
{
    struct phema_synth_result *result = run->result;
    const struct phema_outputs *outputs = run->outputs;
    for (size_t x = 0; x < run->tiling.n && run->options.n_parts; x++)
        for (size_t i = run->tiling.order[x]; i != SIZE_MAX; i = run->next_alias[i]) {
            count_tensor(run, i);
            result->written_bytes +=
                outputs->m * phema_dtype_bytes(outputs->dtypes[i], tiling_n_elems(&run->tiling, x));
        }
    for (size_t i = 0; i < run->plan->series->n_tensors && !run->options.n_parts; i++)
        count_tensor(run, i);
    for (size_t j = 0; j < outputs->m && !run->options.n_parts; j++)
        result->written_bytes += outputs->items[j].size_bytes;
    result->read_bytes = atomic_load(&run->done_bytes);
    result->peak_resident_bytes = phema_memory_peak_resident();
}

/* Reports the consequences of the failure for other parts, other outputs and a later run. */
static void append_recovery_hint(const struct run *run, struct phema_error *err)
{
    const struct phema_synth_options *options = &run->options;
    bool is_kept = false;
    for (size_t j = 0; j < run->outputs->m; j++)
        is_kept = is_kept || (run->sinks[j] && sink_is_kept(run->sinks[j]));
    char before[128] = "", later[128] = "";
    if (options->n_parts)
        (void)snprintf(before, sizeof(before),
                       "; part %llu of %llu is to be run again, what the others have written stays",
                       (unsigned long long)options->part, (unsigned long long)options->n_parts);
    else if (run->n_published)
        (void)snprintf(before, sizeof(before), "; %zu of %zu outputs were published before",
                       run->n_published, run->outputs->m);
    if (is_kept)
        (void)snprintf(later, sizeof(later), "; %s continues",
                       phema_setting_name(PHEMA_SET_RESUME));
    size_t used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof(err->message) - used, "%s%s", before, later);
}

/* ---- The run ---- */

/* The steps of a run, in order. */
static enum phema_status execute(struct run *run, struct phema_error *err)
{
    enum phema_status status = check_form(run->plan, run->outputs, &run->options, err);
    if (!status)
        status = run_prepare(run, err);
    if (!status)
        status = run_start_gpus(run, err);
    if (!status)
        status = watch_files(run, err);
    if (!status && run->outputs->made_directory)
        status = phema_writer_make_directories(&run->made, run->outputs->made_directory,
                                               run->options.n_parts > 0, err);
    if (!status)
        status = open_outputs(run, err);
    if (status)
        return status;
    status = make_outputs(run, err);
    if (status) {
        append_recovery_hint(run, err);
        return status;
    }
    fill_result(run);
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_synth_check_new(const struct phema_plan *plan,
                                     const struct phema_outputs *outputs,
                                     const struct phema_synth_options *options,
                                     struct phema_error *err)
{
    const struct sink_options sink_options = {.replaces = options->replaces};
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < outputs->m && !status; j++) {
        const char *path = outputs->items[j].path;
        status = sink_check(plan, outputs, j, &sink_options, err);
        if (!status && !outputs->made_directory)
            status = phema_writer_check_parent(path, err);
        if (!status)
            status = phema_writer_check_writable(path, err);
    }
    return status;
}

PHEMA_FALLIBLE phema_synth_run(struct phema_synth_result *result, const struct phema_plan *plan,
                               struct phema_outputs *outputs,
                               const struct phema_synth_options *options, struct phema_error *err)
{
    *result =
        (struct phema_synth_result){.nan_tensor = SIZE_MAX,
                                    .part = options->part,
                                    .n_parts = options->n_parts,
                                    .peak_anonymous_bytes = phema_memory_now().anonymous_bytes};
    struct run run;
    run_init(&run, plan, outputs, options, result);
    phema_memory_profile_begin_stage(options->memory_profile, PHEMA_STAGE_ACCUMULATE);
    enum phema_status status = execute(&run, err);
    result->backend = phema_backend_name(run.backend);
    result->n_threads = run.budget.n_threads;
    result->n_passes = run.budget.n_passes;

    struct phema_made_directories made = run.made;
    run_clear(&run);
    phema_writer_leave_directories(&made, !status || options->n_parts);
    /* peaks that the watching thread has missed: those of opening and solving, and short ones */
    for (int i = 0; i < PHEMA_N_STAGES && options->memory_profile; i++) {
        uint64_t bytes =
            phema_memory_profile_stage(options->memory_profile, (enum phema_stage)i).anonymous.peak;
        if (bytes > result->peak_anonymous_bytes)
            result->peak_anonymous_bytes = bytes;
    }
    result->elapsed_s = phema_clock_s() - run.start_s;
    return status;
}

PHEMA_FALLIBLE phema_synth_find_done_parts(bool *is_done, const struct phema_plan *plan,
                                           struct phema_outputs *outputs,
                                           const struct phema_synth_options *options,
                                           struct phema_error *err)
{
    struct run run; /* for its options, which the digest contains */
    run_init(&run, plan, outputs, options, NULL);
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < outputs->m && !status; j++) {
        struct run_digest digest = run_digest_make(plan, outputs, j, &run.options);
        status = phema_writer_part_is_done(&is_done[j], outputs->items[j].path, options->part,
                                           options->n_parts, digest.text, err);
    }
    return status;
}

PHEMA_FALLIBLE phema_synth_drop_parts(const struct phema_plan *plan, struct phema_outputs *outputs,
                                      size_t output, const struct phema_synth_options *options,
                                      struct phema_error *err)
{
    struct run run; /* as above */
    run_init(&run, plan, outputs, options, NULL);
    struct run_digest digest = run_digest_make(plan, outputs, output, &run.options);
    return phema_writer_parts_drop(outputs->items[output].path, digest.text, err);
}

/* ---- Tensors in memory ---- */

/* A plan of consecutive targets, of all tensors or of one: views of the arrays of the whole plan. */
struct excerpt {
    struct phema_plan plan;
    struct phema_outputs outputs; /* of no files */
    /* of one tensor */
    struct phema_series series;
    struct phema_series_tensor tensor;
    struct phema_snapshot *snapshots; /* [series.n] */
    size_t rule;
};

static void clear_excerpt(struct excerpt *x)
{
    free(x->snapshots);
    free(x->outputs.items);
}

/* The caller clears it, also after a failure. */
static enum phema_status make_excerpt(struct excerpt *x, const struct phema_plan *plan, size_t j,
                                      size_t n, enum phema_dtype *dtypes, struct phema_error *err)
{
    static char path[] = "the average"; /* for messages */
    *x = (struct excerpt){.plan = *plan};
    x->plan.targets = plan->targets + j;
    x->plan.m = n;
    x->outputs = (struct phema_outputs){
        .items = calloc(n, sizeof(*x->outputs.items)), .m = n, .dtypes = dtypes};
    if (!x->outputs.items)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++)
        x->outputs.items[k].path = path;
    return PHEMA_OK;
}

/* Leaves out all tensors but one. */
static enum phema_status limit_to_tensor(struct excerpt *x, size_t i, struct phema_error *err)
{
    const struct phema_series *series = x->plan.series;
    x->series = *series;
    x->tensor = series->tensors[i];
    x->rule = x->plan.rule_of[i];
    x->snapshots = calloc(series->n, sizeof(*x->snapshots));
    if (!x->snapshots)
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++) {
        x->snapshots[k] = series->snapshots[k];
        x->snapshots[k].locations += i;
    }
    x->tensor.same_as = 0;
    x->series.tensors = &x->tensor;
    x->series.n_tensors = 1;
    x->series.snapshots = x->snapshots;
    x->plan.series = &x->series;
    x->plan.rule_of = &x->rule;
    return PHEMA_OK;
}

static enum phema_status make_in_memory(void *const *data, struct excerpt *x,
                                        const struct phema_synth_options *options,
                                        struct phema_error *err)
{
    struct phema_synth_result result = {.nan_tensor = SIZE_MAX};
    struct run run;
    bool is_empty = true;
    for (size_t i = 0; i < x->plan.series->n_tensors; i++)
        is_empty = is_empty && x->plan.series->tensors[i].tensor.n_elems == 0;
    if (is_empty)
        return PHEMA_OK;
    run_init(&run, &x->plan, &x->outputs, options, &result);
    run.memory = data;
    enum phema_status status = run_prepare(&run, err);
    for (size_t pass = 0; !status && pass < run.budget.n_passes; pass++)
        status = run_pass(&run, pass, err);
    if (!status)
        status = run_check_inputs_unchanged(&run, err);
    run_clear(&run);
    return status;
}

PHEMA_FALLIBLE phema_synth_tensors(void *const *data, const struct phema_plan *plan, size_t j,
                                   size_t n, enum phema_dtype *dtypes,
                                   const struct phema_synth_options *options,
                                   struct phema_error *err)
{
    struct excerpt excerpt;
    enum phema_status status = make_excerpt(&excerpt, plan, j, n, dtypes, err);
    if (!status)
        status = make_in_memory(data, &excerpt, options, err);
    clear_excerpt(&excerpt);
    return status;
}

PHEMA_FALLIBLE phema_synth_tensor(void *data, const struct phema_plan *plan, size_t j, size_t i,
                                  enum phema_dtype dtype, const struct phema_synth_options *options,
                                  struct phema_error *err)
{
    struct excerpt excerpt;
    enum phema_status status = make_excerpt(&excerpt, plan, j, 1, &dtype, err);
    if (!status)
        status = limit_to_tensor(&excerpt, i, err);
    if (!status)
        status = make_in_memory(&data, &excerpt, options, err);
    clear_excerpt(&excerpt);
    return status;
}

/* ---- Records ---- */

#define FIELD(kind, rule, name, member)                                                            \
    PHEMA_FIELD(kind, rule, name, struct phema_synth_result, member)

const struct phema_field phema_synth_result_fields[] = {
    FIELD(COUNT, IF_ABOVE_0, "part", part),
    FIELD(COUNT, IF_ABOVE_0, "parts", n_parts),
    FIELD(COUNT, ALWAYS, "read_bytes", read_bytes),
    FIELD(COUNT, ALWAYS, "written_bytes", written_bytes),
    FIELD(NUMBER, ALWAYS, "seconds", elapsed_s),
    FIELD(COUNT, ALWAYS, "peak_anonymous_bytes", peak_anonymous_bytes),
    FIELD(COUNT, ALWAYS, "peak_resident_bytes", peak_resident_bytes),
    FIELD(CHARS, ALWAYS, "device", device.name),
    FIELD(COUNT, IF_ABOVE_0, "gpu_bytes", device.gpu_bytes),
    FIELD(COUNT, ALWAYS, "nan", n_nan),
    FIELD(COUNT, ALWAYS, "inf", n_inf),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct phema_forecast, member)

const struct phema_field phema_forecast_fields[] = {
    FIELD(COUNT, ALWAYS, "read_bytes", read_bytes),
    FIELD(COUNT, ALWAYS, "write_bytes", write_bytes),
    FIELD(BOOL, ALWAYS, "compressed", is_compressed),
    FIELD(COUNT, ALWAYS, "peak_ram_bytes", peak_ram_bytes),
    FIELD(NUMBER, ALWAYS, "seconds", seconds),
    FIELD(CHARS, ALWAYS, "device", device.name),
    FIELD(COUNT, ALWAYS, "tile_elements", tile_elems),
    FIELD(TEXT, ALWAYS, "io", io),
    FIELD(COUNT, ALWAYS, "passes", n_passes),
    FIELD(COUNT, ALWAYS, "targets_per_pass", targets_per_pass),
    FIELD(SMALL, ALWAYS, "threads", n_threads),
    FIELD(COUNT, ALWAYS, "averaged", n_averaged),
    FIELD(COUNT, ALWAYS, "copied", n_copied),
    FIELD(COUNT, ALWAYS, "cold_bytes", cold_bytes),
    {0},
};
