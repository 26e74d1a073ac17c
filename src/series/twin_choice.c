// SPDX-License-Identifier: Apache-2.0
/* twin_choice.c - Of several pairs of sets, each of which twins.c has judged, the one that a series is
 * made of: the raw set is that which all others look back at. */
#include <ctype.h>
#include <string.h>

#include "phema/setting.h"
#include "twins.h"

/* Averages that differ by so little, squared, to that of the raw set: by the rounding of a dtype. */
#define LEAST_APART 0.01

/* Neither a frozen model nor a copy of the raw parameters is an average, where there is one. */
static bool is_none(const struct twin_judged *judged)
{
    const struct twin_evidence *evidence = &judged->decision.evidence;
    return judged->decision.is_still || (evidence->sizes[0] > 0 && evidence->apart == 0);
}

static void drop_others(struct twin_judgement *judgement)
{
    size_t n = 0;
    bool is_any = false;
    for (size_t i = 0; i < judgement->n; i++)
        is_any = is_any || !is_none(&judgement->items[i]);
    for (size_t i = 0; i < judgement->n && is_any; i++)
        if (!is_none(&judgement->items[i]))
            judgement->items[n++] = judgement->items[i];
    judgement->n = is_any ? n : judgement->n;
}

static bool averages(const struct twin_judgement *judgement, struct phema_span average,
                     struct phema_span raw)
{
    for (size_t i = 0; i < judgement->n; i++)
        if (phema_spans_compare(judgement->items[i].average, average) == 0 &&
            phema_spans_compare(judgement->items[i].raw, raw) == 0)
            return true;
    return false;
}

static bool is_average_of_any(const struct twin_judgement *judgement, struct phema_span set)
{
    for (size_t i = 0; i < judgement->n; i++)
        if (phema_spans_compare(judgement->items[i].average, set) == 0)
            return true;
    return false;
}

/* Leaves the pairs of one raw set: the one that all others look back at. Returns another raw set,
 * whose averages are as good; {NULL, 0}: there is one. */
static struct phema_span keep_one_raw(struct twin_judgement *judgement)
{
    struct phema_span raw = {NULL, 0}, other = {NULL, 0};
    size_t n = 0;
    for (size_t i = 0; i < judgement->n; i++) {
        const struct twin_judged *judged = &judgement->items[i];
        if (is_average_of_any(judgement, judged->raw))
            continue;
        raw = raw.data ? raw : judged->raw;
        if (!span_begins_with(raw, judged->raw) && !span_begins_with(judged->raw, raw) &&
            !averages(judgement, judged->average, raw))
            other = judged->raw;
    }
    for (size_t i = 0; i < judgement->n && raw.data; i++)
        if (phema_spans_compare(judgement->items[i].raw, raw) == 0)
            judgement->items[n++] = judgement->items[i];
    judgement->n = raw.data ? n : judgement->n;
    return other;
}

/* Of several averages of one raw set, those whose names say average, if there are any. */
static void prefer_named(struct twin_judgement *judgement)
{
    size_t n = 0, n_named = 0;
    for (size_t i = 0; i < judgement->n; i++)
        n_named += says_average(judgement->items[i].average);
    for (size_t i = 0; i < judgement->n && n_named; i++)
        if (says_average(judgement->items[i].average))
            judgement->items[n++] = judgement->items[i];
    judgement->n = n_named ? n : judgement->n;
}

/* Whether a name has the decay of a SPEC as a number: "ema_0.99" of "ema:decay=0.99". */
static bool has_decay(struct phema_span name, const char *spec)
{
    static const char key[] = "decay=";
    const char *decay = strstr(spec, key);
    size_t size = decay ? strspn(decay + strlen(key), "0123456789.") : 0;
    const uint8_t *end = name.data + name.size;
    const uint8_t *at = size ? memmem(name.data, name.size, decay + strlen(key), size) : NULL;
    return at && (at == name.data || !isdigit(at[-1])) && (at + size == end || !isdigit(at[size]));
}

