// SPDX-License-Identifier: Apache-2.0
/* inspect_series.c - the snapshots of a series, its model, its runs, and its times in 80 columns with a
 * bar chart of the predicted errors, as text and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"
#include "phema/terminal.h"

/* ---- Times ---- */

/* Longer lists are cut; JSON has all. */
#define MOST_RUNS    16
#define MOST_REMARKS 6
#define RANGE_WIDTH  21
#define KINDS_WIDTH  26

#define N_LEVELS   8
#define BAR_LABELS 15 /* columns beside the bars: the scale, and one that stays free */

#define MOST_TIMES_NAMED 6

void inspect_show_range(struct phema_strbuf *out, const struct inspect_run *run)
{
    struct phema_name_buffer from, to;
    phema_strbuf_puts(out, phema_number_format(&from, run->from));
    if (run->to != run->from)
        phema_strbuf_printf(out, " to %s", phema_number_format(&to, run->to));
}

void inspect_show_kinds(struct phema_strbuf *out, const struct inspect_times *times, uint64_t kinds)
{
    for (size_t i = 0; i < times->n_kinds; i++)
        if (kinds >> i & 1)
            phema_strbuf_printf(out, "%s%s", out->size ? ", " : "", times->kinds[i]);
}

void inspect_show_step(struct phema_name_buffer *out, double every)
{
    (void)snprintf(out->text, sizeof(out->text), "%s", isnan(every) ? "" : "uneven");
    if (!(every > 0))
        return;
    bool is_rounded = every >= 10 && fabs(every - round(every)) > 1e-6 * every;
    (void)phema_number_format(out, is_rounded ? round(every) : every);
    if (is_rounded) {
        memmove(out->text + 1, out->text, strlen(out->text) + 1);
        out->text[0] = '~';
    }
}

static void write_run(struct phema_strbuf *out, const struct inspect_times *times,
                      const struct inspect_run *run)
{
    struct phema_name_buffer every, size;
    struct phema_strbuf range = {0}, kinds = {0};
    inspect_show_range(&range, run);
    inspect_show_step(&every, run->every);
    inspect_show_kinds(&kinds, times, run->kinds);
    if (kinds.size > KINDS_WIDTH) {
        kinds.size = terminal_cut(kinds.data, KINDS_WIDTH - 3);
        phema_strbuf_puts(&kinds, "...");
    }
    phema_strbuf_printf(out, "  %-*s %8s  %-*s %9zu %9s\n", RANGE_WIDTH,
                        range.data ? range.data : "", every.text, KINDS_WIDTH,
                        kinds.data ? kinds.data : "", run->n_snapshots,
                        run->size_bytes ? phema_size_format(&size, run->size_bytes) : "-");
    phema_strbuf_clear_part(&range, out);
    phema_strbuf_clear_part(&kinds, out);
}

static bool has_shapes(const struct inspect_times *times)
{
    for (size_t i = 0; i < times->n_kinds; i++)
        if (isnan(times->widths[i]))
            return true;
    return false;
}

static void write_table(struct phema_strbuf *out, const struct inspect_times *times)
{
    phema_strbuf_printf(out, "  %-*s %8s  %-*s %9s %9s\n", RANGE_WIDTH,
                        report_named_unit(times->series), "every", KINDS_WIDTH,
                        has_shapes(times) ? "averages" : "sigma_rel", "snapshots", "size");
    for (size_t i = 0; i < times->n_runs && i < MOST_RUNS; i++)
        write_run(out, times, &times->runs[i]);
    if (times->n_runs <= MOST_RUNS)
        return;
    struct inspect_run others = {.from = times->runs[MOST_RUNS].from,
                                 .to = times->runs[times->n_runs - 1].to};
    for (size_t i = MOST_RUNS; i < times->n_runs; i++) {
        others.kinds |= times->runs[i].kinds;
        others.n_snapshots += times->runs[i].n_snapshots;
        others.size_bytes += times->runs[i].size_bytes;
    }
    write_run(out, times, &others);
}

