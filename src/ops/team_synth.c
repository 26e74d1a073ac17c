// SPDX-License-Identifier: Apache-2.0
/* team_synth.c - the processes of a team take runs of the outputs until none is left. */
#include "team_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "join_outputs.h"
#include "listener.h"
#include "phema/clock.h"

/* ---- Runs ---- */

/* Bytes of a run in one output. Runs of a large output take a second or so, and small outputs have
 * enough of them for a slow process to take fewer. */
#define RUN_BYTES  ((uint64_t)256 << 20)
#define LEAST_RUN  ((uint64_t)16 << 20)
#define FEW_RUNS   8
#define SMALL_RUNS 64

uint64_t team_count_runs(const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    const struct phema_series *series = plan->series;
    uint64_t bytes = 0; /* of tensors: headers and templates differ in size from output to output */
    for (size_t i = 0; i < series->n_tensors; i++)
        bytes += phema_dtype_bytes(outputs->dtypes[i], series->tensors[i].tensor.n_elems);
    uint64_t n = bytes / RUN_BYTES + (bytes % RUN_BYTES != 0), small = bytes / LEAST_RUN;
    small = small < FEW_RUNS ? FEW_RUNS : small > SMALL_RUNS ? SMALL_RUNS : small;
    n = n > small ? n : small;
    return n < PHEMA_MAX_PARTS ? n : PHEMA_MAX_PARTS;
}

/* Forms of outputs that one process writes as a whole: then each output is a run. */
static bool has_whole_runs(const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    struct phema_error ignored = {0};
    return phema_outputs_check_parts(plan, outputs, &ignored) != PHEMA_OK;
}

uint64_t phema_count_shares(const struct phema_plan *plan, const struct phema_outputs *outputs)
{
    if (!outputs->m)
        return 0;
    return has_whole_runs(plan, outputs) ? outputs->m : team_count_runs(plan, outputs);
}

PHEMA_FALLIBLE team_is_wanted(struct phema_synthesis *synthesis, struct phema_error *err)
{
    const struct phema_outputs *outputs = &synthesis->prepared.outputs;
    if (!synthesis->team)
        return PHEMA_OK;
    synthesis->is_of_team = synthesis->team->size > 1;
    for (size_t j = 0; j < outputs->m && !synthesis->is_of_team; j++) {
        enum phema_status status =
            join_has_parts(&synthesis->is_of_team, outputs->items[j].path, err);
        if (status)
            return status;
    }
    return synthesis->is_of_team ? auto_part_keep_paths(synthesis, err) : PHEMA_OK;
}

/* ---- This process ---- */

static void add_result(struct phema_synth_result *sum, const struct phema_synth_result *one)
{
    sum->read_bytes += one->read_bytes;
    sum->written_bytes += one->written_bytes;
    sum->n_nan += one->n_nan;
    sum->n_inf += one->n_inf;
    sum->n_overflow += one->n_overflow;
    if (one->nan_tensor < sum->nan_tensor)
        sum->nan_tensor = one->nan_tensor;
    if (one->peak_anonymous_bytes > sum->peak_anonymous_bytes)
        sum->peak_anonymous_bytes = one->peak_anonymous_bytes;
    sum->backend = one->backend;
    sum->n_threads = one->n_threads;
    sum->device = one->device;
}

/* Where an earlier run has made the part of some outputs only, it is made again for all. */
static enum phema_status is_run_done(bool *out, struct phema_prepared *prepared,
                                     const struct phema_synth_options *options,
                                     struct phema_error *err)
{
    size_t m = prepared->outputs.m, n_done = 0;
    bool *is_done = calloc(m + 1, sizeof(*is_done));
    if (!is_done)
        return phema_fail_memory(err);
    enum phema_status status =
        phema_synth_find_done_parts(is_done, prepared->plan, &prepared->outputs, options, err);
    for (size_t j = 0; j < m; j++)
        n_done += is_done[j];
    *out = !status && n_done == m;
    free(is_done);
    return status;
}

static enum phema_status make_output(struct phema_synth_result *result,
                                     struct phema_prepared *prepared, size_t j,
                                     const struct phema_synth_options *options,
                                     struct phema_error *err)
{
    struct phema_plan plan = *prepared->plan;
    struct phema_outputs outputs = prepared->outputs;
    plan.targets += j;
    outputs.items += j;
    plan.m = outputs.m = 1;
    return phema_synth_run(result, &plan, &outputs, options, err);
}

/* The GPUs of a machine are dealt to its processes. They are not tried out for each run: with
 * --device auto the CPU adds up. */
