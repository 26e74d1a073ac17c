// SPDX-License-Identifier: Apache-2.0
/* decay_remedies.c - says what contradicts the profile of an average, and looks for the reset that
 * explains it, or for another profile. */
#include "decays.h"

#include <math.h>
#include <string.h>

#include "phema/setting.h"
#include "phema/strbuf.h"

/* ---- Resets ---- */

/* Sets the profiles of the labels as they are after one reset more; false: they have none. */
static bool reset_profiles(struct phema_profile *profiles, const struct pairs *pairs, double at,
                           bool restarts_count)
{
    const struct phema_reset reset = {at, restarts_count};
    struct phema_error unused;
    for (size_t k = 0; k < pairs->n; k++) {
        profiles[k] = pairs->labels[k]->profile;
        if (pairs->ends[k] > at && phema_profile_reset(&profiles[k], &reset, 1, &unused))
            return false;
    }
    return true;
}

#define N_PLACES ((size_t)16) /* between two times, where a reset is tried; then to the step */
#define N_BEFORE ((size_t)4)  /* steps before the first that is refuted */
#define N_BEHIND ((size_t)8)  /* steps that are compared */

struct restart {
    double at; /* on the clock of the average */
    bool restarts_count;
    double rated;
};

static void try_restart(struct restart *best, struct phema_profile *profiles,
                        const struct pairs *pairs, size_t k, double at, bool restarts_count)
{
    if (!(at > 0) || !reset_profiles(profiles, pairs, at, restarts_count))
        return;
    double rated = decays_rate(pairs, profiles, k > N_BEFORE ? k - N_BEFORE : 0, k + N_BEHIND);
    if (rated < best->rated)
        *best = (struct restart){at, restarts_count, rated};
}

/* The likeliest reset in one of the steps from the first to k. */
static struct restart find_likeliest(struct phema_profile *profiles, const struct pairs *pairs,
                                     size_t first, size_t k)
{
    struct restart best = {.rated = HUGE_VAL};
    for (size_t j = first; j <= k; j++)
        for (size_t i = 0; i < N_PLACES; i++) {
            double length = pairs->ends[j + 1] - pairs->ends[j];
            double at = pairs->ends[j] + length * (double)i / (double)N_PLACES;
            at = length < (double)N_PLACES ? at : round(at);
            try_restart(&best, profiles, pairs, k, at, false);
            try_restart(&best, profiles, pairs, k, at, true);
        }
    double step = (pairs->ends[k + 1] - pairs->ends[k]) / (double)N_PLACES;
    while (step > 1) {
        step = fmax(1, floor(step / 2));
        double middle = best.at;
        try_restart(&best, profiles, pairs, k, middle - step, best.restarts_count);
        try_restart(&best, profiles, pairs, k, middle + step, best.restarts_count);
    }
    return best;
}

/* The named time of one on the clock of the average. */
static double name_time(const struct pairs *pairs, double at)
{
    size_t k = 0;
    while (k + 1 < pairs->set.n && pairs->ends[k + 1] <= at)
        k++;
    const struct phema_decay_step *step = &pairs->set.steps[k];
    return step->from + (step->to - step->from) * (at - pairs->ends[k]) / step->length;
}

/* Sets value to the reset, unless a step from the first to the end contradicts it. */
static bool use_restart(const struct doctor *doctor, const struct pairs *pairs,
                        struct phema_profile *profiles, const struct restart *restart, size_t first,
                        size_t end)
{
    if (!isfinite(restart->rated) ||
        !reset_profiles(profiles, pairs, restart->at, restart->restarts_count) ||
        !decays_fit(pairs, profiles, first, end))
        return false;
    struct phema_name_buffer shown;
    const char *time = phema_number_format(&shown, name_time(pairs, restart->at));
    doctor->out->value = phema_arena_printf(&doctor->out->memory, "%s%s", time,
                                            restart->restarts_count ? ",counter" : "");
    return doctor->out->value != NULL;
}

/* Sets value to a time at which the average became a copy. */
static bool find_restart(const struct doctor *doctor, const struct pairs *pairs,
                         struct phema_profile *profiles)
{
    const struct phema_decay_set *set = &pairs->set;
    size_t k = 0;
    while (k < set->n && !set->steps[k].is_refuted)
        k++;
    if (k == set->n || set->is_other || (k == 0 && decay_set_is_other(set)) ||
        set->steps[k].fit.state == PHEMA_DECAY_FROZEN)
        return false;
    struct restart best = find_likeliest(profiles, pairs, k > N_BEFORE ? k - N_BEFORE : 0, k);
    return use_restart(doctor, pairs, profiles, &best, 0, set->n);
}

#define COPY_PLACE 0.5 /* of weight that is all new, in the later half of a step */

/* Whether the average is the parameters, or was a copy of them shortly before. */
static bool is_copy(const struct phema_decay_step *step)
{
    return step->fit.state == PHEMA_DECAY_RAW ||
           (step->is_refuted && decay_keeps_none(step) && step->fit.place > COPY_PLACE);
}

#define LITTLE_OF_IT 0.01 /* that is left of the copy in the newest average */

/* Where the average was the parameters themselves until it began to look back: says so, and leaves
 * those copies out. The later ones began as a copy, unless nothing of that is left. What happened
 * later still has a remedy of its own. */
