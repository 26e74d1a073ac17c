// SPDX-License-Identifier: Apache-2.0
/* set.c - checks the profiles of a problem and indexes their distinct recurrences and times.
 * Relies on quad pow, exp and lgamma for what an average keeps between two times. */
#include "set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/text.h"

#define MAX_TIME 0x1p53 /* doubles hold whole numbers exactly below */

const char *phema_profile_shown(struct phema_name_buffer *buffer,
                                const struct phema_profile *profiles, size_t index)
{
    if (profiles[index].label)
        return phema_name_shown(buffer, profiles[index].label, strlen(profiles[index].label));
    (void)snprintf(buffer->text, sizeof(buffer->text), "#%zu", index + 1);
    return buffer->text;
}

static enum phema_status check_profile(const struct phema_profile *profiles, size_t index,
                                       const char *what, enum phema_status status, bool is_stepwise,
                                       struct phema_error *err)
{
    const struct phema_profile *profile = &profiles[index];
    struct phema_name_buffer name;
    const char *shown = phema_profile_shown(&name, profiles, index);
    if (!(profile->t > 0))
        return phema_fail(err, status, "%s %s: the time must be positive, found %.17g", what, shown,
                          profile->t);
    if (!(profile->t < MAX_TIME))
        return phema_fail(err, status, "%s %s: expected a time below 2^53, found %.17g", what,
                          shown, profile->t);
    if (!(profile->gamma > -0.5 && profile->gamma < MAX_TIME))
        return phema_fail(err, status,
                          "%s %s: expected a gamma above -0.5 (square-integrable) and below 2^53, "
                          "found %.17g",
                          what, shown, profile->gamma);
    if (is_stepwise && profile->t != floor(profile->t))
        return phema_fail(err, status,
                          "%s %s: with update_every above 1 times are counted in steps: expected "
                          "a whole number, found %.17g",
                          what, shown, profile->t);
    return PHEMA_OK;
}

static enum phema_status check_targets(const struct phema_profile *snapshots, size_t n,
                                       const struct phema_profile *targets, size_t m,
                                       struct phema_error *err)
{
    double first = snapshots[0].t;
    double last = snapshots[0].t;
    for (size_t i = 1; i < n; i++) {
        first = fmin(first, snapshots[i].t);
        last = fmax(last, snapshots[i].t);
    }
    for (size_t k = 0; k < m; k++) {
        if (targets[k].t > last)
            return phema_fail(err, PHEMA_ERR_TARGET,
                              "the target time %.17g is later than every snapshot; the last is at "
                              "%.17g",
                              targets[k].t, last);
        if (targets[k].t < first)
            return phema_fail(err, PHEMA_ERR_TARGET,
                              "no snapshot at or before the target time %.17g; the first is at "
                              "%.17g",
                              targets[k].t, first);
    }
    return PHEMA_OK;
}

static enum phema_status check_all(bool *is_stepwise, const struct phema_profile *snapshots,
                                   size_t n, const struct phema_profile *targets, size_t m,
                                   struct phema_error *err)
{
    if (n == 0) {
        (void)phema_fail(err, PHEMA_ERR_INPUTS,
                         "no snapshots; at least one is needed to make an average");
        return PHEMA_ERR_INPUTS;
    }
    if (n > PHEMA_MAX_SNAPSHOTS || m > PHEMA_MAX_SNAPSHOTS)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "expected at most %d snapshots and as many targets, found %zu and %zu; "
                          "choose among them",
                          PHEMA_MAX_SNAPSHOTS, n, m);
    *is_stepwise = false;
    for (size_t i = 0; i < n; i++)
        *is_stepwise |= snapshots[i].update_every > 1;
    for (size_t k = 0; k < m; k++)
        *is_stepwise |= targets[k].update_every > 1;
    for (size_t i = 0; i < n; i++) {
        enum phema_status status =
            check_profile(snapshots, i, "snapshot", PHEMA_ERR_INPUTS, *is_stepwise, err);
        if (status)
            return status;
    }
    for (size_t k = 0; k < m; k++) {
        enum phema_status status =
            check_profile(targets, k, "target", PHEMA_ERR_TARGET, *is_stepwise, err);
        if (status)
            return status;
    }
    return check_targets(snapshots, n, targets, m, err);
}

static int compare_quads(const void *a, const void *b)
{
    phema_quad x = *(const phema_quad *)a;
    phema_quad y = *(const phema_quad *)b;
    return (x > y) - (x < y);
}

