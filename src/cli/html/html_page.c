// SPDX-License-Identifier: Apache-2.0
/* html_page.c - see html_page.h. Nothing in it depends on when or where it is written. */
#include "html/html_page.h"

#include <stdio.h>
#include <string.h>

#include "html/html_writer.h"
#include "print_summary.h"

static void write_fact(struct phema_strbuf *out, const char *value, const char *what)
{
    phema_strbuf_puts(out, "<div><b>");
    html_text(out, value);
    phema_strbuf_puts(out, "</b><span>");
    html_text(out, what);
    phema_strbuf_puts(out, "</span></div>\n");
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
    (void)snprintf(count.text, sizeof(count.text), "%zu", series->n);
    write_fact(out, count.text, series->n == 1 ? "snapshot" : "snapshots");
    (void)snprintf(count.text, sizeof(count.text), "%zu", report->times->n_times);
    write_fact(out, count.text, report->times->n_times == 1 ? "time" : "times");
    write_fact(out, series->layout, "layout");
    if (series->n_tensors) {
        (void)snprintf(count.text, sizeof(count.text), "%zu", series->n_tensors);
        write_fact(out, count.text, "tensors each");
    }
    if (report->times->size_bytes)
        write_fact(out, phema_size_format(&size, report->times->size_bytes), "of files");
    phema_strbuf_puts(out, "</div>\n</header>\n");
}

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

/* ---- Tensors ---- */

static void write_totals(struct phema_strbuf *out, const char *what, const char *empty,
                         const struct inspect_totals *totals, bool are_rules)
{
    const char *const columns[] = {what, ">tensors", ">elements", ">size", NULL};
    static const char *const done[] = {"averaged", "copied", "left out"};
    html_table(out, columns);
    for (size_t i = 0; i < totals->n; i++) {
        const struct inspect_total *total = &totals->items[i];
        struct phema_name_buffer label, name, tensors, elements, size;
        (void)phema_name_escape(&name, total->label_size ? total->label : empty,
                                total->label_size ? total->label_size : strlen(empty));
        (void)snprintf(label.text, sizeof(label.text), "%s%s%.200s%s",
                       are_rules ? done[total->rule] : "",
                       are_rules && total->label_size ? " (" : "",
                       are_rules && !total->label_size ? "" : name.text,
                       are_rules && total->label_size ? ")" : "");
        (void)snprintf(tensors.text, sizeof(tensors.text), "%llu",
                       (unsigned long long)total->n_tensors);
        (void)snprintf(elements.text, sizeof(elements.text), "%llu",
                       (unsigned long long)total->n_elems);
        const char *const cells[] = {label.text, tensors.text, elements.text,
                                     phema_size_format(&size, total->size_bytes)};
        html_row(out, columns, cells);
    }
    html_table_end(out);
}

static void write_tensors(struct phema_strbuf *out, const struct inspect_summary *summary)
{
    if (!summary || !summary->n_tensors)
        return;
    html_section(out, "tensors", "Tensors of each snapshot");
    write_totals(out, "by synth", "", &summary->rules, true);
    write_totals(out, "dtype", "", &summary->dtypes, false);
    if (summary->components.n > 1)
        write_totals(out, "component", "(no prefix)", &summary->components, false);
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
    for (size_t i = 0; i < series->n_notes; i++) {
        phema_strbuf_puts(out, "<li>");
        html_text(out, series->notes[i]);
        phema_strbuf_puts(out, "</li>\n");
    }
    if (report->plan && report->plan->unmoved) {
        phema_strbuf_puts(out, "<li>");
        html_printf(out, "how the parameters moved cannot be seen: %s", report->plan->unmoved);
        phema_strbuf_puts(out, "</li>\n");
    }
    phema_strbuf_puts(out, "</ul>\n</section>\n");
}

void html_report_write(struct phema_strbuf *out, const struct html_report *report)
{
    html_begin(out, report->title);
    write_head(out, report);
    if (report->plan)
        html_write_targets(out, report);
    write_pictures(out, report);
    html_write_snapshots(out, report);
    write_tensors(out, report->summary);
    write_provenance(out, report);
    html_end(out);
}

void html_report_clear(struct html_report *report)
{
    phema_strbuf_clear(&report->profiles);
    phema_strbuf_clear(&report->weights);
    phema_strbuf_clear(&report->errors);
    phema_strbuf_clear(&report->scores);
    phema_strbuf_clear(&report->memory);
}
