// SPDX-License-Identifier: Apache-2.0
/* series_checks.c - whether snapshots are what their labels say, and what explains it if not. */
#include "series_checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series_hypotheses.h"

/* ---- Events ---- */

/* Labels may fit where the motion of the parameters jumps between two times. The fit of a motion
 * expects it to change evenly, and takes a loss spike or a step of the learning rate for a wrong
 * label where times are few. */

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
    *is_found = !status && fit_explains(&fit);
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

/* Begins the sentence: something happened before a group. */
static void search_explain_event(struct search *search, size_t g, size_t suspect)
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

/* Whether the labels are true if the motion of the parameters jumps between two times; explains
 * the series by that. fit: of the given labels. Where the learning rate is known, jumps are not
 * looked for. PHEMA_ERR_RESOURCE */
static enum phema_status search_events(bool *is_found, struct search *search, const struct fit *fit,
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

/* ---- The verdict ---- */

/* The least median of honest series is 0.87. Only where rounding exceeds motion it is smaller.
 * Averages labelled as raw, or as shorter ones, have 0.2 to 0.8. */
#define SMOOTH_MEDIAN_Z 0.5

/* With fewer elements, z itself scatters: by 1 / sqrt(2 elements) and more. */
#define LEAST_ELEMENTS 64

static enum phema_status find_groups(struct search *search, struct phema_error *err)
{
    const struct phema_series *series = search->series;
    search->group = calloc(series->n + 1, sizeof(*search->group));
    if (!search->group || !labels_alloc(&search->tried, series->n) ||
        !labels_alloc(&search->given, series->n))
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++)
        if (k == 0 || series->snapshots[k].time != series->snapshots[k - 1].time)
            search->group[search->n_groups++] = k;
    search->group[search->n_groups] = series->n;
    search->given.n = series->n;
    for (size_t k = 0; k < series->n; k++) {
        search->given.profiles[k] = series->snapshots[k].profile;
        search->given.rows[k] = k;
    }
    return PHEMA_OK;
}

static enum phema_status describe(struct search *search, struct phema_error *err)
{
    struct phema_series_checks *checks = search->checks;
    if (!search->text.size) {
        size_t worst = find_worst(checks->z, search->series->n);
        phema_strbuf_printf(search_explain(search, SIZE_MAX),
                            "'%s' is %.3g times as far from what the others predict as they are "
                            "from each other",
                            search_label(search, worst), checks->max_z);
    }
    checks->suspect = search->suspect;
    checks->setting = search->setting;
    memcpy(checks->value, search->value, sizeof(checks->value));
    enum phema_status status = phema_strbuf_check(&search->text, err);
    if (status)
        return status;
    checks->reason = search->text.data;
    search->text = (struct phema_strbuf){0};
    return PHEMA_OK;
}

/* Something happened in the training, before the snapshot with the largest z if nothing else is
 * known. */
static enum phema_status describe_event(struct search *search, struct phema_error *err)
{
    size_t worst = find_worst(search->checks->z, search->series->n),
           g = search_group_of(search, worst);
    if (!search->text.size)
        search_explain_event(search, g, worst);
    phema_strbuf_printf(&search->text,
                        ", a loss spike perhaps: '%s' is %.2g times as far from what the "
                        "others predict as they are from each other",
                        search_label(search, worst), search->checks->max_z);
    return describe(search, err);
}

/* A snapshot most of whose tensors are off is of another training, or has another label. */
static bool has_damaged_tensor(const struct phema_tensor_outlier *outlier)
{
    return outlier->ratio > PHEMA_TENSOR_OUTLIER && outlier->n_outliers * 2 <= outlier->n_compared;
}

static enum phema_status describe_damage(struct search *search,
                                         const struct phema_tensor_outlier *outlier,
                                         struct phema_error *err)
{
    const struct phema_tensor *tensor = &search->series->tensors[outlier->tensor].tensor;
    struct phema_name_buffer shown;
    struct phema_strbuf *text = search_explain(search, outlier->snapshot);
    size_t n_others = outlier->n_outliers - 1;
    phema_strbuf_printf(text, "'%s': tensor '%s'", search_label(search, outlier->snapshot),
                        phema_name_escape(&shown, tensor->name, tensor->name_size));
    if (n_others)
        phema_strbuf_printf(text, " and %zu other%s are", n_others, n_others == 1 ? "" : "s");
    phema_strbuf_printf(text, "%s not what the other snapshots predict: zeroed or damaged",
                        n_others ? "" : " is");
    return describe(search, err);
}

