// SPDX-License-Identifier: Apache-2.0
/* series_motion.c - samples, fits and judges the motion of the parameters; doubts update_every. */
#include "series_motion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/json.h"
#include "phema/strbuf.h"

/* A fit by powers of time misses distances by a factor of e^0.06 to e^0.36 where update_every is
 * right, and of e^0.5 to e^2 where it is wrong by ten (docs/numerics.md). */
#define LARGE_MISFIT 0.4
#define CLEARLY      0.5 /* of the misfit of the given update_every */

/* Norms of the snapshots of one training differ by a factor of about ten. Distances to a snapshot
 * beyond this factor tell nothing about motion. */
#define MOST_TIMES 1e3

#define LN_2 0.69314718055994531

static enum phema_status keep_text(char **out, const char *text, struct phema_error *err)
{
    *out = strdup(text);
    return *out ? PHEMA_OK : phema_fail_memory(err);
}

struct observation {                       /* of a sample */
    const struct phema_profile *snapshots; /* [n] */
    size_t n;
    const double *rounding;
    struct phema_distance *distances;
    size_t n_distances;
};

/* A power function that is updated every U steps is nearly one with 1/U of the exponent. It is
 * written as an average that never ends to ramp up, since exponents of -1/2 and less are no
 * profile. */
static struct phema_profile approximate_updates(const struct phema_profile *profile, double every,
                                                double end)
{
    double ramp = LN_2 * every / (profile->gamma + 1);
    return (struct phema_profile){
        .shape = PHEMA_SHAPE_RAMPED, .t = profile->t, .ramp = ramp, .half_life = 2 * ramp * end};
}

/* HUGE_VAL where no motion can be fitted */
static double misfit_of(const struct observation *observed, struct phema_profile *scratch,
                        double every)
{
    struct phema_motion motion = {0};
    struct phema_error ignored = {""};
    double end = 0;
    for (size_t k = 0; k < observed->n; k++)
        end = fmax(end, observed->snapshots[k].t);
    for (size_t k = 0; k < observed->n; k++)
        scratch[k] = approximate_updates(&observed->snapshots[k], every, end);
    double misfit = HUGE_VAL;
    if (!phema_motion_fit(&motion, scratch, observed->n, observed->rounding, observed->distances,
                          observed->n_distances, &ignored))
        misfit = motion.misfit;
    phema_motion_clear(&motion);
    return misfit;
}

/* The update_every of all snapshots; 0: they differ, or are not all power functions */
static uint64_t common_every(const struct observation *observed)
{
    uint64_t every = 0;
    for (size_t k = 0; k < observed->n; k++) {
        const struct phema_profile *profile = &observed->snapshots[k];
        uint64_t own = profile->update_every > 1 ? profile->update_every : 1;
        if (profile->shape != PHEMA_SHAPE_POWER || (every && own != every))
            return 0;
        every = own;
    }
    return every;
}

/* Profiles with a wrong update_every make the motion look irregular. That is a hint for the user
 * and changes no result. */
static enum phema_status doubt_updates(struct phema_plan *plan, const struct observation *observed,
                                       struct phema_error *err)
{
    static const uint64_t candidates[] = {1, 2, 5, 10, 20, 50, 100};
    uint64_t given = common_every(observed);
    struct phema_profile *scratch = given ? calloc(observed->n, sizeof(*scratch)) : NULL;
    if (!scratch)
        return given ? phema_fail_memory(err) : PHEMA_OK;
    double misfit = misfit_of(observed, scratch, (double)given);
    double least = HUGE_VAL;
    uint64_t best = given;
    for (size_t i = 0; misfit > LARGE_MISFIT && i < ARRAY_LEN(candidates); i++) {
        double other = misfit_of(observed, scratch, (double)candidates[i]);
        if (other < least) {
            least = other;
            best = candidates[i];
        }
    }
    free(scratch);
    if (!(least < CLEARLY * misfit))
        return PHEMA_OK;
    struct phema_strbuf text = {0};
    phema_strbuf_printf(&text,
                        "the snapshots are apart as if they were averaged with update_every %llu "
                        "rather than %llu (mean factor %.2f instead of %.2f between seen and "
                        "modelled distances); if that is so, give --update-every %llu",
                        (unsigned long long)best, (unsigned long long)given, exp(least),
                        exp(fmin(misfit, 99)), (unsigned long long)best);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status)
        status = keep_text(&plan->doubts, text.data, err);
    phema_strbuf_clear(&text);
    return status;
}

