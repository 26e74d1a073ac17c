// SPDX-License-Identifier: Apache-2.0
/* validate.c - ranges of all parameters of a problem, with messages. */
#include "profile_set.h"

#include <stdio.h>
#include <string.h>

#include "phema/strbuf.h"

#define MAX_TIME  0x1p53 /* doubles hold whole numbers exactly below */
#define MAX_STEPS 1e9    /* of a recurrence: minutes */
#define MAX_PARTS 65536  /* of all targets */

/* As a fraction of the time; below, the begin of a window would be rounded away. */
#define LEAST_LENGTH 1e-9

const char *phema_profile_format_label(struct phema_name_buffer *buffer,
                                       const struct phema_profile *profiles, size_t index)
{
    if (profiles[index].label)
        return phema_name_escape(buffer, profiles[index].label, strlen(profiles[index].label));
    (void)snprintf(buffer->text, sizeof(buffer->text), "#%zu", index + 1);
    return buffer->text;
}

static enum phema_status check_betas(const struct phema_betas *betas, struct phema_error *err)
{
    if (!betas || betas->n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS, "the table of betas is empty");
    for (size_t i = 0; i < betas->n; i++) {
        if (betas->steps[i] <= (i ? betas->steps[i - 1] : 0))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "expected ascending steps from 1 on in the table of betas, found "
                              "%llu",
                              (unsigned long long)betas->steps[i]);
        if (!(betas->betas[i] >= 0 && betas->betas[i] <= 1))
            return phema_fail(err, PHEMA_ERR_INPUTS, "expected a beta from 0 to 1, found %g",
                              betas->betas[i]);
    }
    return PHEMA_OK;
}

static enum phema_status check_shape(const struct phema_profile *profile, struct phema_error *err)
{
    double length = profile->length;
    double half_life = profile->half_life;
    switch (profile->shape) {
    case PHEMA_SHAPE_POWER:
        if (!(profile->gamma > -0.5 && profile->gamma < MAX_TIME))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "expected a gamma above -0.5 (square-integrable) and below 2^53, "
                              "found %.17g",
                              profile->gamma);
        return PHEMA_OK;
    case PHEMA_SHAPE_RAMPED:
        if (!(profile->ramp > 1e-3 && profile->ramp < 1e3))
            return phema_fail(err, PHEMA_ERR_INPUTS, "expected a ramp from 0.001 to 1000, found %g",
                              profile->ramp);
        /* fall through */
    case PHEMA_SHAPE_EMA:
        if (!(half_life > 0 && half_life < MAX_TIME))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "expected a half-life above 0 and below 2^53, found %g", half_life);
        return PHEMA_OK;
    case PHEMA_SHAPE_WINDOW:
    case PHEMA_SHAPE_COSINE:
    case PHEMA_SHAPE_MINUS_SQRT:
        if (!(length > 0 && length <= profile->t))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "expected a length above 0 and at most the time %.17g, found %.17g",
                              profile->t, length);
        if (!(length >= LEAST_LENGTH * profile->t))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "expected a length of 1e-9 of the time %.17g or more, found %.17g; "
                              "so short an average is the raw parameters",
                              profile->t, length);
        return PHEMA_OK;
    case PHEMA_SHAPE_RAW:
        return PHEMA_OK;
    case PHEMA_SHAPE_TABLE:
        return check_betas(profile->betas, err);
    }
    return phema_fail(err, PHEMA_BUG, "no such shape of a profile: %d", (int)profile->shape);
}

static enum phema_status check_profile(const struct phema_profile *profiles, size_t index,
                                       const char *what, enum phema_status status, bool is_stepwise,
                                       struct phema_error *err)
{
    const struct phema_profile *profile = &profiles[index];
    struct phema_name_buffer name;
    const char *shown = phema_profile_format_label(&name, profiles, index);
    if (!(profile->t > 0))
        return phema_fail(err, status, "%s %s: the time must be positive, found %.17g", what, shown,
                          profile->t);
    if (!(profile->t < MAX_TIME))
        return phema_fail(err, status, "%s %s: expected a time below 2^53, found %.17g", what,
                          shown, profile->t);
    if (check_shape(profile, err))
        return phema_fail_in(err, status, "%s %s", what, shown);
    if (is_stepwise && profile->t != floor(profile->t))
        return phema_fail(err, status,
                          "%s %s: with update_every above 1 or a table of betas times are counted "
                          "in steps: expected a whole number, found %.17g",
                          what, shown, profile->t);
    if (is_stepwise && profile->t > MAX_STEPS)
        return phema_fail(err, status,
                          "%s %s: with update_every above 1 or a table of betas averages are "
                          "followed step by step: expected at most 1e9 steps, found %.0f; use "
                          "times counted in updates with update_every 1",
                          what, shown, profile->t);
    return PHEMA_OK;
}

