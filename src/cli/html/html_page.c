// SPDX-License-Identifier: Apache-2.0
/* html_page.c - the sections of the page. The bytes do not depend on the time or place of
 * writing. */
#include "html/html_page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "html/html_writer.h"
#include "print_summary.h"

/* At most this many columns of weights; weights --json has all. */
#define MOST_WEIGHTS PHEMA_PLOT_MAX_TARGETS

/* Weights from here on are printed with four decimals. */
#define LEAST_PLAIN 5e-4

/* Longer labels of tensors are cut. */
#define MOST_LABEL 200

/* Longer lists start collapsed. */
#define MOST_OPEN 24

/* ---- The head ---- */

static void write_fact(struct phema_strbuf *out, const char *value, const char *what)
{
    phema_strbuf_puts(out, "<div><b>");
    html_text(out, value);
    phema_strbuf_puts(out, "</b><span>");
    html_text(out, what);
    phema_strbuf_puts(out, "</span></div>\n");
}

static const char *show_count(struct phema_name_buffer *buffer, uint64_t n)
{
    (void)snprintf(buffer->text, sizeof(buffer->text), "%llu", (unsigned long long)n);
    return buffer->text;
}

static void write_head(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_series *series = report->series;
    struct phema_name_buffer from, to, count, size;
    phema_strbuf_puts(out, "<header>\n<h1>");
    html_text(out, report->title);
    phema_strbuf_puts(out, "</h1>\n<p class=\"lead\">");
    html_printf(out, "Averages of a training, made afterwards from its snapshots: %s to %s %s",
                phema_number_format(&from, series->snapshots[0].named_time),
                phema_number_format(&to, series->snapshots[series->n - 1].named_time),
                report_named_unit(series));
    phema_strbuf_puts(out, "</p>\n<div class=\"facts\">\n");
    write_fact(out, show_count(&count, series->n), series->n == 1 ? "snapshot" : "snapshots");
    write_fact(out, show_count(&count, report->times.n_times),
               report->times.n_times == 1 ? "time" : "times");
    write_fact(out, series->layout, "layout");
    if (series->n_tensors)
        write_fact(out, show_count(&count, series->n_tensors), "tensors each");
    if (report->times.size_bytes)
        write_fact(out, phema_size_format(&size, report->times.size_bytes), "of files");
    phema_strbuf_puts(out, "</div>\n</header>\n");
}

/* ---- Pictures ---- */

static void write_picture(struct phema_strbuf *out, const char *id, const char *title,
                          const struct phema_strbuf *picture, const char *words)
{
    if (!picture->size)
        return;
    html_section(out, id, title);
    phema_strbuf_printf(out, "<p class=\"lead\">%s</p>\n<div class=\"wide picture\">\n", words);
    phema_strbuf_append(out, picture->data, picture->size);
    phema_strbuf_puts(out, "</div>\n</section>\n");
}

static void write_pictures(struct phema_strbuf *out, const struct html_report *report)
{
    write_picture(out, "errors", "How good averages of any width would be", &report->errors,
                  "The error to expect against the width of the average, with these snapshots.");
    write_picture(out, "profiles", "Profiles", &report->profiles,
                  "How much each moment of the training weighs: in the snapshots (thin), in the "
                  "average that is wanted (dashed), in what the weights make of the snapshots "
                  "(solid); below, what is missing, ten times as large.");
    write_picture(out, "weights", "Weights", &report->weights,
                  "What each snapshot weighs in the average.");
    if (report->is_cut)
        phema_strbuf_printf(out,
                            "<p>Profiles and weights are drawn of the first %d averages.</p>\n",
                            PHEMA_PLOT_MAX_TARGETS);
    write_picture(out, "scores", "Scores", &report->scores, "What averages were scored.");
    write_picture(out, "memory", "Memory", &report->memory, "What the run that made them held.");
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
    struct phema_name_buffer time, numbers[7], spec;
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
        number(&numbers[3], "%.1e", solution->predicted.paper_weights),
        number(&numbers[4], "%.2e", solution->profile_error),
        number(&numbers[5], "%.2f", solution->norm2),
        number(&numbers[6], "%.6g", solution->sum),
    };
    html_row(out, columns, cells);
}

static void write_warning(struct phema_strbuf *out, const char *warning)
{
    phema_strbuf_puts(out, "<p class=\"warning\">");
    html_text(out, warning);
    phema_strbuf_puts(out, "</p>\n");
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
    out->is_failed = out->is_failed || lines->is_failed;
    phema_strbuf_clear(lines);
}

static void write_targets(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_plan *plan = report->plan;
    const char *const columns[] = {"average",   ">at",      ">predicted error", ">profile",
                                   ">rounding", ">paper's", ">profile error",   ">gain",
                                   ">sum",      NULL};
    html_section(out, "targets", "Averages");
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_strbuf warning = {0};
        if (report_write_warning(&warning, plan, &plan->targets[j]) && !warning.is_failed)
            write_warning(out, warning.data);
        phema_strbuf_clear(&warning);
    }
    struct phema_strbuf checks = {0};
    if (report_write_checks(&checks, plan) && !checks.is_failed)
        write_warning(out, checks.data);
    phema_strbuf_clear(&checks);
    html_table(out, columns);
    for (size_t j = 0; j < plan->m; j++)
        write_target(out, columns, &plan->targets[j]);
    html_table_end(out);
    struct phema_strbuf rules = {0};
    report_rules(&rules, plan);
    write_lines(out, &rules);
    phema_strbuf_puts(
        out,
        "<p class=\"lead\">The predicted error is that of the parameters, relative to their "
        "norm: what the snapshots cannot reach (profile), and what the rounding of their files "
        "adds (rounding). The paper's weights would have the error that stands behind. Noise "
        "in the files is multiplied by the gain.</p>\n</section>\n");
}

