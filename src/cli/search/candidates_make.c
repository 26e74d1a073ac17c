// SPDX-License-Identifier: Apache-2.0
/* candidates_make.c - candidates are synthesised and removed. The journal knows the files of a
 * killed run; the next run uses or removes them. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "replay_options.h"
#include "search/search_run.h"

/* A name for a single average, which must match the names of the others. */
#define CANDIDATE_NAME "phema-{time}-{sigma}"

bool search_is_alike(const struct phema_search_point *a, const struct phema_search_point *b)
{
    return a->sigma_rel == b->sigma_rel && a->time == b->time;
}

static void remove_candidate(const struct searching *searching, const char *name)
{
    candidate_remove(searching->directory, name,
                     &searching->given->run.plan.options.series.checkpoint);
}

void search_tidy(struct searching *searching, bool is_end)
{
    size_t n = 0, n_made = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    const struct phema_search_made *made = phema_journal_made(searching->journal, &n_made);
    struct phema_search_best best;
    bool has_best = phema_search_find_best(&best, &searching->search, scores, n);
    bool keeps_best = searching->given->keep == KEEP_BEST;
    bool keeps_all = searching->given->keep == KEEP_ALL;
    for (size_t i = 0; i < n_made; i++) {
        bool is_scored = false;
        for (size_t k = 0; k < n && !is_scored; k++)
            is_scored = search_is_alike(&scores[k].at, &made[i].at);
        bool is_best = has_best && search_is_alike(&scores[best.index].at, &made[i].at);
        bool is_kept = is_scored ? keeps_all || (keeps_best && is_best) : !is_end;
        if (!is_kept)
            remove_candidate(searching, made[i].name);
    }
}

void search_pass_end(const struct searching *searching, struct search_pass *pass)
{
    for (size_t j = 0; j < pass->n; j++) {
        struct candidate *candidate = &pass->candidates[j];
        if (j >= pass->n_scored && candidate->is_own)
            remove_candidate(searching, candidate_name(candidate->path));
        candidate_clear(candidate);
    }
    free(pass->candidates);
}

static enum phema_status set_candidate(struct searching *searching, struct search_pass *pass,
                                       size_t j, struct phema_error *err)
{
    const struct phema_outputs *outputs = &pass->prepared->outputs;
    const struct phema_target *target = &pass->prepared->plan->targets[j];
    const struct phema_search_point at = {target->sigma_rel, target->named_time};
    const char *path = outputs->items[j].path, *name = candidate_name(path);
    struct stat st;
    bool is_there = lstat(path, &st) == 0;
    enum phema_status status = PHEMA_OK;
    if (!is_there)
        status = phema_journal_add_made(searching->journal, at, name, err);
    bool is_own = !is_there || phema_journal_has_made(searching->journal, name);
    if (!status)
        status = candidate_set(&pass->candidates[j], outputs, j, is_own, err);
    pass->n += !status;
    pass->candidates[j].at = at;
    pass->candidates[j].predicted_error = target->solution.predicted.total;
    return status;
}

static enum phema_status name_outputs(struct searching *searching, struct search_pass *pass,
                                      struct phema_error *err)
{
    struct cli_prepared *prepared = pass->prepared;
    enum phema_status status =
        cli_prepare_outputs(prepared, &pass->common, &pass->run, searching->out, err);
    bool is_alone = !status && phema_output_traits(&prepared->outputs)->is_directory &&
                    prepared->outputs.m == 1 && !strchr(searching->out, '{');
    if (!is_alone)
        return status;
    struct phema_strbuf out = {0};
    phema_strbuf_printf(&out, "%s" CANDIDATE_NAME, searching->out);
    phema_outputs_clear(&prepared->outputs);
    prepared->outputs = (struct phema_outputs){0};
    status = phema_strbuf_check(&out, err);
    if (!status)
        status = cli_prepare_outputs(prepared, &pass->common, &pass->run, out.data, err);
    phema_strbuf_clear(&out);
    return status;
}

static enum phema_status check_same(const struct searching *searching,
                                    const struct phema_series *series, struct phema_error *err)
{
    char digest[PHEMA_DIGEST];
    enum phema_status status = search_digest(digest, series, err);
    if (!status && strcmp(digest, searching->snapshots) != 0)
        status = phema_fail(err, PHEMA_ERR_INPUTS,
                            "%s: the snapshots are no longer those that the search began with; "
                            "--to keeps to earlier ones",
                            series->root);
    return status;
}

static enum phema_status synthesise(struct searching *searching, struct search_pass *pass,
                                    struct phema_error *err)
{
    enum phema_status status =
        cli_skip_existing(pass->prepared, &pass->run, &cli_synth, pass->common.is_quiet, err);
    if (status || pass->prepared->outputs.m == 0)
        return status;
    struct phema_synth_result result = {0};
    pass->prepared->options.report = progress_report;
    pass->prepared->options.context = &searching->progress;
    status = phema_synth_run(&result, pass->prepared->plan, &pass->prepared->outputs,
                             &pass->prepared->options, err);
    progress_finish(&searching->progress);
    searching->n_passes += !status;
    return status;
}

/* Sets the targets as options would: all at one time. */
static void set_targets(struct search_pass *pass, const struct searching *searching,
                        const struct phema_search_point *points, size_t n)
{
    *pass = (struct search_pass){.common = searching->given->common, .run = searching->given->run};
    pass->common.is_quiet = !pass->common.is_verbose;
    for (size_t i = 0; i < n; i++)
        pass->widths[i] = points[i].sigma_rel;
    pass->time = points[0].time;
    struct phema_plan_options *options = &pass->run.plan.options;
    options->sigma_rels = pass->widths;
    options->n_sigma_rels = n;
    options->ats = &pass->time;
    options->n_ats = 1;
    pass->run.plan.max_error = PHEMA_UNKNOWN;
}

static enum phema_status plan(struct searching *searching, struct search_pass *pass,
                              struct phema_error *err)
{
    enum phema_status status =
        cli_prepare_plan(pass->prepared, &pass->common, &pass->run, NULL, err);
    if (status)
        return status;
    struct phema_series *series = pass->prepared->plan->series;
    status = phema_series_identify(series, err);
    return status ? status : check_same(searching, series, err);
}

PHEMA_FALLIBLE search_pass_make(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                struct phema_error *err)
{
    struct cli_prepared prepared = {0};
    set_targets(pass, searching, points, n);
    pass->prepared = &prepared;
    pass->candidates = calloc(n, sizeof(*pass->candidates));
    enum phema_status status =
        pass->candidates ? plan(searching, pass, err) : phema_fail_memory(err);
    if (!status)
        status = name_outputs(searching, pass, err);
    for (size_t j = 0; !status && j < pass->prepared->plan->m; j++)
        status = set_candidate(searching, pass, j, err);
    if (!status)
        status = synthesise(searching, pass, err);
    cli_prepared_clear(&prepared);
    pass->prepared = NULL;
    return status;
}
