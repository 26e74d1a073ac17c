// SPDX-License-Identifier: Apache-2.0
/* prepare.c - from a request to a plan and its outputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "listener.h"
#include "phema/setting.h"

void phema_request_set_accumulator(struct phema_request *request, const char *name)
{
    static const enum phema_sums all[] = {PHEMA_SUMS_AUTO, PHEMA_SUMS_F64, PHEMA_SUMS_F32};
    static const char *const names[] = {"auto", "f64", "f32"};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (strcmp(names[i], name) == 0)
            request->synth.sums = all[i];
    request->outputs.accumulator = name;
}

/* ---- The plan ---- */

struct planning {
    const struct phema_listener *listener;
    /* the caller's */
    enum phema_status (*check)(void *context, const struct phema_series *series, size_t n,
                               struct phema_error *err);
    void *context;
};

/* Called between the two stages. */
static enum phema_status begin_solving(void *context, const struct phema_series *series, size_t n,
                                       struct phema_error *err)
{
    const struct planning *planning = context;
    listener_stage(planning->listener, "solving for the weights");
    return planning->check ? planning->check(planning->context, series, n, err) : PHEMA_OK;
}

PHEMA_FALLIBLE phema_plan_make_heard(struct phema_plan **out,
                                     const struct phema_plan_options *options,
                                     const struct phema_listener *listener, struct phema_error *err)
{
    struct phema_plan_options heard = *options;
    struct planning planning = {listener, options->check, options->context};
    heard.check = begin_solving;
    heard.context = &planning;
    listener_stage(listener, "opening the snapshots");
    enum phema_status status = phema_plan_make(out, &heard, err);
    listener_stage(listener, NULL);
    return status;
}

static enum phema_status check_form(void *context, const struct phema_series *series, size_t n,
                                    struct phema_error *err)
{
    return phema_outputs_check_form(context, series, n, err);
}

/* What the outputs need of the series. */
static struct phema_plan_options plan_options(const struct phema_request *request,
                                              struct phema_outputs_options *naming,
                                              struct phema_memory_profile *memory)
{
    struct phema_plan_options options = request->plan;
    struct phema_series_options *series = &options.series;
    *naming = request->outputs;
    options.memory_profile = memory;
    if (naming->out) {
        options.check = check_form;
        options.context = naming;
    }
    series->max_ram_bytes = request->synth.max_ram_bytes;
    series->may_lack_key = naming->into != NULL;
    series->compares_samples |= request->synth.part > 1; /* the first one compares all bytes */
    series->keeps_scales = naming->keeps_dtypes;
    if (options.is_conversion) {
        series->is_conversion = series->is_alone = true;
        series->needs_no_profiles = true;
        series->may_be_sampled = false;
        series->keeps_codes = !naming->has_dtype;
        series->keeps_scales = false;
        if (!series->key)
            series->key = "."; /* all of it */
    }
    return options;
}

PHEMA_FALLIBLE phema_prepare_untold(struct phema_prepared *out, const struct phema_request *request,
                                    struct phema_memory_profile *memory,
                                    const struct phema_listener *listener, struct phema_error *err)
{
    struct phema_outputs_options naming;
    struct phema_plan_options options = plan_options(request, &naming, memory);
    *out = (struct phema_prepared){.options = request->synth};
    out->options.memory_profile = memory;
    return phema_plan_make_heard(&out->plan, &options, listener, err);
}

PHEMA_FALLIBLE phema_prepare_tell(const struct phema_prepared *prepared,
                                  const struct phema_request *request,
                                  const struct phema_listener *listener, struct phema_error *err)
{
    if (listener->planned)
        listener->planned(listener->context, request, prepared->plan);
    return phema_plan_check_error(prepared->plan, request->max_error, err);
}

PHEMA_FALLIBLE phema_prepare_plan(struct phema_prepared *out, const struct phema_request *request,
                                  struct phema_memory_profile *memory,
                                  const struct phema_listener *listener, struct phema_error *err)
{
    enum phema_status status = phema_prepare_untold(out, request, memory, listener, err);
    return status ? status : phema_prepare_tell(out, request, listener, err);
}

/* The last time before the newest one, where the newest has fewer snapshots; NaN: it has not. */
static double find_whole_time(const struct phema_series *series)
{
    size_t n_newest = 0, n_before = 0, k = series->n;
    for (double newest = series->snapshots[k - 1].named_time;
         k > 0 && series->snapshots[k - 1].named_time == newest; k--)
        n_newest++;
    double before = k ? series->snapshots[k - 1].named_time : PHEMA_UNKNOWN;
    for (; k > 0 && series->snapshots[k - 1].named_time == before; k--)
        n_before++;
    return n_before > n_newest ? before : PHEMA_UNKNOWN;
}

