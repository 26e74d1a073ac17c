// SPDX-License-Identifier: Apache-2.0
/* published_parts.c - makes the plan again, which is rarely needed, and compares it with the outputs
 * that are there. */
#include "published_parts.h"

#include "listener.h"

static enum phema_status drop_current(struct published_parts *parts,
                                      struct phema_prepared *prepared, struct phema_error *err)
{
    struct phema_outputs *outputs = &prepared->outputs;
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < outputs->m && !status; j++) {
        struct phema_error ignored;
        if (phema_output_compare(prepared, j, &parts->synthesis->request, &ignored))
            continue;
        status = phema_synth_drop_parts(prepared->plan, outputs, j, &prepared->options, err);
        parts->n_current++;
        if (!status)
            listener_note(parts->listener, "%s: is there and up to date; its parts were removed",
                          outputs->items[j].path);
    }
    return status;
}

PHEMA_FALLIBLE published_parts_drop(void *context, struct phema_error *err)
{
    struct published_parts *parts = context;
    const struct phema_request *request = &parts->synthesis->request;
    parts->n_current = 0;
    if (request->plan.is_conversion) /* whose outputs do not record what they were made of */
        return PHEMA_OK;
    struct phema_prepared prepared = {.plan = NULL};
    /* all was said at the start */
    enum phema_status status = phema_prepare_plan(&prepared, request, NULL, &phema_nobody, err);
    if (!status)
        status =
            phema_prepare_outputs(&prepared, request, request->outputs.out, &phema_nobody, err);
    if (!status)
        status = drop_current(parts, &prepared, err);
    phema_prepared_clear(&prepared);
    return status;
}

void published_parts_forget(struct phema_prepared *prepared)
{
    while (prepared->outputs.m)
        phema_outputs_remove(&prepared->outputs, prepared->plan, prepared->outputs.m - 1);
}

struct join_request published_parts_request(struct published_parts *parts)
{
    const struct phema_synth_options *options = &parts->synthesis->request.synth;
    return (struct join_request){
        .paths = (const char *const *)parts->synthesis->paths,
        .n = parts->synthesis->n_paths,
        .options = {.replaces = options->replaces, .syncs = options->syncs},
        .listener = parts->listener,
        .drop = published_parts_drop,
        .context = parts};
}

enum phema_status published_parts_excuse(const struct phema_synthesis *synthesis,
                                         const struct phema_listener *listener,
                                         enum phema_status status, struct phema_error *err)
{
    struct phema_error ignored;
    struct published_parts parts = {synthesis, listener, 0};
    struct join_request request = published_parts_request(&parts);
    request.waiting = synthesis->waiting;
    if (status != PHEMA_ERR_OUTPUT || !synthesis->n_paths || join_drop(&request, &ignored) ||
        parts.n_current < synthesis->n_paths)
        return status;
    *err = (struct phema_error){0};
    return PHEMA_OK;
}
