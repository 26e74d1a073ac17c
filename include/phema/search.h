/* search.h - the search for the best width, or the best place on a line: which averages to score next, the command that scores
 * one, and the journal of scores. The next points follow from the scores alone, so a killed search
 * resumes from its journal. */
#ifndef PHEMA_SEARCH_H
#define PHEMA_SEARCH_H

#include <float.h>

#include "phema/error.h"
#include "phema/regex.h"
#include "phema/span.h"
#include "phema/strbuf.h"

/* ---- optimizer.c: the search ---- */

/* Widths are decimals of four digits: short enough for file names and readers. */
#define PHEMA_SEARCH_RESOLUTION 1e-4
/* Refined widths are at least a quarter of the tolerance apart: a few steps of the resolution. */
#define PHEMA_SEARCH_MIN_TOLERANCE 1e-3

/* In place of sigma_rel: the newest snapshot as it is, the one candidate that is no average. */
#define PHEMA_SEARCH_NEWEST (-DBL_MAX)

/* sigma_rel: lambda, where the search is one along a line. */
struct phema_search_point {
    double sigma_rel, time;
};

bool phema_search_point_equals(struct phema_search_point a, struct phema_search_point b);
bool phema_search_is_newest(struct phema_search_point point);

struct phema_search_score {
    struct phema_search_point at;
    double score;           /* a score that is not finite is worse than all others */
    double predicted_error; /* of the average, for display; may be unknown */
    double seconds;
};

struct phema_search {
    const double
        *widths; /* [n_widths] ascending: the first ones to score; the ends are the range */
    size_t n_widths;
    const double *times; /* [n_times] each is searched separately */
    size_t n_times;
    bool has_newest;    /* the newest snapshot is a candidate as it is ... */
    double newest_time; /* ... of this time */
    double tolerance;   /* of sigma_rel, at least PHEMA_SEARCH_MIN_TOLERANCE */
    double noise;       /* standard deviation of one score; 0: none */
    bool maximizes;
    bool is_line; /* lambdas, compared by differences, not widths, by ratios */
};

/* Most candidates made in one pass: they are on the disk at the same time. */
#define PHEMA_SEARCH_MOST_BATCH 64

#define PHEMA_SEARCH_TOLERANCE 0.005 /* unless one is given */
#define PHEMA_SEARCH_GRID      6
#define PHEMA_SEARCH_MOST_GRID 1000

/* The least distance in a grid of n widths in equal ratios, or lambdas in equal steps: that of the
 * first two. */
double phema_search_grid_gap(size_t n, double first, double last, bool is_line);
/* n, or fewer widths where those would be nearer to each other than the tolerance; at least 2. */
size_t phema_search_grid_size(size_t n, double first, double last, double tolerance, bool is_line);

/* n widths or lambdas from first to last, both exact and the others rounded; n > 1. */
void phema_search_grid(double *out, size_t n, double first, double last, bool is_line);

/* Up to `most` points to score next, none scored already; 0: the search is complete.
 * First all widths at all times, and the newest snapshot. Then it refines around the best width of
 * the most promising time: at the vertex of the parabola in log sigma_rel through that width and
 * its neighbours, or in the middle of a gap to them, until neither gap is wider than the tolerance.
 * If the score has a single optimum, that optimum is within the tolerance of the best width.
 * With noise it also ends where scores do not differ by more than twice the standard deviation of
 * their difference.
 *   scores  [n] at distinct points; scores outside the range and of other times are ignored */
size_t phema_search_next(struct phema_search_point *out, size_t most,
                         const struct phema_search *search, const struct phema_search_score *scores,
                         size_t n);

/* True if the search has this time and the width lies within its range, or it is the newest. */
bool phema_search_includes(const struct phema_search *search, struct phema_search_point point);

struct phema_search_best {
    const struct phema_search_score *score;  /* one of the scores */
    const struct phema_search_score *width;  /* the best of the averages; NULL: none is finite */
    const struct phema_search_score *newest; /* NULL: without a finite score */
    double below, above; /* the scored widths beside the best one at its time, or NaN at an end */
    /* the widths around the best one that are as good, within the noise where there is one; without,
     * NaN where there is only the best */
    double equal_from, equal_to;
    bool is_newest_equal; /* likewise */
    bool is_flat;         /* all scores are equal */
    bool is_settled;      /* neither gap beside the best width is wider than the tolerance, or noise
                      * hides what is in it */
};

/* false: no score is finite. */
bool phema_search_find_best(struct phema_search_best *out, const struct phema_search *search,
                            const struct phema_search_score *scores, size_t n);

/* ---- split_command.c: a command line ---- */

/* Splits like a shell: blanks between words, '...' and "..." and backslashes. Nothing is expanded.
 * In every word {} becomes the path, whatever characters the path has.
 *   out  the caller's, ends with NULL; one allocation (free)
 * PHEMA_ERR_USAGE  the command is empty, has an open quote, lacks {} or needs a shell; or {} stands
 *                  in the text that an interpreter runs (sh -c '... {}') */
PHEMA_FALLIBLE phema_command_split(char ***out, const char *command, const char *path,
                                   struct phema_error *err);