/* ---- Problems of the series ---- */

static void write_more(struct phema_strbuf *out, size_t n)
{
    if (n > MOST_REMARKS)
        phema_strbuf_printf(out, "  and %zu more of these (inspect --json has all)\n",
                            n - MOST_REMARKS);
}

void inspect_write_remarks(struct phema_strbuf *out, const struct inspect_times *times)
{
    struct phema_name_buffer from, to, first, second;
    if (times->n_gaps || times->n_missing || times->n_duplicates)
        phema_strbuf_puts(out, "\n");
    for (size_t i = 0; i < times->n_gaps && i < MOST_REMARKS; i++)
        phema_strbuf_printf(out, "  gap: %zu time%s missing between %s and %s\n", times->gaps[i].n,
                            times->gaps[i].n == 1 ? " is" : "s are",
                            phema_number_format(&from, times->gaps[i].from),
                            phema_number_format(&to, times->gaps[i].to));
    write_more(out, times->n_gaps);
    for (size_t i = 0; i < times->n_missing && i < MOST_REMARKS; i++)
        phema_strbuf_printf(out, "  missing: %s at %s\n", times->missing[i].kind,
                            phema_number_format(&from, times->missing[i].time));
    write_more(out, times->n_missing);
    for (size_t i = 0; i < times->n_duplicates && i < MOST_REMARKS; i++) {
        const char *a = times->duplicates[i].of, *b = times->duplicates[i].label;
        phema_strbuf_printf(out, "  twice: %s and %s\n", phema_name_show(&first, a),
                            phema_name_show(&second, b));
    }
    write_more(out, times->n_duplicates);
}

/* ---- Predicted errors ---- */

/* Every bar, or every second one where the terminal is narrow. */
static size_t choose_stride(void)
{
    return terminal_columns(STDOUT_FILENO) < INSPECT_N_WIDTHS + BAR_LABELS ? 2 : 1;
}

