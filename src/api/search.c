// SPDX-License-Identifier: Apache-2.0
/* search.c - the widths to score next, for programs that score averages themselves. */
#include <math.h>
#include <stdlib.h>

#include "api_call.h"
#include "phema/profile.h"
#include "phema/search.h"

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
        o->n_coarse = phema_search_grid_size(PHEMA_SEARCH_GRID, o->from, o->to, o->tolerance);
    if (o->n_coarse < 2 || o->n_coarse > PHEMA_SEARCH_MOST_GRID ||
        phema_search_grid_gap(o->n_coarse, o->from, o->to) < PHEMA_SEARCH_RESOLUTION)
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
    double *widths = calloc(o->n_coarse, sizeof(*widths));
    struct phema_search_score *scores = calloc(n + 1, sizeof(*scores));
    if (!widths || !scores) {
        free(widths);
        free(scores);
        return phema_fail_memory(err);
    }
    phema_search_grid(widths, o->n_coarse, o->from, o->to);
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
    free(widths);
    free(scores);
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
