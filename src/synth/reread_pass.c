// SPDX-License-Identifier: Apache-2.0
/* reread_pass.c - for --verify: reads the data of a pass a second time, in another way, before its
 * outputs are published. It writes nothing; the fingerprints of the snapshots must be the same. */
#include <stdlib.h>
#include <string.h>

#include "input_digests.h"

/* Tiles that an earlier run has done are read as well. */
static enum phema_status read_again(struct run *run, size_t pass, struct phema_error *err)
{
    struct journal_writer *journal = run->journal;
    size_t first, end;
    run_outputs_of(run, pass, &first, &end);
    run_begin_stage(run, "rereading", first);
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

static enum phema_status compare(const struct run *run, const struct phema_hash_sum *before,
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
        status = compare(run, before, err);
    free(before);
    return status;
}
