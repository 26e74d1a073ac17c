// SPDX-License-Identifier: Apache-2.0
/* series_motion.c - samples and fits the motion of the parameters, and has the series checked. */
#include "series_motion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/json.h"
#include "phema/strbuf.h"
#include "series_checks.h"

/* Norms of the snapshots of one training differ by a factor of about ten. Distances to a snapshot
 * beyond this factor tell nothing about motion. */
#define MOST_TIMES 1e3

static enum phema_status keep_text(char **out, const char *text, struct phema_error *err)
{
    *out = strdup(text);
    return *out ? PHEMA_OK : phema_fail_memory(err);
}

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
    *checks = (struct phema_series_checks){.verdict = PHEMA_SERIES_WRONG,
                                           .max_z = PHEMA_UNKNOWN,
                                           .median_z = PHEMA_UNKNOWN,
                                           .reason = reason.data,
                                           .suspect = odd};
    return phema_fail(err, PHEMA_NO, "%s; if it is damaged, or of another training, leave it out",
                      reason.data);
}

/* PHEMA_NO: the sample shows no motion; checks may be set all the same. */
static enum phema_status fit_sample(struct phema_motion *motion, struct phema_series_checks *checks,
                                    const struct phema_series *series,
                                    const struct phema_schedule *schedule,
                                    const struct phema_sample *sample, bool is_checked,
                                    struct phema_error *err)
{
    enum phema_status status = check_sizes(checks, series, sample, err);
    return status ? status
                  : series_checks_make(checks, motion, series, schedule, sample, is_checked, err);
}

/* Fails with PHEMA_NO where the sample shows no motion. */
static enum phema_status sample_motion(struct phema_plan *plan,
                                       const struct phema_plan_options *options,
                                       bool keeps_rounding, struct phema_error *err)
{
    struct phema_series *series = plan->series;
    struct phema_sample sample = {0};
    enum phema_status status =
        phema_sample_read(&sample, series, options->series.max_ram_bytes, err);
    if (status)
        return status;
    struct phema_motion motion = {0};
    status = fit_sample(&motion, &plan->checks, series, plan->schedule, &sample,
                        options->checks != PHEMA_CHECKS_OFF, err);
    if (!status)
        plan->motion = calloc(1, sizeof(*plan->motion));
    if (plan->motion) {
        *plan->motion = motion;
    } else {
        phema_motion_clear(&motion);
        status = status ? status : phema_fail_memory(err);
    }
    for (size_t k = 0; !status && keeps_rounding && k < series->n; k++)
        series->snapshots[k].rounding = sample.rounding[k];
    phema_sample_clear(&sample);
    return status;
}

PHEMA_FALLIBLE phema_series_check(struct phema_series_checks *out,
                                  const struct phema_series *series, uint64_t max_ram_bytes,
                                  struct phema_error *err)
{
    *out = (struct phema_series_checks){.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
    if (!series->has_profiles)
        return phema_fail(err, PHEMA_NO, "the profiles of the snapshots are unknown");
    struct phema_sample sample = {0};
    enum phema_status status = phema_sample_read(&sample, series, max_ram_bytes, err);
    if (status)
        return status;
    struct phema_motion motion = {0};
    status = fit_sample(&motion, out, series, NULL, &sample, true, err);
    phema_motion_clear(&motion);
    phema_sample_clear(&sample);
    if (status && out->verdict == PHEMA_SERIES_WRONG)
        return PHEMA_OK; /* sizes alone tell */
    if (status)
        phema_series_checks_clear(out);
    return status;
}

PHEMA_FALLIBLE motion_find(struct phema_plan *plan, const struct phema_plan_options *options,
                           bool keeps_rounding, struct phema_error *err)
{
    if (!options->series.may_be_sampled || !plan->series->has_profiles)
        return PHEMA_OK;
    struct phema_error why = {0};
    enum phema_status status = sample_motion(plan, options, keeps_rounding, &why);
    if (status == PHEMA_NO)
        status = keep_text(&plan->unmoved, why.message, &why);
    if (status)
        return phema_fail(err, status, "%s", why.message);
    bool is_failure = options->checks == PHEMA_CHECKS_ERROR ||
                      (options->checks == PHEMA_CHECKS_DEFAULT && plan->series->assumed);
    if (!is_failure || plan->checks.verdict != PHEMA_SERIES_WRONG)
        return PHEMA_OK;
    status = phema_series_fail_wrong(plan->series, &plan->checks, err);
    return phema_fail_in(err, status, "%s", plan->series->root);
}

void phema_plan_write_motion(struct phema_json_out *out, const struct phema_plan *plan)
{
    const struct phema_series *series = plan->series;
    const struct phema_motion *motion = plan->motion;
    if (!motion)
        return;
    phema_json_out_open(out, "motion", '{');
    phema_json_out_numbers(out, "ends", motion->ends, motion->n_intervals);
    phema_json_out_numbers(out, "wander", motion->wander, motion->n_intervals);
    phema_json_out_numbers(out, "jitter", motion->jitter, motion->n_intervals);
    phema_json_out_number(out, "coherence", motion->coherence);
    phema_json_out_open(out, "rounding", '[');
    for (size_t k = 0; k < series->n; k++)
        phema_json_out_number(out, NULL, series->snapshots[k].rounding);
    phema_json_out_close(out, ']');
    phema_json_out_number(out, "misfit", motion->misfit);
    phema_json_out_close(out, '}');
}

void phema_series_checks_write(struct phema_json_out *out, const struct phema_series_checks *checks,
                               const struct phema_series *series)
{
    static const char *const verdicts[] = {[PHEMA_SERIES_UNKNOWN] = "unknown",
                                           [PHEMA_SERIES_FITS] = "fits",
                                           [PHEMA_SERIES_DOUBTFUL] = "doubtful",
                                           [PHEMA_SERIES_WRONG] = "wrong"};
    phema_json_out_open(out, "checks", '{');
    phema_json_out_string(out, "verdict", verdicts[checks->verdict]);
    phema_json_out_number(out, "max_z", checks->verdict ? checks->max_z : PHEMA_UNKNOWN);
    phema_json_out_number(out, "median_z", checks->verdict ? checks->median_z : PHEMA_UNKNOWN);
    if (checks->reason)
        phema_json_out_string(out, "reason", checks->reason);
    else
        phema_json_out_null(out, "reason");
    phema_json_out_open(out, "suspects", '[');
    for (size_t k = 0; checks->verdict > PHEMA_SERIES_FITS && k < series->n; k++) {
        double z = checks->z ? checks->z[k] : PHEMA_UNKNOWN;
        if (k != checks->suspect && !(z > PHEMA_SUSPECT_Z))
            continue;
        phema_json_out_open(out, NULL, '{');
        phema_json_out_path(out, "file", series->snapshots[k].label);
        phema_json_out_number(out, "z", z);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
    phema_json_out_close(out, '}');
}
