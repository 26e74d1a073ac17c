// SPDX-License-Identifier: Apache-2.0
/* plan_packed.c - what a run needs of a plan, as bytes for another process, and back: weights and
 * rules of the tensors, not how they were found. */
#include <stdlib.h>

#include "phema/packed.h"
#include "phema/plan.h"

static void pack_solution(struct phema_packer *packer, struct phema_solution *solution, size_t n)
{
    phema_pack_double(packer, &solution->sum);
    if (!phema_pack_presence(packer, solution->weights != NULL))
        return;
    solution->weights =
        phema_pack_owned_array(packer, solution->weights, n, sizeof(*solution->weights));
    for (size_t k = 0; solution->weights && k < n; k++)
        phema_pack_double(packer, &solution->weights[k]);
}

static void pack_rules(struct phema_packer *packer, struct phema_plan *plan)
{
    const struct phema_series *series = plan->series;
    bool receives = phema_pack_receives(packer);
    phema_pack_index(packer, &plan->n_rules, packer->rest.size + 1);
    plan->rule_of =
        phema_pack_owned_array(packer, plan->rule_of, series->n_tensors, sizeof(*plan->rule_of));
    for (size_t i = 0; plan->rule_of && i < series->n_tensors; i++)
        phema_pack_index(packer, &plan->rule_of[i], plan->n_rules + 1);
    size_t n_ruled = plan->n_ruled;
    phema_pack_count(packer, &n_ruled, 16);
    if (receives) {
        packer->is_damaged = packer->is_damaged || n_ruled < plan->n_rules;
        if (phema_pack_is_failed(packer))
            n_ruled = plan->n_rules = 0;
        plan->rules = phema_pack_owned_array(packer, NULL, plan->n_rules, sizeof(*plan->rules));
        if (!plan->rules)
            plan->n_rules = 0;
    }
    plan->ruled = phema_pack_owned_array(packer, plan->ruled, n_ruled, sizeof(*plan->ruled));
    plan->n_ruled = plan->ruled ? n_ruled : 0;
    for (size_t x = 0; x < plan->n_ruled; x++)
        pack_solution(packer, &plan->ruled[x], series->n);
}

static void pack_targets(struct phema_packer *packer, struct phema_plan *plan)
{
    size_t m = plan->m;
    phema_pack_count(packer, &m, 32);
    plan->targets = phema_pack_owned_array(packer, plan->targets, m, sizeof(*plan->targets));
    if (phema_pack_receives(packer))
        plan->m = plan->targets && !phema_pack_is_failed(packer) ? m : 0;
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        pack_solution(packer, &target->solution, plan->series->n);
        size_t ruled = target->ruled ? (size_t)(target->ruled - plan->ruled) : 0;
        phema_pack_index(packer, &ruled, plan->n_ruled - plan->n_rules + 1);
        if (phema_pack_receives(packer))
            target->ruled = &plan->ruled[ruled];
        phema_pack_index(packer, &target->newest, plan->series->n);
        packer->is_damaged = packer->is_damaged || !target->solution.weights;
    }
}

PHEMA_FALLIBLE phema_plan_pack(struct phema_plan **plan, struct phema_packer *packer,
                               struct phema_error *err)
{
    struct phema_plan *packed = phema_pack_receives(packer) ? calloc(1, sizeof(*packed)) : *plan;
    if (!packed)
        return phema_fail_memory(err);
    enum phema_status status = phema_series_pack(&packed->series, packer, err);
    if (!status) {
        pack_rules(packer, packed);
        pack_targets(packer, packed);
        status = phema_pack_check(packer, err);
    }
    if (status && phema_pack_receives(packer))
        phema_plan_free(packed);
    else
        *plan = packed;
    return status;
}