static enum phema_status fit(struct phema_plan *plan, const struct observation *observed,
                             struct phema_error *err)
{
    struct phema_motion *motion = calloc(1, sizeof(*motion));
    if (!motion)
        return phema_fail_memory(err);
    enum phema_status status =
        phema_motion_fit(motion, observed->snapshots, observed->n, observed->rounding,
                         observed->distances, observed->n_distances, err);
    if (status) {
        free(motion);
        return status;
    }
    plan->motion = motion;
    return doubt_updates(plan, observed, err);
}

/* PHEMA_NO: a snapshot differs in norm from the newest by far; the message names it. */
static enum phema_status check_sizes(const struct phema_series *series,
                                     const struct phema_sample *sample, struct phema_error *err)
{
    static const char advice[] = "if it is damaged, or of another training, leave it out";
    const struct phema_snapshot *snapshots = series->snapshots;
    size_t largest = 0, rounded = 0;
    for (size_t k = 0; k < sample->n; k++) {
        if (!(sample->sizes[k] > 0))
            return phema_fail(err, PHEMA_NO,
                              "snapshot '%s' is zero in all elements that were looked at; %s",
                              snapshots[k].label, advice);
        largest = sample->sizes[k] > sample->sizes[largest] ? k : largest;
        rounded = sample->rounding[k] > sample->rounding[rounded] ? k : rounded;
    }
    if (sample->sizes[largest] > MOST_TIMES)
        return phema_fail(err, PHEMA_NO,
                          "snapshot '%s' has %.3g times the norm of the newest, '%s'; %s",
                          snapshots[largest].label, sample->sizes[largest],
                          snapshots[sample->n - 1].label, advice);
    if (sample->rounding[rounded] > 1)
        return phema_fail(err, PHEMA_NO,
                          "snapshot '%s', which has %.3g times the norm of the newest, '%s', is "
                          "rounded by more than that norm; %s",
                          snapshots[rounded].label, sample->sizes[rounded],
                          snapshots[sample->n - 1].label, advice);
    return PHEMA_OK;
}

static enum phema_status fit_sample(struct phema_plan *plan, const struct phema_sample *sample,
                                    struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_profile *profiles = calloc(series->n + 1, sizeof(*profiles));
    if (!profiles)
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++)
        profiles[k] = series->snapshots[k].profile;
    struct observation observed = {
        .snapshots = profiles, .n = series->n, .rounding = sample->rounding};
    enum phema_status status =
        phema_motion_pairs(&observed.distances, &observed.n_distances, profiles, series->n, err);
    if (!status) {
        for (size_t d = 0; d < observed.n_distances; d++)
            observed.distances[d].square =
                phema_sample_distance(sample, observed.distances[d].i, observed.distances[d].j);
        status = fit(plan, &observed, err);
        free(observed.distances);
    }
    free(profiles);
    return status;
}

/* Fails with PHEMA_NO where the sample shows no motion. */
static enum phema_status sample_motion(struct phema_plan *plan, bool keeps_rounding,
                                       uint64_t max_ram_bytes, struct phema_error *err)
{
    struct phema_series *series = plan->series;
    struct phema_sample sample = {0};
    enum phema_status status = phema_sample_read(&sample, series, max_ram_bytes, err);
    if (status)
        return status;
    status = check_sizes(series, &sample, err);
    plan->has_odd_snapshot = status == PHEMA_NO;
    if (!status)
        status = fit_sample(plan, &sample, err);
    for (size_t k = 0; !status && keeps_rounding && k < series->n; k++)
        series->snapshots[k].rounding = sample.rounding[k];
    phema_sample_clear(&sample);
    return status;
}

PHEMA_FALLIBLE motion_find(struct phema_plan *plan, const struct phema_plan_options *options,
                           bool keeps_rounding, struct phema_error *err)
{
    if (!options->series.may_be_sampled || !plan->series->has_profiles)
        return PHEMA_OK;
    struct phema_error why = {""};
    enum phema_status status =
        sample_motion(plan, keeps_rounding, options->series.max_ram_bytes, &why);
    if (status == PHEMA_NO)
        return keep_text(&plan->unmoved, why.message, err);
    return status ? phema_fail(err, status, "%s", why.message) : PHEMA_OK;
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
    phema_json_out_open(out, "rounding", '[');
    for (size_t k = 0; k < series->n; k++)
        phema_json_out_number(out, NULL, series->snapshots[k].rounding);
    phema_json_out_close(out, ']');
    phema_json_out_number(out, "misfit", motion->misfit);
    phema_json_out_close(out, '}');
}
