// SPDX-License-Identifier: Apache-2.0
/* series_checks.c - the motion of the parameters of a series; whether its snapshots are what their
 * labels say, and what explains it if not. */
#include "series_checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "series_search.h"

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

/* With fewer elements, z itself scatters: by 1 / sqrt(2 elements) and more. */
#define LEAST_ELEMENTS 64

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
    return search->text.size ? PHEMA_SERIES_DOUBTFUL : PHEMA_SERIES_FITS;
}

static enum phema_series_verdict judge_labels(struct search *search, const struct fit *fit)
{
    if (search_raw(search))
        return PHEMA_SERIES_WRONG;
    if (isnan(fit->max_z))
        return PHEMA_SERIES_UNKNOWN;
    const struct phema_tensor_outlier *outlier = &fit->outlier;
    /* a snapshot most of whose tensors are off is of another training, or has another label */
    if (outlier->ratio > PHEMA_TENSOR_OUTLIER && outlier->n_outliers * 2 <= outlier->n_compared) {
        explain_damage(search, outlier);
        return PHEMA_SERIES_WRONG;
    }
    if (search_classes(search, fit))
        return PHEMA_SERIES_WRONG;
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

/* fit: of the given labels */
static enum phema_status compare_labels(struct search *search, struct fit *fit,
                                        struct phema_error *err)
{
    struct phema_series_checks *checks = search->checks;
    enum phema_status status = fitting_compare(fit, &search->fitting, COMPARE_AND_LEAVE_OUT, err);
    if (status)
        return status;
    checks->max_z = fit->max_z;
    checks->median_z = fit->median_z;
    memcpy(checks->z, fit->z, search->series->n * sizeof(*checks->z));
    checks->verdict = judge_labels(search, fit);
    if (checks->verdict == PHEMA_SERIES_FITS && is_single_average(search)) {
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

/* ---- Motion ---- */

#define LEAST_FLOAT32 1e-12 /* rounding of averages that may have been kept in float32 */
#define NEAR_TIME     1.1
#define HIGHER        1.3
#define MOST_KEPT     ((size_t)4) /* widths that are remembered */

/* Norms of the snapshots of one training differ by a factor of about ten. Distances to a snapshot
 * beyond this factor tell nothing about motion. */
#define MOST_TIMES 1e3

/* A snapshot that differs in norm from the newest by far; SIZE_MAX: none. Says so in reason. */
static size_t find_odd(struct phema_strbuf *reason, const struct phema_series *series,
                       const struct phema_sample *sample)
{
    const struct phema_snapshot *snapshots = series->snapshots;
    const char *newest = snapshots[sample->n - 1].label;
    size_t largest = 0, rounded = 0;
    for (size_t k = 0; k < sample->n; k++) {
        if (!(sample->sizes[k] > 0)) {
            phema_strbuf_printf(reason, "'%s' is zero in all elements that were looked at",
                                snapshots[k].label);
            return k;
        }
        largest = sample->sizes[k] > sample->sizes[largest] ? k : largest;
        rounded = sample->rounding[k] > sample->rounding[rounded] ? k : rounded;
    }
    if (sample->sizes[largest] > MOST_TIMES) {
        phema_strbuf_printf(reason, "'%s' has %.3g times the norm of the newest, '%s'",
                            snapshots[largest].label, sample->sizes[largest], newest);
        return largest;
    }
    if (sample->rounding[rounded] > 1) {
        phema_strbuf_printf(reason,
                            "'%s', which has %.3g times the norm of the newest, '%s', is rounded "
                            "by more than that norm",
                            snapshots[rounded].label, sample->sizes[rounded], newest);
        return rounded;
    }
    return SIZE_MAX;
}

/* PHEMA_NO: there is one; nothing can be fitted to such distances. */
static enum phema_status check_sizes(struct phema_series_checks *checks,
                                     const struct phema_series *series,
                                     const struct phema_sample *sample, struct phema_error *err)
{
    struct phema_strbuf reason = {0};
    size_t odd = find_odd(&reason, series, sample);
    if (odd == SIZE_MAX)
        return PHEMA_OK;
    enum phema_status status = phema_strbuf_check(&reason, err);
    if (status)
        return status;
    checks->verdict = PHEMA_SERIES_WRONG;
    checks->max_z = checks->median_z = PHEMA_UNKNOWN;
    checks->reason = reason.data;
    checks->suspect = odd;
    return phema_fail(err, PHEMA_NO, "%s; if it is damaged, or of another training, leave it out",
                      reason.data);
}

PHEMA_FALLIBLE series_checks_make(struct phema_series_checks *checks, struct phema_motion *motion,
                                  const struct phema_series *series,
                                  const struct phema_schedule *schedule,
                                  const struct phema_sample *sample, bool is_checked,
                                  struct phema_error *err)
{
    struct search search = {.series = series,
                            .snapshots = series->snapshots,
                            .sample = sample,
                            .schedule = schedule,
                            .checks = checks,
                            .likelihood = PHEMA_UNKNOWN,
                            .err = err};
    struct fit fit = {.z = NULL};
    enum phema_status status = check_sizes(checks, series, sample, err);
    if (status)
        return status;
    status = search_open(&search);
    if (!status && is_checked && sample->n_elems >= LEAST_ELEMENTS)
        status = compare_labels(&search, &fit, err);
    if (!status && checks->verdict != PHEMA_SERIES_WRONG) {
        phema_motion_clear(&fit.motion); /* true labels may have the likeliest motion */
        status = phema_motion_fitting_find(&fit.motion, search.fitting.motion,
                                           PHEMA_MOTION_LIKELIEST, err);
    }
    if (status)
        phema_motion_clear(&fit.motion);
    else
        *motion = fit.motion;
    search_close(&search);
    return status;
}

/* But for the decays. */
static void series_checks_reset(struct phema_series_checks *checks)
{
    free(checks->z);
    free(checks->reason);
    *checks = (struct phema_series_checks){
        .max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN, .decays = checks->decays};
}

void phema_series_checks_clear(struct phema_series_checks *checks)
{
    phema_decays_clear(&checks->decays);
    series_checks_reset(checks);
}

/* Decays that are refuted are stronger evidence than distances, and name the cause. */
static enum phema_status use_decays(struct phema_series_checks *checks, struct phema_error *err)
{
    const struct phema_decays *decays = &checks->decays;
    free(checks->reason);
    checks->reason = strdup(decays->reason);
    checks->verdict = PHEMA_SERIES_WRONG;
    checks->suspect = SIZE_MAX;
    checks->setting = decays->setting;
    if (decays->setting)
        (void)snprintf(checks->value, sizeof(checks->value), "%s", decays->value);
    return checks->reason ? PHEMA_OK : phema_fail_memory(err);
}

/* What keeping an average in float32 makes of it changes slowly with its time. */
struct kept {
    const struct phema_profile *profiles[MOST_KEPT]; /* the last of each width */
    double rounding[MOST_KEPT];
    size_t n;
};

static double find_kept(struct kept *kept, const struct phema_profile *profile,
                        const struct phema_motion *motion)
{
    size_t i = 0;
    while (i < kept->n && !(kept->profiles[i]->shape == profile->shape &&
                            kept->profiles[i]->gamma == profile->gamma &&
                            kept->profiles[i]->half_life == profile->half_life))
        i++;
    if (i == MOST_KEPT)
        return phema_kept_rounding(profile, motion);
    if (i < kept->n && profile->t < NEAR_TIME * kept->profiles[i]->t)
        return kept->rounding[i];
    kept->n += i == kept->n;
    kept->profiles[i] = profile;
    return kept->rounding[i] = phema_kept_rounding(profile, motion);
}

/* Raises the rounding of averages to that. Those that have more digits in their files were kept with more.
 * Returns whether one is clearly higher.
 *   motion  NULL: not known */
static bool raise_rounding(double *rounding, const struct phema_series *series,
                           const struct phema_motion *motion)
{
    struct kept kept = {.n = 0};
    bool is_higher = false;
    for (size_t k = 0; strcmp(series->unit, "steps") == 0 && k < series->n; k++) {
        if (!(rounding[k] > LEAST_FLOAT32))
            continue;
        double before = fmax(rounding[k], PHEMA_FLOAT32_FLOOR);
        rounding[k] = fmax(rounding[k], find_kept(&kept, &series->snapshots[k].profile, motion));
        is_higher |= rounding[k] > HIGHER * before;
    }
    return is_higher;
}

/* The decays of averages, then the motion and what the labels say of it. */
static enum phema_status
check_sample(struct phema_series_checks *checks, struct phema_motion *motion,
             const struct phema_series *series, const struct phema_series_options *options,
             const struct phema_schedule *schedule, struct phema_sample *sample, bool is_checked,
             struct phema_error *err)
{
    (void)raise_rounding(sample->rounding, series, NULL);
    enum phema_status status = PHEMA_OK;
    if (is_checked)
        status = phema_decays_find(&checks->decays, series, options, sample, err);
    if (status)
        return status;
    bool is_refuted = checks->decays.reason != NULL;
    status = series_checks_make(checks, motion, series, schedule, sample, is_checked && !is_refuted,
                                err);
    if (!status && raise_rounding(sample->rounding, series, motion) &&
        checks->verdict > PHEMA_SERIES_FITS) { /* updates that float32 lost, perhaps */
        phema_motion_clear(motion);
        series_checks_reset(checks);
        status = series_checks_make(checks, motion, series, schedule, sample, true, err);
    }
    if (is_refuted && (!status || status == PHEMA_NO))
        return use_decays(checks, err) ? PHEMA_ERR_RESOURCE : status;
    return status;
}

PHEMA_FALLIBLE phema_series_check(struct phema_series_checks *out, struct phema_motion *motion,
                                  struct phema_series *series,
                                  const struct phema_series_options *options,
                                  struct phema_error *err)
{
    *out = (struct phema_series_checks){.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
    enum phema_status status = PHEMA_OK;
    if (!series->has_profiles) {
        status = phema_decays_find(&out->decays, series, options, NULL, err);
        return status ? status
                      : phema_fail(err, PHEMA_NO, "the profiles of the snapshots are unknown");
    }
    struct phema_sample sample = {0};
    status = phema_sample_read(&sample, series, 0, err);
    if (!status)
        status = check_sample(out, motion, series, options, NULL, &sample, true, err);
    for (size_t k = 0; k < series->n && !status; k++)
        series->snapshots[k].rounding = sample.rounding[k];
    phema_sample_clear(&sample);
    if (status && out->verdict == PHEMA_SERIES_WRONG)
        return PHEMA_OK; /* sizes alone tell, or decays */
    if (status && status != PHEMA_NO)
        phema_series_checks_clear(out);
    return status;
}

static enum phema_status sample_motion(struct phema_plan *plan,
                                       const struct phema_plan_options *options,
                                       struct phema_error *err)
{
    struct phema_series *series = plan->series;
    struct phema_sample sample = {0};
    struct phema_motion *motion = phema_arena_alloc(&plan->memory, sizeof(*motion));
    if (!motion)
        return phema_fail_memory(err);
    enum phema_status status =
        phema_sample_read(&sample, series, options->series.max_ram_bytes, err);
    if (!status)
        status = straightness_find(plan, &sample, err);
    if (!status)
        status = check_sample(&plan->checks, motion, series, &options->series, plan->schedule,
                              &sample, options->checks != PHEMA_CHECKS_OFF, err);
    if (!status)
        plan->motion = motion;
    /* predictions of other metrics expect the rounding that the dtype has */
    bool keeps_rounding = options->weights_file || options->solve.metric == PHEMA_METRIC_MOTION;
    for (size_t k = 0; !status && keeps_rounding && k < series->n; k++)
        series->snapshots[k].rounding = sample.rounding[k];
    phema_sample_clear(&sample);
    return status;
}

PHEMA_FALLIBLE motion_find(struct phema_plan *plan, const struct phema_plan_options *options,
                           struct phema_error *err)
{
    if (!options->series.may_be_sampled || !plan->series->has_profiles)
        return PHEMA_OK;
    struct phema_error why = {0};
    enum phema_status status = sample_motion(plan, options, &why);
    if (status && status != PHEMA_NO)
        return phema_fail(err, status, "%s", why.message);
    if (status) {
        plan->unmoved = phema_arena_copy(&plan->memory, why.message, strlen(why.message));
        if (!plan->unmoved)
            return phema_fail_memory(err);
    }
    bool is_failure = options->checks == PHEMA_CHECKS_ERROR ||
                      (options->checks == PHEMA_CHECKS_DEFAULT &&
                       (plan->series->assumed || plan->checks.decays.reason));
    if (!is_failure || plan->checks.verdict != PHEMA_SERIES_WRONG)
        return PHEMA_OK;
    status = phema_series_fail_wrong(plan->series, &plan->checks, err);
    (void)phema_fail_in(err, status, "%s", plan->series->root);
    if (plan->checks.setting == PHEMA_SET_INPUT_PROFILE) /* that of the user is the wrong one */
        return phema_blame(err, status, plan->checks.setting);
    return status;
}
