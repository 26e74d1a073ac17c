// SPDX-License-Identifier: Apache-2.0
/* profile_set.c - checks the profiles of a problem, and indexes their distinct families and times.
 * Relies on quad pow, exp and lgamma for decays between two times. */
#include "profile_set.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/parallel.h"
#include "phema/strbuf.h"

#define MAX_TIME  0x1p53 /* doubles hold whole numbers exactly below */
#define MAX_STEPS 1e9    /* of a recurrence: minutes */
#define MAX_PARTS 65536  /* of all targets */

/* As a fraction of the time; below, the begin of a window would be rounded away. */
#define LEAST_LENGTH 1e-9

/* ---- Ranges ---- */

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
        break;
    case PHEMA_SHAPE_RAMPED:
        if (!(profile->ramp > 1e-3 && profile->ramp < 1e3))
            return phema_fail(err, PHEMA_ERR_INPUTS, "expected a ramp from 0.001 to 1000, found %g",
                              profile->ramp);
        /* fall through */
    case PHEMA_SHAPE_EMA:
        if (!(half_life > 0 && half_life < MAX_TIME))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "expected a half-life above 0 and below 2^53, found %g", half_life);
        break;
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
        break;
    case PHEMA_SHAPE_TABLE:
        return check_betas(profile->betas, err);
    case PHEMA_SHAPE_RAW:
        break;
    }
    return PHEMA_OK;
}

/* A window and the like cannot be reset, and raw parameters need not be. */
static enum phema_status check_reset(const struct phema_profile *profile, bool is_stepwise,
                                     struct phema_error *err)
{
    enum phema_shape shape = profile->shape;
    bool is_shifted = shape == PHEMA_SHAPE_POWER && profile->origin < 0 &&
                      profile->origin > -MAX_TIME && profile->update_every <= 1;
    if (profile->reset == 0 && (profile->origin == 0 || is_shifted))
        return PHEMA_OK;
    if (shape != PHEMA_SHAPE_POWER && shape != PHEMA_SHAPE_EMA && shape != PHEMA_SHAPE_RAMPED &&
        shape != PHEMA_SHAPE_TABLE)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "only an average that is kept step by step can be reset");
    if (!((profile->origin >= 0 || is_shifted) && profile->origin <= profile->reset &&
          profile->reset < profile->t))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "expected a reset before the time %.17g and not before its count began, "
                          "found %.17g and %.17g",
                          profile->t, profile->reset, profile->origin);
    if (is_stepwise &&
        (profile->reset != floor(profile->reset) || profile->origin != floor(profile->origin)))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "with update_every above 1 or a table of betas a reset is at a whole "
                          "step, found %.17g",
                          profile->reset);
    return PHEMA_OK;
}

static enum phema_status check_numbers(const struct phema_profile *profile, bool is_stepwise,
                                       struct phema_error *err)
{
    if (!(profile->t > 0))
        return phema_fail(err, PHEMA_ERR_INPUTS, "the time must be positive, found %.17g",
                          profile->t);
    if (!(profile->t < MAX_TIME))
        return phema_fail(err, PHEMA_ERR_INPUTS, "expected a time below 2^53, found %.17g",
                          profile->t);
    enum phema_status status = check_shape(profile, err);
    if (!status)
        status = check_reset(profile, is_stepwise, err);
    if (status)
        return status;
    if (is_stepwise && profile->t != floor(profile->t))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "with update_every above 1 or a table of betas times are counted in "
                          "steps: expected a whole number, found %.17g",
                          profile->t);
    if (is_stepwise && profile->t > MAX_STEPS)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "with update_every above 1 or a table of betas averages are followed "
                          "step by step: expected at most 1e9 steps, found %.0f; use times "
                          "counted in updates with update_every 1",
                          profile->t);
    return PHEMA_OK;
}

static enum phema_status check_profile(const struct phema_profile *profiles, size_t index,
                                       const char *what, enum phema_status status, bool is_stepwise,
                                       struct phema_error *err)
{
    struct phema_name_buffer name;
    if (!check_numbers(&profiles[index], is_stepwise, err))
        return PHEMA_OK;
    return phema_fail_in(err, status, "%s %s", what,
                         phema_profile_format_label(&name, profiles, index));
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
    assert(mix->factors ? mix->n_parts > 0 : mix->n_parts == 1);
    double sum = mix->factors ? 0 : 1;
    for (size_t p = 0; mix->factors && p < mix->n_parts; p++)
        sum += mix->factors[p];
    bool is_average = fabs(sum - 1) <= 1e-9;
    bool is_difference = fabs(sum) <= 1e-9;
    if (!is_average && !is_difference)
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
        if (status)
            return status;
        for (size_t p = 0; p < mix->n_parts; p++) {
            status =
                check_profile(mix->parts, p, "target", PHEMA_ERR_TARGET, set->is_stepwise, err);
            if (status)
                return status;
            status = check_target_time(problem, mix->parts[p].t, err);
            if (status)
                return status;
        }
    }
    return PHEMA_OK;
}

