// SPDX-License-Identifier: Apache-2.0
/* class_labels.c - whether the snapshots of one exponential average have its label's half-life, and
 * which updates or warm-up they have instead. The likelihood of the sample tells both: neighbours
 * are more, or less, alike than the label says, whatever the distances to what the others predict
 * are. */
#include "decays.h"
#include "series_search.h"
#include "usual_averages.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/setting.h"

#define LEAST_TIMES ((size_t)5)
#define MOST_TIMES  ((size_t)24) /* the newest */
#define FIRST_TIMES ((size_t)16) /* that are looked at first */

/* What another label has to gain, in likelihood an element. MARGIN: it explains the snapshots.
 * WALK_MARGIN: they fit it as a walk does; LITTLE: exactly so. FAR: nothing explains them, but it
 * doubles the median z. CLEAR: more than labels gained that were true; less is a doubt, unless the
 * given ones are refuted anyway, or a decay far from theirs fits (docs/numerics.md). */
#define MARGIN      5.5
#define WALK_MARGIN 2.5
#define FAR         8.0
#define CLEAR       1.2
#define FAR_DECAY   3 /* half-lives */
#define LITTLE      0.4
#define SUSPICIOUS  0.1   /* in favour of an average that is longer, shorter, or grows */
#define AS_LIKELY   0.005 /* the simpler of two is meant */

#define MOST_SMOOTH 0.5 /* a median z below shows more direction than any label explains */
#define EXACT_Z     1.15

/* A median z above, of labels that nothing else refutes: parameters that have come to rest around a
 * point are less alike than any average of a walk, too. */
#define MOST_RESTLESS 1.3

#define FACTOR 2 /* of half-lives that are tried first */

struct guess {
    struct usual_average average;
    double likelihood;
};

/* The newest snapshots, which all have one label, an average that forgets at one rate or by a rule; false:
 * there is nothing to compare. */
static bool has_one_average(const struct search *search)
{
    const struct phema_snapshot *snapshots = search->snapshots;
    size_t n = search->series->n;
    if (search->n_groups != n || n < LEAST_TIMES)
        return false;
    for (size_t k = 0; k < n; k++) {
        enum phema_shape shape = snapshots[k].profile.shape;
        if ((shape != PHEMA_SHAPE_EMA && shape != PHEMA_SHAPE_TABLE) || !snapshots[k].spec ||
            strcmp(snapshots[k].spec, snapshots[0].spec) != 0 || snapshots[k].profile.reset > 0)
            return false;
    }
    return strncmp(snapshots[0].spec, "table:", 6) != 0;
}

bool search_knows_decay(const struct search *search)
{
    const struct phema_decays *decays = &search->checks->decays;
    return decays->n == 1 && decays->sets[0].claimed && !decays->sets[0].is_refuted &&
           decays->sets[0].n_fitted >= DECAY_LEAST_FITTED;
}

/* ---- Whether there is anything to look for ---- */

