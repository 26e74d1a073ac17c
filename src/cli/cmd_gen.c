// SPDX-License-Identifier: Apache-2.0
/* cmd_gen.c - synthetic snapshots with a known truth. */
#include <dirent.h>
#include <math.h>
#include <string.h>

#include "cli.h"
#include "phema/cpu.h"
#include "phema/design_question.h"
#include "phema/gen.h"
#include "phema/json.h"
#include "phema/profile.h"
#include "phema/progress.h"
#include "phema/render.h"
#include "phema/report.h"
#include "remedy/remedy.h"
#include "shared_options.h"

struct gen_values {
    struct cli_common common;
    struct phema_gen_options options;
    const char *directory;
    struct cli_reals truth_at;
    struct cli_texts input_profile, truth_profile, reset_at;
    unsigned format; /* CLI_CHOICE */
    uint64_t threads;
    const char *design;
    struct phema_claims *claims; /* the files that tables of profiles were read from */
};

/* Of --dtype and --truth-dtype. */
#define DTYPES             "f16|bf16|f32|f64"
#define MEANINGS_OF_DTYPES CLI_MEANINGS(PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64)

/* Raw ones are asked for at all times or at multiples, never both. */
static uint64_t count_snapshots(const struct phema_gen_options *options)
{
    const struct phema_gen_kinds *made = &options->snapshots;
    return options->count * (made->n_sigmas + made->n_profiles + options->is_raw) +
           (options->raw_every ? options->steps / options->raw_every : 0);
}

static void write_json(struct phema_strbuf *text, const struct gen_values *args,
                       const struct phema_gen_options *options)
{
    struct phema_json_out out;
    size_t n_times = options->n_truth_times ? options->n_truth_times : 1;
    render_json_begin(&out, text, false);
    phema_json_out_path(&out, "directory", args->directory);
    phema_json_out_u64(&out, "snapshots", count_snapshots(options));
    phema_json_out_u64(&out, "truths",
                       n_times * (options->truths.n_sigmas + options->truths.n_profiles));
    render_write_warnings(&out, &args->common.style);
    render_json_end(&out);
}

/* Every profile must accept the last step as its end. */
static enum phema_status read_profile(struct phema_gen_profile *out, struct gen_values *args,
                                      const char *text, uint64_t steps, struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    enum phema_status status = phema_spec_parse(&spec, &args->common.arena, text, err);
    if (status)
        return status;
    status = phema_spec_claim(spec, args->claims, err);
    if (status)
        return status;
    status = phema_spec_profile(&out->profile, spec, (double)steps, err);
    if (status)
        return status;
    out->profile.update_every = spec->update_every;
    out->sigma_rel = spec->is_by_gamma ? PHEMA_UNKNOWN : spec->sigma_rel;
    out->text = spec->canonical;
    out->name = spec->file_part;
    return PHEMA_OK;
}

/* Widths and profiles of snapshots, or of exact averages. */
struct kinds_option {
    const char *widths, *profiles;
    const double *usual; /* [n_usual] where neither is given */
    size_t n_usual;
};

static enum phema_status read_kinds(struct phema_gen_kinds *kinds,
                                    const struct kinds_option *option, struct gen_values *args,
                                    const struct cli_texts *texts, uint64_t steps,
                                    struct phema_error *err)
{
    struct phema_gen_profile *profiles =
        phema_arena_array(&args->common.arena, texts->n + 1, sizeof(*profiles));
    if (!profiles)
        return phema_fail_memory(err);
    kinds->profiles = profiles;
    kinds->n_profiles = texts->n;
    if (!kinds->n_sigmas && !texts->n) {
        kinds->sigmas = option->usual;
        kinds->n_sigmas = option->n_usual;
    }
    enum phema_status status =
        cli_check_widths(kinds->sigmas, kinds->n_sigmas, option->widths, err);
    if (status)
        return status;
    for (size_t i = 0; i < texts->n; i++) {
        status = read_profile(&profiles[i], args, texts->items[i], steps, err);
        if (status)
            return cli_fail_in_option(err, status == PHEMA_ERR_INPUTS ? PHEMA_ERR_USAGE : status,
                                      option->profiles);
    }
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
            return cli_fail_option(err, PHEMA_ERR_USAGE, "truth-at",
                                   "expected whole steps, found %s",
                                   phema_number_format(&shown, time));
        times[i] = (uint64_t)time;
    }
    *out = times;
    return PHEMA_OK;
}

