/* scores.h - a CSV of scores by width. */
#ifndef PLOT_SCORES_H
#define PLOT_SCORES_H

#include "phema/error.h"
#include "phema/span.h"

struct score {
    double sigma_rel, score;
};

struct scores {
    struct score *items; /* [n] by width, then by score */
    size_t n;
    size_t n_left_out; /* lines without a finite score */
};

/* Columns sigma_rel and score by the names in the first line, others are skipped; or, when that has
 * numbers, the first two. Empty lines and those that begin with # are skipped.
 * PHEMA_ERR_FILE  names the line */
PHEMA_FALLIBLE scores_read(struct scores *out, struct phema_span csv, struct phema_error *err);
void scores_clear(struct scores *scores);

#endif
