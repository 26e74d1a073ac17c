// SPDX-License-Identifier: Apache-2.0
/* search_run.c - a search: identify the snapshots, open the journal; then the loop: choose points,
 * make candidates, score them. */
#include "search_ahead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "listener.h"
#include "phema/clock.h"
#include "phema/setting.h"

/* ---- The snapshots ---- */

static enum phema_status set_times(struct searching *searching, const struct phema_series *series,
                                   struct phema_error *err)
{
    const struct phema_plan_options *options = &searching->options->request.plan;
    size_t n = options->n_ats ? options->n_ats : 1;
    double *times = phema_arena_array(&searching->arena, n, sizeof(*times));
    if (!times)
        return phema_fail_memory(err);
    times[0] = series->snapshots[series->n - 1].named_time;
    for (size_t i = 0; i < options->n_ats; i++)
        times[i] = options->ats[i];
    searching->search.times = times;
    searching->search.n_times = n;
    return PHEMA_OK;
}

/* The newest snapshot that is not later than every average. */
static enum phema_status set_newest(struct searching *searching, const struct phema_series *series,
                                    struct phema_error *err)
{
    struct phema_search *search = &searching->search;
    double latest = search->times[0];
    for (size_t t = 1; t < search->n_times; t++)
        latest = fmax(latest, search->times[t]);
    size_t last = series->n;
    while (last > 0 && series->snapshots[last - 1].named_time > latest)
        last--;
    if (!last)
        return PHEMA_OK;
    const struct phema_snapshot *at = &series->snapshots[last - 1];
    const char *label = series->snapshots[phema_series_find_newest(series, at->time)].label;
    search->has_newest = true;
    search->newest_time = at->named_time;
    searching->newest = phema_arena_copy(&searching->arena, label, strlen(label));
    return searching->newest ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status identify(struct searching *searching, struct phema_series *series,
                                  struct phema_error *err)
{
    const char *into = searching->options->request.outputs.into;
    enum phema_status status = PHEMA_OK;
    if (into)
        status = phema_claims_add_input(series->claims, into, "the checkpoint that is copied", err);
    if (!status) /* the journal must not replace a snapshot or the file of --into */
        status = phema_claims_check_inputs(series->claims, searching->options->scores_path, err);
    if (status)
        return status;
    status = set_times(searching, series, err);
    return status ? status : set_newest(searching, series, err);
}

/* ---- Their labels ---- */

static enum phema_status keep_checks(struct searching *searching, struct phema_plan *plan,
                                     struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_snapshot *labels =
        phema_arena_array(&searching->arena, series->n, sizeof(*labels));
    for (size_t k = 0; labels && k < series->n; k++) {
        const char *label = series->snapshots[k].label;
        labels[k] = (struct phema_snapshot){
            .label = phema_arena_copy(&searching->arena, label, strlen(label))};
        if (!labels[k].label)
            return phema_fail_memory(err);
    }
    if (!labels)
        return phema_fail_memory(err);
    searching->labels = (struct phema_series){.snapshots = labels, .n = series->n};
    searching->checks = plan->checks;
    plan->checks = (struct phema_series_checks){.verdict = PHEMA_SERIES_UNKNOWN};
    return phema_recognised_copy(&searching->labels.recognised, &series->recognised,
                                 &searching->arena, err);
}

/* Scores of wrong averages are worth nothing, and take the longest of all. */
static enum phema_status judge(struct searching *searching, const struct phema_plan *plan,
                               struct phema_error *err)
{
    searching->listener->checked(searching->listener->heard.context, plan);
    if (plan->checks.verdict != PHEMA_SERIES_WRONG || searching->options->accepts_wrong)
        return PHEMA_OK;
    struct phema_error why = {0};
    enum phema_status status = phema_series_fail_wrong(plan->series, &plan->checks, &why);
    (void)phema_fail(err, status, "%s: %s; %swarn searches all the same", plan->series->root,
                     why.message, phema_setting_equals(PHEMA_SET_CHECKS));
    phema_error_copy_changes(err, &why);
    if (plan->checks.setting == PHEMA_SET_INPUT_PROFILE)
        return phema_blame(err, status, plan->checks.setting);
    return err->n_changes ? status : phema_suggest(err, status, PHEMA_SET_CHECKS, "warn");
}

/* A plan of any average has the checks. */
static enum phema_status open_series(struct searching *searching, struct phema_error *err)
{
    const struct phema_plan_options *options = &searching->options->request.plan;
    const struct phema_search_point first = {searching->search.widths[0],
                                             options->n_ats ? options->ats[0] : PHEMA_UNKNOWN};
    struct search_pass pass;
    enum phema_status status = search_pass_plan(searching, &pass, &first, 1, err);
    if (!status)
        status = identify(searching, pass.prepared.plan->series, err);
    if (!status)
        status = judge(searching, pass.prepared.plan, err);
    if (!status)
        status = keep_checks(searching, pass.prepared.plan, err);
    phema_prepared_clear(&pass.prepared);
    return status;
}

/* ---- The journal ---- */

static char *describe_command(struct phema_arena *arena, const struct search_options *options)
{
    struct phema_strbuf text = {0};
    phema_strbuf_puts(&text, options->exec);
    if (options->is_shell)
        phema_strbuf_printf(&text, " %s", phema_setting_dashed(PHEMA_SET_SHELL));
    if (options->score_regex) {
        phema_strbuf_printf(&text, " %s ", phema_setting_dashed(PHEMA_SET_SCORE_REGEX));
        phema_strbuf_put_word(&text, options->score_regex);
    }
    char *kept = text.is_failed ? NULL : phema_arena_copy(arena, text.data, text.size);
    phema_strbuf_clear(&text);
    return kept;
}

static enum phema_status open_journal(struct searching *searching, struct phema_error *err)
{
    const struct search_options *options = searching->options;
    const struct phema_journal_header header = {.command =
                                                    describe_command(&searching->arena, options),
                                                .options = options->command_options,
                                                .snapshots = searching->snapshots,
                                                .is_line = options->line != NULL};
    if (!header.command)
        return phema_fail_memory(err);
    struct phema_made_directories made;
    bool was_cut = false;
    enum phema_status status =
        phema_writer_make_directories(&made, searching->options->directory, true, err);
    if (!status)
        status = phema_writer_sync_directories(&made, err);
    phema_writer_leave_directories(&made, true);
    if (status)
        return status;
    status = phema_journal_open(&searching->journal, &was_cut, searching->options->scores_path,
                                &header, options->request.synth.replaces, err);
    if (status)
        return status;
    status = phema_writer_sync_entry(searching->options->scores_path, err);
    if (!status)
        searching->listener->started(searching->listener->heard.context, searching, was_cut);
    return status;
}

/* ---- Scoring ---- */

/* A path that begins with a dash must not be read as an option of the command. */
static enum phema_status split(char ***words, const struct search_options *options,
                               const char *path, struct phema_error *err)
{
    struct phema_strbuf shown = {0};
    phema_strbuf_printf(&shown, "%s%s", path[0] == '-' ? "./" : "", path);
    enum phema_status status = phema_strbuf_check(&shown, err);
    if (!status)
        status = options->is_shell ? phema_command_shell(words, options->exec, shown.data, err)
                                   : phema_command_split(words, options->exec, shown.data, err);
    phema_strbuf_clear(&shown);
    return status;
}

static void wait(void *context, double elapsed_s)
{
    const struct searching *searching = context;
    searching->listener->waiting(searching->listener->heard.context, searching, elapsed_s);
}

static enum phema_status run_command(struct phema_search_score *score, struct searching *searching,
                                     const char *path, struct phema_error *err)
{
    const struct search_options *options = searching->options;
    const struct phema_command_options command = {.timeout_s = options->timeout_s,
                                                  .shows_errors = options->shows_errors,
                                                  .report = wait,
                                                  .context = searching};
    struct phema_command_result result = {0};
    char **words = NULL;
    enum phema_status status = split(&words, options, path, err);
    if (status)
        return status;
    status = phema_command_run(&result, words, &command, err);
    if (searching->listener->heard.end)
        searching->listener->heard.end(searching->listener->heard.context);
    if (!status)
        status = phema_command_score(&score->score, &result.output, searching->pattern, err);
    if (status == PHEMA_ERR_COMMAND)
        searching->listener->failed(searching->listener->heard.context, &result);
    score->seconds = result.elapsed_s;
    phema_command_clear(&result);
    if (status)
        status = phema_fail_in(err, status, "%s on %s",
                               options->is_shell ? "the command" : words[0], path);
    free(words);
    return status;
}

static void set_best(struct searching *searching, const struct candidate *candidate)
{
    free(searching->best_path);
    searching->best_path = strdup(candidate->path);
    searching->best_at = candidate->at;
}

/* A changed candidate is removed, and made again where it has to be there. */
static enum phema_status remove_changed(struct searching *searching,
                                        const struct candidate *candidate, struct phema_error *err)
{
    if (!candidate_is_changed(candidate))
        return PHEMA_OK;
    if (!candidate->is_own)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: the command changed this file, which was there before the search",
                          candidate->path);
    if (!searching->has_said_changed)
        listener_warn(&searching->listener->heard,
                      "%s: the command changed or removed this file; candidates that stay are "
                      "made again",
                      candidate->path);
    searching->has_said_changed = true;
    candidate_remove(candidate);
    return PHEMA_OK;
}