/* Of several averages, those whose names have the decay that the options give, if there are any. */
static void prefer_asked(struct twin_judgement *judgement,
                         const struct phema_series_options *options)
{
    size_t n = 0;
    const char *spec = options->n_input_profiles == 1 ? options->input_profiles[0] : "";
    for (size_t i = 0; i < judgement->n; i++)
        if (has_decay(judgement->items[i].average, spec)) {
            struct twin_judged found = judgement->items[i];
            judgement->items[n++] = found;
        }
    judgement->n = n ? n : judgement->n;
}

/* Whether two averages are one in two dtypes: far nearer to each other than to the raw set. */
static bool are_same(const struct twin_judgement *judgement, const struct twin_judged *a,
                     const struct twin_judged *b)
{
    for (size_t i = 0; i < judgement->n_all; i++) {
        const struct twin_pair *pair = judgement->all[i].pair;
        bool is_theirs = (phema_spans_compare(pair->first, a->average) == 0 &&
                          phema_spans_compare(pair->second, b->average) == 0) ||
                         (phema_spans_compare(pair->first, b->average) == 0 &&
                          phema_spans_compare(pair->second, a->average) == 0);
        if (is_theirs)
            return judgement->all[i].decision.evidence.apart <=
                   LEAST_APART * a->decision.evidence.apart;
    }
    return false;
}

struct phema_span twins_second(const struct twin_judgement *judgement)
{
    const struct twin_judged *first = &judgement->items[0];
    for (size_t i = 1; i < judgement->n; i++) {
        struct phema_span second = judgement->items[i].average;
        if (!span_begins_with(first->average, second) &&
            !span_begins_with(second, first->average) &&
            !are_same(judgement, first, &judgement->items[i]))
            return second;
    }
    return (struct phema_span){NULL, 0};
}

static enum phema_status fail_several(const char *root, struct phema_span first,
                                      struct phema_span second, const char *what,
                                      enum phema_setting how, struct phema_error *err)
{
    struct phema_name_buffer shown[2];
    return phema_fail(err, PHEMA_ERR_INPUTS, "%s: '%s' and '%s' %s; %s chooses one", root,
                      twin_show(&shown[0], first), twin_show(&shown[1], second), what,
                      phema_setting_name(how));
}

enum phema_status twins_fail_averages(const char *root, struct phema_span first,
                                      struct phema_span second, enum phema_setting how,
                                      struct phema_error *err)
{
    struct phema_strbuf key = {0};
    (void)fail_several(root, first, second, "are both averages of one model", how, err);
    phema_strbuf_append(&key, (const char *)first.data, first.size ? first.size - 1 : 0);
    if (how == PHEMA_SET_KEY && key.data && !key.is_failed)
        (void)phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_KEY, key.data);
    phema_strbuf_clear(&key);
    return PHEMA_ERR_INPUTS;
}

enum phema_status twins_select(struct twin_judgement *judgement,
                               const struct candidate_list *candidates,
                               const struct phema_series_options *options, enum phema_setting how,
                               struct phema_error *err)
{
    const char *root = options->snapshots;
    const struct twin_judged *first = &judgement->items[0];
    drop_others(judgement);
    struct phema_span other = keep_one_raw(judgement);
    if (other.data && !options->needs_no_profiles) {
        (void)fail_several(root, first->raw, other, "both have averages", how, err);
        return candidates->asks_for_raw ? phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_KEY, ".")
                                        : PHEMA_ERR_INPUTS;
    }
    if (candidates->asks_for_raw || options->needs_no_profiles)
        return PHEMA_OK;
    struct phema_name_buffer average, raw;
    if (first->decision.is_still)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: '%s' does not change, so that it is no average of '%s'; %s chooses "
                          "one of them",
                          root, twin_show(&average, first->average), twin_show(&raw, first->raw),
                          phema_setting_name(how));
    prefer_named(judgement);
    prefer_asked(judgement, options);
    struct phema_span second = twins_second(judgement);
    return second.data ? twins_fail_averages(root, first->average, second, how, err) : PHEMA_OK;
}
