// SPDX-License-Identifier: Apache-2.0
/* solver_input.c - the subset of the series that the solver sees for one target time. */
#include "solver_input.h"

#include <math.h>
#include <string.h>

const struct phema_prediction unknown_prediction = {
    PHEMA_UNKNOWN, PHEMA_UNKNOWN, PHEMA_UNKNOWN, PHEMA_UNKNOWN, 0, 0, 0};

size_t solver_input_count_until(const struct phema_series *series, double time)
{
    size_t n = 0;
    while (n < series->n && series->snapshots[n].time <= time)
        n++;
    return n;
}

size_t solver_input_count_used(const struct phema_series *series, double time)
{
    size_t n = solver_input_count_until(series, time);
    bool is_between = n > 0 && n < series->n && series->snapshots[n - 1].time < time;
    return is_between ? series->n : n;
}

/* How often an average was updated until a time: power functions updated every U steps, and
 * tables. */
static double count_updates(const struct phema_profile *profile, double t)
{
    double time = t - profile->origin;
    if (profile->shape == PHEMA_SHAPE_TABLE)
        return (double)phema_betas_count(profile->betas, time);
    return time < 1 ? 0 : floor((time - 1) / (double)profile->update_every);
}

/* With updates every U steps, snapshots between two updates are the same average. Up to the second
 * update, and from a reset to the next one, all widths are the same parameters. Snapshots between
 * two steps of a table are the same as well. Averages that are updated at every step never
 * coincide. */
bool is_same_average(const struct phema_profile *a, const struct phema_profile *b)
{
    if (a->shape != b->shape || a->betas != b->betas || a->reset != b->reset ||
        a->origin != b->origin)
        return false;
    if (a->shape == PHEMA_SHAPE_TABLE)
        return a->t != b->t && count_updates(a, a->t) == count_updates(b, b->t);
    if (a->shape != PHEMA_SHAPE_POWER || a->update_every <= 1 || a->update_every != b->update_every)
        return false;
    double updates = count_updates(a, a->t);
    return updates == count_updates(b, b->t) &&
           (updates == count_updates(a, a->reset) || (a->gamma == b->gamma && a->t != b->t));
}

/* Only the last of the same averages can be solved for. */
static bool repeats(const struct phema_snapshot *first, const struct phema_snapshot *second)
{
    const struct phema_profile *a = &first->profile, *b = &second->profile;
    if (a->t == b->t && a->t - a->origin <= 1 && b->t - b->origin <= 1 && first->kind &&
        second->kind && strcmp(first->kind, "raw") == 0 && strcmp(second->kind, "raw") != 0)
        return true; /* after one step, an average is its parameters */
    return is_same_average(a, b);
}

PHEMA_FALLIBLE solver_input_build(struct solver_input *input, const struct phema_series *series,
                                  const struct phema_motion *motion, size_t n, bool drops_repeats,
                                  const struct phema_target *targets, size_t m,
                                  struct phema_error *err)
{
    *input = (struct solver_input){.n_considered = n, .has_true_labels = true};
    struct phema_arena *memory = &input->memory;
    double *rounding = phema_arena_array(memory, n, sizeof(*rounding));
    struct phema_mix *mixes = phema_arena_array(memory, m, sizeof(*mixes));
    input->index = phema_arena_array(memory, n, sizeof(*input->index));
    input->snapshots = phema_arena_array(memory, n, sizeof(*input->snapshots));
    input->targets = phema_arena_array(memory, m, sizeof(*input->targets));
    input->solutions = phema_arena_array(memory, m, sizeof(*input->solutions));
    if (memory->is_failed)
        return phema_fail_memory(err);
    input->problem = (struct phema_problem){.snapshots = input->snapshots,
                                            .rounding = rounding,
                                            .targets = mixes,
                                            .m = m,
                                            .run_end = series->snapshots[series->n - 1].time,
                                            .motion = motion};
    for (size_t k = 0; k < n; k++) {
        size_t later = k + 1;
        while (drops_repeats && later < n &&
               !repeats(&series->snapshots[k], &series->snapshots[later]))
            later++;
        if (drops_repeats && later < n)
            continue;
        size_t x = input->problem.n++;
        input->index[x] = k;
        input->snapshots[x] = series->snapshots[k].profile;
        rounding[x] = series->snapshots[k].rounding;
        input->has_true_labels = input->has_true_labels && input->snapshots[x].update_every <= 1 &&
                                 input->snapshots[x].reset == 0;
    }
    for (size_t j = 0; j < m; j++) {
        input->targets[j] = (struct phema_profile){
            .gamma = targets[j].gamma, .t = targets[j].time, .label = "the target"};
        mixes[j] = isnan(targets[j].gamma)
                       ? targets[j].mix
                       : (struct phema_mix){.parts = &input->targets[j], .n_parts = 1};
    }
    return PHEMA_OK;
}

void solver_input_clear(struct solver_input *input)
{
    if (input->solutions)
        phema_solutions_clear(input->solutions, input->problem.m);
    phema_arena_clear(&input->memory);
}
