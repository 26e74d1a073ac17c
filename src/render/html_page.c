// SPDX-License-Identifier: Apache-2.0
/* html_page.c - the sections of the page. The bytes do not depend on the time or place of
 * writing. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "html_writer.h"

#include "parts.h"

/* At most this many columns of weights; weights --json has all. */
#define MOST_WEIGHTS PHEMA_PLOT_MAX_TARGETS

/* As many as fit beside times and widths on a phone. */
#define NARROW_WEIGHTS 2

/* Longer labels of tensors are cut. */
#define MOST_LABEL 200

/* Longer lists start collapsed. */
#define MOST_OPEN 24

/* ---- What the page has found, as one sentence ---- */

static double error_of(const struct phema_plan *plan, size_t j)
{
    return plan->targets[j].solution.predicted.total;
}

/* " at 3000 steps": the time of the errors by width; "" where all averages of the page are of the
 * newest snapshot's. */
static const char *show_time(struct phema_name_buffer *buffer, const struct html_report *report)
{
    const struct phema_series *series = report->series;
    struct phema_name_buffer time;
    double at = report->errors_plan->targets[0].named_time;
    bool is_told = at != series->snapshots[series->n - 1].named_time;
    for (size_t j = 0; report->plan && j < report->plan->m; j++)
        is_told = is_told || report->plan->targets[j].named_time != at;
    buffer->text[0] = '\0';
    if (is_told)
        (void)snprintf(buffer->text, sizeof(buffer->text), " at %s %s",
                       phema_number_format(&time, at), report_named_unit(series));
    return buffer->text;
}

/* "Averages of sigma_rel 0.04 to 0.25 have ...": the widths around the least error. */
static void write_widths(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_plan *plan = report->errors_plan;
    const struct phema_target *least = report_find_error(plan, 0, true);
    struct phema_name_buffer time;
    if (!least)
        return;
    if (phema_series_is_raw(plan->series)) {
        html_printf(out,
                    "The snapshots are raw: merges of them, such as sma:4, have no error but their "
                    "rounding. Averages of a sigma_rel%s have at least %.1e.",
                    show_time(&time, report), least->solution.predicted.total);
        return;
    }
    if (least->solution.predicted.total > REPORT_FLAGGED_ERROR) {
        html_printf(out, "Expect large errors%s: the least is %.1e, at sigma_rel %.3g.",
                    show_time(&time, report), least->solution.predicted.total, least->sigma_rel);
        return;
    }
    size_t first = (size_t)(least - plan->targets), last = first;
    while (first > 0 && error_of(plan, first - 1) <= REPORT_FLAGGED_ERROR)
        first--;
    while (last + 1 < plan->m && error_of(plan, last + 1) <= REPORT_FLAGGED_ERROR)
        last++;
    html_printf(out, "Averages of sigma_rel %.3g to %.3g%s have an expected error below 0.1 %%.",
                plan->targets[first].sigma_rel, plan->targets[last].sigma_rel,
                show_time(&time, report));
}

/* A paragraph: which widths come out well, which one scored best, or that the series is wrong; then
 * what the checks of the series say. Nothing where neither errors nor scores are known. */
static void write_findings(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_plan *plan = report->errors_plan ? report->errors_plan : report->plan;
    const struct phema_sweep_facts *scores = report->scores_facts;
    bool is_wrong = plan && plan->checks.verdict == PHEMA_SERIES_WRONG;
    struct phema_name_buffer time;
    if (!scores && !is_wrong && !report->errors_plan)
        return;
    phema_strbuf_puts(out, "<p class=\"found\">");
    if (scores && isnan(scores->best_sigma_rel))
        html_printf(out, "The best score, %.6g, is that of the newest snapshot as it is. ",
                    scores->best_score);
    else if (scores)
        html_printf(out, "The best score, %.6g, is that of sigma_rel %.4g%s%s. ",
                    scores->best_score, scores->best_sigma_rel,
                    isnan(scores->best_time) ? "" : " at time ",
                    isnan(scores->best_time) ? "" : phema_number_format(&time, scores->best_time));
    if (is_wrong)
        html_printf(out, "The snapshots do not fit their labels, so errors are unknown.");
    else if (report->errors_plan)
        write_widths(out, report);
    if (plan && plan->checks.verdict == PHEMA_SERIES_FITS)
        html_printf(out, " The snapshots fit their labels.");
    phema_strbuf_puts(out, "</p>\n");
    struct phema_strbuf checks = {0};
    if (plan && phema_series_write_doubt(&checks, plan->series, &plan->checks) && !checks.is_failed)
        html_warning(out, checks.data);
    phema_strbuf_clear_part(&checks, out);
    for (size_t i = 0; plan && i < plan->checks.decays.n; i++) {
        struct phema_strbuf decay = {0};
        phema_decay_set_write(&decay, &plan->checks.decays.sets[i], plan->series->unit);
        phema_strbuf_puts(out, "<p>");
        html_printf(out, "Decay of %s.", decay.data && !decay.is_failed ? decay.data : "");
        phema_strbuf_puts(out, "</p>\n");
        phema_strbuf_clear_part(&decay, out);
    }
}

