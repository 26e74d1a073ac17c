// SPDX-License-Identifier: Apache-2.0
/* cmd_plan.c - predicts the bytes, memory and seconds of synth; no tensor is averaged. */

#include "cli.h"
#include "phema/clock.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "shared_options.h"

struct plan_values {
    struct cli_common common;
    struct cli_run_values run;
    uint64_t assumed_bandwidth, processes;
    bool measures;
};

/* ---- Several processes ---- */

static uint64_t count_files(const struct phema_series *series)
{
    uint64_t n = 0;
    for (size_t k = 0; k < series->n; k++)
        if (!series->snapshots[k].is_checkpoint_shared)
            n += phema_checkpoint_n_files(series->snapshots[k].checkpoint);
    return n;
}

/* The process that takes the most. The first one makes the plan for all, which they wait for. */
static struct forecast_share find_share(const struct phema_plan *plan,
                                        const struct phema_outputs *outputs,
                                        const struct phema_forecast *forecast, uint64_t n_processes,
                                        double prepared_s)
{
    struct forecast_share share = {.n_processes = n_processes,
                                   .n_shares = phema_count_shares(plan, outputs)};
    uint64_t most = n_processes ? (share.n_shares + n_processes - 1) / n_processes : 0;
    double part = share.n_shares ? (double)most / (double)share.n_shares : 0;
    double work_s = forecast->seconds < prepared_s ? 0 : forecast->seconds - prepared_s;
    share.read_bytes = (uint64_t)(part * (double)forecast->read_bytes);
    share.write_bytes = (uint64_t)(part * (double)forecast->write_bytes);
    share.n_opens = count_files(plan->series);
    share.seconds = prepared_s + part * work_s;
    return share;
}

/* ---- The verb ---- */

static enum phema_status print(const struct plan_values *args,
                               const struct phema_prepared *prepared,
                               const struct phema_forecast *forecast, double prepared_s,
                               struct phema_error *err)
{
    struct inspect_summary summary;
    enum phema_status status = inspect_summarise_series(&summary, prepared->plan->series, err);
    if (status)
        return status;
    const struct forecast_report report = {
        .style = &args->common.style,
        .plan = prepared->plan,
        .outputs = &prepared->outputs,
        .forecast = forecast,
        .summary = &summary,
        .has_out = args->run.outputs.out != NULL,
        .share =
            find_share(prepared->plan, &prepared->outputs, forecast, args->processes, prepared_s)};
    struct phema_strbuf text = {0};
    if (args->common.style.is_json)
        forecast_write_json(&text, &report);
    else
        forecast_write_text(&text, &report, args->common.style.is_verbose);
    inspect_summary_clear(&summary);
    return cli_print(&text, &args->common.style, err);
}

/* The output where OUT is left out, of the kind that the options ask for. */
static const char *default_out(const struct phema_plan_options *plan,
                               const struct phema_outputs_options *outputs)
{
    if (outputs->shard_bytes || outputs->ranks)
        return plan->is_conversion ? "out/" : "phema-{time}-{sigma}/";
    return plan->is_conversion ? "out.safetensors" : "phema-{time}-{sigma}.safetensors";
}

static enum phema_status predict(const struct plan_values *args, struct phema_prepared *prepared,
                                 struct phema_memory_profile *memory, double start_s,
                                 struct phema_error *err)
{
    const char *out = args->run.outputs.out
                          ? args->run.outputs.out
                          : default_out(&args->run.plan.options, &args->run.outputs);
    struct phema_request request;
    struct render_listener listener;
    render_listen(&listener, &args->common.style);
    listener.hides_errors = !args->common.style.is_verbose;
    enum phema_status status = cli_read_request(&request, &args->common, &args->run, err);
    if (!status)
        status = cli_check_last(&args->common, &request, err);
    if (status)
        return status;
    request.plan.series.compares_samples = true;
    status = phema_prepare_plan(prepared, &request, memory, &listener.heard, err);
    if (!status)
        phema_note_unfinished_time(prepared, &request, &listener.heard);
    if (!status)
        status = phema_prepare_outputs(prepared, &request, out, &listener.heard, err);
    if (status)
        return status;
    phema_memory_profile_end(memory);
    struct phema_forecast forecast;
    struct phema_forecast_options timing = {(double)args->assumed_bandwidth,
                                            phema_clock_s() - start_s, args->measures};
    status = phema_synth_forecast(&forecast, prepared->plan, &prepared->outputs, &prepared->options,
                                  &timing, err);
    return status ? status : print(args, prepared, &forecast, timing.elapsed_s, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    double start_s = phema_clock_s();
    struct phema_memory_profile *memory = NULL;
    enum phema_status status = phema_memory_profile_open(&memory, false, err);
    if (status)
        return status;
    struct phema_prepared prepared = {.plan = NULL};
    status = predict(values, &prepared, memory, start_s, err);
    phema_prepared_clear(&prepared);
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
         "bytes read and written per second, instead of\nmeasuring (another machine, a busy disk)",
     .flags = CLI_POSITIVE | CLI_RARE},
    {"measure", RESOURCES, CLI_FLAG, FIELD(measures),
     .help = "predict the time also of a run that reads and\nwrites less than 1 GiB"},
    {"processes", RESOURCES, CLI_COUNT, FIELD(processes), "N",
     .help = "what each of N processes does that share the run\n(posthoc-ema-mpi)",
     .flags = CLI_POSITIVE},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_plan = {
    .name = "plan",
    .summary = "predict the reads, writes, memory and time of synth",
    .options = rows,
    .examples = "  posthoc-ema plan --sigma-rel 0.05:0.25:0.005 ckpts/ sweep/\n"
                "      bytes, memory and seconds of a sweep before it runs\n"
                "  posthoc-ema plan --sigma-rel 0.1 --max-ram 64M --json ckpts/\n"
                "      for scripts: read_bytes, write_bytes, peak_ram_bytes, seconds, ...\n"
                "  posthoc-ema plan --sigma-rel 0.1 --assume-bandwidth 2G ckpts/\n"
                "      on a machine that reads and writes 2 GB in a second\n"
                "  posthoc-ema plan --sigma-rel 0.1 --processes 16 ckpts/\n"
                "      what each of 16 processes of posthoc-ema-mpi reads, writes and opens\n",
    .values_size = sizeof(struct plan_values),
    .run = run,
};
