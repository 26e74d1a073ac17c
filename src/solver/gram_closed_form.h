/* gram_closed_form.h - how inner products are found and kept: a line for each profile and kind of
 * others.
 */
#ifndef SOLVER_GRAM_CLOSED_FORM_H
#define SOLVER_GRAM_CLOSED_FORM_H

#include "gram.h"
#include "scaled.h"

/* Members in order of their time, those of one time in order of their index; to be freed. NULL: no
 * memory */
size_t *phema_profile_set_by_time(const struct phema_profile_set *set);

/* One is the snapshots', or both are of one target. */
bool phema_product_is_wanted(const struct phema_profile_set *set, size_t i, size_t j);

/* Puts the product of members i and j, [PHEMA_N_GRAMS], where it goes: parts of a target add up. */
void phema_product_keep(struct phema_products *products, const struct phema_profile_set *set,
                        size_t i, size_t j, const phema_quad *product);

/* All products of one member a with those of one kind that end then or later:
 * <a, b> = begun - lost F(a's end; b's end). */
struct phema_line {
    phema_quad begun[PHEMA_N_GRAMS], lost[PHEMA_N_GRAMS];
    /* The same, as far as it does not depend on b: <a, b> = from - loss / (what b has kept) */
    struct phema_scaled from[PHEMA_N_GRAMS], loss[PHEMA_N_GRAMS];
    bool is_scaled;
};

/* Fills in what does not depend on b: begun and lost are there, of a and a kind. */
void phema_line_scale(struct phema_line *line, const struct phema_products *products,
                      const struct phema_profile_set *set, const struct phema_member *a,
                      size_t kind);

/* Puts the product of i, whose line it is, and j, which ends then or later, where it goes. */
void phema_line_keep(struct phema_products *products, const struct phema_profile_set *set, size_t i,
                     size_t j, const struct phema_line *line);

/* Everything wanted by sums over intervals. PHEMA_ERR_INPUTS: too many steps to follow;
 * PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_products_sum(struct phema_products *products,
                                  const struct phema_profile_set *set,
                                  const struct phema_motion *motion, struct phema_error *err);

#endif
