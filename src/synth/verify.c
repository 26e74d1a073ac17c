// SPDX-License-Identifier: Apache-2.0
/* verify.c - recomputes a plan and compares every tile with an existing output. */
#include <stdlib.h>

#include "compare_output.h"
#include "input_digests.h"
#include "phema/clock.h"
#include "phema/synth.h"
#include "run.h"

static enum phema_status fill_result(struct phema_verification *out, const struct run *run,
                                     struct phema_error *err)
{
    enum phema_status status = compare_output_count(out, run->comparison, err);
    if (status)
        return status;
    if (run->input_digests && run->outputs->items[0].n_digests) {
        out->n_sums = run->outputs->items[0].n_digests;
        out->sums = calloc(out->n_sums + 1, sizeof(*out->sums));
        if (!out->sums)
            return phema_fail_memory(err);
        input_digests_of_output(out->sums, run, 0);
    }
    out->n_tiles = tiling_n_tiles(&run->tiling);
    out->n_taken = run->options.sample && run->options.sample < out->n_tiles ? run->options.sample
                                                                             : out->n_tiles;
    out->read_bytes = atomic_load(&run->done_bytes);
    return PHEMA_OK;
}

/* The steps of a verification, in order. */
static enum phema_status execute(struct phema_verification *out, struct run *run,
                                 const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    enum phema_status status = run_prepare(run, err);
    if (!status)
        status = run_start_gpus(run, err);
    if (!status)
        status = compare_output_open(&run->comparison, run->plan, run->outputs, checkpoint, err);
    if (!status)
        status = run_measure(run, 0, err);
    if (!status)
        status = run_pass(run, 0, err); /* one target needs one pass */
    if (!status)
        status = run_check_inputs_unchanged(run, err);
    if (!status)
        status = phema_checkpoint_check_unchanged(checkpoint, err);
    if (!status && !run->options.sample)
        status = compare_output_finish(run->comparison, err);
    return status ? status : fill_result(out, run, err);
}

PHEMA_FALLIBLE phema_synth_verify(struct phema_verification *out, const struct phema_plan *plan,
                                  struct phema_outputs *outputs,
                                  const struct phema_synth_options *options,
                                  const struct phema_checkpoint *checkpoint,
                                  struct phema_error *err)
{
    struct phema_verification found = {0};
    struct phema_synth_result result = {.nan_tensor = SIZE_MAX};
    struct run run;
    run_init(&run, plan, outputs, options, &result);
    run.engine = PHEMA_READ_BY_THREADS; /* not the way that synth may have gone */
    run.rereads = options->io == PHEMA_IO_AUTO;
    if (phema_checkpoint_is_compressed(checkpoint)) /* one thread at a time may read it */
        run.options.n_threads = 1;
    enum phema_status status = execute(&found, &run, checkpoint, err);
    compare_output_close(run.comparison);
    run_clear(&run);
    if (status) {
        phema_verification_clear(&found);
        return status;
    }
    found.elapsed_s = phema_clock_s() - run.start_s;
    *out = found;
    return PHEMA_OK;
}

void phema_verification_clear(struct phema_verification *verification)
{
    free(verification->differences);
    free(verification->sums);
    *verification = (struct phema_verification){0};
}