/* ---- The head ---- */

static const char *show_count(struct phema_name_buffer *buffer, uint64_t n)
{
    (void)snprintf(buffer->text, sizeof(buffer->text), "%llu", (unsigned long long)n);
    return buffer->text;
}

static void write_head(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_series *series = report->series;
    struct phema_name_buffer from, to, size;
    phema_strbuf_puts(out, "<header>\n<h1>");
    html_text(out, report->title);
    phema_strbuf_puts(out, "</h1>\n");
    write_findings(out, report);
    phema_strbuf_puts(out, "<p class=\"lead\">");
    html_printf(out, "%zu snapshot%s", series->n, series->n == 1 ? "" : "s");
    if (report->times.n_times > 1)
        html_printf(out, ", %s to %s %s",
                    phema_number_format(&from, series->snapshots[0].named_time),
                    phema_number_format(&to, series->snapshots[series->n - 1].named_time),
                    report_named_unit(series));
    if (series->n_tensors)
        html_printf(out, ", %zu tensors each", series->n_tensors);
    if (report->times.size_bytes)
        html_printf(out, ", %s", phema_size_format(&size, report->times.size_bytes));
    phema_strbuf_puts(out, "</p>\n</header>\n");
}

/* ---- Pictures ---- */

static void write_layout(struct phema_strbuf *out, const char *width,
                         const struct phema_strbuf *picture)
{
    phema_strbuf_printf(out, "<div class=\"%s picture\">\n", width);
    phema_strbuf_append(out, picture->data, picture->size);
    phema_strbuf_puts(out, "</div>\n");
}

static void write_layouts(struct phema_strbuf *out, const struct html_picture *picture)
{
    write_layout(out, "wide", &picture->wide);
    write_layout(out, "narrow", &picture->narrow);
}

/* more: unfolds below the picture; NULL or empty: nothing does */
static void write_picture(struct phema_strbuf *out, const char *id, const char *title,
                          const struct html_picture *picture, const struct html_picture *more,
                          const char *words)
{
    if (!picture->wide.size)
        return;
    html_section(out, id, title);
    phema_strbuf_printf(out, "<p class=\"lead\">%s</p>\n", words);
    write_layouts(out, picture);
    if (more && more->wide.size) {
        phema_strbuf_puts(out, "<details>\n<summary>The other averages</summary>\n");
        write_layouts(out, more);
        phema_strbuf_puts(out, "</details>\n");
    }
    phema_strbuf_puts(out, "</section>\n");
}

static void write_pictures(struct phema_strbuf *out, const struct html_report *report)
{
    write_picture(out, "profiles", "Profiles", &report->profiles, &report->more_profiles,
                  "How much each moment of the training weighs. Thin: some of the snapshots. "
                  "Dashed: the target. Solid: the weighted sum of the snapshots. Below: the "
                  "difference, times ten.");
    write_picture(out, "weights", "Weights", &report->weights, NULL,
                  "The weight of each snapshot in the average.");
    if (report->is_cut)
        phema_strbuf_printf(out,
                            "<p>Profiles and weights are drawn of the first %d averages.</p>\n",
                            PHEMA_PLOT_MAX_TARGETS);
    write_picture(out, "memory", "Memory", &report->memory, NULL, "Memory of the run, by stage.");
}

