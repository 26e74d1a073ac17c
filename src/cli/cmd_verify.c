// SPDX-License-Identifier: Apache-2.0
/* cmd_verify.c - compares an output of synth with what its provenance says. */
#include "cli.h"
#include "phema/cpu.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "shared_options.h"

struct verify_values {
    struct cli_common common;
    struct cli_texts outs;
    struct phema_verify_options options;
    uint64_t threads;
};

/* Lines are printed at once, JSON at the end. */
struct results {
    struct phema_strbuf json_text;
    struct phema_json_out json;
    bool is_compared; /* the last output was: its result is in the JSON */
    size_t n_bad;
    enum phema_status worst;
};

static enum phema_status print(struct results *results, const struct verify_values *args,
                               const struct phema_verifying *verifying, struct phema_error *err)
{
    if (args->common.style.is_json) {
        verification_write_json(&results->json, &args->common.style, verifying);
        return PHEMA_OK;
    }
    struct phema_strbuf text = {0};
    verification_write_text(&text, verifying);
    return render_print(&text, err);
}

/* Of a team rank 0 prints. */
static enum phema_status verify(struct results *results, const struct verify_values *args,
                                const char *out, struct phema_error *err)
{
    struct phema_verify_options options = args->options;
    struct cli_commands commands;
    struct phema_verifying verifying;
    struct render_listener listener, replay;
    struct render_style brief = {.is_quiet = !args->common.style.is_verbose || !options.snapshots,
                                 .is_mute = true}; /* synth has warned, as is recorded */
    options.out = out;
    options.synth.n_threads = args->threads ? (unsigned)args->threads : phema_cpu_threads();
    options.team = args->common.team;
    options.commands = &commands.commands;
    cli_commands_init(&commands, &cli_synth, NULL);
    render_listen(&listener, &args->common.style);
    render_listen(&replay, &brief);
    struct phema_error unprinted = {0};
    enum phema_status status =
        phema_verify(&verifying, &options, &listener.heard, &replay.heard, err);
    results->is_compared = verifying.is_compared;
    if (verifying.is_compared && print(results, args, &verifying, &unprinted)) {
        status = PHEMA_ERR_OUTPUT;
        *err = unprinted;
    }
    phema_verifying_clear(&verifying);
    return status;
}

/* One of several: a failure is told at once, and the others follow. */
static void verify_next(struct results *results, const struct verify_values *args, const char *out)
{
    const struct phema_team *team = phema_team_of(args->common.team);
    struct phema_error err = {0};
    bool is_json = args->common.style.is_json;
    phema_strbuf_clear(args->common.style.warnings); /* those of the output before */
    if (is_json)
        phema_json_out_open(&results->json, NULL, '{');
    enum phema_status status = verify(results, args, out, &err);
    phema_error_clear_changes(&err); /* they would be about all outputs */
    if (is_json && !results->is_compared) {
        phema_json_out_path(&results->json, "file", out);
        cli_write_error(&results->json, &err, status);
    }
    if (is_json)
        phema_json_out_close(&results->json, '}');
    if (status && err.message[0] && (!team || team->rank == 0))
        cli_say_error(&err);
    results->n_bad += status != PHEMA_OK;
    if (status > results->worst)
        results->worst = status;
}

static enum phema_status verify_all(struct results *results, const struct verify_values *args,
                                    const char *const *outs, size_t n, struct phema_error *err)
{
    if (n == 1)
        return verify(results, args, outs[0], err);
    phema_json_out_open(&results->json, "outputs", '[');
    for (size_t i = 0; i < n; i++)
        verify_next(results, args, outs[i]);
    phema_json_out_close(&results->json, ']');
    return results->worst
               ? phema_fail(err, results->worst, "not as synth would make them: %zu of %zu outputs",
                            results->n_bad, n)
               : PHEMA_OK;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct verify_values *args = values;
    struct results results = {.n_bad = 0};
    const char **outs = NULL;
    size_t n = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < args->outs.n && !status; i++)
        status = phema_outputs_list(&outs, &n, &args->common.arena, args->outs.items[i],
                                    &args->options.checkpoint, err);
    if (status)
        return status;
    render_json_begin(&results.json, &results.json_text, true);
    status = verify_all(&results, args, outs, n, err);
    render_json_end(&results.json);
    struct phema_error unprinted = {0};
    bool has_result = args->common.style.is_json && (n > 1 || results.is_compared);
    if (has_result && render_print(&results.json_text, &unprinted)) {
        status = PHEMA_ERR_OUTPUT;
        *err = unprinted;
    }
    phema_strbuf_clear(&results.json_text);
    return status;
}

#define FIELD(member) offsetof(struct verify_values, member)

static const struct cli_opt rows[] = {
    {"OUT", INPUT, CLI_OPERANDS, FIELD(outs),
     .help = "outputs of synth: files, directories of shards, or\ndirectories of outputs"},
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
                "      a quick look, with snapshots that have moved\n"
                "  posthoc-ema verify sweep/\n"
                "      every output in it, one line each; the status is the worst one\n",
    .values_size = sizeof(struct verify_values),
    .run = run,
};
