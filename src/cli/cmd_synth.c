// SPDX-License-Identifier: Apache-2.0
/* cmd_synth.c - makes averaged checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "phema/memory_profile.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "processes/part_option.h"
#include "replay_options.h"

/* ---- Outputs, on stdout ---- */

static void write_result(struct phema_strbuf *out, const struct render_style *style,
                         const struct phema_synthesis *synthesis)
{
    const struct phema_plan *plan = synthesis->prepared.plan;
    const struct phema_outputs *outputs = &synthesis->prepared.outputs;
    const struct phema_synth_result *result = &synthesis->result;
    if (!style->is_json) {
        for (size_t j = 0; j < outputs->m && !result->n_parts; j++) { /* a part publishes nothing */
            render_write_path(out, outputs->items[j].path);
            phema_strbuf_puts(out, "\n");
        }
        return;
    }
    struct phema_json_out json;
    render_json_begin(&json, out, true);
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
    report_checks_json(&json, style, plan);
    render_json_end(&json);
}

/* ---- What the run has done, on stderr ---- */

static size_t directory_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Prints the join command. Outputs in one directory are joined by naming the directory. */
static void report_join(const struct phema_outputs *outputs, uint64_t n_parts)
{
    const char *first = outputs->items[0].path;
    size_t size = directory_size(first);
    bool is_beside = outputs->m > 1;
    for (size_t j = 1; j < outputs->m; j++)
        is_beside = is_beside && directory_size(outputs->items[j].path) == size &&
                    memcmp(outputs->items[j].path, first, size) == 0;
    struct phema_strbuf text = {0};
    char *directory = size ? strndup(first, size) : strdup("./");
    for (size_t j = 0; j < outputs->m && !is_beside; j++) {
        phema_strbuf_puts(&text, " ");
        cli_quote_operand(&text, outputs->items[j].path);
    }
    if (is_beside && directory) {
        phema_strbuf_puts(&text, " ");
        cli_quote_operand(&text, directory);
    }
    if (text.data && !text.is_failed)
        render_say_whole("when all %llu parts are written: posthoc-ema join%s",
                         (unsigned long long)n_parts, text.data);
    free(directory);
    phema_strbuf_clear(&text);
}

static void report_io(const struct phema_synth_result *result)
{
    const struct {
        size_t n;
        const char *how, *filesystem;
    } kinds[] = {{result->n_mapped, "mapped", NULL},
                 {result->n_read, "read", result->filesystem},
                 {result->n_direct, "read past the page cache", NULL}};
    const char *between = "snapshots: ";
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!kinds[i].n)
            continue;
        (void)fprintf(stderr, "%s%zu file%s %s", between, kinds[i].n, kinds[i].n == 1 ? "" : "s",
                      kinds[i].how);
        if (kinds[i].filesystem)
            (void)fprintf(stderr, " (on %s)", kinds[i].filesystem);
        between = ", ";
    }
    (void)fprintf(stderr, "\n");
}

static void report_restarted(size_t n, const char *by)
{
    if (n)
        render_say("%zu output%s of %s: made anew", n, n == 1 ? "" : "s", by);
}

static void report_resumed(const struct phema_synth_result *result)
{
    struct phema_name_buffer read;
    if (result->n_resumed)
        render_say("resumed %zu output%s, %s already read", result->n_resumed,
                   result->n_resumed == 1 ? "" : "s",
                   phema_size_format(&read, result->resumed_bytes));
    report_restarted(result->n_stale_journals, "a run with other snapshots, weights or options");
    if (result->n_not_resumable)
        render_say(
            "%zu output%s cannot be resumed: a copy whose tensors are strided or overlap is made "
            "in one go",
            result->n_not_resumable, result->n_not_resumable == 1 ? "" : "s");
}

