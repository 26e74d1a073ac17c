// SPDX-License-Identifier: Apache-2.0
/* cmd_synth.c - makes averaged checkpoints. */
#include "cli.h"
#include "phema/json.h"
#include "phema/sink.h"
#include "phema/writer.h"
#include "print_summary.h"
#include "run_options.h"
#include "synth_report.h"
#include "up_to_date.h"

/* "2/8" */
static enum phema_status read_part(uint64_t *part, uint64_t *n_parts, const char *text,
                                   struct phema_error *err)
{
    *part = *n_parts = 0;
    if (!text)
        return PHEMA_OK;
    uint64_t numbers[2] = {0, 0};
    const char *at = text;
    for (int i = 0; i < 2; i++) {
        for (; *at >= '0' && *at <= '9' && numbers[i] <= PHEMA_MAX_PARTS; at++)
            numbers[i] = 10 * numbers[i] + (uint64_t)(*at - '0');
        if (i == 0 && *at++ != '/')
            break;
    }
    if (numbers[0] < 1 || numbers[0] > numbers[1] || numbers[1] > PHEMA_MAX_PARTS || *at)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--part: '%s' is not I/N with I from 1 to N and N up to %d, such as 2/8",
                          text, PHEMA_MAX_PARTS);
    *part = numbers[0];
    *n_parts = numbers[1];
    return PHEMA_OK;
}

static void write_line(struct phema_strbuf *out, const char *path)
{
    cli_write_path(out, path);
    phema_strbuf_puts(out, "\n");
}

static void write_paths(struct phema_strbuf *out, const struct cli_synth_values *given,
                        const struct phema_plan *plan, const struct phema_outputs *outputs,
                        const struct phema_synth_result *result)
{
    if (!given->common.is_json) {
        for (size_t j = 0; j < outputs->m && !result->n_parts; j++) /* a part publishes nothing */
            write_line(out, outputs->items[j].path);
        return;
    }
    struct phema_json_out json = {.text = out, .is_pretty = true};
    phema_json_out_open(&json, NULL, '{');
    phema_json_out_u64(&json, "version", 1);
    phema_json_out_open(&json, "outputs", '[');
    for (size_t j = 0; j < outputs->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        phema_json_out_open(&json, NULL, '{');
        phema_json_out_path(&json, "file", outputs->items[j].path);
        phema_json_out_u64(&json, "bytes", outputs->items[j].size_bytes);
        phema_json_out_number(&json, "sigma_rel", target->sigma_rel);
        phema_json_out_number(&json, "gamma", target->gamma);
        report_profile_json(&json, target->kind, target->spec);
        phema_json_out_number(&json, "time", target->time);
        phema_json_out_string(&json, "metric", plan->metric);
        phema_json_out_number(&json, "profile_error", target->solution.profile_error);
        phema_json_out_number(&json, "norm1", target->solution.norm1);
        phema_json_out_number(&json, "norm2", target->solution.norm2);
        report_prediction_json(&json, &target->solution.predicted);
        report_rules_json(&json, plan, target, false);
        phema_json_out_close(&json, '}');
    }
    phema_json_out_close(&json, ']');
    if (result->n_parts) {
        phema_json_out_u64(&json, "part", result->part);
        phema_json_out_u64(&json, "parts", result->n_parts);
    }
    phema_json_out_u64(&json, "read_bytes", result->read_bytes);
    phema_json_out_u64(&json, "written_bytes", result->written_bytes);
    phema_json_out_number(&json, "seconds", result->elapsed_s);
    phema_json_out_u64(&json, "peak_anonymous_bytes", result->peak_anonymous_bytes);
    phema_json_out_u64(&json, "peak_resident_bytes", result->peak_resident_bytes);
    phema_json_out_string(&json, "device", result->device.name);
    if (result->device.is_gpu)
        phema_json_out_u64(&json, "gpu_bytes", result->device.gpu_bytes);
    phema_json_out_u64(&json, "nan", result->n_nan);
    phema_json_out_u64(&json, "inf", result->n_inf);
    phema_json_out_close(&json, '}');
    phema_strbuf_puts(out, "\n");
}

static enum phema_status execute(const struct cli_synth_values *given,
                                 struct cli_prepared *prepared, struct phema_error *err)
{
    struct progress progress;
    progress_init(&progress, &given->common);
    prepared->options.report = progress_report;
    prepared->options.context = &progress;
    struct phema_synth_result result = {0};
    bool is_any = prepared->outputs.m > 0; /* otherwise every output is up to date */
    enum phema_status status = PHEMA_OK;
    if (is_any)
        status =
            phema_synth_run(&result, prepared->plan, &prepared->outputs, &prepared->options, err);
    progress_finish(&progress);
    prepared->options.context = NULL;
    if (status)
        return status;
    if (is_any)
        report_synth(&given->common, prepared->plan, &prepared->outputs, &result);
    if (is_any)
        report_device(&given->common, &result.device, given->run.device != NULL);
    struct phema_strbuf text = {0};
    write_paths(&text, given, prepared->plan, &prepared->outputs, &result);
    status = given->common.is_json ? cli_print(&text, err) : cli_print_as_is(&text, err);
    phema_strbuf_clear(&text);
    return status;
}

