/* gram_closed_form.h - closed forms of inner products, and lines: all products of one profile with
 * those of one family. */
#ifndef SOLVER_GRAM_CLOSED_FORM_H
#define SOLVER_GRAM_CLOSED_FORM_H

#include "gram.h"

/* One member is a snapshot, or both are parts of one target; in a band both are near. */
bool phema_product_is_wanted(const struct phema_products *products,
                             const struct phema_profile_set *set, size_t i, size_t j);

/* Adds to the product [PHEMA_N_GRAMS] of members i and j, which begins with 0. Parts of a target are
 * summed. */
void phema_product_add(struct phema_products *products, const struct phema_profile_set *set,
                       size_t i, size_t j, const phema_quad *product);

/* All products of one member a with those of one family that end then or later:
 * <a, b> = begun - lost F(a's end; b's end). */
struct phema_line {
    phema_quad begun[PHEMA_N_GRAMS], lost[PHEMA_N_GRAMS];
    /* The same, as far as it does not depend on b: <a, b> = from - loss / (what b has kept) */
    struct phema_scaled from[PHEMA_N_GRAMS], loss[PHEMA_N_GRAMS];
    bool is_scaled;
};

/* Computes from and loss out of begun and lost, for member a and a family. */
void phema_line_scale(struct phema_line *line, const struct phema_products *products,
                      const struct phema_profile_set *set, const struct phema_member *a,
                      size_t family);

/* Stores the product of i, whose line this is, and j, which ends then or later. */
void phema_line_store(struct phema_products *products, const struct phema_profile_set *set,
                      size_t i, size_t j, const struct phema_line *line);

/* Closed forms (N14), (N15) for power functions of exponents a_power - 1 and b_power - 1; ta <= tb,
 * and decay = (ta/tb)^b_power. */
phema_quad phema_white_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                               phema_quad decay);
phema_quad phema_walk_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                              phema_quad decay);

/* Fills the white and walk products of a plain set. False: no memory. */
bool phema_products_find_closed(struct phema_products *products,
                                const struct phema_profile_set *set);

/* gram_integrals.c: computes all wanted products by sums over intervals.
 * PHEMA_ERR_INPUTS    too many steps to follow
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_products_integrate(struct phema_products *products,
                                        const struct phema_profile_set *set,
                                        const struct phema_motion *motion, struct phema_error *err);

#endif
