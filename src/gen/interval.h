/* interval.h - What happens to a parameter between two stops of a training, as one linear step with
 * Gaussian noise. See docs/numerics.md for the formulas. */
#ifndef GEN_INTERVAL_H
#define GEN_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

struct gen_training;

/* What one average does: it keeps a part of itself and takes the rest from the walk, as it was at
 * the beginning. The noise comes on top. */
struct gen_row {
    size_t average;
    double keeps, takes;
};

/* The joint noise of the walk, of the parameters on top of the walk at the end (where they are
 * shown), and of the averages, in this order, is L z: L lower triangular, z independent standard
 * normals; for parameters of scale 1. */
struct gen_interval {
    struct gen_row *rows; /* [n_rows] the averages that may change */
    size_t n_rows;
    size_t n_moves;  /* rows of L before those: 1, the walk; 2, and the parameters at the end */
    size_t *columns; /* [n_columns] of L that are not zero, ascending; each begins at its own row */
    size_t n_columns;
    double *factor; /* their numbers, one column after the other */
};

/* The interval of steps begin + 1 to end.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE gen_interval_init(struct gen_interval *interval, const struct gen_training *training,
                                 uint64_t begin, uint64_t end, bool shows_parameters,
                                 struct phema_error *err);
void gen_interval_clear(struct gen_interval *interval); /* takes the half-built */

#endif
