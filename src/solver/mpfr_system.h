/* mpfr_system.h - the Gram matrix of a metric with 256 bits, for snapshots that are almost equal
 * in quad precision (times one step apart late in a run: pivots of 1e-29). Closed forms only, no
 * ridge. */
#ifndef SOLVER_MPFR_SYSTEM_H
#define SOLVER_MPFR_SYSTEM_H

#include "profile_set.h"

#define PHEMA_MPFR_MAX_SNAPSHOTS 1024 /* a factorisation of ten seconds */

struct phema_mpfr_system; /* a factorised Gram matrix, in MPFR */

/* PHEMA_NO            256 bits are not enough; no message
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_mpfr_open(struct phema_mpfr_system **out, const struct phema_profile_set *set,
                               bool is_walk, struct phema_error *err);
void phema_mpfr_close(struct phema_mpfr_system *system); /* takes NULL */

/* x [n] of G x = products of the target with the snapshots, or of G x = 1 */
void phema_mpfr_solve_target(struct phema_mpfr_system *system, phema_quad *x, size_t target);
void phema_mpfr_solve_ones(struct phema_mpfr_system *system, phema_quad *x);

/* Float64 weights for x. Rounding weights of 1e9 one by one would move the profile by 1e-7. Here
 * each weight compensates the rounding of those before it, from the largest to the smallest.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_mpfr_round(struct phema_mpfr_system *system, double *weights,
                                const phema_quad *x, struct phema_error *err);

#endif
