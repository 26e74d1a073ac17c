// SPDX-License-Identifier: Apache-2.0
/* forecast.c - the reads, writes, memory and time that are predicted, as text and as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "phema/filesystem.h"
#include "phema/path.h"

/* ---- For people ---- */

static void write_rate(struct phema_strbuf *out, const char *what, double per_s)
{
    struct phema_name_buffer shown;
    if (isfinite(per_s))
        phema_strbuf_printf(out, ", %s %s/s", what, phema_size_format(&shown, (uint64_t)per_s));
}

static void write_read(struct phema_strbuf *out, const struct forecast_report *report)
{
    const struct phema_forecast *forecast = report->forecast;
    struct phema_name_buffer size, cold, limit;
    struct phema_strbuf passes = {0};
    if (forecast->n_passes > 1)
        phema_strbuf_printf(&passes, ", in %zu passes of %zu targets to stay within %s",
                            forecast->n_passes, forecast->targets_per_pass,
                            phema_size_format(&limit, forecast->limit_bytes));
    render_write_wrapped(out, "read    %-9s  %zu snapshots, %s%s%s",
                         phema_size_format(&size, forecast->read_bytes), report->plan->series->n,
                         forecast->cold_bytes ? phema_size_format(&cold, forecast->cold_bytes)
                                              : "all in the page cache",
                         forecast->cold_bytes ? " not in the page cache" : "",
                         passes.data ? passes.data : "");
    phema_strbuf_clear_part(&passes, out);
}

static void write_write(struct phema_strbuf *out, const struct forecast_report *report)
{
    const struct phema_outputs *outputs = report->outputs;
    const char *path = outputs->items[0].path, *slash = strrchr(path, '/');
    struct phema_name_buffer size;
    struct phema_strbuf place = {0};
    if (report->has_out && outputs->m > 1 && slash)
        phema_strbuf_printf(&place, " to %.*s", (int)(slash - path + 1), path);
    else if (report->has_out && outputs->m == 1)
        phema_strbuf_printf(&place, " to %s", path);
    render_write_wrapped(out, "write   %-9s  %zu average%s%s%s",
                         phema_size_format(&size, report->forecast->write_bytes), outputs->m,
                         outputs->m == 1 ? "" : "s", place.data ? place.data : "",
                         report->forecast->is_compressed ? ", before compression" : "");
    phema_strbuf_clear_part(&place, out);
    struct phema_error space = {0};
    if (report->has_out && phema_outputs_check_space(outputs, &space))
        render_write_wrapped(out, "! %s", space.message);
}

static void write_device_memory(struct phema_strbuf *out, const struct phema_forecast *forecast)
{
    const struct phema_device_choice *choice = &forecast->device;
    struct phema_name_buffer size;
    struct phema_strbuf passes = {0};
    if (!choice->is_gpu)
        return;
    if (choice->n_tile_passes > 1)
        phema_strbuf_printf(&passes, ", each with %llu passes over the targets",
                            (unsigned long long)choice->n_tile_passes);
    render_write_wrapped(out, "gpu     %-9s  of %s memory, in tiles of %zu elements%s",
                         phema_size_format(&size, choice->gpu_bytes / choice->n_gpus),
                         choice->n_gpus > 1 ? "each device's" : "its", forecast->tile_elems,
                         passes.data ? passes.data : "");
    phema_strbuf_clear_part(&passes, out);
}

static void write_time(struct phema_strbuf *out, const struct phema_forecast *forecast)
{
    struct phema_strbuf rates = {0};
    if (isnan(forecast->seconds)) {
        render_write_wrapped(
            out, "time    not measured: below 1 GiB of reads and writes; see --measure");
        return;
    }
    write_rate(&rates, forecast->is_rate_assumed ? "an assumed sum of" : "sum", forecast->add_rate);
    write_rate(&rates, "read", forecast->cold_bytes ? forecast->fetch_rate : HUGE_VAL);
    write_rate(&rates, "write", forecast->store_rate);
    render_write_wrapped(
        out, "time    about %.*f s (%u thread%s on %s%s)", forecast->seconds < 10 ? 2 : 0,
        forecast->seconds, forecast->n_threads, forecast->n_threads == 1 ? "" : "s",
        forecast->device.is_gpu ? forecast->device.name : "the CPU", rates.data ? rates.data : "");
    phema_strbuf_clear_part(&rates, out);
}

/* The narrowest and the widest of the errors to expect. */
static void write_errors(struct phema_strbuf *out, const struct phema_plan *plan)
{
    const struct phema_target *least = report_find_error(plan, 0, true);
    const struct phema_target *most = report_find_error(plan, 0, false);
    struct phema_strbuf from = {0}, to = {0};
    if (!plan->targets[0].kind && isnan(plan->targets[0].solution.predicted.total))
        return; /* a conversion, or weights without a target */
    if (!least) {
        render_write_wrapped(out, "error expected: unknown");
        return;
    }
    phema_target_write_name(&from, least);
    phema_target_write_name(&to, most);
    double low = least->solution.predicted.total, high = most->solution.predicted.total;
    const char *mark = high > REPORT_FLAGGED_ERROR ? " !" : "";
    if (least == most)
        render_write_wrapped(out, "error expected: %.1e%s (%s)", high, mark,
                             to.data ? to.data : "");
    else
        render_write_wrapped(out, "errors expected: %.1e (%s) to %.1e%s (%s)", low,
                             from.data ? from.data : "", high, mark, to.data ? to.data : "");
    phema_strbuf_clear_part(&from, out);
    phema_strbuf_clear_part(&to, out);
}

