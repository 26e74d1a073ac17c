// SPDX-License-Identifier: Apache-2.0
/* weights_report.c - weights and what they are worth, as JSON and as a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advice_report.h"
#include "print_summary.h"
#include "rule_report.h"

void report_profile_json(struct phema_json_out *out, const char *kind, const char *spec)
{
    if (kind)
        phema_json_out_string(out, "profile", kind);
    else
        phema_json_out_null(out, "profile");
    if (spec)
        phema_json_out_path(out, "spec", spec);
}

void report_snapshot_json(struct phema_json_out *out, const struct phema_snapshot *snapshot)
{
    phema_json_out_open(out, NULL, '{');
    phema_json_out_path(out, "file", snapshot->label);
    phema_json_out_number(out, "time", snapshot->time);
    phema_json_out_number(out, "sigma_rel", snapshot->sigma_rel);
    phema_json_out_number(out, "gamma", snapshot->gamma);
    report_profile_json(out, snapshot->kind, snapshot->spec);
    if (snapshot->profile.update_every > 1)
        phema_json_out_u64(out, "update_every", snapshot->profile.update_every);
    phema_json_out_close(out, '}');
}

void report_prediction_json(struct phema_json_out *out, const struct phema_prediction *predicted)
{
    phema_json_out_open(out, "predicted_error", '{');
    phema_json_out_number(out, "total", predicted->total);
    phema_json_out_number(out, "profile", predicted->profile);
    phema_json_out_number(out, "rounding", predicted->rounding);
    phema_json_out_number(out, "paper_weights", predicted->paper_weights);
    phema_json_out_close(out, '}');
}

static void write_target_json(struct phema_json_out *out, const struct phema_plan *plan,
                              const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    phema_json_out_open(out, NULL, '{');
    phema_json_out_number(out, "sigma_rel", target->sigma_rel);
    phema_json_out_number(out, "gamma", target->gamma);
    phema_json_out_number(out, "time", target->time);
    if (target->named_time != target->time)
        phema_json_out_number(out, "named_time", target->named_time);
    report_profile_json(out, target->kind, target->spec);
    phema_json_out_numbers(out, "weights", solution->weights, plan->series->n);
    phema_json_out_number(out, "sum", solution->sum);
    phema_json_out_number(out, "profile_error", solution->profile_error);
    if (!isnan(target->label_profile_error)) {
        phema_json_out_number(out, "label_profile_error", target->label_profile_error);
        phema_json_out_number(out, "label_predicted_error", target->label_predicted_error);
    }
    phema_json_out_number(out, "norm1", solution->norm1);
    phema_json_out_number(out, "norm2", solution->norm2);
    phema_json_out_number(out, "condition", solution->condition);
    phema_json_out_string(out, "metric", plan->metric);
    phema_json_out_number(out, "ridge", solution->ridge);
    phema_json_out_string(out, "solver", solution->solver);
    report_prediction_json(out, &solution->predicted);
    rule_report_json(out, plan, target, true);
    phema_json_out_close(out, '}');
}

void report_weights_json(struct phema_strbuf *out, const struct phema_plan *plan,
                         const struct phema_plan_advice *advice, double max_error)
{
    struct phema_json_out json = {.text = out, .is_pretty = true};
    phema_json_out_open(&json, NULL, '{');
    phema_json_out_u64(&json, "version", 1);
    phema_json_out_string(&json, "unit", plan->series->unit);
    phema_json_out_open(&json, "snapshots", '[');
    for (size_t k = 0; k < plan->series->n; k++)
        report_snapshot_json(&json, &plan->series->snapshots[k]);
    phema_json_out_close(&json, ']');
    phema_plan_write_motion(&json, plan);
    phema_json_out_open(&json, "targets", '[');
    for (size_t j = 0; j < plan->m; j++)
        write_target_json(&json, plan, &plan->targets[j]);
    phema_json_out_close(&json, ']');
    if (advice)
        advice_report_json(&json, plan, advice, max_error);
    phema_json_out_close(&json, '}');
    phema_strbuf_puts(out, "\n");
}

/* sigma_rel, or the text of another shape: 13 characters or more. */
static int write_title(struct phema_strbuf *out, const struct phema_target *target)
{
    char width[32] = "weight";
    if (!isnan(target->sigma_rel))
        (void)snprintf(width, sizeof(width), "%.6g", target->sigma_rel);
    struct phema_name_buffer spec;
    const char *title = target->kind && isnan(target->sigma_rel)
                            ? phema_name_escape(&spec, target->spec, strlen(target->spec))
                            : width;
    if (out)
        phema_strbuf_printf(out, " %13s", title);
    return strlen(title) > 13 ? (int)strlen(title) : 13;
}

void report_weights_table(struct phema_strbuf *out, const struct phema_plan *plan)
{
    const struct phema_series *series = plan->series;
    int width = 4;
    for (size_t k = 0; k < series->n; k++)
        if ((int)strlen(series->snapshots[k].label) > width)
            width = (int)strlen(series->snapshots[k].label);
    phema_strbuf_printf(out, "%-*s", width, "file");
    for (size_t j = 0; j < plan->m; j++)
        (void)write_title(out, &plan->targets[j]);
    rule_report_titles(out, plan);
    phema_strbuf_puts(out, "\n");
    for (size_t k = 0; k < series->n; k++) {
        struct phema_name_buffer label;
        phema_strbuf_printf(out, "%-*s", width,
                            phema_name_escape(&label, series->snapshots[k].label,
                                              strlen(series->snapshots[k].label)));
        for (size_t j = 0; j < plan->m; j++)
            phema_strbuf_printf(out, " %*.6e", write_title(NULL, &plan->targets[j]),
                                plan->targets[j].solution.weights[k]);
        rule_report_weights(out, plan, k);
        phema_strbuf_puts(out, "\n");
    }
}
