// SPDX-License-Identifier: Apache-2.0
/* cmd_synth.c - makes averaged checkpoints. */
#include <stdio.h>

#include "cli.h"
#include "phema/memory_profile.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "shared_options.h"

static enum phema_status end_memory(struct phema_memory_report *report,
                                    const struct render_style *style, enum phema_status status,
                                    struct phema_error *err)
{
    phema_memory_profile_end(report->profile);
    if (style->is_verbose && !style->is_quiet)
        report_memory(report->profile);
    if (!style->is_quiet)
        report_leaks(report->profile);
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
    render_write_path(&listener->joined, phema_writer_join_path(join));
    phema_strbuf_puts(&listener->joined, "\n");
}

static enum phema_status print(struct synth_listener *listener,
                               const struct phema_synthesis *synthesis, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    const struct render_style *style = &listener->args->common.style;
    run_write(&text, style, synthesis);
    if (listener->joined.data && !style->is_json)
        phema_strbuf_puts(&text, listener->joined.data);
    return cli_print(&text, style, err);
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
    enum phema_status status = team ? cli_check_team(args, err) : PHEMA_OK;
    if (!status)
        status = cli_read_part(synthesis, args->part, &args->common, err);
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
    args->skips_existing |= args->updates;
    args->run.synth.replaces |= args->updates;
    struct phema_synthesis synthesis = {.team = args->common.team,
                                        .skips_existing = args->skips_existing,
                                        .publishes = args->publishes,
                                        .memory = &memory};
    enum phema_status status = read_part(&synthesis, args, err);
    if (status)
        return status;
    args->run.synth.part = synthesis.request.synth.part;
    args->run.synth.n_parts = synthesis.request.synth.n_parts;
    /* a team would count the pages of all files after each run */
    status = phema_memory_report_begin(&memory, args->profile_memory, args->run.synth.replaces,
                                       asked.is_verbose && !phema_team_of(args->common.team), err);
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
        status = cli_check_last(&args->common, &synthesis.request, err);
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
     .help = "keep outputs that are up to date: same snapshots,\nweights and options"},
    {"update", OUTPUT, CLI_FLAG, FIELD(updates),
     .help = "keep outputs that are up to date, remake others", .flags = CLI_EVERYDAY},
    {"resume", OUTPUT, CLI_FLAG, FIELD(run.synth.resumes),
     .help = "resume a stopped run; keep the files if it stops", .flags = CLI_EVERYDAY},
    {"nan", OUTPUT, CLI_EITHER, FIELD(run.synth.refuses_nan), "error|keep",
     .help = "NaN or infinity in the averages: keep and warn\n(default), or fail",
     .flags = CLI_NEGATED},
    {"publish", OUTPUT, CLI_FLAG, FIELD(publishes),
     .help = "let Megatron resume from OUT, a copy (--into):\n"
             "latest_checkpointed_iteration.txt names it"},
    {"verify", OUTPUT, CLI_FLAG, FIELD(run.synth.verifies),
     .help = "read snapshots again, and outputs back, before\noutputs get their names"},
    {"profile-memory", RESOURCES, CLI_TEXT, FIELD(profile_memory), "FILE",
     .help = "write the memory of each stage as JSON lines (-v\nprints it as a table)",
     .flags = CLI_RARE},
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
                "  posthoc-ema synth --profile sma:4 ckpts/ merged.safetensors\n"
                "      the mean of the newest four snapshots\n"
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
                "  posthoc-ema synth --part 2/8 --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      the second of eight processes; posthoc-ema join out.safetensors ends it\n"
                "  srun posthoc-ema synth --part auto --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      all processes of the step share the work; the last one publishes\n",
    .values_size = sizeof(struct cli_synth_values),
    .run = run,
};
