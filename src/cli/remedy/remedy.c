// SPDX-License-Identifier: Apache-2.0
/* remedy.c - the command after "try:": the command line of the user with one thing changed. */
#include <stdio.h>
#include <string.h>

#include "phema/setting.h"
#include "remedy/remedy.h"

/* Suggests to leave out the option that the failure is about. */
static void suggest_default(struct phema_error *err, enum phema_status status,
                            const struct cli_line *line)
{
    const struct cli_opt *option =
        cli_find_option(line->options.items, err->about, strlen(err->about));
    if (option && option->kind != CLI_FLAG && !(option->flags & CLI_NEEDED))
        (void)cli_suggest(err, status, option->name, "");
}

/* No change, but a look at a path. */
static bool wants_inspect(const struct phema_error *err)
{
    return strcmp(phema_change_name(err, 0), phema_setting_option(PHEMA_SET_INSPECTED)) == 0;
}

void cli_complete_remedy(struct phema_error *err, enum phema_status status,
                         const struct cli_line *line)
{
    if (!err->n_changes && status == PHEMA_ERR_FILE)
        remedy_suggest_order(err, line);
    if (!err->n_changes && status == PHEMA_ERR_FILE)
        remedy_suggest_path(err, line);
    if (!err->n_changes && *err->about && status != PHEMA_NO && status != PHEMA_BUG)
        suggest_default(err, status, line);
    if (!err->n_changes || *cli_command(err))
        return;
    if (wants_inspect(err) && strcmp(line->verb->name, "inspect") == 0) {
        char path[sizeof(err->words)];
        (void)snprintf(path, sizeof(path), "%s", phema_change_value(err, 0));
        phema_error_clear_changes(err);
        (void)cli_suggest(err, status, "FILE|DIR", path);
    } else if (wants_inspect(err)) {
        (void)cli_suggest_command(err, status, "posthoc-ema inspect", phema_change_value(err, 0));
        return;
    }
    struct phema_error same = {0};
    command_edit_remedy(err, line);
    cli_suggest_words(&same, line, line->argc, 0, "");
    if (strcmp(cli_command(&same), cli_command(err)) == 0)
        phema_error_clear_changes(err); /* nothing was changed */
}
