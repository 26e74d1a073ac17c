// SPDX-License-Identifier: Apache-2.0
/* cmd_plan.c - predicts the bytes, memory and seconds of synth; no tensor is averaged. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "inspect/inspect.h"
#include "phema/clock.h"
#include "print_summary.h"
#include "run_options.h"

/* Longer sweeps are cut; JSON has all. */
#define MAX_OUTPUTS_SHOWN 12

struct plan_values {
    struct cli_common common;
    struct cli_run_values run;
    uint64_t assumed_bandwidth;
};

struct report {
    const struct phema_plan *plan;
    const struct phema_outputs *outputs;
    const struct phema_forecast *forecast;
    const struct inspect_summary *summary;
    bool has_out; /* OUT is on the command line */
};

/* ---- For people ---- */

static void write_rate(struct phema_strbuf *out, const char *what, double per_s)
{
    struct phema_name_buffer shown;
    if (isfinite(per_s))
        phema_strbuf_printf(out, ", %s %s/s", what, phema_size_format(&shown, (uint64_t)per_s));
}

static void write_rules(struct phema_strbuf *out, const struct phema_plan *plan)
{
    struct phema_strbuf lines = {0};
    report_rules(&lines, plan);
    for (size_t at = 0; at < lines.size; at += strcspn(lines.data + at, "\n") + 1)
        phema_strbuf_printf(out, "\n          %.*s", (int)strcspn(lines.data + at, "\n"),
                            lines.data + at);
    phema_strbuf_clear(&lines);
}

static void write_device_memory(struct phema_strbuf *out, const struct phema_forecast *forecast)
{
    const struct phema_device_choice *choice = &forecast->device;
    struct phema_name_buffer size;
    if (!choice->is_gpu)
        return;
    phema_strbuf_printf(out, "\ngpu       %s of %s memory, in tiles of %zu elements",
                        phema_size_format(&size, choice->gpu_bytes / choice->n_gpus),
                        choice->n_gpus > 1 ? "each device's" : "its", forecast->tile_elems);
    if (choice->n_tile_passes > 1)
        phema_strbuf_printf(out, ", each with %llu passes over the targets",
                            (unsigned long long)choice->n_tile_passes);
}

static void write_work(struct phema_strbuf *out, const struct report *report)
{
    const struct phema_forecast *forecast = report->forecast;
    struct phema_name_buffer size;
    phema_strbuf_printf(out, "read      %s of tensors from %zu snapshots",
                        phema_size_format(&size, forecast->read_bytes), report->plan->series->n);
    if (forecast->n_passes > 1)
        phema_strbuf_printf(out, ", in %zu passes of %zu targets to keep to %s", forecast->n_passes,
                            forecast->targets_per_pass,
                            phema_size_format(&size, forecast->limit_bytes));
    if (forecast->cold_bytes)
        phema_strbuf_printf(out, "; %s are not in memory yet",
                            phema_size_format(&size, forecast->cold_bytes));
    phema_strbuf_printf(out, "\nwrite     %s into %zu output%s%s",
                        phema_size_format(&size, forecast->write_bytes), report->outputs->m,
                        report->outputs->m == 1 ? "" : "s",
                        forecast->is_compressed ? ", before they are compressed" : "");
    phema_strbuf_printf(out, "\ntensors   %zu averaged, %zu copied from the newest snapshot",
                        forecast->n_averaged, forecast->n_copied);
    write_rules(out, report->plan);
    phema_strbuf_printf(out, "\nmemory    %s at most",
                        phema_size_format(&size, forecast->peak_ram_bytes));
    if (forecast->limit_bytes)
        phema_strbuf_printf(out, " of %s", phema_size_format(&size, forecast->limit_bytes));
    write_device_memory(out, forecast);
    phema_strbuf_printf(out, "\ntime      %.*f s with %u thread%s on %s",
                        forecast->seconds < 10 ? 2 : 0, forecast->seconds, forecast->n_threads,
                        forecast->n_threads == 1 ? "" : "s",
                        forecast->device.is_gpu ? forecast->device.name : "the CPU");
    write_rate(out, forecast->is_rate_assumed ? "adding up an assumed" : "adding up",
               forecast->add_rate);
    write_rate(out, "reading from disk", forecast->cold_bytes ? forecast->fetch_rate : HUGE_VAL);
    write_rate(out, "writing to disk", forecast->store_rate);
    phema_strbuf_puts(out, "\n");
}

