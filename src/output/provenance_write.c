// SPDX-License-Identifier: Apache-2.0
/* provenance_write.c - Provenance JSON. */
#include "outputs.h"

#include <math.h>
#include <string.h>

#include "phema/json.h"
#include "phema/setting.h"

static void write_command(struct phema_strbuf *text, const struct phema_target *target,
                          const struct phema_outputs_options *options)
{
    struct phema_name_buffer number;
    const char *profile = phema_setting_dashed(PHEMA_SET_PROFILE);
    phema_strbuf_puts(text, "posthoc-ema synth");
    if (target->is_stored)
        phema_strbuf_printf(text, " %s " PHEMA_TARGET_NEWEST, profile);
    else if (target->is_by_gamma)
        phema_strbuf_printf(text, " %s %s", phema_setting_dashed(PHEMA_SET_GAMMA),
                            phema_number_format(&number, target->gamma));
    else if (!isnan(target->sigma_rel) && !target->is_width_in_file)
        phema_strbuf_printf(text, " %s %s", phema_setting_dashed(PHEMA_SET_SIGMA_REL),
                            phema_number_format(&number, target->sigma_rel));
    else if (target->spec && !target->is_width_in_file) {
        phema_strbuf_printf(text, " %s ", profile);
        phema_strbuf_put_word(text, target->spec);
    }
    if (!target->is_time_in_file)
        phema_strbuf_printf(text, " %s %s", phema_setting_dashed(PHEMA_SET_AT),
                            phema_number_format(&number, target->named_time));
    phema_strbuf_printf(text, "%s%s", *options->command_options ? " " : "",
                        options->command_options);
}