static enum phema_status evaluate(struct searching *searching, const struct search_pass *pass,
                                  struct candidate *candidate, struct phema_error *err)
{
    struct phema_search_score score = {.at = candidate->at,
                                       .predicted_error = candidate->predicted_error};
    searching->scored_at = candidate->at;
    if (!searching->ahead)
        search_ahead_begin(searching, pass);
    enum phema_status status = run_command(&score, searching, candidate->path, err);
    if (status)
        search_ahead_drop(searching);
    search_ahead_wait(searching);
    searching->command_s = score.seconds;
    if (!status)
        status = phema_journal_add(searching->journal, &score, err);
    if (status)
        return status;
    candidate_keep(candidate);
    searching->n_evaluated++;
    searching->listener->scored(searching->listener->heard.context, searching, &score);
    status = remove_changed(searching, candidate, err);
    if (status)
        return status;
    search_tidy(searching, false);
    struct phema_search_best best;
    if (phema_journal_find_best(&best, searching->journal, &searching->search) &&
        phema_search_point_equals(best.score->at, candidate->at))
        set_best(searching, candidate);
    return PHEMA_OK;
}

/* The candidate stays known until the search ends. */
static enum phema_status add_scored(struct searching *searching, struct candidate *candidate,
                                    struct phema_error *err)
{
    struct candidate *scored = phema_arena_grow(&searching->arena, searching->scored,
                                                searching->n_scored, sizeof(*scored));
    if (!scored)
        return phema_fail_memory(err);
    searching->scored = scored;
    scored[searching->n_scored++] = *candidate;
    *candidate = (struct candidate){.path = NULL};
    return PHEMA_OK;
}

