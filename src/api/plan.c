// SPDX-License-Identifier: Apache-2.0
/* plan.c - handles of series and plans: snapshots, targets and their weights. */
#include "api.h"
#include "phema/ops.h"

#include <stdlib.h>
#include <string.h>

struct posthoc_ema_series {
    struct api_options series_options;
    struct phema_series *series;
    size_t n_averaged;
};

/* ---- Series ---- */

static enum phema_status open_series(struct posthoc_ema_series *series, const char *snapshots,
                                     const struct posthoc_ema_series_options *options,
                                     struct phema_error *err)
{
    struct api_options *kept = &series->series_options;
    enum phema_status status = api_options_keep(kept, snapshots, options, err);
    if (status)
        return status;
    status = phema_series_open_auto(&series->series, &kept->options, err);
    if (status)
        return status;
    for (size_t i = 0; i < series->series->n_tensors; i++)
        series->n_averaged += series->series->tensors[i].rule == PHEMA_RULE_AVERAGE;
    return PHEMA_OK;
}

enum posthoc_ema_status posthoc_ema_series_open(struct posthoc_ema_series **out,
                                                const char *snapshots,
                                                const struct posthoc_ema_series_options *options,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct posthoc_ema_series *series = calloc(1, sizeof(*series));
    enum phema_status status =
        series ? open_series(series, snapshots, options, &call.err) : phema_fail_memory(&call.err);
    if (status)
        posthoc_ema_series_close(series);
    else
        *out = series;
    return call_end(&call, status, error);
}

void posthoc_ema_series_close(struct posthoc_ema_series *series)
{
    if (!series)
        return;
    phema_series_close(series->series);
    phema_arena_clear(&series->series_options.arena);
    free(series);
}

enum posthoc_ema_status posthoc_ema_series_info(const struct posthoc_ema_series *series,
                                                struct posthoc_ema_series_info *info,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    const struct phema_series *s = series->series;
    struct posthoc_ema_series_info known = {
        .layout = s->layout,
        .unit = s->unit,
        .n_snapshots = s->n,
        .n_tensors = s->n_tensors,
        .n_averaged = series->n_averaged,
        .n_notes = s->n_notes,
        .notes = (const char *const *)s->notes,
        .times = s->recognised.times,
        .field = s->recognised.field,
        .n_sets = s->recognised.n_sets,
        .n_left_out = s->recognised.n_left_out,
    };
    enum phema_status status =
        call_fill_struct(info, &known, sizeof(known), "posthoc_ema_series_info", &call.err);
    return call_end(&call, status, error);
}

/* Snapshot k of a series, as the caller's struct. */
static enum phema_status describe_snapshot(struct posthoc_ema_snapshot *out,
                                           const struct phema_series *series, size_t k,
                                           struct phema_error *err)
{
    enum phema_status status = call_check_index("snapshot", k, series->n, err);
    if (status)
        return status;
    const struct phema_snapshot *s = &series->snapshots[k];
    struct posthoc_ema_snapshot known = {
        .file = s->label,
        .named_time = s->named_time,
        .time = s->time,
        .sigma_rel = s->sigma_rel,
        .gamma = s->gamma,
        .profile = s->spec,
        .bytes = phema_snapshot_bytes(s),
    };
    return call_fill_struct(out, &known, sizeof(known), "posthoc_ema_snapshot", err);
}

enum posthoc_ema_status posthoc_ema_series_snapshot(const struct posthoc_ema_series *series,
                                                    size_t k, struct posthoc_ema_snapshot *snapshot,
                                                    struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    enum phema_status status = describe_snapshot(snapshot, series->series, k, &call.err);
    return call_end(&call, status, error);
}

