// SPDX-License-Identifier: Apache-2.0
/* run_passes.c - passes through the snapshots: one that makes outputs, one before it that finds the
 * scales of fp8 outputs, and one after it that reads the data again, in another way. The last two
 * write nothing: no journal applies to them. */
#include <stdlib.h>
#include <string.h>

#include "input_digests.h"
#include "new_scales.h"
#include "resume/resume.h"

/* Leaves out the tiles that an interrupted run has done. */
static enum phema_status resume(struct run *run, struct phema_error *err)
{
    if (!run->journal)
        return PHEMA_OK;
    struct done_ranges done = {0};
    enum phema_status status = resume_pass(&done, run, err);
    if (status)
        return status;
    journal_writer_begin_pass(run->journal, &done);
    uint64_t bytes = 0;
    size_t hint = 0;
    for (uint64_t t = 0; t < tiling_n_tiles(&run->tiling); t++) {
        struct tile_range range = tiling_tile(&run->tiling, t, &hint);
        if (!run_includes_tile(run, t, &range))
            bytes += run_read_bytes(run, &range);
    }
    run->total_bytes -= bytes;
    run->result->resumed_bytes += bytes;
    return PHEMA_OK;
}

PHEMA_FALLIBLE run_pass(struct run *run, size_t pass, struct phema_error *err)
{
    enum phema_status status = run_begin_pass(run, pass, err);
    if (!status)
        status = resume(run, err);
    if (!status)
        status = run_process_tiles(run, err);
    return status ? status : run_end_pass(run, err);
}

PHEMA_FALLIBLE run_check_inputs_unchanged(const struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; !status && k < series->n; k++)
        status = phema_checkpoint_check_unchanged(series->snapshots[k].checkpoint, err);
    for (size_t t = 0; !status && t < run->outputs->n_templates; t++)
        status = phema_checkpoint_check_unchanged(run->outputs->templates[t], err);
    return status;
}

/* ---- New scales ---- */

PHEMA_FALLIBLE run_measure(struct run *run, size_t pass, struct phema_error *err)
{
    struct journal_writer *journal = run->journal;
    struct input_digests *input_digests = run->input_digests;
    uint64_t sample = run->options.sample;
    if (!run->new_scales)
        return PHEMA_OK;
    run->journal = NULL;
    run->input_digests = NULL;
    run->options.sample = 0;
    run->is_measuring = true;
    enum phema_status status = run_pass(run, pass, err);
    run->is_measuring = false;
    run->journal = journal;
    run->input_digests = input_digests;
    run->options.sample = sample;
    return status ? status : new_scales_end(run, err);
}

/* ---- Rereading ---- */

/* Tiles that an earlier run has done are read as well. */
static enum phema_status read_again(struct run *run, size_t pass, struct phema_error *err)
{
    struct journal_writer *journal = run->journal;
    run_begin_stage(run, "rereading", run->first_output);
    run->stage_total_bytes = 0; /* the last group of outputs may read less than the others */
    if (run->budget.n_passes == 1)
        run->stage_total_bytes = run->total_bytes + run->result->resumed_bytes;
    run->journal = NULL;
    run->is_rereading = true;
    run->engine = PHEMA_READ_BY_THREADS;
    run->rereads = true;
    enum phema_status status = run_pass(run, pass, err);
    run->stage = NULL;
    run->journal = journal;
    run->is_rereading = false;
    run->engine = PHEMA_READ_BY_ANY;
    run->rereads = false;
    return status;
}

static enum phema_status compare_digests(const struct run *run, const struct phema_hash_sum *before,
                                         struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    for (size_t x = 0; x < input_digests_n_sums(run); x++)
        if (memcmp(&before[x], &run->input_digests->sums[x], sizeof(*before)) != 0)
            return phema_fail(
                err, PHEMA_ERR_FILE,
                "%s: read again, its data differ from those that were averaged; check "
                "its filesystem, its disk and the memory of this machine",
                series->snapshots[x % series->n].path);
    return PHEMA_OK;
}

PHEMA_FALLIBLE run_reread(struct run *run, size_t pass, struct phema_error *err)
{
    if (!run->options.verifies)
        return PHEMA_OK;
    struct phema_hash_sum *before = input_digests_new_sums(run);
    if (!before)
        return phema_fail_memory(err);
    memcpy(before, run->input_digests->sums, (size_t)input_digests_bytes(run));
    enum phema_status status = read_again(run, pass, err);
    if (!status)
        status = compare_digests(run, before, err);
    free(before);
    return status;
}