/* The command of an earlier candidate may have changed this one. */
static enum phema_status evaluate_next(struct searching *searching, struct search_pass *pass,
                                       struct phema_error *err)
{
    struct candidate *candidate = &pass->candidates[pass->n_scored];
    enum phema_status status = remove_changed(searching, candidate, err);
    if (!status && candidate_is_changed(candidate))
        status = search_make_again(searching, candidate, err);
    if (!status)
        status = evaluate(searching, pass, candidate, err);
    if (status)
        return status;
    pass->n_scored++;
    return add_scored(searching, candidate, err);
}

static enum phema_status pass_through(struct searching *searching,
                                      const struct phema_search_point *points, size_t n,
                                      struct phema_error *err)
{
    struct search_pass pass;
    bool is_made = false;
    double start_s = phema_clock_s();
    enum phema_status status = search_ahead_take(&is_made, searching, &pass, points, n, err);
    if (!status && !is_made) {
        status = search_pass_make(searching, &pass, points, n, NULL, err);
        searching->pass_s = phema_clock_s() - start_s;
    }
    while (!status && pass.n_scored < pass.n)
        status = evaluate_next(searching, &pass, err);
    search_pass_end(searching, &pass);
    return status;
}

/* Candidates that stay are as the program made them, whatever commands have done since. */
static enum phema_status restore_scored(struct searching *searching, struct phema_error *err)
{
    const struct search_options *options = searching->options;
    struct phema_search_best best;
    bool has_best = phema_journal_find_best(&best, searching->journal, &searching->search);
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && i < searching->n_scored; i++) {
        struct candidate *candidate = &searching->scored[i];
        bool is_best = has_best && phema_search_point_equals(best.score->at, candidate->at);
        if (options->keep != SEARCH_KEEPS_ALL && !(options->keep == SEARCH_KEEPS_BEST && is_best)) {
            if (candidate->is_own)
                candidate_remove(candidate); /* changed, it does not say that it was made here */
            continue;
        }
        status = remove_changed(searching, candidate, err);
        if (!status && candidate_is_changed(candidate)) {
            status = search_make_again(searching, candidate, err);
            candidate_keep(candidate);
        }
    }
    return status;
}

