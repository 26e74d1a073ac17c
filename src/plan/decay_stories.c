// SPDX-License-Identifier: Apache-2.0
/* decay_stories.c - what the decays of an average are all together: one half-life, those of a power
 * function, or something that happened in between. */
#include "decays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/strbuf.h"

#define LEAST_KEPT 0.05 /* less tells no half-life */
#define MOST_OF_SHORT                                                                              \
    0.3                /* that may be left of an average at the next time, by which it is short */
#define FITS      1.25 /* by so much 1 - kept may differ from one rule for all */
#define EXCHANGED (-0.05)

#define WORST_ERROR 0.2 /* of a half-life that a step tells alone */

/* By so much the rule of all steps differs from the profile, at least; and in its spreads. */
#define RULES_DIFFER 1.2
#define RULES_REFUTE 5.0

/* Errors of the method beyond those of the sample. */
#define LEAST_ERROR 0.02

/* ---- One rule for all ---- */

struct rule {
    double value, spread; /* half-life, or gamma + 1; NaN: none */
    size_t n_misfits;
    double chi2;
};

struct vote {
    double value, weight;
};

static int compare_votes(const void *a, const void *b)
{
    const struct vote *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* The unit of time in which a rule decays evenly: time, or its logarithm. */
static double span_of(const struct phema_decay_set *set, const double *ends, size_t k,
                      bool is_power)
{
    return is_power ? log(ends[k + 1] / ends[k]) : set->steps[k].length;
}

/* Kept in a step by a rule. */
static double kept_by(double value, double span, bool is_power)
{
    return is_power ? exp(-value * span) : exp2(-span / value);
}

/* The value that a step alone tells; false: none. */
static bool vote_of(struct vote *out, const struct phema_decay_step *step, double span,
                    bool is_power)
{
    const struct phema_estimate *kept = &step->fit.kept;
    double rate = -log(kept->value), error = kept->spread / (kept->value * rate);
    if (step->fit.state != PHEMA_DECAY_FITTED || !isfinite(span) || !(rate > 0) ||
        !(kept->value - 2 * kept->spread > LEAST_KEPT) || !(error < WORST_ERROR))
        return false;
    *out =
        (struct vote){is_power ? rate / span : span * M_LN2 / rate, 1 / hypot(error, LEAST_ERROR)};
    out->weight *= out->weight;
    return true;
}

/* The median of the votes by weight, which a few other steps do not move. */
static double median_of(struct vote *votes, size_t n)
{
    double all = 0, before = 0;
    size_t middle = 0;
    for (size_t i = 0; i < n; i++)
        all += votes[i].weight;
    qsort(votes, n, sizeof(*votes), compare_votes);
    while (before + votes[middle].weight < all / 2)
        before += votes[middle++].weight;
    return votes[middle].value;
}

static struct rule find_rule(const struct phema_decay_set *set, const double *ends,
                             struct vote *votes, bool is_power)
{
    struct rule rule = {PHEMA_UNKNOWN, PHEMA_UNKNOWN, 0, 0};
    size_t n = 0;
    double all = 0, scatter = 0;
    for (size_t k = 0; k < set->n; k++)
        if (vote_of(&votes[n], &set->steps[k], span_of(set, ends, k, is_power), is_power))
            all += votes[n++].weight;
    if (n == 0 || 2 * n < set->n_fitted) /* chance chooses among those that tell little */
        return rule;
    rule.value = median_of(votes, n);
    for (size_t i = 0; i < n; i++)
        scatter += votes[i].weight * fabs(votes[i].value / rule.value - 1);
    double own = fmax(1 / sqrt(all), scatter / all / sqrt((double)n));
    rule.spread = rule.value * hypot(own, LEAST_ERROR);
    for (size_t k = 0; k < set->n; k++) {
        double span = span_of(set, ends, k, is_power);
        double expected = kept_by(rule.value, span, is_power);
        const struct phema_decay_interval *fit = &set->steps[k].fit;
        rule.n_misfits += phema_decay_refutes(fit, expected, FITS) != 0;
        double off =
            (fit->kept.value - expected) / hypot(fit->kept.spread, LEAST_ERROR * (1 - expected));
        rule.chi2 += fit->state == PHEMA_DECAY_FITTED ? fmin(off * off, 25) : 0;
    }
    return rule;
}

/* How many times faster the averages of most steps decay than their profile says; NaN: too few tell. In
 * a long step little is kept by either, so that shares of what is new hardly differ. */
static double times_faster(const struct phema_decay_set *set, const double *ends,
                           struct vote *votes)
{
    size_t n = 0;
    for (size_t k = 0; k < set->n; k++) {
        double claimed = -log(set->steps[k].claimed), span = span_of(set, ends, k, false);
        if (claimed > 0 && isfinite(claimed) && vote_of(&votes[n], &set->steps[k], span, false)) {
            votes[n].value = span * M_LN2 / votes[n].value / claimed;
            n++;
        }
    }
    return n < DECAY_LEAST_FITTED || 2 * n < set->n_fitted ? PHEMA_UNKNOWN : median_of(votes, n);
}

static bool is_far_from_claim(const struct phema_decay_set *set, const struct rule *rule,
                              const double *ends, struct vote *votes)
{
    double off = fabs(log(times_faster(set, ends, votes)));
    return rule->n_misfits == 0 && off > log(RULES_DIFFER) &&
           off > RULES_REFUTE * rule->spread / rule->value;
}

/* ---- Kinds ---- */

static size_t count_state(const struct phema_decay_set *set, enum phema_decay_state state)
{
    size_t n = 0;
    for (size_t k = 0; k < set->n; k++)
        n += set->steps[k].fit.state == state;
    return n;
}

/* The median of what half-life a step allows at most, HUGE_VAL where much may be kept. */
static double most_half_life(const struct phema_decay_set *set, struct vote *votes)
{
    size_t n = 0;
    for (size_t k = 0; k < set->n; k++) {
        const struct phema_decay_step *step = &set->steps[k];
        double most = fmax(step->fit.kept.value + 2 * step->fit.kept.spread, LEAST_KEPT);
        if (step->fit.state == PHEMA_DECAY_FITTED)
            votes[n++].value = most < MOST_OF_SHORT ? step->length * M_LN2 / -log(most) : HUGE_VAL;
    }
    qsort(votes, n, sizeof(*votes), compare_votes);
    return n ? votes[n / 2].value : HUGE_VAL;
}

/* Where no step tells a half-life. */
static void choose_without_rule(struct phema_decay_set *set, struct vote *votes)
{
    size_t n_raw = count_state(set, PHEMA_DECAY_RAW),
           n_frozen = count_state(set, PHEMA_DECAY_FROZEN);
    double half_life = most_half_life(set, votes);
    if (n_frozen && n_frozen >= n_raw && n_frozen >= set->n_fitted) {
        set->kind = PHEMA_DECAYS_FROZEN;
    } else if (n_raw && n_raw >= set->n_fitted) {
        set->kind = PHEMA_DECAYS_RAW;
    } else if (half_life < HUGE_VAL) {
        set->kind = PHEMA_DECAYS_SHORT;
        set->half_life = half_life;
    }
}

/* Sets expected [n] to what the rule keeps; NaN where there is none. */
static void choose_kind(struct phema_decay_set *set, double *expected, const double *ends,
                        struct vote *votes)
{
    struct rule steady = find_rule(set, ends, votes, false);
    struct rule power = find_rule(set, ends, votes, true);
    bool is_power = steady.n_misfits != power.n_misfits ? power.n_misfits < steady.n_misfits
                                                        : power.chi2 < steady.chi2;
    is_power = !isnan(power.value) && is_power;
    const struct rule *rule = is_power ? &power : &steady;
    for (size_t k = 0; k < set->n; k++)
        expected[k] = kept_by(rule->value, span_of(set, ends, k, is_power), is_power);
    if (isnan(rule->value)) {
        choose_without_rule(set, votes);
        return;
    }
    set->is_other = set->claimed && is_far_from_claim(set, rule, ends, votes);
    set->kind = 3 * rule->n_misfits > set->n ? PHEMA_DECAYS_VARY
                : is_power                   ? PHEMA_DECAYS_POWER
                                             : PHEMA_DECAYS_STEADY;
    if (set->kind == PHEMA_DECAYS_STEADY) {
        set->half_life = rule->value;
        set->half_life_spread = rule->spread;
    } else if (set->kind == PHEMA_DECAYS_POWER) {
        set->gamma = rule->value - 1;
        set->gamma_spread = rule->spread;
    }
}

/* ---- Events ---- */

/* What a step is beside what is expected of it. */
enum event { NOTHING, FROZEN, RAW, FASTER, SLOWER, REPLACES };

static enum event event_of(const struct phema_decay_step *step, double expected)
{
    int side = phema_decay_refutes(&step->fit, expected, DECAY_ONE_DIFFERS);
    if (step->is_replaced)
        return REPLACES;
    if (step->fit.state == PHEMA_DECAY_FROZEN)
        return isnan(expected) || side ? FROZEN : NOTHING;
    if (step->fit.state == PHEMA_DECAY_RAW)
        return isnan(expected) || side ? RAW : NOTHING;
    return side == 0 ? NOTHING : side > 0 ? FASTER : SLOWER;
}

bool decay_keeps_none(const struct phema_decay_step *step)
{
    return step->fit.kept.value < fmax(0.1, 3 * step->fit.kept.spread);
}

static const char *name_faster(const struct phema_decay_set *set, size_t begin, size_t end)
{
    const struct phema_estimate *first = &set->steps[begin].fit.kept;
    bool is_none_kept = decay_keeps_none(&set->steps[begin]);
    bool rises = end - begin > 1 && set->steps[end - 1].fit.kept.value > first->value;
    if (begin == 0 && (rises || is_none_kept))
        return "warmed up, or began as a copy,";
    if (is_none_kept)
        return rises ? "began anew, and its counter, too," : "restarted from a copy";
    return "decayed faster";
}

static void write_event(struct phema_strbuf *out, const struct phema_decay_set *set,
                        enum event event, size_t begin, size_t end)
{
    static const char *const names[] = {[FROZEN] = "did not move",
                                        [RAW] = "became the raw parameters",
                                        [SLOWER] = "decayed more slowly",
                                        [REPLACES] = "replaced the raw parameters"};
    const char *name = event == FASTER ? name_faster(set, begin, end) : names[event];
    struct phema_name_buffer from, to;
    phema_strbuf_printf(out, "%s%s between %s and %s", out->size ? "; " : "", name,
                        phema_number_format(&from, set->steps[begin].from),
                        phema_number_format(&to, set->steps[end - 1].to));
}

#define MOST_EVENTS 4

static void write_events(struct phema_strbuf *out, const struct phema_decay_set *set,
                         const double *expected)
{
    size_t n_events = 0;
    for (size_t k = 0, end; k < set->n; k = end) {
        enum event event = event_of(&set->steps[k], expected[k]);
        end = k + 1;
        while (end < set->n && event_of(&set->steps[end], expected[end]) == event)
            end++;
        if (event != NOTHING && n_events++ < MOST_EVENTS)
            write_event(out, set, event, k, end);
    }
    if (n_events > MOST_EVENTS)
        phema_strbuf_printf(out, "; and %zu more", n_events - MOST_EVENTS);
}

/* ---- Together ---- */

bool decay_set_is_other(const struct phema_decay_set *set)
{
    size_t n_less = 0, n_more = 0, n_decided = 0;
    for (size_t k = 0; k < set->n; k++) {
        const struct phema_decay_step *step = &set->steps[k];
        int side = phema_decay_refutes(&step->fit, step->claimed, DECAY_MOST_DIFFER);
        n_less += side > 0;
        n_more += side < 0;
        n_decided += step->fit.state != PHEMA_DECAY_UNCLEAR && !isnan(step->claimed);
    }
    return set->is_other || 2 * (n_less > n_more ? n_less : n_more) > n_decided;
}

void decay_set_judge(struct phema_decay_set *set)
{
    size_t n_refuted = 0;
    for (size_t k = 0; k < set->n; k++) {
        struct phema_decay_step *step = &set->steps[k];
        step->is_refuted = phema_decay_refutes(&step->fit, step->claimed, DECAY_ONE_DIFFERS) != 0;
        n_refuted += step->is_refuted;
    }
    bool is_other = decay_set_is_other(set) && set->n_fitted >= DECAY_LEAST_FITTED;
    bool is_exchanged = set->claimed && set->kind == PHEMA_DECAYS_EXCHANGED;
    set->is_refuted = n_refuted || is_other || is_exchanged;
}

/* A profile that fits most of the time says more than one rule for all. */
static void believe_profile(struct phema_decay_set *set, double *expected)
{
    bool is_steady = set->kind == PHEMA_DECAYS_STEADY;
    for (size_t k = 0; k < set->n; k++) {
        const struct phema_decay_step *step = &set->steps[k];
        if (isnan(step->claimed))
            continue;
        expected[k] = step->claimed;
        double ratio = step->length * M_LN2 / -log(step->claimed) / set->half_life;
        is_steady = is_steady && ratio < FITS && ratio > 1 / FITS;
    }
    if (set->kind == PHEMA_DECAYS_POWER || set->kind == PHEMA_DECAYS_VARY ||
        (set->kind == PHEMA_DECAYS_STEADY && !is_steady))
        set->kind = PHEMA_DECAYS_CLAIMED;
    if (set->kind == PHEMA_DECAYS_CLAIMED)
        set->half_life = set->half_life_spread = set->gamma = set->gamma_spread = PHEMA_UNKNOWN;
}

PHEMA_FALLIBLE decay_set_explain(struct phema_decay_set *set, const double *ends,
                                 struct phema_arena *memory, struct phema_error *err)
{
    struct vote *votes = phema_arena_array(memory, set->n, sizeof(*votes));
    double *expected = phema_arena_array(memory, set->n, sizeof(*expected));
    if (!votes || !expected)
        return phema_fail_memory(err);
    for (size_t k = 0; k < set->n; k++) {
        struct phema_decay_step *step = &set->steps[k];
        double kept = step->fit.state == PHEMA_DECAY_FITTED ? step->fit.kept.value : PHEMA_UNKNOWN;
        step->half_life = kept > 0 && kept < 1 ? step->length * M_LN2 / -log(kept) : PHEMA_UNKNOWN;
        set->n_fitted += step->fit.state == PHEMA_DECAY_FITTED;
    }
    set->half_life = set->half_life_spread = set->gamma = set->gamma_spread = PHEMA_UNKNOWN;
    set->fits_from = PHEMA_UNKNOWN;
    choose_kind(set, expected, ends, votes);
    if (set->margin.value < EXCHANGED - 5 * set->margin.spread) {
        set->kind = PHEMA_DECAYS_EXCHANGED;
        return PHEMA_OK;
    }
    if (set->claimed && !decay_set_is_other(set))
        believe_profile(set, expected);
    if (set->kind == PHEMA_DECAYS_FROZEN || set->kind == PHEMA_DECAYS_RAW)
        return PHEMA_OK;
    for (size_t k = 0; k < set->n && set->kind == PHEMA_DECAYS_SHORT; k++)
        expected[k] = isnan(expected[k]) ? 0 : expected[k]; /* as near as the raw parameters */
    struct phema_strbuf text = {0};
    write_events(&text, set, expected);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status && text.size) {
        set->events = phema_arena_copy(memory, text.data, text.size);
        status = set->events ? PHEMA_OK : phema_fail_memory(err);
    }
    phema_strbuf_clear(&text);
    return status;
}

