// SPDX-License-Identifier: Apache-2.0
/* cmd_gen.c - synthetic snapshots with a known truth. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "phema/cpu.h"
#include "phema/gen.h"
#include "phema/json.h"
#include "phema/profile.h"
#include "series_options.h"

struct gen_values {
    struct cli_common common;
    const char *directory, *dtype, *truth_dtype, *format;
    struct cli_reals input_sigma, truth, truth_at;
    struct cli_texts input_profile, truth_profile;
    uint64_t count, steps, tensors, params, update_every, seed, threads;
    bool is_raw, hides_update_every, is_forced, skips_sync;
    struct phema_claims *claims; /* the tables of profiles */
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

static void write_json(struct phema_strbuf *text, const char *directory,
                       const struct phema_gen_options *options)
{
    struct phema_json_out out = {.text = text};
    size_t n_times = options->n_truth_times ? options->n_truth_times : 1;
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_u64(&out, "version", 1);
    phema_json_out_path(&out, "directory", directory);
    phema_json_out_u64(&out, "snapshots",
                       options->count * (options->n_input_sigmas + options->n_input_profiles +
                                         (options->is_raw ? 1 : 0)));
    phema_json_out_u64(&out, "truths",
                       n_times * (options->n_truth_sigmas + options->n_truth_profiles));
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(text, "\n");
}

/* The last step is the end that all profiles must be able to have. */
static enum phema_status read_profile(struct phema_gen_profile *out, struct gen_values *given,
                                      const char *text, uint64_t steps, struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    enum phema_status status = phema_spec_parse(&spec, &given->common.arena, text, err);
    if (!status)
        status = phema_spec_claim(spec, given->claims, err);
    if (!status)
        status = phema_spec_profile(&out->profile, spec, (double)steps, err);
    if (status)
        return status == PHEMA_ERR_INPUTS ? PHEMA_ERR_USAGE : status;
    out->profile.update_every = spec->update_every;
    out->sigma_rel = spec->is_by_gamma ? PHEMA_UNKNOWN : spec->sigma_rel;
    out->text = spec->shown;
    out->name = spec->file_part;
    return PHEMA_OK;
}

static enum phema_status read_profiles(const struct phema_gen_profile **out, const char *option,
                                       struct gen_values *given, const struct cli_texts *texts,
                                       uint64_t steps, struct phema_error *err)
{
    struct phema_gen_profile *profiles =
        phema_arena_array(&given->common.arena, texts->n + 1, sizeof(*profiles));
    if (!profiles)
        return phema_fail_memory(err);
    for (size_t i = 0; i < texts->n; i++) {
        enum phema_status status = read_profile(&profiles[i], given, texts->items[i], steps, err);
        if (status)
            return phema_fail_in(err, status, "--%s", option);
    }
    *out = profiles;
    return PHEMA_OK;
}

static enum phema_status read_times(const uint64_t **out, struct phema_arena *arena,
                                    const struct cli_reals *reals, struct phema_error *err)
{
    uint64_t *times = phema_arena_array(arena, reals->n + 1, sizeof(*times));
    if (!times)
        return phema_fail_memory(err);
    struct phema_name_buffer shown;
    for (size_t i = 0; i < reals->n; i++) {
        double time = reals->items[i];
        if (!(time >= 1 && time < 0x1p53 && time == floor(time)))
            return phema_fail(err, PHEMA_ERR_USAGE, "--truth-at: expected whole steps, found %s",
                              phema_number_format(&shown, time));
        times[i] = (uint64_t)time;
    }
    *out = times;
    return PHEMA_OK;
}

/* Widths that nobody asked for are made where no profiles are asked for either. */
static void set_widths(struct phema_gen_options *options, const struct gen_values *given)
{
    static const double default_sigmas[] = {0.05, 0.1};
    static const double default_truths[] = {0.1};
    bool has_default_sigmas = !given->input_sigma.n && !given->input_profile.n;
    bool has_default_truths = !given->truth.n && !given->truth_profile.n;
    options->input_sigmas = has_default_sigmas ? default_sigmas : given->input_sigma.items;
    options->n_input_sigmas = has_default_sigmas ? ARRAY_LEN(default_sigmas) : given->input_sigma.n;
    options->truth_sigmas = has_default_truths ? default_truths : given->truth.items;
    options->n_truth_sigmas = has_default_truths ? ARRAY_LEN(default_truths) : given->truth.n;
}

