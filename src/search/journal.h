/* journal.h - a journal as it is in memory, and the reading of its lines. */
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

/* Of a point with several scores the last one stays. */
PHEMA_FALLIBLE journal_keep_score(struct phema_journal *journal,
                                  const struct phema_search_score *score, struct phema_error *err);
PHEMA_FALLIBLE journal_keep_made(struct phema_journal *journal, struct phema_search_point at,
                                 const char *name, size_t size, struct phema_error *err);

/* The next line without its end; text is moved behind it. */
struct phema_span journal_cut_line(struct phema_span *text);

/* Takes the lines of the header off the text; which of them differs is what is wrong. */
PHEMA_FALLIBLE journal_check_header(struct phema_span *text, struct phema_span header,
                                    struct phema_error *err);
/* Of a whole file: nothing but comments and the columns. */
bool journal_has_no_scores(struct phema_span text);
/* All others, the first of which has this number. */
PHEMA_FALLIBLE journal_read_lines(struct phema_journal *journal, struct phema_span text,
                                  size_t first, struct phema_error *err);
/* Those alone that say what was made, as far as they can be read. */
PHEMA_FALLIBLE journal_read_made(struct phema_journal *journal, struct phema_span text,
                                 struct phema_error *err);

#endif