/* ---- In words ---- */

/* "34.3 +- 0.4": as many digits as the spread has two of. */
static void write_estimate(struct phema_strbuf *out, double value, double spread)
{
    int digits = spread > 0 ? 1 - (int)floor(log10(spread)) : 3;
    digits = digits < 0 ? 0 : digits > 6 ? 6 : digits;
    phema_strbuf_printf(out, "%.*f +- %.*f", digits, value, digits, spread);
}

static void write_kind(struct phema_strbuf *out, const struct phema_decay_set *set,
                       const char *unit)
{
    static const char *const sentences[] = {
        [PHEMA_DECAYS_FROZEN] = "it does not move, although the raw parameters do",
        [PHEMA_DECAYS_RAW] = "none that shows: it equals the raw parameters, up to rounding",
        [PHEMA_DECAYS_EXCHANGED] = "the raw parameters look back at it: the two are exchanged",
        [PHEMA_DECAYS_CLAIMED] = "as its profile says",
        [PHEMA_DECAYS_VARY] = "not one for all times",
        [PHEMA_DECAYS_UNCLEAR] = "unclear"};
    switch (set->kind) {
    case PHEMA_DECAYS_STEADY:
        phema_strbuf_puts(out, "half-life ");
        write_estimate(out, set->half_life, set->half_life_spread);
        phema_strbuf_printf(out, " %s", unit);
        if (strcmp(unit, "steps") == 0)
            phema_strbuf_printf(out, ", decay %.5g a step", exp2(-1 / set->half_life));
        break;
    case PHEMA_DECAYS_POWER:
        phema_strbuf_puts(out, fabs(set->gamma) < fmax(0.05, 3 * set->gamma_spread)
                                   ? "equal weights since the start: gamma "
                                   : "a power function, or a warm-up like it: gamma ");
        write_estimate(out, set->gamma, set->gamma_spread);
        if (set->gamma > 0.05)
            phema_strbuf_printf(out, ", sigma_rel %.3g", phema_sigma_rel_from_gamma(set->gamma));
        break;
    case PHEMA_DECAYS_SHORT:
        phema_strbuf_printf(out, "half-life below %.2g %s: little is left of it at the next time",
                            set->half_life, unit);
        break;
    default:
        phema_strbuf_puts(out, sentences[set->kind]);
    }
}