static enum phema_status set_profiles(struct phema_gen_options *options, struct gen_values *given,
                                      struct phema_error *err)
{
    options->n_input_profiles = given->input_profile.n;
    options->n_truth_profiles = given->truth_profile.n;
    options->n_truth_times = given->truth_at.n;
    enum phema_status status = read_profiles(&options->input_profiles, "input-profile", given,
                                             &given->input_profile, options->steps, err);
    if (!status)
        status = read_profiles(&options->truth_profiles, "truth-profile", given,
                               &given->truth_profile, options->steps, err);
    return status ? status
                  : read_times(&options->truth_times, &given->common.arena, &given->truth_at, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct gen_values *given = values;
    if (given->threads > 1024)
        return phema_fail(err, PHEMA_ERR_USAGE, "--threads: at most 1024");
    struct phema_gen_options options = {
        .count = given->count ? given->count : 8,
        .steps = given->steps ? given->steps : 4096,
        .dtype = dtype_named(given->dtype, PHEMA_F32),
        .truth_dtype = dtype_named(given->truth_dtype, PHEMA_F32),
        .n_tensors = given->tensors ? given->tensors : 8,
        .n_params = given->params ? given->params : 10000,
        .update_every = given->update_every ? given->update_every : 1,
        .hides_update_every = given->hides_update_every,
        .is_raw = given->is_raw,
        .seed = given->seed,
        .n_threads = given->threads ? (unsigned)given->threads : phema_cpu_threads(),
        .replaces = given->is_forced,
        .syncs = !given->skips_sync,
    };
    set_widths(&options, given);
    enum phema_status status = phema_claims_new(&given->claims, err);
    options.claims = given->claims;
    if (!status)
        status = set_profiles(&options, given, err);
    if (!status)
        status = phema_gen(given->directory, &options, err);
    phema_claims_free(given->claims);
    if (status)
        return status;
    struct phema_strbuf text = {0};
    if (given->common.is_json) {
        write_json(&text, given->directory, &options);
    } else {
        cli_put_path(&text, given->directory);
        phema_strbuf_puts(&text, "\n");
    }
    status = given->common.is_json ? cli_print(&text, err) : cli_print_as_is(&text, err);
    phema_strbuf_clear(&text);
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
     "widths of the snapshots (default 0.05,0.1, unless\n--input-profile is given)", 0, 0},
    {"input-profile", TARGET, CLI_TEXTS, CLI_ROW(gen_values, input_profile), "SPEC",
     "snapshots of another shape: ema:half-life=500,\nwindow:512, raw, ... (repeatable)", 0, 0},
    {"truth", TARGET, CLI_REALS, CLI_ROW(gen_values, truth), "LIST",
     "widths of the exact averages (default 0.1, unless\n--truth-profile is given)", 0, 0},
    {"truth-profile", TARGET, CLI_TEXTS, CLI_ROW(gen_values, truth_profile), "SPEC",
     "exact averages of another shape (repeatable)", 0, 0},
    {"truth-at", TARGET, CLI_REALS, CLI_ROW(gen_values, truth_at), "LIST",
     "steps of the exact averages (default the last)", 0, 0},
    {"update-every", TARGET, CLI_COUNT, CLI_ROW(gen_values, update_every), "U",
     "touch power functions, of snapshots alone, every U\nsteps only, as ema-pytorch does "
     "(default 1)",
     CLI_POSITIVE, 0},
    {"hide-update-every", TARGET, CLI_FLAG, CLI_ROW(gen_values, hides_update_every), NULL,
     "files do not say how often they were touched, as\nthose of ema-pytorch do not", 0, 0},
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
                "      more snapshots, as trainers write them, and two exact averages\n"
                "  posthoc-ema gen --input-profile ema:half-life=200 --input-profile raw run\n"
                "      a traditional average, and the parameters themselves\n",
    .values_size = sizeof(struct gen_values),
    .run = run,
};
