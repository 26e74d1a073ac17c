// SPDX-License-Identifier: Apache-2.0
/* profile_set.c - indexes the distinct families and times of the profiles of a problem. Relies on
 * quad pow, exp and lgamma for decays between two times. */
#include "profile_set.h"

#include <stdlib.h>
#include <string.h>

/* ---- Index ---- */

static int compare_quads(const void *a, const void *b)
{
    phema_quad x = *(const phema_quad *)a;
    phema_quad y = *(const phema_quad *)b;
    return (x > y) - (x < y);
}

static size_t time_index(const struct phema_profile_set *set, phema_quad t)
{
    const phema_quad *found = bsearch(&t, set->times, set->n_times, sizeof(t), compare_quads);
    return found ? (size_t)(found - set->times) : 0;
}

/* Ends; and, in continuous time, all other boundaries before the last end. */
static bool index_times(struct phema_profile_set *set, const struct phema_profile *profiles,
                        const struct phema_motion *motion)
{
    size_t n_members = set->n + set->n_parts;
    size_t n_motions = motion ? motion->n_intervals : 0;
    set->times = calloc(n_members + set->n_families + n_motions, sizeof(*set->times));
    if (!set->times)
        return false;
    phema_quad last = 0;
    for (size_t i = 0; i < n_members; i++) {
        set->times[set->n_times++] = (phema_quad)profiles[i].t;
        last = (phema_quad)profiles[i].t > last ? (phema_quad)profiles[i].t : last;
    }
    phema_quad found = 0;
    for (size_t k = 0; !set->is_stepwise && k < set->n_families; k++)
        if (phema_family_breaks(&set->families[k], &found) && found < last)
            set->times[set->n_times++] = found;
    for (size_t k = 0; k < n_motions; k++)
        if (motion->ends[k] > 0 && (phema_quad)motion->ends[k] < last)
            set->times[set->n_times++] = (phema_quad)motion->ends[k];
    qsort(set->times, set->n_times, sizeof(*set->times), compare_quads);
    size_t n = 1;
    for (size_t i = 1; i < set->n_times; i++)
        if (set->times[i] != set->times[n - 1])
            set->times[n++] = set->times[i];
    set->n_times = n;
    for (size_t i = 0; i < n_members; i++) {
        struct phema_member *member = &set->members[i];
        member->time = time_index(set, (phema_quad)profiles[i].t);
        if (member->time > set->families[member->family].last_time)
            set->families[member->family].last_time = member->time;
    }
    return true;
}

static void index_families(struct phema_profile_set *set, const struct phema_profile *profiles)
{
    set->is_plain = !set->is_stepwise && set->n_parts == set->m;
    for (size_t i = 0; i < set->n + set->n_parts; i++) {
        struct phema_family family = phema_family_of(&profiles[i]);
        size_t k = 0;
        while (k < set->n_families && !phema_family_equals(&set->families[k], &family))
            k++;
        if (k == set->n_families)
            set->families[set->n_families++] = family;
        set->families[k].is_snapshots |= i < set->n;
        set->members[i].family = k;
        set->is_plain = set->is_plain && family.form == PHEMA_FAMILY_POWER && family.origin == 0;
    }
}

/* ---- Decays ---- */

static bool has_trail(const struct phema_profile_set *set, const struct phema_family *family)
{
    return family->form == PHEMA_FAMILY_TABLE ||
           (set->is_stepwise && family->form == PHEMA_FAMILY_RAMPED);
}

static phema_quad decay_between(const struct phema_profile_set *set, size_t k, size_t from,
                                size_t to)
{
    const struct phema_family *family = &set->families[k];
    phema_quad begin = set->times[from];
    phema_quad end = set->times[to];
    if (from == to)
        return 1;
    if (has_trail(set, family)) {
        const struct phema_trail *trail = set->trails + k * set->n_times;
        bool is_kept = trail[from].n_zeros == trail[to].n_zeros;
        return is_kept ? phema_quad_exp(trail[to].log - trail[from].log) : 0;
    }
    if (family->every > 1)
        return phema_quad_exp(family->power * (phema_log_updates(family->every, end) -
                                               phema_log_updates(family->every, begin)));
    return phema_family_decay(family, begin, end);
}

bool phema_profile_set_divides(const struct phema_profile_set *set, size_t family, size_t from)
{
    /* a denormal has lost digits, and 0 / 0 is not a number */
    return set->kept[family * set->n_times + from] > (phema_quad)LDBL_MIN * 4;
}

phema_quad phema_profile_set_decay(const struct phema_profile_set *set, size_t family, size_t from,
                                   size_t to)
{
    size_t first = family * set->n_times;
    if (phema_profile_set_divides(set, family, from))
        return set->kept[first + from] * set->inverse_kept[first + to];
    return decay_between(set, family, from, to);
}

