// SPDX-License-Identifier: Apache-2.0
/* advice.c - weights --advise: the solver's advice on a series, for the targets of a plan. */
#include <stdlib.h>

#include "solver_input.h"

static enum phema_status advise(struct phema_plan_advice *advice, const struct solver_input *input,
                                double max_error, struct phema_error *err)
{
    struct phema_advice found = {0};
    enum phema_status status = phema_advice_find(&found, &input->problem, max_error, err);
    if (!status)
        status = phema_advice_saving(&advice->saving, &input->problem, max_error, err);
    if (status) {
        phema_advice_clear(&found);
        return status;
    }
    for (size_t r = 0; r < found.n_removed; r++)
        found.removed[r] = input->index[found.removed[r]];
    advice->removed = found.removed;
    advice->n_removed = found.n_removed;
    advice->n_considered = input->problem.n;
    advice->error_before = found.error_before;
    advice->error_after = found.error_after;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_plan_advise(struct phema_plan_advice *out, const struct phema_plan *plan,
                                 double max_error, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    if (plan->has_given_weights)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--advise: weights that are given leave nothing to advise on");
    if (!(max_error > 0))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--advise: give --max-error, the predicted error that is still good "
                          "enough, above 0");
    for (size_t j = 1; j < plan->m; j++)
        if (plan->targets[j].time != plan->targets[0].time)
            return phema_fail(err, PHEMA_ERR_USAGE, "--advise: takes targets of one time");
    struct solver_input input;
    struct phema_plan_advice advice = {0};
    enum phema_status status = solver_input_build(
        &input, series, plan->motion, solver_input_count_used(series, plan->targets[0].time), true,
        plan->targets, plan->m, err);
    if (!status)
        status = advise(&advice, &input, max_error, err);
    solver_input_clear(&input);
    if (status)
        return phema_fail_in(err, status, "%s", series->root);
    *out = advice;
    return PHEMA_OK;
}

void phema_plan_advice_clear(struct phema_plan_advice *advice)
{
    free(advice->removed);
    *advice = (struct phema_plan_advice){0};
}