static void write_share(struct phema_strbuf *out, const struct forecast_report *report)
{
    const struct forecast_share *share = &report->share;
    struct phema_name_buffer read, written, memory;
    struct phema_strbuf time = {0};
    if (!share->n_processes)
        return;
    if (!isnan(share->seconds))
        phema_strbuf_printf(&time, "; about %.*f s, if the storage keeps up",
                            share->seconds < 10 ? 2 : 0, share->seconds);
    render_write_wrapped(
        out,
        "shared  by %llu processes in %llu run%s: each reads %s at most, writes %s, takes %s of "
        "memory, opens %llu file%s of snapshots at most%s",
        (unsigned long long)share->n_processes, (unsigned long long)share->n_shares,
        share->n_shares == 1 ? "" : "s", phema_size_format(&read, share->read_bytes),
        phema_size_format(&written, share->write_bytes),
        phema_size_format(&memory, report->forecast->peak_ram_bytes),
        (unsigned long long)share->n_opens, share->n_opens == 1 ? "" : "s",
        time.data ? time.data : "");
    phema_strbuf_clear_part(&time, out);
}

static void write_work(struct phema_strbuf *out, const struct forecast_report *report)
{
    const struct phema_forecast *forecast = report->forecast;
    struct phema_name_buffer size, limit;
    write_read(out, report);
    write_write(out, report);
    render_write_wrapped(
        out, "memory  %-9s  at most%s%s", phema_size_format(&size, forecast->peak_ram_bytes),
        forecast->limit_bytes ? ", of " : "",
        forecast->limit_bytes ? phema_size_format(&limit, forecast->limit_bytes) : "");
    write_device_memory(out, forecast);
    write_time(out, forecast);
    write_share(out, report);
    write_errors(out, report->plan);
}

static void write_memory(struct phema_strbuf *out, const struct phema_forecast *forecast)
{
    struct phema_name_buffer size;
    struct table stages = {0}, parts = {0};
    table_add_titles(&stages, "<memory of the stages|at most");
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        table_add(&stages, 0, "%s", phema_stage_names[i]);
        table_add(&stages, 0, "%s", phema_size_format(&size, forecast->stage_bytes[i]));
    }
    table_add_titles(&parts, "<memory while summing|size");
    for (size_t i = 0; i < forecast->n_parts; i++) {
        table_add(&parts, 0, "%s", forecast->parts[i].label);
        table_add(&parts, 0, "%s", phema_size_format(&size, forecast->parts[i].bytes));
    }
    phema_strbuf_puts(out, "\n");
    render_write_table(out, &stages, 2);
    phema_strbuf_puts(out, "\n");
    render_write_table(out, &parts, 2);
}

static void write_outputs(struct phema_strbuf *out, const struct forecast_report *report)
{
    struct table table = {0};
    table_add_titles(&table, "<output|size|error expected");
    for (size_t j = 0; j < report->outputs->m; j++) {
        const struct phema_output *output = &report->outputs->items[j];
        struct phema_name_buffer size;
        table_add(&table, 0, "%s", output->path);
        table_add(&table, 0, "%s", phema_size_format(&size, output->size_bytes));
        report_add_error(&table, report->plan->targets[j].solution.predicted.total);
    }
    phema_strbuf_puts(out, "\n");
    render_write_table(out, &table, 2);
}

static void write_stripes_of(struct phema_strbuf *out, const char *what, const char *path)
{
    struct phema_stripes stripes;
    struct phema_strbuf text = {0};
    if (!phema_stripes_read(&stripes, path))
        return;
    phema_stripes_format(&text, &stripes);
    if (text.data)
        render_write_wrapped(out, "stripes of %s %s: %s", what, path, text.data);
    phema_strbuf_clear_part(&text, out);
}

/* On Lustre: of a snapshot, and of the directory that OUT's files inherit from. */
static void write_stripes(struct phema_strbuf *out, const struct forecast_report *report)
{
    const struct phema_checkpoint *first = report->plan->series->snapshots[0].checkpoint;
    write_stripes_of(out, "the snapshot", phema_file_path(phema_checkpoint_file(first, 0)));
    if (!report->has_out)
        return;
    const char *made = report->outputs->made_directory;
    char *directory = phema_path_directory(made ? made : report->outputs->items[0].path);
    if (directory)
        write_stripes_of(out, "the directory", directory);
    free(directory);
}

