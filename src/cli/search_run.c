// SPDX-License-Identifier: Apache-2.0
/* search_run.c - see search_run.h. What a killed run leaves behind is known to the journal, and is
 * used or removed by the next one. */
#include "search_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/hash.h"
#include "phema/writer.h"
#include "skip.h"

#define JOURNAL_NAME "scores.csv"

/* One average of what there are several of may not be called as the others are. */
#define CANDIDATE_NAME "phema-{time}-{sigma}"

/* ---- The series ---- */

static enum phema_status digest_series(char digest[PHEMA_DIGEST], const struct phema_series *series,
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
                               phema_number_shown(&time, snapshot->named_time)};
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
    const struct cli_reals *given = &searching->given->run.target.at;
    size_t n = given->n ? given->n : 1;
    double *times = phema_arena_array(&searching->arena, n, sizeof(*times));
    if (!times)
        return phema_fail_memory(err);
    for (size_t i = 0; i < given->n; i++)
        times[i] = given->items[i];
    if (!given->n)
        times[0] = series->snapshots[series->n - 1].named_time;
    searching->search.times = times;
    searching->search.n_times = n;
    return PHEMA_OK;
}

PHEMA_FALLIBLE search_look(struct searching *searching, struct phema_error *err)
{
    const struct search_values *given = searching->given;
    struct phema_series_options options;
    struct phema_series *series = NULL;
    enum phema_status status =
        cli_series_options(&options, &given->common, &given->run.series, err);
    options.max_ram_bytes = given->run.max_ram;
    options.may_lack_key = given->run.into != NULL;
    if (!status)
        status = phema_series_open(&series, &options, err);
    if (!status)
        report_series(&given->common, series);
    if (!status)
        status = set_times(searching, series, err);
    if (!status)
        status = phema_series_identify(series, err);
    if (!status)
        status = digest_series(searching->snapshots, series, err);
    phema_series_close(series);
    return status;
}

/* ---- The journal ---- */

static char *describe_command(struct phema_arena *arena, const struct search_values *given)
{
    struct phema_text text = {0};
    phema_text_puts(&text, given->exec);
    if (given->is_shell)
        phema_text_puts(&text, " --shell");
    if (given->score_regex) {
        phema_text_puts(&text, " --score-regex ");
        cli_shell_quote(&text, given->score_regex);
    }
    char *kept = text.is_failed ? NULL : phema_arena_copy(arena, text.data, text.size);
    phema_text_clear(&text);
    return kept;
}

PHEMA_FALLIBLE search_open(struct searching *searching, struct phema_error *err)
{
    const struct search_values *given = searching->given;
    struct phema_text path = {0};
    phema_text_printf(&path, "%s/" JOURNAL_NAME, searching->directory);
    char *command = describe_command(&searching->arena, given);
    enum phema_status status = phema_text_check(&path, err);
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
                                    given->run.is_forced, err);
    if (!status)
        status = phema_writer_sync_entry(path.data, err);
    if (!status)
        status = phema_writer_sync_entry(searching->directory, err);
    if (!status)
        search_report_start(searching, was_cut);
    phema_text_clear(&path);
    return status;
}

static bool is_of_search(const struct searching *searching, const struct phema_search_score *score)
{
    const struct phema_search *search = &searching->search;
    for (size_t t = 0; t < search->n_times; t++)
        if (phema_search_counts(search, score, search->times[t]))
            return true;
    return false;
}

size_t search_count(const struct searching *searching)
{
    size_t n = 0, count = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    for (size_t i = 0; i < n; i++)
        count += is_of_search(searching, &scores[i]);
    return count;
}

/* ---- Candidates ---- */

static bool is_alike(const struct phema_search_point *a, const struct phema_search_point *b)
{
    return a->sigma_rel == b->sigma_rel && a->time == b->time;
}

