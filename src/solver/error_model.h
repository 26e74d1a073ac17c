/* error_model.h - the predicted error of weights.
 * (N8) E = integral wander D^2 + integral jitter d^2 + sum n_i w_i^2, with d the difference of
 * profiles and D the cumulative one, n_i the squared roundings. Without a known motion,
 * parameters of size 1 wander so that EMA 0.05 and EMA 0.10 differ by 0.03 at the end of the run.
 */
#ifndef SOLVER_ERROR_MODEL_H
#define SOLVER_ERROR_MODEL_H

#include "gram.h"

/* The squared error of the tensors for a squared distance of 1 in the metric: 1 for motion, for
 * walk the wander of parameters without a known motion. */
phema_quad phema_error_unit(const struct phema_problem *problem, bool is_motion);

/* n_i in units of the metric, motion or walk: to be added to the diagonal of its Gram matrix */
void phema_error_ridge(phema_quad *ridge, const struct phema_problem *problem, bool is_motion);

/* Computes all members but weights, solver, condition, ridge and predicted.paper_weights. The grams
 * are the problem's.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_solution_evaluate(struct phema_solution *solution,
                                       const struct phema_grams *grams, size_t target,
                                       const struct phema_problem *problem,
                                       struct phema_error *err);

#endif
