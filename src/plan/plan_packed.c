// SPDX-License-Identifier: Apache-2.0
/* plan_packed.c - what a run needs of a plan, as bytes for another process, and back: weights and
 * rules of the tensors, not how they were found. */
#include <stdlib.h>
#include <string.h>

#include "phema/packed.h"
#include "phema/plan.h"

static void pack_solution(struct phema_strbuf *out, const struct phema_solution *solution, size_t n)
{
    phema_pack_double(out, solution->sum);
    phema_pack_u64(out, solution->weights != NULL);
    for (size_t k = 0; solution->weights && k < n; k++)
        phema_pack_double(out, solution->weights[k]);
}

static void unpack_solution(struct phema_solution *solution, struct phema_unpacker *in, size_t n)
{
    solution->sum = phema_unpack_double(in);
    if (!phema_unpack_bool(in))
        return;
    solution->weights = calloc(n + 1, sizeof(*solution->weights));
    in->is_out_of_memory = in->is_out_of_memory || !solution->weights;
    for (size_t k = 0; solution->weights && k < n; k++)
        solution->weights[k] = phema_unpack_double(in);
}

void phema_plan_pack(struct phema_strbuf *out, const struct phema_plan *plan)
{
    const struct phema_series *series = plan->series;
    phema_series_pack(out, series);
    phema_pack_u64(out, plan->n_rules);
    for (size_t i = 0; i < series->n_tensors; i++)
        phema_pack_u64(out, plan->rule_of[i]);
    phema_pack_u64(out, plan->n_ruled);
    for (size_t x = 0; x < plan->n_ruled; x++)
        pack_solution(out, &plan->ruled[x], series->n);
    phema_pack_u64(out, plan->m);
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        pack_solution(out, &target->solution, series->n);
        phema_pack_u64(out, target->ruled ? (uint64_t)(target->ruled - plan->ruled) : 0);
        phema_pack_u64(out, target->newest);
    }
}

static void unpack_rules(struct phema_plan *plan, struct phema_unpacker *in)
{
    const struct phema_series *series = plan->series;
    plan->n_rules = phema_unpack_index(in, in->rest.size + 1);
    plan->rule_of = calloc(series->n_tensors + 1, sizeof(*plan->rule_of));
    in->is_out_of_memory = in->is_out_of_memory || !plan->rule_of;
    for (size_t i = 0; plan->rule_of && i < series->n_tensors; i++)
        plan->rule_of[i] = phema_unpack_index(in, plan->n_rules + 1);
    size_t n_ruled = phema_unpack_count(in, 16);
    in->is_damaged = in->is_damaged || n_ruled < plan->n_rules;
    if (phema_unpack_is_failed(in))
        n_ruled = plan->n_rules = 0;
    plan->rules = calloc(plan->n_rules + 1, sizeof(*plan->rules));
    plan->ruled = calloc(n_ruled + 1, sizeof(*plan->ruled));
    in->is_out_of_memory = in->is_out_of_memory || !plan->ruled || !plan->rules;
    if (!plan->rules)
        plan->n_rules = 0;
    plan->n_ruled = plan->ruled ? n_ruled : 0;
    for (size_t x = 0; x < plan->n_ruled; x++)
        unpack_solution(&plan->ruled[x], in, series->n);
}

static void unpack_targets(struct phema_plan *plan, struct phema_unpacker *in)
{
    size_t m = phema_unpack_count(in, 32);
    plan->targets = calloc(m + 1, sizeof(*plan->targets));
    in->is_out_of_memory = in->is_out_of_memory || !plan->targets;
    for (; plan->targets && plan->m < m && !phema_unpack_is_failed(in); plan->m++) {
        struct phema_target *target = &plan->targets[plan->m];
        unpack_solution(&target->solution, in, plan->series->n);
        target->ruled = &plan->ruled[phema_unpack_index(in, plan->n_ruled - plan->n_rules + 1)];
        target->newest = phema_unpack_index(in, plan->series->n);
        in->is_damaged = in->is_damaged || !target->solution.weights;
    }
}

PHEMA_FALLIBLE phema_plan_unpack(struct phema_plan **out, struct phema_unpacker *in,
                                 struct phema_error *err)
{
    struct phema_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return phema_fail_memory(err);
    enum phema_status status = phema_series_unpack(&plan->series, in, err);
    if (!status) {
        unpack_rules(plan, in);
        unpack_targets(plan, in);
        status = phema_unpack_check(in, err);
    }
    if (status)
        phema_plan_free(plan);
    else
        *out = plan;
    return status;
}
