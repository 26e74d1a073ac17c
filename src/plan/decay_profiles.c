// SPDX-License-Identifier: Apache-2.0
/* decay_profiles.c - looks for a profile that fits the decays of an average: a usual one, a class of a
 * library, or the decay that was found. */
#include "decays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/strbuf.h"
#include "usual_averages.h"

/* Of half-lives that are fitted, besides their own: parameters slow down within intervals. */
#define METHOD_SPREAD 0.05

/* The last update up to a time, since which the average has been the same; the time itself, where every
 * step is one. */
static double find_update(const struct phema_profile *profile, double time)
{
    double t = time - profile->origin;
    if (profile->shape == PHEMA_SHAPE_TABLE) {
        size_t n = phema_betas_count(profile->betas, t);
        return n ? profile->origin + (double)profile->betas->steps[n - 1] : time;
    }
    double every = (double)profile->update_every;
    bool is_seldom = profile->shape == PHEMA_SHAPE_POWER && every > 1 && t >= 1;
    return is_seldom ? profile->origin + 1 + every * floor((t - 1) / every) : time;
}

double decay_kept_by(const struct phema_profile *profile, double begin)
{
    double kept = PHEMA_UNKNOWN, updated = find_update(profile, begin);
    if (profile->shape != PHEMA_SHAPE_RAW)
        phema_profile_cumulative(&kept, profile, &updated, 1);
    return phema_shape_has_begin(profile->shape) && kept > 0 ? PHEMA_UNKNOWN : kept;
}

/* ---- Comparing ---- */

bool decays_fit(const struct pairs *pairs, const struct phema_profile *profiles, size_t first,
                size_t end)
{
    for (size_t k = first; k < end; k++) {
        double kept = decay_kept_by(&profiles[k + 1], pairs->ends[k]);
        if (isnan(kept) ||
            phema_decay_refutes(&pairs->set.steps[k].fit, kept, DECAY_MOST_DIFFER) != 0)
            return false;
    }
    return true;
}

double decay_place_of(const struct phema_profile *profile, double begin)
{
    enum { N = 16 };
    double times[N], before[N], sum = 0;
    for (size_t i = 0; i < N; i++)
        times[i] = begin + (profile->t - begin) * ((double)i + 0.5) / N;
    phema_profile_cumulative(before, profile, times, N);
    for (size_t i = 0; i < N; i++)
        sum += 1 - before[i];
    return sum / N;
}

double decays_rate(const struct pairs *pairs, const struct phema_profile *profiles, size_t first,
                   size_t end)
{
    double sum = 0;
    for (size_t k = first; k < end && k < pairs->set.n; k++) {
        const struct phema_decay_interval *fit = &pairs->set.steps[k].fit;
        bool is_fitted = fit->state == PHEMA_DECAY_FITTED;
        if (!is_fitted && (isnan(fit->place) || !isnan(fit->plain.value)))
            continue;
        double kept = decay_kept_by(&profiles[k + 1], pairs->ends[k]) - fit->kept.value;
        double place = decay_place_of(&profiles[k + 1], pairs->ends[k]) - fit->place;
        sum += place * place / 1e-3;
        if (is_fitted)
            sum += kept * kept / (fit->kept.spread * fit->kept.spread + 1e-4);
    }
    return sum;
}

static bool try_spec(const struct pairs *pairs, struct phema_profile *profiles, const char *text,
                     struct phema_arena *memory)
{
    struct phema_spec *spec = NULL;
    struct phema_error unused;
    if (phema_spec_parse(&spec, memory, text, &unused))
        return false;
    for (size_t k = 0; k < pairs->n; k++) /* most fail early, where following a rule takes little */
        if (phema_spec_profile(&profiles[k], spec, pairs->ends[k], &unused) ||
            (k && !decays_fit(pairs, profiles, k - 1, k)))
            return false;
    return true;
}

/* ---- Candidates ---- */

/* The number with the fewest digits within the spread: usual values are round.
 *   n_digits  out */