static struct phema_synth_options options_of_runs(const struct phema_prepared *prepared,
                                                  struct team_progress *progress)
{
    struct phema_synth_options options = prepared->options;
    struct phema_gpu_options *gpu = &options.gpu;
    if (gpu->kind == PHEMA_DEVICE_AUTO)
        gpu->kind = PHEMA_DEVICE_CPU;
    gpu->uses_all = gpu->uses_all || gpu->is_unnumbered;
    gpu->local_rank = progress->team->local_rank;
    gpu->local_size = progress->team->local_size;
    options.report = team_progress_report;
    options.context = progress;
    options.is_repeated = true;
    return options;
}

/* The outputs that this process makes. Those of others get the size 0. */
static enum phema_status make_outputs(struct phema_synth_result *sum,
                                      struct team_progress *progress,
                                      struct phema_prepared *prepared, struct phema_error *err)
{
    const struct phema_team *team = progress->team;
    struct phema_synth_options options = options_of_runs(prepared, progress);
    struct phema_outputs *outputs = &prepared->outputs;
    size_t end = 0;
    enum phema_status status = PHEMA_OK;
    for (uint64_t run; (run = team->next_run(team->context)) < outputs->m && !status;) {
        struct phema_synth_result result = {0};
        for (; end < run; end++)
            outputs->items[end].size_bytes = 0;
        end = (size_t)run + 1;
        status = make_output(&result, prepared, (size_t)run, &options, err);
        if (status)
            continue;
        add_result(sum, &result);
        team_progress_end_run(progress, false);
    }
    for (; end < outputs->m; end++)
        outputs->items[end].size_bytes = 0;
    return status;
}

/* This process' runs.
 *   makers  [n_runs] out: this process, for those that it has made */
static enum phema_status make_runs(uint64_t *makers, struct phema_synth_result *sum,
                                   struct team_progress *progress, struct phema_prepared *prepared,
                                   struct phema_error *err)
{
    const struct phema_team *team = progress->team;
    struct phema_synth_options options = options_of_runs(prepared, progress);
    options.n_parts = progress->n_runs;
    for (uint64_t run; (run = team->next_run(team->context)) < options.n_parts;) {
        struct phema_synth_result result = {0};
        bool is_done = false;
        options.part = run + 1;
        enum phema_status status = is_run_done(&is_done, prepared, &options, err);
        if (!status && !is_done)
            status = phema_synth_run(&result, prepared->plan, &prepared->outputs, &options, err);
        if (status)
            return status;
        if (!is_done) {
            add_result(sum, &result);
            options.has_made_part = true;
            makers[run] = team->rank + 1;
        }
        team_progress_end_run(progress, is_done);
    }
    return PHEMA_OK;
}

/* With -v: how many runs each process has made. */
static void report_runs(const struct team_progress *progress, const uint64_t *n_of)
{
    unsigned size = progress->team->size;
    uint64_t n = 0;
    struct phema_strbuf text = {0};
    for (unsigned i = 0; i < size; i++) {
        n += n_of[i];
        phema_strbuf_printf(&text, " %llu", (unsigned long long)n_of[i]);
    }
    if (text.data)
        listener_detail(progress->listener, "%llu runs by %u process%s:%s", (unsigned long long)n,
                        size, size == 1 ? "" : "es", text.data);
    phema_strbuf_clear(&text);
}

/* ---- All processes ---- */

/* The sizes of compressed outputs, which are known when they are joined. */
static enum phema_status find_sizes(struct phema_synth_result *result,
                                    struct phema_outputs *outputs, struct phema_error *err)
{
    if (!outputs->m || !phema_output_traits(outputs)->is_compressed)
        return PHEMA_OK;
    result->written_bytes = 0;
    for (size_t j = 0; j < outputs->m; j++) {
        struct stat st;
        if (stat(outputs->items[j].path, &st))
            return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: cannot be examined: %s",
                              outputs->items[j].path, strerror(errno));
        outputs->items[j].size_bytes = (uint64_t)st.st_size;
        result->written_bytes += outputs->items[j].size_bytes;
    }
    return PHEMA_OK;
}

/* Adds up the results of all processes. */
static enum phema_status add_up(struct phema_synth_result *result,
                                const struct team_progress *progress, struct phema_error *err)
{
    const struct phema_team *team = progress->team;
    uint64_t sums[] = {result->read_bytes, result->written_bytes, result->n_nan, result->n_inf,
                       result->n_overflow};
    uint64_t *each = calloc(2 * (size_t)team->size, sizeof(*each));
    enum phema_status status =
        team->agree(team->context, each ? PHEMA_OK : phema_fail_memory(err), err);
    if (status || !each) {
        free(each);
        return status;
    }
    uint64_t *n_of = each, *nan_tensors = each + team->size;
    n_of[team->rank] = progress->n_done + progress->n_skipped;
    nan_tensors[team->rank] = result->nan_tensor;
    team->sum(team->context, each, 2 * (size_t)team->size);
    team->sum(team->context, sums, ARRAY_LEN(sums));
    result->read_bytes = sums[0];
    result->written_bytes = sums[1];
    result->n_nan = sums[2];
    result->n_inf = sums[3];
    result->n_overflow = sums[4];
    for (unsigned i = 0; i < team->size; i++)
        if (nan_tensors[i] < result->nan_tensor)
            result->nan_tensor = (size_t)nan_tensors[i];
    report_runs(progress, n_of);
    free(each);
    return PHEMA_OK;
}

