// SPDX-License-Identifier: Apache-2.0
/* series_checks.c - whether snapshots are what their labels say, and what explains it if not. */
#include "series_checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series_events.h"
#include "series_hypotheses.h"
#include "series_shifts.h"

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