static double round_within(int *n_digits, double value, double spread)
{
    double rounded = value;
    for (*n_digits = 1; *n_digits <= 6; ++*n_digits) {
        double unit = pow(10, floor(log10(fabs(value))) + 1 - *n_digits);
        rounded = unit * round(value / unit);
        if (fabs(rounded - value) <= 0.5 * spread)
            break;
    }
    return rounded;
}

/* The nearest of 0.1, 0.2, 0.5, 0.01, ... */
static double find_usual_off(double off)
{
    static const double digits[] = {1, 2, 5, 10};
    double unit = pow(10, floor(log10(off))), best = unit;
    for (size_t i = 1; i < ARRAY_LEN(digits); i++)
        if (fabs(log(digits[i] * unit / off)) < fabs(log(best / off)))
            best = digits[i] * unit;
    return best;
}

/* 1 - decay of an update every so many steps: a usual one, or a round one.
 *   n_digits  out */
static double find_round_off(int *n_digits, const struct phema_decay_set *set, double every)
{
    double off = -expm1(-M_LN2 * every / set->half_life);
    double spread = off * set->half_life_spread / set->half_life, usual = find_usual_off(off);
    *n_digits = 1;
    return fabs(usual - off) > 2 * (spread + METHOD_SPREAD * off)
               ? round_within(n_digits, off, 4 * spread)
               : usual;
}

/* By the half-life, or by the decay of a step where that is a usual one. */
static void write_ema(struct phema_strbuf *out, const struct phema_decay_set *set, const char *unit)
{
    int unused, n_digits_off;
    double half_life = round_within(&unused, set->half_life, set->half_life_spread);
    double rounded = find_round_off(&n_digits_off, set, 1);
    if (strcmp(unit, "steps") == 0 && n_digits_off == 1 && rounded < 1)
        phema_strbuf_printf(out, "ema:decay=%.12g", 1 - rounded);
    else
        phema_strbuf_printf(out, "ema:half-life=%.6g", half_life);
}

/* A SPEC of the kind that was found; NULL: none fits. */
static const char *find_spec(const struct doctor *doctor, const struct pairs *pairs,
                             struct phema_profile *profiles)
{
    const struct phema_decay_set *set = &pairs->set;
    struct phema_arena *memory = &doctor->out->memory;
    struct phema_strbuf text = {0};
    if (set->kind == PHEMA_DECAYS_STEADY) {
        write_ema(&text, set, doctor->series->unit);
    } else if (set->kind == PHEMA_DECAYS_POWER && set->gamma > -0.5) {
        bool is_mean = fabs(set->gamma) < fmax(0.05, 3 * set->gamma_spread);
        int unused;
        phema_strbuf_printf(&text, "power:gamma=%.6g",
                            is_mean ? 0 : round_within(&unused, set->gamma, set->gamma_spread));
    } else if (set->kind == PHEMA_DECAYS_RAW) {
        phema_strbuf_puts(&text, "raw");
    }
    bool is_found = text.size && !text.is_failed &&
                    (set->kind == PHEMA_DECAYS_RAW || try_spec(pairs, profiles, text.data, memory));
    const char *spec = is_found ? phema_arena_copy(memory, text.data, text.size) : NULL;
    phema_strbuf_clear(&text);
    return spec;
}

/* The claimed decay of a step as the largest one, after the usual warm-up. */
static const char *find_warm_up(const struct doctor *doctor, const struct pairs *pairs,
                                struct phema_profile *profiles)
{
    const struct phema_profile *newest = &pairs->labels[pairs->n - 1]->profile;
    if (newest->shape != PHEMA_SHAPE_EMA || strcmp(doctor->series->unit, "steps") != 0)
        return NULL;
    const char *text = phema_arena_printf(&doctor->out->memory, "diffusers:decay=%.12g",
                                          exp2(-1 / newest->half_life));
    return text && try_spec(pairs, profiles, text, &doctor->out->memory) ? text : NULL;
}