static bool explain_late_begin(struct phema_strbuf *text, const struct doctor *doctor,
                               const struct pairs *pairs, struct phema_profile *profiles)
{
    const struct phema_decay_set *set = &pairs->set;
    struct phema_decays *out = doctor->out;
    size_t k = 0, end, n_fitted = 0;
    while (k < set->n && is_copy(&set->steps[k]))
        k++;
    for (end = k + 1; end < set->n && !set->steps[end].is_refuted; end++)
        n_fitted += set->steps[end].fit.state == PHEMA_DECAY_FITTED;
    if (!k || !n_fitted)
        return false;
    struct restart best = find_likeliest(profiles, pairs, k - 1, k), at_file = {.rated = HUGE_VAL};
    try_restart(&at_file, profiles, pairs, k, pairs->ends[k], best.restarts_count);
    if (at_file.rated <= best.rated + DECAY_AS_LIKELY) /* both are round times */
        best = at_file;
    if (!use_restart(doctor, pairs, profiles, &best, k, end))
        return false;
    struct phema_name_buffer time, from;
    const char *until = phema_number_format(&time, name_time(pairs, best.at));
    const char *first = phema_number_format(&from, set->steps[k].to);
    phema_strbuf_printf(text, "it was a copy of them until %s; ", until);
    if (decay_kept_by(&pairs->labels[pairs->n - 1]->profile, best.at) < LITTLE_OF_IT) {
        out->setting = PHEMA_SET_FROM;
        out->value = phema_arena_copy(&out->memory, first, strlen(first));
    } else {
        out->setting = PHEMA_SET_RESET_AT;
        out->from = set->steps[k].to;
        phema_strbuf_printf(text, "%s%s with ", phema_setting_equals(PHEMA_SET_RESET_AT),
                            out->value);
    }
    phema_strbuf_printf(text, "%s%s fits", phema_setting_equals(PHEMA_SET_FROM), first);
    if (end < set->n)
        phema_strbuf_printf(text, " until %s", phema_number_format(&time, set->steps[end - 1].to));
    return true;
}

/* ---- What is wrong ---- */

/* Another profile can be given where options or a default said it. */
static bool may_have_spec(const struct doctor *doctor)
{
    const struct phema_series_options *options = doctor->options;
    return doctor->n == 1 &&
           (doctor->series->assumed || (options && options->n_input_profiles == 1));
}

#define LEAST_COUNTED 5.0 /* steps of an epoch */

/* Names that count more than steps: a claimed half-life is so many times too long. A profile per epoch
 * would fit, but the times would stay wrong. */
static bool write_counted(struct phema_strbuf *text, const struct pairs *pairs, const char *unit)
{
    const struct phema_decay_set *set = &pairs->set;
    const struct phema_profile *newest = &pairs->labels[pairs->n - 1]->profile;
    double times = newest->half_life / set->half_life;
    if (!decay_set_is_other(set) || set->kind != PHEMA_DECAYS_STEADY ||
        newest->shape != PHEMA_SHAPE_EMA || !(times > LEAST_COUNTED) || strcmp(unit, "steps") != 0)
        return false;
    bool is_certain = true; /* nobody stores checkpoints every few steps */
    for (size_t k = 0; k < set->n; k++)
        is_certain = is_certain && set->steps[k].length <= LEAST_COUNTED;
    phema_strbuf_printf(text,
                        "; the profile would fit if the times counted some %.2g steps each, such "
                        "as epochs%s",
                        times, is_certain ? ": a manifest gives them in steps" : "");
    return is_certain;
}

/* Where the decay is another one: what it is, and a profile that fits. */
static void explain_other(struct phema_strbuf *text, const struct doctor *doctor,
                          const struct pairs *pairs, struct phema_profile *profiles)
{
    struct phema_decays *out = doctor->out;
    phema_decay_set_describe(text, &pairs->set, doctor->series->unit);
    bool is_counted = write_counted(text, pairs, doctor->series->unit);
    bool is_bound = pairs->set.kind == PHEMA_DECAYS_SHORT; /* which many profiles keep */
    if (is_counted || is_bound || !decay_set_is_other(&pairs->set) || !may_have_spec(doctor))
        return;
    out->value = decays_find_usual(doctor, pairs, profiles);
    bool is_usual = out->value != NULL;
    if (!out->value)
        out->value = decays_find_other(doctor, pairs, profiles);
    if (!out->value)
        return;
    out->setting = PHEMA_SET_INPUT_PROFILE;
    if (is_usual)
        phema_strbuf_printf(text, "; of the usual settings %s fits best", out->value);
    else
        phema_strbuf_printf(text, "; %s%s fits", phema_setting_equals(PHEMA_SET_INPUT_PROFILE),
                            out->value);
}

PHEMA_FALLIBLE decays_accuse(const struct doctor *doctor, const struct pairs *pairs,
                             struct phema_error *err)
{
    struct phema_decays *out = doctor->out;
    struct phema_profile *profiles = phema_arena_array(&out->memory, pairs->n, sizeof(*profiles));
    if (!profiles)
        return phema_fail_memory(err);
    struct phema_strbuf text = {0};
    struct phema_name_buffer name;
    const char *shown = phema_name_show(&name, pairs->set.name);
    phema_strbuf_printf(&text,
                        "the raw parameters beside '%s' tell how it was really averaged: ", shown);
    if (find_restart(doctor, pairs, profiles)) {
        out->setting = PHEMA_SET_RESET_AT;
        phema_strbuf_printf(&text, "it became a copy of them near %.*s%s; %s%s fits",
                            (int)strcspn(out->value, ","), out->value,
                            strchr(out->value, ',') ? ", and counted its steps anew" : "",
                            phema_setting_equals(PHEMA_SET_RESET_AT), out->value);
    } else if (!explain_late_begin(&text, doctor, pairs, profiles)) {
        explain_other(&text, doctor, pairs, profiles);
    }
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status) {
        out->reason = phema_arena_copy(&out->memory, text.data, text.size);
        status = out->reason ? PHEMA_OK : phema_fail_memory(err);
    }
    phema_strbuf_clear(&text);
    return status;
}
