// SPDX-License-Identifier: Apache-2.0
/* up_to_date.c - see up_to_date.h. */
#include "up_to_date.h"

#include <sys/stat.h>

#include "phema/writer.h"
#include "replay_options.h"

/* PHEMA_NO: the message says what differs. */
static enum phema_status compare(const struct phema_provenance *recorded,
                                 const struct cli_prepared *prepared, size_t output,
                                 const struct cli_synth_values *values, struct phema_error *err)
{
    const struct phema_plan *plan = prepared->plan;
    const char *path = prepared->outputs.items[output].path;
    if (phema_provenance_find_target(recorded, plan) != output)
        return phema_fail(err, PHEMA_NO, "is another average");
    if (!recorded->inputs[0].digest)
        return phema_fail(err, PHEMA_NO, "does not say which snapshots it was made of");
    struct cli_synth_values *again = NULL;
    enum phema_status status = cli_again_read(&again, recorded->command, path, err);
    const char *option = status ? NULL : cli_again_differs(&again->run, &values->run);
    if (option) /* said first: which tensors there are may follow from it */
        status = phema_fail(err, PHEMA_NO, "was made with another --%s", option);
    cli_again_free(again);
    if (!status)
        status = phema_provenance_check_inputs(recorded, plan, output, err);
    if (!status)
        status = phema_provenance_check_rows(recorded, plan, err);
    if (!status)
        status = phema_provenance_check_weights(recorded, plan, output, err);
    return status;
}

static enum phema_status look_at(const struct cli_prepared *prepared, size_t output,
                                 const struct cli_synth_values *values, struct phema_error *err)
{
    const struct phema_checkpoint_options options = {
        .allow_globals = values->run.series.allow_global.items,
        .n_allow_globals = values->run.series.allow_global.n};
    struct phema_provenance *recorded = NULL;
    enum phema_status status =
        phema_provenance_open(&recorded, prepared->outputs.items[output].path, &options, err);
    if (!status)
        status = compare(recorded, prepared, output, values, err);
    phema_provenance_close(recorded);
    return status;
}

PHEMA_FALLIBLE cli_skip_existing(struct cli_prepared *prepared,
                                 const struct cli_synth_values *values, struct phema_error *err)
{
    if (values->run.is_conversion)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--skip-existing: goes with no --convert, whose outputs do not say what "
                          "they were made of");
    struct phema_outputs *outputs = &prepared->outputs;
    for (size_t j = 0; j < outputs->m;) {
        const char *path = outputs->items[j].path;
        struct stat st;
        enum phema_status status = lstat(path, &st) ? PHEMA_NO : look_at(prepared, j, values, err);
        if (!status) {
            if (!values->common.is_quiet)
                cli_say("%s: is up to date", path);
            phema_writer_journal_remove_of(path);
            phema_outputs_remove(outputs, prepared->plan, j);
            continue;
        }
        if (status == PHEMA_ERR_RESOURCE)
            return status;
        if (lstat(path, &st) == 0 && !values->run.is_forced)
            return phema_fail_in(err, PHEMA_ERR_OUTPUT,
                                 "%s: exists already, and would be another (--force replaces it)",
                                 path);
        j++;
    }
    return PHEMA_OK;
}