static enum phema_status prepare(struct cli_prepared *prepared, struct memory_report *memory,
                                 const struct cli_synth_values *given, struct phema_error *err)
{
    const struct cli_run_values *run = &given->run;
    bool is_conversion = run->plan.options.is_conversion;
    enum phema_status status = cli_prepare_plan(prepared, &given->common, run, memory->ledger, err);
    if (status)
        return status;
    struct phema_series *series = prepared->plan->series;
    if (!is_conversion)
        status = phema_series_identify(series, err);
    if (!status)
        status = cli_prepare_outputs(prepared, &given->common, run, run->outputs.out, err);
    if (!status && given->profile_memory)
        status = sink_claim_names(prepared->plan, &prepared->outputs, run->synth.part,
                                  run->synth.n_parts, err);
    if (!status)
        status = memory_report_claim(memory, series->claims, err);
    if (!status && (given->skips_existing || (run->synth.resumes && !is_conversion)))
        status = cli_skip_existing(prepared, run, given->common.verb, given->common.is_quiet, err);
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct cli_synth_values *given = values;
    struct phema_synth_options *options = &given->run.synth;
    struct memory_report memory;
    enum phema_status status = read_part(&options->part, &options->n_parts, given->part, err);
    if (!status)
        status = memory_report_begin(&memory, &given->common, given->profile_memory,
                                     options->replaces, err);
    if (status)
        return status;
    struct cli_prepared prepared;
    status = prepare(&prepared, &memory, given, err);
    if (!status)
        status = execute(given, &prepared, err);
    cli_prepared_clear(&prepared);
    return memory_report_end(&memory, &given->common, status, err);
}

#define FIELD(member) offsetof(struct cli_synth_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_run_rows, FIELD(run)),
    CLI_INCLUDE(cli_out_rows, FIELD(run)),
    CLI_INCLUDE(cli_make_rows, FIELD(run)),
    {"part", OUTPUT, CLI_TEXT, FIELD(part), "I/N",
     .help = "write part I of N only; join publishes OUT when\nall N processes are done"},
    {"skip-existing", OUTPUT, CLI_FLAG, FIELD(skips_existing),
     .help =
         "leave outputs alone that are there and were made\nof the same snapshots in the same way"},
    {"resume", OUTPUT, CLI_FLAG, FIELD(run.synth.resumes),
     .help = "go on where an ended run with this option was; and\nwhatever ends this one, what is "
             "done stays"},
    {"nan", OUTPUT, CLI_EITHER, FIELD(run.synth.refuses_nan), "error|keep",
     .help = "averages that are NaN or infinite, since elements\nof snapshots are (default keep: "
             "counted and said)",
     .flags = CLI_NEGATED},
    {"verify", OUTPUT, CLI_FLAG, FIELD(run.synth.verifies),
     .help = "read outputs back before they get their names"},
    {"profile-memory", RESOURCES, CLI_TEXT, FIELD(profile_memory), "FILE",
     .help = "write what each stage holds, as JSON lines (-v\nprints it as a table)"},
    CLI_INCLUDE(cli_progress_rows, 0),
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_synth = {
    .name = "synth",
    .summary = "make averaged checkpoints",
    .options = rows,
    .examples = "  posthoc-ema synth --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      the average of relative width 0.1 at the newest snapshot\n"
                "  posthoc-ema synth --sigma-rel 0.05:0.25:0.05 ckpts/ sweep/\n"
                "      five widths in one pass over the snapshots\n"
                "  posthoc-ema synth --sigma-rel 0.1 --metric profile edm2/ out.pkl\n"
                "      a copy of the newest pickle that holds the average, with the weights of\n"
                "      the paper and of EDM2\n"
                "  posthoc-ema synth --sigma-rel 0.1 --shard-size 5GB ckpts/ model/\n"
                "      a directory of safetensors files and their index\n"
                "  posthoc-ema synth --input-sigma 0.05,0.28 --update-every 10 --sigma-rel 0.1 \\\n"
                "      posthoc-ema/ out.safetensors\n"
                "      files of pytorch-posthoc-ema, whose settings are not in them\n"
                "  posthoc-ema synth --convert model.pt model.safetensors\n"
                "      one checkpoint in another format\n"
                "  posthoc-ema synth --part 2/8 --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      the second of eight processes; posthoc-ema join out.safetensors ends it\n",
    .values_size = sizeof(struct cli_synth_values),
    .run = run,
};
