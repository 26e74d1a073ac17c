/* gram.h - inner products of averaging profiles in the two metrics.
 * White: <p, q> = integral of p q. Walk: <Q, R> = integral of the cumulative profiles Q (the weight
 * after tau) and R. All vectors of a problem are scaled to length 1 in their metric. */
#ifndef PHEMA_PROFILE_GRAM_H
#define PHEMA_PROFILE_GRAM_H

#include "phema/profile.h"

#include "fixed.h"
#include "set.h"

struct phema_gram { /* one metric */
    size_t n;
    size_t m;
    const struct phema_set *set; /* borrowed from the grams */
    bool is_walk;
    phema_fixed *matrix; /* [n x n] symmetric: cosines of the snapshots, 1 on the diagonal */
    phema_quad *cosines; /* [m x n] of the targets with the snapshots */
    phema_quad *lengths; /* [n + m]: snapshots, then targets */
};

struct phema_grams { /* stays where it was built */
    struct phema_set set;
    struct phema_gram white;
    struct phema_gram walk;
};

/* Inner products as they come: snapshots and targets are rows, snapshots columns; of the snapshots'
 * square the lower half (j <= i) is filled. */
struct phema_products {
    phema_quad *white; /* [(n + m) x n] */
    phema_quad *walk;
    phema_quad *white_self; /* [n + m] with itself */
    phema_quad *walk_self;
};

PHEMA_FALLIBLE phema_grams_build(struct phema_grams *grams, const struct phema_profile *snapshots,
                                 size_t n, const struct phema_profile *targets, size_t m,
                                 struct phema_error *err);
void phema_grams_clear(struct phema_grams *grams);

/* Closed forms for power functions of exponents a_power - 1 and b_power - 1; ta <= tb, and
 * decay = (ta/tb)^b_power. */
phema_quad phema_white_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                               phema_quad decay);
phema_quad phema_walk_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                              phema_quad decay);

/* out = matrix x; scratch [n]; out may be x */
void phema_gram_apply(const struct phema_gram *gram, phema_quad *out, const phema_quad *x,
                      phema_fixed *scratch);

/* |target - sum w_i p_i|^2 / |target|^2, never negative. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_gram_error(phema_quad *squared, const struct phema_gram *gram, size_t target,
                                const double *weights, struct phema_error *err);

/* Two snapshots that are one average, to the digits of a quad; false when there are none. */
bool phema_gram_find_alike(const struct phema_gram *gram, size_t *i, size_t *j);

/* recurrence.c: products of step-by-step averages. PHEMA_ERR_INPUTS when there are too many steps,
 * PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_recurrence_products(struct phema_products *products,
                                         const struct phema_set *set, struct phema_error *err);

#endif