static void remove_candidate(const struct searching *searching, const char *name)
{
    const struct cli_texts *globals = &searching->given->run.series.allow_global;
    const struct phema_checkpoint_options options = {.allow_globals = globals->items,
                                                     .n_allow_globals = globals->n};
    candidate_remove(searching->directory, name, &options);
}

/* Of what was made and has its score only that stays which --keep says. At the end nothing stays
 * that has none: a run that was killed may have made what is not asked for any more. */
static void tidy(struct searching *searching, bool is_end)
{
    const char *keep = searching->given->keep ? searching->given->keep : "best";
    size_t n = 0, n_made = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    const struct phema_search_made *made = phema_journal_made(searching->journal, &n_made);
    struct phema_search_best best;
    bool has_best = phema_search_find_best(&best, &searching->search, scores, n);
    bool keeps_best = strcmp(keep, "best") == 0, keeps_all = strcmp(keep, "all") == 0;
    for (size_t i = 0; i < n_made; i++) {
        bool is_scored = false;
        for (size_t k = 0; k < n && !is_scored; k++)
            is_scored = is_alike(&scores[k].at, &made[i].at);
        bool is_best = has_best && is_alike(&scores[best.index].at, &made[i].at);
        bool is_kept = is_scored ? keeps_all || (keeps_best && is_best) : !is_end;
        if (!is_kept)
            remove_candidate(searching, made[i].name);
    }
}

struct pass {
    struct candidate *candidates; /* [n] */
    size_t n, n_scored;
    struct cli_prepared *prepared; /* while candidates are made */
    struct cli_common common;      /* that says less */
    struct cli_run_values run;
    double widths[PHEMA_SEARCH_MOST_BATCH], time; /* what run points to */
};

/* What was not scored goes, if it was made here. */
static void end_pass(const struct searching *searching, struct pass *pass)
{
    for (size_t j = 0; j < pass->n; j++) {
        struct candidate *candidate = &pass->candidates[j];
        if (j >= pass->n_scored && candidate->is_own)
            remove_candidate(searching, candidate_name(candidate->path));
        candidate_clear(candidate);
    }
    free(pass->candidates);
}

static enum phema_status set_candidate(struct searching *searching, struct pass *pass, size_t j,
                                       struct phema_error *err)
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

static enum phema_status name_outputs(struct searching *searching, struct pass *pass,
                                      struct phema_error *err)
{
    struct cli_prepared *prepared = pass->prepared;
    enum phema_status status =
        cli_prepare_outputs(prepared, &pass->common, &pass->run, searching->out, err);
    bool is_alone = !status && prepared->outputs.form == PHEMA_FORM_SHARDED &&
                    prepared->outputs.m == 1 && !strchr(searching->out, '{');
    if (!is_alone)
        return status;
    struct phema_text out = {0};
    phema_text_printf(&out, "%s" CANDIDATE_NAME, searching->out);
    phema_outputs_clear(&prepared->outputs);
    prepared->outputs = (struct phema_outputs){0};
    status = phema_text_check(&out, err);
    if (!status)
        status = cli_prepare_outputs(prepared, &pass->common, &pass->run, out.data, err);
    phema_text_clear(&out);
    return status;
}

static enum phema_status check_same(const struct searching *searching,
                                    const struct phema_series *series, struct phema_error *err)
{
    char digest[PHEMA_DIGEST];
    enum phema_status status = digest_series(digest, series, err);
    if (!status && strcmp(digest, searching->snapshots) != 0)
        status = phema_fail(err, PHEMA_ERR_INPUTS,
                            "%s: the snapshots are no longer those that the search began with; "
                            "--to keeps to earlier ones",
                            series->root);
    return status;
}

