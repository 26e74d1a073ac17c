// SPDX-License-Identifier: Apache-2.0
/* remedy.c - the command after "try:": the command line of the user with one thing changed. */
#include <stdlib.h>
#include <string.h>

#include "phema/path.h"
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

/* Raw checkpoints of one file each: OUT without an ending, which shards have, would be the next
 * mistake. A slash makes it right for both. */
static void suggest_slash(struct phema_error *err, const struct cli_line *line)
{
    struct editing editing = {.line = line};
    struct phema_strbuf out = {0};
    const char **operands = NULL;
    size_t n = command_split_operands(&editing, &operands);
    bool is_bare = n == 2 && command_find_operand(line, "SNAPSHOTS") &&
                   command_find_operand(line, "OUT") && !strchr(operands[1], '{') &&
                   !strchr(phema_path_last_name(operands[1]), '.') &&
                   !phema_ends_with(operands[1], "/") && !path_is_directory(operands[1]);
    if (is_bare) {
        phema_strbuf_printf(&out, "%s/", operands[1]);
        if (!out.is_failed)
            (void)cli_suggest(err, PHEMA_ERR_INPUTS, "OUT", out.data);
    }
    phema_strbuf_clear(&out);
    phema_strbuf_clear(&editing.tail);
    free(operands);
}

/* No change, but a look at a path. */
static bool wants_inspect(const struct phema_error *err)
{
    return strcmp(phema_change_name(err, 0), phema_setting_option(PHEMA_SET_INSPECTED)) == 0;
}

static bool wants_raw(const struct phema_error *err)
{
    for (size_t i = 0; i < err->n_changes; i++) {
        const char *value = phema_change_value(err, i);
        if (strcmp(phema_change_name(err, i), "input-profile") == 0 && value &&
            strcmp(value, "raw") == 0)
            return true;
    }
    return false;
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
    if (wants_raw(err))
        suggest_slash(err, line);
    if (!err->n_changes || *cli_command(err))
        return;
    if (wants_inspect(err)) {
        (void)cli_suggest_command(err, status, "posthoc-ema inspect", phema_change_value(err, 0));
        return;
    }
    struct phema_error same = {0};
    command_edit_remedy(err, line);
    cli_suggest_words(&same, line, line->argc, 0, "");
    if (strcmp(cli_command(&same), cli_command(err)) == 0)
        phema_error_clear_changes(err); /* nothing was changed */
}
