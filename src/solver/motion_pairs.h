/* motion_pairs.h - the expected squared distance of two snapshots, piece by piece. */
#ifndef SOLVER_MOTION_PAIRS_H
#define SOLVER_MOTION_PAIRS_H

#include "phema/solver.h"

struct phema_motion_term {
    size_t interval; /* or piece */
    double walk;     /* integral of D^2 over it, D the difference of cumulative profiles */
    double jitter;   /* integral of d^2, d the difference of profiles */
};

struct phema_motion_terms {
    size_t n_intervals; /* or pieces */
    double *ends;       /* [n_intervals] ascending */
    size_t n_pairs;
    size_t *starts;                  /* [n_pairs + 1] in items */
    struct phema_motion_term *items; /* those of pair p: starts[p] .. starts[p+1] */
};

/* The integrals from which terms are made, of the profiles of snapshots over pieces of the
 * intervals between their times. */
struct phema_motion_table;

/* For terms of the pairs of snapshots in pairs [n_pairs], and of any two that are fewer than reach
 * places apart. Each interval is divided into n_pieces of one length. Snapshots are borrowed.
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_table_open(struct phema_motion_table **out,
                                       const struct phema_profile *snapshots, size_t n,
                                       size_t n_pieces, const struct phema_distance *pairs,
                                       size_t n_pairs, size_t reach, struct phema_error *err);
void phema_motion_table_close(struct phema_motion_table *table); /* takes NULL */

/* Terms of pairs, whose squares are not used.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_terms_find(struct phema_motion_terms *out,
                                       const struct phema_motion_table *table,
                                       const struct phema_distance *pairs, size_t n_pairs,
                                       struct phema_error *err);
void phema_motion_terms_clear(struct phema_motion_terms *terms);

#endif
