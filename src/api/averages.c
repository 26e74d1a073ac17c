// SPDX-License-Identifier: Apache-2.0
/* averages.c - betas for a trainer, and weights without files. */
#include <stdio.h>
#include <stdlib.h>

#include "api_call.h"
#include "phema/solver.h"

#define NAME_BYTES 32 /* of a profile, for messages */

enum posthoc_ema_status posthoc_ema_gamma(double *gamma, double sigma_rel,
                                          struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    enum phema_status status = phema_gamma_from_sigma_rel(gamma, sigma_rel, &call.err);
    return call_end(&call, status, error);
}

double posthoc_ema_sigma_rel(double gamma)
{
    return phema_sigma_rel_from_gamma(gamma);
}

double posthoc_ema_beta(double gamma, uint64_t step)
{
    return phema_power_beta(gamma, step ? step : 1);
}

/* Profiles of the solver, with names for messages. */
static void name_profiles(struct phema_profile *out, char (*names)[NAME_BYTES],
                          const struct posthoc_ema_profile *given, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], NAME_BYTES, "%s %zu", what, i);
        out[i] = (struct phema_profile){.shape = PHEMA_SHAPE_POWER,
                                        .gamma = given[i].gamma,
                                        .t = given[i].t,
                                        .update_every = given[i].update_every,
                                        .label = names[i]};
    }
}

static enum phema_status solve(double *weights, const struct posthoc_ema_profile *snapshots,
                               size_t n, const struct posthoc_ema_profile *targets, size_t m,
                               const struct phema_solve_options *options, struct phema_error *err)
{
    struct phema_profile *profiles = calloc(n + m + 1, sizeof(*profiles));
    char(*names)[NAME_BYTES] = calloc(n + m + 1, sizeof(*names));
    struct phema_mix *mixes = calloc(m + 1, sizeof(*mixes));
    struct phema_solution *solutions = calloc(m + 1, sizeof(*solutions));
    enum phema_status status = PHEMA_OK;
    if (!profiles || !names || !mixes || !solutions) {
        status = phema_fail_memory(err);
        goto end;
    }
    name_profiles(profiles, names, snapshots, n, "snapshot");
    name_profiles(profiles + n, names + n, targets, m, "target");
    for (size_t j = 0; j < m; j++)
        mixes[j] = (struct phema_mix){.parts = &profiles[n + j], .n_parts = 1};
    struct phema_problem problem = {.snapshots = profiles, .n = n, .targets = mixes, .m = m};
    status = m ? phema_weights_solve(solutions, &problem, options, err) : PHEMA_OK;
    for (size_t j = 0; !status && j < m; j++)
        for (size_t k = 0; k < n; k++)
            weights[k * m + j] = solutions[j].weights[k];

end:
    if (solutions)
        phema_solutions_clear(solutions, m);
    free(solutions);
    free(mixes);
    free(names);
    free(profiles);
    return status;
}

enum posthoc_ema_status posthoc_ema_weights(double *weights,
                                            const struct posthoc_ema_profile *snapshots, size_t n,
                                            const struct posthoc_ema_profile *targets, size_t m,
                                            const char *metric, struct posthoc_ema_error *error)
{
    static const char *const names[] = {"walk", "profile", NULL};
    static const enum phema_metric metrics[] = {PHEMA_METRIC_WALK, PHEMA_METRIC_PROFILE};
    struct call call = call_begin();
    size_t chosen = 0;
    enum phema_status status = call_find_choice(&chosen, metric, names, "metric", &call.err);
    struct phema_solve_options options = {.metric = metrics[chosen]};
    if (!status && (n > 8192 || m > 8192)) /* before anything is allocated for them */
        status = phema_fail(&call.err, PHEMA_ERR_RESOURCE,
                            "at most 8192 snapshots and targets, found %zu and %zu", n, m);
    if (!status)
        status = solve(weights, snapshots, n, targets, m, &options, &call.err);
    return call_end(&call, status, error);
}
