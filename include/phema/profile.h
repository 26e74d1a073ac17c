/* profile.h - averaging profiles over training time, and the weights that reach them.
 * No files, no globals, no tensors; safe from any thread. Inner products and solve are in quad
 * precision (113 bits). Eq. and Alg. are of arXiv:2312.02696. */
#ifndef PHEMA_PROFILE_H
#define PHEMA_PROFILE_H

#include "phema/error.h"
#include "phema/span.h"

/* How a snapshot or a target weighs the past. A power-function EMA that is updated at every step:
 * p(tau) = (gamma+1) tau^gamma / t^(gamma+1) on [0, t] (eq. 123). With update_every U > 1: the
 * average is touched at steps 1, 1+U, 1+2U, ... only, with beta = (c/(c+1))^(gamma+1) at step c,
 * and starts as a copy of the parameters of step 1 (ema-pytorch, pytorch-posthoc-ema). t must then
 * be a whole number of steps. As soon as one profile of a set has U > 1 the whole set is treated
 * step by step; those with U = 1 by the exact beta(c) = ((c-1)/c)^(gamma+1). Where all that have
 * U > 1 have the same, densities are compared at a resolution of U steps: an average that is
 * touched every U steps is a comb, which no weights make smooth. */
struct phema_profile {
    double gamma;          /* exponent [1], > -1/2 */
    double t;              /* end of the profile [one unit per run], > 0, < 2^53 */
    uint64_t update_every; /* [steps], 0 means 1 */
    const char *label;     /* for messages: a file's name; borrowed */
};

#define PHEMA_SIGMA_REL_LIMIT    0.289    /* EDM2: 0 < sigma_rel < 0.289 */
#define PHEMA_SIGMA_REL_SUPREMUM 0.300283 /* no power function has more */

/* Largest real root of g^3 + 7 g^2 + (16 - s^-2) g + (12 - s^-2) = 0 (Alg. 2), by Newton from
 * above. PHEMA_ERR_TARGET when sigma_rel is not in (0, 0.289); the message teaches. */
PHEMA_FALLIBLE phema_gamma_from_sigma_rel(double *gamma, double sigma_rel, struct phema_error *err);
/* sqrt(gamma+1) / ((gamma+2) sqrt(gamma+3)) (eq. 126); gamma > -1 */
double phema_sigma_rel_from_gamma(double gamma);
/* (1 - 1/step)^(gamma+1) (eq. 127), correctly rounded on every machine (computed in quad). */
double phema_power_beta(double gamma, uint64_t step);
/* Time back from t in which half of the weight lies: t (1 - 2^(-1/(gamma+1))); and its inverse. */
double phema_half_life_from_gamma(double gamma, double t);
PHEMA_FALLIBLE phema_gamma_from_half_life(double *gamma, double half_life, double t,
                                          struct phema_error *err);

enum phema_metric {
    PHEMA_METRIC_WALK,   /* parameters wander: integral of (cumulative difference)^2, sum w = 1 */
    PHEMA_METRIC_PROFILE /* the paper's and EDM2's: integral of (difference)^2, then w / sum w */
};
enum phema_ridge {
    PHEMA_RIDGE_AUTO, /* walk: from the dtypes' rounding; profile: none */
    PHEMA_RIDGE_NONE,
    PHEMA_RIDGE_VALUE /* lambda of |w|^2 beside (1/T) integral D^2 (walk) or T integral d^2 */
};
enum phema_solver {
    PHEMA_SOLVER_AUTO,  /* quad up to 700 unknowns, LAPACKE with quad refinement above */
    PHEMA_SOLVER_QUAD,  /* Cholesky in quad */
    PHEMA_SOLVER_LAPACK /* float64, the reference */
};
struct phema_solve_options {
    enum phema_metric metric;
    enum phema_ridge ridge;
    double ridge_value;
    enum phema_solver solver;
    bool keeps_sum; /* profile metric: leave out the division by the sum (eq. 151 as it stands) */
};

/* Relative L2 error to expect, of |theta|: data-free model (random walk such that EMA 0.05 and 0.10
 * differ by 3 %), and the rounding of the stored snapshots. */
struct phema_prediction {
    double total, profile, rounding;
    double paper_weights; /* total, had the weights been those of the profile metric */
};

struct phema_solution {
    double *weights;      /* [n], in the order of the snapshots */
    double sum;           /* of the weights */
    double norm1, norm2;  /* of the weights */
    double profile_error; /* sqrt(int (p - target)^2 / int target^2) */
    double walk_error;    /* the same of the cumulative profiles */
    double condition;     /* of the Gram matrix with its ridge, in the 2-norm; inf: singular */
    double ridge;         /* lambda that was used, 0 for none */
    const char *solver;   /* "quad" or "lapack" */
    struct phema_prediction predicted;
};

/* Weights that combine n snapshots into each of m targets (eq. 151, Alg. 3), all at once.
 *   solutions  out: [m]; weights are allocated: phema_solutions_clear
 *   snapshots  [n] none later than needed is required: later ones are used as they are
 *   rounding   [n] relative rms rounding error of each (phema_dtype_rounding), NULL: all 0
 *   targets    [m]
 *   run_end    the last time of the series, for the prediction's scale; 0: the last snapshot
 * PHEMA_ERR_INPUTS    n = 0; a time or gamma out of range; two snapshots are the same average
 *                     (a pivot is 1e-30 or less); over 1e9 steps to follow one by one
 * PHEMA_ERR_TARGET    a target later than every snapshot, or before the first; t not > 0
 * PHEMA_ERR_RESOURCE  no memory: about phema_weights_bytes(n); n or m above 8192 */
PHEMA_FALLIBLE phema_weights_solve(struct phema_solution *solutions,
                                   const struct phema_profile *snapshots, const double *rounding,
                                   size_t n, const struct phema_profile *targets, size_t m,
                                   double run_end, const struct phema_solve_options *options,
                                   struct phema_error *err);

/* What the matrices of n snapshots take: 64 n^2. */
uint64_t phema_weights_bytes(size_t n);

/* Fill in all but weights and solver of solutions whose weights were given from outside: used
 * exactly as they are. Failures as above, but snapshots may coincide. */
PHEMA_FALLIBLE phema_weights_rate(struct phema_solution *solutions,
                                  const struct phema_profile *snapshots, const double *rounding,
                                  size_t n, const struct phema_profile *targets, size_t m,
                                  double run_end, struct phema_error *err);

void phema_solutions_clear(struct phema_solution *solutions, size_t m);

#endif