static enum phema_status check_target_time(const struct phema_problem *problem, double t,
                                           struct phema_error *err)
{
    double first = problem->snapshots[0].t;
    double last = problem->snapshots[0].t;
    for (size_t i = 1; i < problem->n; i++) {
        first = fmin(first, problem->snapshots[i].t);
        last = fmax(last, problem->snapshots[i].t);
    }
    if (t > last)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "the target time %.17g is later than every snapshot; the last is at "
                          "%.17g",
                          t, last);
    if (t < first)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "no snapshot at or before the target time %.17g; the first is at %.17g",
                          t, first);
    return PHEMA_OK;
}

static enum phema_status check_factors(const struct phema_mix *mix, struct phema_error *err)
{
    double sum = 0;
    for (size_t p = 0; mix->factors && p < mix->n_parts; p++)
        sum += mix->factors[p];
    bool is_average = fabs(sum - 1) <= 1e-9;
    bool is_difference = fabs(sum) <= 1e-9;
    if (mix->n_parts == 0 || (!mix->factors && mix->n_parts != 1))
        return phema_fail(err, PHEMA_BUG, "a target without parts or factors");
    if (mix->factors && !is_average && !is_difference)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "expected the factors of a target to add up to 1, or to 0 for a "
                          "difference, found %g",
                          sum);
    return PHEMA_OK;
}

static bool is_any_stepwise(const struct phema_profile *profiles, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (profiles[i].shape == PHEMA_SHAPE_TABLE ||
            (profiles[i].shape == PHEMA_SHAPE_POWER && profiles[i].update_every > 1))
            return true;
    return false;
}

static enum phema_status check_targets(struct phema_profile_set *set,
                                       const struct phema_problem *problem, struct phema_error *err)
{
    for (size_t k = 0; k < problem->m; k++) {
        const struct phema_mix *mix = &problem->targets[k];
        enum phema_status status = check_factors(mix, err);
        for (size_t p = 0; !status && p < mix->n_parts; p++) {
            status =
                check_profile(mix->parts, p, "target", PHEMA_ERR_TARGET, set->is_stepwise, err);
            if (!status)
                status = check_target_time(problem, mix->parts[p].t, err);
        }
        if (status)
            return status;
    }
    return PHEMA_OK;
}

enum phema_status phema_profile_set_check(struct phema_profile_set *set,
                                          const struct phema_problem *problem,
                                          struct phema_error *err)
{
    if (set->n == 0) {
        (void)phema_fail(err, PHEMA_ERR_INPUTS,
                         "no snapshots; at least one is needed to make an average");
        return PHEMA_ERR_INPUTS;
    }
    for (size_t k = 0; k < set->m && set->n_parts <= MAX_PARTS; k++)
        set->n_parts += problem->targets[k].n_parts;
    if (set->n > PHEMA_MAX_SNAPSHOTS || set->m > PHEMA_MAX_SNAPSHOTS || set->n_parts > MAX_PARTS)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "expected at most %d snapshots and as many targets of %d parts together, "
                          "found %zu and %zu; choose among them",
                          PHEMA_MAX_SNAPSHOTS, MAX_PARTS, set->n, set->m);
    set->is_stepwise = is_any_stepwise(problem->snapshots, set->n);
    for (size_t k = 0; k < set->m; k++)
        set->is_stepwise |= is_any_stepwise(problem->targets[k].parts, problem->targets[k].n_parts);
    for (size_t i = 0; i < set->n; i++) {
        enum phema_status status = check_profile(problem->snapshots, i, "snapshot",
                                                 PHEMA_ERR_INPUTS, set->is_stepwise, err);
        if (status)
            return status;
    }
    return check_targets(set, problem, err);
}
