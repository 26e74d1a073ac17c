// SPDX-License-Identifier: Apache-2.0
/* weights_report.c - weights, rules and advice, as JSON, as a table and in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "print_summary.h"

/* A column is as wide as its title; a longer title is replaced by the number of its rule. */
#define MIN_COLUMN 13
#define MAX_TITLE  32

/* ---- Parts of JSON ---- */

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

/* ---- Rules: tensors with a width of their own ---- */

/* Targets of one time share the solutions of the rules, which are shown for the first of them. */
static bool is_first_of_time(const struct phema_plan *plan, size_t j)
{
    return j == 0 || plan->targets[j].ruled != plan->targets[j - 1].ruled;
}

/* The largest predicted error over all times. */
static const struct phema_solution *worst_of(const struct phema_plan *plan, size_t r)
{
    const struct phema_solution *worst = &plan->targets[0].ruled[r];
    for (size_t j = 1; j < plan->m; j++)
        if (plan->targets[j].ruled[r].predicted.total > worst->predicted.total)
            worst = &plan->targets[j].ruled[r];
    return worst;
}

static void write_width(struct phema_strbuf *out, const struct phema_plan_rule *rule)
{
    phema_strbuf_puts(out, "rule '");
    phema_strbuf_puts_escaped(out, rule->expression);
    phema_strbuf_puts(out, "' (");
    if (rule->is_copy)
        phema_strbuf_puts(out, "copied from the newest)");
    else
        phema_strbuf_printf(out, "sigma_rel %.6g)", rule->sigma_rel);
}

void report_rules(struct phema_strbuf *out, const struct phema_plan *plan)
{
    for (size_t r = 0; r < plan->n_rules; r++) {
        const struct phema_plan_rule *rule = &plan->rules[r];
        const struct phema_solution *worst = worst_of(plan, r);
        if (rule->n_tensors)
            phema_strbuf_printf(out, "%zu tensor%s ", rule->n_tensors,
                                rule->n_tensors == 1 ? " follows" : "s follow");
        write_width(out, rule);
        if (!rule->is_copy && !isnan(worst->predicted.total))
            phema_strbuf_printf(out, ": predicted error %.1e of |theta|, gain |w| %.2f",
                                worst->predicted.total, worst->norm2);
        phema_strbuf_puts(out, "\n");
    }
}

static void write_solution_json(struct phema_json_out *out, const struct phema_solution *solution)
{
    phema_json_out_number(out, "profile_error", solution->profile_error);
    phema_json_out_number(out, "norm1", solution->norm1);
    phema_json_out_number(out, "norm2", solution->norm2);
    phema_json_out_number(out, "condition", solution->condition);
    phema_json_out_number(out, "ridge", solution->ridge);
    report_prediction_json(out, &solution->predicted);
}

