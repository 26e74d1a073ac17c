/* gram_coherent.h - what a coherent drift of the parameters adds to inner products: velocities that
 * keep their direction for as long as the training has lasted (docs/numerics.md, N33 to N35).
 * A velocity is constant within an interval of the motion. */
#ifndef SOLVER_GRAM_COHERENT_H
#define SOLVER_GRAM_COHERENT_H

#include "gram_closed_form.h"
#include "intervals.h"

struct phema_coherent; /* sums over the intervals so far */

/* Set, motion and pairs are borrowed; memory is the arena's. NULL: no memory */
struct phema_coherent *phema_coherent_begin(const struct phema_profile_set *set,
                                            const struct phema_motion *motion,
                                            const struct phema_family_pairs *pairs,
                                            struct phema_arena *memory);

/* Adds the next interval of the set, which lies in interval k of the motion. */
void phema_coherent_add(struct phema_coherent *coherent, const struct phema_interval *interval,
                        size_t k);

/* Keeps what phema_coherent_finish needs of member i, which ends with the interval added last. */
void phema_coherent_read(struct phema_coherent *coherent, size_t i);

/* What is added to the line of that member with a family: begun - lost F(i's end; b's end). */
void phema_coherent_line(const struct phema_coherent *coherent, size_t i, size_t family,
                         phema_quad *begun, phema_quad *lost);

/* Adds to the products what is not in lines: from the end of the earlier member on, its velocity
 * carries on until the later one ends. All members have been read. */
void phema_coherent_finish(const struct phema_coherent *coherent, struct phema_products *products);

#endif
