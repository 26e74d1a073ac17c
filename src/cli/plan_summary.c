// SPDX-License-Identifier: Apache-2.0
/* plan_summary.c - on stderr: the errors to expect of targets, remarks and warnings. What several
 * targets have in common is written once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "print_summary.h"

/* Predictions above this, or weights this large, deserve a warning. */
#define LARGE_ERROR 1e-2
#define LARGE_NORM  10.0

#define MOST_DECIMALS 4 /* widths of more digits are written with as many as they need */

#define MOST_NAMES 4 /* more targets of a remark are counted only */

void report_target_name(struct phema_strbuf *out, const struct phema_target *target)
{
    struct phema_name_buffer at, spec;
    if (!target->kind)
        phema_strbuf_puts(out, "given weights");
    else if (isnan(target->sigma_rel))
        phema_strbuf_puts(out, phema_name_escape(&spec, target->spec, strlen(target->spec)));
    else
        phema_strbuf_printf(out, "sigma_rel %.6g", target->sigma_rel);
    phema_strbuf_printf(out, " at %s", phema_number_format(&at, target->named_time));
}

/* ---- Warnings ---- */

static bool is_halved(const struct phema_series *series) /* files of 16 bits or less */
{
    for (size_t k = 0; k < series->n; k++)
        if (series->snapshots[k].rounding > 1e-5)
            return true;
    return false;
}

/* The reason for a large error, and what helps. */
static const char *remedy(const struct phema_plan *plan, const struct phema_target *target)
{
    const struct phema_series *series = plan->series;
    const struct phema_prediction *predicted = &target->solution.predicted;
    bool is_rounding = predicted->rounding > predicted->profile;
    double narrowest = HUGE_VAL;
    for (size_t k = 0; k < series->n; k++)
        if (!isnan(series->snapshots[k].sigma_rel))
            narrowest = fmin(narrowest, series->snapshots[k].sigma_rel);
    if (target->sigma_rel < narrowest)
        return is_rounding && is_halved(series)
                   ? "narrower than every snapshot, so that large weights multiply the rounding of "
                     "the 16-bit files; store a smaller sigma_rel, or F32"
                   : "narrower than every snapshot; store a smaller sigma_rel, or more times "
                     "(weights --advise says how many)";
    if (is_rounding)
        return is_halved(series) ? "most of the error is rounding of the 16-bit files; store F32, "
                                   "or choose a wider target"
                                 : "large weights multiply the rounding of the files; choose a "
                                   "wider target";
    return "too few snapshots for this width; store more times, or widths nearer to it (weights "
           "--advise says how many times)";
}

/* "expect a large error: ..."; false: no warning. */
static bool write_warning(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    bool is_wrong = solution->predicted.total > LARGE_ERROR;
    if (!is_wrong && !(solution->norm2 > LARGE_NORM))
        return false;
    phema_strbuf_printf(out, "%s: %s", is_wrong ? "expect a large error" : "the weights are large",
                        remedy(plan, target));
    return true;
}

bool report_write_warning(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_target *target)
{
    struct phema_strbuf warning = {0};
    bool is_any = write_warning(&warning, plan, target);
    if (is_any && warning.data) {
        report_target_name(out, target);
        phema_strbuf_printf(out, ": %s", warning.data);
    }
    phema_strbuf_clear(&warning);
    return is_any;
}

/* ---- Remarks ---- */

/* Weights, snapshots and times of a target that are not as usual; false: all are. */
static bool write_remarks(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_target *target)
{
    double wanted_sum = strcmp(target->kind ? target->kind : "", "difference") == 0 ? 0 : 1;
    const char *between = "";
    if (fabs(target->solution.sum - wanted_sum) > 1e-9) {
        phema_strbuf_printf(out, "weights sum to %.9g", target->solution.sum);
        between = ", ";
    }
    if (target->n_left_out) {
        phema_strbuf_printf(out, "%s%zu later snapshot%s left out", between, target->n_left_out,
                            target->n_left_out == 1 ? "" : "s");
        between = ", ";
    }
    if (plan->series->snapshots[target->newest].time < target->time && !plan->has_given_weights) {
        phema_strbuf_printf(out, "%sbetween two snapshots: later ones are used", between);
        between = ", ";
    }
    if (target->n_repeated) {
        phema_strbuf_printf(out, "%s%zu snapshot%s left out that repeat%s another", between,
                            target->n_repeated, target->n_repeated == 1 ? "" : "s",
                            target->n_repeated == 1 ? "s" : "");
        between = ", ";
    }
    double initial = target->solution.predicted.initial;
    if (initial > 0)
        phema_strbuf_printf(
            out,
            "%s%.2g %% are the parameters before training, which no snapshot shows: "
            "they may add up to %.1e to the error",
            between, 100 * initial, initial);
    return out->size > 0;
}

