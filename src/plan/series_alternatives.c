// SPDX-License-Identifier: Apache-2.0
/* series_alternatives.c - hypotheses about all labels of a series: times that are all too early or
 * too late, a reset when the training was resumed, another setting of the trainer. */
#include "series_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "phema/setting.h"
#include "phema/sort.h"

static const struct fit not_comparable = {
    .max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN, .likelihood = -HUGE_VAL};

/* ---- Times that are all too early or too late ---- */

/* A power function stretches with its time, so that two of one time show how late it is.
 * Leave-one-out hardly sees it: the motion that is fitted makes up for the rest. */

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

/* Two power functions end at every time, each kept at every step since the beginning. */
static bool shows_times(const struct search *search)
{
    const struct phema_snapshot *snapshots = search->snapshots;
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
static double find_interval(struct search *search)
{
    size_t n = search->n_groups - 1;
    double *intervals = phema_arena_array(&search->memory, n, sizeof(*intervals));
    if (!intervals) {
        search->status = phema_fail_memory(search->err);
        return PHEMA_UNKNOWN;
    }
    for (size_t g = 0; g < n; g++)
        intervals[g] =
            search->snapshots[search->group[g + 1]].time - search->snapshots[search->group[g]].time;
    qsort(intervals, n, sizeof(*intervals), phema_compare_doubles);
    return intervals[n / 2];
}

/* The times are really by so much later. */
static struct fit rate_shift(struct search *search, double by, enum comparison comparison)
{
    struct labels *tried = &search->tried;
    (void)search_reset(search, 0, search->n_groups);
    for (size_t k = 0; k < tried->n; k++)
        tried->profiles[k].t += by;
    if (!(tried->profiles[0].t > 0))
        return not_comparable;
    struct fit fit = search_fit(search, by != 0 ? tried : &search->given, comparison);
    return isnan(fit.likelihood) ? not_comparable : fit;
}

/* Motion that is even within the intervals tells quickly where there is nothing to find: 0. */
static double find_direction(struct search *search)
{
    double interval = find_interval(search), by = 0;
    if (!(search->snapshots[0].time <= MOST_BEFORE * interval))
        return 0;
    double best = rate_shift(search, 0, COMPARE_LIKELIHOODS).likelihood;
    if (!(best > -HUGE_VAL))
        return 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        double likelihood = rate_shift(search, sign * interval, COMPARE_LIKELIHOODS).likelihood;
        if (likelihood > best) {
            best = likelihood;
            by = sign * interval;
        }
    }
    return by;
}

/* Intervals that the times are late by; 0: none. direction: one of them, late or early */
static int count_intervals(struct fit *best, struct search *search, double direction)
{
    struct fit given = rate_shift(search, 0, COMPARE_SNAPSHOTS);
    *best = rate_shift(search, direction, COMPARE_SNAPSHOTS);
    double margin = direction > 0 ? MARGIN_LATER : MARGIN_EARLIER;
    if (!fit_explains(best) || !(best->likelihood > given.likelihood + margin))
        return 0;
    int n = 1;
    for (; n < MOST_INTERVALS; n++) { /* the likeliest number */
        struct fit fit = rate_shift(search, (n + 1) * direction, COMPARE_SNAPSHOTS);
        if (!fit_explains(&fit) || !(fit.likelihood > best->likelihood))
            break;
        *best = fit;
    }
    return n;
}

bool search_shifts(struct search *search)
{
    struct fit best = {0};
    double direction = shows_times(search) ? find_direction(search) : 0;
    double by = direction != 0 ? count_intervals(&best, search, direction) * direction : 0;
    if (by == 0)
        return false;
    search->best = best.max_z;
    (void)rate_shift(search, by, COMPARE_LIKELIHOODS); /* what is explained */
    const struct phema_series *series = search->series;
    const struct phema_snapshot *first = series->snapshots, *newest = first + series->n - 1;
    double scale = (newest->named_time - first->named_time) / (newest->time - first->time);
    double later = by * scale;
    struct phema_name_buffer amount, offset;
    phema_strbuf_printf(search_explain(search, SIZE_MAX),
                        "the snapshots fit times that are %s by about %s",
                        later > 0 ? "later" : "earlier", phema_number_format(&amount, fabs(later)));
    search_suggest(search, PHEMA_SET_TIME_OFFSET,
                   phema_number_format(&offset, series->time_offset + later));
    return true;
}

/* ---- Resets ---- */

#define N_PLACES 8 /* tried between two times; the best is then refined */

/* Groups from the first snapshot on that does not fit, where the onset is looked for: the averages
 * before it suffer, too. */
#define MOST_GROUPS 6

struct reset_guess {
    double named_time;
    bool restarts_count;
    struct fit fit;
};

