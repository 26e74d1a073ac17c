// SPDX-License-Identifier: Apache-2.0
/* report_series.c - on stderr: the series that was found, its notes, warnings and rules. */
#include "parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *report_named_unit(const struct phema_series *series)
{
    return strcmp(series->layout, "edm2") == 0 ? "kimg" : series->unit;
}

static void write_times(struct phema_strbuf *out, const struct phema_series *series)
{
    size_t n_times = 0;
    for (size_t k = 0; k < series->n; k++)
        n_times += k == 0 || series->snapshots[k].named_time != series->snapshots[k - 1].named_time;
    const char *named_in = report_named_unit(series);
    struct phema_name_buffer from, to;
    (void)phema_number_format(&from, series->snapshots[0].named_time);
    if (n_times == 1)
        phema_strbuf_printf(out, ", one time (%s %s)", from.text, named_in);
    else
        phema_strbuf_printf(out, ", %zu times (%s to %s %s)", n_times, from.text,
                            phema_number_format(&to, series->snapshots[series->n - 1].named_time),
                            named_in);
}

/* "0.05", "0.05 and 0.1", "0.05, 0.1 and 0.2"; texts after the eighth are left out. */
struct list {
    const char *texts[9];
    size_t n;
};

static void add_text(struct list *list, const char *text)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->texts[i], text) == 0)
            return;
    if (list->n < ARRAY_LEN(list->texts))
        list->texts[list->n++] = text;
}

static void write_list(struct phema_strbuf *out, const char *prefix, const struct list *list)
{
    bool is_cut = list->n == ARRAY_LEN(list->texts);
    size_t n = list->n - is_cut;
    for (size_t i = 0; i < n; i++)
        phema_strbuf_printf(out, "%s%s",
                            i == 0                  ? prefix
                            : i == n - 1 && !is_cut ? " and "
                                                    : ", ",
                            list->texts[i]);
    if (is_cut)
        phema_strbuf_puts(out, ", ...");
}

static void write_widths(struct phema_strbuf *out, const struct phema_series *series)
{
    struct phema_name_buffer shown[9];
    struct list list = {.n = 0};
    for (size_t k = 0; k < series->n && list.n < ARRAY_LEN(shown); k++) {
        if (isnan(series->snapshots[k].sigma_rel))
            continue;
        (void)snprintf(shown[list.n].text, sizeof(shown[0].text), "%.6g",
                       series->snapshots[k].sigma_rel);
        add_text(&list, shown[list.n].text);
    }
    write_list(out, ", sigma_rel ", &list);
}

/* The profiles that are not power functions, each once. */
static void write_shapes(struct phema_strbuf *out, const struct phema_series *series)
{
    struct list list = {.n = 0};
    for (size_t k = 0; k < series->n; k++)
        if (series->snapshots[k].spec && isnan(series->snapshots[k].gamma))
            add_text(&list, series->snapshots[k].spec);
    write_list(out, ", ", &list);
}

static uint64_t bytes_of_tensors(const struct phema_series *series, size_t *n_averaged)
{
    uint64_t bytes = 0;
    *n_averaged = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        bytes += phema_tensor_codes(&series->tensors[i].tensor).size_bytes;
        *n_averaged += series->tensors[i].rule == PHEMA_RULE_AVERAGE;
    }
    return bytes;
}

void report_series(const struct render_style *style, const struct phema_series *series,
                   const struct phema_series_checks *checks)
{
    if (style->is_quiet)
        return;
    struct phema_strbuf text = {0};
    phema_strbuf_printf(&text, "%s: %zu snapshot%s", series->root, series->n,
                        series->n == 1 ? "" : "s");
    if (strcmp(series->layout, "own") != 0)
        phema_strbuf_printf(&text, " (%s)", series->layout);
    write_times(&text, series);
    write_widths(&text, series);
    if (series->n && series->snapshots[0].profile.update_every > 1)
        phema_strbuf_printf(&text, ", updated every %llu steps",
                            (unsigned long long)series->snapshots[0].profile.update_every);
    write_shapes(&text, series);
    size_t n_averaged = 0;
    struct phema_name_buffer shown;
    uint64_t bytes = bytes_of_tensors(series, &n_averaged);
    if (series->n_tensors)
        phema_strbuf_printf(&text, "; %zu tensor%s", series->n_tensors,
                            series->n_tensors == 1 ? "" : "s");
    if (series->n_tensors && n_averaged != series->n_tensors)
        phema_strbuf_printf(&text, " (%zu averaged)", n_averaged);
    if (series->n_tensors)
        phema_strbuf_printf(&text, ", %s each", phema_size_format(&shown, bytes));
    render_say_text(&text);
    report_notes(style, series, checks);
    if (checks->verdict == PHEMA_SERIES_UNCHECKED) /* no warning: nothing is wrong with it */
        render_say("%s", checks->reason);
}