/* "wrote 10 averages, 382 MiB, in 3.3 s (read 1.19 GiB, 376 MiB/s, 8.5 MiB memory)" */
static void report_bytes(const struct phema_outputs *outputs,
                         const struct phema_synth_result *result)
{
    struct phema_name_buffer shown;
    struct phema_strbuf text = {0};
    double seconds = result->elapsed_s;
    phema_strbuf_puts(&text, "wrote ");
    if (result->n_parts)
        phema_strbuf_printf(&text, "part %llu of %llu%s", (unsigned long long)result->part,
                            (unsigned long long)result->n_parts, outputs->m > 1 ? " of " : "");
    if (outputs->m > 1)
        phema_strbuf_printf(&text, "%zu averages", outputs->m);
    bool has_more = result->n_parts || outputs->m > 1;
    phema_strbuf_printf(&text, "%s%s%s in %.*f s", has_more ? ", " : "",
                        phema_size_format(&shown, result->written_bytes), has_more ? "," : "",
                        seconds < 1    ? 2
                        : seconds < 10 ? 1
                                       : 0,
                        seconds);
    phema_strbuf_printf(&text, " (read %s", phema_size_format(&shown, result->read_bytes));
    if (seconds >= PROGRESS_KNOWN_AFTER_S)
        phema_strbuf_printf(
            &text, ", %s/s",
            phema_size_format(&shown, (uint64_t)((double)result->read_bytes / seconds)));
    phema_strbuf_printf(&text, ", %s memory)",
                        phema_size_format(&shown, result->peak_anonymous_bytes));
    if (text.data && !text.is_failed)
        render_say("%s", text.data);
    phema_strbuf_clear(&text);
}

/* To stderr: outputs, bytes, seconds, memory; and how to join parts. */
static void report_run(const struct render_style *style, const struct phema_synthesis *synthesis)
{
    const struct phema_synth_result *result = &synthesis->result;
    const struct phema_outputs *outputs = &synthesis->prepared.outputs;
    report_elements(style, synthesis->prepared.plan->series, result);
    if (style->is_quiet)
        return;
    report_restarted(result->n_stale_partials, "a killed run");
    report_resumed(result);
    report_bytes(outputs, result);
    if (style->is_verbose) {
        report_io(result);
        render_say(
            "%zu tensors averaged, %zu copied, %zu equal in all snapshots and copied; kernels "
            "%s, %u thread%s",
            result->n_averaged, result->n_copied, result->n_constant, result->backend,
            result->n_threads, result->n_threads == 1 ? "" : "s");
    }
    if (result->n_parts && !synthesis->joins)
        report_join(outputs, result->n_parts);
}

/* To stderr: the device that computed the sums, and why it was chosen. */
static void report_device(const struct render_style *style,
                          const struct phema_device_choice *choice, bool is_asked)
{
    struct phema_name_buffer size;
    if (style->is_quiet)
        return;
    if (choice->is_gpu)
        render_say("summed on %s, with %s of %s memory%s%s", choice->name,
                   phema_size_format(&size, choice->gpu_bytes),
                   choice->n_gpus > 1 ? "their" : "its", choice->why[0] ? ": " : "", choice->why);
    else if (choice->why[0] && is_asked)
        render_say("summed on the CPU: %s", choice->why);
    if (choice->note[0])
        render_say("%s", choice->note);
}

/* ---- Memory of the stages ---- */

/* Values that were not measured are left out. */
static void print_table(struct phema_memory_profile *profile)
{
    static const char *const heads[] = {"memory", "seconds", "before",    "after",
                                        "peak",   "mapped",  "page cache"};
    struct table table = {.n_columns = ARRAY_LEN(heads), .n_keys = 1};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_add(&table, i ? 0 : TABLE_LEFT, "%s", heads[i]);
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record = phema_memory_profile_stage(profile, (enum phema_stage)i);
        struct phema_name_buffer shown;
        if (!record.is_entered)
            continue;
        table_add(&table, 0, "%s", phema_stage_names[i]);
        table_add(&table, 0, "%.3f", record.elapsed_s);
        table_add(&table, 0, "%s", phema_size_format(&shown, record.anonymous.baseline));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.anonymous.now));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.anonymous.peak));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.file.peak));
        table_add(&table, 0, "%s",
                  record.knows_cached ? phema_size_format(&shown, record.cached_bytes) : "");
        if (!record.has_device)
            continue;
        table_add(&table, 0, "of GPUs");
        table_add(&table, 0, "%s", "");
        table_add(&table, 0, "%s", phema_size_format(&shown, record.device_allocated.baseline));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.device_allocated.now));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.device_allocated.peak));
        table_add(&table, 0, "%s", "");
        table_add(&table, 0, "%s", "");
    }
    render_say_table(&table);
}

