// SPDX-License-Identifier: Apache-2.0
/* search_open.c - opens the series and the journal of a search. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/checksum.h"
#include "phema/writer.h"
#include "search/search_run.h"

/* ---- The series ---- */

PHEMA_FALLIBLE search_digest(char digest[PHEMA_DIGEST], const struct phema_series *series,
                             struct phema_error *err)
{
    struct phema_hash *hash = NULL;
    enum phema_status status = phema_hash_new(&hash, err);
    if (status)
        return status;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        struct phema_name_buffer time;
        const char *texts[] = {snapshot->label, snapshot->digest,
                               snapshot->spec ? snapshot->spec : "",
                               phema_number_format(&time, snapshot->named_time)};
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
            phema_hash_add(hash, texts[i], strlen(texts[i]) + 1);
        phema_hash_add_u64(hash, phema_snapshot_bytes(snapshot));
    }
    phema_hash_digest(digest, hash);
    phema_hash_free(hash);
    return PHEMA_OK;
}

static enum phema_status set_times(struct searching *searching, const struct phema_series *series,
                                   struct phema_error *err)
{
    const struct phema_plan_options *given = &searching->given->run.plan.options;
    size_t n = given->n_ats ? given->n_ats : 1;
    double *times = phema_arena_array(&searching->arena, n, sizeof(*times));
    if (!times)
        return phema_fail_memory(err);
    for (size_t i = 0; i < given->n_ats; i++)
        times[i] = given->ats[i];
    if (!given->n_ats)
        times[0] = series->snapshots[series->n - 1].named_time;
    searching->search.times = times;
    searching->search.n_times = n;
    return PHEMA_OK;
}

/* The journal must not replace a snapshot or the file of --into. */
static enum phema_status claim_scores(const struct searching *searching,
                                      struct phema_claims *claims, struct phema_error *err)
{
    const char *into = searching->given->run.outputs.into;
    struct phema_strbuf path = {0};
    phema_strbuf_printf(&path, "%s/" SEARCH_JOURNAL, searching->directory);
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status && into)
        status = phema_claims_add_input(claims, into, "the checkpoint that is copied", err);
    if (!status)
        status = phema_claims_check_inputs(claims, path.data, err);
    phema_strbuf_clear(&path);
    return status;
}

PHEMA_FALLIBLE search_identify(struct searching *searching, struct phema_error *err)
{
    const struct search_values *given = searching->given;
    struct phema_series_options options;
    struct phema_series *series = NULL;
    enum phema_status status = cli_series_options(&options, &given->common, &given->run.plan, err);
    options.max_ram_bytes = given->run.synth.max_ram_bytes;
    options.may_lack_key = given->run.outputs.into != NULL;
    if (!status)
        status = phema_series_open(&series, &options, err);
    if (!status)
        status = claim_scores(searching, series->claims, err);
    if (!status)
        report_series(&given->common, series);
    if (!status)
        status = set_times(searching, series, err);
    if (!status)
        status = phema_series_identify(series, err);
    if (!status)
        status = search_digest(searching->snapshots, series, err);
    phema_series_close(series);
    return status;
}

/* ---- The journal ---- */

static char *describe_command(struct phema_arena *arena, const struct search_values *given)
{
    struct phema_strbuf text = {0};
    phema_strbuf_puts(&text, given->exec);
    if (given->is_shell)
        phema_strbuf_puts(&text, " --shell");
    if (given->score_regex) {
        phema_strbuf_puts(&text, " --score-regex ");
        cli_shell_quote(&text, given->score_regex);
    }
    char *kept = text.is_failed ? NULL : phema_arena_copy(arena, text.data, text.size);
    phema_strbuf_clear(&text);
    return kept;
}

PHEMA_FALLIBLE search_open(struct searching *searching, struct phema_error *err)
{
    const struct search_values *given = searching->given;
    struct phema_strbuf path = {0};
    phema_strbuf_printf(&path, "%s/" SEARCH_JOURNAL, searching->directory);
    char *command = describe_command(&searching->arena, given);
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status && !command)
        status = phema_fail_memory(err);
    if (!status && mkdir(searching->directory, 0777) && errno != EEXIST)
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: cannot be made: %s", searching->directory,
                            strerror(errno));
    const struct phema_journal_header header = {.command = command,
                                                .options = given->common.repeated_options,
                                                .snapshots = searching->snapshots};
    bool was_cut = false;
    if (!status)
        status = phema_journal_open(&searching->journal, &was_cut, path.data, &header,
                                    given->run.synth.replaces, err);
    if (!status)
        status = phema_writer_sync_entry(path.data, err);
    if (!status)
        status = phema_writer_sync_entry(searching->directory, err);
    if (!status)
        search_report_start(searching, was_cut);
    phema_strbuf_clear(&path);
    return status;
}
