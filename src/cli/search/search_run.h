/* search_run.h - a search: candidates are made a few at a time, scored one after the other, and
 * removed. */
#ifndef CLI_SEARCH_SEARCH_RUN_H
#define CLI_SEARCH_SEARCH_RUN_H

#include "phema/search.h"
#include "print_summary.h"
#include "run_options.h"
#include "search/candidate_files.h"

#define SEARCH_JOURNAL "scores.csv"

struct search_values {
    struct cli_common common;
    struct cli_run_values run;
    const char *sigma_rel, *exec, *score_regex;
    enum { KEEP_BEST, KEEP_ALL, KEEP_NONE } keep;
    bool is_shell, minimizes, maximizes;
    uint64_t coarse, evaluations, batch;
    double tolerance, timeout;
};

struct searching {
    const struct search_values *given;
    struct phema_search search;
    struct phema_regex *pattern;  /* of --score-regex */
    const char *directory, *out;  /* directory of the candidates; OUT as a template of their
                                   * names */
    uint64_t most, batch;         /* evaluations in all, candidates of a pass */
    char snapshots[PHEMA_DIGEST]; /* identifies the snapshots that the scores are for */
    struct phema_journal *journal;
    struct progress progress;
    size_t n_passes, n_evaluated; /* of this run */
    char *best_path;              /* of the candidate at best_at, if it exists */
    struct phema_search_point best_at;
    struct phema_arena arena;
};

/* Opens the series and closes it again: the times of the averages, and a digest of the
 * snapshots. */
PHEMA_FALLIBLE search_identify(struct searching *searching, struct phema_error *err);
/* Makes the directory and opens the journal. */
PHEMA_FALLIBLE search_open(struct searching *searching, struct phema_error *err);
/* Runs until no point is left, or the limit of evaluations is reached.
 * PHEMA_ERR_INPUTS  the command failed or gave no score; or the snapshots have changed */
PHEMA_FALLIBLE search_run(struct searching *searching, struct phema_error *err);
void search_clear(struct searching *searching);

/* A digest of the snapshots: names, contents, profiles, times. */
PHEMA_FALLIBLE search_digest(char digest[PHEMA_DIGEST], const struct phema_series *series,
                             struct phema_error *err);
/* True for a score of this range and these times; and the number of such scores. */
bool search_has(const struct searching *searching, const struct phema_search_score *score);
size_t search_count(const struct searching *searching);
bool search_is_alike(const struct phema_search_point *a, const struct phema_search_point *b);

/* ---- candidates_make.c ---- */

struct search_pass {
    struct candidate *candidates; /* [n] */
    size_t n, n_scored;
    struct cli_prepared *prepared; /* while candidates are made */
    struct cli_common common;      /* common, but quieter */
    struct cli_run_values run;
    double widths[PHEMA_SEARCH_MOST_BATCH], time; /* what run points to */
};

/* Makes the candidates of n points of one time. Call search_pass_end also after a failure. */
PHEMA_FALLIBLE search_pass_make(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                struct phema_error *err);
/* Removes candidates without a score that this search has made. */
void search_pass_end(const struct searching *searching, struct search_pass *pass);

/* Removes scored candidates that --keep does not keep. At the end also those without a score: a
 * killed run may have made candidates that are not wanted any more. */
void search_tidy(struct searching *searching, bool is_end);

/* ---- print.c ---- */
void search_report_start(const struct searching *searching, bool was_cut);
void search_report_score(const struct searching *searching, const struct phema_search_score *score);
void search_report_wait(struct searching *searching, const struct phema_search_point *at,
                        double elapsed_s);
void search_report_failure(const struct searching *searching,
                           const struct phema_command_result *result);
void search_report_end(const struct searching *searching);
void search_write(struct phema_strbuf *out, const struct searching *searching);

#endif