static void warn_of_leaks(struct phema_memory_profile *profile)
{
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record = phema_memory_profile_stage(profile, (enum phema_stage)i);
        struct phema_name_buffer shown;
        if (record.is_leaking)
            (void)fprintf(stderr,
                          "warning: memory grew all through '%s', by %s in its second half: a "
                          "leak\n",
                          phema_stage_names[i], phema_size_format(&shown, record.leaked_bytes));
    }
}

static enum phema_status end_memory(struct phema_memory_report *report,
                                    const struct render_style *style, enum phema_status status,
                                    struct phema_error *err)
{
    phema_memory_profile_end(report->profile);
    if (style->is_verbose && !style->is_quiet)
        print_table(report->profile);
    if (!style->is_quiet)
        warn_of_leaks(report->profile);
    return phema_memory_report_end(report, status, err);
}

/* ---- The verb ---- */

struct synth_listener {
    struct render_listener shown;
    const struct cli_synth_values *args;
    struct phema_strbuf joined; /* lines: outputs that this process has published */
};

static void report_made(void *context, const struct phema_synthesis *synthesis)
{
    const struct synth_listener *listener = context;
    const struct render_style *style = &listener->shown.style;
    report_run(style, synthesis);
    if (!synthesis->is_of_team)
        report_device(style, &synthesis->result.device, listener->args->run.device != NULL);
}

static void report_joined(void *context, const struct phema_writer_join *join)
{
    struct synth_listener *listener = context;
    struct phema_name_buffer size;
    render_write_path(&listener->joined, phema_writer_join_path(join));
    phema_strbuf_puts(&listener->joined, "\n");
    if (!listener->shown.style.is_quiet)
        render_say("%s: %llu parts, %s", phema_writer_join_path(join),
                   (unsigned long long)phema_writer_join_n_parts(join),
                   phema_size_format(&size, phema_writer_join_bytes(join)));
}

static enum phema_status print(struct synth_listener *listener,
                               const struct phema_synthesis *synthesis, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    bool is_json = listener->args->common.style.is_json;
    write_result(&text, &listener->args->common.style, synthesis);
    if (listener->joined.data && !is_json)
        phema_strbuf_puts(&text, listener->joined.data);
    return is_json ? render_print(&text, err) : render_print_as_is(&text, err);
}

static enum phema_status make(struct synth_listener *listener, struct phema_synthesis *synthesis,
                              struct phema_error *err)
{
    const struct phema_listener *heard = &listener->shown.heard;
    enum phema_status status = phema_synthesis_prepare(synthesis, heard, err);
    if (!phema_team_of(synthesis->team)) /* each part has elements of its own */
        listener->shown.style.is_mute = false;
    if (!status)
        status = phema_synthesis_run(synthesis, heard, err);
    bool is_silent = synthesis->is_of_team && synthesis->team->rank > 0;
    return status || is_silent ? status : print(listener, synthesis, err);
}

/* Of several processes the first one speaks. Each says for whom it waits: then the job stands
 * still. */
