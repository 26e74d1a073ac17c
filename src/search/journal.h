/* journal.h - a journal in memory, and the parsing of its lines. */
#ifndef SEARCH_JOURNAL_H
#define SEARCH_JOURNAL_H

#include <sys/types.h>

#include "phema/search.h"

#define JOURNAL_MADE    "# made "
#define JOURNAL_COLUMNS "sigma_rel,time,score,seconds,predicted_error"

struct phema_journal {
    char *path;
    int file;
    off_t size;
    struct phema_search_score *scores;
    size_t n, capacity;
    struct phema_search_made *made;
    size_t n_made, made_capacity;
};

/* Adds a score, which replaces an earlier score of the same point. */
PHEMA_FALLIBLE journal_add_score(struct phema_journal *journal,
                                 const struct phema_search_score *score, struct phema_error *err);
PHEMA_FALLIBLE journal_add_made(struct phema_journal *journal, struct phema_search_point at,
                                const char *name, size_t size, struct phema_error *err);

/* Splits the first line off the text, without its end. */
struct phema_span journal_split_line(struct phema_span *text);

/* Removes the header from the text and compares it line by line; the message names the first
 * difference. */
PHEMA_FALLIBLE journal_check_header(struct phema_span *text, struct phema_span header,
                                    struct phema_error *err);
/* True for a file of comments and column names only. */
bool journal_has_no_scores(struct phema_span text);
/* Reads the lines after the header; first: number of the first one, for messages. */
PHEMA_FALLIBLE journal_read_lines(struct phema_journal *journal, struct phema_span text,
                                  size_t first, struct phema_error *err);
/* Reads only the valid "# made" lines. */
PHEMA_FALLIBLE journal_read_made(struct phema_journal *journal, struct phema_span text,
                                 struct phema_error *err);

#endif
