/* linear_system.h - one factorised system of a Gram matrix, and weights from it; the same with 256
 * bits. */
#ifndef SOLVER_LINEAR_SYSTEM_H
#define SOLVER_LINEAR_SYSTEM_H

#include "cholesky.h"
#include "gram.h"

enum phema_sum {
    PHEMA_SUM_FREE,
    PHEMA_SUM_KEPT,   /* the target's, 1 or 0, as a condition */
    PHEMA_SUM_DIVIDED /* w / sum w; for differences the condition that it is 0 */
};

enum phema_leniency {
    PHEMA_STRICT, /* dependent snapshots are a failure */
    PHEMA_LENIENT /* a snapshot that depends on those before it gets weight 0 */
};

struct phema_system {
    const struct phema_gram *gram; /* borrowed */
    enum phema_leniency leniency;
    phema_quad *shrink; /* [n] (1 + ridge_i / <p_i, p_i>)^-1/2, or NULL */
    double *lower;      /* [n x n] float64 factor below the diagonal, or NULL */
    struct phema_cholesky cholesky;
    struct phema_mpfr_system *mpfr; /* if quad is not enough, or NULL */
    bool refines;                   /* float64 factor, quad residuals */
    const char *float64_by;         /* name of the solver of the float64 factor */
    phema_quad *ones;               /* [n] w of G w = 1, or NULL until used */
    phema_fixed *scratch;
    double condition; /* 0 until used */
};

/* Factorises by the solver of the options; their other members are not used. ridge [n] is added to
 * the diagonal of the unscaled Gram matrix, or NULL. After a failure the system is empty.
 * PHEMA_ERR_INPUTS    dependent snapshots, unless lenient
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_system_open(struct phema_system *system, const struct phema_gram *gram,
                                 const phema_quad *ridge, const struct phema_solve_options *options,
                                 enum phema_leniency leniency, struct phema_error *err);
void phema_system_close(struct phema_system *system); /* takes an empty one */

/* The weights [n] that come nearest to the target. PHEMA_ERR_INPUTS, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_system_solve(struct phema_system *system, double *weights, size_t target,
                                  enum phema_sum sum, struct phema_error *err);

/* Column i of the inverse of the Gram matrix with its ridge, unscaled; x [n]. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_system_column(struct phema_system *system, phema_quad *x, size_t i,
                                   struct phema_error *err);

/* Of the Gram matrix with its ridge, unscaled, in the 2-norm. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_system_condition(double *out, struct phema_system *system,
                                      struct phema_error *err);

/* The solver of the factor: "quad", "lapack" or the name of the factorer. */
const char *phema_system_solver(const struct phema_system *system);

/* ---- mpfr_system.c: a factorised Gram matrix with 256 bits, for snapshots that are almost equal
 * in quad precision (times one step apart late in a run: pivots of 1e-29). Closed forms only, no
 * ridge. ---- */

#define PHEMA_MPFR_MAX_SNAPSHOTS 1024 /* a factorisation of ten seconds */

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
