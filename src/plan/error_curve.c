// SPDX-License-Identifier: Apache-2.0
/* error_curve.c - predicted error against width, without reading tensors. */
#include <stdlib.h>
#include <string.h>

#include "solver_input.h"

/* The solver takes about 0.1 s for this many snapshots, and seconds for a thousand. */
#define MOST_SNAPSHOTS 256

/* Every *every-th time, counted from the newest, such that few enough snapshots are left. */
static void thin(struct phema_series *thinned, const struct phema_series *series, size_t *every)
{
    *every = (series->n + MOST_SNAPSHOTS - 1) / MOST_SNAPSHOTS;
    size_t n_times = 0, first = series->n; /* filled from the end */
    for (size_t k = series->n; k-- > 0;) {
        bool is_new =
            k + 1 == series->n || series->snapshots[k].time != series->snapshots[k + 1].time;
        n_times += is_new;
        if ((n_times - 1) % *every == 0)
            thinned->snapshots[--first] = series->snapshots[k];
    }
    thinned->n = series->n - first;
    memmove(thinned->snapshots, thinned->snapshots + first,
            thinned->n * sizeof(*thinned->snapshots));
}

static enum phema_status solve(double *errors, const struct phema_series *series,
                               struct phema_target *targets, const double *sigma_rels, size_t m,
                               struct phema_error *err)
{
    static const struct phema_solve_options options = {.metric = PHEMA_METRIC_WALK};
    const struct phema_snapshot *newest = &series->snapshots[series->n - 1];
    for (size_t j = 0; j < m; j++) {
        targets[j] = (struct phema_target){
            .named_time = newest->named_time, .time = newest->time, .sigma_rel = sigma_rels[j]};
        enum phema_status status =
            phema_gamma_from_sigma_rel(&targets[j].gamma, sigma_rels[j], err);
        if (status)
            return status;
    }
    struct solver_input input;
    enum phema_status status =
        solver_input_build(&input, series, NULL, series->n, true, targets, m, err);
    if (!status)
        status = phema_weights_solve(input.solutions, &input.problem, &options, err);
    for (size_t j = 0; j < m && !status; j++)
        errors[j] = input.solutions[j].predicted.total;
    solver_input_clear(&input);
    return status;
}

PHEMA_FALLIBLE phema_series_errors(double *errors, size_t *every, const struct phema_series *series,
                                   const double *sigma_rels, size_t m, struct phema_error *err)
{
    if (!series->has_profiles || series->n == 0)
        return phema_fail(err, PHEMA_NO, "nothing says how the snapshots were averaged");
    struct phema_target *targets = calloc(m, sizeof(*targets));
    struct phema_series thinned = *series;
    thinned.snapshots = calloc(series->n, sizeof(*thinned.snapshots));
    enum phema_status status = PHEMA_OK;
    if (targets && thinned.snapshots) {
        thin(&thinned, series, every);
        status = solve(errors, &thinned, targets, sigma_rels, m, err);
    } else {
        status = phema_fail_memory(err);
    }
    free(targets);
    free(thinned.snapshots);
    return status;
}
