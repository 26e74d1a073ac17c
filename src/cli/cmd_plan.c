// SPDX-License-Identifier: Apache-2.0
/* cmd_plan.c - predicts the bytes, memory and seconds of synth; no tensor is averaged. */

#include "cli.h"
#include "phema/clock.h"
#include "plan_report.h"
#include "run_options.h"

struct plan_values {
    struct cli_common common;
    struct cli_run_values run;
    uint64_t assumed_bandwidth;
};

static enum phema_status print(const struct plan_values *given, const struct cli_prepared *prepared,
                               const struct phema_forecast *forecast, struct phema_error *err)
{
    struct inspect_summary summary;
    enum phema_status status = inspect_summarise_series(&summary, prepared->plan->series, err);
    if (status)
        return status;
    const struct plan_report report = {.plan = prepared->plan,
                                       .outputs = &prepared->outputs,
                                       .options = &prepared->options,
                                       .forecast = forecast,
                                       .summary = &summary,
                                       .has_out = given->run.outputs.out != NULL};
    struct phema_strbuf text = {0};
    if (given->common.is_json)
        plan_report_write_json(&text, &report);
    else
        plan_report_write(&text, &report);
    status = cli_print(&text, err);
    phema_strbuf_clear(&text);
    inspect_summary_clear(&summary);
    return status;
}

static enum phema_status predict(const struct plan_values *given,
                                 struct phema_memory_profile *ledger, double start_s,
                                 struct phema_error *err)
{
    const char *out = given->run.outputs.out                  ? given->run.outputs.out
                      : given->run.plan.options.is_conversion ? "out.safetensors"
                                                              : "phema-{time}-{sigma}.safetensors";
    struct cli_prepared prepared;
    enum phema_status status =
        cli_prepare_plan(&prepared, &given->common, &given->run, ledger, err);
    if (!status)
        status = cli_prepare_outputs(&prepared, &given->common, &given->run, out, err);
    phema_memory_profile_end(ledger);
    struct phema_forecast forecast;
    struct phema_forecast_options timing = {(double)given->assumed_bandwidth,
                                            phema_clock_s() - start_s};
    if (!status)
        status = phema_synth_forecast(&forecast, prepared.plan, &prepared.outputs,
                                      &prepared.options, &timing, err);
    if (!status)
        status = print(given, &prepared, &forecast, err);
    cli_prepared_clear(&prepared);
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    double start_s = phema_clock_s();
    struct phema_memory_profile *ledger = NULL;
    enum phema_status status = phema_memory_profile_open(&ledger, false, err);
    if (!status)
        status = predict(values, ledger, start_s, err);
    phema_memory_profile_close(ledger);
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