void forecast_write_text(struct phema_strbuf *out, const struct forecast_report *report,
                         bool is_verbose)
{
    const struct phema_forecast *forecast = report->forecast;
    write_work(out, report);
    if (!is_verbose)
        return;
    render_write_wrapped(out, "tensors %zu averaged, %zu copied from the newest snapshot",
                         forecast->n_averaged, forecast->n_copied);
    write_stripes(out, report);
    write_memory(out, forecast);
    struct phema_strbuf summary = {0};
    inspect_write_summary(&summary, report->summary);
    render_write_lines(out, &summary);
    if (report->has_out)
        write_outputs(out, report);
}

/* ---- JSON ---- */

static void write_device_json(struct phema_json_out *out, const struct phema_forecast *forecast)
{
    const struct phema_device_choice *choice = &forecast->device;
    phema_json_out_u64(out, "gpu_bytes", choice->is_gpu ? choice->gpu_bytes : 0);
    phema_json_out_string(out, "device", choice->name);
    if (choice->why[0])
        phema_json_out_string(out, "device_reason", choice->why);
    phema_json_out_u64(out, "tile_elements", forecast->tile_elems);
    if (choice->is_gpu) {
        phema_json_out_u64(out, "gpu_tile_passes", choice->n_tile_passes);
        phema_json_out_bool(out, "gpu_rate_assumed", forecast->is_rate_assumed);
    }
}

static void write_outputs_json(struct phema_json_out *out, const struct forecast_report *report)
{
    phema_json_out_open(out, "outputs", '[');
    for (size_t j = 0; j < report->outputs->m; j++) {
        const struct phema_target *target = &report->plan->targets[j];
        phema_json_out_open(out, NULL, '{');
        if (report->has_out)
            phema_json_out_path(out, "file", report->outputs->items[j].path);
        phema_json_out_u64(out, "bytes", report->outputs->items[j].size_bytes);
        phema_record_write(out, phema_target_fields, "sigma_rel profile spec time", target);
        phema_json_out_number(out, "predicted_error", target->solution.predicted.total);
        report_rules_json(out, report->plan, target, false);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static void write_memory_json(struct phema_json_out *out, const struct phema_forecast *forecast)
{
    phema_json_out_open(out, "memory", '{');
    phema_json_out_open(out, "stages", '{');
    for (int i = 0; i < PHEMA_N_STAGES; i++)
        phema_json_out_u64(out, phema_stage_names[i], forecast->stage_bytes[i]);
    phema_json_out_close(out, '}');
    phema_json_out_open(out, "accumulate", '{');
    for (size_t i = 0; i < forecast->n_parts; i++)
        phema_json_out_u64(out, forecast->parts[i].name, forecast->parts[i].bytes);
    phema_json_out_close(out, '}');
    if (forecast->limit_bytes)
        phema_json_out_u64(out, "limit", forecast->limit_bytes);
    phema_json_out_close(out, '}');
}

static void write_rates_json(struct phema_json_out *out, const struct phema_forecast *forecast)
{
    phema_json_out_open(out, "bytes_per_second", '{');
    if (isfinite(forecast->add_rate))
        phema_json_out_number(out, "add", forecast->add_rate);
    if (isfinite(forecast->fetch_rate))
        phema_json_out_number(out, "fetch", forecast->fetch_rate);
    if (isfinite(forecast->store_rate))
        phema_json_out_number(out, "store", forecast->store_rate);
    phema_json_out_close(out, '}');
}

static void write_share_json(struct phema_json_out *out, const struct forecast_report *report)
{
    const struct forecast_share *share = &report->share;
    if (!share->n_processes)
        return;
    phema_json_out_open(out, "shared", '{');
    phema_json_out_u64(out, "processes", share->n_processes);
    phema_json_out_u64(out, "runs", share->n_shares);
    phema_json_out_u64(out, "read_bytes", share->read_bytes);
    phema_json_out_u64(out, "write_bytes", share->write_bytes);
    phema_json_out_u64(out, "peak_ram_bytes", report->forecast->peak_ram_bytes);
    phema_json_out_u64(out, "opens", share->n_opens);
    phema_json_out_number(out, "seconds", share->seconds);
    phema_json_out_close(out, '}');
}

void forecast_write_json(struct phema_strbuf *out, const struct forecast_report *report)
{
    const struct phema_forecast *forecast = report->forecast;
    struct phema_json_out json;
    render_json_begin(&json, out, true);
    phema_record_write(&json, phema_forecast_fields,
                       "read_bytes write_bytes compressed peak_ram_bytes seconds", forecast);
    write_device_json(&json, forecast);
    phema_record_write(&json, phema_forecast_fields,
                       "io passes targets_per_pass threads averaged copied cold_bytes", forecast);
    const struct inspect_totals *components = &report->summary->components;
    phema_record_write_list(&json, "components", inspect_total_fields, "prefix parameters bytes",
                            components->items, components->n, sizeof(*components->items));
    write_outputs_json(&json, report);
    write_memory_json(&json, forecast);
    write_rates_json(&json, forecast);
    write_share_json(&json, report);
    report_checks_json(&json, report->style, report->plan);
    render_json_end(&json);
}
