// SPDX-License-Identifier: Apache-2.0
/* error_curve.c - how good averages of a series would be, quickly and without a look at the
 * tensors. */
#include <stdlib.h>
#include <string.h>

#include "solver_input.h"

/* The solver takes about 0.1 s for so many; all of them would take seconds at a thousand. */
#define MOST_SNAPSHOTS 256

/* Every n-th time, counted from the newest; n such that few enough snapshots are left. */
static size_t thin(struct phema_series *out, const struct phema_series *series, size_t *every,
                   struct phema_error *err)
{
    struct phema_snapshot *snapshots = calloc(series->n, sizeof(*snapshots));
    *out = *series;
    out->snapshots = snapshots;
    if (!snapshots) {
        (void)phema_fail_memory(err);
        return 0;
    }
    *every = (series->n + MOST_SNAPSHOTS - 1) / MOST_SNAPSHOTS;
    size_t n = 0, n_times = 0;
    for (size_t k = series->n; k-- > 0;) {
        bool is_new =
            k + 1 == series->n || series->snapshots[k].time != series->snapshots[k + 1].time;
        n_times += is_new;
        if ((n_times - 1) % *every == 0)
            snapshots[series->n - 1 - n++] = series->snapshots[k];
    }
    memmove(snapshots, snapshots + (series->n - n), n * sizeof(*snapshots));
    out->n = n;
    return n;
}

static enum phema_status solve(double *errors, const struct phema_series *series,
                               const double *sigma_rels, size_t m, struct phema_error *err)
{
    static const struct phema_solve_options options = {.metric = PHEMA_METRIC_WALK};
    struct phema_target *targets = calloc(m, sizeof(*targets));
    if (!targets)
        return phema_fail_memory(err);
    const struct phema_snapshot *newest = &series->snapshots[series->n - 1];
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < m && !status; j++) {
        targets[j] = (struct phema_target){
            .named_time = newest->named_time, .time = newest->time, .sigma_rel = sigma_rels[j]};
        status = phema_gamma_from_sigma_rel(&targets[j].gamma, sigma_rels[j], err);
    }
    struct solver_input problem = {0};
    if (!status)
        status = solver_input_build(&problem, series, series->n, true, targets, m, err);
    const struct phema_problem given = solver_input_view(&problem, series, NULL);
    if (!status)
        status = phema_weights_solve(problem.solutions, &given, &options, err);
    for (size_t j = 0; j < m && !status; j++)
        errors[j] = problem.solutions[j].predicted.total;
    solver_input_clear(&problem);
    free(targets);
    return status;
}

PHEMA_FALLIBLE phema_series_errors(double *errors, size_t *every, const struct phema_series *series,
                                   const double *sigma_rels, size_t m, struct phema_error *err)
{
    if (!series->has_profiles || series->n == 0)
        return phema_fail(err, PHEMA_NO, "nothing says how the snapshots were averaged");
    struct phema_series thinned;
    enum phema_status status = PHEMA_ERR_RESOURCE;
    if (thin(&thinned, series, every, err))
        status = solve(errors, &thinned, sigma_rels, m, err);
    free(thinned.snapshots);
    return status;
}