/* What is claimed, of updates every so many steps, with another decay of an update. */
static const char *find_decay_of_updates(const struct doctor *doctor, const struct pairs *pairs,
                                         struct phema_profile *profiles)
{
    static const char key[] = "decay=", period[] = "every=";
    const struct phema_decay_set *set = &pairs->set;
    const char *keys = set->claimed ? strchr(set->claimed, ':') : NULL;
    const char *every = keys ? strstr(keys, period) : NULL,
               *decay = keys ? strstr(keys, key) : NULL;
    double steps = every ? strtod(every + strlen(period), NULL) : 1;
    if (set->kind != PHEMA_DECAYS_STEADY || !(steps > 1))
        return NULL;
    int unused;
    const char *before = decay ? decay : keys + 1,
               *rest = decay ? decay + strcspn(decay, ",") : before;
    const char *text = phema_arena_printf(
        &doctor->out->memory, "%.*s%s%.12g%s%s", (int)(before - set->claimed), set->claimed, key,
        1 - find_round_off(&unused, set, steps), decay ? "" : ",", rest);
    return text && try_spec(pairs, profiles, text, &doctor->out->memory) ? text : NULL;
}

const char *decays_find_other(const struct doctor *doctor, const struct pairs *pairs,
                              struct phema_profile *profiles)
{
    const char *of_updates = find_decay_of_updates(doctor, pairs, profiles);
    if (of_updates)
        return of_updates;
    const char *warm_up = find_warm_up(doctor, pairs, profiles);
    double rated = warm_up ? decays_rate(pairs, profiles, 0, pairs->set.n) : HUGE_VAL;
    const char *found = find_spec(doctor, pairs, profiles);
    bool is_better = found && strcmp(found, "raw") != 0 &&
                     decays_rate(pairs, profiles, 0, pairs->set.n) + DECAY_AS_LIKELY < rated;
    return warm_up && !is_better ? warm_up : found;
}

const char *decays_find_usual(const struct doctor *doctor, const struct pairs *pairs,
                              struct phema_profile *profiles)
{
    const char *const *usual = doctor->series->usual, *best = NULL;
    double least = HUGE_VAL;
    for (size_t i = 0; usual && usual[i]; i++) {
        if (!try_spec(pairs, profiles, usual[i], &doctor->out->memory))
            continue;
        double rated = decays_rate(pairs, profiles, 0, pairs->set.n);
        best = rated < least ? usual[i] : best;
        least = fmin(least, rated);
    }
    return best;
}

/* Profiles that nothing contradicts. */
struct choice {
    const char *spec;
    double rated;
    double kept; /* of the last interval */
};

#define MOST_CHOICES 128
struct choices {
    struct choice items[MOST_CHOICES];
    size_t n;
};

static void try_class(struct choices *choices, const struct doctor *doctor,
                      const struct pairs *pairs, struct phema_profile *profiles, const char *text)
{
    struct phema_arena *memory = &doctor->out->memory;
    if (choices->n == MOST_CHOICES || !try_spec(pairs, profiles, text, memory))
        return;
    const char *spec = phema_arena_copy(memory, text, strlen(text));
    if (spec)
        choices->items[choices->n++] = (struct choice){
            .spec = spec,
            .rated = decays_rate(pairs, profiles, 0, pairs->set.n),
            .kept = decay_kept_by(&profiles[pairs->n - 1], pairs->ends[pairs->n - 2])};
}

static size_t count_same(const struct choices *choices, double kept)
{
    size_t n = 0;
    for (size_t i = 0; i < choices->n; i++)
        n += fabs(choices->items[i].kept - kept) < 1e-9;
    return n;
}

/* The likeliest of those from the first on. Of several that are as likely, the one with most equals is
 * taken: a cap that does not bind is likelier than one that binds at last. NULL: there is none. */
static const struct choice *find_best(const struct choices *choices, size_t first)
{
    const struct choice *best = NULL;
    double least = HUGE_VAL;
    for (size_t i = first; i < choices->n; i++)
        least = fmin(least, choices->items[i].rated);
    for (size_t i = first; i < choices->n; i++) {
        const struct choice *choice = &choices->items[i];
        if (choice->rated <= least + DECAY_AS_LIKELY &&
            (!best || count_same(choices, choice->kept) > count_same(choices, best->kept)))
            best = choice;
    }
    return best;
}

/* Whether errors of the method may explain the difference. They are as large as what the better one
 * is rated. */
static bool is_nearly_as_likely(const struct choice *choice, const struct choice *best)
{
    return choice->rated <= 2 * best->rated + DECAY_AS_LIKELY;
}

