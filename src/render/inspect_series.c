// SPDX-License-Identifier: Apache-2.0
/* inspect_series.c - the snapshots of a series, its model and its runs, as text and as JSON. */
#include <math.h>
#include <string.h>

#include "phema/render.h"
#include "phema/report.h"

/* ---- Beside a design ---- */

#define MOST_MISSED 8 /* more are counted only */

static void write_design(struct phema_strbuf *out, const struct inspect_design *design)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer next;
    phema_strbuf_printf(&text, "  design  %zu of %zu snapshots stored, %zu missed",
                        design->n_stored, design->n_planned, design->n_missed);
    if (!isnan(design->next))
        phema_strbuf_printf(&text, "; next at %s", phema_number_format(&next, design->next));
    if (design->n_others)
        phema_strbuf_printf(&text, "; %zu not of the design", design->n_others);
    for (size_t i = 0; i < design->n_missed && i < MOST_MISSED; i++) {
        const struct inspect_missed *missed = &design->missed[i];
        phema_strbuf_puts(&text, i ? ", " : "; missed: ");
        if (!isnan(missed->sigma_rel))
            phema_strbuf_printf(&text, "%g at ", missed->sigma_rel);
        phema_strbuf_puts(&text, phema_number_format(&next, missed->time));
    }
    if (design->n_missed > MOST_MISSED)
        phema_strbuf_printf(&text, " and %zu more", design->n_missed - MOST_MISSED);
    render_write_wrapped(out, "%s", text.data ? text.data : "");
    phema_strbuf_clear(&text);
}

static void write_design_json(struct phema_json_out *out, const struct inspect_design *design)
{
    phema_json_out_open(out, "design", '{');
    phema_json_out_u64(out, "planned", design->n_planned);
    phema_json_out_u64(out, "stored", design->n_stored);
    phema_json_out_u64(out, "others", design->n_others);
    phema_json_out_number(out, "next", design->next);
    phema_json_out_open(out, "missed", '[');
    for (size_t i = 0; i < design->n_missed; i++) {
        phema_json_out_open(out, NULL, '{');
        phema_json_out_number(out, "time", design->missed[i].time);
        phema_json_out_short(out, "sigma_rel", design->missed[i].sigma_rel);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
    phema_json_out_close(out, '}');
}

/* ---- A series ---- */

/* A line for each snapshot. */
static void write_snapshots(struct phema_strbuf *out, const struct phema_series *series)
{
    size_t name_size = 4, spec_size = 10;
    bool is_renamed = false; /* names of EDM2 and pytorch-posthoc-ema have a clock of their own */
    bool has_shapes = false; /* these are shown as text, and so are the widths next to them */
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        size_t own_spec_size = snapshot->spec ? strlen(snapshot->spec) : 0;
        name_size = strlen(snapshot->label) > name_size ? strlen(snapshot->label) : name_size;
        spec_size = own_spec_size > spec_size ? own_spec_size : spec_size;
        is_renamed |= snapshot->time != snapshot->named_time;
        has_shapes |= snapshot->kind && isnan(snapshot->gamma);
    }
    int width = (int)name_size, profile_width = has_shapes ? (int)spec_size : 10;
    phema_strbuf_printf(out, "%-*s %14s %*s%s\n", width, "file", series->unit, profile_width,
                        has_shapes ? "profile" : "sigma_rel", is_renamed ? "         named" : "");
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        struct phema_name_buffer time, label;
        phema_strbuf_printf(out, "%-*s %14s ", width,
                            phema_name_escape(&label, snapshot->label, strlen(snapshot->label)),
                            phema_number_format(&time, snapshot->time));
        if (!snapshot->spec)
            phema_strbuf_printf(out, "%*s", profile_width, "unknown");
        else if (has_shapes)
            phema_strbuf_printf(out, "%*s", profile_width,
                                phema_name_escape(&label, snapshot->spec, strlen(snapshot->spec)));
        else
            phema_strbuf_printf(out, "%10.6g", snapshot->sigma_rel);
        if (is_renamed)
            phema_strbuf_printf(out, " %13s", phema_number_format(&time, snapshot->named_time));
        phema_strbuf_puts(out, "\n");
    }
}

