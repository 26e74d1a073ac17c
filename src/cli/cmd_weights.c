// SPDX-License-Identifier: Apache-2.0
/* cmd_weights.c - prints the weights, how good they are, and which snapshots could be deleted. Only
 * a sample of each tensor is read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "print_summary.h"
#include "series_options.h"

/* A column is as wide as its title; a longer title is replaced by the number of its rule. */
#define MIN_COLUMN 13
#define MAX_TITLE  32

struct weights_values {
    struct cli_common common;
    struct cli_plan_values plan;
    bool is_advice;
};

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

static void report_advice(const struct cli_common *common, const struct phema_plan *plan,
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

static void write_advice(struct phema_strbuf *out, const struct phema_plan *plan,
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

static void write_json(struct phema_strbuf *out, const struct phema_plan *plan,
                       const struct phema_plan_advice *advice, double max_error)
{
    struct phema_json_out json;
    cli_json_begin(&json, out, true);
    phema_json_out_string(&json, "unit", plan->series->unit);
    phema_json_out_open(&json, "snapshots", '[');
    for (size_t k = 0; k < plan->series->n; k++)
        report_snapshot_json(&json, &plan->series->snapshots[k]);
    phema_json_out_close(&json, ']');
    phema_plan_write_motion(&json, plan);
    phema_series_checks_write(&json, &plan->checks, plan->series);
    phema_json_out_open(&json, "targets", '[');
    for (size_t j = 0; j < plan->m; j++)
        write_target_json(&json, plan, &plan->targets[j]);
    phema_json_out_close(&json, ']');
    if (advice)
        write_advice_json(&json, plan, advice, max_error);
    cli_json_end(&json);
}

/* ---- The table ---- */

/* Targets of one time share the solutions of the rules, which are shown for the first of them. */
static bool is_first_of_time(const struct phema_plan *plan, size_t j)
{
    return j == 0 || plan->targets[j].ruled != plan->targets[j - 1].ruled;
}

/* weight: NULL for the title */
static void write_rule_cell(struct phema_strbuf *out, const struct phema_plan *plan, size_t r,
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

/* weight: NULL for the title, sigma_rel or the text of another shape */
static void write_cell(struct phema_strbuf *out, const struct phema_target *target,
                       const double *weight)
{
    char sigma_rel[32] = "weight";
    if (!isnan(target->sigma_rel))
        (void)snprintf(sigma_rel, sizeof(sigma_rel), "%.6g", target->sigma_rel);
    struct phema_name_buffer spec;
    const char *title = target->kind && isnan(target->sigma_rel)
                            ? phema_name_escape(&spec, target->spec, strlen(target->spec))
                            : sigma_rel;
    int width = strlen(title) > MIN_COLUMN ? (int)strlen(title) : MIN_COLUMN;
    if (weight)
        phema_strbuf_printf(out, " %*.6e", width, *weight);
    else
        phema_strbuf_printf(out, " %*s", width, title);
}

/* k: a snapshot; SIZE_MAX: the titles */
static void write_row(struct phema_strbuf *out, const struct phema_plan *plan, size_t k)
{
    bool is_title = k == SIZE_MAX;
    for (size_t j = 0; j < plan->m; j++)
        write_cell(out, &plan->targets[j], is_title ? NULL : &plan->targets[j].solution.weights[k]);
    for (size_t j = 0; j < plan->m; j++)
        for (size_t r = 0; r < plan->n_rules && is_first_of_time(plan, j); r++)
            if (!plan->rules[r].is_copy)
                write_rule_cell(out, plan, r,
                                is_title ? NULL : &plan->targets[j].ruled[r].weights[k]);
    phema_strbuf_puts(out, "\n");
}

static void write_table(struct phema_strbuf *out, const struct phema_plan *plan)
{
    const struct phema_series *series = plan->series;
    int width = 4;
    for (size_t k = 0; k < series->n; k++)
        if ((int)strlen(series->snapshots[k].label) > width)
            width = (int)strlen(series->snapshots[k].label);
    phema_strbuf_printf(out, "%-*s", width, "file");
    write_row(out, plan, SIZE_MAX);
    for (size_t k = 0; k < series->n; k++) {
        struct phema_name_buffer label;
        phema_strbuf_printf(out, "%-*s", width,
                            phema_name_escape(&label, series->snapshots[k].label,
                                              strlen(series->snapshots[k].label)));
        write_row(out, plan, k);
    }
}

/* ---- The verb ---- */

/* The result, on stdout. */
static enum phema_status print_plan(const struct weights_values *args,
                                    const struct phema_plan *plan,
                                    const struct phema_plan_advice *advice, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (args->common.is_json)
        write_json(&text, plan, advice, args->plan.max_error);
    else if (advice)
        write_advice(&text, plan, advice);
    else
        write_table(&text, plan);
    return cli_print(&text, err);
}

static enum phema_status print_advice(const struct weights_values *args,
                                      const struct phema_plan *plan, struct phema_error *err)
{
    struct phema_plan_advice advice;
    enum phema_status status = phema_plan_advise(&advice, plan, args->plan.max_error, err);
    if (status)
        return status;
    report_advice(&args->common, plan, &advice, args->plan.max_error);
    status = print_plan(args, plan, &advice, err);
    phema_plan_advice_clear(&advice);
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct weights_values *args = values;
    struct phema_plan_options options;
    enum phema_status status = cli_plan_options(&options, &args->common, &args->plan, err);
    if (status)
        return status;
    options.series.needs_no_tensors = true;
    struct phema_plan *plan = NULL;
    status = phema_plan_make(&plan, &options, err);
    if (status)
        return status;
    report_series(&args->common, plan->series);
    report_plan(&args->common, plan, PHEMA_F64, true); /* nothing is written, so that no dtype
                                                         * rounds the result */
    status = args->is_advice ? print_advice(args, plan, err) : print_plan(args, plan, NULL, err);
    if (!status)
        status = cli_check_error(plan, args->plan.max_error, err);
    phema_plan_free(plan);
    return status;
}

#define FIELD(member) offsetof(struct weights_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_series_rows, FIELD(plan)),
    CLI_INCLUDE(cli_target_rows, FIELD(plan)),
    {"advise", TARGET, CLI_FLAG, FIELD(is_advice),
     .help = "which snapshots could be deleted, and how often to\nsave, for --max-error in all "
             "targets"},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_weights = {
    .name = "weights",
    .summary = "print the weights and how good they are",
    .options = rows,
    .examples = "  posthoc-ema weights --sigma-rel 0.05,0.1 ckpts/\n"
                "      a table: one line for each snapshot, one column for each target\n"
                "  posthoc-ema weights --sigma-rel 0.1 --json ckpts/ > weights.json\n"
                "      to look at, to edit, and to use with synth --weights\n"
                "  posthoc-ema weights --weights theirs.txt --sigma-rel 0.1 ckpts/\n"
                "      how good weights from elsewhere are\n"
                "  posthoc-ema weights --advise --max-error 1e-3 --sigma-rel 0.05,0.2 ckpts/\n"
                "      which snapshots could go if 1e-3 is good enough for these widths\n",
    .values_size = sizeof(struct weights_values),
    .run = run,
};
