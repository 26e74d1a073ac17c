// SPDX-License-Identifier: Apache-2.0
/* cmd_verify.c - compares an output of synth with what its provenance says. */
#include <string.h>

#include "cli.h"
#include "phema/cpu.h"
#include "phema/progress.h"
#include "remedy/remedy.h"
#include "shared_options.h"

/* The text names at most this many tensors and snapshots. */
#define MAX_NAMED 10

struct verify_values {
    struct cli_common common;
    struct phema_verify_options options;
    uint64_t threads;
};

static void write_checks_json(struct phema_json_out *json, const struct phema_provenance *recorded)
{
    if (!recorded->verdict) {
        phema_json_out_null(json, "recorded_checks");
        return;
    }
    phema_json_out_open(json, "recorded_checks", '{');
    phema_json_out_string(json, "verdict", recorded->verdict);
    if (recorded->reason)
        phema_json_out_string(json, "reason", recorded->reason);
    else
        phema_json_out_null(json, "reason");
    phema_json_out_close(json, '}');
}

/* What synth said of the snapshots when it made the output. */
static void write_checks_line(struct phema_strbuf *text, const struct phema_provenance *recorded)
{
    bool is_wrong = recorded->verdict && strcmp(recorded->verdict, "wrong") == 0;
    bool is_doubtful = recorded->verdict && strcmp(recorded->verdict, "doubtful") == 0;
    if (!is_wrong && !is_doubtful)
        return;
    phema_strbuf_puts(text, is_wrong ? "  made of snapshots that do not fit their labels: "
                                     : "  made of snapshots in doubt: ");
    phema_strbuf_puts_escaped(text,
                              recorded->reason ? recorded->reason : "the reason is not recorded");
    phema_strbuf_puts(text, "\n");
}

static void write_json(struct phema_strbuf *text, const struct render_style *style,
                       const struct phema_verifying *verifying)
{
    const struct phema_verification *found = &verifying->found;
    const struct phema_series *series = verifying->prepared.plan->series;
    struct phema_json_out json;
    render_json_begin(&json, text, true);
    phema_json_out_path(&json, "file", verifying->options->out);
    phema_json_out_bool(&json, "equal", phema_verification_is_equal(found));
    phema_json_out_bool(&json, "same_weights", verifying->are_weights_same);
    write_checks_json(&json, verifying->recorded);
    phema_json_out_u64(&json, "snapshots", verifying->recorded->n_inputs);
    phema_json_out_u64(&json, "elements", found->n_elems);
    phema_json_out_u64(&json, "tiles", found->n_tiles);
    phema_json_out_u64(&json, "tiles_compared", found->n_taken);
    phema_json_out_open(&json, "differences", '[');
    for (size_t x = 0; x < found->n; x++) {
        const struct phema_tensor *tensor = &series->tensors[found->differences[x].tensor].tensor;
        phema_json_out_open(&json, NULL, '{');
        phema_json_out_bytes(&json, "name", tensor->name, tensor->name_size);
        phema_json_out_u64(&json, "elements", found->differences[x].n_elems);
        phema_json_out_close(&json, '}');
    }
    phema_json_out_close(&json, ']');
    phema_json_out_u64(&json, "other_bytes", found->n_other_bytes);
    if (found->sums) {
        phema_json_out_open(&json, "changed_snapshots", '[');
        for (size_t x = 0; x < verifying->n_changed; x++)
            phema_json_out_string(&json, NULL,
                                  verifying->recorded->inputs[verifying->changed[x]].file);
        phema_json_out_close(&json, ']');
    }
    phema_json_out_u64(&json, "read_bytes", found->read_bytes);
    phema_json_out_number(&json, "seconds", found->elapsed_s);
    render_write_warnings(&json, style);
    render_json_end(&json);
}

static void write_lines(struct phema_strbuf *text, const struct phema_verifying *verifying)
{
    const struct phema_verification *found = &verifying->found;
    const struct phema_series *series = verifying->prepared.plan->series;
    const char *out = verifying->options->out;
    phema_strbuf_puts_escaped(text, out);
    phema_strbuf_puts(text, phema_verification_is_equal(found) ? ": equal" : ": differs");
    phema_strbuf_printf(text, ": %llu elements compared, recomputed from %zu snapshots",
                        (unsigned long long)found->n_elems, verifying->recorded->n_inputs);
    if (found->n_taken < found->n_tiles)
        phema_strbuf_printf(text, " (%llu of %llu tiles)", (unsigned long long)found->n_taken,
                            (unsigned long long)found->n_tiles);
    phema_strbuf_puts(text, "\n");
    for (size_t x = 0; x < found->n && x < MAX_NAMED; x++) {
        const struct phema_tensor *tensor = &series->tensors[found->differences[x].tensor].tensor;
        struct phema_name_buffer shown;
        phema_strbuf_printf(text, "  tensor '%s': %llu of %llu elements differ\n",
                            phema_name_escape(&shown, tensor->name, tensor->name_size),
                            (unsigned long long)found->differences[x].n_elems,
                            (unsigned long long)tensor->n_elems);
    }
    if (found->n > MAX_NAMED)
        phema_strbuf_printf(text, "  and %zu more tensors\n", found->n - MAX_NAMED);
    if (found->n_other_bytes)
        phema_strbuf_printf(text, "  %llu bytes differ that are no replaced tensor's\n",
                            (unsigned long long)found->n_other_bytes);
    for (size_t x = 0; x < verifying->n_changed && x < MAX_NAMED; x++) {
        const char *file = verifying->recorded->inputs[verifying->changed[x]].file;
        struct phema_name_buffer shown;
        phema_strbuf_printf(
            text,
            "  snapshot '%s': its tensor data are not those that the output was made "
            "of\n",
            phema_name_escape(&shown, file, strlen(file)));
    }
    if (verifying->n_changed > MAX_NAMED)
        phema_strbuf_printf(text, "  and %zu more snapshots\n", verifying->n_changed - MAX_NAMED);
    write_checks_line(text, verifying->recorded);
}

/* ---- The verb ---- */

static enum phema_status print(const struct verify_values *args,
                               const struct phema_verifying *verifying, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (args->common.style.is_json)
        write_json(&text, &args->common.style, verifying);
    else
        write_lines(&text, verifying);
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