static enum phema_status synthesise(struct searching *searching, struct pass *pass,
                                    struct phema_error *err)
{
    const struct cli_synth_values values = {.common = pass->common, .run = pass->run};
    enum phema_status status = cli_skip_existing(pass->prepared, &values, err);
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

/* As its options say it: of one time. */
static void set_targets(struct pass *pass, const struct searching *searching,
                        const struct phema_search_point *points, size_t n)
{
    *pass = (struct pass){.common = searching->given->common, .run = searching->given->run};
    pass->common.is_quiet = !pass->common.is_verbose;
    for (size_t i = 0; i < n; i++)
        pass->widths[i] = points[i].sigma_rel;
    pass->time = points[0].time;
    pass->run.target.sigma_rel = (struct cli_reals){pass->widths, n};
    pass->run.target.at = (struct cli_reals){&pass->time, 1};
    pass->run.target.max_error = PHEMA_UNKNOWN;
}

static enum phema_status plan(struct searching *searching, struct pass *pass,
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

/* Ends with end_pass in any case. */
static enum phema_status make(struct searching *searching, struct pass *pass,
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

/* ---- Scores ---- */

struct waiting {
    struct searching *searching;
    const struct candidate *candidate;
};

static void report_wait(void *context, double elapsed_s)
{
    const struct waiting *waiting = context;
    search_report_wait(waiting->searching, &waiting->candidate->at, elapsed_s);
}

/* A path that begins with a dash is no option of the command. */
static enum phema_status split(char ***words, const struct search_values *given, const char *path,
                               struct phema_error *err)
{
    struct phema_text shown = {0};
    phema_text_printf(&shown, "%s%s", path[0] == '-' ? "./" : "", path);
    enum phema_status status = phema_text_check(&shown, err);
    if (!status)
        status = given->is_shell ? phema_command_shell(words, given->exec, shown.data, err)
                                 : phema_command_split(words, given->exec, shown.data, err);
    phema_text_clear(&shown);
    return status;
}

static enum phema_status run_command(double *score, double *elapsed_s, struct searching *searching,
                                     const struct candidate *candidate, struct phema_error *err)
{
    const struct search_values *given = searching->given;
    struct waiting waiting = {searching, candidate};
    const struct phema_command_options options = {.timeout_s =
                                                      isnan(given->timeout) ? 0 : given->timeout,
                                                  .shows_errors = given->common.is_verbose,
                                                  .report = report_wait,
                                                  .context = &waiting};
    struct phema_command_result result = {0};
    char **words = NULL;
    enum phema_status status = split(&words, given, candidate->path, err);
    if (status)
        return status;
    status = phema_command_run(&result, words, &options, err);
    progress_finish(&searching->progress);
    if (!status)
        status = phema_command_score(score, &result.output, searching->pattern, err);
    if (status == PHEMA_ERR_INPUTS)
        search_report_failure(searching, &result);
    *elapsed_s = result.elapsed_s;
    phema_command_clear(&result);
    if (status)
        status = phema_fail_in(err, status, "%s on %s", given->is_shell ? "the command" : words[0],
                               candidate->path);
    free(words);
    return status;
}

static enum phema_status evaluate(struct searching *searching, struct candidate *candidate,
                                  struct phema_error *err)
{
    struct phema_search_score score = {.at = candidate->at,
                                       .predicted_error = candidate->predicted_error};
    enum phema_status status = run_command(&score.score, &score.seconds, searching, candidate, err);
    if (!status)
        status = phema_journal_add(searching->journal, &score, err);
    if (status)
        return status;
    candidate_keep(candidate);
    searching->n_evaluated++;
    search_report_score(searching, &score);
    tidy(searching, false);
    size_t n = 0;
    struct phema_search_best best;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    if (phema_search_find_best(&best, &searching->search, scores, n) &&
        is_alike(&scores[best.index].at, &candidate->at)) {
        free(searching->best_path);
        searching->best_path = strdup(candidate->path);
        searching->best_at = candidate->at;
    }
    return PHEMA_OK;
}

static enum phema_status pass_through(struct searching *searching,
                                      const struct phema_search_point *points, size_t n,
                                      struct phema_error *err)
{
    struct pass pass;
    enum phema_status status = make(searching, &pass, points, n, err);
    while (!status && pass.n_scored < pass.n) {
        status = evaluate(searching, &pass.candidates[pass.n_scored], err);
        pass.n_scored += !status;
    }
    end_pass(searching, &pass);
    return status;
}

/* The best one may have been scored by a run before this, and be gone. */
static enum phema_status keep_best(struct searching *searching, struct phema_error *err)
{
    const char *keep = searching->given->keep;
    size_t n = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    struct phema_search_best best;
    if (!phema_search_find_best(&best, &searching->search, scores, n))
        return phema_fail(err, PHEMA_NO, "%s/" JOURNAL_NAME ": none of %zu scores is finite",
                          searching->directory, search_count(searching));
    const struct phema_search_point at = scores[best.index].at;
    struct stat st;
    bool is_there = searching->best_path && is_alike(&at, &searching->best_at) &&
                    lstat(searching->best_path, &st) == 0;
    bool is_wanted = !keep || strcmp(keep, "none") != 0;
    if (is_there && is_wanted)
        return PHEMA_OK;
    free(searching->best_path);
    searching->best_path = NULL;
    if (!is_wanted)
        return PHEMA_OK;
    struct pass pass;
    enum phema_status status = make(searching, &pass, &at, 1, err);
    pass.n_scored = status ? 0 : pass.n;
    if (!status) {
        searching->best_at = at;
        searching->best_path = strdup(pass.candidates[0].path);
        if (!searching->best_path)
            status = phema_fail_memory(err);
    }
    end_pass(searching, &pass);
    return status;
}

/* What a run that was killed has made and not scored comes first, so that all goes on as it would
 * have; it is there until the next run. */
static size_t find_pending(const struct searching *searching, struct phema_search_point *out,
                           size_t most)
{
    size_t n = 0, n_scores = 0, n_made = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n_scores);
    const struct phema_search_made *made = phema_journal_made(searching->journal, &n_made);
    for (size_t i = 0; i < n_made && n < most; i++) {
        const struct phema_search_score unscored = {.at = made[i].at};
        bool is_wanted = is_of_search(searching, &unscored);
        for (size_t k = 0; k < n_scores && is_wanted; k++)
            is_wanted = !is_alike(&scores[k].at, &made[i].at);
        for (size_t k = 0; k < n && is_wanted; k++)
            is_wanted = !is_alike(&out[k], &made[i].at);
        struct phema_text path = {0};
        struct stat st;
        phema_text_printf(&path, "%s/%s", searching->directory, made[i].name);
        if (is_wanted && !path.is_failed && lstat(path.data, &st) == 0)
            out[n++] = made[i].at;
        phema_text_clear(&path);
    }
    return n;
}

/* Points of one time, as many as one pass makes; 0: the search is over. */
static size_t find_points(const struct searching *searching, struct phema_search_point *out)
{
    size_t n_scores = 0, n = 0, done = search_count(searching);
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n_scores);
    uint64_t left = searching->most > done ? searching->most - done : 0;
    size_t most = (size_t)(left < searching->batch ? left : searching->batch);
    size_t n_points = find_pending(searching, out, most);
    if (!n_points)
        n_points = phema_search_next(out, most, &searching->search, scores, n_scores);
    while (n < n_points && out[n].time == out[0].time)
        n++;
    return n;
}

PHEMA_FALLIBLE search_run(struct searching *searching, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    tidy(searching, false);
    while (!status) {
        struct phema_search_point points[PHEMA_SEARCH_MOST_BATCH];
        size_t n = find_points(searching, points);
        if (!n)
            break;
        status = pass_through(searching, points, n, err);
    }
    if (!status)
        status = keep_best(searching, err);
    tidy(searching, true);
    return status;
}

void search_clear(struct searching *searching)
{
    phema_journal_close(searching->journal);
    phema_pattern_free(searching->pattern);
    free(searching->best_path);
    phema_arena_clear(&searching->arena);
}
