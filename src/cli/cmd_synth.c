// SPDX-License-Identifier: Apache-2.0
/* cmd_synth.c - make averaged checkpoints. */
#include <string.h>

#include "commands.h"
#include "phema/cpu.h"
#include "phema/json.h"
#include "report.h"
#include "shared.h"

struct synth_values {
    struct cli_common common;
    struct cli_series_values series;
    struct cli_target_values target;
    const char *out, *into, *dtype, *overflow, *accumulate;
    bool is_forced, skips_sync, is_conversion;
    uint64_t threads, shard_size, level, max_ram;
};

static void write_paths(struct phema_text *out, const struct synth_values *given,
                        const struct phema_plan *plan, const struct phema_outputs *outputs,
                        const struct phema_synth_result *result)
{
    if (!given->common.is_json) {
        for (size_t j = 0; j < outputs->m; j++)
            phema_text_printf(out, "%s\n", outputs->items[j].path);
        return;
    }
    struct phema_json_out json = {.text = out, .is_pretty = true};
    phema_json_out_open(&json, NULL, '{');
    phema_json_out_u64(&json, "version", 1);
    phema_json_out_open(&json, "outputs", '[');
    for (size_t j = 0; j < outputs->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        phema_json_out_open(&json, NULL, '{');
        phema_json_out_string(&json, "file", outputs->items[j].path);
        phema_json_out_u64(&json, "bytes", outputs->items[j].size_bytes);
        phema_json_out_number(&json, "sigma_rel", target->sigma_rel);
        phema_json_out_number(&json, "gamma", target->gamma);
        phema_json_out_number(&json, "time", target->time);
        phema_json_out_string(&json, "metric", plan->metric);
        phema_json_out_number(&json, "profile_error", target->solution.profile_error);
        phema_json_out_number(&json, "norm1", target->solution.norm1);
        phema_json_out_number(&json, "norm2", target->solution.norm2);
        phema_json_out_open(&json, "predicted_error", '{');
        phema_json_out_number(&json, "total", target->solution.predicted.total);
        phema_json_out_number(&json, "profile", target->solution.predicted.profile);
        phema_json_out_number(&json, "rounding", target->solution.predicted.rounding);
        phema_json_out_number(&json, "paper_weights", target->solution.predicted.paper_weights);
        phema_json_out_close(&json, '}');
        phema_json_out_close(&json, '}');
    }
    phema_json_out_close(&json, ']');
    phema_json_out_u64(&json, "read_bytes", result->read_bytes);
    phema_json_out_u64(&json, "written_bytes", result->written_bytes);
    phema_json_out_number(&json, "seconds", result->elapsed_s);
    phema_json_out_u64(&json, "peak_anonymous_bytes", result->peak_anonymous_bytes);
    phema_json_out_u64(&json, "peak_resident_bytes", result->peak_resident_bytes);
    phema_json_out_u64(&json, "nan", result->n_nan);
    phema_json_out_u64(&json, "inf", result->n_inf);
    phema_json_out_close(&json, '}');
    phema_text_puts(out, "\n");
}

static struct phema_outputs_options outputs_options(const struct synth_values *given)
{
    struct phema_outputs_options options = {
        .out = given->out,
        .into = given->into,
        .key = given->series.key,
        .shard_bytes = given->shard_size,
        .level = (int)given->level,
        .is_conversion = given->is_conversion,
        .checkpoint = {given->series.allow_global.items, given->series.allow_global.n},
        .accumulator = given->accumulate && strcmp(given->accumulate, "f32") == 0 ? "f32" : "f64",
        .command_options = given->common.repeated_options,
    };
    static const struct {
        const char *name;
        enum phema_dtype dtype;
    } dtypes[] = {{"f32", PHEMA_F32}, {"f16", PHEMA_F16}, {"bf16", PHEMA_BF16}};
    for (size_t i = 0; given->dtype && i < ARRAY_LEN(dtypes); i++)
        if (strcmp(given->dtype, dtypes[i].name) == 0) {
            options.has_dtype = true;
            options.dtype = dtypes[i].dtype;
        }
    return options;
}

static struct phema_synth_options synth_options(const struct synth_values *given,
                                                struct progress *progress)
{
    struct phema_synth_options options = {
        .n_threads = given->threads ? (unsigned)given->threads : phema_cpu_threads(),
        .accumulator = given->accumulate && strcmp(given->accumulate, "f32") == 0
                           ? PHEMA_ACCUMULATE_F32
                           : PHEMA_ACCUMULATE_F64,
        .replaces = given->is_forced,
        .syncs = !given->skips_sync,
        .max_ram_bytes = given->max_ram,
        .report = progress_report,
        .context = progress,
    };
    if (given->overflow && strcmp(given->overflow, "saturate") == 0)
        options.overflow = PHEMA_OVERFLOW_SATURATES;
    if (given->overflow && strcmp(given->overflow, "inf") == 0)
        options.overflow = PHEMA_OVERFLOW_BECOMES_INF;
    return options;
}