/* ---- Snapshots ---- */

static void write_runs(struct phema_strbuf *out, const struct inspect_times *times,
                       const char *unit)
{
    const char *const columns[] = {unit, ">every", "averages", ">snapshots", ">size", NULL};
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
        phema_strbuf_clear(&range);
        phema_strbuf_clear(&kinds);
    }
    html_table_end(out);
    struct phema_strbuf remarks = {0};
    inspect_write_remarks(&remarks, times);
    write_lines(out, &remarks);
}

struct columns {
    const char *titles[MOST_WEIGHTS + 6]; /* file, time, average, size, weights, digest, NULL */
    struct phema_name_buffer names[MOST_WEIGHTS];
    size_t n_weights;
    bool has_digests;
};

static void set_columns(struct columns *columns, const struct html_report *report)
{
    const struct phema_series *series = report->series;
    size_t n = 0, m = report->plan ? report->plan->m : 0;
    columns->titles[n++] = "file";
    columns->titles[n++] = report_named_unit(series);
    columns->titles[n++] = "average";
    columns->titles[n++] = ">size";
    columns->n_weights = m < MOST_WEIGHTS ? m : MOST_WEIGHTS;
    for (size_t j = 0; j < columns->n_weights; j++) {
        const struct phema_target *target = &report->plan->targets[j];
        if (isnan(target->sigma_rel))
            (void)snprintf(columns->names[j].text, sizeof(columns->names[j].text), ">weight %zu",
                           j + 1);
        else
            (void)snprintf(columns->names[j].text, sizeof(columns->names[j].text), ">w %.6g",
                           target->sigma_rel);
        columns->titles[n++] = columns->names[j].text;
    }
    columns->has_digests = series->n > 0 && *series->snapshots[0].digest;
    if (columns->has_digests)
        columns->titles[n++] = "xxh3";
    columns->titles[n] = NULL;
}

static void write_snapshot(struct phema_strbuf *out, const struct columns *columns,
                           const struct html_report *report, size_t k)
{
    const struct phema_snapshot *snapshot = &report->series->snapshots[k];
    struct phema_name_buffer time, size, spec, weights[MOST_WEIGHTS];
    const char *cells[MOST_WEIGHTS + 6];
    size_t n = 0;
    uint64_t bytes = phema_snapshot_bytes(snapshot);
    cells[n++] = snapshot->label;
    cells[n++] = phema_number_format(&time, snapshot->named_time);
    if (!snapshot->spec)
        cells[n++] = "unknown";
    else if (isnan(snapshot->sigma_rel))
        cells[n++] = snapshot->spec;
    else
        cells[n++] = number(&spec, "sigma_rel %.6g", snapshot->sigma_rel);
    cells[n++] = bytes ? phema_size_format(&size, bytes) : "";
    for (size_t j = 0; report->plan && j < columns->n_weights; j++) {
        double weight = report->plan->targets[j].solution.weights[k];
        cells[n++] = weight == 0                  ? "0"
                     : fabs(weight) < LEAST_PLAIN ? number(&weights[j], "%.0e", weight)
                                                  : number(&weights[j], "%.4f", weight);
    }
    if (columns->has_digests)
        cells[n++] = snapshot->digest;
    html_row(out, columns->titles, cells);
}

static void write_snapshots(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_series *series = report->series;
    struct columns columns = {0};
    set_columns(&columns, report);
    html_section(out, "snapshots", "Snapshots");
    write_runs(out, &report->times, report_named_unit(series));
    phema_strbuf_printf(out, "<details%s><summary>",
                        series->n <= MOST_OPEN ? " open=\"open\"" : "");
    html_printf(out, "%zu snapshot%s%s", series->n, series->n == 1 ? "" : "s",
                columns.n_weights ? " and what they weigh" : "");
    phema_strbuf_puts(out, "</summary>\n");
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
    phema_strbuf_puts(out, "</section>\n");
}

/* ---- Tensors ---- */

static void write_totals(struct phema_strbuf *out, const char *what,
                         const struct inspect_totals *totals, bool are_rules)
{
    const char *const columns[] = {what, ">tensors", ">elements", ">size", NULL};
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
    html_text(out, report->common->command);
    html_text(out, report->common->command_tail);
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
    for (size_t i = 0; i < series->n_notes; i++)
        write_item(out, "", series->notes[i], strlen(series->notes[i]));
    if (report->plan && report->plan->unmoved)
        write_item(out, "how the parameters moved cannot be seen: ", report->plan->unmoved,
                   strlen(report->plan->unmoved));
    phema_strbuf_puts(out, "</ul>\n</section>\n");
}

void html_report_write(struct phema_strbuf *out, const struct html_report *report)
{
    html_begin(out, report->title);
    write_head(out, report);
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
    phema_strbuf_clear(&report->profiles);
    phema_strbuf_clear(&report->weights);
    phema_strbuf_clear(&report->errors);
    phema_strbuf_clear(&report->scores);
    phema_strbuf_clear(&report->memory);
}