void report_rules_json(struct phema_json_out *out, const struct phema_plan *plan,
                       const struct phema_target *target, bool has_weights)
{
    if (!plan->n_rules)
        return;
    phema_json_out_open(out, "rules", '[');
    for (size_t r = 0; r < plan->n_rules; r++) {
        const struct phema_plan_rule *rule = &plan->rules[r];
        phema_json_out_open(out, NULL, '{');
        phema_json_out_string(out, "pattern", rule->expression);
        if (plan->series->n_tensors)
            phema_json_out_u64(out, "tensors", rule->n_tensors);
        if (rule->is_copy) {
            phema_json_out_bool(out, "copy", true);
        } else {
            phema_json_out_number(out, "sigma_rel", rule->sigma_rel);
            phema_json_out_number(out, "gamma", rule->gamma);
            if (has_weights)
                phema_json_out_numbers(out, "weights", target->ruled[r].weights, plan->series->n);
            write_solution_json(out, &target->ruled[r]);
        }
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

/* ---- Advice ---- */

static bool is_removed(const struct phema_plan_advice *advice, size_t snapshot)
{
    for (size_t r = 0; r < advice->n_removed; r++)
        if (advice->removed[r] == snapshot)
            return true;
    return false;
}

static void report_saving(const struct phema_plan *plan, const struct phema_saving *saving,
                          double max_error)
{
    if (saving->n_times)
        (void)fprintf(stderr,
                      "for an error of %.2g, saving every %.6g %s would do (%zu time%s x %zu "
                      "profile%s: predicted %.1e)\n",
                      max_error, saving->every, plan->series->unit, saving->n_times,
                      saving->n_times == 1 ? "" : "s", saving->n_per_time,
                      saving->n_per_time == 1 ? "" : "s", saving->error);
    else
        (void)fprintf(stderr,
                      "no number of evenly spaced times with these profiles would give an error "
                      "of %.2g; other widths, a wider target or files of more digits might\n",
                      max_error);
}

void report_advice(const struct cli_common *common, const struct phema_plan *plan,
                   const struct phema_plan_advice *advice, double max_error)
{
    if (common->is_quiet)
        return;
    const char *of = plan->m > 1 ? "the worst predicted error" : "the predicted error";
    if (advice->error_before > max_error)
        (void)fprintf(stderr, "no snapshot should go: %s is %.1e already, above %.2g\n", of,
                      advice->error_before, max_error);
    else if (advice->n_removed == 0)
        (void)fprintf(stderr, "no snapshot may go: %s is %.1e, and would be above %.2g\n", of,
                      advice->error_before, max_error);
    else
        (void)fprintf(stderr,
                      "%zu of %zu snapshots could be deleted: %s would go from %.1e to %.1e, "
                      "within %.2g\n",
                      advice->n_removed, advice->n_considered, of, advice->error_before,
                      advice->error_after, max_error);
    report_saving(plan, &advice->saving, max_error);
}

void report_advice_list(struct phema_strbuf *out, const struct phema_plan *plan,
                        const struct phema_plan_advice *advice)
{
    for (size_t k = 0; k < plan->series->n; k++) {
        struct phema_name_buffer shown;
        const char *label = plan->series->snapshots[k].label;
        phema_strbuf_printf(out, "%s  %s\n", is_removed(advice, k) ? "delete" : "keep  ",
                            phema_name_escape(&shown, label, strlen(label)));
    }
}

static void write_advice_json(struct phema_json_out *out, const struct phema_plan *plan,
                              const struct phema_plan_advice *advice, double max_error)
{
    const struct phema_saving *saving = &advice->saving;
    phema_json_out_open(out, "advice", '{');
    phema_json_out_number(out, "max_error", max_error);
    phema_json_out_open(out, "delete", '[');
    for (size_t k = 0; k < plan->series->n; k++)
        if (is_removed(advice, k))
            phema_json_out_string(out, NULL, plan->series->snapshots[k].label);
    phema_json_out_close(out, ']');
    phema_json_out_number(out, "error_before", advice->error_before);
    phema_json_out_number(out, "error_after", advice->error_after);
    phema_json_out_open(out, "save", '{');
    phema_json_out_u64(out, "times", saving->n_times);
    phema_json_out_u64(out, "profiles", saving->n_per_time);
    phema_json_out_number(out, "every", saving->n_times ? saving->every : PHEMA_UNKNOWN);
    phema_json_out_number(out, "error", saving->n_times ? saving->error : PHEMA_UNKNOWN);
    phema_json_out_close(out, '}');
    phema_json_out_close(out, '}');
}

/* ---- JSON ---- */

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
    report_rules_json(out, plan, target, true);
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
        write_advice_json(&json, plan, advice, max_error);
    phema_json_out_close(&json, '}');
    phema_strbuf_puts(out, "\n");
}

/* ---- The table of weights ---- */

static void write_column(struct phema_strbuf *out, const struct phema_plan *plan, size_t r,
                         const double *weight)
{
    const struct phema_plan_rule *rule = &plan->rules[r];
    struct phema_strbuf title = {0};
    phema_strbuf_puts_escaped(&title, rule->expression);
    phema_strbuf_printf(&title, "=%.6g", rule->sigma_rel);
    if (title.size > MAX_TITLE) {
        phema_strbuf_clear(&title);
        phema_strbuf_printf(&title, "rule %zu: %.6g", r + 1, rule->sigma_rel);
    }
    int width = title.size < MIN_COLUMN ? MIN_COLUMN : (int)title.size;
    if (weight)
        phema_strbuf_printf(out, " %*.6e", width, *weight);
    else
        phema_strbuf_printf(out, " %*s", width, title.is_failed ? "" : title.data);
    phema_strbuf_clear(&title);
}

static void write_rule_titles(struct phema_strbuf *out, const struct phema_plan *plan)
{
    for (size_t j = 0; j < plan->m; j++)
        for (size_t r = 0; r < plan->n_rules && is_first_of_time(plan, j); r++)
            if (!plan->rules[r].is_copy)
                write_column(out, plan, r, NULL);
}

static void write_rule_weights(struct phema_strbuf *out, const struct phema_plan *plan, size_t k)
{
    for (size_t j = 0; j < plan->m; j++)
        for (size_t r = 0; r < plan->n_rules && is_first_of_time(plan, j); r++)
            if (!plan->rules[r].is_copy)
                write_column(out, plan, r, &plan->targets[j].ruled[r].weights[k]);
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
    write_rule_titles(out, plan);
    phema_strbuf_puts(out, "\n");
    for (size_t k = 0; k < series->n; k++) {
        struct phema_name_buffer label;
        phema_strbuf_printf(out, "%-*s", width,
                            phema_name_escape(&label, series->snapshots[k].label,
                                              strlen(series->snapshots[k].label)));
        for (size_t j = 0; j < plan->m; j++)
            phema_strbuf_printf(out, " %*.6e", write_title(NULL, &plan->targets[j]),
                                plan->targets[j].solution.weights[k]);
        write_rule_weights(out, plan, k);
        phema_strbuf_puts(out, "\n");
    }
}
