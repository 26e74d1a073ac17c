// SPDX-License-Identifier: Apache-2.0
/* update_counts.c - the updates that an average counts inside its file, against the profile that it
 * is said to have. A counter may run ahead of the names, restart or not be kept: only what no such
 * counter can be is an error. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/setting.h"
#include "series_builder.h"

/* ---- Reading ---- */

/* Beside the tensors of an average; the first one counts averaged models, all others calls. At the
 * root these others may be those of the training. */
static const char *const counters[] = {"n_averaged", "num_updates", "updates", "optimization_step"};
#define COUNTS_MODELS(name) (strstr(name, counters[0]) != NULL)

static double count(const struct phema_checkpoint *checkpoint, const char *name)
{
    double value = snapshot_metadata_scalar(checkpoint, name);
    if (isnan(value))
        value = snapshot_metadata_value(checkpoint, name);
    bool is_count = value >= 0 && value < 0x1p53 && floor(value) == value;
    return is_count ? value : PHEMA_UNKNOWN;
}

PHEMA_FALLIBLE update_count_read(struct series_builder *builder, double *out,
                                 struct phema_error *err)
{
    static const char module[] = "module."; /* of torch's AveragedModel, which counts beside it */
    const struct phema_tensor_set *set = builder->filter.set;
    *out = PHEMA_UNKNOWN;
    if (!set || set->is_raw)
        return PHEMA_OK;
    size_t size = strlen(set->prefix), module_size = strlen(module);
    bool is_module = size >= module_size && strcmp(set->prefix + size - module_size, module) == 0;
    int sizes[2] = {(int)size, (int)(size - (is_module ? module_size : 0))};
    const char *of_trainer = set->trainer ? set->trainer->n_updates : NULL;
    size_t n = of_trainer ? 1 : size ? 2 * ARRAY_LEN(counters) : 1;
    for (size_t i = 0; i < n && isnan(*out); i++) {
        const char *name = of_trainer
                               ? of_trainer
                               : phema_arena_printf(&builder->scratch, "%.*s%s", sizes[i % 2],
                                                    set->prefix, counters[i / 2]);
        if (!name)
            return phema_fail_memory(err);
        *out = count(builder->checkpoint, name);
        if (!isnan(*out) && !builder->counter)
            builder->counter = name;
    }
    return PHEMA_OK;
}

/* ---- Comparing ---- */

/* Snapshots of one profile with counts, in the order of time. */
struct counted {
    const struct phema_snapshot **items; /* [n] */
    size_t n;
    const char *counter;
    double slope, start; /* c = (t - start) slope, within one count; NaN: no such line */
    const char *rule;    /* a SPEC of the trainer whose counter it is; NULL: anybody's */
};

static double share_of(double part, double whole, double power)
{
    return part > 0 && whole > 0 ? pow(part / whole, power) : 0;
}

static void fit_line(struct counted *counted)
{
    const struct phema_snapshot *first = counted->items[0], *last = counted->items[counted->n - 1];
    double slope = (last->n_updates - first->n_updates) / (last->time - first->time);
    counted->slope = counted->start = PHEMA_UNKNOWN;
    if (counted->n < 3 || !(slope > 0))
        return;
    for (size_t i = 1; i + 1 < counted->n; i++) {
        const struct phema_snapshot *at = counted->items[i];
        double expected = first->n_updates + slope * (at->time - first->time);
        if (fabs(at->n_updates - expected) > 1)
            return;
    }
    counted->slope = slope;
    counted->start = first->time - first->n_updates / slope;
}

static enum phema_status fail(struct phema_error *err, const struct counted *counted, size_t at,
                              const char *contradiction)
{
    const struct phema_snapshot *snapshot = counted->items[at];
    struct phema_name_buffer number;
    return phema_fail(err, PHEMA_ERR_INPUTS, "%s: '%s' inside is %s, and %s%s %s", snapshot->label,
                      counted->counter, phema_number_format(&number, snapshot->n_updates),
                      snapshot->spec, snapshot->is_assumed ? ", which was assumed," : "",
                      contradiction);
}

/* A window forgets, and raw parameters have no updates. The counter is that of a recurrence. */
static enum phema_status check_memory(const struct counted *counted, struct phema_error *err)
{
    const struct phema_snapshot *last = counted->items[counted->n - 1];
    if (last->profile.shape == PHEMA_SHAPE_RAW && last->n_updates >= 2 &&
        COUNTS_MODELS(counted->counter))
        return fail(err, counted, counted->n - 1, "has no updates");
    for (size_t i = 0; i + 1 < counted->n && phema_shape_has_begin(last->profile.shape); i++) {
        const struct phema_snapshot *at = counted->items[i];
        if (at->time < at->profile.length || at->n_updates >= last->n_updates)
            continue;
        (void)fail(err, counted, counted->n - 1,
                   "forgets what is older; an average that counts all its updates does not");
        return fabs(counted->start) <= 1
                   ? phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_INPUT_PROFILE, "power:gamma=0")
                   : PHEMA_ERR_INPUTS;
    }
    return PHEMA_OK;
}