static enum phema_status read_part(struct phema_synthesis *synthesis, struct cli_synth_values *args,
                                   struct phema_error *err)
{
    struct render_style *style = &args->common.style;
    const struct phema_team *team = phema_team_of(args->common.team);
    enum phema_status status = team ? team_check_options(args, err) : PHEMA_OK;
    if (!status)
        status = part_option_read(synthesis, args->part, &args->common, err);
    if (team)
        style->is_mute = team->rank > 0;
    else if (synthesis->joins)
        style->is_mute = synthesis->request.synth.part > 1 && !style->is_verbose;
    style->is_quiet = style->is_quiet || style->is_mute;
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct cli_synth_values *args = values;
    const struct render_style asked = args->common.style;
    struct phema_memory_report memory;
    struct cli_commands commands;
    struct render_listener waiting;
    struct synth_listener listener = {.args = args};
    struct phema_synthesis synthesis = {
        .team = args->common.team, .skips_existing = args->skips_existing, .memory = &memory};
    enum phema_status status = read_part(&synthesis, args, err);
    if (status)
        return status;
    args->run.synth.part = synthesis.request.synth.part;
    args->run.synth.n_parts = synthesis.request.synth.n_parts;
    status = phema_memory_report_begin(&memory, args->profile_memory, args->run.synth.replaces,
                                       asked.is_verbose, err);
    if (status)
        return status;
    render_listen(&waiting, &asked);
    render_listen(&listener.shown, &args->common.style);
    listener.shown.heard.made = report_made;
    listener.shown.heard.joined = report_joined;
    cli_commands_init(&commands, &cli_synth, &args->run);
    status = cli_read_request(&synthesis.request, &args->common, &args->run, err);
    synthesis.request.plan.identifies = true;
    synthesis.request.commands = &commands.commands;
    synthesis.waiting = synthesis.joins ? &waiting.heard : NULL;
    if (!status)
        status = make(&listener, &synthesis, err);
    phema_synthesis_clear(&synthesis);
    phema_strbuf_clear(&listener.joined);
    return end_memory(&memory, &args->common.style, status, err);
}

#define FIELD(member) offsetof(struct cli_synth_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_run_rows, FIELD(run)),
    CLI_INCLUDE(cli_out_rows, FIELD(run)),
    CLI_INCLUDE(cli_make_rows, FIELD(run)),
    {"part", OUTPUT, CLI_TEXT, FIELD(part), "I/N|auto",
     .help =
         "write part I of N only; join publishes OUT when\nall N parts are written. auto: as the\n"
         "launcher says (srun, mpirun); the last one joins"},
    {"skip-existing", OUTPUT, CLI_FLAG, FIELD(skips_existing),
     .help = "keep outputs that are up to date: same snapshots,\nweights and options",
     .flags = CLI_EVERYDAY},
    {"resume", OUTPUT, CLI_FLAG, FIELD(run.synth.resumes),
     .help = "resume an interrupted run; keep partial outputs if\nthis one stops",
     .flags = CLI_EVERYDAY},
    {"nan", OUTPUT, CLI_EITHER, FIELD(run.synth.refuses_nan), "error|keep",
     .help = "NaN or infinity in the averages: keep and warn\n(default), or fail",
     .flags = CLI_NEGATED},
    {"verify", OUTPUT, CLI_FLAG, FIELD(run.synth.verifies),
     .help = "read snapshots again, and outputs back, before\noutputs get their names"},
    {"profile-memory", RESOURCES, CLI_TEXT, FIELD(profile_memory), "FILE",
     .help = "write the memory of each stage as JSON lines (-v\nprints it as a table)"},
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
                "  posthoc-ema synth --sigma-rel 0.1 --ranks 8 ckpts/ step-1000/\n"
                "      a distributed checkpoint of eight files for torch\n"
                "  posthoc-ema synth --input-sigma 0.05,0.28 --update-every 10 --sigma-rel 0.1 \\\n"
                "      posthoc-ema/ out.safetensors\n"
                "      files of pytorch-posthoc-ema, whose settings are not in them\n"
                "  posthoc-ema synth --convert model.pt model.safetensors\n"
                "      one checkpoint in another format\n"
                "  posthoc-ema synth --part 2/8 --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      the second of eight processes; posthoc-ema join out.safetensors ends it\n"
                "  srun posthoc-ema synth --part auto --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      all processes of the step share the work; the last one publishes\n",
    .values_size = sizeof(struct cli_synth_values),
    .run = run,
};
