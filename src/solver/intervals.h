/* intervals.h - inner products of profiles on each interval between the times of a set (N11 to
 * N13). All values are normalised at the end u of the interval. For an average that ends later they
 * are scaled by phema_profile_set_decay from there. */
#ifndef SOLVER_INTERVALS_H
#define SOLVER_INTERVALS_H

#include "profile_set.h"

struct phema_family_pair {
    size_t a, b;
};

/* The pairs of families of which products are wanted. */
struct phema_family_pairs {
    size_t n_families;
    size_t n;
    struct phema_family_pair *items; /* [n] */
    size_t *at;                      /* [n_families x n_families] index in items */
};

/* First begin, then want each pair, as often as it is met, then list: this fills items and at.
 * Memory is of the arena. false: no memory */
bool phema_family_pairs_begin(struct phema_family_pairs *pairs, size_t n_families,
                              struct phema_arena *memory);
void phema_family_pairs_want(struct phema_family_pairs *pairs, size_t a, size_t b);
bool phema_family_pairs_list(struct phema_family_pairs *pairs, struct phema_arena *memory);
/* Whether products of the two are wanted; after the list. */
bool phema_family_pairs_has(const struct phema_family_pairs *pairs, size_t a, size_t b);

struct phema_interval {
    size_t time;       /* of the end u in set->times */
    phema_quad length; /* of the interval */
    bool *is_active; /* [n_families] some average of the family has not ended before the interval */
    phema_quad *decays;    /* [n_families] F(l; u) */
    phema_quad *singles;   /* [n_families] integral of F */
    phema_quad *both;      /* [n_pairs] of F_a F_b */
    phema_quad *densities; /* [n_pairs] of p_a p_b; step by step: of the bins that are full */
    /* Step by step only, else 0: weight in the bin in which u lies, so far. */
    phema_quad *open; /* [n_families] */
};

struct phema_intervals; /* iterates the intervals */

/* pairs are borrowed.
 * PHEMA_ERR_INPUTS    too many steps times pairs
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_intervals_open(struct phema_intervals **out,
                                    const struct phema_profile_set *set,
                                    const struct phema_family_pairs *pairs,
                                    struct phema_error *err);
/* The next interval, valid until the next call; NULL after the last. */
const struct phema_interval *phema_intervals_next(struct phema_intervals *intervals);
void phema_intervals_close(struct phema_intervals *intervals);

/* Product of the densities in the bin that is open at the end of a; b ends there or later, and
 * decay is F(a's end; b's end). Step by step only, else 0. */
phema_quad phema_intervals_open_bin(const struct phema_intervals *intervals,
                                    const struct phema_member *a, const struct phema_member *b,
                                    phema_quad decay);
/* The end of that bin; step by step only. A full bin counts in the interval in which it ends. */
phema_quad phema_intervals_bin_end(const struct phema_intervals *intervals);

#endif