double half_life_of(const struct phema_profile *profile)
{
    double low = 0, high = profile->t, before = 0;
    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2, at = profile->t - middle;
        phema_profile_cumulative(&before, profile, &at, 1);
        if (before > 0.5)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Closed forms alone: a longer average, a shorter one, one that grows with the training. */
static bool is_suspicious(struct search *search)
{
    search_reset_newest(search, FIRST_TIMES);
    double given = search_likelihood(search);
    const struct phema_profile *newest = &search->snapshots[search->series->n - 1].profile;
    struct phema_profile shape = {.shape = PHEMA_SHAPE_EMA, .update_every = 1};
    struct phema_error ignored;
    double half_life = half_life_of(newest);
    for (int power = -1; power <= 1; power++) {
        if (power == 0 && newest->shape == PHEMA_SHAPE_EMA)
            continue; /* the label itself */
        shape.half_life = half_life * pow(FACTOR, power);
        if (search_rate_shape(search, shape, FIRST_TIMES) > given + SUSPICIOUS)
            return true;
    }
    shape = (struct phema_profile){.update_every = 1};
    return !phema_gamma_from_half_life(&shape.gamma, half_life, newest->t, &ignored) &&
           search_rate_shape(search, shape, FIRST_TIMES) > given + SUSPICIOUS;
}

/* ---- What it is ---- */

static void try_guess(struct guess *best, struct search *search, struct phema_specs *specs,
                      const struct usual_average *average)
{
    if (search->status || !search_set_newest(search, specs, average->spec, MOST_TIMES))
        return;
    double likelihood = search_likelihood(search);
    if (likelihood > best->likelihood + AS_LIKELY)
        *best = (struct guess){*average, likelihood};
}

/* The decay of the label, as a SPEC; false: a rule without one. */
static bool write_decay(char *out, size_t size, struct phema_specs *specs, const char *label)
{
    struct phema_error ignored = {0};
    struct phema_spec *spec = NULL;
    if (phema_specs_find(&spec, specs, label, &ignored))
        return false;
    double most = phema_spec_decay(spec);
    if (!(most > 0 && most < 1))
        return false;
    bool is_half_life = strncmp(label, "ema:half-life=", 14) == 0;
    int n = is_half_life ? (int)strcspn(label, ",") : 0;
    n = is_half_life ? snprintf(out, size, "%.*s", n, label)
                     : snprintf(out, size, "ema:decay=%.10g", most);
    return n > 0 && (size_t)n < size;
}

static void find_guess(struct guess *best, struct search *search, struct phema_specs *specs)
{
    char own[64];
    struct usual_average average;
    double end = search->snapshots[search->series->n - 1].time;
    if (end > USUAL_MOST_STEPS)
        return;
    bool has_decay = write_decay(own, sizeof(own), specs, search->snapshots[0].spec);
    for (size_t i = 0; has_decay && usual_average_updates(&average, own, i); i++)
        try_guess(best, search, specs, &average);
    for (size_t i = 0; has_decay && usual_average_warmup(&average, own, i, end); i++)
        try_guess(best, search, specs, &average);
    for (size_t i = 0; usual_average(&average, i, end); i++)
        try_guess(best, search, specs, &average);
}

/* ---- Together ---- */

/* How well the best guess explains the sample. POSSIBLE: a doubt; SURE: a setting to propose. */
enum belief { NONE, POSSIBLE, ALIKE, SURE };

/* drifting: the given labels of a training that may keep its direction */
static enum belief judge(const struct fit *given, const struct fit *drifting,
                         const struct fit *best, bool is_clear)
{
    double over_given = best->likelihood - given->likelihood;
    double gain = fmin(over_given, best->likelihood - drifting->likelihood);
    if (fit_is_walk(best) && gain > LITTLE && (best->max_z <= EXACT_Z || over_given > WALK_MARGIN))
        return is_clear || gain > CLEAR ? SURE : POSSIBLE;
    if (fit_explains(best) && best->median_z >= MOST_SMOOTH && gain > MARGIN)
        return SURE;
    return gain > FAR && best->median_z > 2 * given->median_z ? ALIKE : NONE;
}

/* Whether the guess, whose labels are tried, is a plain decay far from that of the given labels. */
static bool is_far_decay(const struct search *search, const struct guess *guess)
{
    const struct labels *tried = &search->tried;
    const struct phema_profile *newest = &search->snapshots[search->series->n - 1].profile;
    double ratio = half_life_of(&tried->profiles[tried->n - 1]) / half_life_of(newest);
    return !guess->average.meaning[0] && fabs(log(ratio)) > log(FAR_DECAY);
}

static void explain(struct search *search, const struct guess *guess, bool is_alike,
                    enum belief belief)
{
    struct phema_strbuf *text = search_explain(search, SIZE_MAX);
    phema_strbuf_printf(text, "neighbouring snapshots are %s alike than the label %s says: %s %s",
                        is_alike ? "more" : "less", search->snapshots[0].spec,
                        belief == SURE ? "they fit" : "nearer is", guess->average.spec);
    if (guess->average.meaning[0])
        phema_strbuf_printf(text, " (%s)", guess->average.meaning);
    if (belief == SURE)
        search_set_remedy(search, PHEMA_SET_INPUT_PROFILE, guess->average.spec);
    else
        phema_strbuf_puts(text, is_alike ? ", or the training kept its direction"
                                         : ", or something happened, a loss spike perhaps");
}

enum phema_series_verdict search_classes(struct search *search, const struct fit *fit)
{
    if (!has_one_average(search) || search_knows_decay(search))
        return PHEMA_SERIES_UNKNOWN;
    bool is_wrong = fit->max_z > WRONG_Z || fit->median_z > WRONG_MEDIAN_Z;
    if (!is_wrong && !is_suspicious(search))
        return PHEMA_SERIES_UNKNOWN;
    search_reset_newest(search, MOST_TIMES);
    double given = search_likelihood(search);
    if (!(given > -HUGE_VAL))
        return PHEMA_SERIES_UNKNOWN;
    struct guess best = {.likelihood = given};
    struct phema_specs specs = {.arena = &search->memory};
    find_guess(&best, search, &specs);
    if (!best.average.spec[0])
        return PHEMA_SERIES_UNKNOWN;
    search_reset_newest(search, MOST_TIMES);
    struct fit given_fit = search_fit(search, &search->tried, COMPARE_SNAPSHOTS);
    struct fit drifting = search_fit(search, &search->tried, COMPARE_DRIFTING);
    if (!search_set_newest(search, &specs, best.average.spec, MOST_TIMES))
        return PHEMA_SERIES_UNKNOWN;
    struct fit best_fit = search_fit(search, &search->tried, COMPARE_SNAPSHOTS);
    bool is_clear = is_wrong || is_far_decay(search, &best);
    enum belief belief = judge(&given_fit, &drifting, &best_fit, is_clear);
    if (belief == NONE || (!is_wrong && given_fit.median_z > MOST_RESTLESS))
        return PHEMA_SERIES_UNKNOWN;
    search->best = best_fit.max_z;
    explain(search, &best, given_fit.median_z < best_fit.median_z, belief);
    return search->status       ? PHEMA_SERIES_UNKNOWN
           : belief == POSSIBLE ? PHEMA_SERIES_DOUBTFUL
                                : PHEMA_SERIES_WRONG;
}
