// SPDX-License-Identifier: Apache-2.0
/* weights.c - the weights as a table and as JSON; which snapshots could be deleted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

#define MAX_TITLE 32 /* a longer title is replaced by the number of its rule */

/* ---- Advice ---- */

static bool is_removed(const struct phema_plan_advice *advice, size_t snapshot)
{
    for (size_t r = 0; r < advice->found.n_removed; r++)
        if (advice->found.removed[r] == snapshot)
            return true;
    return false;
}

/* Rounded down, since fewer times make the error larger: to whole numbers, small ones to three
 * digits. */
static double round_every(double every)
{
    double step = every < 10 ? pow(10, floor(log10(every)) - 2) : 1;
    return floor(every / step * (1 + 1e-12)) * step;
}

static void report_saving(const struct phema_plan *plan, const struct phema_saving *saving,
                          double max_error)
{
    if (saving->n_times)
        render_say(
            "to stay within %.2g, save every %.6g %s (%zu time%s x %zu profile%s: error expected "
            "%.1e)",
            max_error, round_every(saving->every), plan->series->unit, saving->n_times,
            saving->n_times == 1 ? "" : "s", saving->n_per_time, saving->n_per_time == 1 ? "" : "s",
            saving->error);
    else
        render_say(
            "no number of evenly spaced times with these profiles gives an error of %.2g; choose "
            "other widths, a wider target or files of more digits",
            max_error);
}

void report_advice(const struct render_style *style, const struct phema_plan *plan,
                   const struct phema_plan_advice *advice, double max_error)
{
    if (style->is_quiet)
        return;
    const char *of = plan->m > 1 ? "the worst error expected" : "the error expected";
    if (advice->found.error_before > max_error)
        render_say("keep all snapshots: %s is %.1e already, above %.2g", of,
                   advice->found.error_before, max_error);
    else if (advice->found.n_removed == 0)
        render_say("keep all snapshots: %s is %.1e, and would rise above %.2g", of,
                   advice->found.error_before, max_error);
    else
        render_say("%zu of %zu snapshots can be deleted: %s rises from %.1e to %.1e, within %.2g; "
                   "outputs that were made of them can then not be verified, and averages that end "
                   "earlier may be out of reach",
                   advice->found.n_removed, advice->n_considered, of, advice->found.error_before,
                   advice->found.error_after, max_error);
    report_saving(plan, &advice->saving, max_error);
}

/* The files to delete; those to keep with -v only. */
void weights_write_advice(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_plan_advice *advice, bool is_verbose)
{
    for (size_t k = 0; k < plan->series->n; k++) {
        struct phema_name_buffer shown;
        const char *label = plan->series->snapshots[k].label;
        bool is_kept = !is_removed(advice, k);
        if (!is_kept || is_verbose)
            phema_strbuf_printf(out, "%s  %s\n", is_kept ? "keep  " : "delete",
                                phema_name_show(&shown, label));
    }
    if (!is_verbose)
        phema_strbuf_printf(out, "keep    %zu (-v)\n", plan->series->n - advice->found.n_removed);
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
    phema_json_out_number(out, "error_before", advice->found.error_before);
    phema_json_out_number(out, "error_after", advice->found.error_after);
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
    phema_record_write(out, phema_target_fields, "sigma_rel gamma time", target);
    if (target->named_time != target->time)
        phema_json_out_number(out, "named_time", target->named_time);
    phema_record_write(out, phema_target_fields, "profile spec r_squared", target);
    phema_json_out_numbers(out, "weights", solution->weights, plan->series->n);
    phema_record_write(out, phema_solution_fields, "sum profile_error", solution);
    if (!isnan(target->label_profile_error))
        phema_record_write(out, phema_target_fields, "label_profile_error label_predicted_error",
                           target);
    phema_record_write(out, phema_solution_fields, "norm1 norm2 condition", solution);
    phema_json_out_string(out, "metric", plan->metric);
    phema_record_write(out, phema_solution_fields, "ridge solver predicted_error", solution);
    report_rules_json(out, plan, target, true);
    phema_json_out_close(out, '}');
}

void weights_write_json(struct phema_strbuf *out, const struct render_style *style,
                        const struct phema_plan *plan, const struct phema_plan_advice *advice,
                        double max_error)
{
    struct phema_json_out json;
    render_json_begin(&json, out, true);
    phema_json_out_string(&json, "unit", plan->series->unit);
    phema_record_write_list(&json, "snapshots", phema_snapshot_fields, NULL,
                            plan->series->snapshots, plan->series->n,
                            sizeof(*plan->series->snapshots));
    phema_plan_write_motion(&json, plan);
    report_checks_json(&json, style, plan);
    phema_json_out_open(&json, "targets", '[');
    for (size_t j = 0; j < plan->m; j++)
        write_target_json(&json, plan, &plan->targets[j]);
    phema_json_out_close(&json, ']');
    if (advice)
        write_advice_json(&json, plan, advice, max_error);
    render_json_end(&json);
}

/* ---- The table ---- */

static void add_weight(struct table *table, double weight)
{
    if (fabs(weight) < REPORT_LEAST_WEIGHT)
        table_add(table, TABLE_DIM, "0");
    else
        table_add(table, 0, "%.4f", weight);
}