/* Updates of a profile that says its steps, until its end; NaN of others. */
static double updates_of(const struct phema_profile *profile)
{
    if (profile->shape == PHEMA_SHAPE_TABLE)
        return (double)phema_betas_count(profile->betas, profile->t);
    bool is_every = profile->shape == PHEMA_SHAPE_POWER && profile->update_every > 1;
    return is_every ? 1 + floor((profile->t - 1) / (double)profile->update_every) : PHEMA_UNKNOWN;
}

/* The average began anew with the first update that snapshot i counts. */
static enum phema_status fail_anew(const struct counted *counted, size_t i, struct phema_error *err)
{
    const struct phema_snapshot *at = counted->items[i];
    double before = counted->items[i - 1]->time, first = at->time;
    double missed = updates_of(&at->profile) - at->n_updates;
    while (first - before > 1) {
        double middle = floor((before + first) / 2);
        bool is_before = (double)phema_betas_count(at->profile.betas, middle) <= missed;
        *(is_before ? &before : &first) = middle;
    }
    struct phema_name_buffer reset, found;
    (void)phema_number_format(&reset, at->named_time - (at->time - first));
    (void)phema_fail(err, PHEMA_ERR_INPUTS,
                     "%s: '%s' inside is %s, less than before: the average began anew at %s; "
                     "%s%s fits",
                     at->label, counted->counter, phema_number_format(&found, at->n_updates),
                     reset.text, phema_setting_equals(PHEMA_SET_RESET_AT), reset.text);
    return phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_RESET_AT, reset.text);
}

/* A trainer that counts exactly these updates: a wrong every or start shows. */
static enum phema_status check_each(const struct counted *counted, struct phema_error *err)
{
    const char *kind = counted->items[0]->kind;
    size_t size = strlen(kind);
    if (!counted->rule || strncmp(counted->rule, kind, size) != 0 || counted->rule[size] != ':')
        return PHEMA_OK;
    size_t i = 0;
    while (i < counted->n &&
           counted->items[i]->n_updates == updates_of(&counted->items[i]->profile))
        i++;
    if (i == counted->n)
        return PHEMA_OK;
    const struct phema_snapshot *at = counted->items[i];
    if (i && at->n_updates < counted->items[i - 1]->n_updates)
        return fail_anew(counted, i, err);
    struct phema_name_buffer found, wanted, time;
    (void)phema_fail(err, PHEMA_ERR_INPUTS,
                     "%s: '%s' inside is %s, but %s%s has %s updates until %s; every and start in "
                     "%s say which steps have one",
                     at->label, counted->counter, phema_number_format(&found, at->n_updates),
                     at->spec, at->is_assumed ? ", which was assumed," : "",
                     phema_number_format(&wanted, updates_of(&at->profile)),
                     phema_number_format(&time, at->time),
                     phema_setting_name(PHEMA_SET_INPUT_PROFILE));
    /* with the usual decay; raw parameters beside the averages tell another one */
    char spec[128];
    double every = fmax(round(1 / counted->slope), 1), start = round(counted->start);
    if (start >= every)
        (void)snprintf(spec, sizeof(spec), "%s:every=%.0f,start=%.0f", kind, every, start);
    else
        (void)snprintf(spec, sizeof(spec), "%s:every=%.0f", kind, every);
    bool is_other = every > 1 || start >= every;
    return at->is_assumed && is_other && every < 1e9
               ? phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_INPUT_PROFILE, spec)
               : PHEMA_ERR_INPUTS;
}

/* There are as many calls as updates, or more. */
static enum phema_status check_rate(const struct counted *counted, struct phema_error *err)
{
    const struct phema_snapshot *first = counted->items[0], *last = counted->items[counted->n - 1];
    double said = updates_of(&last->profile) - updates_of(&first->profile);
    double found = last->n_updates - first->n_updates;
    bool is_less = found < said - 1, is_more = COUNTS_MODELS(counted->counter) && found > said + 1;
    if (counted->n < 2 || isnan(said) || last->n_updates < 2 || (!is_less && !is_more))
        return PHEMA_OK;
    struct phema_name_buffer each, rise;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "'%s' inside rises by %s from '%s' to '%s', but %s%s has %s updates between",
                      counted->counter, phema_number_format(&rise, found), first->label,
                      last->label, last->spec, last->is_assumed ? ", which was assumed," : "",
                      phema_number_format(&each, said));
}