static void write_snapshots(struct phema_json_out *out, const struct phema_plan *plan,
                            const struct phema_target *target, bool has_data_digests)
{
    const struct phema_series *series = plan->series;
    phema_json_out_open(out, "snapshots", '[');
    for (size_t k = 0; k < series->n - target->n_left_out; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        phema_json_out_open(out, NULL, '{');
        phema_record_write(out, phema_snapshot_fields, "file time sigma_rel gamma", snapshot);
        if (snapshot->spec && isnan(snapshot->gamma))
            phema_json_out_path(out, "profile", snapshot->spec);
        phema_record_write(out, phema_snapshot_fields, "update_every reset_at counted_from",
                           snapshot);
        phema_json_out_number(out, "weight", target->solution.weights[k]);
        phema_json_out_u64(out, "bytes", phema_snapshot_bytes(snapshot));
        /* a forecast does not compute digests; zeros of the same length keep the size right */
        phema_json_out_string(out, "xxh3",
                              *snapshot->digest ? snapshot->digest : PROVENANCE_NO_DIGEST);
        if (has_data_digests)
            phema_json_out_string(out, PROVENANCE_DATA_DIGEST, PROVENANCE_NO_DIGEST);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static void write_prediction(struct phema_json_out *out, const struct phema_solution *solution)
{
    phema_record_write_object(out, "predicted_error", phema_prediction_fields,
                              "total profile rounding scatter", &solution->predicted);
}

/* Weights have the order of "snapshots". */
static void write_rule(struct phema_json_out *out, const struct phema_plan *plan,
                       const struct phema_target *target, const struct phema_plan_rule *rule,
                       const struct phema_solution *solution)
{
    phema_json_out_open(out, NULL, '{');
    phema_record_write(out, phema_rule_fields, NULL, rule);
    if (!rule->is_copy) {
        phema_json_out_numbers(out, "weights", solution->weights,
                               plan->series->n - target->n_left_out);
        phema_record_write(out, phema_solution_fields, "profile_error norm2", solution);
        write_prediction(out, solution);
    }
    phema_json_out_close(out, '}');
}

/* Those that change the variances of a target are one rule of it. */
static void write_rules(struct phema_json_out *out, const struct phema_plan *plan,
                        const struct phema_target *target)
{
    size_t given = phema_plan_n_given_rules(plan);
    size_t first = phema_target_variance_rule(plan, target);
    if (!given && first == plan->n_rules)
        return;
    phema_json_out_open(out, "rules", '[');
    for (size_t r = 0; r < given; r++)
        write_rule(out, plan, target, &plan->rules[r], &target->ruled[r]);
    if (first < plan->n_rules) {
        struct phema_plan_rule rule = plan->rules[first];
        for (size_t r = first + 1; r < plan->n_rules; r++)
            if (target->ruled[r].weights == target->ruled[first].weights)
                rule.n_tensors += plan->rules[r].n_tensors;
        write_rule(out, plan, target, &rule, &target->ruled[first]);
    }
    phema_json_out_close(out, ']');
}

/* Tensors with the average of another one. Parts of a run that disagree in them are not joined. */
static void write_ties(struct phema_json_out *out, const struct phema_series *series)
{
    bool is_any = false;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        if (!entry->tied_to || entry->rule != PHEMA_RULE_AVERAGE)
            continue;
        if (!is_any)
            phema_json_out_open(out, "tied", '[');
        is_any = true;
        phema_json_out_open(out, NULL, '{');
        phema_json_out_bytes(out, "name", entry->tensor.name, entry->tensor.name_size);
        phema_json_out_string(out, "average", entry->tied_to);
        phema_json_out_close(out, '}');
    }
    if (is_any)
        phema_json_out_close(out, ']');
}

static void write_json(struct phema_strbuf *text, const struct draft *draft,
                       const struct phema_target *target)
{
    const struct phema_plan *plan = draft->plan;
    const struct phema_outputs_options *options = draft->options;
    const struct phema_solution *solution = &target->solution;
    struct phema_strbuf command = {0};
    write_command(&command, target, options);
    struct phema_json_out out = {.text = text, .has_all_digits = true};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_u64(&out, "version", 1);
    phema_json_out_string(&out, "program", "posthoc-ema " PHEMA_VERSION);
    phema_json_out_path(&out, "command", command.data ? command.data : "");
    phema_json_out_string(&out, "layout", plan->series->layout);
    phema_json_out_string(&out, "unit", plan->series->unit);
    phema_json_out_string(&out, "key", plan->series->key ? plan->series->key : "");
    phema_json_out_open(&out, "target", '{');
    phema_json_out_string(&out, "profile", target->kind ? target->kind : "power");
    if (target->spec && isnan(target->gamma))
        phema_json_out_path(&out, "spec", target->spec);
    phema_record_write(&out, phema_target_fields, "time sigma_rel gamma", target);
    phema_json_out_close(&out, '}');
    phema_json_out_string(&out, "metric", plan->metric);
    phema_record_write(&out, phema_solution_fields, "ridge solver", solution);
    phema_plan_write_motion(&out, plan);
    phema_series_checks_write(&out, &plan->checks, plan->series);
    phema_json_out_string(&out, "accumulate", options->accumulator);
    write_snapshots(&out, plan, target, options->hashes_inputs);
    write_rules(&out, plan, target);
    write_ties(&out, plan->series);
    phema_record_write(&out, phema_solution_fields, "profile_error norm1 norm2", solution);
    write_prediction(&out, solution);
    phema_json_out_close(&out, '}');
    if (command.is_failed)
        text->is_failed = true;
    phema_strbuf_clear(&command);
}

static void add(struct provenance_metadata *provenance, const char *key, const char *value)
{
    provenance->items[provenance->n++] =
        (struct phema_metadata){key, value, strlen(key), strlen(value)};
}

PHEMA_FALLIBLE provenance_write(struct provenance_metadata *out, const struct draft *draft,
                                size_t target_index, struct phema_error *err)
{
    const struct phema_target *target = &draft->plan->targets[target_index];
    *out = (struct provenance_metadata){0};
    add(out, "posthoc_ema.time", phema_number_format(&out->numbers[0], target->time));
    if (!isnan(target->gamma)) {
        add(out, "posthoc_ema.sigma_rel", phema_number_format(&out->numbers[1], target->sigma_rel));
        add(out, "posthoc_ema.gamma", phema_number_format(&out->numbers[2], target->gamma));
    } else if (target->spec) {
        add(out, "posthoc_ema.profile", target->spec);
    }
    add(out, "posthoc_ema.unit", draft->plan->series->unit);
    write_json(&out->text, draft, target);
    enum phema_status status = phema_strbuf_check(&out->text, err);
    if (status) {
        provenance_clear(out);
        return status;
    }
    add(out, "posthoc_ema.provenance", out->text.data);
    return PHEMA_OK;
}

void provenance_clear(struct provenance_metadata *provenance)
{
    phema_strbuf_clear(&provenance->text);
}

PHEMA_FALLIBLE provenance_write_file(struct phema_strbuf *text, const struct draft *draft,
                                     size_t target, struct phema_error *err)
{
    struct provenance_metadata provenance;
    enum phema_status status = provenance_write(&provenance, draft, target, err);
    if (status)
        return status;
    struct phema_json_out out = {.text = text, .is_pretty = true, .has_all_digits = true};
    phema_json_out_open(&out, NULL, '{');
    size_t n = provenance.n - 1; /* the last value is an object, not a string */
    for (size_t i = 0; i < n; i++)
        phema_json_out_string(&out, provenance.items[i].key, provenance.items[i].value);
    phema_strbuf_printf(text, ",\n \"%s\": %s\n}\n", provenance.items[n].key,
                        provenance.items[n].value);
    provenance_clear(&provenance);
    return phema_strbuf_check(text, err);
}
