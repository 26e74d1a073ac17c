// SPDX-License-Identifier: Apache-2.0
/* series_resets.c - averages that were reset when a training was resumed. */
#include "series_resets.h"

#include <math.h>

#include "phema/number.h"
#include "phema/setting.h"

#define N_PLACES 8 /* tried between two times; the best is then refined */

/* Groups from the first snapshot on that does not fit, where the onset is looked for: the averages
 * before it suffer, too. */
#define MOST_GROUPS 6

struct reset_guess {
    double named_time, max_z, likelihood;
    bool restarts_count;
    bool is_fit;
};

/* Rates the labels near a group where the averages were reset at a time before it. */
static enum phema_status rate_reset(struct reset_guess *guess, struct search *search, size_t g,
                                    struct phema_error *err)
{
    const struct phema_reset assumed = {phema_series_clock(search->series, guess->named_time),
                                        guess->restarts_count};
    struct phema_error ignored;
    guess->likelihood = -HUGE_VAL;
    search_reset(search, search_near_begin(g), search_near_end(search, g));
    for (size_t k = 0; k < search->tried.n; k++) {
        struct phema_profile *profile = &search->tried.profiles[k];
        if (profile->reset < assumed.at && phema_profile_reset(profile, &assumed, 1, &ignored))
            return PHEMA_OK;
    }
    if (!(assumed.at > 0) || search->tried.n < 3)
        return PHEMA_OK;
    struct fit fit;
    enum phema_status status = search_fit(&fit, &search->tried, search, COMPARE_ROUGHLY, err);
    if (!status && !isnan(fit.max_z)) {
        guess->max_z = fit.max_z;
        guess->likelihood = fit.likelihood;
        guess->is_fit = fit.max_z <= EXPLAINED_Z && fit.median_z <= EXPLAINED_MEDIAN_Z;
    }
    fit_clear(&fit);
    return status;
}

static enum phema_status try_place(struct reset_guess *best, double named_time,
                                   struct search *search, size_t g, struct phema_error *err)
{
    struct reset_guess guess = {.named_time = named_time, .restarts_count = best->restarts_count};
    enum phema_status status = rate_reset(&guess, search, g, err);
    if (!status && guess.likelihood > best->likelihood)
        *best = guess;
    return status;
}

/* Between the time before a group, whose snapshots are from before the reset, and the group. Places
 * are whole numbers where there are enough. */
static enum phema_status place_reset(struct reset_guess *best, struct search *search, size_t g,
                                     struct phema_error *err)
{
    const struct phema_snapshot *snapshots = search->series->snapshots;
    double begin = g ? snapshots[search->group[g] - 1].named_time : 0;
    double end = snapshots[search->group[g]].named_time;
    double step = (end - begin) / N_PLACES, least = step >= 1 ? 1 : step;
    enum phema_status status = PHEMA_OK;
    for (int i = 0; !status && i < N_PLACES; i++)
        status = try_place(best, begin + floor(i * step / least) * least, search, g, err);
    while (!status && step > least && isfinite(best->likelihood)) {
        step = fmax(floor(step / 2), least);
        double middle = best->named_time;
        if (middle - step >= begin)
            status = try_place(best, middle - step, search, g, err);
        if (!status && middle + step < end)
            status = try_place(best, middle + step, search, g, err);
    }
    return status;
}

/* The averages became copies of the parameters before a group. */
static enum phema_status try_reset(struct search *search, size_t g, struct phema_error *err)
{
    struct reset_guess best = {.likelihood = -HUGE_VAL};
    struct reset_guess counted = {.likelihood = -HUGE_VAL, .restarts_count = true};
    enum phema_status status = place_reset(&best, search, g, err);
    if (!status)
        status = place_reset(&counted, search, g, err);
    if (counted.likelihood > best.likelihood)
        best = counted;
    if (status || !best.is_fit || !(best.max_z < search->best))
        return status;
    search->best = best.max_z;
    struct phema_name_buffer at;
    (void)phema_number_format(&at, best.named_time);
    phema_strbuf_printf(search_explain(search, SIZE_MAX),
                        "the averages were reset near %s; if that is so, give %s%s%s", at.text,
                        phema_setting_equals(PHEMA_SET_RESET_AT), at.text,
                        best.restarts_count ? ",counter" : "");
    search_set_remedy(search, PHEMA_SET_RESET_AT, "%s%s", at.text,
                      best.restarts_count ? ",counter" : "");
    return PHEMA_OK;
}

/* The first group that does not fit the times before it; n_groups: none. */
static enum phema_status find_onset(size_t *onset, struct search *search, const struct fit *fit,
                                    struct phema_error *err)
{
    size_t first = 0;
    while (first < search->series->n && !(fit->z[first] > EVENT_Z))
        first++;
    *onset = search->n_groups;
    size_t begin = first < search->series->n ? search_group_of(search, first) : search->n_groups;
    for (size_t g = begin; g < search->n_groups && g < begin + MOST_GROUPS; g++) {
        double max_z = 0, ignored;
        search_reset(search, search_near_begin(g), g + 1);
        enum phema_status status =
            search->tried.n < 3 ? PHEMA_OK : search_rate(&max_z, &ignored, search, err);
        if (status)
            return status;
        if (isfinite(max_z))
            continue;
        *onset = g;
        break;
    }
    return PHEMA_OK;
}

enum phema_status search_resets(struct search *search, const struct fit *fit,
                                struct phema_error *err)
{
    size_t g = 0;
    enum phema_status status = find_onset(&g, search, fit, err);
    return status || g == search->n_groups ? status : try_reset(search, g, err);
}