static void add_rule_title(struct table *table, const struct phema_plan *plan, size_t r)
{
    const struct phema_plan_rule *rule = &plan->rules[r];
    if (strlen(rule->expression) > MAX_TITLE)
        table_add(table, 0, "rule %zu: %.6g", r + 1, rule->sigma_rel);
    else
        table_add(table, 0, "%s=%.6g", rule->expression, rule->sigma_rel);
}

/* sigma_rel or the text of another shape; with its time if there are several */
static void add_title(struct table *table, const struct phema_plan *plan,
                      const struct phema_target *target)
{
    struct phema_name_buffer at;
    struct phema_strbuf title = {0};
    if (!isnan(target->sigma_rel))
        phema_strbuf_printf(&title, "%.6g", target->sigma_rel);
    else
        phema_strbuf_puts(&title, target->kind ? target->spec : "weight");
    if (plan->targets[0].named_time != plan->targets[plan->m - 1].named_time)
        phema_strbuf_printf(&title, " at %s", phema_number_format(&at, target->named_time));
    table_add_text(table, &title);
}

/* The columns behind the snapshots: each target, then at each time the rules. */
struct column {
    const struct phema_target *target;
    const struct phema_solution *solution;
    size_t rule; /* SIZE_MAX: none */
};

/* To be freed; NULL: no memory. */
static struct column *list_columns(size_t *n, const struct phema_plan *plan)
{
    struct column *columns = calloc(plan->m * (1 + plan->n_rules), sizeof(*columns));
    *n = columns ? plan->m : 0;
    for (size_t j = 0; j < *n; j++)
        columns[j] = (struct column){&plan->targets[j], &plan->targets[j].solution, SIZE_MAX};
    for (size_t j = 0; columns && j < plan->m; j++)
        for (size_t r = 0;
             r < phema_plan_n_given_rules(plan) && phema_plan_is_first_of_time(plan, j); r++)
            if (!plan->rules[r].is_copy)
                columns[(*n)++] = (struct column){&plan->targets[j], &plan->targets[j].ruled[r], r};
    return columns;
}

/* How the snapshots are named: by time and width, or by time and shape; with -v by file too. */
struct naming {
    bool has_shapes, has_files;
    int decimals;
};

/* previous: NULL, or the snapshot of the row above, whose time is not repeated */
static void add_snapshot(struct table *table, const struct naming *naming,
                         const struct phema_snapshot *snapshot,
                         const struct phema_snapshot *previous)
{
    struct phema_name_buffer time;
    bool is_repeated = previous && previous->named_time == snapshot->named_time;
    if (naming->has_files)
        table_add(table, 0, "%s", snapshot->label);
    table_add(table, 0, "%s", is_repeated ? "" : phema_number_format(&time, snapshot->named_time));
    if (naming->has_shapes)
        table_add(table, 0, "%s", snapshot->spec ? snapshot->spec : "unknown");
    else if (naming->decimals >= 0)
        table_add(table, 0, "%.*f", naming->decimals, snapshot->sigma_rel);
    else
        table_add(table, 0, "%.6g", snapshot->sigma_rel);
}

static struct naming choose_naming(const struct phema_plan *plan, bool is_verbose)
{
    const struct phema_series *series = plan->series;
    struct naming naming = {.has_files = is_verbose};
    for (size_t k = 0; k < series->n; k++)
        naming.has_shapes |= isnan(series->snapshots[k].sigma_rel);
    naming.decimals =
        report_decimals(&series->snapshots[0].sigma_rel, series->n, sizeof(*series->snapshots));
    return naming;
}

void weights_write_table(struct phema_strbuf *out, const struct phema_plan *plan, bool is_verbose)
{
    const struct phema_series *series = plan->series;
    struct naming naming = choose_naming(plan, is_verbose);
    size_t n_names = naming.has_files ? 3 : 2, n = 0;
    struct column *columns = list_columns(&n, plan);
    n = columns ? n : 0;
    struct table table = {
        .n_columns = n_names + n, .n_keys = naming.has_files ? 1 : 2, .is_failed = !columns};
    size_t first = is_verbose || series->n <= TABLE_MOST_ROWS ? 0 : series->n - TABLE_MOST_ROWS;
    if (naming.has_files)
        table_add(&table, TABLE_LEFT, "file");
    table_add(&table, 0, "time");
    table_add(&table, 0, "%s", naming.has_shapes ? "profile" : "sigma_rel");
    for (size_t c = 0; c < n; c++) {
        if (columns[c].rule == SIZE_MAX)
            add_title(&table, plan, columns[c].target);
        else
            add_rule_title(&table, plan, columns[c].rule);
    }
    for (size_t k = first; k < series->n; k++) {
        add_snapshot(&table, &naming, &series->snapshots[k],
                     k > first ? &series->snapshots[k - 1] : NULL);
        for (size_t c = 0; c < n; c++)
            add_weight(&table, columns[c].solution->weights[k]);
    }
    table_add(&table, naming.has_files ? 0 : TABLE_KEYS, "error expected");
    for (size_t i = 1; i < n_names; i++)
        table_add(&table, 0, "%s", "");
    for (size_t c = 0; c < n; c++)
        report_add_error(&table, columns[c].solution->predicted.total);
    free(columns);
    render_write_table(out, &table, 2);
    if (first)
        render_write_wrapped(out, "  %zu older snapshots not shown (-v); digits: --json", first);
}
