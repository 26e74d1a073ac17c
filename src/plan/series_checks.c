// SPDX-License-Identifier: Apache-2.0
/* series_checks.c - the motion of the parameters of a series, from a sample of its tensors, and the
 * rounding of its averages. */
#include "series_checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"
#include "series_search.h"
#include "solver_input.h"

/* With fewer elements, z itself scatters: by 1 / sqrt(2 elements) and more. */
#define LEAST_ELEMENTS 60

/* ---- Motion ---- */

#define CLEARLY_APART 100.0 /* squared distance over that of the rounding */

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

/* Finds two snapshots that are the same average by their labels, but differ. false: there are none */
static bool find_contradiction(size_t *first, size_t *second, const struct phema_series *series,
                               const struct phema_sample *sample)
{
    const struct phema_snapshot *snapshots = series->snapshots;
    for (size_t k = 0; k < series->n; k++) {
        size_t later = k + 1;
        while (later < series->n &&
               !is_same_average(&snapshots[k].profile, &snapshots[later].profile))
            later++;
        if (later == series->n)
            continue;
        double a = fmax(sample->rounding[k], PHEMA_FLOAT32_FLOOR);
        double b = fmax(sample->rounding[later], PHEMA_FLOAT32_FLOOR);
        if (phema_sample_distance(sample, k, later) > CLEARLY_APART * (a * a + b * b)) {
            *first = k;
            *second = later;
            return true;
        }
    }
    return false;
}

/* No motion explains such labels, nor need others be nearly as good as they are. */
static enum phema_status judge_contradiction(struct search *search, size_t first, size_t second,
                                             struct phema_error *err)
{
    const struct phema_snapshot *snapshots = search->series->snapshots;
    struct phema_series_checks *checks = search->checks;
    search->best = HUGE_VAL;
    search_updates(search);
    struct phema_strbuf text = {0};
    phema_strbuf_printf(&text, "'%s' and '%s' differ, but are the same average by their labels",
                        snapshots[first].label, snapshots[second].label);
    if (search->text.size)
        phema_strbuf_printf(&text, ": %s", search->text.data);
    else
        (void)search_explain(search, SIZE_MAX);
    enum phema_status status = search->status ? search->status : phema_strbuf_check(&text, err);
    if (status) {
        phema_strbuf_clear(&text);
        return status;
    }
    checks->verdict = PHEMA_SERIES_WRONG;
    checks->is_contradicted = true;
    checks->max_z = checks->median_z = PHEMA_UNKNOWN;
    checks->reason = text.data;
    return phema_fail(err, PHEMA_NO, "%s", checks->reason);
}

