// SPDX-License-Identifier: Apache-2.0
/* replay_options.c - the command that a provenance records, parsed again; and --skip-existing,
 * which compares it with the command line. */
#include "replay_options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/writer.h"
#include "remedy/remedy.h"

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

PHEMA_FALLIBLE cli_replay_read(struct cli_synth_values **values, const struct cli_verb *synth,
                               const char *command, const char *out, struct phema_error *err)
{
    struct cli_synth_values *read = calloc(1, sizeof(*read));
    if (!read)
        return phema_fail_memory(err);
    enum phema_status status = parse(read, synth, command, out, err);
    if (status) /* words of a stranger are no command to try */
        phema_error_clear_changes(err);
    if (status)
        cli_replay_free(read);
    else
        *values = read;
    return status;
}

void cli_replay_free(struct cli_synth_values *values)
{
    if (values)
        phema_arena_clear(&values->common.arena);
    free(values);
}

/* ---- Options that determine bytes ---- */

/* The first option that makes other bytes of the same weights and snapshots; NULL: no option. */
static const char *find_difference(const struct cli_run_values *a, const struct cli_run_values *b)
{
    const char *name = cli_find_difference(cli_run_rows, a, b);
    return name ? name : cli_find_difference(cli_make_rows, a, b);
}

/* ---- --skip-existing ---- */

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
    const char *option = status ? NULL : find_difference(&replayed->run, values);
    cli_replay_free(replayed);
    if (status)
        return status;
    if (option) /* checked first: other options may cause other tensors */
        return phema_fail(err, PHEMA_NO, "was made with another --%s", option);
    status = phema_provenance_check_inputs(recorded, plan, output, err);
    if (status)
        return status;
    status = phema_provenance_check_rows(recorded, plan, err);
    if (status)
        return status;
    return phema_provenance_check_weights(recorded, plan, output, err);
}

PHEMA_FALLIBLE cli_compare_existing(const struct cli_prepared *prepared, size_t output,
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
        return cli_fail_option(err, PHEMA_ERR_USAGE, "skip-existing",
                               "excludes --convert, whose outputs do not record what "
                               "they were made of");
    struct phema_outputs *outputs = &prepared->outputs;
    for (size_t j = 0; j < outputs->m;) {
        const char *path = outputs->items[j].path;
        struct stat st;
        enum phema_status status =
            lstat(path, &st) ? PHEMA_NO : cli_compare_existing(prepared, j, values, synth, err);
        if (!status) {
            if (!is_quiet)
                render_say("%s: is up to date", path);
            phema_writer_journal_remove_of(path);
            phema_outputs_remove(outputs, prepared->plan, j);
            continue;
        }
        if (status == PHEMA_ERR_RESOURCE)
            return status;
        if (lstat(path, &st) == 0 && !values->synth.replaces)
            return cli_suggest(
                err,
                phema_fail_in(err, PHEMA_ERR_OUTPUT,
                              "%s: exists, but is not up to date (--force replaces it)", path),
                "force", NULL);
        j++;
    }
    return PHEMA_OK;
}
