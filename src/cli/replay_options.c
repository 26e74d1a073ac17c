// SPDX-License-Identifier: Apache-2.0
/* replay_options.c - the command that a provenance records, parsed again and compared with the
 * command line. */
#include "replay_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words ---- */

/* The words of the command, "--" and OUT. They lie in the arena. */
static enum phema_status split(struct cli_words *words, struct phema_arena *arena,
                               const char *command, const char *out, struct phema_error *err)
{
    enum phema_status status = cli_split_words(words, arena, command, 2, err);
    if (status)
        return status;
    char *dashes = phema_arena_copy(arena, "--", 2);
    char *path = phema_arena_copy(arena, out, strlen(out));
    if (!dashes || !path)
        return phema_fail_memory(err);
    words->items[words->n++] = dashes;
    words->items[words->n++] = path;
    return PHEMA_OK;
}

static enum phema_status parse(struct cli_synth_values *values, const struct cli_verb *synth,
                               const char *command, const char *out, struct phema_error *err)
{
    struct cli_words words = {0};
    enum phema_status status = split(&words, &values->common.arena, command, out, err);
    if (status)
        return status;
    if (words.n <= 3 || strcmp(words.items[0], "posthoc-ema") != 0 ||
        strcmp(words.items[1], synth->name) != 0)
        return phema_fail(err, PHEMA_ERR_FILE, "its command is not one of posthoc-ema synth");
    status = cli_parse(synth, values, words.n, words.items, err);
    if (status == PHEMA_ERR_USAGE)
        return phema_fail_in(err, PHEMA_ERR_FILE, "its command");
    if (status)
        return status;
    if (values->common.is_help || !values->run.outputs.out ||
        values->run.plan.options.is_conversion)
        return phema_fail(err, PHEMA_ERR_FILE, "its command makes no average");
    values->run.plan.max_error = PHEMA_UNKNOWN; /* --max-error does not affect the bytes */
    return PHEMA_OK;
}

static void release(void *handle)
{
    struct cli_synth_values *values = handle;
    if (values)
        phema_arena_clear(&values->common.arena);
    free(values);
}

/* The bits are those of the processor, except for sums of cuBLAS, which only cuBLAS repeats. */
static enum phema_status read_command(void *context, void **handle, struct phema_request *request,
                                      const char *command, const char *path,
                                      struct phema_error *err)
{
    const struct cli_commands *commands = context;
    struct cli_synth_values *values = calloc(1, sizeof(*values));
    *handle = values;
    if (!values)
        return phema_fail_memory(err);
    enum phema_status status = parse(values, commands->synth, command, path, err);
    if (status) /* words of a stranger are no command to try */
        phema_error_clear_changes(err);
    if (status)
        return status;
    values->run.device = values->run.synth.gpu.uses_blas ? "cuda" : "cpu";
    return cli_read_request(request, &values->common, &values->run, err);
}

/* The first option that makes other bytes of the same weights and snapshots; NULL: no option. */
static const char *find_difference(struct phema_name_buffer *shown, void *context,
                                   const void *handle)
{
    const struct cli_run_values *mine = ((const struct cli_commands *)context)->values;
    const struct cli_run_values *recorded = &((const struct cli_synth_values *)handle)->run;
    const char *name = cli_find_difference(cli_run_rows, recorded, mine);
    if (!name)
        name = cli_find_difference(cli_make_rows, recorded, mine);
    if (!name)
        return NULL;
    (void)snprintf(shown->text, sizeof(shown->text), "--%s", name);
    return shown->text;
}

void cli_commands_init(struct cli_commands *out, const struct cli_verb *synth,
                       const struct cli_run_values *values)
{
    *out = (struct cli_commands){.commands = {.context = out,
                                              .read = read_command,
                                              .find_difference = find_difference,
                                              .release = release},
                                 .synth = synth,
                                 .values = values};
}