/* An earlier run may have scored the best candidate and removed its file. */
static enum phema_status keep_best(struct searching *searching, struct phema_error *err)
{
    struct phema_search_best best;
    if (!phema_journal_find_best(&best, searching->journal, &searching->search))
        return phema_fail(err, PHEMA_NO, "%s: none of %zu scores is finite",
                          searching->options->scores_path,
                          phema_journal_count(searching->journal, &searching->search));
    const struct phema_search_point at = best.score->at;
    struct stat st;
    bool is_there = searching->best_path && phema_search_point_equals(at, searching->best_at) &&
                    lstat(searching->best_path, &st) == 0;
    bool is_wanted = searching->options->keep != SEARCH_KEEPS_NONE;
    if (is_there && is_wanted)
        return PHEMA_OK;
    free(searching->best_path);
    searching->best_path = NULL;
    if (!is_wanted)
        return PHEMA_OK;
    struct search_pass pass;
    enum phema_status status = search_pass_make(searching, &pass, &at, 1, NULL, err);
    pass.n_scored = status ? 0 : pass.n;
    if (!status) {
        set_best(searching, &pass.candidates[0]);
        status = searching->best_path ? PHEMA_OK : phema_fail_memory(err);
    }
    search_pass_end(searching, &pass);
    return status;
}

/* Candidates that a killed run has made and not scored come first, so that the search continues as
 * if it had not been killed. They exist until the next run. */
static size_t find_pending(const struct searching *searching, struct phema_search_point *out,
                           size_t most)
{
    size_t n = 0, n_made = 0;
    const struct phema_search_made *made = phema_journal_made(searching->journal, &n_made);
    for (size_t i = 0; i < n_made && n < most; i++) {
        bool is_wanted = phema_search_includes(&searching->search, made[i].at) &&
                         !phema_journal_has_score(searching->journal, made[i].at) &&
                         !search_ahead_has(searching, made[i].at);
        for (size_t k = 0; k < n && is_wanted; k++)
            is_wanted = !phema_search_point_equals(out[k], made[i].at);
        struct phema_strbuf path = {0};
        struct stat st;
        phema_strbuf_printf(&path, "%s/%s", searching->options->directory, made[i].name);
        if (is_wanted && !path.is_failed && lstat(path.data, &st) == 0)
            out[n++] = made[i].at;
        phema_strbuf_clear(&path);
    }
    return n;
}

/* Points of one time, at most as many as one pass makes; 0: the search is over. */
static size_t find_points(const struct searching *searching, struct phema_search_point *out)
{
    size_t n_scores = 0, n = 0, done = phema_journal_count(searching->journal, &searching->search);
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n_scores);
    uint64_t left = searching->options->most > done ? searching->options->most - done : 0;
    size_t most = (size_t)(left < searching->options->batch ? left : searching->options->batch);
    size_t n_points = find_pending(searching, out, most);
    if (!n_points)
        n_points = phema_search_next(out, most, &searching->search, scores, n_scores);
    while (n < n_points && out[n].time == out[0].time)
        n++;
    return n;
}

static enum phema_status score_all(struct searching *searching, struct phema_error *err)
{
    struct phema_search_point points[PHEMA_SEARCH_MOST_BATCH];
    enum phema_status status = PHEMA_OK;
    search_tidy(searching, false);
    for (size_t n; !status && (n = find_points(searching, points)) > 0;)
        status = pass_through(searching, points, n, err);
    search_ahead_drop(searching);
    if (!status)
        status = restore_scored(searching, err);
    if (!status)
        status = keep_best(searching, err);
    search_tidy(searching, true);
    return status;
}