/* --design: its times, widths and dtypes. */
static enum phema_status use_design(struct phema_gen_options *options, struct gen_values *args,
                                    struct phema_error *err)
{
    static const char *const others[] = {"count",         "steps", "input-sigma",
                                         "input-profile", "dtype", "raw"};
    struct design_read design;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (cli_is_given(&args->common, others[i]))
            return cli_fail_option(err, PHEMA_ERR_USAGE, others[i], "the design says it");
    enum phema_status status = design_read_file(&design, &args->common.arena, args->design, err);
    if (!status)
        status = phema_claims_add_input(args->claims, args->design, "the design", err);
    if (status)
        return cli_fail_in_option(err, status, "design");
    options->steps = (uint64_t)design.until;
    options->times = design.times;
    options->count = design.n_times;
    options->snapshots.sigmas = design.sigma_rels;
    options->snapshots.n_sigmas = design.n;
    options->is_raw = design.has_raw;
    options->dtype = design.dtype;
    options->raw_every = design.raw_every;
    if (!design.ema)
        return PHEMA_OK;
    args->input_profile.items = phema_arena_array(&args->common.arena, 1, sizeof(const char *));
    if (!args->input_profile.items)
        return phema_fail_memory(err);
    args->input_profile.items[0] = design.ema;
    args->input_profile.n = 1;
    return PHEMA_OK;
}

static enum phema_status read_averages(struct phema_gen_options *options, struct gen_values *args,
                                       struct phema_error *err)
{
    static const double usual[] = {0.05, 0.1};
    const struct kinds_option of_snapshots = {"input-sigma", "input-profile", usual,
                                              args->design ? 0 : ARRAY_LEN(usual)};
    const struct kinds_option of_truths = {"truth", "truth-profile", &usual[1], 1};
    enum phema_status status = read_kinds(&options->snapshots, &of_snapshots, args,
                                          &args->input_profile, options->steps, err);
    if (!status)
        status = read_kinds(&options->truths, &of_truths, args, &args->truth_profile,
                            options->steps, err);
    if (!status)
        status = read_times(&options->truth_times, &args->common.arena, &args->truth_at, err);
    if (status)
        return status;
    struct phema_reset *resets = NULL;
    status = phema_resets_parse(&resets, &args->common.arena, args->reset_at.items,
                                args->reset_at.n, err);
    options->n_truth_times = args->truth_at.n;
    options->resets = resets;
    options->n_resets = args->reset_at.n;
    return status ? cli_fail_in_option(err, status, "reset-at") : PHEMA_OK;
}

/* Snapshots of another training in the directory would be taken for the same series. */
static void warn_of_others(const struct gen_values *args, const struct phema_gen_options *options)
{
    size_t n_made = count_snapshots(options), n = 0;
    DIR *stream = opendir(args->directory);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        n += strncmp(entry->d_name, "snapshot-", 9) == 0;
    if (stream)
        (void)closedir(stream);
    if (n > n_made)
        render_warn(
            &args->common.style,
            "%s: also holds %zu snapshot%s of another training; a series needs a directory of "
            "its own",
            args->directory, n - n_made, n - n_made == 1 ? "" : "s");
}

static void report(void *progress, uint64_t done, uint64_t total, double elapsed_s)
{
    const struct phema_progress state = {.done_bytes = done,
                                         .total_bytes = total,
                                         .elapsed_s = elapsed_s,
                                         .stage = "simulating",
                                         .is_other_unit = true};
    progress_report(progress, &state);
}