/* ---- Targets ---- */

/* Formats one number; a dash for NaN. */
PHEMA_PRINTF(2, 3)
static const char *number(struct phema_name_buffer *buffer, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    bool is_unknown = isnan(va_arg(again, double));
    va_end(again);
    (void)vsnprintf(buffer->text, sizeof(buffer->text), format, args);
    va_end(args);
    return is_unknown ? "-" : buffer->text;
}

static void write_target(struct phema_strbuf *out, const char *const *columns,
                         const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    struct phema_name_buffer time, numbers[5], spec;
    bool is_power = target->kind && !isnan(target->sigma_rel);
    const char *name = "given weights";
    if (is_power)
        name = number(&spec, "sigma_rel %.6g", target->sigma_rel);
    else if (target->kind)
        name = target->spec;
    const char *const cells[] = {
        name,
        phema_number_format(&time, target->named_time),
        number(&numbers[0], "%.1e", solution->predicted.total),
        number(&numbers[1], "%.0e", solution->predicted.profile),
        number(&numbers[2], "%.0e", solution->predicted.rounding),
        number(&numbers[3], "%.2f", solution->norm2),
        number(&numbers[4], "%.1e", is_power ? solution->predicted.paper_weights : PHEMA_UNKNOWN),
    };
    html_row(out, columns, cells);
}

static void write_item(struct phema_strbuf *out, const char *start, const char *text, size_t size)
{
    phema_strbuf_puts(out, "<li>");
    html_printf(out, "%s%.*s", start, (int)size, text);
    phema_strbuf_puts(out, "</li>\n");
}

/* Writes each non-empty line as an item of a list; clears the text. */
static void write_lines(struct phema_strbuf *out, struct phema_strbuf *lines)
{
    const char *at = lines->is_failed || !lines->data ? "" : lines->data;
    at += strspn(at, "\n ");
    bool has_any = *at != '\0';
    phema_strbuf_puts(out, has_any ? "<ul>\n" : "");
    for (; *at; at += strspn(at, "\n ")) {
        size_t size = strcspn(at, "\n");
        write_item(out, "", at, size);
        at += size;
    }
    phema_strbuf_puts(out, has_any ? "</ul>\n" : "");
    phema_strbuf_clear_part(lines, out);
}

static void write_targets(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_plan *plan = report->plan;
    const char *const columns[] = {"average",    ">at",    ">expected error",  "~>profile",
                                   "~>rounding", "~>gain", ">paper's weights", NULL};
    html_section(out, "targets", "Averages");
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_strbuf warning = {0};
        if (phema_target_write_warning(&warning, plan, &plan->targets[j]) && !warning.is_failed)
            html_warning(out, warning.data);
        phema_strbuf_clear_part(&warning, out);
    }
    html_table(out, columns);
    for (size_t j = 0; j < plan->m; j++)
        write_target(out, columns, &plan->targets[j]);
    html_table_end(out);
    struct phema_strbuf rules = {0};
    report_rules(&rules, plan);
    write_lines(out, &rules);
    phema_strbuf_puts(
        out,
        "<p class=\"lead\">Errors are relative to the norm of all parameters: what the snapshots "
        "cannot reach (profile) and the rounding of their files, which the gain multiplies. Last: "
        "the error with the weights of the paper.</p>\n</section>\n");
}

/* ---- Snapshots ---- */

static void write_runs(struct phema_strbuf *out, const struct inspect_times *times,
                       const char *unit)
{
    const char *const columns[] = {unit, "~>every", "averages", ">snapshots", "~>size", NULL};
    html_table(out, columns);
    for (size_t i = 0; i < times->n_runs; i++) {
        const struct inspect_run *run = &times->runs[i];
        struct phema_name_buffer every, size, count;
        struct phema_strbuf range = {0}, kinds = {0};
        inspect_show_range(&range, run);
        inspect_show_kinds(&kinds, times, run->kinds);
        inspect_show_step(&every, run->every);
        const char *const cells[] = {
            range.data ? range.data : "", every.text, kinds.data ? kinds.data : "",
            show_count(&count, run->n_snapshots),
            run->size_bytes ? phema_size_format(&size, run->size_bytes) : ""};
        html_row(out, columns, cells);
        phema_strbuf_clear_part(&range, out);
        phema_strbuf_clear_part(&kinds, out);
    }
    html_table_end(out);
    struct phema_strbuf remarks = {0};
    inspect_write_remarks(&remarks, times);
    write_lines(out, &remarks);
}

