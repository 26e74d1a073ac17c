// SPDX-License-Identifier: Apache-2.0
/* series_events.c - labels that fit where the motion of the parameters jumps between two times. The
 * fit of a motion expects it to change evenly, and takes a loss spike or a step of the learning
 * rate for a wrong label where times are few. */
#include "series_events.h"

#define N_BEHIND ((size_t)4) /* times behind the jump: the fit looks at the newest most closely */

/* Of learning rates, so that the motion is 100 times as fast or as slow. Spikes fit rises, as well:
 * nearly all of the motion of their interval lies behind a place. */
#define RISE 10.0
#define DROP 0.1

/* Parts of the interval that lie before the jump. Motion is even within eighths. */
static const double places[] = {0, 0.125, 0.25, 0.5, 0.75, 0.875};

/* Fits the given labels near a group under a motion that jumps before it. */
static enum phema_status try_jump(bool *is_found, struct search *search, size_t g, double at,
                                  double rate, struct phema_error *err)
{
    struct phema_schedule *jump = NULL;
    enum phema_status status = phema_schedule_make_jump(&jump, at, rate, err);
    if (status)
        return status;
    size_t end = g + N_BEHIND < search->n_groups ? g + N_BEHIND : search->n_groups;
    search_reset(search, search_near_begin(g), end);
    search->schedule = jump;
    struct fit fit;
    status = search_fit(&fit, &search->tried, search, COMPARE_SNAPSHOTS, err);
    search->schedule = NULL;
    phema_schedule_free(jump);
    *is_found = !status && fit.max_z <= EXPLAINED_Z && fit.median_z <= EXPLAINED_MEDIAN_Z;
    fit_clear(&fit);
    return status;
}

static enum phema_status try_interval(bool *is_found, struct search *search, size_t g,
                                      struct phema_error *err)
{
    const struct phema_snapshot *snapshots = search->series->snapshots;
    double begin = g ? snapshots[search->group[g] - 1].time : 0;
    double length = snapshots[search->group[g]].time - begin;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && !*is_found && i < ARRAY_LEN(places); i++) {
        double at = begin + places[i] * length;
        if (!(at > 0))
            continue;
        status = try_jump(is_found, search, g, at, RISE, err);
        if (!status && !*is_found)
            status = try_jump(is_found, search, g, at, DROP, err);
    }
    return status;
}

/* Whether all snapshots fit that a jump before a group would not be fitted to. */
static bool fits_elsewhere(const struct search *search, const struct fit *fit, size_t g)
{
    size_t first = search->group[search_near_begin(g)];
    size_t end = search->group[search_near_end(search, g)];
    for (size_t k = 0; k < search->series->n; k++)
        if (fit->z[k] > EVENT_Z && (k < first || k >= end))
            return false;
    return true;
}

void search_explain_event(struct search *search, size_t g, size_t suspect)
{
    const struct phema_snapshot *snapshots = search->series->snapshots;
    struct phema_strbuf *text = search_explain(search, suspect);
    if (g == 0)
        phema_strbuf_printf(text, "something happened before time %.10g", snapshots[0].named_time);
    else
        phema_strbuf_printf(text, "something happened between times %.10g and %.10g",
                            snapshots[search->group[g] - 1].named_time,
                            snapshots[search->group[g]].named_time);
}

enum phema_status search_events(bool *is_found, struct search *search, const struct fit *fit,
                                struct phema_error *err)
{
    *is_found = false;
    if (search->schedule || fit->median_z > EXPLAINED_MEDIAN_Z)
        return PHEMA_OK;
    size_t worst = find_worst(fit->z, search->series->n);
    size_t at = search_group_of(search, worst), first = at ? at - 1 : 0;
    enum phema_status status = PHEMA_OK;
    for (size_t g = first; !status && !*is_found && g <= at + 1 && g < search->n_groups; g++) {
        if (!fits_elsewhere(search, fit, g))
            continue;
        status = try_interval(is_found, search, g, err);
        if (*is_found)
            search_explain_event(search, g, worst);
    }
    return status;
}
