// SPDX-License-Identifier: Apache-2.0
/* search_run.c - the loop of a search: choose points, make candidates, score them. */
#include "search/search_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct waiting {
    struct searching *searching;
    const struct candidate *candidate;
};

static void report_wait(void *context, double elapsed_s)
{
    const struct waiting *waiting = context;
    search_report_wait(waiting->searching, &waiting->candidate->at, elapsed_s);
}

/* A path that begins with a dash must not be read as an option of the command. */
static enum phema_status split(char ***words, const struct search_values *given, const char *path,
                               struct phema_error *err)
{
    struct phema_strbuf shown = {0};
    phema_strbuf_printf(&shown, "%s%s", path[0] == '-' ? "./" : "", path);
    enum phema_status status = phema_strbuf_check(&shown, err);
    if (!status)
        status = given->is_shell ? phema_command_shell(words, given->exec, shown.data, err)
                                 : phema_command_split(words, given->exec, shown.data, err);
    phema_strbuf_clear(&shown);
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
    search_tidy(searching, false);
    size_t n = 0;
    struct phema_search_best best;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    if (phema_search_find_best(&best, &searching->search, scores, n) &&
        search_is_alike(&scores[best.index].at, &candidate->at)) {
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
    struct search_pass pass;
    enum phema_status status = search_pass_make(searching, &pass, points, n, err);
    while (!status && pass.n_scored < pass.n) {
        status = evaluate(searching, &pass.candidates[pass.n_scored], err);
        pass.n_scored += !status;
    }
    search_pass_end(searching, &pass);
    return status;
}

/* An earlier run may have scored the best candidate and removed its file. */
static enum phema_status keep_best(struct searching *searching, struct phema_error *err)
{
    size_t n = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    struct phema_search_best best;
    if (!phema_search_find_best(&best, &searching->search, scores, n))
        return phema_fail(err, PHEMA_NO, "%s/" SEARCH_JOURNAL ": none of %zu scores is finite",
                          searching->directory, search_count(searching));
    const struct phema_search_point at = scores[best.index].at;
    struct stat st;
    bool is_there = searching->best_path && search_is_alike(&at, &searching->best_at) &&
                    lstat(searching->best_path, &st) == 0;
    bool is_wanted = searching->given->keep != KEEP_NONE;
    if (is_there && is_wanted)
        return PHEMA_OK;
    free(searching->best_path);
    searching->best_path = NULL;
    if (!is_wanted)
        return PHEMA_OK;
    struct search_pass pass;
    enum phema_status status = search_pass_make(searching, &pass, &at, 1, err);
    pass.n_scored = status ? 0 : pass.n;
    if (!status) {
        searching->best_at = at;
        searching->best_path = strdup(pass.candidates[0].path);
        if (!searching->best_path)
            status = phema_fail_memory(err);
    }
    search_pass_end(searching, &pass);
    return status;
}

/* Candidates that a killed run has made and not scored come first, so that the search continues as
 * if it had not been killed. They exist until the next run. */
static size_t find_pending(const struct searching *searching, struct phema_search_point *out,
                           size_t most)
{
    size_t n = 0, n_scores = 0, n_made = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n_scores);
    const struct phema_search_made *made = phema_journal_made(searching->journal, &n_made);
    for (size_t i = 0; i < n_made && n < most; i++) {
        const struct phema_search_score unscored = {.at = made[i].at};
        bool is_wanted = search_has(searching, &unscored);
        for (size_t k = 0; k < n_scores && is_wanted; k++)
            is_wanted = !search_is_alike(&scores[k].at, &made[i].at);
        for (size_t k = 0; k < n && is_wanted; k++)
            is_wanted = !search_is_alike(&out[k], &made[i].at);
        struct phema_strbuf path = {0};
        struct stat st;
        phema_strbuf_printf(&path, "%s/%s", searching->directory, made[i].name);
        if (is_wanted && !path.is_failed && lstat(path.data, &st) == 0)
            out[n++] = made[i].at;
        phema_strbuf_clear(&path);
    }
    return n;
}

/* Points of one time, at most as many as one pass makes; 0: the search is over. */
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
    search_tidy(searching, false);
    while (!status) {
        struct phema_search_point points[PHEMA_SEARCH_MOST_BATCH];
        size_t n = find_points(searching, points);
        if (!n)
            break;
        status = pass_through(searching, points, n, err);
    }
    if (!status)
        status = keep_best(searching, err);
    search_tidy(searching, true);
    return status;
}

void search_clear(struct searching *searching)
{
    phema_journal_close(searching->journal);
    phema_regex_free(searching->pattern);
    free(searching->best_path);
    phema_arena_clear(&searching->arena);
}