static enum phema_status carry_out(const struct synth_values *given, const struct phema_plan *plan,
                                   struct phema_outputs *outputs, struct phema_error *err)
{
    struct progress progress;
    progress_init(&progress, &given->common);
    struct phema_synth_options options = synth_options(given, &progress);
    struct phema_synth_result result;
    enum phema_status status = phema_synth_run(&result, plan, outputs, &options, err);
    progress_finish(&progress);
    if (status)
        return status;
    report_synth(&given->common, plan, outputs, &result);
    struct phema_text text = {0};
    write_paths(&text, given, plan, outputs, &result);
    status = cli_print(&text, err);
    phema_text_clear(&text);
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct synth_values *given = values;
    if (given->threads > 1024)
        return phema_fail(err, PHEMA_ERR_USAGE, "--threads: at most 1024");
    if (given->level > 22)
        return phema_fail(err, PHEMA_ERR_USAGE, "--level: from 1 to 22");
    struct phema_plan_options options;
    enum phema_status status =
        cli_plan_options(&options, &given->common, &given->series, &given->target, err);
    if (status)
        return status;
    options.series.may_lack_key = given->into != NULL;
    if (given->is_conversion) {
        options.is_conversion = options.series.is_conversion = options.series.is_alone = true;
        options.series.needs_no_profiles = true;
        if (!options.series.key)
            options.series.key = "."; /* all of it */
    }
    struct phema_plan *plan = NULL;
    status = phema_plan_make(&plan, &options, err);
    if (status)
        return status;
    if (given->is_conversion)
        report_conversion(&given->common, plan->series);
    else
        report_series(&given->common, plan->series);
    struct phema_outputs outputs = {0};
    struct phema_outputs_options naming = outputs_options(given);
    if (!given->is_conversion)
        report_plan(&given->common, plan, naming.dtype, naming.has_dtype);
    status = cli_check_error(plan, given->target.max_error, err);
    if (!status)
        status = phema_outputs_make(&outputs, plan, &naming, err);
    if (!status)
        report_into(&given->common, given->into, &outputs);
    if (!status)
        status = carry_out(given, plan, &outputs, err);
    phema_outputs_clear(&outputs);
    phema_plan_free(plan);
    return status;
}

static const struct cli_opt rows[] = {
    CLI_SERIES_ROWS(synth_values),
    CLI_TARGET_ROWS(synth_values),
    {"convert", TARGET, CLI_FLAG, CLI_ROW(synth_values, is_conversion), NULL,
     "no average: SNAPSHOTS is one checkpoint, written\nas it is in the format of OUT",
     CLI_SHAPES_BYTES, 0},
    {"OUT", OUTPUT, CLI_OPERAND, CLI_ROW(synth_values, out), NULL,
     "a file, whose end says what is written; a\ndirectory, which takes the form of the newest\n"
     "snapshot; or names like sweep/{time}-{sigma}.pt",
     0, 0},
    {"into", OUTPUT, CLI_TEXT, CLI_ROW(synth_values, into), "FILE",
     "replace the tensors in a copy of FILE, any\ncheckpoint of the model (default for .pt, .pth,\n"
     ".ckpt and .pkl: of the newest snapshot)",
     CLI_SHAPES_BYTES, 0},
    {"shard-size", OUTPUT, CLI_SIZE, CLI_ROW(synth_values, shard_size), "SIZE",
     "write a directory of safetensors files of at most\nthis size (512M, 2GiB, 1e9), and their "
     "index",
     CLI_SHAPES_BYTES | CLI_POSITIVE, 0},
    {"level", OUTPUT, CLI_COUNT, CLI_ROW(synth_values, level), "N",
     "how far .safetensors.zst is compressed: 1 to 22\n(default 3)", CLI_POSITIVE, 0},
    {"dtype", OUTPUT, CLI_CHOICE, CLI_ROW(synth_values, dtype), "same|f32|f16|bf16",
     "dtype of the averages (default same); not for\n.pt, .pth, .ckpt, .pkl and --into",
     CLI_SHAPES_BYTES, 0},
    {"overflow", OUTPUT, CLI_CHOICE, CLI_ROW(synth_values, overflow), "error|saturate|inf",
     "averages too large for the dtype (default error)", CLI_SHAPES_BYTES, 0},
    {"buffers", OUTPUT, CLI_CHOICE, CLI_ROW(synth_values, series.buffers), "newest|average",
     "buffers, where files tell them from parameters\n(default newest)", CLI_SHAPES_BYTES, 0},
    {"force", OUTPUT, CLI_FLAG, CLI_ROW(synth_values, is_forced), NULL, "replace existing outputs",
     0, 'f'},
    {"no-sync", OUTPUT, CLI_FLAG, CLI_ROW(synth_values, skips_sync), NULL,
     "do not wait until outputs are safe on disk", 0, 0},
    {"accumulate", NUMBERS, CLI_CHOICE, CLI_ROW(synth_values, accumulate), "auto|f64|f32",
     "precision of the sums (auto: f64)", CLI_SHAPES_BYTES, 0},
    {"threads", RESOURCES, CLI_COUNT, CLI_ROW(synth_values, threads), "N",
     "default: the processors this process may use", CLI_POSITIVE, 'j'},
    {"max-ram", RESOURCES, CLI_SIZE, CLI_ROW(synth_values, max_ram), "SIZE",
     "end with status 7 where more memory is needed,\nwindows of compressed snapshots included",
     CLI_POSITIVE, 0},
    {"progress", MESSAGES, CLI_CHOICE, CLI_ROW(synth_values, common.progress),
     "auto|bar|plain|json|none", "how progress is shown", 0, 0},
    CLI_COMMON_ROWS(synth_values),
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
                "      one checkpoint in another format\n",
    .values_size = sizeof(struct synth_values),
    .run = run,
};