struct columns {
    const char *titles[MOST_WEIGHTS + 3]; /* time, average, weights, NULL */
    struct phema_name_buffer names[MOST_WEIGHTS];
    size_t n_weights;
};

static void set_columns(struct columns *columns, const struct html_report *report)
{
    size_t n = 0, m = report->plan ? report->plan->m : 0;
    columns->titles[n++] = report_named_unit(report->series);
    columns->titles[n++] = "average";
    columns->n_weights = m < MOST_WEIGHTS ? m : MOST_WEIGHTS;
    for (size_t j = 0; j < columns->n_weights; j++) {
        const struct phema_target *target = &report->plan->targets[j];
        const char *mark = j < NARROW_WEIGHTS ? ">" : "~>";
        char *name = columns->names[j].text;
        if (isnan(target->sigma_rel))
            (void)snprintf(name, sizeof(columns->names[j].text), "%sweight %zu", mark, j + 1);
        else
            (void)snprintf(name, sizeof(columns->names[j].text), "%sw %.6g", mark,
                           target->sigma_rel);
        columns->titles[n++] = name;
    }
    columns->titles[n] = NULL;
}

static void write_snapshot(struct phema_strbuf *out, const struct columns *columns,
                           const struct html_report *report, size_t k)
{
    const struct phema_snapshot *snapshot = &report->series->snapshots[k];
    struct phema_name_buffer time, spec, weights[MOST_WEIGHTS];
    const char *cells[MOST_WEIGHTS + 2];
    size_t n = 0;
    cells[n++] = phema_number_format(&time, snapshot->named_time);
    if (!snapshot->spec)
        cells[n++] = "unknown";
    else if (isnan(snapshot->sigma_rel))
        cells[n++] = snapshot->spec;
    else
        cells[n++] = number(&spec, "sigma_rel %.6g", snapshot->sigma_rel);
    for (size_t j = 0; report->plan && j < columns->n_weights; j++) {
        double weight = report->plan->targets[j].solution.weights[k];
        cells[n++] = fabs(weight) < REPORT_LEAST_WEIGHT ? "0" : number(&weights[j], "%.4f", weight);
    }
    html_row(out, columns->titles, cells);
}

static void begin_details(struct phema_strbuf *out, bool is_open, const char *summary, size_t n)
{
    phema_strbuf_printf(out, "<details%s><summary>", is_open ? " open=\"open\"" : "");
    html_printf(out, "%zu %s%s", n, summary, n == 1 ? "" : "s");
    phema_strbuf_puts(out, "</summary>\n");
}

static void write_weights(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_series *series = report->series;
    struct columns columns = {0};
    set_columns(&columns, report);
    begin_details(out, series->n <= MOST_OPEN, "snapshot", series->n);
    html_table(out, columns.titles);
    for (size_t k = 0; k < series->n; k++)
        write_snapshot(out, &columns, report, k);
    html_table_end(out);
    phema_strbuf_puts(out, "</details>\n");
    if (report->plan && report->plan->m > columns.n_weights)
        phema_strbuf_printf(out,
                            "<p>Weights are those of the first %zu averages; weights --json has "
                            "all.</p>\n",
                            columns.n_weights);
}

static void write_files(struct phema_strbuf *out, const struct phema_series *series)
{
    const char *const columns[] = {"file", ">size", "~xxh3", NULL};
    begin_details(out, false, "file", series->n);
    html_table(out, columns);
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        struct phema_name_buffer size;
        const char *const cells[] = {snapshot->label,
                                     phema_size_format(&size, phema_snapshot_bytes(snapshot)),
                                     snapshot->digest};
        html_row(out, columns, cells);
    }
    html_table_end(out);
    phema_strbuf_puts(out, "</details>\n");
}