/* "  model   8 tensors, 929 parameters, F16; 6 averaged, 2 copied (buffer); subtree 'ema'" */
static void write_model(struct phema_strbuf *out, const struct inspect_summary *summary)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer shown;
    uint64_t n_elems = 0;
    for (size_t i = 0; i < summary->dtypes.n; i++)
        n_elems += summary->dtypes.items[i].n_elems;
    phema_strbuf_printf(&text, "%zu tensor%s, %llu %s", summary->n_tensors,
                        summary->n_tensors == 1 ? "" : "s", (unsigned long long)n_elems,
                        summary->knows_kinds ? "parameters and buffers" : "parameters");
    for (size_t i = 0; i < summary->dtypes.n; i++)
        phema_strbuf_printf(&text, ", %s", summary->dtypes.items[i].label);
    for (size_t i = 0; i < summary->rules.n; i++) {
        inspect_show_rule(&shown, &summary->rules.items[i]);
        phema_strbuf_printf(&text, "%s%llu %s", i ? ", " : "; ",
                            (unsigned long long)summary->rules.items[i].n_tensors, shown.text);
    }
    if (summary->series && *summary->series->key)
        phema_strbuf_printf(&text, "; subtree '%s'", summary->series->key);
    if (summary->n_tensors && text.data && !text.is_failed)
        render_write_wrapped(out, "  model   %s", text.data);
    phema_strbuf_clear(&text);
}

/* "  run     3f2a0b1c..., and 2 snapshots that name no run" */
static void write_runs(struct phema_strbuf *out, const struct phema_series *series)
{
    struct phema_name_buffer shown;
    struct phema_strbuf text = {0};
    if (!series->n_runs)
        return;
    phema_strbuf_puts(&text,
                      phema_name_escape(&shown, series->runs[0].id, strlen(series->runs[0].id)));
    if (series->n_runs > 1)
        phema_strbuf_printf(&text, ", and %zu snapshot%s no run", series->runs[1].n,
                            series->runs[1].n == 1 ? " that names" : "s that name");
    if (text.data && !text.is_failed)
        render_write_wrapped(out, "  run     %s", text.data);
    phema_strbuf_clear(&text);
}

void inspect_write_series(struct phema_strbuf *out, const struct inspect_summary *summary,
                          const struct inspect_times *times, const struct inspect_errors *errors,
                          const struct inspect_design *design, const char *next, bool is_verbose)
{
    inspect_times_write(out, times);
    write_model(out, summary);
    write_runs(out, summary->series);
    if (design)
        write_design(out, design);
    inspect_errors_write(out, times, errors);
    if (next)
        render_write_whole(out, "next: %s", next);
    if (!is_verbose)
        return;
    struct phema_strbuf details = {0};
    phema_strbuf_puts(&details, "\n");
    write_snapshots(&details, summary->series);
    inspect_write_summary(&details, summary);
    if (details.data)
        phema_strbuf_append_lines(out, details.data, details.size);
    phema_strbuf_clear(&details);
}

static void write_runs_json(struct phema_json_out *out, const struct phema_series *series)
{
    phema_json_out_open(out, "runs", '[');
    for (size_t r = 0; r < series->n_runs; r++) {
        const struct phema_training_run *run = &series->runs[r];
        phema_json_out_open(out, NULL, '{');
        if (run->id)
            phema_json_out_string(out, "run", run->id);
        else
            phema_json_out_null(out, "run");
        phema_json_out_u64(out, "snapshots", run->n);
        phema_json_out_number(out, "from", run->from);
        phema_json_out_number(out, "to", run->to);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

void inspect_write_series_json(struct phema_json_out *out, const struct render_style *style,
                               const struct inspect_summary *summary,
                               const struct inspect_times *times,
                               const struct inspect_errors *errors,
                               const struct inspect_design *design, bool is_inner)
{
    const struct phema_series *series = summary->series;
    phema_json_out_open(out, NULL, '{');
    if (!is_inner)
        phema_json_out_u64(out, "version", 1);
    phema_json_out_path(out, "file", series->root);
    phema_json_out_string(out, "layout", series->layout);
    phema_json_out_string(out, "unit", series->unit);
    phema_json_out_open(out, "snapshots", '[');
    for (size_t k = 0; k < series->n; k++)
        phema_record_write_object(out, NULL, phema_snapshot_fields, NULL, &series->snapshots[k]);
    phema_json_out_close(out, ']');
    write_runs_json(out, series);
    inspect_times_write_json(out, times, errors);
    if (design)
        write_design_json(out, design);
    phema_json_out_u64(out, "tensors", series->n_tensors);
    inspect_write_summary_json(out, summary);
    render_write_warnings(out, style);
    phema_json_out_close(out, '}');
}
