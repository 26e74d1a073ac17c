/* linear_system.h - one factorised system of a Gram matrix, and weights from it. */
#ifndef SOLVER_LINEAR_SYSTEM_H
#define SOLVER_LINEAR_SYSTEM_H

#include "cholesky.h"
#include "gram.h"
#include "mpfr_system.h"

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
    const struct phema_gram *gram;         /* borrowed */
    const struct phema_profile *snapshots; /* borrowed, for messages */
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

struct phema_system_method {
    enum phema_solver solver;
    const struct phema_factorer *factorer; /* of PHEMA_SOLVER_DEVICE, or NULL */
};

/* Factorises. ridge [n] is added to the diagonal of the unscaled Gram matrix, or NULL; snapshots
 * are for messages.
 * PHEMA_ERR_INPUTS    dependent snapshots, unless lenient
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_system_open(struct phema_system *system, const struct phema_gram *gram,
                                 const phema_quad *ridge, struct phema_system_method method,
                                 enum phema_leniency leniency,
                                 const struct phema_profile *snapshots, struct phema_error *err);
void phema_system_close(struct phema_system *system);

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

#endif
