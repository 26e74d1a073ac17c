// SPDX-License-Identifier: Apache-2.0
/* series_search.c - rates other labels as the given ones are: the motion is fitted anew, and each
 * snapshot is compared with what the others predict. */
#include "series_search.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define ROUGH_Z 5.0 /* under the simplest motion */

/* Labels explain a series that is too smooth if its median z is not as small, and if they are
 * likeliest: the largest z hardly tells them apart. */
#define EXPLAINED_LEAST_MEDIAN_Z 0.75
#define LIKELIER                 0.02 /* an element */

#define NEAR       ((size_t)8) /* times on each side that a hypothesis about one snapshot looks at */
#define MOST       ((size_t)48) /* snapshots, the newest, that a hypothesis about all looks at */
#define FIRST_LOOK ((size_t)16) /* of them, the newest: most hypotheses fail here already */
#define CLEARLY    0.7          /* of the z of the best labels before */

const char *search_label(const struct search *search, size_t k)
{
    return search->series->snapshots[k].label;
}

void search_reset(struct search *search, size_t first_group, size_t end_group)
{
    struct labels *tried = &search->tried;
    tried->n = 0;
    for (size_t k = search->group[first_group]; k < search->group[end_group]; k++) {
        tried->profiles[tried->n] = search->series->snapshots[k].profile;
        tried->rows[tried->n++] = k;
    }
}

size_t search_group_of(const struct search *search, size_t k)
{
    size_t g = 0;
    while (search->group[g + 1] <= k)
        g++;
    return g;
}

size_t search_near_begin(size_t g)
{
    return g > NEAR ? g - NEAR : 0;
}

size_t search_near_end(const struct search *search, size_t g)
{
    return g + NEAR < search->n_groups ? g + NEAR + 1 : search->n_groups;
}

size_t search_newest_begin(const struct search *search)
{
    size_t g = search->n_groups;
    while (g > 0 && search->series->n - search->group[g - 1] <= MOST)
        g--;
    return g;
}

enum phema_status search_fit(struct fit *fit, const struct labels *labels,
                             const struct search *search, enum comparison comparison,
                             struct phema_error *err)
{
    struct phema_error ignored = {0};
    enum phema_status status =
        fit_labels(fit, labels, search->sample, search->schedule, comparison, &ignored);
    if (status == PHEMA_ERR_RESOURCE)
        return phema_fail(err, status, "%s", ignored.message);
    return PHEMA_OK;
}

static enum phema_status fails_first_look(bool *fails, const struct search *search,
                                          struct phema_error *err)
{
    const struct labels *tried = &search->tried;
    size_t n = tried->n < FIRST_LOOK ? tried->n : FIRST_LOOK, first = tried->n - n;
    struct fit fit;
    struct labels newest = {tried->profiles + first, tried->rows + first, n};
    enum phema_status status = search_fit(&fit, &newest, search, COMPARE_ROUGHLY, err);
    *fails = !status && (fit.max_z > ROUGH_Z || fit.median_z > WRONG_MEDIAN_Z);
    fit_clear(&fit);
    return status;
}

enum phema_status search_rate(double *max_z, double *likelihood, struct search *search,
                              struct phema_error *err)
{
    *max_z = HUGE_VAL;
    *likelihood = -HUGE_VAL;
    bool fails = search->tried.n < 3;
    enum phema_status status = fails ? PHEMA_OK : fails_first_look(&fails, search, err);
    if (status || fails)
        return status;
    struct fit fit;
    status = search_fit(&fit, &search->tried, search, COMPARE_SNAPSHOTS, err);
    if (!status && fit.max_z <= EXPLAINED_Z && fit.median_z <= EXPLAINED_MEDIAN_Z) {
        *max_z = fit.max_z;
        if (fit.median_z >= EXPLAINED_LEAST_MEDIAN_Z)
            *likelihood = fit.likelihood;
    }
    fit_clear(&fit);
    return status;
}

enum phema_status search_try(bool *is_better, struct search *search, struct phema_error *err)
{
    double max_z, likelihood;
    bool is_by_z = isnan(search->likelihood);
    enum phema_status status = search_rate(&max_z, &likelihood, search, err);
    *is_better = !status && (is_by_z ? max_z < CLEARLY * search->best
                                     : likelihood > search->likelihood + LIKELIER);
    if (*is_better && is_by_z)
        search->best = max_z;
    else if (*is_better)
        search->likelihood = likelihood;
    return status;
}

struct phema_strbuf *search_explain(struct search *search, size_t suspect)
{
    phema_strbuf_clear(&search->text);
    search->suspect = suspect;
    search->setting = PHEMA_SET_NONE;
    return &search->text;
}

void search_set_remedy(struct search *search, enum phema_setting setting, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(search->value, sizeof(search->value), format, args);
    va_end(args);
    search->setting =
        length >= 0 && (size_t)length < sizeof(search->value) ? setting : PHEMA_SET_NONE;
}
