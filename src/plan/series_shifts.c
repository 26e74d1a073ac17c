// SPDX-License-Identifier: Apache-2.0
/* series_shifts.c - labels that are all too early, or all too late. A power function stretches with
 * its time, so that two of one time show how late it is. Leave-one-out hardly sees it: the motion
 * that is fitted makes up for the rest. */
#include "series_shifts.h"

#include <math.h>
#include <stdlib.h>

#include "phema/number.h"
#include "phema/setting.h"
#include "phema/sort.h"

#define LEAST_TIMES ((size_t)4)
#define MOST        ((size_t)64) /* snapshots: a fit of more takes too long */

/* Intervals from the beginning to the first time, at most. Of an average that began long before the
 * first snapshot, too little is seen. */
#define MOST_BEFORE 2.5

/* Of likelihood an element, in favour of other times. Earlier ones are possible only where the
 * first time may have been deleted, and gain up to 0.9 there by a loss spike that no snapshot
 * contradicts. */
#define MARGIN_LATER   0.2
#define MARGIN_EARLIER 1.0

#define MOST_INTERVALS 4 /* that times are late or early by */

/* The times are really by so much later. */
struct shift {
    double by;
    double max_z, likelihood; /* likelihood -HUGE_VAL: not comparable */
    bool is_fit;
};

/* Two power functions end at every time, each kept at every step since the beginning. */
static bool shows_times(const struct search *search)
{
    const struct phema_snapshot *snapshots = search->series->snapshots;
    if (search->n_groups < LEAST_TIMES || search->series->n > MOST)
        return false;
    for (size_t g = 0; g < search->n_groups; g++) {
        size_t first = search->group[g], last = search->group[g + 1] - 1;
        for (size_t k = first; k <= last; k++) {
            const struct phema_profile *profile = &snapshots[k].profile;
            if (profile->shape != PHEMA_SHAPE_POWER || profile->update_every > 1 ||
                profile->reset > 0)
                return false;
        }
        if (snapshots[first].profile.gamma == snapshots[last].profile.gamma)
            return false;
    }
    return true;
}

/* The median time between two neighbours; NaN: no memory. */
static double find_interval(const struct search *search)
{
    size_t n = search->n_groups - 1;
    double *intervals = calloc(n, sizeof(*intervals));
    if (!intervals)
        return PHEMA_UNKNOWN;
    for (size_t g = 0; g < n; g++)
        intervals[g] = search->series->snapshots[search->group[g + 1]].time -
                       search->series->snapshots[search->group[g]].time;
    qsort(intervals, n, sizeof(*intervals), phema_compare_doubles);
    double interval = intervals[n / 2];
    free(intervals);
    return interval;
}

static enum phema_status rate(struct shift *out, struct search *search, double by,
                              enum comparison comparison, struct phema_error *err)
{
    *out = (struct shift){.by = by, .likelihood = -HUGE_VAL};
    search_reset(search, 0, search->n_groups);
    struct labels *tried = &search->tried;
    for (size_t k = 0; k < tried->n; k++)
        tried->profiles[k].t += by;
    if (!(tried->profiles[0].t > 0))
        return PHEMA_OK;
    struct fit fit;
    enum phema_status status = by != 0 ? search_fit(&fit, tried, search, comparison, err)
                                       : fitting_fit(&fit, &search->fitting, comparison, err);
    if (!status && !isnan(fit.likelihood)) {
        out->max_z = fit.max_z;
        out->likelihood = fit.likelihood;
        out->is_fit = fit.max_z <= EXPLAINED_Z && fit.median_z <= EXPLAINED_MEDIAN_Z;
    }
    fit_clear(&fit);
    return status;
}

/* The number of intervals that is the likeliest; best: one of them. */
static enum phema_status refine(struct shift *best, struct search *search, struct phema_error *err)
{
    double interval = best->by;
    for (int i = 2; i <= MOST_INTERVALS; i++) {
        struct shift shift;
        enum phema_status status = rate(&shift, search, i * interval, COMPARE_SNAPSHOTS, err);
        if (status || !shift.is_fit || !(shift.likelihood > best->likelihood))
            return status;
        *best = shift;
    }
    return PHEMA_OK;
}

/* Motion that is even within the intervals tells quickly where there is nothing to find. */
static enum phema_status look(double *by, struct search *search, struct phema_error *err)
{
    double interval = find_interval(search);
    if (isnan(interval))
        return phema_fail_memory(err);
    if (search->series->snapshots[0].time > MOST_BEFORE * interval)
        return PHEMA_OK;
    struct shift given, other;
    enum phema_status status = rate(&given, search, 0, COMPARE_LIKELIHOODS, err);
    if (!(given.likelihood > -HUGE_VAL))
        return status;
    for (int sign = -1; !status && sign <= 1; sign += 2) {
        status = rate(&other, search, sign * interval, COMPARE_LIKELIHOODS, err);
        if (other.likelihood > given.likelihood) {
            given.likelihood = other.likelihood;
            *by = other.by;
        }
    }
    return status;
}

static enum phema_status find_shift(struct shift *best, struct search *search, double by,
                                    struct phema_error *err)
{
    struct shift given;
    enum phema_status status = rate(&given, search, 0, COMPARE_SNAPSHOTS, err);
    if (!status)
        status = rate(best, search, by, COMPARE_SNAPSHOTS, err);
    double margin = by > 0 ? MARGIN_LATER : MARGIN_EARLIER;
    if (!status && best->is_fit && best->likelihood > given.likelihood + margin)
        return refine(best, search, err);
    best->by = 0;
    return status;
}

enum phema_status search_shifts(bool *is_found, struct search *search, struct phema_error *err)
{
    *is_found = false;
    if (!shows_times(search))
        return PHEMA_OK;
    struct shift best = {0};
    double by = 0;
    enum phema_status status = look(&by, search, err);
    if (!status && by != 0)
        status = find_shift(&best, search, by, err);
    if (status || best.by == 0)
        return status;
    *is_found = true;
    search->best = best.max_z;
    const struct phema_series *series = search->series;
    const struct phema_snapshot *first = series->snapshots, *newest = first + series->n - 1;
    double scale = (newest->named_time - first->named_time) / (newest->time - first->time);
    double later = best.by * scale;
    struct phema_name_buffer amount, offset;
    phema_strbuf_printf(search_explain(search, SIZE_MAX),
                        "the snapshots fit times that are %s by about %s; if that is so, give %s%s",
                        later > 0 ? "later" : "earlier", phema_number_format(&amount, fabs(later)),
                        phema_setting_equals(PHEMA_SET_TIME_OFFSET),
                        phema_number_format(&offset, series->time_offset + later));
    search_set_remedy(search, PHEMA_SET_TIME_OFFSET, "%s", offset.text);
    return PHEMA_OK;
}
