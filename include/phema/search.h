/* search.h - which averages to score next, how a command scores one, and where scores are kept.
 * points.c is arithmetic alone: what comes next follows from the scores that are there, so that a
 * search that was killed goes on from its journal. */
#ifndef PHEMA_SEARCH_H
#define PHEMA_SEARCH_H

#include "phema/error.h"
#include "phema/regex.h"
#include "phema/span.h"
#include "phema/strbuf.h"

/* ---- points.c: the search ---- */

/* Widths are decimals of four digits, which names of files and people can hold. */
#define PHEMA_SEARCH_RESOLUTION 1e-4
/* Refined widths lie at least a quarter of it apart: a few steps of the resolution. */
#define PHEMA_SEARCH_MIN_TOLERANCE 1e-3

struct phema_search_point {
    double sigma_rel, time;
};

struct phema_search_score {
    struct phema_search_point at;
    double score;           /* one that is not finite is worse than all others */
    double predicted_error; /* of the average, for people; may be unknown */
    double seconds;
};

struct phema_search {
    const double *widths; /* [n_widths] ascending: what is scored first; the ends are the range */
    size_t n_widths;
    const double *times; /* [n_times] each with widths of its own */
    size_t n_times;
    double tolerance; /* of sigma_rel, from PHEMA_SEARCH_MIN_TOLERANCE on */
    bool maximizes;
};

/* More candidates than that are not made in one pass: they lie on the disk together. */
#define PHEMA_SEARCH_MOST_BATCH 64

/* n even steps from first to last, both included and the others rounded; n > 1. */
void phema_search_grid(double *out, size_t n, double first, double last);

/* Up to `most` points that should be scored next, none that was; 0: nothing is left to be done.
 * First all widths at all times; then, at the time that promises the best, around the best width:
 * at the vertex of the parabola through it and its neighbours, and in the golden section of the
 * gaps to them, until neither is wider than the tolerance. Of a score with a single optimum that
 * one then lies within the tolerance of the best width.
 *   scores  [n] no two of one point; those beyond the range and of other times are not looked at */
size_t phema_search_next(struct phema_search_point *out, size_t most,
                         const struct phema_search *search, const struct phema_search_score *scores,
                         size_t n);

/* Whether it is one of this time, within the range. */
bool phema_search_counts(const struct phema_search *search, const struct phema_search_score *score,
                         double time);

struct phema_search_best {
    size_t index;        /* of the score */
    double below, above; /* the next widths that were scored at its time, or NaN at an end */
    bool is_settled;     /* neither is farther than the tolerance */
};

/* false: no score is finite. */
bool phema_search_find_best(struct phema_search_best *out, const struct phema_search *search,
                            const struct phema_search_score *scores, size_t n);

/* ---- words.c: a command line ---- */

/* As a shell would split it: blanks between words, '...' and "..." and backslashes; nothing is
 * expanded. In every word {} becomes the path, whatever is in it.
 *   out  the caller's, ends with NULL; one allocation (free)
 * PHEMA_ERR_USAGE  it is empty, a quote is not closed, {} stands nowhere, or it wants a shell; {}
 *                  stands in what a shell runs that the command starts (sh -c '... {}') */
PHEMA_FALLIBLE phema_command_split(char ***out, const char *command, const char *path,
                                   struct phema_error *err);
/* sh -c with the path as an argument, which the variable PHEMA_CANDIDATE has: each {} becomes
 * "$PHEMA_CANDIDATE".
 * PHEMA_ERR_USAGE  {} stands nowhere, and the variable neither; or where sh would not take it as
 * one argument: within quotes, in a comment or an expansion, behind a here-document or a backquote;
 * the message says where and what to write instead */
PHEMA_FALLIBLE phema_command_shell(char ***out, const char *command, const char *path,
                                   struct phema_error *err);

/* ---- command.c: running it ---- */

/* What is kept of what a command prints: its end. */
#define PHEMA_COMMAND_KEPT_BYTES ((size_t)1 << 20)

struct phema_command_options {
    double timeout_s;  /* 0: none */
    bool shows_errors; /* its standard error goes on to ours, as it comes */
    /* About ten times a second; NULL for none. */
    void (*report)(void *context, double elapsed_s);
    void *context;
};

struct phema_command_result {
    struct phema_strbuf output, errors; /* the last PHEMA_COMMAND_KEPT_BYTES of each */
    double elapsed_s;
};

/* Runs words[0], found along PATH, with an empty standard input, in a process group of its own, and
 * waits for it; what it leaves running in the background is not waited for. Where this program is
 * ended by a signal, SIGKILL among them, the group is asked to end, too.
 *   out  cleared by phema_command_clear, after a failure as well
 * PHEMA_ERR_INPUTS    it cannot be run, fails, or takes too long: the message has its status and
 *                     the last lines of what it said
 * PHEMA_ERR_RESOURCE  no processes, no descriptors, no memory */
PHEMA_FALLIBLE phema_command_run(struct phema_command_result *out, char *const *words,
                                 const struct phema_command_options *options,
                                 struct phema_error *err);
void phema_command_clear(struct phema_command_result *result);

/* The score in what it printed: the last line that is not blank, which is one number; or, with a
 * pattern, the group `score`, else the first group, else all of the last match in a line.
 * PHEMA_ERR_INPUTS  there is none */
PHEMA_FALLIBLE phema_command_score(double *out, const struct phema_strbuf *output,
                                   struct phema_regex *pattern, struct phema_error *err);

/* ---- journal.c: scores.csv ---- */

/* A text of lines, each of which is on the disk when the call that writes it returns. Comments at
 * its top say what it is of; "# made" names candidates before they are made, so that a run that
 * goes on knows which files are its own. `plot sweep` reads it. */
struct phema_journal;

struct phema_journal_header {
    const char *command, *options, *snapshots; /* one that differs belongs to another search */
};

/* Opens or makes it, and locks it. A last line that was cut short is removed.
 *   begins_anew  what is there is forgotten
 *   was_cut      out: it had such a line
 * PHEMA_ERR_FILE      it is damaged; names the line
 * PHEMA_ERR_INPUTS    it has scores of another command, other options or other snapshots; says
 *                     which
 * PHEMA_ERR_OUTPUT    it cannot be written, a live run is writing it, or it is no regular file of
 *                     this user that a search has written: then it stays as it is */
PHEMA_FALLIBLE phema_journal_open(struct phema_journal **out, bool *was_cut, const char *path,
                                  const struct phema_journal_header *header, bool begins_anew,
                                  struct phema_error *err);
void phema_journal_close(struct phema_journal *journal); /* takes NULL */

/* Scores in the order in which they came; of a point with several the last one. */
const struct phema_search_score *phema_journal_scores(const struct phema_journal *journal,
                                                      size_t *n);

/* A file that this search makes: name, in the directory of the journal, and what it is the average
 * of. */
struct phema_search_made {
    struct phema_search_point at;
    char *name; /* without a slash, none of "." and ".." */
};
const struct phema_search_made *phema_journal_made(const struct phema_journal *journal, size_t *n);
bool phema_journal_has_made(const struct phema_journal *journal, const char *name);

PHEMA_FALLIBLE phema_journal_add(struct phema_journal *journal,
                                 const struct phema_search_score *score, struct phema_error *err);
PHEMA_FALLIBLE phema_journal_add_made(struct phema_journal *journal, struct phema_search_point at,
                                      const char *name, struct phema_error *err);

#endif
