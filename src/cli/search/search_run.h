/* search_run.h - a search: candidates are made a few at a time, scored one after the other, and
 * removed. */
#ifndef CLI_SEARCH_SEARCH_RUN_H
#define CLI_SEARCH_SEARCH_RUN_H

#include <sys/stat.h>

#include "phema/progress.h"
#include "phema/report.h"
#include "phema/search.h"
#include "run_options.h"

#define SEARCH_JOURNAL "scores.csv"

struct search_values {
    struct cli_common common;
    struct cli_run_values run;
    const char *sigma_rel, *exec, *score_regex;
    enum { KEEP_BEST, KEEP_ALL, KEEP_NONE } keep;
    bool is_shell, minimizes, maximizes;
    uint64_t coarse, evaluations, batch;
    double tolerance, noise, timeout;
};

/* The best candidate, and the one whose average is nearest to its own. */
struct comparison {
    struct phema_search_point at, other;
    double distance;             /* predicted, relative to |theta|; NaN: unknown */
    struct phema_strbuf warning; /* of the best average; may be empty */
    double predicted_error;      /* the larger one of both */
};

struct candidate;

struct searching {
    const struct search_values *values;
    struct phema_search search;
    struct phema_regex *pattern;       /* of --score-regex */
    const char *directory;             /* of the candidates */
    const char *scores_path;           /* of the journal, in that directory */
    const char *out;                   /* OUT as a template of the candidates' names */
    uint64_t most, batch;              /* evaluations in all, candidates of a pass */
    const char *newest;                /* the newest snapshot, as series name it */
    char snapshots[PHEMA_DIGEST];      /* identifies the snapshots that the scores are for */
    struct phema_series_checks checks; /* of them */
    struct phema_series labels;        /* their labels alone, for the JSON of the checks */
    struct phema_journal *journal;
    struct progress progress;
    char pass_label[64];          /* of the bar while candidates are made */
    size_t n_passes, n_evaluated; /* of this run */
    char *best_path;              /* of the candidate at best_at, if it exists */
    struct phema_search_point best_at;
    struct phema_search_point scored_at; /* of the candidate whose command runs */
    struct candidate *scored;            /* [n_scored] candidates of this run */
    size_t n_scored;
    bool has_said_changed;
    struct comparison compared; /* at the end */
    bool has_heading;           /* of the table of scores */
    struct phema_arena arena;
};

/* Opens the series and closes it again: the times of the averages, the newest snapshot, and a
 * digest of the snapshots. */
PHEMA_FALLIBLE search_identify(struct searching *searching, struct phema_error *err);
/* Compares the snapshots with their labels, before any candidate is made.
 * PHEMA_ERR_INPUTS  they do not fit, and --checks warn is not given */
PHEMA_FALLIBLE search_check(struct searching *searching, struct phema_error *err);
/* Makes the directory and opens the journal. */
PHEMA_FALLIBLE search_open(struct searching *searching, struct phema_error *err);
/* Runs until no point is left, or the limit of evaluations is reached.
 * PHEMA_ERR_INPUTS  the command failed or gave no score; or the snapshots have changed */
PHEMA_FALLIBLE search_run(struct searching *searching, struct phema_error *err);
void search_clear(struct searching *searching);

/* ---- candidates.c: the averages that a search makes. One is removed only if the journal records
 * it as made by the search and its metadata say that it was synthesised. ---- */

struct candidate_file {
    char *path;
    struct stat made;                  /* as it was when the candidate was made */
    struct phema_cleanup_entry *entry; /* until a signal must no longer remove it; or NULL */
};

struct candidate {
    struct phema_search_point at;
    char *path;
    double predicted_error;
    bool is_own;                  /* made by this search, now or before it was killed */
    struct candidate_file *files; /* [n_files] the checkpoint and its provenance file, or the files
                                   * of a directory and then the directory */
    size_t n_files;
};

struct search_pass {
    struct candidate *candidates; /* [n] */
    size_t n, n_scored;
    struct cli_prepared prepared; /* while candidates are made */
    struct cli_common common;     /* common, but quieter */
    struct cli_run_values run;
    double widths[PHEMA_SEARCH_MOST_BATCH], time; /* what run points to */
};

/* A digest of the snapshots: names, contents, profiles, times. */
PHEMA_FALLIBLE search_digest(char digest[PHEMA_DIGEST], struct phema_series *series,
                             struct phema_error *err);

/* The point of a target of a pass. */
struct phema_search_point search_point_of(const struct phema_target *target);

/* Plans n points of one time without making them. The caller clears pass->prepared. */
PHEMA_FALLIBLE search_pass_plan(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                struct phema_error *err);

/* Makes the candidates of n points of one time. Call search_pass_end also after a failure. */
PHEMA_FALLIBLE search_pass_make(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                struct phema_error *err);
/* Removes candidates without a score that this search has made. */
void search_pass_end(const struct searching *searching, struct search_pass *pass);

/* Makes a candidate anew that is no longer there. */
PHEMA_FALLIBLE search_make_again(struct searching *searching, struct candidate *candidate,
                                 struct phema_error *err);

/* Removes scored candidates that --keep does not keep. At the end also those without a score: a
 * killed run may have made candidates that are not wanted any more. */
void search_tidy(const struct searching *searching, bool is_end);

/* ---- candidate_files.c ---- */

/* Sets the files of output j; a signal removes those of a candidate that is_own. */
PHEMA_FALLIBLE candidate_list_files(struct candidate *candidate,
                                    const struct phema_outputs *outputs, size_t j,
                                    struct phema_error *err);
/* Call it when the candidate has its score: signals no longer remove it. */
void candidate_keep(struct candidate *candidate);
void candidate_clear(struct candidate *candidate);

/* Notes the files as the program has made them, and whether others have changed them since: their
 * contents, attributes, or what has the name. */
void candidate_note_files(struct candidate *candidate);
bool candidate_is_changed(const struct candidate *candidate);

/* Removes whatever has the names of its files. */
void candidate_remove(const struct candidate *candidate);
/* Removes the regular files in it, and the directory if it is empty then. */
void candidate_remove_directory(const char *path);

/* ---- comparison.c ---- */

/* Compares the best candidate with its neighbours: of the best width those beside it, of the newest
 * snapshot the best width. */
PHEMA_FALLIBLE search_compare(struct searching *searching, struct phema_error *err);

/* ---- print.c ---- */
void search_report_start(const struct searching *searching, bool was_cut);
void search_report_score(struct searching *searching, const struct phema_search_score *score);
/* Before candidates are made: the bar shows the pass and the scores that they are for. */
void search_report_pass(struct searching *searching, const struct search_pass *pass);
/* While the command runs; context: a struct searching. */
void search_report_wait(void *context, double elapsed_s);
void search_report_failure(const struct searching *searching,
                           const struct phema_command_result *result);
/* Once: a command has changed the file of a candidate. */
void search_report_changed(struct searching *searching, const struct candidate *candidate);
void search_report_end(const struct searching *searching);
void search_write(struct phema_strbuf *out, const struct searching *searching);

#endif