enum posthoc_ema_status posthoc_ema_series_set(const struct posthoc_ema_series *series, size_t i,
                                               struct posthoc_ema_set *set,
                                               struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    const struct phema_recognised *recognised = &series->series->recognised;
    enum phema_status status = call_check_index("set", i, recognised->n_sets, &call.err);
    if (!status) {
        const struct phema_recognised_set *s = &recognised->sets[i];
        const struct posthoc_ema_set known = {
            .name = s->name, .role = s->role, .by = s->by, .margin = s->margin};
        status = call_fill_struct(set, &known, sizeof(known), "posthoc_ema_set", &call.err);
    }
    return call_end(&call, status, error);
}

enum posthoc_ema_status posthoc_ema_series_left_out(const struct posthoc_ema_series *series,
                                                    size_t i, struct posthoc_ema_left_out *file,
                                                    struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    const struct phema_recognised *recognised = &series->series->recognised;
    enum phema_status status = call_check_index("file", i, recognised->n_left_out, &call.err);
    if (!status) {
        const struct phema_recognised_file *f = &recognised->left_out[i];
        const struct posthoc_ema_left_out known = {.file = f->file, .reason = f->reason};
        status = call_fill_struct(file, &known, sizeof(known), "posthoc_ema_left_out", &call.err);
    }
    return call_end(&call, status, error);
}

/* ---- Plans ---- */

static enum phema_status keep_warnings(struct posthoc_ema_plan *plan, struct phema_error *err)
{
    struct phema_arena *arena = &plan->series_options.arena;
    struct phema_strbuf text = {0};
    phema_plan_write_warnings(&text, plan->plan);
    enum phema_status status = phema_strbuf_check(&text, err);
    for (size_t at = 0; !status && at < text.size; at += strlen(text.data + at) + 1)
        plan->n_warnings++;
    plan->warnings = phema_arena_array(arena, plan->n_warnings + 1, sizeof(*plan->warnings));
    const char *sentence = text.data;
    for (size_t i = 0; plan->warnings && i < plan->n_warnings; i++) {
        plan->warnings[i] = phema_arena_copy(arena, sentence, strlen(sentence));
        sentence += strlen(sentence) + 1;
    }
    phema_strbuf_clear(&text);
    return status || !arena->is_failed ? status : phema_fail_memory(err);
}

static enum phema_status make_plan(struct posthoc_ema_plan *plan,
                                   const struct posthoc_ema_series *series,
                                   const struct posthoc_ema_plan_options *given,
                                   struct phema_error *err)
{
    static const char *const metric_names[] = {"motion", "walk", "profile", NULL};
    static const enum phema_metric metrics[] = {PHEMA_METRIC_MOTION, PHEMA_METRIC_WALK,
                                                PHEMA_METRIC_PROFILE};
    static const char *const check_names[] = {"warn", "error", "off", NULL};
    static const enum phema_checks all_checks[] = {PHEMA_CHECKS_WARN, PHEMA_CHECKS_ERROR,
                                                   PHEMA_CHECKS_OFF};
    size_t metric = 0, checks = 0;
    struct posthoc_ema_plan_options o;
    struct phema_arena *arena = &plan->series_options.arena;
    enum phema_status status =
        call_read_struct(&o, sizeof(o), given, "posthoc_ema_plan_options", err);
    if (!status)
        status = call_find_choice(&metric, o.metric, metric_names, "metric", err);
    if (!status)
        status = call_find_choice(&checks, o.checks, check_names, "checks", err);
    if (!status)
        status = api_options_copy(&plan->series_options, &series->series_options, err);
    if (status)
        return status;
    plan->metric = o.metric;
    plan->schedule = o.schedule;
    plan->rules = o.rules;
    plan->n_rules = o.n_rules;
    plan->max_ram_bytes = o.max_ram_bytes;
    api_keep_text(arena, &plan->metric);
    api_keep_text(arena, &plan->schedule);
    api_keep_texts(arena, &plan->rules, plan->n_rules);
    if (arena->is_failed)
        return phema_fail_memory(err);
    struct phema_plan_options options = {
        .series = plan->series_options.options,
        .sigma_rels = o.sigma_rels,
        .n_sigma_rels = o.n_sigma_rels,
        .profiles = o.profiles,
        .n_profiles = o.n_profiles,
        .ats = o.ats,
        .n_ats = o.n_ats,
        .rules = plan->rules,
        .n_rules = o.n_rules,
        .checks = o.checks ? all_checks[checks] : PHEMA_CHECKS_DEFAULT,
        .schedule = plan->schedule,
        .solve = {.metric = metrics[metric]},
    };
    options.series.may_be_sampled = true;
    options.series.max_ram_bytes = o.max_ram_bytes;
    status = phema_plan_make(&plan->plan, &options, err);
    if (!status)
        status = keep_warnings(plan, err);
    return status ? status
                  : phema_plan_check_error(plan->plan,
                                           o.max_error > 0 ? o.max_error : PHEMA_UNKNOWN, err);
}

