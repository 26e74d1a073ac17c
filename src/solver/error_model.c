// SPDX-License-Identifier: Apache-2.0
/* error_model.c - errors of the profile in all metrics, and the predicted error of the tensors (N8,
 * docs/numerics.md); the automatic ridge. */
#include "error_model.h"

#include "gram_closed_form.h"

/* |EMA 0.05 - EMA 0.10| / |EMA| at the end of a run, measured in real trainings. */
#define WANDERED ((phema_quad)0.03)

/* Integral of (Q_0.05 - Q_0.10)^2 over a training time of 1. The gammas are the roots of
 * phema_gamma_from_sigma_rel; a model good to a factor needs no more digits. */
static phema_quad widths_apart(void)
{
    const phema_quad a = (phema_quad)16.972198602303450 + 1;
    const phema_quad b = (phema_quad)6.9372039376018075 + 1;
    return phema_walk_product(a, a, 1, 1) - 2 * phema_walk_product(a, b, 1, 1) +
           phema_walk_product(b, b, 1, 1);
}

struct phema_model phema_model_of(const struct phema_problem *problem)
{
    double end = 0;
    for (size_t i = 0; i < problem->n; i++)
        end = fmax(end, problem->snapshots[i].t);
    if (problem->run_end > 0 && isfinite(problem->run_end))
        end = problem->run_end;
    return (struct phema_model){
        .wander = WANDERED * WANDERED / (widths_apart() * (phema_quad)end),
        .has_motion = problem->motion != NULL,
        .rounding = problem->rounding,
    };
}

void phema_model_ridge(phema_quad *ridge, const struct phema_model *model, bool is_motion, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        phema_quad rounding = model->rounding ? (phema_quad)model->rounding[i] : 0;
        ridge[i] = rounding * rounding / (is_motion ? 1 : model->wander);
    }
}

static void rate_weights(struct phema_solution *solution, size_t n)
{
    phema_quad sum = 0;
    phema_quad norm1 = 0;
    phema_quad norm2 = 0;
    for (size_t i = 0; i < n; i++) {
        phema_quad w = (phema_quad)solution->weights[i];
        sum += w;
        norm1 += phema_quad_abs(w);
        norm2 += w * w;
    }
    solution->sum = (double)sum;
    solution->norm1 = (double)norm1;
    solution->norm2 = (double)phema_quad_sqrt(norm2);
}

/* If the sum of the weights differs from the target's, the parameters themselves are scaled: that
 * error does not decay. */
static void predict(struct phema_solution *solution, const struct phema_model *model, size_t n,
                    phema_quad moved_squared, phema_quad sum)
{
    double rounded = 0;
    for (size_t i = 0; model->rounding && i < n; i++)
        rounded = hypot(rounded, model->rounding[i] * solution->weights[i]);
    double moved = (double)phema_quad_sqrt(moved_squared);
    solution->predicted.profile = hypot(moved, (double)sum - solution->sum);
    solution->predicted.rounding = rounded;
    solution->predicted.total = hypot(solution->predicted.profile, rounded);
    solution->predicted.paper_weights = solution->predicted.total;
}

static double relative_error(const struct phema_gram *gram, size_t target, phema_quad squared)
{
    return gram->has_length[target] ? (double)phema_quad_sqrt(squared) : (double)NAN;
}

enum phema_status phema_solution_evaluate(struct phema_solution *solution,
                                          const struct phema_grams *grams, size_t target,
                                          const struct phema_model *model, struct phema_error *err)
{
    size_t n = grams->white.n;
    const struct phema_gram *moving = model->has_motion ? &grams->motion : &grams->walk;
    phema_quad white = 0;
    phema_quad walk = 0;
    phema_quad moved = 0;
    enum phema_status status =
        phema_gram_error(&white, &grams->white, target, solution->weights, err);
    if (!status && grams->walk.n)
        status = phema_gram_error(&walk, &grams->walk, target, solution->weights, err);
    if (!status)
        status = phema_gram_error(&moved, moving, target, solution->weights, err);
    if (status)
        return status;
    phema_quad length = moving->lengths[n + target];
    solution->profile_error = relative_error(&grams->white, target, white);
    solution->walk_error = grams->walk.n ? relative_error(&grams->walk, target, walk) : (double)NAN;
    rate_weights(solution, n);
    predict(solution, model, n, moved * length * length * (model->has_motion ? 1 : model->wander),
            phema_profile_set_sum(&grams->set, target));
    return PHEMA_OK;
}
