// SPDX-License-Identifier: Apache-2.0
/* targets.c - --sigma-rel, --gamma, --profile and --at to targets. */
#include "targets.h"

#include <string.h>

#include "phema/profile.h"
#include "phema/setting.h"

static const char target_label[] = "the target";

size_t targets_per_time(const struct phema_plan_options *options)
{
    return options->n_sigma_rels + options->n_gammas + options->n_profiles;
}

PHEMA_FALLIBLE target_check_time(const struct phema_target *target,
                                 const struct phema_series *series, struct phema_error *err)
{
    const struct phema_snapshot *first = &series->snapshots[0];
    const struct phema_snapshot *last = &series->snapshots[series->n - 1];
    if (first->time <= target->time && !(target->time > last->time))
        return PHEMA_OK;
    struct phema_name_buffer wanted, from, to;
    enum phema_status status = phema_fail(
        err, PHEMA_ERR_TARGET, "%s: the wanted time %s is %s; they go from %s to %s", series->root,
        phema_number_format(&wanted, target->named_time),
        target->time > last->time ? "later than every snapshot" : "before the first snapshot",
        phema_number_format(&from, first->named_time), phema_number_format(&to, last->named_time));
    return phema_suggest(
        err, status, PHEMA_SET_AT,
        phema_number_format(&to, target->time > last->time ? last->named_time : first->named_time));
}

/* The target's own copies of profiles. */
static enum phema_status set_parts(struct phema_target *target, struct phema_plan *plan,
                                   const struct phema_profile *parts, size_t n,
                                   struct phema_error *err)
{
    struct phema_profile *own = phema_arena_array(&plan->memory, n, sizeof(*own));
    if (!own)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        own[i] = parts[i];
        own[i].label = target_label;
        if (own[i].shape == PHEMA_SHAPE_RAW)
            own[i].length = plan->series->step;
    }
    target->mix.parts = own;
    target->mix.n_parts = n;
    return PHEMA_OK;
}

/* ---- Power functions ---- */

static enum phema_status set_power(struct phema_target *target, struct phema_plan *plan,
                                   struct phema_error *err)
{
    const struct phema_profile profile = {.gamma = target->gamma, .t = target->time};
    struct phema_strbuf text = {0};
    phema_spec_append_power(&text, target->is_by_gamma ? PHEMA_UNKNOWN : target->sigma_rel,
                            target->gamma, 1);
    char *spec = text.is_failed ? NULL : phema_arena_copy(&plan->memory, text.data, text.size);
    phema_strbuf_clear(&text);
    if (!spec)
        return phema_fail_memory(err);
    target->kind = "power";
    target->spec = spec;
    return set_parts(target, plan, &profile, 1, err);
}

PHEMA_FALLIBLE target_resolve_width(struct phema_target *target, struct phema_plan *plan,
                                    double sigma_rel, struct phema_error *err)
{
    target->sigma_rel = sigma_rel;
    enum phema_status status = phema_gamma_from_sigma_rel(&target->gamma, sigma_rel, err);
    return status ? status : set_power(target, plan, err);
}

static enum phema_status set_gamma(struct phema_target *target, struct phema_plan *plan,
                                   double gamma, struct phema_error *err)
{
    target->gamma = gamma;
    target->is_by_gamma = true;
    target->sigma_rel = phema_sigma_rel_from_gamma(gamma);
    if (!(target->sigma_rel < PHEMA_SIGMA_REL_LIMIT) || !(gamma > -0.38))
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "gamma %g has no sigma_rel below %.3f; the widest average that is "
                          "accepted has gamma -0.0035",
                          gamma, PHEMA_SIGMA_REL_LIMIT);
    return set_power(target, plan, err);
}

/* ---- Other shapes ---- */

/* Distinct times of snapshots, ascending. Only raw snapshots count where there are any: merges use
 * these. */
static enum phema_status list_times(double **times, size_t *n, struct phema_plan *plan,
                                    struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    *times = phema_arena_array(&plan->memory, series->n, sizeof(**times));
    if (!*times)
        return phema_fail_memory(err);
    bool has_raw = false;
    for (size_t k = 0; k < series->n; k++)
        has_raw = has_raw || series->snapshots[k].profile.shape == PHEMA_SHAPE_RAW;
    *n = 0;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (has_raw && snapshot->profile.shape != PHEMA_SHAPE_RAW)
            continue;
        if (*n == 0 || (*times)[*n - 1] < snapshot->time)
            (*times)[(*n)++] = snapshot->time;
    }
    return PHEMA_OK;
}

static enum phema_status read_spec(struct phema_spec **out, struct phema_plan *plan,
                                   const char *text, struct phema_error *err)
{
    enum phema_status status = phema_spec_parse(out, &plan->memory, text, err);
    return status ? status : phema_spec_claim(*out, plan->series->claims, err);
}