void phema_note_unfinished_time(const struct phema_prepared *prepared,
                                const struct phema_request *request,
                                const struct phema_listener *listener)
{
    const struct phema_plan *plan = prepared->plan;
    struct phema_outputs_options naming;
    struct phema_plan_options options = plan_options(request, &naming, NULL);
    struct phema_error ignored = {0};
    struct phema_plan *other = NULL;
    struct phema_name_buffer newest, whole;
    double before = plan->series->n ? find_whole_time(plan->series) : PHEMA_UNKNOWN;
    if (isnan(before) || options.n_ats || options.weights_file || options.is_conversion)
        return;
    options.ats = &before;
    options.n_ats = 1;
    if (phema_plan_make(&other, &options, &ignored))
        return;
    double here = plan->targets[0].solution.predicted.total;
    double there = other->targets[0].solution.predicted.total;
    if (2 * there < here)
        listener_note(
            listener,
            "time %s has fewer snapshots than %s: a training that goes on may still write them; "
            "with %s%s the error expected is %.1e, not %.1e",
            phema_number_format(&newest, plan->series->snapshots[plan->series->n - 1].named_time),
            phema_number_format(&whole, before), phema_setting_equals(PHEMA_SET_AT), whole.text,
            there, here);
    phema_plan_free(other);
}

PHEMA_FALLIBLE phema_prepare_outputs(struct phema_prepared *prepared,
                                     const struct phema_request *request, const char *out,
                                     const struct phema_listener *listener, struct phema_error *err)
{
    struct phema_outputs_options naming = request->outputs;
    naming.out = out;
    enum phema_status status = phema_outputs_make(&prepared->outputs, prepared->plan, &naming, err);
    for (size_t j = 0; !status && request->outputs.out && j < prepared->outputs.m; j++)
        status = phema_claims_check_inputs(prepared->plan->series->claims,
                                           prepared->outputs.items[j].path, err);
    if (!status && listener->named)
        listener->named(listener->context, request, prepared);
    return status;
}

void phema_prepared_clear(struct phema_prepared *prepared)
{
    phema_outputs_clear(&prepared->outputs);
    phema_plan_free(prepared->plan);
}

/* ---- The limit of predicted errors ---- */

/* Tensors that follow a rule are part of the result. */
static enum phema_status check_rules(const struct phema_plan *plan,
                                     const struct phema_target *target, double max_error,
                                     struct phema_error *err)
{
    for (size_t r = 0; r < plan->n_rules; r++) {
        const struct phema_plan_rule *rule = &plan->rules[r];
        double predicted = target->ruled[r].predicted.total;
        struct phema_name_buffer at;
        if (!rule->is_copy && predicted > max_error)
            return phema_fail(err, PHEMA_NO,
                              "rule '%.200s', sigma_rel %g at %s: predicted error %.2g is above "
                              "%s%g",
                              rule->expression, rule->sigma_rel,
                              phema_number_format(&at, target->named_time), predicted,
                              phema_setting_equals(PHEMA_SET_MAX_ERROR), max_error);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_plan_check_error(const struct phema_plan *plan, double max_error,
                                      struct phema_error *err)
{
    if (isnan(max_error))
        return PHEMA_OK;
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        double predicted = target->solution.predicted.total;
        struct phema_name_buffer at, width;
        (void)phema_number_format(&at, target->named_time);
        bool is_power = !isnan(target->sigma_rel);
        (void)snprintf(width.text, sizeof(width.text), "sigma_rel %g", target->sigma_rel);
        if (isnan(predicted) && plan->checks.verdict == PHEMA_SERIES_WRONG)
            return phema_fail_setting(err, PHEMA_NO, PHEMA_SET_MAX_ERROR,
                                      "no error can be predicted, since the snapshots do not "
                                      "fit their labels: %s",
                                      plan->checks.reason);
        if (isnan(predicted))
            return phema_fail_setting(err, PHEMA_NO, PHEMA_SET_MAX_ERROR,
                                      "the error of these weights cannot be predicted; %s or %s "
                                      "says what they are meant for, and the snapshots' widths "
                                      "must be known",
                                      phema_setting_name(PHEMA_SET_SIGMA_REL),
                                      phema_setting_name(PHEMA_SET_PROFILE));
        if (predicted > max_error)
            return phema_fail(err, PHEMA_NO, "target %s at %s: predicted error %.2g is above %s%g",
                              is_power ? width.text : target->spec, at.text, predicted,
                              phema_setting_equals(PHEMA_SET_MAX_ERROR), max_error);
        if (check_rules(plan, target, max_error, err))
            return PHEMA_NO;
    }
    return PHEMA_OK;
}