/* The one that is nearly as likely and keeps most or least. NULL: all keep the same. */
static const char *find_other_choice(const struct choices *choices, const struct choice *best)
{
    const struct choice *other = NULL;
    double most = 0.01;
    for (size_t i = 0; i < choices->n; i++) {
        const struct choice *choice = &choices->items[i];
        double apart = fabs(log(choice->kept / best->kept));
        if (!is_nearly_as_likely(choice, best) || !(apart > most))
            continue;
        most = apart;
        other = choice;
    }
    return other ? other->spec : NULL;
}

/* A usual decay, or the one that was found, with a warm-up; or a schedule; or the given SPEC, which may
 * be NULL. Its number was fitted, and that of warm-ups is biased: a usual average that is nearly as
 * likely is taken. NULL: none fits. */
static const char *find_class(const struct doctor *doctor, struct pairs *pairs,
                              struct phema_profile *profiles, const char *given)
{
    struct phema_decay_set *set = &pairs->set;
    const char *unit = doctor->series->unit;
    struct choices choices = {.n = 0};
    struct usual_average decay, average;
    struct phema_strbuf own = {0};
    double end = pairs->ends[pairs->n - 1];
    if (given)
        try_class(&choices, doctor, pairs, profiles, given);
    size_t n_given = choices.n;
    if (end > USUAL_MOST_STEPS || strcmp(unit, "steps") != 0)
        return n_given ? choices.items[0].spec : NULL;
    if (set->kind == PHEMA_DECAYS_STEADY)
        write_ema(&own, set, unit);
    for (size_t j = 0; own.size && usual_average_warmup(&average, own.data, j, end); j++)
        try_class(&choices, doctor, pairs, profiles, average.spec);
    phema_strbuf_clear(&own);
    for (size_t i = 0; usual_average(&decay, i, end); i++) {
        try_class(&choices, doctor, pairs, profiles, decay.spec);
        for (size_t j = 0; usual_average_warmup(&average, decay.spec, j, end); j++)
            try_class(&choices, doctor, pairs, profiles, average.spec);
    }
    const struct choice *best = find_best(&choices, n_given);
    if (n_given && (!best || !is_nearly_as_likely(best, &choices.items[0])))
        best = &choices.items[0];
    set->doubted = best ? find_other_choice(&choices, best) : NULL;
    return best ? best->spec : NULL;
}

/* An average that is updated every so many steps only, as a counter inside says: at the last of them,
 * or at the first. What fits better is taken; the other one is doubted, since they hardly differ.
 * NULL: no counter says it, or none fits. */
static const char *find_counted(const struct doctor *doctor, struct pairs *pairs,
                                struct phema_profile *profiles)
{
    const struct phema_snapshot *first = pairs->labels[0], *last = pairs->labels[pairs->n - 1];
    double every = (last->time - first->time) / (last->n_updates - first->n_updates);
    double start = fmax(0, round(last->time - last->n_updates * round(every)));
    bool is_whole = every > 1.5 && every < 1e9 && fabs(every / round(every) - 1) < 0.02;
    if (pairs->set.kind != PHEMA_DECAYS_STEADY || !is_whole ||
        strcmp(doctor->series->unit, "steps") != 0)
        return NULL;
    int unused;
    struct choices choices = {.n = 0};
    const char *texts[2];
    double decay = 1 - find_round_off(&unused, &pairs->set, round(every));
    for (size_t phase = 0; phase < 2; phase++) {
        struct phema_arena *memory = &doctor->out->memory;
        const char *from = start > 0 ? phema_arena_printf(memory, ",start=%.0f", start) : "";
        texts[phase] =
            phema_arena_printf(memory, "averaged-model:decay=%.12g,every=%.0f%s%s", decay,
                               round(every), phase ? ",phase=1" : "", from ? from : "");
        if (!from || !texts[phase])
            return NULL;
        try_class(&choices, doctor, pairs, profiles, texts[phase]);
    }
    const struct choice *items = choices.items;
    const char *best =
        choices.n ? items[choices.n > 1 && items[1].rated < items[0].rated].spec : NULL;
    pairs->set.doubted = best ? texts[strcmp(best, texts[0]) == 0] : NULL;
    return best;
}

