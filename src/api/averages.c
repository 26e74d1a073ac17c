// SPDX-License-Identifier: Apache-2.0
/* averages.c - what needs no files: betas for a trainer, weights, and the widths to score next. */
#include <math.h>

#include "api.h"
#include "phema/search.h"

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

/* Profiles of the solver, which messages call by their index; NULL: no memory. */
static struct phema_profile *name_profiles(struct phema_arena *arena,
                                           const struct posthoc_ema_profile *given, size_t n)
{
    struct phema_profile *out = phema_arena_array(arena, n + 1, sizeof(*out));
    for (size_t i = 0; out && i < n; i++)
        out[i] = (struct phema_profile){.shape = PHEMA_SHAPE_POWER,
                                        .gamma = given[i].gamma,
                                        .t = given[i].t,
                                        .update_every = given[i].update_every,
                                        .label = phema_arena_printf(arena, "%zu", i)};
    return out;
}

static enum phema_status solve(double *weights, const struct posthoc_ema_profile *snapshots,
                               size_t n, const struct posthoc_ema_profile *targets, size_t m,
                               const struct phema_solve_options *options, struct phema_error *err)
{
    struct phema_arena arena = {0};
    const struct phema_profile *parts = name_profiles(&arena, targets, m);
    struct phema_mix *mixes = phema_arena_array(&arena, m + 1, sizeof(*mixes));
    struct phema_solution *solutions = phema_arena_array(&arena, m + 1, sizeof(*solutions));
    struct phema_problem problem = {
        .snapshots = name_profiles(&arena, snapshots, n), .n = n, .targets = mixes, .m = m};
    enum phema_status status = arena.is_failed ? phema_fail_memory(err) : PHEMA_OK;
    for (size_t j = 0; !status && j < m; j++)
        mixes[j] = (struct phema_mix){.parts = &parts[j], .n_parts = 1};
    if (!status && m)
        status = phema_weights_solve(solutions, &problem, options, err);
    for (size_t j = 0; !status && j < m; j++)
        for (size_t k = 0; k < n; k++)
            weights[k * m + j] = solutions[j].weights[k];
    if (solutions)
        phema_solutions_clear(solutions, m);
    phema_arena_clear(&arena);
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

/* ---- Search ---- */

static enum phema_status check_options(struct posthoc_ema_search_options *o,
                                       struct phema_error *err)
{
    double gamma = 0;
    enum phema_status status = phema_gamma_from_sigma_rel(&gamma, o->from, err);
    if (status)
        return phema_fail_in(err, status, "from");
    status = phema_gamma_from_sigma_rel(&gamma, o->to, err);
    if (status)
        return phema_fail_in(err, status, "to");
    if (!(o->to - o->from >= PHEMA_SEARCH_RESOLUTION))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "expected a range from a lower to a higher width, found %g to %g",
                          o->from, o->to);
    if (o->tolerance == 0)
        o->tolerance = PHEMA_SEARCH_TOLERANCE;
    if (!(o->tolerance >= PHEMA_SEARCH_MIN_TOLERANCE) || !(o->tolerance < 1))
        return phema_fail(err, PHEMA_ERR_USAGE, "tolerance: expected %g or more, found %g",
                          PHEMA_SEARCH_MIN_TOLERANCE, o->tolerance);
    if (!(o->noise >= 0) || !isfinite(o->noise))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "noise: expected the standard deviation of one score, found %g",
                          o->noise);
    if (!o->n_coarse)
        o->n_coarse =
            phema_search_grid_size(PHEMA_SEARCH_GRID, o->from, o->to, o->tolerance, false);
    if (o->n_coarse < 2 || o->n_coarse > PHEMA_SEARCH_MOST_GRID ||
        phema_search_grid_gap(o->n_coarse, o->from, o->to, false) < PHEMA_SEARCH_RESOLUTION)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "n_coarse: expected from 2 to %d widths, at least %g apart, found %zu",
                          PHEMA_SEARCH_MOST_GRID, PHEMA_SEARCH_RESOLUTION, o->n_coarse);
    return PHEMA_OK;
}

static enum phema_status find_next(double *next, size_t *n_next, size_t most,
                                   const struct posthoc_ema_search_options *o,
                                   const double *sigma_rels, const double *given, size_t n,
                                   struct phema_error *err)
{
    static const double now = 1; /* all averages are of one time, whichever */
    size_t most_points = most < PHEMA_SEARCH_MOST_BATCH ? most : PHEMA_SEARCH_MOST_BATCH;
    struct phema_search_point points[PHEMA_SEARCH_MOST_BATCH];
    struct phema_arena arena = {0};
    double *widths = phema_arena_array(&arena, o->n_coarse, sizeof(*widths));
    struct phema_search_score *scores = phema_arena_array(&arena, n + 1, sizeof(*scores));
    if (arena.is_failed) {
        phema_arena_clear(&arena);
        return phema_fail_memory(err);
    }
    phema_search_grid(widths, o->n_coarse, o->from, o->to, false);
    for (size_t i = 0; i < n; i++)
        scores[i] = (struct phema_search_score){.at = {sigma_rels[i], now}, .score = given[i]};
    struct phema_search search = {.widths = widths,
                                  .n_widths = o->n_coarse,
                                  .times = &now,
                                  .n_times = 1,
                                  .tolerance = o->tolerance,
                                  .noise = o->noise,
                                  .maximizes = o->maximizes != 0};
    *n_next = phema_search_next(points, most_points, &search, scores, n);
    for (size_t i = 0; i < *n_next; i++)
        next[i] = points[i].sigma_rel;
    phema_arena_clear(&arena);
    return PHEMA_OK;
}

enum posthoc_ema_status posthoc_ema_search_next(double *next, size_t *n_next, size_t most,
                                                const struct posthoc_ema_search_options *options,
                                                const double *sigma_rels, const double *scores,
                                                size_t n, struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct posthoc_ema_search_options o;
    enum phema_status status =
        call_read_struct(&o, sizeof(o), options, "posthoc_ema_search_options", &call.err);
    if (!status)
        status = check_options(&o, &call.err);
    if (!status)
        status = find_next(next, n_next, most, &o, sigma_rels, scores, n, &call.err);
    return call_end(&call, status, error);
}