/* One column of weights: a target, or a rule at the time of a target. */
struct column {
    struct phema_target target;
    struct phema_strbuf text;
    bool is_done;
};

static bool has_text(const struct column *column, const char *text)
{
    return column->text.data && strcmp(column->text.data, text) == 0;
}

/* "sigma_rel 0.02, 0.04 and 3 more at 64" of all columns with that text; the names of other shapes
 * and times are written out. */
static void write_names(struct phema_strbuf *out, const struct column *columns, size_t n,
                        const char *text)
{
    struct phema_name_buffer at;
    const struct phema_target *first = NULL;
    bool is_short = true;
    size_t n_equal = 0, n_written = 0;
    for (size_t i = 0; i < n; i++) {
        const struct phema_target *target = &columns[i].target;
        if (!has_text(&columns[i], text))
            continue;
        first = first ? first : target;
        n_equal++;
        is_short = is_short && target->kind && !isnan(target->sigma_rel) &&
                   target->named_time == first->named_time;
    }
    for (size_t i = 0; i < n && n_written < MOST_NAMES; i++) {
        if (!has_text(&columns[i], text))
            continue;
        phema_strbuf_puts(out, n_written ? ", " : is_short ? "sigma_rel " : "");
        if (is_short)
            phema_strbuf_printf(out, "%.6g", columns[i].target.sigma_rel);
        else
            report_target_name(out, &columns[i].target);
        n_written++;
    }
    if (n_equal > n_written)
        phema_strbuf_printf(out, " and %zu more", n_equal - n_written);
    if (first && is_short)
        phema_strbuf_printf(out, " at %s", phema_number_format(&at, first->named_time));
}

/* A line for each text that differs from all before it. */
static void say_columns(struct column *columns, size_t n, const char *prefix)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = columns[i].text.data;
        if (!text || columns[i].is_done)
            continue;
        struct phema_strbuf names = {0};
        write_names(&names, columns, n, text);
        if (!names.is_failed && names.data)
            cli_say("%s%s: %s", prefix, names.data, text);
        phema_strbuf_clear(&names);
        for (size_t k = i; k < n; k++)
            columns[k].is_done |= has_text(&columns[k], text);
    }
    for (size_t i = 0; i < n; i++)
        phema_strbuf_clear(&columns[i].text);
}

bool report_is_first_of_time(const struct phema_plan *plan, size_t j)
{
    return j == 0 || plan->targets[j].ruled != plan->targets[j - 1].ruled;
}

/* The columns of all targets, and of the rules of every time: borrowed views of the plan. */
static size_t list_columns(struct column *out, const struct phema_plan *plan, bool has_rules)
{
    size_t n = 0;
    for (size_t j = 0; j < plan->m; j++)
        out[n++] = (struct column){.target = plan->targets[j]};
    for (size_t j = 0; j < plan->m && has_rules; j++)
        for (size_t r = 0; r < plan->n_rules && report_is_first_of_time(plan, j); r++) {
            if (plan->rules[r].is_copy)
                continue;
            out[n] = (struct column){.target = plan->targets[j]};
            out[n].target.sigma_rel = plan->rules[r].sigma_rel;
            out[n++].target.solution = plan->targets[j].ruled[r];
        }
    return n;
}

/* Says what write has to say of each column. */
static void report_columns(const struct phema_plan *plan, bool has_rules,
                           bool (*write)(struct phema_strbuf *out, const struct phema_plan *plan,
                                         const struct phema_target *target),
                           const char *prefix)
{
    struct column *columns = calloc(plan->m * (plan->n_rules + 1), sizeof(*columns));
    if (!columns)
        return; /* the plan itself is complete */
    size_t n = list_columns(columns, plan, has_rules);
    for (size_t i = 0; i < n; i++)
        (void)write(&columns[i].text, plan, &columns[i].target);
    say_columns(columns, n, prefix);
    free(columns);
}

/* ---- Errors to expect ---- */

