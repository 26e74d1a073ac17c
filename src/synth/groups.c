// SPDX-License-Identifier: Apache-2.0
/* groups.c - see groups.h. */
#include "groups.h"

#include <math.h>
#include <stdlib.h>

/* Weights made by the solver sum to 1 within rounding; libraries that do not normalise are off by
 * 1e-4 and more, and a sum that is off scales equal tensors, too. */
#define SUM_TOLERANCE 1e-9

static bool sums_to_one(const struct phema_target *target)
{
    return fabs(target->solution.sum - 1) <= SUM_TOLERANCE;
}

static bool draws_alike(const struct phema_plan *plan, size_t a, size_t b)
{
    const struct phema_target *left = &plan->targets[a], *right = &plan->targets[b];
    if (left->newest != right->newest)
        return false;
    for (size_t k = 0; k < plan->series->n; k++)
        if ((left->solution.weights[k] != 0) != (right->solution.weights[k] != 0))
            return false;
    return sums_to_one(left) == sums_to_one(right);
}

static bool fill_group(struct group *group, const struct phema_plan *plan, size_t first,
                       bool *is_taken)
{
    const struct phema_series *series = plan->series;
    group->targets = calloc(plan->m, sizeof(*group->targets));
    group->inputs = calloc(series->n, sizeof(*group->inputs));
    if (!group->targets || !group->inputs)
        return false;
    for (size_t j = first; j < plan->m; j++) {
        if (is_taken[j] || !draws_alike(plan, first, j))
            continue;
        is_taken[j] = true;
        group->targets[group->n_targets++] = j;
    }
    for (size_t k = 0; k < series->n; k++)
        if (plan->targets[first].solution.weights[k] != 0)
            group->inputs[group->n_inputs++] = k;
    group->newest = plan->targets[first].newest;
    group->sums_to_one = sums_to_one(&plan->targets[first]);
    group->weights = calloc(group->n_inputs * group->n_targets + 1, sizeof(*group->weights));
    if (!group->weights)
        return false;
    for (size_t i = 0; i < group->n_inputs; i++)
        for (size_t j = 0; j < group->n_targets; j++)
            group->weights[i * group->n_targets + j] =
                plan->targets[group->targets[j]].solution.weights[group->inputs[i]];
    return true;
}

PHEMA_FALLIBLE groups_make(struct group **out, size_t *n, const struct phema_plan *plan,
                           struct phema_error *err)
{
    struct group *groups = calloc(plan->m ? plan->m : 1, sizeof(*groups));
    bool *is_taken = calloc(plan->m ? plan->m : 1, sizeof(*is_taken));
    bool is_done = groups && is_taken;
    size_t n_groups = 0;
    for (size_t j = 0; is_done && j < plan->m; j++)
        if (!is_taken[j])
            is_done = fill_group(&groups[n_groups++], plan, j, is_taken);
    free(is_taken);
    if (!is_done) {
        groups_free(groups, n_groups);
        return phema_fail_memory(err);
    }
    *out = groups;
    *n = n_groups;
    return PHEMA_OK;
}

void groups_free(struct group *groups, size_t n)
{
    for (size_t g = 0; groups && g < n; g++) {
        free(groups[g].targets);
        free(groups[g].inputs);
        free(groups[g].weights);
    }
    free(groups);
}
