/* search_run.h - a search carried out: candidates made a few at a time, scored one after the other,
 * and removed again. */
#ifndef CLI_SEARCH_RUN_H
#define CLI_SEARCH_RUN_H

#include "candidates.h"
#include "phema/search.h"
#include "prepare.h"
#include "report.h"

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
    struct phema_pattern *pattern; /* of --score-regex */
    const char *directory, *out;   /* where candidates go, and OUT as outputs are named by */
    uint64_t most, batch;          /* evaluations in all, candidates of a pass */
    char snapshots[PHEMA_DIGEST];  /* what the scores are of */
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

/* How many of the scores are of this range and these times. */
size_t search_count(const struct searching *searching);

/* search_report.c */
void search_report_start(const struct searching *searching, bool was_cut);
void search_report_score(const struct searching *searching, const struct phema_search_score *score);
void search_report_wait(struct searching *searching, const struct phema_search_point *at,
                        double elapsed_s);
void search_report_failure(const struct searching *searching,
                           const struct phema_command_result *result);
void search_report_end(const struct searching *searching);
void search_write(struct phema_text *out, const struct searching *searching);

#endif