enum posthoc_ema_status posthoc_ema_plan_make(struct posthoc_ema_plan **out,
                                              const struct posthoc_ema_series *series,
                                              const struct posthoc_ema_plan_options *options,
                                              struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct posthoc_ema_plan *plan = calloc(1, sizeof(*plan));
    enum phema_status status =
        plan ? make_plan(plan, series, options, &call.err) : phema_fail_memory(&call.err);
    if (status)
        posthoc_ema_plan_free(plan);
    else
        *out = plan;
    return call_end(&call, status, error);
}

void posthoc_ema_plan_free(struct posthoc_ema_plan *plan)
{
    if (!plan)
        return;
    phema_outputs_clear(&plan->outputs);
    phema_plan_free(plan->plan);
    phema_arena_clear(&plan->series_options.arena);
    free(plan);
}

/* ---- Contents of a plan ---- */

enum posthoc_ema_status posthoc_ema_plan_info(const struct posthoc_ema_plan *plan,
                                              struct posthoc_ema_plan_info *info,
                                              struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    static const char *const verdicts[] = {[PHEMA_SERIES_UNKNOWN] = "unknown",
                                           [PHEMA_SERIES_UNCHECKED] = "unchecked",
                                           [PHEMA_SERIES_FITS] = "fits",
                                           [PHEMA_SERIES_DOUBTFUL] = "doubtful",
                                           [PHEMA_SERIES_WRONG] = "wrong"};
    const struct phema_series_checks *checks = &plan->plan->checks;
    size_t n = plan->plan->series->n;
    struct posthoc_ema_plan_info known = {
        .metric = plan->plan->metric,
        .n_snapshots = n,
        .n_targets = plan->plan->m,
        .n_tensors = plan->plan->series->n_tensors,
        .verdict = verdicts[checks->verdict],
        .reason = checks->reason,
        .suspect = checks->reason && checks->suspect < n ? checks->suspect : n,
        .n_warnings = plan->n_warnings,
        .warnings = plan->warnings};
    enum phema_status status =
        call_fill_struct(info, &known, sizeof(known), "posthoc_ema_plan_info", &call.err);
    return call_end(&call, status, error);
}

enum posthoc_ema_status posthoc_ema_plan_snapshot(const struct posthoc_ema_plan *plan, size_t k,
                                                  struct posthoc_ema_snapshot *snapshot,
                                                  struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    enum phema_status status = describe_snapshot(snapshot, plan->plan->series, k, &call.err);
    return call_end(&call, status, error);
}

enum posthoc_ema_status posthoc_ema_plan_target(const struct posthoc_ema_plan *plan, size_t j,
                                                struct posthoc_ema_target *target,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    enum phema_status status = call_check_index("target", j, plan->plan->m, &call.err);
    if (status)
        return call_end(&call, status, error);
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
    status = call_fill_struct(target, &known, sizeof(known), "posthoc_ema_target", &call.err);
    return call_end(&call, status, error);
}

const char *posthoc_ema_output(const struct posthoc_ema_plan *plan, size_t j)
{
    return j < plan->outputs.m ? plan->outputs.items[j].path : NULL;
}
