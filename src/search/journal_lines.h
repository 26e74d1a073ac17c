/* journal_lines.h - private to search/: what scores.csv holds, in memory, and reading its lines. */
#ifndef SEARCH_JOURNAL_LINES_H
#define SEARCH_JOURNAL_LINES_H

#include <sys/types.h>

#include "phema/search.h"

#define COLUMNS ",time,score,seconds,predicted_error"
#define MADE    "# made "
#define REMOVED "# removed "

#define HEADER_LINES 5

struct phema_journal {
    char *path;
    int file;
    off_t size;
    bool is_line;
    struct phema_search_score *scores;
    size_t n, capacity;
    struct phema_search_made *made;
    size_t n_made, made_capacity;
};

/* The index of the score, n if it is absent. */
size_t journal_find_score(const struct phema_journal *journal, struct phema_search_point at);
/* Adds a score, which replaces an earlier score of the same point. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE journal_add_score(struct phema_journal *journal,
                                 const struct phema_search_score *score, struct phema_error *err);
/* Adds or removes the name of a candidate. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE journal_keep_made(struct phema_journal *journal, struct phema_search_point at,
                                 const char *name, struct phema_error *err);
void journal_drop_made(struct phema_journal *journal, const char *name);

/* The name of the first column. */
const char *journal_first_column(bool is_line);

/* Removes the header from the text and compares it line by line; the message names the first
 * difference.
 * PHEMA_ERR_INPUTS  of another search
 * PHEMA_ERR_FILE    it is damaged
 * PHEMA_ERR_OUTPUT  it is no journal */
PHEMA_FALLIBLE journal_check_header(struct phema_span *text, struct phema_span header,
                                    struct phema_error *err);
/* Reads the lines after the header. PHEMA_ERR_FILE: one has another form */
PHEMA_FALLIBLE journal_read_lines(struct phema_journal *journal, struct phema_span text,
                                  struct phema_error *err);
/* Reads only the valid "# made" and "# removed" lines. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE journal_read_made_lines(struct phema_journal *journal, struct phema_span text,
                                       struct phema_error *err);
/* True for a file of comments and column names only. */
bool journal_has_no_scores(struct phema_span text);

#endif
