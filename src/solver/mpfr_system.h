/* mpfr_system.h - the Gram matrix of a metric with 256 bits, for snapshots that quad hardly tells
 * apart (times one step apart late in a run: pivots of 1e-29). Closed forms only, no ridge. */
#ifndef SOLVER_MPFR_SYSTEM_H
#define SOLVER_MPFR_SYSTEM_H

#include "profile_set.h"

#define PHEMA_WIDE_MAX_SNAPSHOTS 1024 /* a factorisation of ten seconds */

struct phema_wide; /* a factorised Gram matrix, in MPFR */

/* PHEMA_NO, without a message: 256 bits do not do either. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_wide_open(struct phema_wide **out, const struct phema_profile_set *set,
                               bool is_walk, struct phema_error *err);
void phema_wide_close(struct phema_wide *wide); /* takes NULL */

/* x [n] of G x = products of the target with the snapshots, or of G x = 1 */
void phema_wide_solve_target(struct phema_wide *wide, phema_quad *x, size_t target);
void phema_wide_solve_ones(struct phema_wide *wide, phema_quad *x);

/* Float64 weights for x. Rounding weights of 1e9 one by one would move the profile by 1e-7: here
 * each takes up what those before it left, from the largest to the smallest. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_wide_round(struct phema_wide *wide, double *weights, const phema_quad *x,
                                struct phema_error *err);

#endif
