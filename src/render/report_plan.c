// SPDX-License-Identifier: Apache-2.0
/* report_plan.c - on stderr: the errors to expect of targets, remarks and warnings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"

#define MOST_DECIMALS 4 /* widths of more digits are written with as many as they need */

/* ---- Errors to expect ---- */

#define NO_MANTISSA (-1)
enum { PAPER = 2 }; /* the column that says nothing of --metric profile */

/* Columns of the table of targets behind their errors. */
static const struct column {
    const char *title;
    size_t offset;  /* of a double in a target */
    int decimals;   /* of its mantissa; NO_MANTISSA: none */
    bool is_detail; /* with -v; all others where a target has a value */
} columns[] = {
#define COLUMN(member) offsetof(struct phema_target, member)
    {"profile", COLUMN(solution.predicted.profile), 0, true},
    {"rounding", COLUMN(solution.predicted.rounding), 0, false},
    [PAPER] = {"paper's weights", COLUMN(solution.predicted.paper_weights), 1, false},
    {"by the labels", COLUMN(label_predicted_error), 1, false},
    {"gain", COLUMN(solution.norm2), NO_MANTISSA, true},
    {"profile error", COLUMN(solution.profile_error), 1, true},
};

struct shown {
    bool has_shapes; /* targets that are no power functions */
    int decimals;    /* of sigma_rel; -1: %.6g */
    bool has[ARRAY_LEN(columns)];
};

static double value_of(const struct phema_target *target, const struct column *column)
{
    if (column == &columns[PAPER] && isnan(target->gamma)) /* the paper has power functions only */
        return PHEMA_UNKNOWN;
    return *(const double *)(const void *)((const char *)target + column->offset);
}

int report_decimals(const double *values, size_t n, size_t stride)
{
    int decimals = 0;
    for (size_t i = 0; i < n; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "%.6g",
                       *(const double *)(const void *)((const char *)values + i * stride));
        const char *point = strchr(text, '.');
        if (strpbrk(text, "en"))
            return -1;
        if (point && (int)strlen(point) - 1 > decimals)
            decimals = (int)strlen(point) - 1;
    }
    return decimals > MOST_DECIMALS ? -1 : decimals;
}

static struct shown choose_columns(const struct phema_plan *plan, bool is_verbose)
{
    struct shown shown = {.decimals = -1};
    for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
        shown.has[c] = columns[c].is_detail && is_verbose;
        for (size_t j = 0; j < plan->m && !columns[c].is_detail; j++)
            shown.has[c] |= !isnan(value_of(&plan->targets[j], &columns[c]));
    }
    shown.has[PAPER] &= strcmp(plan->metric, "profile") != 0;
    for (size_t j = 0; j < plan->m; j++)
        shown.has_shapes |= isnan(plan->targets[j].sigma_rel);
    if (!shown.has_shapes)
        shown.decimals =
            report_decimals(&plan->targets[0].sigma_rel, plan->m, sizeof(*plan->targets));
    return shown;
}

static void add_number(struct table *table, unsigned flags, int decimals, double value)
{
    if (decimals == NO_MANTISSA)
        table_add(table, flags, "%.2f", value);
    else if (isnan(value))
        table_add(table, flags, "unknown");
    else
        table_add(table, flags, "%.*e", decimals, value);
}

void report_add_error(struct table *table, double error)
{
    bool is_large = error > REPORT_FLAGGED_ERROR;
    if (isnan(error))
        table_add(table, 0, "unknown");
    else
        table_add(table, is_large ? TABLE_ALARM : 0, "%s%.1e", is_large ? "! " : "", error);
}