static enum phema_status print(const struct gen_values *args,
                               const struct phema_gen_options *options, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (args->common.style.is_json) {
        write_json(&text, args, options);
    } else {
        render_write_path(&text, args->directory);
        phema_strbuf_puts(&text, "\n");
    }
    return cli_print(&text, &args->common.style, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct gen_values *args = values;
    struct phema_gen_options options = args->options;
    struct progress progress;
    options.n_threads = args->threads ? (unsigned)args->threads : phema_cpu_threads();
    progress_init(&progress, &args->common.style);
    progress_set_farewell(&progress, "nothing was written");
    options.report = report;
    options.context = &progress;
    enum phema_status status = phema_claims_new(&args->claims, err);
    options.claims = args->claims;
    if (!status && args->design)
        status = use_design(&options, args, err);
    if (!status)
        status = read_averages(&options, args, err);
    if (!status)
        status = phema_gen(args->directory, &options, err);
    progress_finish(&progress);
    phema_claims_free(args->claims);
    if (status)
        return status;
    warn_of_others(args, &options);
    return print(args, &options, err);
}

#define FIELD(member) offsetof(struct gen_values, member)

static const struct cli_opt rows[] = {
    {"DIR", OUTPUT, CLI_OPERAND, FIELD(directory),
     .help = "snapshots go here, exact averages into DIR/truth"},
    {"count", TARGET, CLI_COUNT, FIELD(options.count), "N",
     .help = "snapshots of each width, evenly spaced (default 8)",
     .flags = CLI_POSITIVE | CLI_EVERYDAY, .initial = 8},
    {"steps", TARGET, CLI_COUNT, FIELD(options.steps), "T",
     .help = "steps of the simulated training (default 4096)", .flags = CLI_POSITIVE | CLI_EVERYDAY,
     .initial = 4096},
    {"input-sigma", TARGET, CLI_REALS,
     CLI_LIST(struct gen_values, options.snapshots.sigmas, options.snapshots.n_sigmas), "LIST",
     .help = "widths of the snapshots (default 0.05,0.1, unless\n--input-profile is given)",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"input-profile", TARGET, CLI_TEXTS, FIELD(input_profile), "SPEC",
     .help = "snapshots of another shape: ema:half-life=500,\nwindow:512, raw, ... (repeatable)",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"truth", TARGET, CLI_REALS,
     CLI_LIST(struct gen_values, options.truths.sigmas, options.truths.n_sigmas), "LIST",
     .help = "widths of the exact averages (default 0.1, unless\n--truth-profile is given)",
     .flags = CLI_EVERYDAY},
    {"truth-profile", TARGET, CLI_TEXTS, FIELD(truth_profile), "SPEC",
     .help = "exact averages of another shape (repeatable)"},
    {"truth-at", TARGET, CLI_REALS, FIELD(truth_at), "LIST",
     .help = "steps of the exact averages (default the last)"},
    {"update-every", TARGET, CLI_COUNT, FIELD(options.update_every), "U",
     .help = "update the power functions of snapshots every U\nsteps only, as ema-pytorch does "
             "(default 1)",
     .flags = CLI_POSITIVE | CLI_NEEDED, .initial = 1},
    {"hide-update-every", TARGET, CLI_FLAG, FIELD(options.hides_update_every),
     .help = "leave update_every out of the files, as\nema-pytorch does"},
    {"reset-at", TARGET, CLI_TEXTS, FIELD(reset_at), "T[,counter]",
     .help = "after step T, the averages of snapshots become\ncopies of the parameters; counter: "
             "and\ncount from 0 (repeatable)",
     .flags = CLI_NEEDED},
    {"design", TARGET, CLI_TEXT, FIELD(design), "FILE",
     .help = "times, widths and dtype of this design, which\ndesign -o has written",
     .flags = CLI_NEEDED},
    {"motion", TARGET, CLI_CHOICE, FIELD(options.motion), "slowing|walk|white|drift|fall",
     .help = "how parameters move (default slowing); the others\nare those of design --motion"},
    {"tensors", TARGET, CLI_COUNT, FIELD(options.n_tensors), "N",
     .help = "tensors in each file (default 8)", .flags = CLI_POSITIVE, .initial = 8},
    {"params", TARGET, CLI_COUNT, FIELD(options.n_params), "N",
     .help = "parameters in all tensors together (default 10000)",
     .flags = CLI_POSITIVE | CLI_EVERYDAY, .initial = 10000},
    {"seed", TARGET, CLI_COUNT, FIELD(options.seed), "S",
     .help = "another training for every seed (default 0)", .flags = CLI_EVERYDAY},
    {"dtype", OUTPUT, CLI_CHOICE, FIELD(options.dtype), DTYPES,
     .help = "of the snapshots (default f32)", .flags = CLI_EVERYDAY, .initial = PHEMA_F32,
     .meanings = MEANINGS_OF_DTYPES},
    {"truth-dtype", OUTPUT, CLI_CHOICE, FIELD(options.truth_dtype), DTYPES,
     .help = "of the exact averages (default f32)", .initial = PHEMA_F32,
     .meanings = MEANINGS_OF_DTYPES},
    {"format", OUTPUT, CLI_CHOICE, FIELD(format), "safetensors", .help = "of the files"},
    {"raw", OUTPUT, CLI_FLAG, FIELD(options.is_raw),
     .help = "also write the parameters themselves, un-averaged"},
    {"force", OUTPUT, CLI_FLAG, FIELD(options.replaces), .help = "replace existing files",
     .flags = CLI_EVERYDAY, .letter = 'f'},
    {"no-sync", OUTPUT, CLI_FLAG, FIELD(options.syncs),
     .help = "do not wait until files are on disk", .flags = CLI_NEGATED | CLI_INITIALLY_TRUE},
    {"threads", RESOURCES, CLI_COUNT, FIELD(threads), "N",
     .help = "default: the processors this process may use", .flags = CLI_POSITIVE, .letter = 'j',
     .most = PHEMA_MAX_THREADS},
    CLI_INCLUDE(cli_progress_rows, 0),
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_gen = {
    .name = "gen",
    .summary = "make synthetic snapshots with a known truth",
    .options = rows,
    .examples = "  posthoc-ema gen run && posthoc-ema synth --sigma-rel 0.1 run out.safetensors\n"
                "      a small training, and its average\n"
                "  posthoc-ema gen --count 64 --dtype f16 --truth 0.03,0.15 --seed 7 /tmp/run\n"
                "      more snapshots, as trainers write them, and two exact averages\n"
                "  posthoc-ema gen --input-profile ema:half-life=200 --input-profile raw run\n"
                "      a traditional average, and the parameters themselves\n",
    .values_size = sizeof(struct gen_values),
    .run = run,
};
