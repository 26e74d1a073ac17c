// SPDX-License-Identifier: Apache-2.0
/* plan.c - targets and their weights. */
#include "plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

/* What the provenance says again is kept, the rest is borrowed for the call. */
static enum phema_status keep(struct posthoc_ema_plan *plan,
                              const struct posthoc_ema_plan_options *o, struct phema_error *err)
{
    struct phema_arena *arena = &plan->wishes.arena;
    const char **rules = phema_arena_array(arena, o->n_rules + 1, sizeof(*rules));
    bool is_kept = rules != NULL;
    for (size_t i = 0; is_kept && i < o->n_rules; i++) {
        rules[i] = phema_arena_copy(arena, o->rules[i], strlen(o->rules[i]));
        is_kept = rules[i] != NULL;
    }
    if (is_kept && o->metric) {
        plan->metric = phema_arena_copy(arena, o->metric, strlen(o->metric));
        is_kept = plan->metric != NULL;
    }
    plan->rules = rules;
    plan->n_rules = o->n_rules;
    plan->max_ram_bytes = o->max_ram_bytes;
    return is_kept ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status fail_above(const struct phema_target *target, const char *rule,
                                    double predicted, double max_error, struct phema_error *err)
{
    struct phema_name_buffer at;
    return phema_fail(err, PHEMA_NO, "%s%.200s%s at %s: predicted error %.2g is above %.2g",
                      rule ? "rule '" : "", rule ? rule : target->spec, rule ? "'" : "",
                      phema_number_format(&at, target->named_time), predicted, max_error);
}

static enum phema_status check_error(const struct phema_plan *plan, double max_error,
                                     struct phema_error *err)
{
    for (size_t j = 0; max_error > 0 && j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        double predicted = target->solution.predicted.total;
        if (!(predicted <= max_error)) /* what cannot be predicted is no better */
            return fail_above(target, NULL, predicted, max_error, err);
        for (size_t r = 0; r < plan->n_rules; r++)
            if (!plan->rules[r].is_copy && !(target->ruled[r].predicted.total <= max_error))
                return fail_above(target, plan->rules[r].expression,
                                  target->ruled[r].predicted.total, max_error, err);
    }
    return PHEMA_OK;
}

static enum phema_status make(struct posthoc_ema_plan *plan,
                              const struct posthoc_ema_series *series,
                              const struct posthoc_ema_plan_options *o, struct phema_error *err)
{
    static const char *const names[] = {"motion", "walk", "profile", NULL};
    static const enum phema_metric metrics[] = {PHEMA_METRIC_MOTION, PHEMA_METRIC_WALK,
                                                PHEMA_METRIC_PROFILE};
    size_t metric = 0;
    enum phema_status status = call_choose(&metric, o->metric, names, "metric", err);
    if (!status)
        status = api_options_copy(&plan->wishes, &series->wishes, err);
    if (!status)
        status = keep(plan, o, err);
    struct phema_plan_options options = {
        .series = plan->wishes.options,
        .sigma_rels = o->sigma_rels,
        .n_sigma_rels = o->n_sigma_rels,
        .profiles = o->profiles,
        .n_profiles = o->n_profiles,
        .ats = o->ats,
        .n_ats = o->n_ats,
        .rules = plan->rules,
        .n_rules = o->n_rules,
        .solve = {.metric = metrics[metric]},
    };
    options.series.may_be_sampled = true;
    options.series.max_ram_bytes = o->max_ram_bytes;
    if (!status)
        status = phema_plan_make(&plan->plan, &options, err);
    return status ? status : check_error(plan->plan, o->max_error, err);
}

enum posthoc_ema_status posthoc_ema_plan_make(struct posthoc_ema_plan **out,
                                              const struct posthoc_ema_series *series,
                                              const struct posthoc_ema_plan_options *options,
                                              struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct phema_error err = {""};
    struct posthoc_ema_plan_options o;
    struct posthoc_ema_plan *plan = calloc(1, sizeof(*plan));
    enum phema_status status = call_take(&o, sizeof(o), options, "posthoc_ema_plan_options", &err);
    if (!status && !plan)
        status = phema_fail_memory(&err);
    if (!status)
        status = make(plan, series, &o, &err);
    if (status)
        posthoc_ema_plan_free(plan);
    else
        *out = plan;
    return call_end(&call, status, &err, error);
}

void posthoc_ema_plan_free(struct posthoc_ema_plan *plan)
{
    if (!plan)
        return;
    phema_outputs_clear(&plan->outputs);
    phema_plan_free(plan->plan);
    api_options_clear(&plan->wishes);
    free(plan);
}

/* ---- What is in it ---- */

enum posthoc_ema_status posthoc_ema_plan_info(const struct posthoc_ema_plan *plan,
                                              struct posthoc_ema_plan_info *info,
                                              struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct phema_error err = {""};
    struct posthoc_ema_plan_info known = {.metric = plan->plan->metric,
                                          .n_snapshots = plan->plan->series->n,
                                          .n_targets = plan->plan->m};
    enum phema_status status =
        call_give(info, &known, sizeof(known), "posthoc_ema_plan_info", &err);
    return call_end(&call, status, &err, error);
}

enum posthoc_ema_status posthoc_ema_plan_snapshot(const struct posthoc_ema_plan *plan, size_t k,
                                                  struct posthoc_ema_snapshot *snapshot,
                                                  struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct phema_error err = {""};
    enum phema_status status = series_give_snapshot(snapshot, plan->plan->series, k, &err);
    return call_end(&call, status, &err, error);
}

enum posthoc_ema_status posthoc_ema_plan_target(const struct posthoc_ema_plan *plan, size_t j,
                                                struct posthoc_ema_target *target,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct phema_error err = {""};
    enum phema_status status = PHEMA_OK;
    if (j >= plan->plan->m)
        status = phema_fail(&err, PHEMA_ERR_USAGE, "target %zu: there are %zu, from 0", j,
                            plan->plan->m);
    if (!status) {
        const struct phema_target *t = &plan->plan->targets[j];
        struct posthoc_ema_target known = {
            .named_time = t->named_time,
            .time = t->time,
            .sigma_rel = t->sigma_rel,
            .gamma = t->gamma,
            .profile = t->spec,
            .weights = t->solution.weights,
            .predicted_error = t->solution.predicted.total,
            .profile_error = t->solution.profile_error,
            .norm1 = t->solution.norm1,
            .norm2 = t->solution.norm2,
        };
        status = call_give(target, &known, sizeof(known), "posthoc_ema_target", &err);
    }
    return call_end(&call, status, &err, error);
}

const char *posthoc_ema_output(const struct posthoc_ema_plan *plan, size_t j)
{
    return j < plan->outputs.m ? plan->outputs.items[j].path : NULL;
}