/* Sets n_parts and is_stepwise. */
static enum phema_status check_problem(struct phema_profile_set *set,
                                       const struct phema_problem *problem, struct phema_error *err)
{
    if (set->n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "no snapshots; at least one is needed to make an average");
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

/* ---- Index ---- */

static int compare_quads(const void *a, const void *b)
{
    phema_quad x = *(const phema_quad *)a;
    phema_quad y = *(const phema_quad *)b;
    return (x > y) - (x < y);
}

/* Ends; and all other boundaries before the last end, in whole steps where steps are followed. */
static bool index_times(struct phema_profile_set *set, const struct phema_profile *profiles,
                        const struct phema_motion *motion)
{
    size_t n_members = set->n + set->n_parts;
    size_t n_motions = motion ? motion->n_intervals : 0;
    size_t n_breaks = PHEMA_FAMILY_MAX_BREAKS * set->n_families;
    set->times =
        phema_arena_array(&set->memory, n_members + n_breaks + n_motions, sizeof(*set->times));
    if (!set->times)
        return false;
    phema_quad last = 0;
    for (size_t i = 0; i < n_members; i++) {
        set->times[set->n_times++] = (phema_quad)profiles[i].t;
        last = (phema_quad)profiles[i].t > last ? (phema_quad)profiles[i].t : last;
    }
    for (size_t k = 0; !set->is_stepwise && k < set->n_families; k++) {
        phema_quad found[PHEMA_FAMILY_MAX_BREAKS];
        size_t n = phema_family_breaks(&set->families[k], found);
        for (size_t i = 0; i < n; i++)
            if (found[i] < last)
                set->times[set->n_times++] = found[i];
    }
    for (size_t k = 0; k < n_motions; k++) {
        double end = set->is_stepwise ? floor(motion->ends[k]) : motion->ends[k];
        if (end > 0 && (phema_quad)end < last)
            set->times[set->n_times++] = (phema_quad)end;
    }
    qsort(set->times, set->n_times, sizeof(*set->times), compare_quads);
    size_t n = 1;
    for (size_t i = 1; i < set->n_times; i++)
        if (set->times[i] != set->times[n - 1])
            set->times[n++] = set->times[i];
    set->n_times = n;
    for (size_t i = 0; i < n_members; i++) {
        struct phema_member *member = &set->members[i];
        phema_quad t = (phema_quad)profiles[i].t;
        const phema_quad *found = bsearch(&t, set->times, set->n_times, sizeof(t), compare_quads);
        member->time = found ? (size_t)(found - set->times) : 0;
        if (member->time > set->families[member->family].last_time)
            set->families[member->family].last_time = member->time;
    }
    return true;
}

/* A counting sort. */
static bool sort_by_time(struct phema_profile_set *set)
{
    size_t n_members = set->n + set->n_parts;
    size_t *starts = phema_arena_array(&set->memory, set->n_times + 1, sizeof(*starts));
    set->by_time = phema_arena_array(&set->memory, n_members, sizeof(*set->by_time));
    if (!starts || !set->by_time)
        return false;
    for (size_t i = 0; i < n_members; i++)
        starts[set->members[i].time + 1]++;
    for (size_t t = 0; t < set->n_times; t++)
        starts[t + 1] += starts[t];
    for (size_t i = 0; i < n_members; i++)
        set->by_time[starts[set->members[i].time]++] = i;
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
        set->is_plain = set->is_plain && family.form == PHEMA_FAMILY_POWER && family.origin == 0 &&
                        family.reset == 0;
    }
}

/* ---- Decays ---- */

/* Each takes some 4 us, and a thread 50 us to start. */
#define MANY_DECAYS ((size_t)1024)

static bool has_trail(const struct phema_profile_set *set, const struct phema_family *family)
{
    return set->is_stepwise &&
           (family->form == PHEMA_FAMILY_TABLE || family->form == PHEMA_FAMILY_RAMPED);
}

