/* search_run.h - a search carried out: candidates made a few at a time, scored one after the other,
 * and removed again. */
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
    const char *sigma_rel, *exec, *score_regex, *keep;
    bool is_shell, minimizes, maximizes;
    uint64_t coarse, evaluations, batch;
    double tolerance, timeout;
};

struct searching {
    const struct search_values *given;
    struct phema_search search;
    struct phema_regex *pattern;  /* of --score-regex */
    const char *directory, *out;  /* where candidates go, and OUT as outputs are named by */
    uint64_t most, batch;         /* evaluations in all, candidates of a pass */
    char snapshots[PHEMA_DIGEST]; /* what the scores are of */
    struct phema_journal *journal;
    struct progress progress;
    size_t n_passes, n_evaluated; /* of this run */
    char *best_path;              /* of the candidate of best_at, where it is there */
    struct phema_search_point best_at;
    struct phema_arena arena;
};

/* Opens the series: which times are wanted, and what it is known again by. */
PHEMA_FALLIBLE search_look(struct searching *searching, struct phema_error *err);
/* Makes the directory and opens the journal. */
PHEMA_FALLIBLE search_open(struct searching *searching, struct phema_error *err);
/* Until nothing is left to be scored, or there were enough evaluations.
 * PHEMA_ERR_INPUTS  the command failed or gave no score; the snapshots are others by now */
PHEMA_FALLIBLE search_run(struct searching *searching, struct phema_error *err);
void search_clear(struct searching *searching);

/* What is known of the snapshots, as one name. */
PHEMA_FALLIBLE search_digest(char digest[PHEMA_DIGEST], const struct phema_series *series,
                             struct phema_error *err);
/* Whether a score is of this range and these times, and how many are. */
bool search_has(const struct searching *searching, const struct phema_search_score *score);
size_t search_count(const struct searching *searching);
bool search_is_alike(const struct phema_search_point *a, const struct phema_search_point *b);

/* ---- search_pass.c ---- */

struct search_pass {
    struct candidate *candidates; /* [n] */
    size_t n, n_scored;
    struct cli_prepared *prepared; /* while candidates are made */
    struct cli_common common;      /* that says less */
    struct cli_run_values run;
    double widths[PHEMA_SEARCH_MOST_BATCH], time; /* what run points to */
};

/* Makes the candidates of n points of one time; search_pass_end is to follow in any case. */
PHEMA_FALLIBLE search_pass_make(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                struct phema_error *err);
/* What was not scored goes, if it was made here. */
void search_pass_end(const struct searching *searching, struct search_pass *pass);

/* Of what was made and has its score only that stays which --keep says. At the end nothing stays
 * that has none: a run that was killed may have made what is not asked for any more. */
void search_tidy(struct searching *searching, bool is_end);

/* search_report.c */
void search_report_start(const struct searching *searching, bool was_cut);
void search_report_score(const struct searching *searching, const struct phema_search_score *score);
void search_report_wait(struct searching *searching, const struct phema_search_point *at,
                        double elapsed_s);
void search_report_failure(const struct searching *searching,
                           const struct phema_command_result *result);
void search_report_end(const struct searching *searching);
void search_write(struct phema_strbuf *out, const struct searching *searching);

#endif