static void follow_table(struct phema_trail *trail, const struct phema_profile_set *set,
                         const struct phema_betas *betas)
{
    struct phema_trail now = {0};
    size_t i = 0;
    for (size_t t = 0; t < set->n_times; t++) {
        for (; i < betas->n && (phema_quad)betas->steps[i] <= set->times[t]; i++) {
            if (betas->betas[i] > 0)
                now.log += (phema_quad)logl((long double)betas->betas[i]);
            else
                now.n_zeros++;
        }
        trail[t] = now;
    }
}

static void follow_ramp(struct phema_trail *trail, const struct phema_profile_set *set,
                        const struct phema_family *family)
{
    phema_quad half_life = family->turn * family->ramp;
    phema_quad inverses = 0;
    uint64_t step = 0;
    for (size_t t = 0; t < set->n_times; t++) {
        for (uint64_t end = (uint64_t)set->times[t]; step < end;) {
            phema_quad ramped = family->ramp * (phema_quad)++step;
            inverses += 1 / (ramped < half_life ? ramped : half_life);
        }
        trail[t] = (struct phema_trail){.log = -family->rate * half_life * inverses};
    }
}

static void keep_decay(struct phema_profile_set *set, size_t k, size_t t)
{
    phema_quad kept = decay_between(set, k, t, set->n_times - 1);
    set->kept[k * set->n_times + t] = kept;
    set->inverse_kept[k * set->n_times + t] = kept > 0 ? 1 / kept : 0;
}

static bool build_decays(struct phema_profile_set *set)
{
    bool needs_trails = false;
    for (size_t k = 0; k < set->n_families; k++)
        needs_trails |= has_trail(set, &set->families[k]);
    set->kept = calloc(set->n_families * set->n_times + 1, sizeof(*set->kept));
    set->inverse_kept = calloc(set->n_families * set->n_times + 1, sizeof(*set->inverse_kept));
    if (needs_trails)
        set->trails = calloc(set->n_families * set->n_times + 1, sizeof(*set->trails));
    if (!set->kept || !set->inverse_kept || (needs_trails && !set->trails))
        return false;
    for (size_t k = 0; k < set->n_families; k++) {
        const struct phema_family *family = &set->families[k];
        if (family->form == PHEMA_FAMILY_TABLE)
            follow_table(set->trails + k * set->n_times, set, family->betas);
        else if (has_trail(set, family))
            follow_ramp(set->trails + k * set->n_times, set, family);
        for (size_t t = 0; t < set->n_times; t++)
            keep_decay(set, k, t);
    }
    return true;
}

/* ---- Together ---- */

static void list_members(struct phema_profile_set *set, struct phema_profile *profiles,
                         const struct phema_problem *problem)
{
    size_t at = 0;
    for (; at < set->n; at++) {
        profiles[at] = problem->snapshots[at];
        set->owners[at] = at;
        set->factors[at] = 1;
    }
    for (size_t k = 0; k < set->m; k++) {
        const struct phema_mix *mix = &problem->targets[k];
        for (size_t p = 0; p < mix->n_parts; p++, at++) {
            profiles[at] = mix->parts[p];
            set->owners[at] = set->n + k;
            set->factors[at] = mix->factors ? (phema_quad)mix->factors[p] : 1;
        }
    }
}

static bool index_all(struct phema_profile_set *set, const struct phema_problem *problem)
{
    size_t n_members = set->n + set->n_parts;
    struct phema_profile *profiles = calloc(n_members, sizeof(*profiles));
    set->members = calloc(n_members, sizeof(*set->members));
    set->factors = calloc(n_members, sizeof(*set->factors));
    set->owners = calloc(n_members, sizeof(*set->owners));
    set->families = calloc(n_members, sizeof(*set->families));
    bool is_done = profiles && set->members && set->factors && set->owners && set->families;
    if (is_done) {
        list_members(set, profiles, problem);
        index_families(set, profiles);
        is_done = index_times(set, profiles, problem->motion) && build_decays(set);
    }
    free(profiles);
    return is_done;
}

enum phema_status phema_profile_set_build(struct phema_profile_set *set,
                                          const struct phema_problem *problem,
                                          struct phema_error *err)
{
    *set = (struct phema_profile_set){.n = problem->n, .m = problem->m};
    enum phema_status status = phema_profile_set_check(set, problem, err);
    if (status)
        return status;
    if (index_all(set, problem))
        return PHEMA_OK;
    phema_profile_set_clear(set);
    return phema_fail(err, PHEMA_ERR_RESOURCE, "no memory for the profiles of %zu snapshots",
                      problem->n);
}

phema_quad phema_profile_set_sum(const struct phema_profile_set *set, size_t target)
{
    phema_quad sum = 0;
    for (size_t i = set->n; i < set->n + set->n_parts; i++)
        sum += set->owners[i] == set->n + target ? set->factors[i] : 0;
    return sum > (phema_quad)0.5 ? 1 : 0;
}

void phema_profile_set_clear(struct phema_profile_set *set)
{
    free(set->members);
    free(set->factors);
    free(set->owners);
    free(set->families);
    free(set->times);
    free(set->kept);
    free(set->inverse_kept);
    free(set->trails);
    *set = (struct phema_profile_set){0};
}
