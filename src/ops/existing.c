// SPDX-License-Identifier: Apache-2.0
/* existing.c - outputs that exist and need not be made again. */
#include <string.h>
#include <sys/stat.h>

#include "listener.h"
#include "phema/setting.h"

/* PHEMA_NO  the message says how they differ */
static enum phema_status compare(const struct phema_provenance *recorded,
                                 const struct phema_prepared *prepared, size_t output,
                                 const struct phema_commands *commands, struct phema_error *err)
{
    const struct phema_plan *plan = prepared->plan;
    const char *path = prepared->outputs.items[output].path;
    if (phema_provenance_find_target(recorded, plan) != output)
        return phema_fail(err, PHEMA_NO, "is another average");
    if (!recorded->inputs[0].digest)
        return phema_fail(err, PHEMA_NO, "does not say which snapshots it was made of");
    void *command = NULL;
    struct phema_request unused;
    enum phema_status status =
        commands->read(commands->context, &command, &unused, recorded->command, path, err);
    struct phema_name_buffer shown;
    const char *other =
        status ? NULL : commands->find_difference(&shown, commands->context, command);
    commands->release(command);
    if (status)
        return status;
    if (other) /* checked first: other settings may cause other tensors */
        return phema_fail(err, PHEMA_NO, "was made with another %s", other);
    status = phema_provenance_check_inputs(recorded, plan, output, err);
    if (!status)
        status = phema_provenance_check_rows(recorded, plan, err);
    return status ? status : phema_provenance_check_weights(recorded, plan, output, err);
}

PHEMA_FALLIBLE phema_output_compare(const struct phema_prepared *prepared, size_t output,
                                    const struct phema_request *request, struct phema_error *err)
{
    struct phema_provenance *recorded = NULL;
    enum phema_status status = phema_provenance_open(
        &recorded, prepared->outputs.items[output].path, &request->plan.series.checkpoint, err);
    if (!status)
        status = compare(recorded, prepared, output, request->commands, err);
    phema_provenance_close(recorded);
    return status;
}

PHEMA_FALLIBLE phema_outputs_skip_existing(struct phema_prepared *prepared,
                                           const struct phema_request *request,
                                           const struct phema_listener *listener,
                                           struct phema_error *err)
{
    if (request->plan.is_conversion)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_SKIP_EXISTING,
                                  "excludes %s, whose outputs do not record what they were made of",
                                  phema_setting_name(PHEMA_SET_CONVERT));
    struct phema_outputs *outputs = &prepared->outputs;
    for (size_t j = 0; j < outputs->m;) {
        const char *path = outputs->items[j].path;
        struct stat st;
        enum phema_status status =
            lstat(path, &st) ? PHEMA_NO : phema_output_compare(prepared, j, request, err);
        if (!status) {
            listener_note(listener, "%s: is up to date", path);
            phema_writer_journal_remove_of(path);
            phema_outputs_remove(outputs, prepared->plan, j);
            continue;
        }
        if (status == PHEMA_ERR_RESOURCE)
            return status;
        if (lstat(path, &st) == 0 && !request->synth.replaces)
            return phema_suggest(err,
                                 phema_fail_in(err, PHEMA_ERR_OUTPUT,
                                               "%s: exists, but is not up to date (%s replaces it)",
                                               path, phema_setting_name(PHEMA_SET_FORCE)),
                                 PHEMA_SET_FORCE, NULL);
        j++;
    }
    return PHEMA_OK;
}
