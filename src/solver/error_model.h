/* error_model.h - the predicted error of weights.
 * (N8) E = integral wander D^2 + integral jitter d^2 + sum n_i w_i^2, with d the difference of
 * profiles and D the cumulative one, n_i the squared roundings. Without a known motion,
 * parameters of size 1 wander so that EMA 0.05 and EMA 0.10 differ by 0.03 at the end of the run.
 */
#ifndef SOLVER_ERROR_MODEL_H
#define SOLVER_ERROR_MODEL_H

#include "gram.h"

struct phema_model {
    phema_quad wander;      /* of the data-free model */
    bool has_motion;        /* the motion metric is the model */
    const double *rounding; /* [n], relative rms; NULL: all 0; borrowed */
};

struct phema_model phema_model_of(const struct phema_problem *problem);

/* n_i, to be added to the diagonal of the Gram matrix of the motion metric; n_i / wander for that
 * of the walk metric */
void phema_model_ridge(phema_quad *ridge, const struct phema_model *model, bool is_motion,
                       size_t n);

/* Computes all members but weights, solver, condition, ridge and predicted.paper_weights.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_solution_evaluate(struct phema_solution *solution,
                                       const struct phema_grams *grams, size_t target,
                                       const struct phema_model *model, struct phema_error *err);

#endif
