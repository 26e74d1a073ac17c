// SPDX-License-Identifier: Apache-2.0
/* predict.c - ratings of weights: errors of the profile in both metrics, and the error of the
 * tensors that a data-free model expects (docs/solver.md). */
#include "predict.h"

/* |EMA 0.05 - EMA 0.10| of |EMA| at the end of the run, as real trainings have it. */
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

struct phema_model phema_model_of(const struct phema_profile *snapshots, size_t n,
                                  const double *rounding, double run_end)
{
    double end = 0;
    for (size_t i = 0; i < n; i++)
        end = fmax(end, snapshots[i].t);
    if (run_end > 0 && isfinite(run_end))
        end = run_end;
    return (struct phema_model){
        .wander = WANDERED * WANDERED / (widths_apart() * (phema_quad)end),
        .rounding = rounding,
    };
}

void phema_model_ridge(phema_quad *ridge, const struct phema_model *model, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        phema_quad rounding = model->rounding ? (phema_quad)model->rounding[i] : 0;
        ridge[i] = rounding * rounding / model->wander;
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

/* Weights whose sum is not 1 scale the parameters themselves: that error does not decay. */
static void predict(struct phema_solution *solution, const struct phema_model *model, size_t n,
                    phema_quad walk_squared)
{
    double rounded = 0;
    for (size_t i = 0; model->rounding && i < n; i++)
        rounded = hypot(rounded, model->rounding[i] * solution->weights[i]);
    double wandered = (double)phema_quad_sqrt(model->wander * walk_squared);
    solution->predicted.profile = hypot(wandered, 1 - solution->sum);
    solution->predicted.rounding = rounded;
    solution->predicted.total = hypot(solution->predicted.profile, rounded);
    solution->predicted.paper_weights = solution->predicted.total;
}

enum phema_status phema_solution_rate(struct phema_solution *solution,
                                      const struct phema_grams *grams, size_t target,
                                      const struct phema_model *model, struct phema_error *err)
{
    size_t n = grams->white.n;
    phema_quad white;
    phema_quad walk;
    enum phema_status status =
        phema_gram_error(&white, &grams->white, target, solution->weights, err);
    if (!status)
        status = phema_gram_error(&walk, &grams->walk, target, solution->weights, err);
    if (status)
        return status;
    phema_quad length = grams->walk.lengths[n + target];
    solution->profile_error = (double)phema_quad_sqrt(white);
    solution->walk_error = (double)phema_quad_sqrt(walk);
    rate_weights(solution, n);
    predict(solution, model, n, walk * length * length);
    return PHEMA_OK;
}