static void write_snapshots(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_series *series = report->series;
    html_section(out, "snapshots", "Snapshots");
    write_runs(out, &report->times, report_named_unit(series));
    write_weights(out, report);
    if (series->n_tensors)
        write_files(out, series);
    phema_strbuf_puts(out, "</section>\n");
}

/* ---- Tensors ---- */

static void write_totals(struct phema_strbuf *out, const char *what,
                         const struct inspect_totals *totals, bool are_rules)
{
    const char *const columns[] = {what, ">tensors", "~>elements", ">size", NULL};
    html_table(out, columns);
    for (size_t i = 0; i < totals->n; i++) {
        const struct inspect_total *total = &totals->items[i];
        struct phema_name_buffer label, tensors, elements, size;
        if (are_rules)
            inspect_show_rule(&label, total);
        else
            inspect_show_component(&label, total);
        label.text[MOST_LABEL] = '\0';
        const char *const cells[] = {label.text, show_count(&tensors, total->n_tensors),
                                     show_count(&elements, total->n_elems),
                                     phema_size_format(&size, total->size_bytes)};
        html_row(out, columns, cells);
    }
    html_table_end(out);
}

static void write_tensors(struct phema_strbuf *out, const struct inspect_summary *summary)
{
    if (!summary->n_tensors)
        return;
    html_section(out, "tensors", "Tensors of each snapshot");
    write_totals(out, "by synth", &summary->rules, true);
    write_totals(out, "dtype", &summary->dtypes, false);
    if (summary->components.n > 1)
        write_totals(out, "component", &summary->components, false);
    phema_strbuf_puts(out, "</section>\n");
}

/* ---- Provenance ---- */

static void write_provenance(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_series *series = report->series;
    html_section(out, "provenance", "How this was made");
    phema_strbuf_puts(out, "<pre>");
    html_text(out, report->command);
    html_text(out, report->command_tail);
    phema_strbuf_puts(out, "</pre>\n<ul>\n<li>");
    html_text(out, "posthoc-ema " PHEMA_VERSION);
    if (report->plan) {
        const struct phema_solution *solution = &report->plan->targets[0].solution;
        html_printf(out, ", metric %s, %s", report->plan->metric,
                    report->plan->has_given_weights ? "weights as given" : "solved in ");
        if (!report->plan->has_given_weights)
            html_printf(out, "%s%s", solution->solver,
                        solution->ridge > 0 ? ", with a ridge for the rounding of the files" : "");
    }
    phema_strbuf_puts(out, "</li>\n");
    write_item(out, "layout: ", series->layout, strlen(series->layout));
    for (size_t i = 0; i < series->n_notes; i++)
        write_item(out, "", series->notes[i], strlen(series->notes[i]));
    if (report->plan && report->plan->unmoved)
        write_item(out, "assuming a random walk (metric walk): ", report->plan->unmoved,
                   strlen(report->plan->unmoved));
    phema_strbuf_puts(out, "</ul>\n</section>\n");
}

void html_report_write(struct phema_strbuf *out, const struct html_report *report)
{
    html_begin(out, report->title);
    write_head(out, report);
    /* what was gained comes first */
    write_picture(out, "scores", "Scores", &report->scores, NULL,
                  "The score of each average, by width.");
    write_picture(out, "errors", "Expected error by width", &report->errors, NULL,
                  "How far an average made from these snapshots is from the true one.");
    if (report->plan)
        write_targets(out, report);
    write_pictures(out, report);
    write_snapshots(out, report);
    write_tensors(out, &report->summary);
    write_provenance(out, report);
    html_end(out);
}

void html_report_clear(struct html_report *report)
{
    inspect_summary_clear(&report->summary);
    inspect_times_clear(&report->times);
    phema_plan_free(report->plan);
    struct html_picture *const pictures[] = {&report->profiles, &report->more_profiles,
                                             &report->weights,  &report->errors,
                                             &report->scores,   &report->memory};
    for (size_t i = 0; i < ARRAY_LEN(pictures); i++) {
        phema_strbuf_clear(&pictures[i]->wide);
        phema_strbuf_clear(&pictures[i]->narrow);
    }
}
