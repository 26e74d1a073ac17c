// SPDX-License-Identifier: Apache-2.0
/* published_parts.c - makes the plan again, which is rarely needed, and compares it with the outputs
 * that are there. */
#include "processes/published_parts.h"

#include "phema/cli.h"
#include "replay_options.h"

static enum phema_status drop_current(struct published_parts *parts, struct cli_prepared *prepared,
                                      struct phema_error *err)
{
    struct phema_outputs *outputs = &prepared->outputs;
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < outputs->m && !status; j++) {
        struct phema_error ignored;
        if (cli_compare_existing(prepared, j, &parts->args->run, parts->args->common.verb,
                                 &ignored))
            continue;
        status = phema_synth_drop_parts(prepared->plan, outputs, j, &prepared->options, err);
        parts->n_current++;
        if (!status && !parts->args->common.style.is_quiet)
            render_say("%s: is there and up to date; its parts were removed",
                       outputs->items[j].path);
    }
    return status;
}

PHEMA_FALLIBLE published_parts_drop(void *context, struct phema_error *err)
{
    struct published_parts *parts = context;
    const struct cli_run_values *run = &parts->args->run;
    parts->n_current = 0;
    if (run->plan.options.is_conversion) /* whose outputs do not record what they were made of */
        return PHEMA_OK;
    struct cli_common quiet = parts->args->common;
    quiet.style.is_quiet = quiet.style.is_mute = true; /* all was said when the run began */
    struct cli_prepared prepared = {.plan = NULL};
    enum phema_status status = cli_prepare_plan(&prepared, &quiet, run, NULL, err);
    if (!status)
        status = cli_prepare_outputs(&prepared, &quiet, run, run->outputs.out, err);
    if (!status)
        status = drop_current(parts, &prepared, err);
    cli_prepared_clear(&prepared);
    return status;
}

struct join_request published_parts_request(struct published_parts *parts)
{
    return (struct join_request){.paths = (const char *const *)parts->part->paths,
                                 .n = parts->part->n,
                                 .options = {.replaces = parts->args->run.synth.replaces,
                                             .syncs = parts->args->run.synth.syncs},
                                 .common = &parts->args->common,
                                 .says_waiting = parts->args->says_waiting,
                                 .drop = published_parts_drop,
                                 .context = parts};
}

enum phema_status published_parts_excuse(const struct auto_part *part,
                                         const struct cli_synth_values *args,
                                         enum phema_status status, struct phema_error *err)
{
    struct phema_error ignored;
    struct published_parts parts = {.part = part, .args = args};
    struct join_request request = published_parts_request(&parts);
    if (status != PHEMA_ERR_OUTPUT || !part->n || join_drop(&request, &ignored) ||
        parts.n_current < part->n)
        return status;
    *err = (struct phema_error){0};
    return PHEMA_OK;
}
