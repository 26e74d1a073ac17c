// SPDX-License-Identifier: Apache-2.0
/* series_options.c - see series_options.h. */
#include "series_options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/gpu.h"
#include "phema/number.h"

static enum phema_status check_widths(const struct cli_reals *widths, const char *option,
                                      struct phema_error *err)
{
    for (size_t i = 0; i < widths->n; i++) {
        double gamma = 0;
        enum phema_status status = phema_gamma_from_sigma_rel(&gamma, widths->items[i], err);
        if (status)
            return phema_fail_in(err, status, "%s", option);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_series_options(struct phema_series_options *out, const struct cli_common *common,
                                  const struct cli_series_values *values, struct phema_error *err)
{
    if (check_widths(&values->input_sigma, "--input-sigma", err))
        return PHEMA_ERR_INPUTS;
    *out = (struct phema_series_options){
        .snapshots = values->snapshots,
        .layout = values->layout,
        .name_regex = values->name_regex,
        .unit = values->unit,
        .input_sigmas = values->input_sigma.items,
        .n_input_sigmas = values->input_sigma.n,
        .input_profiles = values->input_profile.items,
        .n_input_profiles = values->input_profile.n,
        .update_every = values->update_every,
        .from = isnan(values->from) ? -HUGE_VAL : values->from,
        .to = isnan(values->to) ? HUGE_VAL : values->to,
        .every = values->every,
        .last = values->last,
        .includes = values->include.items,
        .n_includes = values->include.n,
        .excludes = values->exclude.items,
        .n_excludes = values->exclude.n,
        .key = values->key,
        .checkpoint = {.allow_globals = values->allow_global.items,
                       .n_allow_globals = values->allow_global.n},
        .averages_buffers = values->buffers && strcmp(values->buffers, "average") == 0,
        .command = common->command,
        .command_tail = common->command_tail,
    };
    return PHEMA_OK;
}

static enum phema_status read_ridge(struct phema_solve_options *out, const char *text,
                                    struct phema_error *err)
{
    if (!text || strcmp(text, "auto") == 0)
        return PHEMA_OK;
    if (strcmp(text, "none") == 0) {
        out->ridge = PHEMA_RIDGE_NONE;
        return PHEMA_OK;
    }
    out->ridge = PHEMA_RIDGE_VALUE;
    enum phema_status status = phema_number_parse(&out->ridge_value, text, err);
    if (status || !(out->ridge_value >= 0) || !isfinite(out->ridge_value))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--ridge: '%s' is not auto, none or a number from 0 on", text);
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_plan_options(struct phema_plan_options *out, const struct cli_common *common,
                                const struct cli_series_values *series,
                                const struct cli_target_values *target, struct phema_error *err)
{
    *out = (struct phema_plan_options){
        .sigma_rels = target->sigma_rel.items,
        .n_sigma_rels = target->sigma_rel.n,
        .gammas = target->gamma.items,
        .n_gammas = target->gamma.n,
        .profiles = target->profile.items,
        .n_profiles = target->profile.n,
        .ats = target->at.items,
        .n_ats = target->at.n,
        .weights_file = target->weights,
        .rules = target->rule.items,
        .n_rules = target->rule.n,
    };
    if (target->weights && (target->metric || target->ridge || target->solver))
        return phema_fail(
            err, PHEMA_ERR_USAGE,
            "--weights: weights are used as given; --metric, --ridge and --solver are "
            "about solving for them");
    out->solve.metric = PHEMA_METRIC_MOTION; /* where it cannot be: walk, and that is said */
    if (target->metric && strcmp(target->metric, "profile") == 0)
        out->solve.metric = PHEMA_METRIC_PROFILE;
    if (target->metric && strcmp(target->metric, "walk") == 0)
        out->solve.metric = PHEMA_METRIC_WALK;
    if (target->solver)
        out->solve.solver = strcmp(target->solver, "quad") == 0       ? PHEMA_SOLVER_QUAD
                            : strcmp(target->solver, "lapack") == 0   ? PHEMA_SOLVER_LAPACK
                            : strcmp(target->solver, "cusolver") == 0 ? PHEMA_SOLVER_DEVICE
                                                                      : PHEMA_SOLVER_AUTO;
    out->solve.factorer = phema_device_factorer();
    enum phema_status status = read_ridge(&out->solve, target->ridge, err);
    if (!status)
        status = check_widths(&target->sigma_rel, "--sigma-rel", err);
    if (!status)
        status = cli_series_options(&out->series, common, series, err);
    out->series.needs_no_profiles = target->weights != NULL;
    out->series.may_be_sampled = true;
    return status;
}

/* Tensors that follow a rule are part of what is made. */
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
                              "--max-error %g",
                              rule->expression, rule->sigma_rel,
                              phema_number_format(&at, target->named_time), predicted, max_error);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_check_error(const struct phema_plan *plan, double max_error,
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
        if (isnan(predicted))
            return phema_fail(err, PHEMA_NO,
                              "--max-error: the error of these weights cannot be predicted; "
                              "--sigma-rel or --profile says what they are meant for, and the "
                              "snapshots' widths must be known");
        if (predicted > max_error)
            return phema_fail(err, PHEMA_NO,
                              "target %s at %s: predicted error %.2g is above --max-error %g",
                              is_power ? width.text : target->spec, at.text, predicted, max_error);
        if (check_rules(plan, target, max_error, err))
            return PHEMA_NO;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_print_as_is(const struct phema_strbuf *text, struct phema_error *err)
{
    enum phema_status status = phema_strbuf_check(text, err);
    if (status)
        return status;
    size_t written = text->size ? fwrite(text->data, 1, text->size, stdout) : 0;
    if (written != text->size || fflush(stdout))
        return phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_print(const struct phema_strbuf *text, struct phema_error *err)
{
    struct phema_strbuf shown = {0};
    enum phema_status status = phema_strbuf_check(text, err);
    if (!status && text->size)
        phema_strbuf_append_lines(&shown, text->data, text->size);
    if (!status)
        status = cli_print_as_is(&shown, err);
    phema_strbuf_clear(&shown);
    return status;
}

void cli_put_path(struct phema_strbuf *out, const char *path)
{
    if (isatty(STDOUT_FILENO))
        phema_strbuf_puts_escaped(out, path);
    else
        phema_strbuf_puts(out, path);
}

/* Without memory every byte that may be no letter is a question mark. */
static void PHEMA_PRINTF(1, 0) say_plainly(const char *format, va_list args)
{
    char line[1024];
    int size = vsnprintf(line, sizeof(line), format, args);
    for (char *at = line; size >= 0 && *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    if (size >= 0)
        (void)fprintf(stderr, "%s\n", line);
}

void cli_say(const char *format, ...)
{
    char *line = NULL;
    struct phema_strbuf shown = {0};
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    if (vasprintf(&line, format, args) < 0)
        line = NULL;
    if (line)
        phema_strbuf_puts_escaped(&shown, line);
    if (!line || shown.is_failed)
        say_plainly(format, again);
    else
        (void)fprintf(stderr, "%s\n", shown.data ? shown.data : "");
    va_end(again);
    va_end(args);
    phema_strbuf_clear(&shown);
    free(line);
}
