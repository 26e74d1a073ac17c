// SPDX-License-Identifier: Apache-2.0
/* inspect_times.c - the times of a series as a table of 80 columns and as JSON, with a bar chart of
 * the predicted errors. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "phema/render.h"
#include "phema/report.h"
#include "phema/terminal.h"

/* Longer lists are cut; JSON has all. */
#define MOST_RUNS    16
#define MOST_REMARKS 6
#define RANGE_WIDTH  21
#define KINDS_WIDTH  26

/* Widths of the bar chart, in thousandths: 0.0125, 0.0175, ... 0.2875 fill 56 columns. They avoid
 * the widths of snapshots, whose errors are rounding alone and would flatten all other bars. */
#define FIRST_WIDTH   12.5
#define BETWEEN_WIDTH 5.0
#define N_LEVELS      8
#define BAR_LABELS    15 /* columns beside the bars: the scale, and one that stays free */

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
    phema_strbuf_clear(&range);
    phema_strbuf_clear(&kinds);
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
    const struct phema_snapshot *snapshots = times->series->snapshots;
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
        phema_strbuf_printf(out, "  missing: %s at %s\n", times->kinds[times->missing[i].kind],
                            phema_number_format(&from, times->missing[i].time));
    write_more(out, times->n_missing);
    for (size_t i = 0; i < times->n_duplicates && i < MOST_REMARKS; i++) {
        const char *a = snapshots[times->duplicates[i].of].label;
        const char *b = snapshots[times->duplicates[i].snapshot].label;
        phema_strbuf_printf(out, "  twice: %s and %s\n", phema_name_escape(&first, a, strlen(a)),
                            phema_name_escape(&second, b, strlen(b)));
    }
    write_more(out, times->n_duplicates);
}

/* ---- Predicted errors ---- */

/* Nothing is known where there is no sample. */
static enum phema_status check_series(struct inspect_errors *out, const struct phema_series *series,
                                      struct phema_error *err)
{
    struct phema_error why = {0};
    enum phema_status status = phema_series_check(&out->checks, series, &why);
    if (status && status != PHEMA_NO)
        return phema_fail(err, status, "%s", why.message);
    return PHEMA_OK;
}

void inspect_errors_clear(struct inspect_errors *errors)
{
    phema_series_checks_clear(&errors->checks);
}

static enum phema_status predict_errors(struct inspect_errors *out,
                                        const struct phema_series *series, struct phema_error *err)
{
    if (out->checks.verdict == PHEMA_SERIES_WRONG) {
        return phema_series_fail_wrong(series, &out->checks, &out->why) == PHEMA_ERR_RESOURCE
                   ? phema_fail_memory(err)
                   : PHEMA_OK;
    }
    for (size_t i = 0; i < INSPECT_N_WIDTHS; i++)
        out->widths[i] = (FIRST_WIDTH + (double)i * BETWEEN_WIDTH) / 1000;
    enum phema_status status = phema_series_errors(out->values, &out->every, series, out->widths,
                                                   INSPECT_N_WIDTHS, &out->why);
    if (status == PHEMA_ERR_RESOURCE)
        return phema_fail(err, status, "%s: %s", series->root, out->why.message);
    if (status)
        return PHEMA_OK;
    for (size_t i = 0; i < INSPECT_N_WIDTHS; i++) {
        if (!(out->values[i] > 0) || !isfinite(out->values[i]))
            return PHEMA_OK;
        out->least = out->values[i] < out->values[out->least] ? i : out->least;
        out->most = out->values[i] > out->values[out->most] ? i : out->most;
    }
    out->is_known = true;
    return PHEMA_OK;
}

PHEMA_FALLIBLE inspect_errors_find(struct inspect_errors *out, const struct phema_series *series,
                                   struct phema_error *err)
{
    *out = (struct inspect_errors){.is_known = false};
    enum phema_status status = check_series(out, series, err);
    if (!status)
        status = predict_errors(out, series, err);
    if (status)
        inspect_errors_clear(out);
    return status;
}

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
    double at = floor((sigma_rel * 1000 - FIRST_WIDTH) / BETWEEN_WIDTH + 0.5);
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

static void write_verdict(struct phema_strbuf *out, const struct inspect_errors *errors)
{
    if (errors->every > 1)
        render_write_wrapped(out, "  from one time in %zu; errors of all are smaller",
                             errors->every);
    if (errors->checks.verdict == PHEMA_SERIES_FITS)
        render_write_wrapped(out, "  the snapshots fit their labels");
    if (errors->checks.verdict == PHEMA_SERIES_DOUBTFUL)
        render_write_wrapped(out, "  %s", errors->checks.reason);
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
    render_write_wrapped(out, "  error   at %s %s, rough: best %.0e at %.2f, worst %.0e at %.2f",
                         phema_number_format(&at, series->snapshots[series->n - 1].named_time),
                         report_named_unit(series), errors->values[errors->least],
                         errors->widths[errors->least], errors->values[errors->most],
                         errors->widths[errors->most]);
    write_bars(out, errors);
    write_marks(out, times);
    write_verdict(out, errors);
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
    phema_strbuf_clear(&range);
    phema_strbuf_clear(&kinds);
}

void inspect_times_write(struct phema_strbuf *out, const struct inspect_times *times)
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

void inspect_errors_write(struct phema_strbuf *out, const struct inspect_times *times,
                          const struct inspect_errors *errors)
{
    struct phema_strbuf remarks = {0};
    inspect_write_remarks(&remarks, times);
    if (remarks.data)
        phema_strbuf_append_lines(out, remarks.data, remarks.size);
    phema_strbuf_clear(&remarks);
    write_errors(out, times, errors);
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

static void write_remarks_json(struct phema_json_out *out, const struct inspect_times *times)
{
    phema_json_out_open(out, "gaps", '[');
    for (size_t i = 0; i < times->n_gaps; i++) {
        phema_json_out_open(out, NULL, '{');
        phema_json_out_number(out, "after", times->gaps[i].from);
        phema_json_out_number(out, "before", times->gaps[i].to);
        phema_json_out_u64(out, "times", times->gaps[i].n);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
    phema_json_out_open(out, "missing", '[');
    for (size_t i = 0; i < times->n_missing; i++) {
        phema_json_out_open(out, NULL, '{');
        phema_json_out_number(out, "time", times->missing[i].time);
        phema_json_out_string(out, "average", times->kinds[times->missing[i].kind]);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
    phema_json_out_open(out, "duplicates", '[');
    const struct phema_snapshot *snapshots = times->series->snapshots;
    for (size_t i = 0; i < times->n_duplicates; i++) {
        phema_json_out_open(out, NULL, '{');
        phema_json_out_path(out, "file", snapshots[times->duplicates[i].snapshot].label);
        phema_json_out_path(out, "of", snapshots[times->duplicates[i].of].label);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

void inspect_times_write_json(struct phema_json_out *out, const struct inspect_times *times,
                              const struct inspect_errors *errors)
{
    phema_json_out_u64(out, "bytes", times->size_bytes);
    write_runs_json(out, times);
    write_remarks_json(out, times);
    phema_series_checks_write(out, &errors->checks, times->series);
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