static void index_times(struct phema_set *set, const struct phema_profile *profiles)
{
    size_t n_members = set->n + set->m;
    for (size_t i = 0; i < n_members; i++)
        set->times[i] = (phema_quad)profiles[i].t;
    qsort(set->times, n_members, sizeof(*set->times), compare_quads);
    set->n_times = 1;
    for (size_t i = 1; i < n_members; i++) {
        if (set->times[i] != set->times[set->n_times - 1])
            set->times[set->n_times++] = set->times[i];
    }
    for (size_t i = 0; i < n_members; i++) {
        phema_quad t = (phema_quad)profiles[i].t;
        const phema_quad *found = bsearch(&t, set->times, set->n_times, sizeof(t), compare_quads);
        set->members[i].time = found ? (size_t)(found - set->times) : 0;
    }
}

static void index_kinds(struct phema_set *set, const struct phema_profile *profiles)
{
    for (size_t i = 0; i < set->n + set->m; i++) {
        phema_quad power = (phema_quad)profiles[i].gamma + 1;
        uint64_t every = profiles[i].update_every > 1 ? profiles[i].update_every : 1;
        size_t k = 0;
        while (k < set->n_kinds && (set->kinds[k].power != power || set->kinds[k].every != every))
            k++;
        if (k == set->n_kinds)
            set->kinds[set->n_kinds++] = (struct phema_kind){power, every, false};
        set->kinds[k].is_snapshots |= i < set->n;
        set->members[i].kind = k;
    }
}

/* log of the product of Gamma(j + 1 + 1/U) / Gamma(j + 1 + 2/U): differences of it are the logs of
 * products of (1 + j U) / (2 + j U), the ratio in beta at step c = 1 + j U. */
static phema_quad log_updates(uint64_t every, phema_quad t)
{
    uint64_t updates = ((uint64_t)t - 1) / every;
    phema_quad part = 1 / (phema_quad)every;
    int sign;
    return phema_quad_lgamma_r((phema_quad)updates + 1 + part, &sign) -
           phema_quad_lgamma_r((phema_quad)updates + 1 + 2 * part, &sign);
}

static phema_quad decay_between(const struct phema_kind *kind, phema_quad from, phema_quad to)
{
    if (kind->every <= 1)
        return phema_quad_pow(from / to, kind->power);
    return phema_quad_exp(kind->power *
                          (log_updates(kind->every, to) - log_updates(kind->every, from)));
}

phema_quad phema_set_decay(const struct phema_set *set, size_t kind, size_t from, size_t to)
{
    const phema_quad *kept = set->kept + kind * set->n_times;
    /* a denormal has lost digits, and 0 / 0 is none */
    if (kept[from] > (phema_quad)LDBL_MIN * 4)
        return kept[from] / kept[to];
    return decay_between(&set->kinds[kind], set->times[from], set->times[to]);
}

enum phema_status phema_set_build(struct phema_set *set, const struct phema_profile *snapshots,
                                  size_t n, const struct phema_profile *targets, size_t m,
                                  struct phema_error *err)
{
    *set = (struct phema_set){.n = n, .m = m};
    enum phema_status status = check_all(&set->is_stepwise, snapshots, n, targets, m, err);
    if (status)
        return status;

    size_t n_members = n + m;
    struct phema_profile *profiles = calloc(n_members, sizeof(*profiles));
    set->members = calloc(n_members, sizeof(*set->members));
    set->kinds = calloc(n_members, sizeof(*set->kinds));
    set->times = calloc(n_members, sizeof(*set->times));
    if (!profiles || !set->members || !set->kinds || !set->times)
        goto no_memory;
    memcpy(profiles, snapshots, n * sizeof(*profiles));
    if (m)
        memcpy(profiles + n, targets, m * sizeof(*profiles));
    index_times(set, profiles);
    index_kinds(set, profiles);

    set->kept = calloc(set->n_kinds * set->n_times, sizeof(*set->kept));
    if (!set->kept)
        goto no_memory;
    phema_quad last = set->times[set->n_times - 1];
    for (size_t k = 0; k < set->n_kinds; k++) {
        for (size_t i = 0; i < set->n_times; i++)
            set->kept[k * set->n_times + i] = decay_between(&set->kinds[k], set->times[i], last);
    }
    free(profiles);
    return PHEMA_OK;

no_memory:
    free(profiles);
    phema_set_clear(set);
    return phema_fail(err, PHEMA_ERR_RESOURCE, "no memory for the profiles of %zu snapshots", n);
}

void phema_set_clear(struct phema_set *set)
{
    free(set->members);
    free(set->kinds);
    free(set->times);
    free(set->kept);
    *set = (struct phema_set){0};
}
