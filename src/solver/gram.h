/* gram.h - inner products of averaging profiles in three metrics.
 * White: <p, q> = integral of p q. Walk: <Q, R> = integral of the cumulative profiles Q (the weight
 * after tau) and R. Motion: integral of wander Q R + jitter p q, with the measured motion of the
 * parameters. All vectors of a problem are scaled to length 1 in their metric. */
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
    phema_quad *cosines; /* [m x n] of the targets with the snapshots; in the block of the matrix */
    phema_quad *lengths; /* [n + m]: snapshots, then targets */
    bool *has_length;    /* [m] of a target; without one its length counts as 1 */
};

struct phema_grams { /* must not be moved: the grams point to the set */
    struct phema_profile_set set;
    struct phema_gram white;
    struct phema_gram walk;   /* empty if not needed */
    struct phema_gram motion; /* empty without a known motion */
};

struct phema_gram_band { /* near snapshots alone, in the metric of the motion */
    size_t n, reach;
    phema_fixed *cosines; /* [n x reach] of i with i, i + 1, ...; what is beyond n is not set */
    phema_quad *lengths;  /* [n] */
};

/* Inner products, not scaled: snapshots and targets are rows, snapshots columns; of the snapshots'
 * square the upper half (j >= i) is filled. Entry (i, j) is at i stride + j. A band has `reach`
 * entries of a row, from the diagonal on, and the stride reach - 1: rows follow without gaps. */
struct phema_products {
    size_t reach;                    /* SIZE_MAX: all of a row; else there are no targets */
    size_t stride;                   /* n where all of a row is there */
    phema_quad *with[PHEMA_N_GRAMS]; /* [(n + m) x n], of a band [n x reach]; NULL: not wanted */
    phema_quad *self[PHEMA_N_GRAMS]; /* [n + m] with itself */
};

/* Builds all grams that are needed. Walk: always without a motion, with one if needs_walk.
 * PHEMA_ERR_INPUTS, PHEMA_ERR_TARGET, PHEMA_ERR_RESOURCE as phema_weights_solve */
PHEMA_FALLIBLE phema_grams_build(struct phema_grams *grams, const struct phema_problem *problem,
                                 bool needs_walk, struct phema_error *err);
void phema_grams_clear(struct phema_grams *grams);

/* The problem has a motion and no targets; reach >= 1. */
PHEMA_FALLIBLE phema_gram_band_build(struct phema_gram_band *band,
                                     const struct phema_problem *problem, size_t reach,
                                     struct phema_error *err);
void phema_gram_band_clear(struct phema_gram_band *band);

/* Fills in the products that are wanted, which begin as 0. motion may be NULL where that metric is not wanted.
 * PHEMA_ERR_INPUTS    too many steps to follow
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_products_find(struct phema_products *products,
                                   const struct phema_profile_set *set,
                                   const struct phema_motion *motion, struct phema_error *err);

/* PHEMA_ERR_RESOURCE: no memory to solve for n snapshots. */
enum phema_status phema_fail_solve(size_t n, struct phema_error *err);

/* For work of n^2 steps and more. Below this, threads cost more time than they save. */
#define PHEMA_LEAST_PARALLEL 256
static inline unsigned phema_threads_for(size_t n)
{
    return n < PHEMA_LEAST_PARALLEL ? 1 : phema_parallel_threads();
}

/* out = matrix x; scratch [n]; out may be x */
void phema_gram_apply(const struct phema_gram *gram, phema_quad *out, const phema_quad *x,
                      phema_fixed *scratch);

/* out = matrix x for whole numbers with sum |x_i| <= 2^62, which takes half as long */
void phema_gram_apply_whole(const struct phema_gram *gram, phema_quad *out, const int64_t *x);

/* |target - sum w_i p_i|^2 / |target|^2, never negative. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_gram_error(phema_quad *squared, const struct phema_gram *gram, size_t target,
                                const double *weights, struct phema_error *err);

/* Finds two snapshots that are the same average to quad precision; false if all differ. */
bool phema_gram_find_alike(const struct phema_gram *gram, size_t *i, size_t *j);

#endif