/* sh -c with the path as an argument and as the variable PHEMA_CANDIDATE: each {} becomes
 * "$PHEMA_CANDIDATE".
 * PHEMA_ERR_USAGE  the command has neither {} nor the variable; or {} stands where sh would not
 *                  read it as one argument: within quotes, in a comment or an expansion, after a
 *                  here-document or a backquote; the message says where, and what to write
 *                  instead */
PHEMA_FALLIBLE phema_command_shell(char ***out, const char *command, const char *path,
                                   struct phema_error *err);

/* ---- command.c: running a command ---- */

/* Only the end of a command's output is kept. */
#define PHEMA_COMMAND_KEPT_BYTES ((size_t)1 << 20)

/* PHEMA_ERR_USAGE  there is no such program, or it may not be run */
PHEMA_FALLIBLE phema_command_check(char *const *words, struct phema_error *err);

struct phema_command_options {
    double timeout_s;  /* 0: none */
    bool shows_errors; /* its standard error is copied to ours at once */
    /* Called about ten times a second; or NULL. */
    void (*report)(void *context, double elapsed_s);
    void *context;
};

struct phema_command_result {
    struct phema_strbuf output, errors; /* the last PHEMA_COMMAND_KEPT_BYTES of each */
    double elapsed_s;
};

/* Runs words[0], found along PATH, with an empty standard input, in its own process group. Waits
 * for it, but not for processes that it leaves in the background. When a signal ends this program,
 * SIGKILL included, the group receives SIGTERM.
 *   out  cleared by phema_command_clear, after a failure as well
 * PHEMA_ERR_COMMAND   the command cannot be run, fails, or takes too long; the message has its
 *                     status and the last line of its output
 * PHEMA_ERR_RESOURCE  no processes, no descriptors, no memory */
PHEMA_FALLIBLE phema_command_run(struct phema_command_result *out, char *const *words,
                                 const struct phema_command_options *options,
                                 struct phema_error *err);
void phema_command_clear(struct phema_command_result *result);

/* The score in the output of a command. Without a pattern: the last line that is not blank, which
 * must be one number. With a pattern: from the last line that matches, the group `score`, else the
 * first group, else the whole match.
 * PHEMA_ERR_COMMAND  there is no score */
PHEMA_FALLIBLE phema_command_score(double *out, const struct phema_strbuf *output,
                                   struct phema_regex *pattern, struct phema_error *err);

/* ---- journal.c: scores.csv ---- */

/* A text file of lines. Each line of a score or a candidate is synced when the call that writes it returns. Comments at the
 * top identify the search; "# made" lines name candidates before they are made, so that a resumed
 * search knows its own files, and "# removed" lines those that are gone: a later file of such a name
 * is another's. `plot sweep` reads the file. */
struct phema_journal;

struct phema_journal_header {
    const char *command, *options, *snapshots; /* if any differs, it is another search */
    bool is_line;
};

/* Opens or creates the journal, and locks it. A truncated last line is removed.
 *   begins_anew  discard the existing scores
 *   was_cut      out: the last line was truncated
 * PHEMA_ERR_FILE      the file is damaged; names the line
 * PHEMA_ERR_INPUTS    it has scores of another command, other options or other snapshots; names the
 *                     difference
 * PHEMA_ERR_OUTPUT    it cannot be written, a live run is writing it, or it is not a journal in a
 *                     regular file of this user; the file is not changed */
PHEMA_FALLIBLE phema_journal_open(struct phema_journal **out, bool *was_cut, const char *path,
                                  const struct phema_journal_header *header, bool begins_anew,
                                  struct phema_error *err);
void phema_journal_close(struct phema_journal *journal); /* takes NULL */

/* Scores in the order in which they came; of several scores of a point only the last one. */
const struct phema_search_score *phema_journal_scores(const struct phema_journal *journal,
                                                      size_t *n);
bool phema_journal_has_score(const struct phema_journal *journal, struct phema_search_point at);
/* The number of scores that the search includes; and the best of them, or false: none is finite. */
size_t phema_journal_count(const struct phema_journal *journal, const struct phema_search *search);
bool phema_journal_find_best(struct phema_search_best *out, const struct phema_journal *journal,
                             const struct phema_search *search);

/* A candidate file that this search makes, in the directory of the journal, and its point. */
struct phema_search_made {
    struct phema_search_point at;
    char *name; /* without a slash, neither "." nor ".." */
};
const struct phema_search_made *phema_journal_made(const struct phema_journal *journal, size_t *n);
bool phema_journal_has_made(const struct phema_journal *journal, const char *name);

PHEMA_FALLIBLE phema_journal_add(struct phema_journal *journal,
                                 const struct phema_search_score *score, struct phema_error *err);
PHEMA_FALLIBLE phema_journal_add_made(struct phema_journal *journal, struct phema_search_point at,
                                      const char *name, struct phema_error *err);
/* The file is gone, or is no longer the search's. The line is synced with the next one. */
PHEMA_FALLIBLE phema_journal_remove_made(struct phema_journal *journal, const char *name,
                                         struct phema_error *err);

#endif