static void write_bars(struct phema_strbuf *out, const struct inspect_errors *errors)
{
    static const char *const blocks[N_LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const signs[N_LEVELS] = {"_", ".", "-", ":", "=", "+", "*", "#"};
    const char *const *shown = terminal_is_utf8() ? blocks : signs;
    double low = log(errors->values[errors->least]), high = log(errors->values[errors->most]);
    double size = fmax(high - low, 1e-3); /* with equal errors no bar is high */
    phema_strbuf_printf(out, "    %.2f ", errors->widths[0]);
    for (size_t i = 0; i < INSPECT_N_WIDTHS; i += choose_stride()) {
        double level = (log(errors->values[i]) - low) / size * N_LEVELS;
        size_t at = level >= N_LEVELS ? N_LEVELS - 1 : (size_t)level;
        phema_strbuf_puts(out, shown[at]);
    }
    phema_strbuf_printf(out, " %.2f\n", errors->widths[INSPECT_N_WIDTHS - 1]);
}

/* The column of a width; SIZE_MAX where it has none. */
static size_t column_of(double sigma_rel)
{
    double at = floor((sigma_rel * 1000 - INSPECT_FIRST_WIDTH) / INSPECT_BETWEEN_WIDTH + 0.5);
    return at >= 0 && at < INSPECT_N_WIDTHS ? (size_t)at : SIZE_MAX;
}

/* Below the bars: a mark for each width of the snapshots. */
static void write_marks(struct phema_strbuf *out, const struct inspect_times *times)
{
    char line[INSPECT_N_WIDTHS];
    size_t size = 0;
    memset(line, ' ', sizeof(line));
    for (size_t i = 0; i < times->n_kinds; i++) {
        size_t at = column_of(times->widths[i]);
        if (at == SIZE_MAX)
            continue;
        at /= choose_stride();
        line[at] = '^';
        size = at >= size ? at + 1 : size;
    }
    if (size)
        phema_strbuf_printf(out, "         %.*s stored\n", (int)size, line);
}

static void write_errors(struct phema_strbuf *out, const struct inspect_times *times,
                         const struct inspect_errors *errors)
{
    if (!errors->is_known) {
        if (errors->why.message[0])
            render_write_wrapped(out, "  ! no error can be predicted: %s", errors->why.message);
        return;
    }
    struct phema_name_buffer at;
    const struct phema_series *series = times->series;
    render_write_wrapped(out, "  error   at %s %s%s: best %.0e at %.3g, worst %.0e at %.3g",
                         phema_number_format(&at, series->snapshots[series->n - 1].named_time),
                         report_named_unit(series), errors->is_rough ? ", rough" : "",
                         errors->values[errors->least], errors->widths[errors->least],
                         errors->values[errors->most], errors->widths[errors->most]);
    write_bars(out, errors);
    write_marks(out, times);
    if (errors->every > 1)
        render_write_wrapped(out, "  from one time in %zu; errors of all are smaller",
                             errors->every);
    if (errors->checks.verdict == PHEMA_SERIES_FITS)
        render_write_wrapped(out, "  the snapshots fit their labels");
    if (errors->checks.verdict == PHEMA_SERIES_DOUBTFUL ||
        errors->checks.verdict == PHEMA_SERIES_UNCHECKED)
        render_write_wrapped(out, "  %s", errors->checks.reason);
}

/* "4, 8, 12, 16", or "256 to 4096, every 256" */
static void write_range(struct phema_strbuf *out, const struct inspect_times *times)
{
    const struct inspect_run *run = &times->runs[0];
    const struct phema_series *series = times->series;
    struct phema_name_buffer shown;
    if (times->n_times > MOST_TIMES_NAMED) {
        inspect_show_range(out, run);
        phema_strbuf_printf(out, " %s", report_named_unit(series));
        inspect_show_step(&shown, run->every);
        phema_strbuf_printf(out, run->every > 0 ? ", every %s" : ", %s", shown.text);
        return;
    }
    for (size_t k = 0; k < series->n; k++)
        if (k == 0 || series->snapshots[k].named_time != series->snapshots[k - 1].named_time)
            phema_strbuf_printf(out, "%s%s", k ? ", " : "",
                                phema_number_format(&shown, series->snapshots[k].named_time));
    phema_strbuf_printf(out, " %s", report_named_unit(series));
}

/* One line where all times have the same averages, else a table. */
static void write_times(struct phema_strbuf *out, const struct inspect_times *times)
{
    if (times->n_runs != 1) {
        phema_strbuf_puts(out, "\n");
        write_table(out, times);
        return;
    }
    struct phema_strbuf range = {0}, kinds = {0};
    bool is_complete = !times->n_gaps && !times->n_missing && !times->n_duplicates;
    write_range(&range, times);
    inspect_show_kinds(&kinds, times, times->runs[0].kinds);
    render_write_wrapped(out, "  times   %s; %s %s%s", range.data ? range.data : "",
                         has_shapes(times) ? "averages" : "widths",
                         kinds.data ? kinds.data : "unknown", is_complete ? "; complete" : "");
    phema_strbuf_clear_part(&range, out);
    phema_strbuf_clear_part(&kinds, out);
}

static void write_head(struct phema_strbuf *out, const struct inspect_times *times)
{
    const struct phema_series *series = times->series;
    struct phema_name_buffer size;
    bool is_own = strcmp(series->layout, "own") == 0;
    render_write_wrapped(out, "%s: %zu snapshot%s%s%s%s%s%s", series->root, series->n,
                         series->n == 1 ? "" : "s", is_own ? "" : " (",
                         is_own ? "" : series->layout, is_own ? "" : ")",
                         times->size_bytes ? ", " : "",
                         times->size_bytes ? phema_size_format(&size, times->size_bytes) : "");
    write_times(out, times);
}

/* ---- Decays ---- */

/* "  decay   'ema': half-life 34.3 +- 0.4 steps" */
static void write_decays(struct phema_strbuf *out, const struct phema_decays *decays,
                         const struct phema_series *series)
{
    for (size_t i = 0; i < decays->n; i++) {
        struct phema_strbuf text = {0};
        phema_strbuf_puts(&text, "  decay   ");
        phema_decay_set_write(&text, &decays->sets[i], series->unit);
        render_write_text(out, &text);
    }
}

static void add_number(struct table *table, unsigned flags, double value)
{
    if (isnan(value))
        table_add(table, flags, "-");
    else
        table_add(table, flags, "%.4g", value);
}

static void add_step(struct table *table, const struct phema_decay_step *step)
{
    static const char *const states[] = {[PHEMA_DECAY_UNCLEAR] = "unclear",
                                         [PHEMA_DECAY_FITTED] = "",
                                         [PHEMA_DECAY_FROZEN] = "did not move",
                                         [PHEMA_DECAY_RAW] = "equals the raw parameters"};
    struct phema_name_buffer from, to;
    bool is_clear = step->fit.state != PHEMA_DECAY_UNCLEAR;
    table_add(table, 0, "%s", phema_number_format(&from, step->from));
    table_add(table, 0, "%s", phema_number_format(&to, step->to));
    if (is_clear)
        table_add(table, 0, "%.4f", step->fit.kept.value);
    else
        add_number(table, 0, PHEMA_UNKNOWN);
    if (is_clear)
        table_add(table, 0, "%.4f", step->fit.kept.spread);
    else
        add_number(table, 0, PHEMA_UNKNOWN);
    add_number(table, 0, is_clear ? step->half_life : PHEMA_UNKNOWN);
    add_number(table, step->is_refuted ? TABLE_ALARM : 0, step->claimed);
    table_add(table, 0, "%s%s%s",
              step->is_replaced ? "replaced the raw parameters" : states[step->fit.state],
              step->is_refuted && *states[step->fit.state] ? ", " : "",
              step->is_refuted ? "refuted" : "");
}

/* What each interval tells. */
static void write_decay_tables(struct phema_strbuf *out, const struct phema_decays *decays)
{
    for (size_t i = 0; i < decays->n; i++) {
        const struct phema_decay_set *set = &decays->sets[i];
        struct phema_name_buffer name;
        struct table table = {.n_columns = 0};
        phema_strbuf_printf(out, "\ndecay of '%s'\n", phema_name_show(&name, set->name));
        table_add_titles(&table, "from|to|kept|+-|half-life|claimed|<");
        for (size_t k = 0; k < set->n; k++)
            add_step(&table, &set->steps[k]);
        render_write_table(out, &table, 0);
    }
}

static void write_decays_json(struct phema_json_out *out, const struct phema_decays *decays)
{
    phema_json_out_open(out, "decays", '[');
    for (size_t i = 0; i < decays->n; i++) {
        const struct phema_decay_set *set = &decays->sets[i];
        phema_json_out_open(out, NULL, '{');
        phema_record_write(out, phema_decay_set_fields, NULL, set);
        phema_record_write_list(out, "intervals", phema_decay_step_fields, NULL, set->steps, set->n,
                                sizeof(*set->steps));
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

/* ---- JSON ---- */

static void write_runs_json(struct phema_json_out *out, const struct inspect_times *times)
{
    phema_json_out_open(out, "times", '[');
    for (size_t i = 0; i < times->n_runs; i++) {
        const struct inspect_run *run = &times->runs[i];
        phema_json_out_open(out, NULL, '{');
        phema_json_out_number(out, "from", run->from);
        phema_json_out_number(out, "to", run->to);
        phema_json_out_number(out, "every", run->every > 0 ? run->every : PHEMA_UNKNOWN);
        phema_json_out_open(out, "averages", '[');
        for (size_t k = 0; k < times->n_kinds; k++)
            if (run->kinds >> k & 1)
                phema_json_out_string(out, NULL, times->kinds[k]);
        phema_json_out_close(out, ']');
        phema_json_out_u64(out, "snapshots", run->n_snapshots);
        phema_json_out_u64(out, "bytes", run->size_bytes);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static const struct phema_field gap_fields[] = {
    PHEMA_FIELD(NUMBER, ALWAYS, "after", struct inspect_gap, from),
    PHEMA_FIELD(NUMBER, ALWAYS, "before", struct inspect_gap, to),
    PHEMA_FIELD(COUNT, ALWAYS, "times", struct inspect_gap, n),
    {0},
};
static const struct phema_field missing_fields[] = {
    PHEMA_FIELD(NUMBER, ALWAYS, "time", struct inspect_missing, time),
    PHEMA_FIELD(TEXT, ALWAYS, "average", struct inspect_missing, kind),
    {0},
};
static const struct phema_field duplicate_fields[] = {
    PHEMA_FIELD(PATH, ALWAYS, "file", struct inspect_duplicate, label),
    PHEMA_FIELD(PATH, ALWAYS, "of", struct inspect_duplicate, of),
    {0},
};
static const struct phema_field training_run_fields[] = {
    PHEMA_FIELD(TEXT, ALWAYS, "run", struct phema_training_run, id),
    PHEMA_FIELD(COUNT, ALWAYS, "snapshots", struct phema_training_run, n),
    PHEMA_FIELD(NUMBER, ALWAYS, "from", struct phema_training_run, from),
    PHEMA_FIELD(NUMBER, ALWAYS, "to", struct phema_training_run, to),
    {0},
};
static const struct phema_field design_fields[] = {
    PHEMA_FIELD(COUNT, ALWAYS, "planned", struct inspect_design, n_planned),
    PHEMA_FIELD(COUNT, ALWAYS, "stored", struct inspect_design, n_stored),
    PHEMA_FIELD(COUNT, ALWAYS, "others", struct inspect_design, n_others),
    PHEMA_FIELD(NUMBER, ALWAYS, "next", struct inspect_design, next),
    {0},
};
static const struct phema_field missed_fields[] = {
    PHEMA_FIELD(NUMBER, ALWAYS, "time", struct inspect_missed, time),
    PHEMA_FIELD(NUMBER, ALWAYS, "sigma_rel", struct inspect_missed, sigma_rel),
    {0},
};

static void write_times_json(struct phema_json_out *out, const struct inspect_times *times,
                             const struct inspect_errors *errors)
{
    phema_json_out_u64(out, "bytes", times->size_bytes);
    write_runs_json(out, times);
    phema_record_write_list(out, "gaps", gap_fields, NULL, times->gaps, times->n_gaps,
                            sizeof(*times->gaps));
    phema_record_write_list(out, "missing", missing_fields, NULL, times->missing, times->n_missing,
                            sizeof(*times->missing));
    phema_record_write_list(out, "duplicates", duplicate_fields, NULL, times->duplicates,
                            times->n_duplicates, sizeof(*times->duplicates));
    report_recognised_json(out, times->series);
    phema_series_checks_write(out, &errors->checks, times->series);
    write_decays_json(out, &errors->checks.decays);
    if (!errors->is_known) {
        phema_json_out_null(out, "predicted_errors");
        return;
    }
    phema_json_out_open(out, "predicted_errors", '[');
    for (size_t i = 0; i < INSPECT_N_WIDTHS; i++) {
        phema_json_out_open(out, NULL, '{');
        phema_json_out_number(out, "sigma_rel", errors->widths[i]);
        phema_json_out_number(out, "total", errors->values[i]);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

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
    render_write_text(out, &text);
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
        phema_strbuf_printf(out, "%-*s %14s ", width, phema_name_show(&label, snapshot->label),
                            phema_number_format(&time, snapshot->time));
        if (!snapshot->spec)
            phema_strbuf_printf(out, "%*s", profile_width, "unknown");
        else if (has_shapes)
            phema_strbuf_printf(out, "%*s", profile_width, phema_name_show(&label, snapshot->spec));
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
    phema_strbuf_clear_part(&text, out);
}

/* "  run     3f2a0b1c..., and 2 snapshots that name no run" */
static void write_runs(struct phema_strbuf *out, const struct phema_series *series)
{
    struct phema_name_buffer shown;
    struct phema_strbuf text = {0};
    if (!series->n_runs)
        return;
    phema_strbuf_puts(&text, phema_name_show(&shown, series->runs[0].id));
    if (series->n_runs > 1)
        phema_strbuf_printf(&text, ", and %zu snapshot%s no run", series->runs[1].n,
                            series->runs[1].n == 1 ? " that names" : "s that name");
    if (text.data && !text.is_failed)
        render_write_wrapped(out, "  run     %s", text.data);
    phema_strbuf_clear_part(&text, out);
}

void inspect_report_series(const struct render_style *style, const struct inspect_findings *found)
{
    const struct phema_series *series = found->times.series;
    struct phema_series_checks shown = found->errors.checks;
    report_notes(style, series, &shown);
    if (!style->is_json && shown.verdict > PHEMA_SERIES_FITS) /* the text itself has the verdict */
        shown.verdict =
            shown.verdict == PHEMA_SERIES_WRONG ? PHEMA_SERIES_FITS : PHEMA_SERIES_UNKNOWN;
    report_doubts(style, series, &shown);
}

void inspect_write_series(struct phema_strbuf *out, const struct inspect_findings *found,
                          const char *next, bool is_verbose)
{
    const struct phema_series *series = found->times.series;
    const struct phema_decays *decays = &found->errors.checks.decays;
    write_head(out, &found->times);
    write_model(out, &found->summary);
    write_runs(out, series);
    if (found->has_design)
        write_design(out, &found->design);
    struct phema_strbuf remarks = {0}, details = {0};
    inspect_write_remarks(&remarks, &found->times);
    render_write_lines(out, &remarks);
    write_decays(out, decays, series);
    write_errors(out, &found->times, &found->errors);
    if (next)
        render_write_whole(out, "next: %s", next);
    if (!is_verbose)
        return;
    phema_strbuf_puts(&details, "\n");
    write_snapshots(&details, series);
    write_decay_tables(&details, decays);
    inspect_write_summary(&details, &found->summary);
    render_write_lines(out, &details);
}

void inspect_write_series_json(struct phema_json_out *out, const struct render_style *style,
                               const struct inspect_findings *found, bool is_inner)
{
    const struct phema_series *series = found->times.series;
    phema_json_out_open(out, NULL, '{');
    if (!is_inner)
        phema_json_out_u64(out, "version", 1);
    phema_json_out_path(out, "file", series->root);
    phema_json_out_string(out, "layout", series->layout);
    phema_json_out_string(out, "unit", series->unit);
    phema_record_write_list(out, "snapshots", phema_snapshot_fields, NULL, series->snapshots,
                            series->n, sizeof(*series->snapshots));
    phema_record_write_list(out, "runs", training_run_fields, NULL, series->runs, series->n_runs,
                            sizeof(*series->runs));
    write_times_json(out, &found->times, &found->errors);
    if (found->has_design) {
        phema_json_out_open(out, "design", '{');
        phema_record_write(out, design_fields, NULL, &found->design);
        phema_record_write_list(out, "missed", missed_fields, NULL, found->design.missed,
                                found->design.n_missed, sizeof(*found->design.missed));
        phema_json_out_close(out, '}');
    }
    phema_json_out_u64(out, "tensors", series->n_tensors);
    inspect_write_summary_json(out, &found->summary);
    render_write_warnings(out, style);
    phema_json_out_close(out, '}');
}