static void write_memory(struct phema_strbuf *out, const struct phema_forecast *forecast)
{
    struct phema_name_buffer size;
    phema_strbuf_puts(out, "\n  memory while                  at most\n");
    for (int i = 0; i < PHEMA_N_STAGES; i++)
        phema_strbuf_printf(out, "  %-26s %10s\n", phema_stage_names[i],
                            phema_size_format(&size, forecast->stage_bytes[i]));
    phema_strbuf_puts(out, "\n  of it, while adding up           size\n");
    for (size_t i = 0; i < forecast->n_parts; i++)
        phema_strbuf_printf(out, "  %-26s %10s\n", forecast->parts[i].label,
                            phema_size_format(&size, forecast->parts[i].bytes));
}

static void write_outputs(struct phema_strbuf *out, const struct report *report)
{
    size_t n = report->has_out ? report->outputs->m : 0;
    if (n)
        phema_strbuf_puts(out, "\n  output\n");
    for (size_t j = 0; j < n && j < MAX_OUTPUTS_SHOWN; j++) {
        const struct phema_output *output = &report->outputs->items[j];
        double error = report->plan->targets[j].solution.predicted.total;
        struct phema_name_buffer size;
        phema_strbuf_puts(out, "  ");
        phema_strbuf_puts_escaped(out, output->path);
        phema_strbuf_printf(out, ", %s", phema_size_format(&size, output->size_bytes));
        if (!isnan(error))
            phema_strbuf_printf(out, ", predicted error %.1e", error);
        phema_strbuf_puts(out, "\n");
    }
    if (n > MAX_OUTPUTS_SHOWN)
        phema_strbuf_printf(out, "  and %zu more\n", n - MAX_OUTPUTS_SHOWN);
}