static phema_quad decay_between(const struct phema_profile_set *set, size_t k, size_t from,
                                size_t to)
{
    const struct phema_family *family = &set->families[k];
    phema_quad begin = set->times[from];
    phema_quad end = set->times[to];
    if (from == to)
        return 1;
    if (begin < family->reset)
        return 0;
    if (has_trail(set, family)) {
        const struct phema_trail *trail = set->trails + k * set->n_times;
        bool is_kept = trail[from].n_zeros == trail[to].n_zeros;
        return is_kept ? phema_quad_exp(trail[to].log - trail[from].log) : 0;
    }
    if (family->every > 1 && begin == family->origin)
        return 0; /* the first update copies the parameters */
    if (family->every > 1)
        return phema_quad_exp(family->power *
                              (phema_log_updates(family->every, end - family->origin) -
                               phema_log_updates(family->every, begin - family->origin)));
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
                         const struct phema_family *family)
{
    const struct phema_betas *betas = family->betas;
    struct phema_trail now = {0};
    size_t i = 0;
    for (size_t t = 0; t < set->n_times; t++) {
        phema_quad until = set->times[t] - family->origin;
        for (; i < betas->n && (phema_quad)betas->steps[i] <= until; i++) {
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
        phema_quad until = set->times[t] - family->origin;
        for (uint64_t end = until > 0 ? (uint64_t)until : 0; step < end;) {
            phema_quad ramped = family->ramp * (phema_quad)++step;
            inverses += 1 / (ramped < half_life ? ramped : half_life);
        }
        trail[t] = (struct phema_trail){.log = -family->rate * half_life * inverses};
    }
}

/* Of family k. */
static void follow_family(void *context, size_t k)
{
    struct phema_profile_set *set = context;
    const struct phema_family *family = &set->families[k];
    struct phema_trail *trail = set->trails + k * set->n_times;
    if (family->form == PHEMA_FAMILY_TABLE)
        follow_table(trail, set, family);
    else if (has_trail(set, family))
        follow_ramp(trail, set, family);
}

/* Times [block TIMES, (block + 1) TIMES) of a family, blocks of one family after those of another. */
#define TIMES ((size_t)64)

static size_t count_blocks(const struct phema_profile_set *set)
{
    return (set->n_times + TIMES - 1) / TIMES;
}

static void find_decays(void *context, size_t index)
{
    struct phema_profile_set *set = context;
    size_t k = index / count_blocks(set), begin = index % count_blocks(set) * TIMES;
    for (size_t t = begin; t < set->n_times && t < begin + TIMES; t++) {
        phema_quad kept = decay_between(set, k, t, set->n_times - 1);
        set->kept[k * set->n_times + t] = kept;
        set->inverse_kept[k * set->n_times + t] = kept > 0 ? 1 / kept : 0;
    }
}

static bool build_decays(struct phema_profile_set *set)
{
    size_t count = set->n_families * set->n_times;
    unsigned n_threads = count < MANY_DECAYS ? 1 : phema_parallel_threads();
    set->kept = phema_arena_array(&set->memory, count, sizeof(*set->kept));
    set->inverse_kept = phema_arena_array(&set->memory, count, sizeof(*set->inverse_kept));
    if (set->is_stepwise)
        set->trails = phema_arena_array(&set->memory, count, sizeof(*set->trails));
    if (!set->kept || !set->inverse_kept || (set->is_stepwise && !set->trails))
        return false;
    if (set->is_stepwise)
        phema_parallel(set->n_families, n_threads, follow_family, set);
    phema_parallel(set->n_families * count_blocks(set), n_threads, find_decays, set);
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
    struct phema_arena *memory = &set->memory;
    struct phema_profile *profiles = phema_arena_array(memory, n_members, sizeof(*profiles));
    set->members = phema_arena_array(memory, n_members, sizeof(*set->members));
    set->factors = phema_arena_array(memory, n_members, sizeof(*set->factors));
    set->owners = phema_arena_array(memory, n_members, sizeof(*set->owners));
    set->families = phema_arena_array(memory, n_members, sizeof(*set->families));
    if (!profiles || !set->members || !set->factors || !set->owners || !set->families)
        return false;
    list_members(set, profiles, problem);
    index_families(set, profiles);
    return index_times(set, profiles, problem->motion) && sort_by_time(set) && build_decays(set);
}

enum phema_status phema_profile_set_build(struct phema_profile_set *set,
                                          const struct phema_problem *problem,
                                          struct phema_error *err)
{
    *set = (struct phema_profile_set){
        .n = problem->n, .m = problem->m, .snapshots = problem->snapshots};
    enum phema_status status = check_problem(set, problem, err);
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
    phema_arena_clear(&set->memory);
    *set = (struct phema_profile_set){0};
}
