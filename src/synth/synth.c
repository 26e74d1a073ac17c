// SPDX-License-Identifier: Apache-2.0
/* synth.c - the run: open the outputs, start the workers, watch them, publish. */
#include "phema/synth.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crew.h"
#include "phema/cleanup.h"
#include "phema/memory.h"
#include "phema/writer.h"

static uint64_t peak_resident_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss << 10 : 0;
}

/* What was needed until now, to open the snapshots and to solve; files have hardly been touched. */
static uint64_t peak_so_far(void)
{
    uint64_t peak_bytes = peak_resident_bytes(), file_bytes = phema_memory_now().file_bytes;
    return peak_bytes > file_bytes ? peak_bytes - file_bytes : 0;
}

/* ---- Outputs ---- */

static enum phema_status make_directory(const struct phema_outputs *outputs,
                                        struct phema_cleanup_entry **made, struct phema_error *err)
{
    if (!outputs->made_directory)
        return PHEMA_OK;
    phema_cleanup_hold();
    enum phema_status status = PHEMA_OK;
    if (mkdir(outputs->made_directory, 0777) == 0)
        status = phema_cleanup_add_partial(made, outputs->made_directory, true, err);
    else if (errno != EEXIST)
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: cannot be made: %s",
                            outputs->made_directory, strerror(errno));
    phema_cleanup_resume();
    return status;
}

static enum phema_status open_outputs(struct run *run, struct phema_error *err)
{
    struct sink_options options = {run->options->replaces, run->options->syncs,
                                   run->options->n_threads};
    enum phema_status status =
        phema_writer_allow(run->outputs->m * sink_n_files(run->outputs), err);
    for (size_t j = 0; !status && j < run->outputs->m; j++)
        status = sink_check(run->plan, run->outputs, j, &options, err);
    for (size_t j = 0; !status && j < run->outputs->m; j++)
        status = sink_open(&run->sinks[j], run->plan, run->outputs, j, &options, err);
    return status;
}

static enum phema_status check_inputs(const struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; !status && k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        status = phema_reader_finish(run->readers[k], err);
        if (!status)
            status = phema_checkpoint_check_unchanged(checkpoint, err);
    }
    for (size_t t = 0; !status && t < run->outputs->n_templates; t++)
        status = phema_checkpoint_check_unchanged(run->outputs->templates[t], err);
    return status;
}

static enum phema_status publish(struct run *run, bool is_directory_made,
                                 struct phema_synth_result *result, double start_s,
                                 struct phema_error *err)
{
    enum phema_status status = check_inputs(run, err);
    if (!status)
        status = crew_finish(run, result, start_s, err);
    for (size_t j = 0; !status && j < run->outputs->m; j++)
        run->outputs->items[j].size_bytes = sink_size_bytes(run->sinks[j]);
    for (size_t j = 0; !status && j < run->outputs->m; j++) {
        struct sink *sink = run->sinks[j];
        run->sinks[j] = NULL;
        status = sink_commit(sink, err);
    }
    if (!status && is_directory_made && run->options->syncs)
        status = phema_writer_sync_entry(run->outputs->made_directory, err);
    return status;
}

static void count_tensors(const struct run *run, struct phema_synth_result *result)
{
    const struct phema_series *series = run->plan->series;
    for (size_t i = 0; i < series->n_tensors; i++) {
        if (series->tensors[i].rule == PHEMA_RULE_COPY)
            result->n_copied++;
        else if (series->tensors[i].tensor.n_elems &&
                 !atomic_load(&run->varies[series->tensors[i].same_as]))
            result->n_constant++;
        else
            result->n_averaged++;
    }
    for (size_t j = 0; j < run->outputs->m; j++)
        result->written_bytes += run->outputs->items[j].size_bytes;
    result->read_bytes = run->cut.read_bytes * series->n;
    result->peak_resident_bytes = peak_resident_bytes();
}

PHEMA_FALLIBLE phema_synth_run(struct phema_synth_result *result, const struct phema_plan *plan,
                               struct phema_outputs *outputs,
                               const struct phema_synth_options *options, struct phema_error *err)
{
    double start_s = clock_now_s();
    struct phema_synth_options own = *options;
    if (outputs->is_in_order)
        own.n_threads = 1;
    *result = (struct phema_synth_result){
        .nan_tensor = SIZE_MAX, .n_threads = own.n_threads, .peak_anonymous_bytes = peak_so_far()};
    struct run run = {
        .plan = plan, .outputs = outputs, .options = &own, .backend = phema_backend_for_cpu()};
    result->backend = phema_backend_name(run.backend);
    struct phema_cleanup_entry *made = NULL;
    enum phema_status status = run_prepare(&run, err);
    if (!status)
        status = make_directory(outputs, &made, err);
    if (!status)
        status = open_outputs(&run, err);
    if (!status)
        status = crew_employ(&run, result, start_s, err);
    if (!status)
        status = publish(&run, made != NULL, result, start_s, err);
    if (!status)
        count_tensors(&run, result);

    run_clear(&run);
    phema_cleanup_remove(made);
    if (status && made)
        (void)rmdir(outputs->made_directory);
    result->elapsed_s = clock_now_s() - start_s;
    return status;
}