void phema_decay_set_describe(struct phema_strbuf *out, const struct phema_decay_set *set,
                              const char *unit)
{
    write_kind(out, set, unit);
    if (set->events)
        phema_strbuf_printf(out, "; %s", set->events);
}

void phema_decay_set_write(struct phema_strbuf *out, const struct phema_decay_set *set,
                           const char *unit)
{
    struct phema_name_buffer name;
    phema_strbuf_printf(out, "'%s': ", phema_name_show(&name, set->name));
    phema_decay_set_describe(out, set, unit);
    if (set->n_fitted)
        phema_strbuf_printf(out, " (from %zu of %zu intervals)", set->n_fitted, set->n);
}

/* ---- Records ---- */

static const char *const kinds[] = {
    [PHEMA_DECAYS_UNCLEAR] = "unclear",    [PHEMA_DECAYS_STEADY] = "steady",
    [PHEMA_DECAYS_POWER] = "power",        [PHEMA_DECAYS_SHORT] = "short",
    [PHEMA_DECAYS_FROZEN] = "frozen",      [PHEMA_DECAYS_RAW] = "raw",
    [PHEMA_DECAYS_CLAIMED] = "claimed",    [PHEMA_DECAYS_VARY] = "vary",
    [PHEMA_DECAYS_EXCHANGED] = "exchanged"};