/* Rates the labels near a group where the averages were reset at a time before it. */
static struct fit rate_reset(struct search *search, size_t g, double named_time,
                             bool restarts_count)
{
    const struct phema_reset assumed = {phema_series_clock(search->series, named_time),
                                        restarts_count};
    struct phema_error ignored;
    (void)search_reset_near(search, g);
    for (size_t k = 0; k < search->tried.n; k++) {
        struct phema_profile *profile = &search->tried.profiles[k];
        if (profile->reset < assumed.at && phema_profile_reset(profile, &assumed, 1, &ignored))
            return not_comparable;
    }
    if (!(assumed.at > 0) || search->tried.n < 3)
        return not_comparable;
    struct fit fit = search_fit(search, &search->tried, COMPARE_ROUGHLY);
    return isnan(fit.max_z) ? not_comparable : fit;
}

static void try_place(struct reset_guess *best, double named_time, struct search *search, size_t g)
{
    struct fit fit = rate_reset(search, g, named_time, best->restarts_count);
    if (fit.likelihood > best->fit.likelihood)
        *best = (struct reset_guess){named_time, best->restarts_count, fit};
}

/* Between the time before a group, whose snapshots are from before the reset, and the group. Places
 * are whole numbers where there are enough. */
static struct reset_guess place_reset(struct search *search, size_t g, bool restarts_count)
{
    struct reset_guess best = {.restarts_count = restarts_count, .fit = not_comparable};
    double begin = g ? search->snapshots[search->group[g] - 1].named_time : 0;
    double end = search->snapshots[search->group[g]].named_time;
    double step = (end - begin) / N_PLACES, least = step >= 1 ? 1 : step;
    for (int i = 0; i < N_PLACES; i++)
        try_place(&best, begin + floor(i * step / least) * least, search, g);
    while (!search->status && step > least && isfinite(best.fit.likelihood)) {
        step = fmax(floor(step / 2), least);
        double middle = best.named_time;
        if (middle - step >= begin)
            try_place(&best, middle - step, search, g);
        if (middle + step < end)
            try_place(&best, middle + step, search, g);
    }
    return best;
}

/* The averages became copies of the parameters before a group. */
static void try_reset(struct search *search, size_t g)
{
    struct reset_guess best = place_reset(search, g, false);
    struct reset_guess counted = place_reset(search, g, true);
    if (counted.fit.likelihood > best.fit.likelihood)
        best = counted;
    if (!fit_explains(&best.fit) || !(best.fit.max_z < search->best))
        return;
    search->best = best.fit.max_z;
    (void)rate_reset(search, g, best.named_time, best.restarts_count); /* what is explained */
    struct phema_name_buffer at;
    char value[sizeof(at.text) + 8];
    (void)phema_number_format(&at, best.named_time);
    (void)snprintf(value, sizeof(value), "%s%s", at.text, best.restarts_count ? ",counter" : "");
    phema_strbuf_printf(search_explain(search, SIZE_MAX), "the averages were reset near %s",
                        at.text);
    search_suggest(search, PHEMA_SET_RESET_AT, value);
}

void search_resets(struct search *search, const struct fit *fit)
{
    size_t first = 0;
    while (first < search->series->n && !(fit->z[first] > EVENT_Z))
        first++;
    if (first == search->series->n)
        return;
    size_t begin = search_group_of(search, first);
    for (size_t g = begin; g < search->n_groups && g < begin + MOST_GROUPS; g++) {
        struct fit fit_until;
        (void)search_reset(search, search_near_begin(g), g + 1);
        if (search->tried.n < 3 || search_rate(&fit_until, search))
            continue;
        try_reset(search, g);
        return;
    }
}

/* ---- Settings of trainers ---- */

/* Whether a setting fits. */
static bool try_spec(struct fit *fit, struct search *search, struct phema_specs *specs,
                     const char *text)
{
    struct phema_spec *spec = NULL;
    struct phema_error impossible = {0};
    enum phema_status status = phema_specs_find(&spec, specs, text, &impossible);
    search_reset_newest(search, SEARCH_NEWEST);
    if (!status)
        status = search_set_spec(search, spec, true, &impossible);
    if (status == PHEMA_ERR_RESOURCE)
        search->status = phema_fail_memory(search->err);
    return !status && search_rate(fit, search); /* some are not possible at these times */
}

void search_assumption(struct search *search)
{
    const char *const *usual = search->series->usual, *best = NULL;
    struct phema_specs specs = {.arena = &search->memory};
    struct fit fit, best_fit;
    for (size_t i = 0; usual && usual[i]; i++) {
        /* several near ones may fit: the likeliest is meant */
        if (!try_spec(&fit, search, &specs, usual[i]) ||
            (best && !(fit.likelihood > best_fit.likelihood)))
            continue;
        best = usual[i];
        best_fit = fit;
    }
    if (!best)
        return;
    search->best = best_fit.max_z;
    (void)search_set_newest(search, &specs, best, SEARCH_NEWEST); /* what is explained */
    phema_strbuf_printf(search_explain(search, SIZE_MAX), "of the usual settings %s fits best",
                        best);
    search_set_remedy(search, PHEMA_SET_INPUT_PROFILE, best);
}
