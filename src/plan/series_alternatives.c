// SPDX-License-Identifier: Apache-2.0
/* series_alternatives.c - hypotheses about all labels of a series: times that are all too early or
 * too late, a reset when the training was resumed, another setting of the trainer. */
#include "series_hypotheses.h"

#include <math.h>
#include <stdlib.h>

#include "phema/arena.h"
#include "phema/number.h"
#include "phema/setting.h"
#include "phema/sort.h"

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
        out->is_fit = fit_explains(&fit);
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

/* ---- Resets ---- */

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
        guess->is_fit = fit_explains(&fit);
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

/* ---- Settings of trainers ---- */

/* The given labels of the newest snapshots, with another profile where it was assumed. */
static enum phema_status set_labels(struct search *search, struct phema_spec *spec,
                                    struct phema_error *err)
{
    struct labels *tried = &search->tried;
    search_reset(search, search_newest_begin(search), search->n_groups);
    for (size_t k = 0; k < tried->n; k++) {
        const struct phema_snapshot *snapshot = &search->series->snapshots[tried->rows[k]];
        if (!snapshot->is_assumed)
            continue;
        enum phema_status status =
            phema_spec_profile(&tried->profiles[k], spec, snapshot->profile.t, err);
        if (status)
            return status;
        tried->profiles[k].label = snapshot->label;
    }
    return PHEMA_OK;
}

/* The best setting so far. Several near ones may fit: the likeliest is meant. */
struct best {
    const char *text; /* NULL: none fits */
    double max_z, likelihood;
};

static enum phema_status try_spec(struct best *best, struct search *search,
                                  struct phema_specs *specs, const char *text,
                                  struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    struct phema_error impossible = {0};
    enum phema_status status = phema_specs_find(&spec, specs, text, &impossible);
    if (!status)
        status = set_labels(search, spec, &impossible);
    if (status == PHEMA_ERR_RESOURCE)
        return phema_fail_memory(err);
    if (status) /* not at these times */
        return PHEMA_OK;
    double max_z = 0, likelihood = 0;
    status = search_rate(&max_z, &likelihood, search, err);
    if (status || !isfinite(max_z))
        return status;
    if (!best->text || likelihood > best->likelihood)
        *best = (struct best){text, max_z, likelihood};
    return PHEMA_OK;
}

enum phema_status search_assumption(struct search *search, struct phema_error *err)
{
    const char *const *usual = search->series->usual;
    struct phema_arena arena = {0};
    struct phema_specs specs = {.arena = &arena};
    struct best best = {.text = NULL};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; usual && usual[i] && !status; i++)
        status = try_spec(&best, search, &specs, usual[i], err);
    if (!status && best.text) {
        search->best = best.max_z;
        phema_strbuf_printf(search_explain(search, SIZE_MAX), "of the usual settings %s fits best",
                            best.text);
        search_set_remedy(search, PHEMA_SET_INPUT_PROFILE, "%s", best.text);
    }
    phema_arena_clear(&arena);
    return status;
}