void report_notes(const struct render_style *style, const struct phema_series *series,
                  const struct phema_series_checks *checks)
{
    struct phema_name_buffer shown;
    bool is_confirmed =
        checks->verdict == PHEMA_SERIES_FITS ||
        checks->verdict == PHEMA_SERIES_UNCHECKED; /* else the assumption is a warning */
    if (style->is_quiet)
        return;
    for (size_t i = 0; i + series->n_warnings < series->n_notes; i++)
        if (series->notes[i] != series->assumption || is_confirmed)
            render_say("%s", series->notes[i]);
    if (style->is_verbose && series->is_key_usual)
        render_say("averaging the subtree '%s'", phema_name_show(&shown, series->key));
    for (size_t i = 0; style->is_verbose && i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        if (entry->rule == PHEMA_RULE_COPY)
            render_say("copied from the newest: '%s' (%s)",
                       phema_name_escape(&shown, entry->tensor.name, entry->tensor.name_size),
                       entry->reason);
    }
}

void report_doubts(const struct render_style *style, const struct phema_series *series,
                   const struct phema_series_checks *checks)
{
    struct phema_strbuf warnings = {0};
    phema_series_write_warnings(&warnings, series, checks);
    render_warn_all(style, &warnings);
}

void report_elements(const struct render_style *style, const struct phema_series *series,
                     const struct phema_synth_result *result)
{
    struct phema_name_buffer name;
    if (result->n_nan + result->n_inf)
        render_warn(style, "%llu NaN and %llu infinite elements, the first in tensor '%s'",
                    (unsigned long long)result->n_nan, (unsigned long long)result->n_inf,
                    phema_name_escape(&name, series->tensors[result->nan_tensor].tensor.name,
                                      series->tensors[result->nan_tensor].tensor.name_size));
    if (result->n_overflow)
        render_warn(style, "%llu averages were too large for the dtype",
                    (unsigned long long)result->n_overflow);
}

void report_conversion(const struct render_style *style, const struct phema_series *series)
{
    static const struct phema_series_checks none = {.verdict = PHEMA_SERIES_UNKNOWN};
    size_t n_averaged = 0;
    struct phema_name_buffer shown;
    const struct render_style brief = {.is_quiet = style->is_quiet};
    if (!style->is_quiet)
        render_say("%s: %s, %zu tensors, %s, as they are", series->root,
                   phema_checkpoint_format(series->snapshots[0].checkpoint), series->n_tensors,
                   phema_size_format(&shown, bytes_of_tensors(series, &n_averaged)));
    report_notes(&brief, series, &none);
    report_doubts(style, series, &none);
}

/* A copy of a snapshot keeps its header, which readers of safetensors take for that of the average. */
static void say_labels(const char *into, const struct phema_checkpoint *template)
{
    static const char *const keys[] = {"posthoc_ema.time", "posthoc_ema.sigma_rel",
                                       "posthoc_ema.profile"};
    struct phema_strbuf labels = {0};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *value = phema_checkpoint_metadatum(template, keys[i]);
        struct phema_name_buffer shown;
        if (value)
            phema_strbuf_printf(&labels, "%s%s %s", labels.size ? ", " : "",
                                strchr(keys[i], '.') + 1, phema_name_show(&shown, value));
    }
    if (labels.data && !labels.is_failed)
        render_say("  the copy's header still says what %s is (%s); what the copy is stands in its "
                   ".json alone",
                   into, labels.data);
    phema_strbuf_clear(&labels);
}

void report_into(const struct render_style *style, const char *into,
                 const struct phema_outputs *outputs)
{
    if (style->is_quiet || !outputs->into_key)
        return;
    if (outputs->into_names) {
        render_say("replacing the tensors '%s' of a copy of %s (--key names others)",
                   outputs->into_names, into);
        return;
    }
    bool is_all = !*outputs->into_key;
    render_say("replacing the tensors %s%s%s of a copy of %s%s", is_all ? "" : "below '",
               outputs->into_key, is_all ? "at the root" : "'", into,
               is_all ? "" : " (--key names another)");
    if (outputs->n_templates)
        say_labels(into, outputs->templates[0]);
}

void report_scaled(const struct render_style *style, const struct phema_series *series,
                   const struct phema_outputs *outputs)
{
    size_t n = phema_series_n_scaled(series), i = 0;
    if (style->is_quiet || n == 0)
        return;
    while (!series->tensors[i].tensor.scaling)
        i++;
    const char *dtype = phema_dtype_name(outputs->dtypes[i]), *plural = n == 1 ? "" : "s";
    if (outputs->has_new_scales)
        render_say("%zu fp8 tensor%s: codes times scales, written as %s with new scales", n, plural,
                   dtype);
    else
        render_say("%zu fp8 tensor%s: codes times scales, written as %s without the scales; remove "
                   "quantization_config from the model's config.json",
                   n, plural, dtype);
}

/* ---- Parts of JSON ---- */