PHEMA_FALLIBLE series_checks_make(struct phema_series_checks *checks, struct phema_motion *motion,
                                  const struct phema_series *series,
                                  const struct phema_schedule *schedule,
                                  const struct phema_sample *sample, enum series_question question,
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
    size_t first, second;
    status = search_open(&search);
    if ((!status || status == PHEMA_NO) && question == SERIES_FITS_LABELS &&
        find_contradiction(&first, &second, series, sample))
        status = judge_contradiction(&search, first, second, err);
    if (!status && question != SERIES_HAS_MOTION && sample->n_elems >= LEAST_ELEMENTS)
        status = search_verdict(&search, &fit, question == SERIES_FITS_LABELS, err);
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

/* Whether a profile counts updates, and not times whatever their unit. */
static bool counts_steps(const struct phema_snapshot *snapshot)
{
    const struct phema_profile *profile = &snapshot->profile;
    return profile->shape == PHEMA_SHAPE_TABLE ||
           (profile->shape == PHEMA_SHAPE_POWER && profile->update_every > 1) ||
           (profile->shape == PHEMA_SHAPE_EMA && strncmp(snapshot->spec, "ema:decay=", 10) == 0);
}

/* Without raw parameters, which would tell its decay, nothing shows that an average of so many steps has
 * times in epochs. */
static enum phema_status check_unit(struct phema_decays *decays, const struct phema_series *series,
                                    struct phema_error *err)
{
    size_t k = 0;
    while (k < series->n && !counts_steps(&series->snapshots[k]))
        k++;
    if (!series->is_unit_of_names || decays->n || k == series->n)
        return PHEMA_OK;
    decays->from = PHEMA_UNKNOWN;
    decays->reason = phema_arena_printf(
        &decays->memory,
        "the names count %s, and '%s' counts steps; a manifest gives times in steps, and %ssteps "
        "says that names have them",
        series->unit, series->snapshots[k].spec, phema_setting_equals(PHEMA_SET_UNIT));
    return decays->reason ? PHEMA_OK : phema_fail_memory(err);
}

/* Labels are judged by how parameters move, damage and errors expected by all tensors.
 *   parameters  few or none: the sample takes their place */
static enum phema_status
judge_and_fit(struct phema_series_checks *checks, struct phema_motion *motion,
              const struct phema_series *series, const struct phema_schedule *schedule,
              const struct phema_sample *sample, const struct phema_sample *parameters,
              enum series_question question, struct phema_error *err)
{
    if (question != SERIES_FITS_LABELS || parameters->n_elems < LEAST_ELEMENTS)
        return series_checks_make(checks, motion, series, schedule, sample, question, err);
    enum phema_status status =
        series_checks_make(checks, motion, series, schedule, parameters, question, err);
    if (status || checks->verdict == PHEMA_SERIES_WRONG)
        return status;
    struct phema_series_checks whole = {.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
    phema_motion_clear(motion);
    status = series_checks_make(&whole, motion, series, schedule, sample, SERIES_IS_UNDAMAGED, err);
    if (!status && whole.verdict == PHEMA_SERIES_WRONG) {
        struct phema_series_checks before = *checks;
        whole.decays = before.decays;
        *checks = whole;
        whole = before;
    }
    series_checks_reset(&whole);
    return status;
}

/* The decays of averages, then the motion and what the labels say of it. */
static enum phema_status
check_sample(struct phema_series_checks *checks, struct phema_motion *motion,
             const struct phema_series *series, const struct phema_series_options *options,
             const struct phema_schedule *schedule, struct phema_sample *sample,
             struct phema_sample *parameters, bool is_checked, struct phema_error *err)
{
    (void)raise_rounding(sample->rounding, series, NULL);
    if (parameters->n_elems)
        (void)raise_rounding(parameters->rounding, series, NULL);
    enum phema_status status = PHEMA_OK;
    if (is_checked)
        status = phema_decays_find(&checks->decays, series, options, sample, err);
    if (!status && is_checked)
        status = check_unit(&checks->decays, series, err);
    if (status)
        return status;
    bool is_refuted = checks->decays.reason != NULL;
    status = judge_and_fit(checks, motion, series, schedule, sample, parameters,
                           is_checked && !is_refuted ? SERIES_FITS_LABELS : SERIES_HAS_MOTION, err);
    bool is_raised = !status && raise_rounding(sample->rounding, series, motion);
    if (!status && parameters->n_elems)
        is_raised |= raise_rounding(parameters->rounding, series, motion);
    if (is_raised && checks->verdict > PHEMA_SERIES_FITS) { /* updates that float32 lost, perhaps */
        phema_motion_clear(motion);
        series_checks_reset(checks);
        status = judge_and_fit(checks, motion, series, schedule, sample, parameters,
                               SERIES_FITS_LABELS, err);
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
    struct phema_sample sample = {0}, parameters = {0};
    status = phema_sample_read(&sample, series, false, 0, err);
    if (!status)
        status = phema_sample_read_parameters(&parameters, series, 0, err);
    if (!status)
        status = check_sample(out, motion, series, options, NULL, &sample, &parameters, true, err);
    phema_sample_clear(&parameters);
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
    struct phema_sample sample = {0}, parameters = {0};
    struct phema_motion *motion = phema_arena_alloc(&plan->memory, sizeof(*motion));
    if (!motion)
        return phema_fail_memory(err);
    enum phema_status status =
        phema_sample_read(&sample, series, false, options->series.max_ram_bytes, err);
    if (!status)
        status = straightness_find(plan, &sample, err);
    bool is_checked = options->checks != PHEMA_CHECKS_OFF;
    if (!status && is_checked)
        status =
            phema_sample_read_parameters(&parameters, series, options->series.max_ram_bytes, err);
    if (!status)
        status = check_sample(&plan->checks, motion, series, &options->series, plan->schedule,
                              &sample, &parameters, is_checked, err);
    phema_sample_clear(&parameters);
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
    bool is_failure =
        options->checks == PHEMA_CHECKS_ERROR ||
        (options->checks == PHEMA_CHECKS_DEFAULT &&
         (plan->series->assumed || plan->checks.decays.reason || plan->checks.is_contradicted));
    if (!is_failure || plan->checks.verdict != PHEMA_SERIES_WRONG)
        return PHEMA_OK;
    status = phema_series_fail_wrong(plan->series, &plan->checks, err);
    (void)phema_fail_in(err, status, "%s", plan->series->root);
    if (plan->checks.setting == PHEMA_SET_INPUT_PROFILE) /* that of the user is the wrong one */
        return phema_blame(err, status, plan->checks.setting);
    return status;
}