static void write_text(struct phema_strbuf *out, const struct report *report)
{
    write_work(out, report);
    write_memory(out, report->forecast);
    inspect_write_summary(out, report->summary);
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

static void write_components_json(struct phema_json_out *out, const struct inspect_summary *summary)
{
    phema_json_out_open(out, "components", '[');
    for (size_t i = 0; i < summary->components.n; i++) {
        const struct inspect_total *component = &summary->components.items[i];
        phema_json_out_open(out, NULL, '{');
        phema_json_out_bytes(out, "prefix", component->label ? component->label : "",
                             component->label_size);
        phema_json_out_u64(out, "parameters", component->n_elems - component->n_buffer_elems);
        phema_json_out_u64(out, "bytes", component->size_bytes);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static void write_outputs_json(struct phema_json_out *out, const struct report *report)
{
    phema_json_out_open(out, "outputs", '[');
    for (size_t j = 0; j < report->outputs->m; j++) {
        const struct phema_target *target = &report->plan->targets[j];
        phema_json_out_open(out, NULL, '{');
        if (report->has_out)
            phema_json_out_path(out, "file", report->outputs->items[j].path);
        phema_json_out_u64(out, "bytes", report->outputs->items[j].size_bytes);
        phema_json_out_number(out, "sigma_rel", target->sigma_rel);
        report_profile_json(out, target->kind, target->spec);
        phema_json_out_number(out, "time", target->time);
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
    phema_json_out_number(out, "add", forecast->add_rate);
    if (isfinite(forecast->fetch_rate))
        phema_json_out_number(out, "fetch", forecast->fetch_rate);
    if (isfinite(forecast->store_rate))
        phema_json_out_number(out, "store", forecast->store_rate);
    phema_json_out_close(out, '}');
}

static void write_json(struct phema_strbuf *out, const struct report *report)
{
    const struct phema_forecast *forecast = report->forecast;
    struct phema_json_out json;
    cli_json_begin(&json, out, true);
    phema_json_out_u64(&json, "read_bytes", forecast->read_bytes);
    phema_json_out_u64(&json, "write_bytes", forecast->write_bytes);
    phema_json_out_bool(&json, "compressed", forecast->is_compressed);
    phema_json_out_u64(&json, "peak_ram_bytes", forecast->peak_ram_bytes);
    phema_json_out_number(&json, "seconds", forecast->seconds);
    write_device_json(&json, forecast);
    phema_json_out_string(&json, "io", forecast->io);
    phema_json_out_u64(&json, "passes", forecast->n_passes);
    phema_json_out_u64(&json, "targets_per_pass", forecast->targets_per_pass);
    phema_json_out_u64(&json, "threads", forecast->n_threads);
    phema_json_out_u64(&json, "averaged", forecast->n_averaged);
    phema_json_out_u64(&json, "copied", forecast->n_copied);
    phema_json_out_u64(&json, "cold_bytes", forecast->cold_bytes);
    write_components_json(&json, report->summary);
    write_outputs_json(&json, report);
    write_memory_json(&json, forecast);
    write_rates_json(&json, forecast);
    cli_json_end(&json);
}

/* ---- The verb ---- */

static enum phema_status print(const struct plan_values *args, const struct cli_prepared *prepared,
                               const struct phema_forecast *forecast, struct phema_error *err)
{
    struct inspect_summary summary;
    enum phema_status status = inspect_summarise_series(&summary, prepared->plan->series, err);
    if (status)
        return status;
    const struct report report = {.plan = prepared->plan,
                                  .outputs = &prepared->outputs,
                                  .forecast = forecast,
                                  .summary = &summary,
                                  .has_out = args->run.outputs.out != NULL};
    struct phema_strbuf text = {0};
    if (args->common.is_json)
        write_json(&text, &report);
    else
        write_text(&text, &report);
    inspect_summary_clear(&summary);
    return cli_print(&text, err);
}

static enum phema_status predict(const struct plan_values *args, struct cli_prepared *prepared,
                                 struct phema_memory_profile *memory, double start_s,
                                 struct phema_error *err)
{
    const char *out = args->run.outputs.out                  ? args->run.outputs.out
                      : args->run.plan.options.is_conversion ? "out.safetensors"
                                                             : "phema-{time}-{sigma}.safetensors";
    enum phema_status status = cli_prepare_plan(prepared, &args->common, &args->run, memory, err);
    if (status)
        return status;
    status = cli_prepare_outputs(prepared, &args->common, &args->run, out, err);
    if (status)
        return status;
    phema_memory_profile_end(memory);
    struct phema_forecast forecast;
    struct phema_forecast_options timing = {(double)args->assumed_bandwidth,
                                            phema_clock_s() - start_s};
    status = phema_synth_forecast(&forecast, prepared->plan, &prepared->outputs, &prepared->options,
                                  &timing, err);
    return status ? status : print(args, prepared, &forecast, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    double start_s = phema_clock_s();
    struct phema_memory_profile *memory = NULL;
    enum phema_status status = phema_memory_profile_open(&memory, false, err);
    if (status)
        return status;
    struct cli_prepared prepared;
    status = predict(values, &prepared, memory, start_s, err);
    cli_prepared_clear(&prepared);
    phema_memory_profile_close(memory);
    return status;
}

#define FIELD(member) offsetof(struct plan_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_run_rows, FIELD(run)),
    {.name = "",
     .kind = CLI_ROWS,
     .offset = FIELD(run),
     .rows = cli_out_rows,
     .flags = CLI_OPTIONAL},
    CLI_INCLUDE(cli_make_rows, FIELD(run)),
    {"assume-bandwidth", RESOURCES, CLI_SIZE, FIELD(assumed_bandwidth), "SIZE",
     .help =
         "bytes read and written in a second, instead of\nmeasuring (another machine, a busy disk)",
     .flags = CLI_POSITIVE},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_plan = {
    .name = "plan",
    .summary = "what synth would read, write, hold and take",
    .options = rows,
    .examples = "  posthoc-ema plan --sigma-rel 0.05:0.25:0.005 ckpts/ sweep/\n"
                "      bytes, memory and seconds of a sweep before it runs\n"
                "  posthoc-ema plan --sigma-rel 0.1 --max-ram 64M --json ckpts/\n"
                "      for scripts: read_bytes, write_bytes, peak_ram_bytes, seconds, ...\n"
                "  posthoc-ema plan --sigma-rel 0.1 --assume-bandwidth 2G ckpts/\n"
                "      on a machine that reads and writes 2 GB in a second\n",
    .values_size = sizeof(struct plan_values),
    .run = run,
};