static const struct phema_field recognised_fields[] = {
    PHEMA_FIELD(TEXT, ALWAYS, "times", struct phema_recognised, times),
    PHEMA_FIELD(TEXT, ALWAYS, "field", struct phema_recognised, field),
    {0},
};
static const struct phema_field set_fields[] = {
    PHEMA_FIELD(TEXT, ALWAYS, "name", struct phema_recognised_set, name),
    PHEMA_FIELD(TEXT, ALWAYS, "role", struct phema_recognised_set, role),
    PHEMA_FIELD(TEXT, ALWAYS, "by", struct phema_recognised_set, by),
    PHEMA_FIELD(NUMBER, IF_KNOWN, "margin", struct phema_recognised_set, margin),
    {0},
};
static const struct phema_field left_out_fields[] = {
    PHEMA_FIELD(PATH, ALWAYS, "name", struct phema_recognised_file, file),
    PHEMA_FIELD(TEXT, ALWAYS, "reason", struct phema_recognised_file, reason),
    {0},
};

void report_recognised_json(struct phema_json_out *out, const struct phema_series *series)
{
    const struct phema_recognised *recognised = &series->recognised;
    phema_json_out_open(out, "recognised", '{');
    phema_record_write(out, recognised_fields, NULL, recognised);
    phema_record_write_list(out, "sets", set_fields, NULL, recognised->sets, recognised->n_sets,
                            sizeof(*recognised->sets));
    phema_record_write_list(out, "left_out", left_out_fields, NULL, recognised->left_out,
                            recognised->n_left_out, sizeof(*recognised->left_out));
    phema_json_out_close(out, '}');
}

void report_checks_json(struct phema_json_out *out, const struct render_style *style,
                        const struct phema_plan *plan)
{
    report_recognised_json(out, plan->series);
    phema_series_checks_write(out, &plan->checks, plan->series);
    render_write_warnings(out, style);
}

/* ---- Rules: tensors with a width of their own ---- */

/* Names the first of the variances that have weights of their own. */
static void report_variances(struct phema_strbuf *out, const struct phema_plan *plan)
{
    size_t i = 0, n = 0, given = phema_plan_n_given_rules(plan);
    while (plan->rule_of[i] <= given)
        i++;
    for (size_t r = given; r < plan->n_rules; r++)
        n += plan->rules[r].n_tensors;
    const struct phema_tensor *tensor = &plan->series->tensors[i].tensor;
    struct phema_name_buffer name;
    phema_strbuf_printf(out,
                        "%zu variance%s would become negative (%s'%s'): the negative weights are "
                        "left out there\n",
                        n, n == 1 ? "" : "s", n == 1 ? "" : "first ",
                        phema_name_escape(&name, tensor->name, tensor->name_size));
}

void report_rules(struct phema_strbuf *out, const struct phema_plan *plan)
{
    if (plan->n_variance_rules)
        report_variances(out, plan);
    for (size_t r = 0; r < phema_plan_n_given_rules(plan); r++) {
        const struct phema_plan_rule *rule = &plan->rules[r];
        double worst = plan->targets[0].ruled[r].predicted.total; /* over all times */
        for (size_t j = 1; j < plan->m; j++)
            if (plan->targets[j].ruled[r].predicted.total > worst)
                worst = plan->targets[j].ruled[r].predicted.total;
        if (rule->n_tensors)
            phema_strbuf_printf(out, "%zu tensor%s ", rule->n_tensors,
                                rule->n_tensors == 1 ? " follows" : "s follow");
        phema_strbuf_puts(out, "rule '");
        phema_strbuf_puts_escaped(out, rule->expression);
        if (rule->is_copy)
            phema_strbuf_puts(out, "' (copied from the newest)");
        else
            phema_strbuf_printf(out, "' (sigma_rel %.6g)", rule->sigma_rel);
        if (!rule->is_copy && !isnan(worst))
            phema_strbuf_printf(out, ": error expected %.1e%s", worst,
                                worst > REPORT_FLAGGED_ERROR ? " !" : "");
        phema_strbuf_puts(out, "\n");
    }
}

void report_rules_json(struct phema_json_out *out, const struct phema_plan *plan,
                       const struct phema_target *target, bool has_weights)
{
    size_t n = phema_plan_n_given_rules(plan);
    if (!n)
        return;
    phema_json_out_open(out, "rules", '[');
    for (size_t r = 0; r < n; r++) {
        const struct phema_plan_rule *rule = &plan->rules[r];
        phema_json_out_open(out, NULL, '{');
        phema_record_write(out, phema_rule_fields,
                           plan->series->n_tensors ? NULL : "pattern copy sigma_rel gamma", rule);
        if (has_weights && !rule->is_copy)
            phema_json_out_numbers(out, "weights", target->ruled[r].weights, plan->series->n);
        if (!rule->is_copy)
            phema_record_write(out, phema_solution_fields,
                               "profile_error norm1 norm2 condition ridge predicted_error",
                               &target->ruled[r]);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}
