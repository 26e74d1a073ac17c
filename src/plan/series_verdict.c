// SPDX-License-Identifier: Apache-2.0
/* series_verdict.c - whether the snapshots of a series are what their labels say: events that true
 * labels survive, motions that explain them, other labels that explain more. */
#include "series_search.h"

#include <math.h>
#include <string.h>

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
static bool try_jump(struct search *search, size_t g, double at, double rate)
{
    struct phema_schedule *jump = NULL;
    search->status = phema_schedule_make_jump(&jump, at, rate, search->err);
    size_t end = g + N_BEHIND < search->n_groups ? g + N_BEHIND : search->n_groups;
    (void)search_reset(search, search_near_begin(g), end);
    search->schedule = jump;
    struct fit fit = search_fit(search, &search->tried, COMPARE_SNAPSHOTS);
    search->schedule = NULL;
    phema_schedule_free(jump);
    return fit_explains(&fit);
}

static bool try_interval(struct search *search, size_t g)
{
    double begin = g ? search->snapshots[search->group[g] - 1].time : 0;
    double length = search->snapshots[search->group[g]].time - begin;
    for (size_t i = 0; !search->status && i < ARRAY_LEN(places); i++) {
        double at = begin + places[i] * length;
        if (at > 0 &&
            (try_jump(search, g, at, RISE) || (!search->status && try_jump(search, g, at, DROP))))
            return true;
    }
    return false;
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

/* The snapshot with the largest z; SIZE_MAX: all are NaN. */
static size_t find_worst(const struct search *search)
{
    const double *z = search->checks->z;
    size_t worst = SIZE_MAX;
    for (size_t k = 0; k < search->series->n; k++)
        if (!isnan(z[k]) && (worst == SIZE_MAX || z[k] > z[worst]))
            worst = k;
    return worst;
}

/* Begins the sentence: something happened before a group. */
static void explain_event(struct search *search, size_t g)
{
    struct phema_strbuf *text = search_explain(search, find_worst(search));
    if (g == 0)
        phema_strbuf_printf(text, "something happened before time %.10g",
                            search->snapshots[0].named_time);
    else
        phema_strbuf_printf(text, "something happened between times %.10g and %.10g",
                            search->snapshots[search->group[g] - 1].named_time,
                            search->snapshots[search->group[g]].named_time);
}

/* Whether the labels are true if the motion of the parameters jumps between two times; explains
 * the series by that. fit: of the given labels. Where the learning rate is known, jumps are not
 * looked for. */
static bool search_events(struct search *search, const struct fit *fit)
{
    if (search->schedule || fit->median_z > EXPLAINED_MEDIAN_Z)
        return false;
    size_t at = search_group_of(search, find_worst(search));
    for (size_t g = at ? at - 1 : 0; g <= at + 1 && g < search->n_groups; g++)
        if (fits_elsewhere(search, fit, g) && try_interval(search, g)) {
            explain_event(search, g);
            return true;
        }
    return false;
}

/* ---- The verdict ---- */

/* The least median of honest series is 0.87. Only where rounding exceeds motion it is smaller.
 * Averages labelled as raw, or as shorter ones, have 0.2 to 0.8. */
#define SMOOTH_MEDIAN_Z 0.5

static void explain_damage(struct search *search, const struct phema_tensor_outlier *outlier)
{
    const struct phema_tensor *tensor = &search->series->tensors[outlier->tensor].tensor;
    struct phema_name_buffer shown;
    struct phema_strbuf *text = search_explain(search, outlier->snapshot);
    size_t n_others = outlier->n_outliers - 1;
    phema_strbuf_printf(text, "'%s': tensor '%s'", search->snapshots[outlier->snapshot].label,
                        phema_name_escape(&shown, tensor->name, tensor->name_size));
    if (n_others)
        phema_strbuf_printf(text, " and %zu other%s are", n_others, n_others == 1 ? "" : "s");
    phema_strbuf_printf(text, "%s not what the other snapshots predict: zeroed or damaged",
                        n_others ? "" : " is");
}

/* Something happened in the training, before the snapshot with the largest z if nothing else is
 * known. */
static void explain_doubt(struct search *search)
{
    size_t worst = find_worst(search);
    if (!search->text.size)
        explain_event(search, search_group_of(search, worst));
    phema_strbuf_printf(&search->text,
                        ", a loss spike perhaps: '%s' is %.2g times as far from what the "
                        "others predict as they are from each other",
                        search->snapshots[worst].label, search->checks->max_z);
}

/* ---- Whether any motion explains the labels ---- */

/* The largest squared residual of honest series under a free motion, in units of the expected one
 * (docs/numerics.md). */
#define MOST_FREE 1.6
/* Deviance an element that other labels must take away to be believed. */
#define FAR_LOWER 2.0
#define MOST_SEEN ((size_t)32) /* snapshots at a time */

/* The free motion of labels [first, first + n). */
static struct phema_free_motion fit_freely(struct search *search, const struct labels *labels,
                                           size_t first, size_t n)
{
    struct phema_free_motion free_motion = {PHEMA_UNKNOWN, PHEMA_UNKNOWN};
    double rounding[MOST_SEEN];
    for (size_t k = 0; k < n; k++)
        rounding[k] = search->sample->rounding[labels->rows[first + k]];
    const struct phema_problem problem = {
        .snapshots = labels->profiles + first, .rounding = rounding, .n = n};
    const struct phema_sample_rows rows = {.values = search->sample->values,
                                           .order = labels->rows + first,
                                           .n_elems = search->sample->n_elems,
                                           .mean_square = search->sample->mean_square};
    if (!search->status)
        search->status = phema_free_motion_fit(&free_motion, &problem, &rows, search->err);
    return free_motion;
}

static bool is_same_label(const struct phema_profile *a, const struct phema_profile *b)
{
    return a->shape == b->shape && a->t == b->t && a->gamma == b->gamma &&
           a->half_life == b->half_life && a->betas == b->betas &&
           a->update_every == b->update_every && a->reset == b->reset && a->origin == b->origin;
}

/* Whether the labels that explain best make the sample far likelier than the given ones, both under the
 * motion that fits them best. Labels that leave snapshots out do not explain these. */
static bool are_better(struct search *search)
{
    const struct labels *found = &search->found, *given = &search->given;
    size_t n = found->n < MOST_SEEN ? found->n : MOST_SEEN, begin = SIZE_MAX, end = 0, first = 0;
    for (size_t k = 0; k < found->n; k++) {
        begin = found->rows[k] < begin ? found->rows[k] : begin;
        end = found->rows[k] + 1 > end ? found->rows[k] + 1 : end;
    }
    if (end - begin != found->n)
        return false;
    while (first + n < found->n && found->rows[first] == begin + first &&
           is_same_label(&found->profiles[first], &given->profiles[begin + first]))
        first++;
    struct phema_free_motion before = fit_freely(search, given, begin + first, n);
    struct phema_free_motion after = fit_freely(search, found, first, n);
    return before.deviance - after.deviance > FAR_LOWER && after.largest <= MOST_FREE;
}

/* Whether some motion explains the given labels near the snapshot with the largest z. */
static bool is_explained(struct search *search)
{
    size_t worst = find_worst(search),
           n = search->given.n < MOST_SEEN ? search->given.n : MOST_SEEN;
    size_t first = worst > n / 2 ? worst - n / 2 : 0;
    first = first + n > search->given.n ? search->given.n - n : first;
    return fit_freely(search, &search->given, first, n).largest <= MOST_FREE;
}

static enum phema_series_verdict judge_wrong(struct search *search, const struct fit *fit)
{
    search->best = fit->max_z;
    search_labels(search, fit);
    bool is_known = search->text.size > 0;
    if (is_explained(search) && !(is_known && (search->is_sure || are_better(search)))) {
        explain_event(search, search_group_of(search, find_worst(search)));
        phema_strbuf_puts(&search->text, ", or parameters moved as predictions do not expect");
        return PHEMA_SERIES_DOUBTFUL;
    }
    if (!is_known)
        phema_strbuf_printf(search_explain(search, SIZE_MAX),
                            "'%s' is %.3g times as far from what the others predict as they are "
                            "from each other",
                            search->snapshots[find_worst(search)].label, fit->max_z);
    return PHEMA_SERIES_WRONG;
}

/* Whether a training that keeps its direction has these labels. */
static bool is_drifting(struct search *search)
{
    struct fit fit = search_fit(search, &search->given, COMPARE_DRIFTING);
    return fit.max_z <= EVENT_Z && fit.median_z <= EXPLAINED_MEDIAN_Z;
}

/* Of labels that no snapshot contradicts for itself. */
static enum phema_series_verdict judge_likelihood(struct search *search, const struct fit *fit)
{
    if (fit->median_z < SMOOTH_MEDIAN_Z)
        search_longer(search);
    if (!search->text.size && search_shifts(search))
        return PHEMA_SERIES_WRONG;
    if (!search->text.size && fit->max_z > EVENT_Z)
        explain_doubt(search);
    bool is_doubtful = search->text.size || search_newest_copy(search);
    return is_doubtful ? PHEMA_SERIES_DOUBTFUL : PHEMA_SERIES_FITS;
}

/* A snapshot most of whose tensors are off is of another training, or has another label. */
static enum phema_series_verdict judge_tensors(struct search *search, const struct fit *fit)
{
    const struct phema_tensor_outlier *outlier = &fit->outlier;
    if (isnan(fit->max_z) || !(outlier->ratio > PHEMA_TENSOR_OUTLIER) ||
        outlier->n_outliers * 2 > outlier->n_compared)
        return PHEMA_SERIES_UNKNOWN;
    explain_damage(search, outlier);
    return PHEMA_SERIES_WRONG;
}

static enum phema_series_verdict judge_labels(struct search *search, const struct fit *fit)
{
    if (search_raw(search) || judge_tensors(search, fit) == PHEMA_SERIES_WRONG)
        return PHEMA_SERIES_WRONG;
    if (isnan(fit->max_z))
        return PHEMA_SERIES_UNKNOWN;
    enum phema_series_verdict found = search_classes(search, fit);
    if (found != PHEMA_SERIES_UNKNOWN)
        return found;
    bool is_wrong = fit->max_z > WRONG_Z || fit->median_z > WRONG_MEDIAN_Z;
    bool is_odd = is_wrong || fit->max_z > EVENT_Z;
    if (is_odd && is_drifting(search))
        return PHEMA_SERIES_FITS;
    if (is_odd && search_events(search, fit)) {
        explain_doubt(search);
        return PHEMA_SERIES_DOUBTFUL;
    }
    return is_wrong ? judge_wrong(search, fit) : judge_likelihood(search, fit);
}

/* One average at each time, which smooths a training as another one would. */
static bool is_single_average(const struct search *search)
{
    for (size_t k = 0; k < search->series->n; k++)
        if (search->snapshots[k].profile.shape == PHEMA_SHAPE_RAW)
            return false;
    return search->n_groups == search->series->n;
}

PHEMA_FALLIBLE search_verdict(struct search *search, struct fit *fit, bool judges_labels,
                              struct phema_error *err)
{
    struct phema_series_checks *checks = search->checks;
    enum phema_status status = fitting_compare(fit, &search->fitting, COMPARE_AND_LEAVE_OUT, err);
    if (status)
        return status;
    checks->max_z = fit->max_z;
    checks->median_z = fit->median_z;
    memcpy(checks->z, fit->z, search->series->n * sizeof(*checks->z));
    checks->verdict = judges_labels ? judge_labels(search, fit) : judge_tensors(search, fit);
    if (checks->verdict == PHEMA_SERIES_FITS && is_single_average(search) &&
        !search_knows_decay(search)) {
        checks->verdict = PHEMA_SERIES_UNCHECKED;
        phema_strbuf_puts(search_explain(search, SIZE_MAX),
                          "the width of a single average cannot be checked; raw parameters beside "
                          "it would show it");
    }
    if (search->status || !search->text.size)
        return search->status;
    status = phema_strbuf_check(&search->text, err);
    if (!status) {
        checks->reason = search->text.data;
        search->text = (struct phema_strbuf){0};
    }
    return status;
}
