/* pieces.h - inner products of profiles, interval by interval between the times of a set (N11 to
 * N13).
 * Everything is normalised at the end u of the interval: what an average that ends later has of it
 * is scaled by phema_set_decay from there. */
#ifndef PHEMA_PROFILE_PIECES_H
#define PHEMA_PROFILE_PIECES_H

#include "profile_set.h"

struct phema_kind_pair {
    size_t a, b;
};

struct phema_piece {
    size_t time;         /* of the end u in set->times */
    phema_quad length;   /* of the interval */
    bool *is_active;     /* [n_kinds] some average of the kind has not ended before the interval */
    phema_quad *decays;  /* [n_kinds] F(l; u) */
    phema_quad *singles; /* [n_kinds] integral of F */
    phema_quad *both;    /* [n_pairs] of F_a F_b */
    phema_quad *densities; /* [n_pairs] of p_a p_b; step by step: of the bins that are full */
    /* Step by step only, else 0: weight in the bin in which u lies, so far. */
    phema_quad *open; /* [n_kinds] */
};

struct phema_pieces; /* goes through the intervals */

/* pairs are borrowed. PHEMA_ERR_INPUTS: too many steps times pairs; PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_pieces_open(struct phema_pieces **out, const struct phema_set *set,
                                 const struct phema_kind_pair *pairs, size_t n_pairs,
                                 struct phema_error *err);
/* The next interval, valid until the one after; NULL behind the last. */
const struct phema_piece *phema_pieces_next(struct phema_pieces *pieces);
void phema_pieces_close(struct phema_pieces *pieces); /* takes NULL */

/* Product of the densities of the bin that is open where a ends; b ends there or later, and has
 * decay left of what it is then. Step by step only, else 0. */
phema_quad phema_pieces_open_bin(const struct phema_pieces *pieces, const struct phema_member *a,
                                 const struct phema_member *b, phema_quad decay);
/* Where that bin ends; a full one counts in the interval in which it does. */
phema_quad phema_pieces_bin_end(const struct phema_pieces *pieces);

/* recurrence.c: the intervals of a set that is followed step by step */
struct phema_steps;
PHEMA_FALLIBLE phema_steps_open(struct phema_steps **out, const struct phema_set *set,
                                const struct phema_kind_pair *pairs, size_t n_pairs,
                                struct phema_error *err);
void phema_steps_fill(struct phema_steps *steps, struct phema_piece *piece);
phema_quad phema_steps_open_bin(const struct phema_steps *steps, const struct phema_piece *piece,
                                const struct phema_member *a, const struct phema_member *b,
                                phema_quad decay);
uint64_t phema_steps_bin_end(const struct phema_steps *steps);
void phema_steps_close(struct phema_steps *steps); /* takes NULL */

#endif
