/* predict.h - the error to expect of weights, before any tensor is read.
 * Model: parameters of size 1 wander such that EMA 0.05 and EMA 0.10 differ by 0.03 at the end of
 * the run; snapshots are rounded. E = v_b integral D^2 + sum n_i w_i^2 with D the cumulative
 * difference of profiles, v_b the wandering per time, n_i the squares of the roundings. */
#ifndef PHEMA_PROFILE_PREDICT_H
#define PHEMA_PROFILE_PREDICT_H

#include "gram.h"

struct phema_model {
    phema_quad wander;      /* v_b */
    const double *rounding; /* [n], relative rms; NULL: all 0; borrowed */
};

struct phema_model phema_model_of(const struct phema_profile *snapshots, size_t n,
                                  const double *rounding, double run_end);

/* n_i / v_b, to be added to the diagonal of the walk metric's Gram matrix */
void phema_model_ridge(phema_quad *ridge, const struct phema_model *model, size_t n);

/* Everything but weights, solver, condition, ridge and the paper's weights. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_solution_rate(struct phema_solution *solution, const struct phema_grams *grams,
                                   size_t target, const struct phema_model *model,
                                   struct phema_error *err);

#endif
