// SPDX-License-Identifier: Apache-2.0
/* cmd_verify.c - compares an output of synth with what its provenance says. */
#include "cli.h"
#include "phema/cpu.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "shared_options.h"

struct verify_values {
    struct cli_common common;
    struct phema_verify_options options;
    uint64_t threads;
};

static enum phema_status print(const struct verify_values *args,
                               const struct phema_verifying *verifying, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (args->common.style.is_json)
        verification_write_json(&text, &args->common.style, verifying);
    else
        verification_write_text(&text, verifying);
    return render_print(&text, err);
}

/* Of a team rank 0 prints. */
static enum phema_status run(void *values, struct phema_error *err)
{
    struct verify_values *args = values;
    struct phema_verify_options *options = &args->options;
    struct cli_commands commands;
    struct phema_verifying verifying;
    struct render_listener listener, replay;
    struct render_style brief = {.is_quiet = !args->common.style.is_verbose || !options->snapshots,
                                 .is_mute = true}; /* synth has warned, as is recorded */
    options->synth.n_threads = args->threads ? (unsigned)args->threads : phema_cpu_threads();
    options->team = args->common.team;
    options->commands = &commands.commands;
    cli_commands_init(&commands, &cli_synth, NULL);
    render_listen(&listener, &args->common.style);
    render_listen(&replay, &brief);
    struct phema_error unprinted = {0};
    enum phema_status status =
        phema_verify(&verifying, options, &listener.heard, &replay.heard, err);
    if (verifying.is_compared && print(args, &verifying, &unprinted)) {
        status = PHEMA_ERR_OUTPUT;
        *err = unprinted;
    }
    phema_verifying_clear(&verifying);
    return status;
}

#define FIELD(member) offsetof(struct verify_values, member)

static const struct cli_opt rows[] = {
    {"OUT", INPUT, CLI_OPERAND, FIELD(options.out),
     .help = "output of synth: a file, or a directory of shards"},
    {"snapshots", INPUT, CLI_TEXT, FIELD(options.snapshots), "FILE|DIR",
     .help = "the snapshots, where they have moved: directory,\nmanifest (*.json) or @list.txt"},
    CLI_INCLUDE(cli_pickle_rows, FIELD(options.checkpoint)),
    {"sample", NUMBERS, CLI_COUNT, FIELD(options.synth.sample), "N",
     .help = "compare N tiles only, evenly over all of them", .flags = CLI_POSITIVE},
    {"threads", RESOURCES, CLI_COUNT, FIELD(threads), "N",
     .help = "default: the processors this process may use", .flags = CLI_POSITIVE, .letter = 'j',
     .most = PHEMA_MAX_THREADS},
    {"io", RESOURCES, CLI_CHOICE, FIELD(options.synth.io), CLI_IO_MODES,
     .help = "how snapshots are read, as in synth"},
    {"io-depth", RESOURCES, CLI_COUNT, FIELD(options.synth.io_depth), "N",
     .help = "reads past the page cache in flight at once", .flags = CLI_POSITIVE,
     .most = PHEMA_READ_QUEUE_MAX_DEPTH},
    {"max-ram", RESOURCES, CLI_SIZE, FIELD(options.synth.max_ram_bytes), "SIZE",
     .help = "memory limit", .flags = CLI_POSITIVE | CLI_NEEDED},
    CLI_INCLUDE(cli_progress_rows, 0),
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_verify = {
    .name = "verify",
    .summary = "recompute an output of synth and compare it byte by byte",
    .options = rows,
    .examples = "  posthoc-ema verify out.safetensors\n"
                "      status 1 names the tensors that are not what they should be, 4 the\n"
                "      snapshot that has changed since\n"
                "  posthoc-ema verify --snapshots /archive/ckpts --sample 100 out.safetensors\n"
                "      a quick look, with snapshots that have moved\n",
    .values_size = sizeof(struct verify_values),
    .run = run,
};