/* Of rank 0. An earlier run has published everything where there is nothing to join. */
static enum phema_status join(const struct phema_synthesis *synthesis, struct join_check *check,
                              const struct phema_listener *listener, struct phema_error *err)
{
    enum join_result result = JOIN_NOTHING;
    size_t m = synthesis->prepared.outputs.m;
    struct phema_listener brief = *listener;
    brief.joined = NULL; /* outputs are told of as those of one process */
    struct join_request request = {synthesis, &brief, listener, check, 0};
    if (m < synthesis->n_paths) /* others have parts that were made before, if any */
        check->n_makers = 0;
    enum phema_status status = join_when_done(&result, &request, err);
    join_check_end(check);
    bool is_current = request.n_current == synthesis->n_paths;
    if (!status && !is_current && (result == JOIN_WAITS || (result == JOIN_NOTHING && m)))
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: not all runs are there, though all were made; another command "
                            "writes the same outputs",
                            synthesis->paths[0]);
    return join_excuse(synthesis, listener, status, err);
}

/* Another team may have published everything while this one wrote. Rank 0 looks for all. */
static enum phema_status excuse(struct phema_synthesis *synthesis,
                                const struct phema_listener *listener, enum phema_status status,
                                struct phema_error *err)
{
    const struct phema_team *team = synthesis->team;
    uint64_t is_excused = 0;
    if (status != PHEMA_ERR_OUTPUT)
        return status;
    if (team->rank == 0)
        is_excused = join_excuse(synthesis, listener, status, err) == PHEMA_OK;
    team->broadcast(team->context, &is_excused, sizeof(is_excused));
    if (is_excused)
        join_forget(&synthesis->prepared);
    return is_excused ? PHEMA_OK : status;
}

/* Makes the runs, and adds up what all have made. */
static enum phema_status make_all(struct phema_synthesis *synthesis, struct join_check *check,
                                  struct team_progress *progress, struct phema_error *err)
{
    const struct phema_team *team = synthesis->team;
    struct phema_prepared *prepared = &synthesis->prepared;
    struct phema_synth_result *result = &synthesis->result;
    enum phema_status status = check->makers ? PHEMA_OK : phema_fail_memory(err);
    if (!status && prepared->outputs.m)
        status = has_whole_runs(prepared->plan, &prepared->outputs)
                     ? make_outputs(result, progress, prepared, err)
                     : make_runs(check->makers, result, progress, prepared, err);
    if (status)
        team->stop(team->context);
    team_progress_finish(progress);
    status = team->agree(team->context, status, err);
    if (status)
        return status;
    team->sum(team->context, check->makers, check->n_makers);
    return add_up(result, progress, err);
}

/* Publishes the outputs. */
static enum phema_status join_all(struct phema_synthesis *synthesis, struct join_check *check,
                                  const struct phema_listener *listener, struct phema_error *err)
{
    if (synthesis->team->rank > 0)
        return join_check_follow(check, err);
    enum phema_status status = join(synthesis, check, listener, err);
    return status ? status : find_sizes(&synthesis->result, &synthesis->prepared.outputs, err);
}

PHEMA_FALLIBLE team_synth(struct phema_synthesis *synthesis, const struct phema_listener *listener,
                          struct phema_error *err)
{
    const struct phema_team *team = synthesis->team;
    struct phema_prepared *prepared = &synthesis->prepared;
    struct phema_outputs *outputs = &prepared->outputs;
    struct team_progress progress;
    synthesis->result = (struct phema_synth_result){.nan_tensor = SIZE_MAX};
    bool is_whole = has_whole_runs(prepared->plan, outputs);
    team_progress_init(&progress, listener, team, phema_count_shares(prepared->plan, outputs),
                       is_whole ? PHEMA_KEEPS_NOTHING : PHEMA_KEEPS_TILES);
    struct join_check check = {.team = team,
                               .makers = calloc(progress.n_runs + 1, sizeof(*check.makers)),
                               .n_makers = (size_t)progress.n_runs};
    enum phema_status status = make_all(synthesis, &check, &progress, err);
    if (status) {
        free(check.makers);
        return is_whole ? status : excuse(synthesis, listener, status, err);
    }
    for (size_t j = 0; j < outputs->m && is_whole; j++) /* only their processes know the sizes */
        team->sum(team->context, &outputs->items[j].size_bytes, 1);
    if (!is_whole)
        status = join_all(synthesis, &check, listener, err);
    free(check.makers);
    synthesis->result.elapsed_s = phema_clock_s() - progress.start_s;
    return team->agree(team->context, status, err);
}
