/* searching.h - a search: candidates are made a few at a time, scored one after the other by a
 * command, and removed. */
#ifndef PHEMA_SEARCHING_H
#define PHEMA_SEARCHING_H

#include "phema/ops.h"
#include "phema/search.h"

struct searching;
struct candidate;
struct search_ahead;

/* Members of heard may be NULL; context is that of heard. */
struct search_listener {
    struct phema_listener heard;
    /* The snapshots were compared with their labels. */
    void (*checked)(void *context, const struct phema_plan *plan);
    void (*started)(void *context, const struct searching *searching, bool was_cut);
    /* Before candidates are made; is_again: of one whose file is gone. */
    void (*passing)(void *context, const struct searching *searching, size_t n, bool is_again);
    void (*synthesised)(void *context, const struct phema_series *series,
                        const struct phema_synth_result *result);
    /* The command runs, about ten times a second; and has ended. */
    void (*waiting)(void *context, const struct searching *searching, double elapsed_s);
    void (*scored)(void *context, const struct searching *searching,
                   const struct phema_search_score *score);
    void (*failed)(void *context, const struct phema_command_result *result);
};

struct search_options {
    struct phema_request request;   /* of candidates, without their targets but with their times */
    const char *exec, *score_regex; /* the command; the regex may be NULL */
    bool is_shell, shows_errors;
    double timeout_s; /* 0: none */
    const char *line; /* "A,B": searches for the lambda of line:A,B; NULL: a width */
    enum search_keep { SEARCH_KEEPS_BEST, SEARCH_KEEPS_ALL, SEARCH_KEEPS_NONE } keep;
    bool accepts_wrong;          /* also snapshots that do not fit their labels */
    const char *command_options; /* that determine the candidates, for the journal */
    const char *directory;       /* of the candidates */
    const char *scores_path;     /* of the journal, in that directory */
    const char *out;             /* OUT as a template of the candidates' names */
    uint64_t most, batch;        /* evaluations in all, candidates of a pass */
};

/* The best candidate, and the one whose average is nearest to its own. */
struct comparison {
    struct phema_search_point at, other;
    double distance;             /* predicted, relative to |theta|; NaN: unknown */
    struct phema_strbuf warning; /* of the best average; may be empty */
    double predicted_error;      /* the larger one of both */
};

struct searching {
    /* the caller's */
    const struct search_options *options;
    const struct search_listener *listener;
    const struct phema_listener *passes; /* hears how candidates are planned */
    struct phema_search search; /* widths, tolerance and noise; times are set by the search */

    struct phema_regex *pattern;       /* of score_regex */
    const char *newest;                /* the newest snapshot, as series name it */
    char snapshots[PHEMA_DIGEST];      /* identifies the snapshots that the scores are for */
    struct phema_series_checks checks; /* of them */
    struct phema_series labels;        /* their labels and what was recognised, for the JSON */
    struct phema_journal *journal;
    size_t n_passes, n_evaluated; /* of this run */
    char *best_path;              /* of the candidate at best_at, if it exists */
    struct phema_search_point best_at;
    struct phema_search_point scored_at; /* of the candidate whose command runs */
    struct candidate *scored;            /* [n_scored] candidates of this run */
    size_t n_scored;
    bool has_said_changed;
    struct search_ahead *ahead; /* the pass that is made while a command runs; NULL: none */
    double pass_s, command_s;   /* of the last pass that was made alone, and of the last command */
    struct comparison compared; /* at the end */
    struct phema_arena arena;
};

/* Identifies the snapshots, compares them with their labels, opens the journal, and runs until no
 * point is left or the limit of evaluations is reached. The caller clears it, also after a failure.
 * PHEMA_ERR_INPUTS   the labels are wrong; the snapshots have changed
 * PHEMA_ERR_COMMAND  the command failed or gave no score */
PHEMA_FALLIBLE search_run(struct searching *searching, struct phema_error *err);
void search_clear(struct searching *searching);

#endif
