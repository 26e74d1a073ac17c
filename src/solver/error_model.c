// SPDX-License-Identifier: Apache-2.0
/* error_model.c - errors of the profile in all metrics, and the predicted error of the tensors (N8,
 * docs/numerics.md); the automatic ridge. */
#include "error_model.h"

#include "gram_closed_form.h"

/* |EMA 0.05 - EMA 0.10| / |EMA| at the end of a run, measured in real trainings. */
#define WANDERED ((phema_quad)0.03)

#define FLOAT64_ROUNDING 1e-12 /* at most */

#define LEAST_INITIAL 1e-6 /* weights on the parameters before training below it do not matter */

/* Integral of (Q_0.05 - Q_0.10)^2 over a training time of 1. The gammas are the roots of
 * phema_gamma_from_sigma_rel; a model good to a factor needs no more digits. */
static phema_quad widths_apart(void)
{
    const phema_quad a = (phema_quad)16.972198602303450 + 1;
    const phema_quad b = (phema_quad)6.9372039376018075 + 1;
    return phema_walk_product(a, a, 1, 1) - 2 * phema_walk_product(a, b, 1, 1) +
           phema_walk_product(b, b, 1, 1);
}

double phema_walk_rate(double run_end)
{
    return (double)(WANDERED * WANDERED / (widths_apart() * (phema_quad)run_end));
}

phema_quad phema_error_unit(const struct phema_problem *problem, bool is_motion)
{
    double end = 0;
    if (is_motion)
        return 1;
    for (size_t i = 0; i < problem->n; i++)
        end = fmax(end, problem->snapshots[i].t);
    if (problem->run_end > 0 && isfinite(problem->run_end))
        end = problem->run_end;
    return WANDERED * WANDERED / (widths_apart() * (phema_quad)end);
}

/* Relative rms error of a snapshot. An average in float32 or less was kept in float32. */
static double noise_of(const struct phema_problem *problem, size_t i)
{
    double rounding = problem->rounding ? problem->rounding[i] : 0;
    bool is_average = problem->snapshots[i].shape != PHEMA_SHAPE_RAW;
    return is_average && rounding > FLOAT64_ROUNDING ? fmax(rounding, PHEMA_FLOAT32_FLOOR)
                                                     : rounding;
}

void phema_error_ridge(phema_quad *ridge, const struct phema_problem *problem, bool is_motion)
{
    phema_quad unit = phema_error_unit(problem, is_motion);
    for (size_t i = 0; i < problem->n; i++) {
        phema_quad noise = (phema_quad)noise_of(problem, i);
        ridge[i] = noise * noise / unit;
    }
}

static void rate_weights(struct phema_solution *solution, size_t n)
{
    phema_quad sum = 0, norm1 = 0, norm2 = 0;
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
static void predict(struct phema_solution *solution, const struct phema_problem *problem,
                    phema_quad moved_squared, phema_quad sum)
{
    double rounded = 0;
    for (size_t i = 0; problem->rounding && i < problem->n; i++)
        rounded = hypot(rounded, noise_of(problem, i) * solution->weights[i]);
    double moved = (double)phema_quad_sqrt(moved_squared);
    solution->predicted.profile = hypot(moved, (double)sum - solution->sum);
    solution->predicted.rounding = rounded;
    solution->predicted.total = hypot(solution->predicted.profile, rounded);
    solution->predicted.paper_weights = solution->predicted.total;
}

/* Of a profile; most have none. */
static double initial_weight(const struct phema_profile *profile)
{
    const double before = -1;
    double weight = 0;
    phema_profile_cumulative(&weight, profile, &before, 1);
    return weight;
}

/* The weight of a target on the parameters before training, less that of the snapshots. */
static double find_initial(const struct phema_problem *problem, const struct phema_mix *target,
                           const double *weights)
{
    double wanted = 0, made = 0;
    for (size_t p = 0; p < target->n_parts; p++)
        wanted += (target->factors ? target->factors[p] : 1) * initial_weight(&target->parts[p]);
    if (fabs(wanted) < LEAST_INITIAL)
        return 0;
    for (size_t i = 0; i < problem->n; i++)
        if (weights[i] != 0)
            made += weights[i] * initial_weight(&problem->snapshots[i]);
    return fabs(wanted - made);
}

/* NaN: the metric is not known, or the target has no length in it */
static double relative_error(const struct phema_gram *gram, size_t target, phema_quad squared)
{
    bool is_defined = gram->n && gram->has_length[target];
    return is_defined ? (double)phema_quad_sqrt(squared) : (double)NAN;
}

enum phema_status phema_solution_evaluate(struct phema_solution *solution,
                                          const struct phema_grams *grams, size_t target,
                                          const struct phema_problem *problem,
                                          struct phema_error *err)
{
    const struct phema_gram *const all[] = {&grams->white, &grams->walk, &grams->motion};
    phema_quad squared[PHEMA_N_GRAMS] = {0};
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++) {
        if (!all[g]->n)
            continue;
        enum phema_status status =
            phema_gram_error(&squared[g], all[g], target, solution->weights, err);
        if (status)
            return status;
    }
    enum phema_gram_metric moving = problem->motion ? PHEMA_GRAM_MOTION : PHEMA_GRAM_WALK;
    phema_quad length = all[moving]->lengths[problem->n + target];
    solution->profile_error = relative_error(&grams->white, target, squared[PHEMA_GRAM_WHITE]);
    solution->walk_error = relative_error(&grams->walk, target, squared[PHEMA_GRAM_WALK]);
    rate_weights(solution, problem->n);
    predict(solution, problem,
            squared[moving] * length * length * phema_error_unit(problem, problem->motion != NULL),
            phema_profile_set_sum(&grams->set, target));
    double initial = find_initial(problem, &problem->targets[target], solution->weights);
    solution->predicted.initial = initial > solution->predicted.total ? initial : 0;
    return PHEMA_OK;
}
