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

/* The first line names the columns: sigma_rel and score are read, others are skipped. If it has
 * numbers instead, the first two columns are read. Empty lines and lines that begin with # are
 * skipped.
 * PHEMA_ERR_FILE  the CSV is invalid; names the line */
PHEMA_FALLIBLE scores_read(struct scores *out, struct phema_span csv, struct phema_error *err);
void scores_clear(struct scores *scores);

#endif