static const char *const states[] = {[PHEMA_DECAY_UNCLEAR] = "unclear",
                                     [PHEMA_DECAY_FITTED] = "fitted",
                                     [PHEMA_DECAY_FROZEN] = "frozen",
                                     [PHEMA_DECAY_RAW] = "raw"};

#define FIELD(kind, rule, name, member)                                                            \
    PHEMA_FIELD(kind, rule, name, struct phema_decay_set, member)

const struct phema_field phema_decay_set_fields[] = {
    FIELD(PATH, ALWAYS, "average", name),
    FIELD(PATH, IF_KNOWN, "claimed", claimed),
    FIELD(PATH, IF_KNOWN, "fits", fits),
    FIELD(NUMBER, IF_KNOWN, "fits_from", fits_from),
    PHEMA_FIELD_NAMED(kinds, "kind", struct phema_decay_set, kind),
    FIELD(NUMBER, ALWAYS, "half_life", half_life),
    FIELD(NUMBER, ALWAYS, "half_life_spread", half_life_spread),
    FIELD(NUMBER, ALWAYS, "gamma", gamma),
    FIELD(NUMBER, ALWAYS, "gamma_spread", gamma_spread),
    FIELD(NUMBER, ALWAYS, "margin", margin.value),
    FIELD(TEXT, ALWAYS, "events", events),
    FIELD(BOOL, ALWAYS, "refuted", is_refuted),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member)                                                            \
    PHEMA_FIELD(kind, rule, name, struct phema_decay_step, member)

const struct phema_field phema_decay_step_fields[] = {
    FIELD(NUMBER, ALWAYS, "from", from),
    FIELD(NUMBER, ALWAYS, "to", to),
    PHEMA_FIELD_NAMED(states, "state", struct phema_decay_step, fit.state),
    FIELD(NUMBER, ALWAYS, "kept", fit.kept.value),
    FIELD(NUMBER, ALWAYS, "kept_spread", fit.kept.spread),
    FIELD(NUMBER, ALWAYS, "claimed", claimed),
    FIELD(NUMBER, ALWAYS, "half_life", half_life),
    FIELD(NUMBER, ALWAYS, "place", fit.place),
    FIELD(BOOL, ALWAYS, "refuted", is_refuted),
    {0},
};
