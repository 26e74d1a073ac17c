/* gram.h - inner products of averaging profiles in three metrics.
 * White: <p, q> = integral of p q. Walk: <Q, R> = integral of the cumulative profiles Q (the weight
 * after tau) and R. Motion: integral of wander Q R + jitter p q, as parameters were seen to move.
 * All vectors of a problem are scaled to length 1 in their metric. */
#ifndef SOLVER_GRAM_H
#define SOLVER_GRAM_H

#include "phema/parallel.h"
#include "phema/solver.h"

#include "fixed_point.h"
#include "profile_set.h"

enum phema_gram_metric { PHEMA_GRAM_WHITE, PHEMA_GRAM_WALK, PHEMA_GRAM_MOTION };
#define PHEMA_N_GRAMS 3

struct phema_gram { /* one metric */
    size_t n;
    size_t m;
    const struct phema_profile_set *set; /* borrowed from the grams */
    enum phema_gram_metric metric;
    phema_fixed *matrix; /* [n x n] symmetric: cosines of the snapshots, 1 on the diagonal */
    phema_quad *cosines; /* [m x n] of the targets with the snapshots; behind the matrix */
    phema_quad *lengths; /* [n + m]: snapshots, then targets */
    bool *has_length;    /* [m] of a target; else its length counts as 1 */
};

struct phema_grams { /* stays where it was built */
    struct phema_profile_set set;
    struct phema_gram white;
    struct phema_gram walk;   /* empty where it is not needed */
    struct phema_gram motion; /* empty where no motion is known */
};

/* Inner products as they come: snapshots and targets are rows, snapshots columns; of the snapshots'
 * square the upper half (j >= i) is filled. */
struct phema_products {
    phema_quad *with[PHEMA_N_GRAMS]; /* [(n + m) x n], NULL: not wanted */
    phema_quad *self[PHEMA_N_GRAMS]; /* [n + m] with itself */
};

/* Without a motion walk is always there; beside one only when needed. */
PHEMA_FALLIBLE phema_grams_build(struct phema_grams *grams, const struct phema_problem *problem,
                                 bool needs_walk, struct phema_error *err);
void phema_grams_clear(struct phema_grams *grams);

/* products.c: fills in what is wanted; motion may be NULL where that metric is not */
PHEMA_FALLIBLE phema_products_find(struct phema_products *products,
                                   const struct phema_profile_set *set,
                                   const struct phema_motion *motion, struct phema_error *err);

/* Closed forms (N14), (N15) for power functions of exponents a_power - 1 and b_power - 1; ta <= tb,
 * and decay = (ta/tb)^b_power. */
phema_quad phema_white_term(phema_quad a_power, phema_quad b_power); /* product ta / decay */
struct phema_walk_terms { /* product = ta (begun - decay lost) */
    phema_quad begun, lost;
};
struct phema_walk_terms phema_walk_terms(phema_quad a_power, phema_quad b_power);
phema_quad phema_white_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                               phema_quad decay);
phema_quad phema_walk_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                              phema_quad decay);

/* For work of some n^2 steps and more: below, threads cost more than they give. */
#define PHEMA_LEAST_PARALLEL 256
static inline unsigned phema_threads_for(size_t n)
{
    return n < PHEMA_LEAST_PARALLEL ? 1 : phema_parallel_threads();
}

/* out = matrix x; scratch [n]; out may be x */
void phema_gram_apply(const struct phema_gram *gram, phema_quad *out, const phema_quad *x,
                      phema_fixed *scratch);

/* |target - sum w_i p_i|^2 / |target|^2, never negative. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_gram_error(phema_quad *squared, const struct phema_gram *gram, size_t target,
                                const double *weights, struct phema_error *err);

/* Two snapshots that are one average, to the digits of a quad; false when there are none. */
bool phema_gram_find_alike(const struct phema_gram *gram, size_t *i, size_t *j);

#endif
