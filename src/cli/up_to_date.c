// SPDX-License-Identifier: Apache-2.0
/* up_to_date.c - --skip-existing: outputs that exist and need not be made again. */
#include "up_to_date.h"

#include <sys/stat.h>

#include "phema/writer.h"
#include "replay_options.h"

/* PHEMA_NO  the message says how they differ */
static enum phema_status compare(const struct phema_provenance *recorded,
                                 const struct cli_prepared *prepared, size_t output,
                                 const struct cli_run_values *values, const struct cli_verb *synth,
                                 struct phema_error *err)
{
    const struct phema_plan *plan = prepared->plan;
    const char *path = prepared->outputs.items[output].path;
    if (phema_provenance_find_target(recorded, plan) != output)
        return phema_fail(err, PHEMA_NO, "is another average");
    if (!recorded->inputs[0].digest)
        return phema_fail(err, PHEMA_NO, "does not say which snapshots it was made of");
    struct cli_synth_values *replayed = NULL;
    enum phema_status status = cli_replay_read(&replayed, synth, recorded->command, path, err);
    const char *option = status ? NULL : cli_replay_difference(&replayed->run, values);
    if (option) /* checked first: other options may cause other tensors */
        status = phema_fail(err, PHEMA_NO, "was made with another --%s", option);
    cli_replay_free(replayed);
    if (!status)
        status = phema_provenance_check_inputs(recorded, plan, output, err);
    if (!status)
        status = phema_provenance_check_rows(recorded, plan, err);
    if (!status)
        status = phema_provenance_check_weights(recorded, plan, output, err);
    return status;
}

static enum phema_status compare_file(const struct cli_prepared *prepared, size_t output,
                                      const struct cli_run_values *values,
                                      const struct cli_verb *synth, struct phema_error *err)
{
    struct phema_provenance *recorded = NULL;
    enum phema_status status =
        phema_provenance_open(&recorded, prepared->outputs.items[output].path,
                              &values->plan.options.series.checkpoint, err);
    if (!status)
        status = compare(recorded, prepared, output, values, synth, err);
    phema_provenance_close(recorded);
    return status;
}

PHEMA_FALLIBLE cli_skip_existing(struct cli_prepared *prepared, const struct cli_run_values *values,
                                 const struct cli_verb *synth, bool is_quiet,
                                 struct phema_error *err)
{
    if (values->plan.options.is_conversion)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--skip-existing: goes with no --convert, whose outputs do not say what "
                          "they were made of");
    struct phema_outputs *outputs = &prepared->outputs;
    for (size_t j = 0; j < outputs->m;) {
        const char *path = outputs->items[j].path;
        struct stat st;
        enum phema_status status =
            lstat(path, &st) ? PHEMA_NO : compare_file(prepared, j, values, synth, err);
        if (!status) {
            if (!is_quiet)
                cli_say("%s: is up to date", path);
            phema_writer_journal_remove_of(path);
            phema_outputs_remove(outputs, prepared->plan, j);
            continue;
        }
        if (status == PHEMA_ERR_RESOURCE)
            return status;
        if (lstat(path, &st) == 0 && !values->synth.replaces)
            return phema_fail_in(err, PHEMA_ERR_OUTPUT,
                                 "%s: exists already, and would be another (--force replaces it)",
                                 path);
        j++;
    }
    return PHEMA_OK;
}