/* Proposes the time from which snapshot i has counted, at the rate of those before. */
static enum phema_status fail_restart(const struct counted *counted, size_t i,
                                      struct phema_error *err)
{
    const struct phema_snapshot *at = counted->items[i], *before = counted->items[i - 1];
    double origin = round(at->time - at->n_updates * before->time / before->n_updates);
    enum phema_status status =
        fail(err, counted, i, "is one average since the start: the counter restarted");
    struct phema_name_buffer number;
    char reset[64];
    (void)snprintf(reset, sizeof(reset), "%s,counter",
                   phema_number_format(&number, at->named_time - (at->time - origin)));
    return origin >= before->time && origin < at->time
               ? phema_suggest(err, status, PHEMA_SET_RESET_AT, reset)
               : status;
}

/* An average that restarted or began late is no power function of the time since the start. */
static enum phema_status check_start(const struct counted *counted, struct phema_error *err)
{
    const struct phema_snapshot *last = counted->items[counted->n - 1];
    if (last->profile.shape != PHEMA_SHAPE_POWER || !COUNTS_MODELS(counted->counter))
        return PHEMA_OK;
    for (size_t i = 1; i < counted->n; i++)
        if (counted->items[i]->n_updates < counted->items[i - 1]->n_updates)
            return fail_restart(counted, i, err);
    if (share_of(counted->start, last->time, last->gamma + 1) <= 0.05)
        return PHEMA_OK;
    struct phema_name_buffer start;
    (void)phema_number_format(&start, round(counted->start));
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: '%s' inside has counted from %s on, and %s is an average since the start", last->label,
        counted->counter, start.text, last->spec);
}

static enum phema_status check_rising(const struct counted *counted, struct phema_error *err)
{
    double first = counted->items[0]->n_updates;
    bool is_constant = counted->n >= 3 && first >= 2;
    for (size_t i = 1; i < counted->n; i++)
        is_constant = is_constant && counted->items[i]->n_updates == first;
    return is_constant ? fail(err, counted, counted->n - 1,
                              "would be updated: the counter is the same at all times")
                       : PHEMA_OK;
}

/* The decay of a step is not that of an update. A width in time may be right all the same. */
static void warn_of_rate(struct candidate_list *candidates, const struct counted *counted)
{
    const struct phema_snapshot *last = counted->items[counted->n - 1];
    double slope = counted->slope;
    if (strncmp(last->spec, "ema:decay=", 10) != 0 || strstr(last->spec, ",every=") ||
        !COUNTS_MODELS(counted->counter) || isnan(slope) || fabs(slope - 1) < 0.1)
        return;
    struct phema_name_buffer rise;
    candidates_warn(candidates,
                    "'%s' inside rises by %s from one step to the next, and %s is the decay of a "
                    "step; that of an update is another SPEC, such as averaged-model:D,every=%.0f",
                    counted->counter, phema_number_format(&rise, slope), last->spec,
                    fmax(round(1 / slope), 1));
}

/* The snapshots that have the profile of the first one with a counter; n = 0: their times do not
 * ascend. */
static void list_counted(struct counted *counted, const struct phema_series *series)
{
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        const struct phema_snapshot *last = counted->n ? counted->items[counted->n - 1] : NULL;
        if (isnan(snapshot->n_updates) || !snapshot->kind ||
            (last && strcmp(last->spec, snapshot->spec) != 0))
            continue;
        if (last && last->time >= snapshot->time) {
            counted->n = 0;
            return;
        }
        counted->items[counted->n++] = snapshot;
    }
}

PHEMA_FALLIBLE update_counts_check(struct series_builder *builder, struct phema_error *err)
{
    struct phema_series *series = builder->series;
    const struct trainer *trainer = builder->scheme.trainer;
    struct counted counted = {.counter = builder->counter,
                              .rule = trainer && trainer->n_updates ? trainer->to_fill : NULL};
    if (!counted.counter || builder->options->n_resets)
        return PHEMA_OK;
    counted.items =
        phema_arena_array(&builder->scratch, series->n + 1, sizeof(struct phema_snapshot *));
    if (!counted.items)
        return phema_fail_memory(err);
    list_counted(&counted, series);
    if (counted.n == 0)
        return PHEMA_OK;
    fit_line(&counted);
    static enum phema_status (*const checks[])(const struct counted *, struct phema_error *) = {
        check_each, check_memory, check_rate, check_start, check_rising};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < ARRAY_LEN(checks) && !status; i++)
        status = checks[i](&counted, err);
    if (!status)
        warn_of_rate(&builder->candidates, &counted);
    if (!status || !builder->options->needs_no_profiles)
        return status ? phema_fail_in(err, status, "%s", builder->options->snapshots) : PHEMA_OK;
    /* the series is shown all the same, without what was assumed */
    candidates_warn(&builder->candidates, "%s", err->message);
    for (size_t k = 0; k < series->n; k++)
        if (series->snapshots[k].is_assumed)
            series->snapshots[k].kind = series->snapshots[k].spec = NULL;
    if (counted.items[0]->is_assumed)
        series->assumption = NULL;
    return PHEMA_OK;
}