/* Which columns the table of targets has. */
struct shown {
    bool has_shapes; /* targets that are no power functions */
    bool has_rounding, has_paper, has_labels;
    bool is_verbose;
    int decimals; /* of sigma_rel; -1: %.6g */
};

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
    struct shown shown = {.is_verbose = is_verbose};
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        const struct phema_prediction *predicted = &target->solution.predicted;
        shown.has_shapes |= isnan(target->sigma_rel);
        shown.has_rounding |= !isnan(predicted->rounding);
        shown.has_paper |= !isnan(predicted->paper_weights);
        shown.has_labels |= !isnan(target->label_predicted_error);
    }
    shown.has_paper &= strcmp(plan->metric, "profile") != 0;
    shown.decimals = shown.has_shapes ? -1
                                      : report_decimals(&plan->targets[0].sigma_rel, plan->m,
                                                        sizeof(*plan->targets));
    return shown;
}

static void add_number(struct table *table, unsigned flags, int decimals, double value)
{
    if (isnan(value))
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

static void add_heading(struct table *table, const struct shown *shown)
{
    table_add(table, shown->has_shapes ? TABLE_LEFT : 0, "%s",
              shown->has_shapes ? "average" : "sigma_rel");
    table_add(table, 0, "time");
    table_add(table, 0, "error expected");
    table_add(table, TABLE_LEFT | TABLE_NEAR, "%s", "");
    if (shown->is_verbose)
        table_add(table, 0, "profile");
    if (shown->has_rounding)
        table_add(table, 0, "rounding");
    if (shown->has_paper)
        table_add(table, 0, "paper's weights");
    if (shown->has_labels)
        table_add(table, 0, "by the labels");
    if (shown->is_verbose) {
        table_add(table, 0, "gain");
        table_add(table, 0, "profile error");
    }
}

static void add_row(struct table *table, const struct shown *shown,
                    const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    const struct phema_prediction *predicted = &solution->predicted;
    struct phema_name_buffer at;
    bool is_large = predicted->total > REPORT_FLAGGED_ERROR;
    if (!target->kind)
        table_add(table, 0, "given weights");
    else if (isnan(target->sigma_rel))
        table_add(table, 0, "%s", target->spec);
    else if (shown->decimals >= 0)
        table_add(table, 0, "%.*f", shown->decimals, target->sigma_rel);
    else
        table_add(table, 0, "%s%.6g", shown->has_shapes ? "sigma_rel " : "", target->sigma_rel);
    table_add(table, 0, "%s", phema_number_format(&at, target->named_time));
    add_number(table, is_large ? TABLE_ALARM : 0, 1, predicted->total);
    table_add(table, TABLE_ALARM, "%s", is_large ? "!" : "");
    if (shown->is_verbose)
        add_number(table, TABLE_DIM, 0, predicted->profile);
    if (shown->has_rounding)
        add_number(table, TABLE_DIM, 0, predicted->rounding);
    if (shown->has_paper)
        add_number(table, TABLE_DIM, 1, predicted->paper_weights);
    if (shown->has_labels)
        add_number(table, TABLE_DIM, 1, target->label_predicted_error);
    if (shown->is_verbose) {
        table_add(table, TABLE_DIM, "%.2f", solution->norm2);
        add_number(table, TABLE_DIM, 1, solution->profile_error);
    }
}

/* The target of the largest error, among those from first on; NULL: every error is unknown. */
static const struct phema_target *find_worst(const struct phema_plan *plan, size_t first)
{
    const struct phema_target *worst = NULL;
    for (size_t j = first; j < plan->m; j++) {
        double error = plan->targets[j].solution.predicted.total;
        if (!isnan(error) && !(worst && worst->solution.predicted.total >= error))
            worst = &plan->targets[j];
    }
    return worst;
}

static void say_rest(const struct phema_plan *plan, size_t first)
{
    const struct phema_target *worst = find_worst(plan, first);
    struct phema_strbuf name = {0};
    if (worst)
        report_target_name(&name, worst);
    if (worst && name.data)
        cli_say("  %zu more (-v), error expected at most %.1e%s (%s)", plan->m - first,
                worst->solution.predicted.total,
                worst->solution.predicted.total > REPORT_FLAGGED_ERROR ? " !" : "", name.data);
    else
        cli_say("  %zu more (-v)", plan->m - first);
    phema_strbuf_clear(&name);
}

static void report_table(const struct phema_plan *plan, bool is_verbose)
{
    struct shown shown = choose_columns(plan, is_verbose);
    struct table table = {.n_columns = 4 + (size_t)shown.has_rounding + (size_t)shown.has_paper +
                                       (size_t)shown.has_labels + (is_verbose ? 3 : 0),
                          .n_keys = 2};
    size_t n = is_verbose || plan->m <= TABLE_MOST_ROWS ? plan->m : TABLE_MOST_ROWS;
    add_heading(&table, &shown);
    for (size_t j = 0; j < n; j++)
        add_row(&table, &shown, &plan->targets[j]);
    cli_say_table(&table);
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
    report_target_name(&text, target);
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
    if (!isnan(predicted->paper_weights) && strcmp(plan->metric, "profile") != 0)
        phema_strbuf_printf(&text, " (paper's weights: %.1e)", predicted->paper_weights);
    if (!isnan(target->label_predicted_error))
        phema_strbuf_printf(&text, " (by the labels: %.1e)", target->label_predicted_error);
    if (text.data && !text.is_failed)
        cli_say("%s", text.data);
    phema_strbuf_clear(&text);
}

/* The default metric is named with -v only. */
static void report_metric(const struct phema_plan *plan, bool is_verbose)
{
    const struct phema_solution *solution = &plan->targets[0].solution;
    const char *ridge = solution->ridge > 0 ? ", with a ridge for the rounding of the files" : "";
    if (plan->unmoved && plan->checks.verdict != PHEMA_SERIES_WRONG)
        cli_say("using --metric walk: %s", plan->unmoved);
    if (strcmp(plan->metric, "motion") == 0 && is_verbose)
        cli_say("weights fitted to this training (--metric motion)%s, solved in %s", ridge,
                solution->solver);
    else if (strcmp(plan->metric, "walk") == 0 && (!plan->unmoved || is_verbose))
        cli_say("weights for parameters that move like a random walk (--metric walk)%s, solved in "
                "%s",
                ridge, solution->solver);
    else if (strcmp(plan->metric, "profile") == 0)
        cli_say("weights of the paper and of EDM2 (--metric profile), solved in %s",
                solution->solver);
    else if (plan->has_given_weights)
        cli_say("weights as given in the file");
}

static void report_dtype(const struct phema_plan *plan, enum phema_dtype output_dtype,
                         bool has_dtype, bool is_verbose)
{
    const struct phema_series *series = plan->series;
    double stored = series->snapshots[series->n - 1].rounding;
    double written = has_dtype ? phema_dtype_rounding(output_dtype) : stored;
    const struct phema_target *worst = find_worst(plan, 0);
    bool matters = worst && written > worst->solution.predicted.total;
    if (series->n_tensors && written > 1e-7 && (matters || is_verbose))
        cli_say("  the dtype written adds an error of %.1e", written);
}

static void report_errors(const struct phema_plan *plan, bool is_verbose)
{
    if (plan->m > 1)
        report_table(plan, is_verbose);
    else
        report_single(plan, &plan->targets[0], is_verbose);
    if (is_verbose && find_worst(plan, 0))
        cli_say(
            "  error: |made - true| / |true| over all parameters; profile error: the same of the "
            "averaging profiles, as the paper measures it");
}

void report_plan(const struct cli_common *common, const struct phema_plan *plan,
                 enum phema_dtype output_dtype, bool has_dtype, bool has_errors)
{
    if (common->is_quiet)
        return;
    report_metric(plan, common->is_verbose);
    if (has_errors) {
        report_errors(plan, common->is_verbose);
        report_dtype(plan, output_dtype, has_dtype, common->is_verbose);
    }
    report_columns(plan, false, write_remarks, "  ");
    struct phema_strbuf rules = {0};
    report_rules(&rules, plan);
    for (size_t at = 0; at < rules.size && !rules.is_failed;
         at += strcspn(rules.data + at, "\n") + 1)
        cli_say("  %.*s", (int)strcspn(rules.data + at, "\n"), rules.data + at);
    phema_strbuf_clear(&rules);
    struct phema_strbuf checks = {0};
    if (report_write_checks(&checks, plan) && !checks.is_failed)
        cli_say("%s: %s", plan->checks.verdict == PHEMA_SERIES_WRONG ? "warning" : "note",
                checks.data);
    phema_strbuf_clear(&checks);
    report_columns(plan, true, write_warning, "warning: ");
}
