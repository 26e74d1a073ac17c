// SPDX-License-Identifier: Apache-2.0
/* cmd_gen.c - synthetic snapshots with a known truth. */
#include <dirent.h>
#include <string.h>

#include "cli.h"
#include "phema/cpu.h"
#include "phema/json.h"
#include "phema/progress.h"
#include "phema/render.h"
#include "verb_options.h"

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

static void write_json(struct phema_strbuf *text, const struct gen_values *args)
{
    struct phema_json_out out;
    const struct phema_gen_options *options = &args->options;
    size_t n_times = options->n_truth_times ? options->n_truth_times : 1;
    render_json_begin(&out, text, false);
    phema_json_out_path(&out, "directory", args->directory);
    phema_json_out_u64(&out, "snapshots", count_snapshots(options));
    phema_json_out_u64(&out, "truths",
                       n_times * (options->truths.n_sigmas + options->truths.n_profiles));
    render_write_warnings(&out, &args->common.style);
    render_json_end(&out);
}

/* Snapshots of another training in the directory would be taken for the same series. */
static void warn_of_others(const struct gen_values *args)
{
    size_t n_made = count_snapshots(&args->options), n = 0;
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

static enum phema_status print(const struct gen_values *args, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (args->common.style.is_json) {
        write_json(&text, args);
    } else {
        render_write_path(&text, args->directory);
        phema_strbuf_puts(&text, "\n");
    }
    return cli_print(&text, &args->common.style, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct gen_values *args = values;
    struct phema_gen_options *options = &args->options;
    struct progress progress;
    options->n_threads = args->threads ? (unsigned)args->threads : phema_cpu_threads();
    options->report = report;
    options->context = &progress;
    progress_init(&progress, &args->common.style);
    progress_set_farewell(&progress, "nothing was written");
    enum phema_status status = gen_read_options(args, err);
    if (!status)
        status = phema_gen(args->directory, options, err);
    progress_finish(&progress);
    phema_claims_free(args->claims);
    if (status)
        return status;
    warn_of_others(args);
    return print(args, err);
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