/* ---- How far the average of the best candidate is from that of its neighbours ---- */

/* The best candidate, then those that it is compared with. */
static size_t list_neighbours(struct phema_search_point points[3],
                              const struct phema_search_best *best)
{
    const struct phema_search_score *width = best->width;
    const double beside[] = {best->below, best->above};
    size_t n = 0;
    if (!width)
        return 0;
    points[n++] = width->at;
    if (best->score != width && best->score->at.time == width->at.time)
        points[n++] = best->score->at;
    for (size_t i = 0; i < ARRAY_LEN(beside) && best->score == width; i++)
        if (!isnan(beside[i]))
            points[n++] = (struct phema_search_point){beside[i], width->at.time};
    return n;
}

/* Their candidates have the same tensors, whatever the exact averages are. */
static bool have_equal_weights(const struct phema_plan *plan, size_t a, size_t b)
{
    const struct phema_target *first = &plan->targets[a], *second = &plan->targets[b];
    bool are_equal = !plan->n_rules || first->is_stored == second->is_stored;
    for (size_t k = 0; are_equal && k < plan->series->n; k++)
        are_equal = first->solution.weights[k] == second->solution.weights[k];
    return are_equal;
}

static enum phema_status compare_targets(struct comparison *compared, const struct phema_plan *plan,
                                         struct phema_error *err)
{
    const struct phema_target *targets = plan->targets;
    (void)phema_target_write_warning(&compared->warning, plan, &targets[0]);
    for (size_t j = 1; j < plan->m; j++) {
        double distance = 0;
        enum phema_status status = phema_plan_distance(&distance, plan, 0, j, err);
        if (status)
            return status;
        if (have_equal_weights(plan, 0, j) && !isnan(distance))
            distance = 0;
        if (!(distance < compared->distance || isnan(compared->distance)))
            continue;
        compared->at = search_point_of(&targets[0]);
        compared->other = search_point_of(&targets[j]);
        compared->distance = distance;
        compared->predicted_error =
            fmax(targets[0].solution.predicted.total, targets[j].solution.predicted.total);
    }
    return PHEMA_OK;
}

/* Compares the best candidate with its neighbours: of the best width those beside it, of the newest
 * snapshot the best width. */
static enum phema_status compare_best(struct searching *searching, struct phema_error *err)
{
    struct phema_search_point points[3];
    struct phema_search_best best;
    searching->compared.distance = PHEMA_UNKNOWN;
    if (!phema_journal_find_best(&best, searching->journal, &searching->search))
        return PHEMA_OK;
    size_t n = list_neighbours(points, &best);
    if (n < 2)
        return PHEMA_OK;
    struct search_pass pass;
    enum phema_status status = search_pass_plan(searching, &pass, points, n, err);
    if (!status)
        status = compare_targets(&searching->compared, pass.prepared.plan, err);
    phema_prepared_clear(&pass.prepared);
    return status;
}

PHEMA_FALLIBLE search_run(struct searching *searching, struct phema_error *err)
{
    static enum phema_status (*const steps[])(struct searching *, struct phema_error *) = {
        open_series, open_journal, score_all, compare_best};
    const char *regex = searching->options->score_regex;
    enum phema_status status = PHEMA_OK;
    if (regex && phema_regex_compile(&searching->pattern, regex, err))
        return phema_fail_in_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_SCORE_REGEX);
    for (size_t i = 0; i < ARRAY_LEN(steps) && !status; i++)
        status = steps[i](searching, err);
    return status;
}

void search_clear(struct searching *searching)
{
    phema_journal_close(searching->journal);
    phema_regex_free(searching->pattern);
    free(searching->best_path);
    for (size_t i = 0; i < searching->n_scored; i++)
        candidate_clear(&searching->scored[i]);
    phema_series_checks_clear(&searching->checks);
    phema_strbuf_clear(&searching->compared.warning);
    phema_arena_clear(&searching->arena);
}
