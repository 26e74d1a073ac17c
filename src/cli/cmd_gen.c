// SPDX-License-Identifier: Apache-2.0
/* cmd_gen.c - synthetic snapshots with a known truth. */
#include <string.h>

#include "commands.h"
#include "phema/cpu.h"
#include "phema/gen.h"
#include "phema/json.h"
#include "shared.h"

struct gen_values {
    struct cli_common common;
    const char *directory, *dtype, *truth_dtype, *format;
    struct cli_reals input_sigma, truth;
    uint64_t count, steps, tensors, params, update_every, seed, threads;
    bool is_raw, is_forced, skips_sync;
};

static enum phema_dtype dtype_named(const char *name, enum phema_dtype otherwise)
{
    static const struct {
        const char *name;
        enum phema_dtype dtype;
    } known[] = {{"f16", PHEMA_F16}, {"bf16", PHEMA_BF16}, {"f32", PHEMA_F32}, {"f64", PHEMA_F64}};
    for (size_t i = 0; name && i < ARRAY_LEN(known); i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].dtype;
    return otherwise;
}

static void write_json(struct phema_text *text, const char *directory,
                       const struct phema_gen_options *options)
{
    struct phema_json_out out = {.text = text};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_u64(&out, "version", 1);
    phema_json_out_string(&out, "directory", directory);
    phema_json_out_u64(&out, "snapshots",
                       options->count * (options->n_input_sigmas + (options->is_raw ? 1 : 0)));
    phema_json_out_u64(&out, "truths", options->n_truth_sigmas);
    phema_json_out_close(&out, '}');
    phema_text_puts(text, "\n");
}

static enum phema_status run(void *values, struct phema_error *err)
{
    static const double default_sigmas[] = {0.05, 0.1};
    static const double default_truths[] = {0.1};
    const struct gen_values *given = values;
    if (given->threads > 1024)
        return phema_fail(err, PHEMA_ERR_USAGE, "--threads: at most 1024");
    struct phema_gen_options options = {
        .count = given->count ? given->count : 8,
        .steps = given->steps ? given->steps : 4096,
        .input_sigmas = given->input_sigma.n ? given->input_sigma.items : default_sigmas,
        .n_input_sigmas = given->input_sigma.n ? given->input_sigma.n : ARRAY_LEN(default_sigmas),
        .truth_sigmas = given->truth.n ? given->truth.items : default_truths,
        .n_truth_sigmas = given->truth.n ? given->truth.n : ARRAY_LEN(default_truths),
        .dtype = dtype_named(given->dtype, PHEMA_F32),
        .truth_dtype = dtype_named(given->truth_dtype, PHEMA_F32),
        .n_tensors = given->tensors ? given->tensors : 8,
        .n_params = given->params ? given->params : 10000,
        .update_every = given->update_every ? given->update_every : 1,
        .is_raw = given->is_raw,
        .seed = given->seed,
        .n_threads = given->threads ? (unsigned)given->threads : phema_cpu_threads(),
        .replaces = given->is_forced,
        .syncs = !given->skips_sync,
    };
    enum phema_status status = phema_gen(given->directory, &options, err);
    if (status)
        return status;
    struct phema_text text = {0};
    if (given->common.is_json)
        write_json(&text, given->directory, &options);
    else
        phema_text_printf(&text, "%s\n", given->directory);
    status = cli_print(&text, err);
    phema_text_clear(&text);
    return status;
}

static const struct cli_opt rows[] = {
    {"DIR", OUTPUT, CLI_OPERAND, CLI_ROW(gen_values, directory), NULL,
     "snapshots go here, exact averages into DIR/truth", 0, 0},
    {"count", TARGET, CLI_COUNT, CLI_ROW(gen_values, count), "N",
     "snapshots of each width, evenly spaced (default 8)", CLI_POSITIVE, 0},
    {"steps", TARGET, CLI_COUNT, CLI_ROW(gen_values, steps), "T",
     "steps of the simulated training (default 4096)", CLI_POSITIVE, 0},
    {"input-sigma", TARGET, CLI_REALS, CLI_ROW(gen_values, input_sigma), "LIST",
     "widths of the snapshots (default 0.05,0.1)", 0, 0},
    {"truth", TARGET, CLI_REALS, CLI_ROW(gen_values, truth), "LIST",
     "widths of the exact averages at the last time\n(default 0.1)", 0, 0},
    {"update-every", TARGET, CLI_COUNT, CLI_ROW(gen_values, update_every), "U",
     "touch the snapshots' averages every U steps only,\nas ema-pytorch does (default 1)",
     CLI_POSITIVE, 0},
    {"tensors", TARGET, CLI_COUNT, CLI_ROW(gen_values, tensors), "N",
     "tensors in each file (default 8)", CLI_POSITIVE, 0},
    {"params", TARGET, CLI_COUNT, CLI_ROW(gen_values, params), "N",
     "parameters in all tensors together (default 10000)", CLI_POSITIVE, 0},
    {"seed", TARGET, CLI_COUNT, CLI_ROW(gen_values, seed), "S",
     "another training for every seed (default 0)", 0, 0},
    {"dtype", OUTPUT, CLI_CHOICE, CLI_ROW(gen_values, dtype), "f16|bf16|f32|f64",
     "of the snapshots (default f32)", 0, 0},
    {"truth-dtype", OUTPUT, CLI_CHOICE, CLI_ROW(gen_values, truth_dtype), "f16|bf16|f32|f64",
     "of the exact averages (default f32)", 0, 0},
    {"format", OUTPUT, CLI_CHOICE, CLI_ROW(gen_values, format), "safetensors", "of the files", 0,
     0},
    {"raw", OUTPUT, CLI_FLAG, CLI_ROW(gen_values, is_raw), NULL,
     "also write the parameters themselves, un-averaged", 0, 0},
    {"force", OUTPUT, CLI_FLAG, CLI_ROW(gen_values, is_forced), NULL, "replace existing files", 0,
     'f'},
    {"no-sync", OUTPUT, CLI_FLAG, CLI_ROW(gen_values, skips_sync), NULL,
     "do not wait until files are safe on disk", 0, 0},
    {"threads", RESOURCES, CLI_COUNT, CLI_ROW(gen_values, threads), "N",
     "default: the processors this process may use", CLI_POSITIVE, 'j'},
    CLI_COMMON_ROWS(gen_values),
    {0},
};

const struct cli_verb cli_gen = {
    .name = "gen",
    .summary = "synthetic snapshots with a known truth",
    .options = rows,
    .examples = "  posthoc-ema gen run && posthoc-ema synth --sigma-rel 0.1 run out.safetensors\n"
                "      a small training, and an average of it\n"
                "  posthoc-ema gen --count 64 --dtype f16 --truth 0.03,0.15 --seed 7 /tmp/run\n"
                "      more snapshots, as trainers write them, and two exact averages\n",
    .values_size = sizeof(struct gen_values),
    .run = run,
};