static void add_row(struct table *table, const struct shown *shown,
                    const struct phema_target *target)
{
    double error = target->solution.predicted.total;
    struct phema_name_buffer at;
    bool is_large = error > REPORT_FLAGGED_ERROR;
    if (!target->kind)
        table_add(table, 0, "given weights");
    else if (isnan(target->sigma_rel))
        table_add(table, 0, "%s", target->spec);
    else if (shown->decimals >= 0)
        table_add(table, 0, "%.*f", shown->decimals, target->sigma_rel);
    else
        table_add(table, 0, "%s%.6g", shown->has_shapes ? "sigma_rel " : "", target->sigma_rel);
    table_add(table, 0, "%s", phema_number_format(&at, target->named_time));
    add_number(table, is_large ? TABLE_ALARM : 0, 1, error);
    table_add(table, TABLE_ALARM, "%s", is_large ? "!" : "");
    for (size_t c = 0; c < ARRAY_LEN(columns); c++)
        if (shown->has[c] && c == PAPER && isnan(target->gamma))
            table_add(table, 0, "%s", "");
        else if (shown->has[c])
            add_number(table, TABLE_DIM, columns[c].decimals, value_of(target, &columns[c]));
}

const struct phema_target *report_find_error(const struct phema_plan *plan, size_t first,
                                             bool is_least)
{
    const struct phema_target *found = NULL;
    for (size_t j = first; j < plan->m; j++) {
        double error = plan->targets[j].solution.predicted.total;
        double other = found ? found->solution.predicted.total : PHEMA_UNKNOWN;
        if (!isnan(error) && !(is_least ? other <= error : other >= error))
            found = &plan->targets[j];
    }
    return found;
}

static void say_rest(const struct phema_plan *plan, size_t first)
{
    const struct phema_target *worst = report_find_error(plan, first, false);
    struct phema_strbuf name = {0};
    if (worst)
        phema_target_write_name(&name, worst);
    if (worst && name.data)
        render_say("  %zu more (-v), error expected at most %.1e%s (%s)", plan->m - first,
                   worst->solution.predicted.total,
                   worst->solution.predicted.total > REPORT_FLAGGED_ERROR ? " !" : "", name.data);
    else
        render_say("  %zu more (-v)", plan->m - first);
    phema_strbuf_clear(&name);
}

static void report_table(const struct phema_plan *plan, bool is_verbose)
{
    struct shown shown = choose_columns(plan, is_verbose);
    struct table table = {.n_keys = 2};
    size_t n = is_verbose || plan->m <= TABLE_MOST_ROWS ? plan->m : TABLE_MOST_ROWS;
    table_add_titles(&table, shown.has_shapes ? "<average" : "sigma_rel");
    table_add_titles(&table, "time|error expected|<~");
    for (size_t c = 0; c < ARRAY_LEN(columns); c++)
        if (shown.has[c])
            table_add_titles(&table, columns[c].title);
    for (size_t j = 0; j < n; j++)
        add_row(&table, &shown, &plan->targets[j]);
    render_say_table(&table);
    if (n < plan->m)
        say_rest(plan, n);
}

/* One target needs no table. */
static void report_single(const struct phema_plan *plan, const struct phema_target *target,
                          bool is_verbose)
{
    const struct phema_solution *solution = &target->solution;
    const struct phema_prediction *predicted = &solution->predicted;
    struct phema_strbuf text = {0};
    phema_target_write_name(&text, target);
    if (isnan(predicted->total))
        phema_strbuf_puts(&text, ": error unknown");
    else
        phema_strbuf_printf(&text, ": error expected %.1e%s", predicted->total,
                            predicted->total > REPORT_FLAGGED_ERROR ? " !" : "");
    if (is_verbose && !isnan(predicted->total))
        phema_strbuf_printf(&text, " (profile %.0e, rounding %.0e), gain %.2f", predicted->profile,
                            predicted->rounding, solution->norm2);
    if (is_verbose && !isnan(solution->profile_error))
        phema_strbuf_printf(&text, ", profile error %.1e", solution->profile_error);
    double paper = value_of(target, &columns[PAPER]);
    if (!isnan(paper) && strcmp(plan->metric, "profile") != 0)
        phema_strbuf_printf(&text, " (paper's weights: %.1e)", paper);
    if (!isnan(target->label_predicted_error))
        phema_strbuf_printf(&text, " (by the labels: %.1e)", target->label_predicted_error);
    render_say_text(&text);
}