/* Of labels that no snapshot contradicts for itself. */
static enum phema_status judge_likelihood(struct search *search, const struct fit *fit,
                                          struct phema_error *err)
{
    struct phema_series_checks *checks = search->checks;
    bool is_shifted = false;
    enum phema_status status =
        fit->median_z < SMOOTH_MEDIAN_Z ? search_longer(search, err) : PHEMA_OK;
    if (!status && !search->text.size)
        status = search_shifts(&is_shifted, search, err);
    if (status)
        return status;
    if (is_shifted)
        checks->verdict = PHEMA_SERIES_WRONG;
    else if (search->text.size || fit->max_z > EVENT_Z)
        checks->verdict = PHEMA_SERIES_DOUBTFUL;
    if (search->text.size)
        return describe(search, err);
    return fit->max_z > EVENT_Z ? describe_event(search, err) : PHEMA_OK;
}

static enum phema_status judge(struct search *search, const struct fit *fit,
                               struct phema_error *err)
{
    struct phema_series_checks *checks = search->checks;
    checks->max_z = fit->max_z;
    checks->median_z = fit->median_z;
    memcpy(checks->z, fit->z, search->series->n * sizeof(*checks->z));
    if (isnan(fit->max_z))
        return PHEMA_OK;
    checks->verdict = PHEMA_SERIES_FITS;
    if (has_damaged_tensor(&fit->outlier)) {
        checks->verdict = PHEMA_SERIES_WRONG;
        return describe_damage(search, &fit->outlier, err);
    }
    bool is_loud = fit_is_wrong(fit) || fit->max_z > EVENT_Z, is_event = false;
    enum phema_status status = is_loud ? search_events(&is_event, search, fit, err) : PHEMA_OK;
    if (status)
        return status;
    if (is_event) {
        checks->verdict = PHEMA_SERIES_DOUBTFUL;
        return describe_event(search, err);
    }
    if (fit_is_wrong(fit)) {
        checks->verdict = PHEMA_SERIES_WRONG;
        search->best = fit->max_z;
        status = search_labels(search, fit, err);
        return status ? status : describe(search, err);
    }
    return judge_likelihood(search, fit, err);
}

PHEMA_FALLIBLE series_checks_make(struct phema_series_checks *checks, struct phema_motion *motion,
                                  const struct phema_series *series,
                                  const struct phema_schedule *schedule,
                                  const struct phema_sample *sample, bool is_checked,
                                  struct phema_error *err)
{
    struct search search = {.series = series,
                            .sample = sample,
                            .schedule = schedule,
                            .checks = checks,
                            .likelihood = PHEMA_UNKNOWN};
    struct fit fit = {0};
    bool is_compared = is_checked && sample->n_elems >= LEAST_ELEMENTS;
    enum comparison comparison = is_compared ? COMPARE_AND_LEAVE_OUT : COMPARE_NOTHING;
    checks->z = calloc(series->n + 1, sizeof(*checks->z));
    enum phema_status status = checks->z ? find_groups(&search, err) : phema_fail_memory(err);
    if (!status)
        status = fitting_open(&search.fitting, &search.given, sample, schedule, false, err);
    if (!status)
        status = fitting_fit(&fit, &search.fitting, comparison, err);
    if (!status && is_compared)
        status = judge(&search, &fit, err);
    if (!status && is_compared && checks->verdict != PHEMA_SERIES_WRONG) {
        fit_clear(&fit); /* true labels may have the likeliest motion */
        status = fitting_fit(&fit, &search.fitting, COMPARE_NOTHING, err);
    }
    if (!status) {
        *motion = fit.motion;
        fit.motion = (struct phema_motion){0};
    }
    fit_clear(&fit);
    fitting_close(&search.fitting);
    labels_clear(&search.given);
    labels_clear(&search.tried);
    free(search.group);
    phema_strbuf_clear(&search.text);
    return status;
}

void phema_series_checks_clear(struct phema_series_checks *checks)
{
    free(checks->z);
    free(checks->reason);
    *checks = (struct phema_series_checks){.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
}
