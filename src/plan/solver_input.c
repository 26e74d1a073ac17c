// SPDX-License-Identifier: Apache-2.0
/* solver_input.c - see solver_input.h. */
#include "solver_input.h"

#include <math.h>
#include <stdlib.h>

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

/* How often an average was touched until its end, as far as that tells it from another one: power
 * functions that are updated every U steps, and tables. */
static double count_updates(const struct phema_profile *profile)
{
    if (profile->shape != PHEMA_SHAPE_TABLE)
        return floor((profile->t - 1) / (double)profile->update_every);
    const struct phema_betas *betas = profile->betas;
    size_t low = 0, high = betas->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((double)betas->steps[middle] <= profile->t)
            low = middle + 1;
        else
            high = middle;
    }
    return (double)low;
}

/* With updates every U steps only, snapshots between two updates are one and the same average, and
 * up to the second update all widths are: the parameters of the first step. So are those between
 * two steps of a table. Only the last of them can be solved for. Averages that are updated at every
 * step never coincide by themselves. */
static bool repeats(const struct phema_snapshot *first, const struct phema_snapshot *second)
{
    const struct phema_profile *a = &first->profile, *b = &second->profile;
    if (a->shape != b->shape || a->betas != b->betas)
        return false;
    if (a->shape == PHEMA_SHAPE_TABLE)
        return a->t != b->t && count_updates(a) == count_updates(b);
    if (a->shape != PHEMA_SHAPE_POWER || a->update_every <= 1 || a->update_every != b->update_every)
        return false;
    double updates = count_updates(a);
    return updates == count_updates(b) && (updates == 0 || (a->gamma == b->gamma && a->t != b->t));
}

void solver_input_clear(struct solver_input *problem)
{
    if (problem->solutions)
        phema_solutions_clear(problem->solutions, problem->m);
    free(problem->index);
    free(problem->snapshots);
    free(problem->rounding);
    free(problem->targets);
    free(problem->mixes);
    free(problem->solutions);
}

enum phema_status solver_input_build(struct solver_input *problem,
                                     const struct phema_series *series, size_t n,
                                     bool drops_repeats, const struct phema_target *targets,
                                     size_t m, struct phema_error *err)
{
    *problem = (struct solver_input){.m = m, .is_true = true};
    problem->index = calloc(n + 1, sizeof(*problem->index));
    problem->snapshots = calloc(n + 1, sizeof(*problem->snapshots));
    problem->rounding = calloc(n + 1, sizeof(*problem->rounding));
    problem->targets = calloc(m, sizeof(*problem->targets));
    problem->mixes = calloc(m, sizeof(*problem->mixes));
    problem->solutions = calloc(m, sizeof(*problem->solutions));
    if (!problem->index || !problem->snapshots || !problem->rounding || !problem->targets ||
        !problem->mixes || !problem->solutions)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++) {
        bool is_repeated = false;
        for (size_t later = k + 1; drops_repeats && later < n && !is_repeated; later++)
            is_repeated = repeats(&series->snapshots[k], &series->snapshots[later]);
        if (is_repeated)
            continue;
        size_t x = problem->n++;
        problem->index[x] = k;
        problem->snapshots[x] = series->snapshots[k].profile;
        problem->rounding[x] = series->snapshots[k].rounding;
        problem->is_true = problem->is_true && problem->snapshots[x].update_every <= 1;
    }
    for (size_t j = 0; j < m; j++) {
        problem->mixes[j] = isnan(targets[j].gamma)
                                ? targets[j].mix
                                : (struct phema_mix){.parts = &problem->targets[j], .n_parts = 1};
        problem->targets[j] = (struct phema_profile){
            .gamma = targets[j].gamma, .t = targets[j].time, .label = "the target"};
    }
    return PHEMA_OK;
}

struct phema_problem solver_input_view(const struct solver_input *problem,
                                       const struct phema_series *series,
                                       const struct phema_motion *motion)
{
    return (struct phema_problem){.snapshots = problem->snapshots,
                                  .rounding = problem->rounding,
                                  .n = problem->n,
                                  .targets = problem->mixes,
                                  .m = problem->m,
                                  .run_end = series->snapshots[series->n - 1].time,
                                  .motion = motion};
}