/* The default metric is named with -v only. */
static void report_metric(const struct phema_plan *plan, bool is_verbose)
{
    const struct phema_solution *solution = &plan->targets[0].solution;
    const char *ridge = solution->ridge > 0 ? ", with a ridge for the rounding of the files" : "";
    if (plan->unmoved && plan->checks.verdict != PHEMA_SERIES_WRONG)
        render_say("assuming a random walk (--metric walk): %s", plan->unmoved);
    if (strcmp(plan->metric, "motion") == 0 && is_verbose)
        render_say("weights fitted to this training (--metric motion)%s, solved in %s", ridge,
                   solution->solver);
    else if (strcmp(plan->metric, "walk") == 0 && (!plan->unmoved || is_verbose))
        render_say(
            "weights for parameters that move like a random walk (--metric walk)%s, solved in "
            "%s",
            ridge, solution->solver);
    else if (strcmp(plan->metric, "profile") == 0)
        render_say("weights of the paper and of EDM2 (--metric profile), solved in %s",
                   solution->solver);
    else if (plan->has_given_weights)
        render_say("weights as given in the file");
}

#define LEAST_ROUNDING 1e-7 /* that of float32 is less */

/* The one whose rounding is about that of the newest snapshot, which is measured; NULL: all are
 * float32 or wider, and what is measured is that of the averages' own updates. */
static const char *name_stored_dtype(const struct phema_series *series, double rounding)
{
    const char *any = NULL;
    for (size_t i = 0; i < series->n_tensors; i++) {
        enum phema_dtype dtype = phema_tensor_stored_dtype(&series->tensors[i].tensor);
        double own = phema_dtype_rounding(dtype);
        if (series->tensors[i].rule != PHEMA_RULE_AVERAGE || !(own > LEAST_ROUNDING))
            continue;
        if (fabs(log2(own / rounding)) < 1)
            return phema_dtype_name(dtype);
        any = "the dtype of the snapshots";
    }
    return any;
}

static void report_dtype(const struct phema_plan *plan, enum phema_dtype output_dtype,
                         bool has_dtype, bool is_verbose)
{
    const struct phema_series *series = plan->series;
    double stored = series->snapshots[series->n - 1].rounding;
    double written = has_dtype ? phema_dtype_rounding(output_dtype) : stored;
    const struct phema_target *worst = report_find_error(plan, 0, false);
    bool matters = worst && written > worst->solution.predicted.total;
    const char *name =
        has_dtype ? phema_dtype_name(output_dtype) : name_stored_dtype(series, stored);
    if (!name || !(written > LEAST_ROUNDING) || !(matters || is_verbose))
        return;
    render_say("  output in %s adds an error of %.1e%s", name, written,
               matters ? "; synth --dtype f32 avoids it" : "");
}

static void report_targets(const struct render_style *style, const struct phema_plan *plan,
                           enum phema_dtype output_dtype, bool has_dtype, bool has_errors)
{
    report_metric(plan, style->is_verbose);
    if (has_errors && plan->m > 1)
        report_table(plan, style->is_verbose);
    else if (has_errors)
        report_single(plan, &plan->targets[0], style->is_verbose);
    if (has_errors && style->is_verbose && report_find_error(plan, 0, false))
        render_say(
            "  error: |made - true| / |true| over all parameters; profile error: the same of the "
            "averaging profiles, as the paper measures it");
    if (has_errors)
        report_dtype(plan, output_dtype, has_dtype, style->is_verbose);
    struct phema_strbuf remarks = {0};
    phema_plan_write_remarks(&remarks, plan);
    for (size_t at = 0; at < remarks.size && !remarks.is_failed;
         at += strlen(remarks.data + at) + 1)
        render_say("  %s", remarks.data + at);
    phema_strbuf_clear(&remarks);
    struct phema_strbuf rules = {0};
    report_rules(&rules, plan);
    for (size_t at = 0; at < rules.size && !rules.is_failed;
         at += strcspn(rules.data + at, "\n") + 1)
        render_say("  %.*s", (int)strcspn(rules.data + at, "\n"), rules.data + at);
    phema_strbuf_clear(&rules);
}

void report_plan(const struct render_style *style, const struct phema_plan *plan,
                 enum phema_dtype output_dtype, bool has_dtype, bool has_errors)
{
    if (!style->is_quiet)
        report_targets(style, plan, output_dtype, has_dtype, has_errors);
    struct phema_strbuf warnings = {0};
    phema_plan_write_warnings(&warnings, plan);
    render_warn_all(style, &warnings);
}