/* A half-life that fits the later steps, most of all: the average was warmed up, or began late. */
static void propose_from(const struct doctor *doctor, struct pairs *pairs,
                         struct phema_profile *profiles)
{
    struct phema_decay_set *set = &pairs->set;
    struct phema_arena *memory = &doctor->out->memory;
    struct phema_strbuf text = {0};
    struct phema_profile ema = {
        .shape = PHEMA_SHAPE_EMA, .update_every = 1, .half_life = set->half_life};
    size_t first = set->n;
    for (size_t k = 0; k < pairs->n; k++) {
        profiles[k] = ema;
        profiles[k].t = pairs->ends[k];
    }
    while (first > 0 && decays_fit(pairs, profiles, first - 1, first))
        first--;
    if (first > 0 && 2 * first <= set->n && set->n - first >= DECAY_LEAST_FITTED) {
        write_ema(&text, set, doctor->series->unit);
        set->fits = phema_arena_copy(memory, text.data, text.size);
        set->fits_from = set->fits ? set->steps[first].from : PHEMA_UNKNOWN;
    }
    phema_strbuf_clear(&text);
}

/* ---- Together ---- */

/* Another profile, as long as the average may last by what was fitted. Half of the spread is what
 * trainings of known profiles were off. A usual decay is not one that lies between others. */
static const char *find_doubted(const struct phema_decay_set *set,
                                const struct phema_profile *profile, struct phema_arena *memory)
{
    double fitted = set->half_life, spread = set->half_life_spread, used = profile->half_life;
    double off = -expm1(-M_LN2 / used); /* 1 - decay */
    bool is_power = set->kind == PHEMA_DECAYS_POWER && profile->shape == PHEMA_SHAPE_POWER;
    if (is_power) {
        fitted = set->gamma + 1;
        spread = set->gamma_spread;
        used = profile->gamma + 1;
    } else if (set->kind != PHEMA_DECAYS_STEADY || profile->shape != PHEMA_SHAPE_EMA) {
        return NULL;
    } else if (fabs(find_usual_off(off) / off - 1) < 1e-6) {
        spread = 0;
    }
    if (is_power && profile->gamma == 0) /* the plain mean */
        return NULL;
    spread *= fitted < used ? -0.5 : 0.5;
    double other = fmax(fitted + spread, used / 2);
    return phema_arena_printf(memory, is_power ? "power:gamma=%.9g" : "ema:half-life=%.9g",
                              is_power ? other - 1 : other);
}

void decays_propose(const struct doctor *doctor, struct pairs *pairs)
{
    struct phema_decay_set *set = &pairs->set;
    struct phema_profile *profiles =
        phema_arena_array(&doctor->out->memory, pairs->n, sizeof(*profiles));
    bool has_rule = set->kind == PHEMA_DECAYS_STEADY || set->kind == PHEMA_DECAYS_POWER ||
                    set->kind == PHEMA_DECAYS_VARY;
    if (!profiles || !has_rule || set->n_fitted < DECAY_LEAST_FITTED)
        return;
    set->fits = decays_find_usual(doctor, pairs, profiles);
    if (!set->fits)
        set->fits = find_counted(doctor, pairs, profiles);
    const char *spec = set->fits ? NULL : find_spec(doctor, pairs, profiles);
    if (!set->fits && (!spec || set->kind == PHEMA_DECAYS_POWER)) /* most warm-ups begin as one */
        set->fits = find_class(doctor, pairs, profiles, spec);
    else if (spec)
        set->fits = spec;
    if (!set->fits && set->kind == PHEMA_DECAYS_STEADY)
        propose_from(doctor, pairs, profiles);
    struct phema_spec *chosen = NULL;
    struct phema_error unused;
    if (set->fits && !set->doubted &&
        !phema_spec_parse(&chosen, &doctor->out->memory, set->fits, &unused) &&
        !phema_spec_profile(&profiles[0], chosen, pairs->ends[pairs->n - 1], &unused))
        set->doubted = find_doubted(set, &profiles[0], &doctor->out->memory);
}