static enum phema_status set_spec(struct phema_target *target, struct phema_plan *plan,
                                  struct phema_spec *spec, struct phema_error *err)
{
    if (strcmp(spec->kind, "power") == 0 && spec->update_every <= 1)
        return spec->is_by_gamma ? set_gamma(target, plan, spec->gamma, err)
                                 : target_resolve_width(target, plan, spec->sigma_rel, err);
    double *times = NULL;
    size_t n = 0;
    enum phema_status status = list_times(&times, &n, plan, err);
    if (status)
        return status;
    status = phema_spec_mix(&target->mix, spec, target->time, times, n, err);
    if (status)
        return status;
    target->kind = spec->kind;
    target->spec = spec->canonical;
    target->file_part = spec->file_part;
    return set_parts(target, plan, target->mix.parts, target->mix.n_parts, err);
}

size_t phema_series_find_newest(const struct phema_series *series, double time)
{
    size_t found = SIZE_MAX;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (snapshot->time != time)
            continue;
        if (snapshot->profile.shape == PHEMA_SHAPE_RAW)
            return k;
        if (found == SIZE_MAX || snapshot->sigma_rel < series->snapshots[found].sigma_rel)
            found = k;
    }
    return found;
}

static enum phema_status set_newest(struct phema_target *target, struct phema_plan *plan,
                                    struct phema_error *err)
{
    size_t k = phema_series_find_newest(plan->series, target->time);
    struct phema_name_buffer time;
    if (k == SIZE_MAX)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          PHEMA_TARGET_NEWEST ": no snapshot of %s ends at %s", plan->series->root,
                          phema_number_format(&time, target->named_time));
    const struct phema_snapshot *snapshot = &plan->series->snapshots[k];
    target->kind = snapshot->kind;
    target->spec = snapshot->spec;
    target->file_part = PHEMA_TARGET_NEWEST;
    target->is_stored = true;
    target->stored = k;
    return set_parts(target, plan, &snapshot->profile, 1, err);
}

PHEMA_FALLIBLE target_resolve_spec(struct phema_target *target, struct phema_plan *plan,
                                   const char *text, struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    enum phema_status status = read_spec(&spec, plan, text, err);
    return status ? status : set_spec(target, plan, spec, err);
}

/* ---- Options ---- */

/* specs: [options->n_profiles], shared by all times; NULL for the newest snapshot as it is */
static enum phema_status set_option(struct phema_target *target, struct phema_plan *plan,
                                    const struct phema_plan_options *options,
                                    struct phema_spec **specs, size_t index,
                                    struct phema_error *err)
{
    if (index < options->n_sigma_rels)
        return target_resolve_width(target, plan, options->sigma_rels[index], err);
    index -= options->n_sigma_rels;
    if (index < options->n_gammas)
        return set_gamma(target, plan, options->gammas[index], err)
                   ? phema_suggest(err, PHEMA_ERR_TARGET, PHEMA_SET_GAMMA, "6.94")
                   : PHEMA_OK;
    struct phema_spec *spec = specs[index - options->n_gammas];
    enum phema_status status =
        spec ? set_spec(target, plan, spec, err) : set_newest(target, plan, err);
    return status ? phema_fail_in_setting(err, status, PHEMA_SET_PROFILE) : PHEMA_OK;
}

static enum phema_status read_specs(struct phema_spec ***out, struct phema_plan *plan,
                                    const struct phema_plan_options *options,
                                    struct phema_error *err)
{
    *out = phema_arena_array(&plan->memory, options->n_profiles + 1, sizeof(struct phema_spec *));
    if (!*out)
        return phema_fail_memory(err);
    for (size_t i = 0; i < options->n_profiles; i++) {
        (*out)[i] = NULL;
        if (strcmp(options->profiles[i], PHEMA_TARGET_NEWEST) == 0)
            continue;
        enum phema_status status = read_spec(&(*out)[i], plan, options->profiles[i], err);
        if (status)
            return phema_spec_fail(err, status, PHEMA_SET_PROFILE, options->profiles[i]);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE targets_make(struct phema_plan *plan, const struct phema_plan_options *options,
                            struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    size_t n = targets_per_time(options);
    size_t n_ats = options->n_ats ? options->n_ats : 1;
    struct phema_spec **specs = NULL;
    enum phema_status status = read_specs(&specs, plan, options, err);
    if (status)
        return status;
    plan->targets = phema_arena_array(&plan->memory, n * n_ats, sizeof(*plan->targets));
    if (!plan->targets)
        return phema_fail_memory(err);
    plan->m = n * n_ats;
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        target->label_profile_error = target->label_predicted_error = PHEMA_UNKNOWN;
        target->sigma_rel = target->gamma = PHEMA_UNKNOWN;
        target->r_squared = PHEMA_UNKNOWN;
        target->named_time =
            options->n_ats ? options->ats[j / n] : series->snapshots[series->n - 1].named_time;
        target->time = phema_series_clock(series, target->named_time);
        status = set_option(target, plan, options, specs, j % n, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE target_resolve(struct phema_target *target, struct phema_plan *plan,
                              const struct phema_plan_options *options, struct phema_error *err)
{
    struct phema_spec **specs = NULL;
    enum phema_status status = read_specs(&specs, plan, options, err);
    return status ? status : set_option(target, plan, options, specs, 0, err);
}
