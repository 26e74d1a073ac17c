// SPDX-License-Identifier: Apache-2.0
/* new_scales_pass.c - the pass through the snapshots that finds the scales of fp8 outputs. It
 * writes nothing: no journal, digests or sample apply to it. */
#include "new_scales.h"

static enum phema_status measure(struct run *run, size_t pass, struct phema_error *err)
{
    struct journal_writer *journal = run->journal;
    struct input_digests *input_digests = run->input_digests;
    uint64_t sample = run->options.sample;
    run->journal = NULL;
    run->input_digests = NULL;
    run->options.sample = 0;
    run->is_measuring = true;
    enum phema_status status = run_pass(run, pass, err);
    run->is_measuring = false;
    run->journal = journal;
    run->input_digests = input_digests;
    run->options.sample = sample;
    return status;
}

PHEMA_FALLIBLE run_measure(struct run *run, size_t pass, struct phema_error *err)
{
    if (!run->new_scales)
        return PHEMA_OK;
    new_scales_begin(run, pass);
    enum phema_status status = measure(run, pass, err);
    return status ? status : new_scales_end(run, pass, err);
}
