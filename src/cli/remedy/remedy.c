// SPDX-License-Identifier: Apache-2.0
/* remedy.c - the command after "try:": the command line of the user with one thing changed. */
#include "remedy/remedy.h"

#include <stdlib.h>
#include <string.h>

#include "phema/path.h"
#include "remedy/command_edit.h"

/* Options whose absence would give another result, or none. */
static bool is_needed(const struct cli_opt *option)
{
    static const char *const names[] = {
        "layout",   "name-regex",  "input-sigma", "input-profile", "update-every",
        "reset-at", "time-offset", "weights",     "exec",          "sigma-rel",
        "profile",  "max-error",   "max-ram",     "force",         "convert",
        "into",     "advise",      "gamma",       "half-life",     "half-life-rel",
        "run",      "beta",        "decay",       "ema-half-life", "model",
        "until",    "disk",        "design"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(option->name, names[i]) == 0)
            return true;
    return cli_is_operand(option);
}

/* "--device: ...": suggests to leave that option out. */
static void suggest_default(struct phema_error *err, const struct cli_verb *verb)
{
    struct cli_options options;
    const char *message = err->message;
    if (strncmp(message, "--", 2) != 0)
        return;
    size_t size = strcspn(message + 2, ": ");
    cli_list_options(&options, verb);
    const struct cli_opt *option = cli_find_option(options.items, message + 2, size);
    if (option && option->kind != CLI_FLAG && !is_needed(option))
        phema_error_set_remedy(err, "--%s ''", option->name);
}

/* Raw checkpoints of one file each: OUT without an ending, which shards have, would be the next
 * mistake. A slash makes it right for both. */
static void suggest_slash(struct phema_error *err, const struct cli_verb *verb, int argc,
                          char **argv)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    struct editing editing = {.options = options.items};
    struct phema_strbuf out = {0};
    const char **operands = calloc((size_t)argc, sizeof(*operands));
    size_t n = operands ? command_split_operands(&editing, operands, argc, argv) : 0;
    bool is_bare = n == 2 && command_find_operand(options.items, "SNAPSHOTS", 9) &&
                   command_find_operand(options.items, "OUT", 3) && !strchr(operands[1], '{') &&
                   !strchr(phema_path_last_name(operands[1]), '.') &&
                   !phema_ends_with(operands[1], "/") && !path_is_directory(operands[1]);
    if (is_bare) {
        phema_strbuf_printf(&out, "%s/", operands[1]);
        if (!out.is_failed)
            (void)phema_suggest(err, PHEMA_ERR_INPUTS, "OUT", out.data);
    }
    phema_strbuf_clear(&out);
    phema_strbuf_clear(&editing.tail);
    free(operands);
}

void cli_complete_remedy(struct phema_error *err, enum phema_status status,
                         const struct cli_verb *verb, int argc, char **argv)
{
    static const char whole[] = "posthoc-ema ";
    struct phema_arena arena = {0};
    if (!*phema_error_remedy(err) && status == PHEMA_ERR_FILE)
        remedy_suggest_order(err, verb, argc, argv);
    if (!*phema_error_remedy(err) && status == PHEMA_ERR_FILE)
        remedy_suggest_path(err, verb, argc, argv);
    if (!*phema_error_remedy(err) && status != PHEMA_NO && status != PHEMA_BUG)
        suggest_default(err, verb);
    if (strstr(phema_error_remedy(err), "--input-profile raw"))
        suggest_slash(err, verb, argc, argv);
    const char *remedy = phema_error_remedy(err);
    if (!*remedy || strncmp(remedy, whole, sizeof(whole) - 1) == 0)
        return;
    const char *changes = phema_arena_copy(&arena, remedy, strlen(remedy));
    if (changes) {
        struct phema_strbuf same = {0};
        command_edit_remedy(err, &arena, verb, changes, argc, argv);
        phema_strbuf_puts(&same, "posthoc-ema");
        for (int i = 1; i < argc; i++)
            command_copy_word(&same, argv[i]);
        if (!same.is_failed && strcmp(same.data, phema_error_remedy(err)) == 0)
            phema_error_set_remedy(err, "%s", ""); /* nothing was changed */
        phema_strbuf_clear(&same);
    } else {
        phema_error_set_remedy(err, "%s", "");
    }
    phema_arena_clear(&arena);
}
