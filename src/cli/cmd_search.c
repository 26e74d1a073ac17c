// SPDX-License-Identifier: Apache-2.0
/* cmd_search.c - finds the average that a command scores best. */
#include <math.h>

#include "cli.h"
#include "phema/report.h"
#include "verb_options.h"

static enum phema_status read_request(struct search_setup *setup, struct phema_error *err)
{
    const struct search_values *values = setup->values;
    struct search_options *options = &setup->options;
    cli_commands_init(&setup->commands, &cli_synth, &values->run);
    enum phema_status status =
        cli_read_request(&options->request, &values->common, &values->run, err);
    if (!status)
        status = cli_check_last(&values->common, &options->request, err);
    options->request.commands = &setup->commands.commands;
    options->exec = values->exec;
    options->score_regex = values->score_regex;
    options->is_shell = values->is_shell;
    options->shows_errors = values->common.style.is_verbose;
    options->timeout_s = isnan(values->timeout) ? 0 : values->timeout;
    options->keep = values->keep;
    options->accepts_wrong = cli_is_given(&values->common, "checks");
    options->line = values->line;
    options->command_options = phema_arena_printf(
        &setup->searching.arena, "%s%s%s%s", values->line ? "--line " : "",
        values->line ? values->line : "", values->line ? " " : "", values->common.repeated_options);
    return status || options->command_options ? status : phema_fail_memory(err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct search_setup setup = {.values = values};
    struct searching *searching = &setup.searching;
    struct search_shown shown;
    struct search_listener listener;
    struct render_listener passes;
    const struct render_style *style = &setup.values->common.style;
    struct render_style brief = *style;
    brief.is_quiet = !style->is_verbose;
    brief.is_mute = true; /* the search warns itself */
    render_listen(&passes, &brief);
    enum phema_status status = search_read_options(&setup, err);
    if (!status)
        status = read_request(&setup, err);
    search_show(&shown, &listener, style, setup.options.accepts_wrong);
    passes.farewell = shown.farewell;
    searching->options = &setup.options;
    searching->listener = &listener;
    searching->passes = &passes.heard;
    if (!status)
        status = search_run(searching, err);
    search_hide(&shown);
    if (!status) {
        struct phema_strbuf text = {0};
        search_report_end(style, searching);
        search_write(&text, style, searching);
        status = cli_print(&text, style, err);
    }
    search_clear(searching);
    return status;
}

#define FIELD(member) offsetof(struct search_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_series_rows, FIELD(run.plan)),
    {"sigma-rel", TARGET, CLI_TEXT, FIELD(sigma_rel), "RANGE",
     .help = "where to search: 0.02:0.25; or the first widths:\n0.05,0.1,0.2 or 0.02:0.26:0.03",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"line", TARGET, CLI_TEXT, FIELD(line), "A,B",
     .help = "instead: searches for the LAMBDA of\n--profile line:A,B,LAMBDA",
     .flags = CLI_EVERYDAY},
    {"lambda", TARGET, CLI_TEXT, FIELD(lambda), "RANGE",
     .help = "where, or the first ones (default -1:2)"},
    {"at", TARGET, CLI_REALS,
     CLI_LIST(struct search_values, run.plan.options.ats, run.plan.options.n_ats), "TIME",
     .help =
         "times of the averages, as names write them; of\nseveral, the best is searched for too",
     .flags = CLI_EVERYDAY},
    {"exec", TARGET, CLI_TEXT, FIELD(exec), "COMMAND",
     .help = "command that scores an average: a program and its\narguments, {} for the path; no "
             "shell is used",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"shell", TARGET, CLI_FLAG, FIELD(is_shell),
     .help = "run the command in sh; {} outside of quotes", .flags = CLI_EVERYDAY},
    {"score-regex", TARGET, CLI_TEXT, FIELD(score_regex), "RE",
     .help = "score in the output: group (?<score>..), the first\ngroup or all, of the last match "
             "(default: the last\nline)",
     .flags = CLI_EVERYDAY},
    {"minimize", TARGET, CLI_FLAG, FIELD(minimizes),
     .help = "the lowest score is the best (default)"},
    {"maximize", TARGET, CLI_FLAG, FIELD(maximizes), .help = "the highest score is the best",
     .flags = CLI_EVERYDAY},
    {"timeout", TARGET, CLI_REAL, FIELD(timeout), "SECONDS",
     .help = "time limit for one score, in seconds"},
    CLI_INCLUDE(cli_rule_rows, FIELD(run.plan)),
    {"OUT", OUTPUT, CLI_OPERAND, FIELD(run.outputs.out),
     .help = "a directory for the candidates and scores.csv\n(default: search), or names "
             "like\nsearch/{time}-{sigma}.pt",
     .flags = CLI_OPTIONAL},
    {"keep", OUTPUT, CLI_CHOICE, FIELD(keep), "best|all|none",
     .help = "which candidates stay (default best)", .flags = CLI_EVERYDAY},
    CLI_INCLUDE(cli_make_rows, FIELD(run)),
    {"evaluations", NUMBERS, CLI_COUNT, FIELD(evaluations), "N",
     .help = "at most N scores, those of earlier runs included\n(default: the coarse grid and 17)",
     .flags = CLI_POSITIVE | CLI_EVERYDAY},
    {"coarse", NUMBERS, CLI_COUNT, FIELD(coarse), "N",
     .help = "first widths, in equal ratios (default 6; 5 at\neach of several times; 7 of --line)",
     .flags = CLI_POSITIVE},
    {"tolerance", NUMBERS, CLI_REAL, FIELD(tolerance), "D",
     .help = "how near the best width must be to the optimum\n(default 0.005; 0.05 of --line)",
     .flags = CLI_EVERYDAY},
    {"noise", NUMBERS, CLI_REAL, FIELD(noise), "X",
     .help = "standard deviation of one score; smaller\ndifferences are not refined"},
    {"batch", NUMBERS, CLI_COUNT, FIELD(batch), "N",
     .help = "candidates made in one pass, on disk together\n(default 4)", .flags = CLI_POSITIVE},
    CLI_INCLUDE(cli_metric_rows, FIELD(run.plan)),
    CLI_INCLUDE(cli_progress_rows, 0),
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_search = {
    .name = "search",
    .summary = "find the average that a command scores best",
    .options = rows,
    .examples = "  posthoc-ema search --sigma-rel 0.02:0.25 --exec './evaluate.sh {}' ckpts/\n"
                "      the width with the lowest number that evaluate.sh prints\n"
                "  posthoc-ema search --sigma-rel 0.02:0.25 --exec 'python eval.py --ckpt {}' \\\n"
                "      --score-regex 'accuracy: ([0-9.]+)' --maximize ckpts/ found/\n"
                "      the highest accuracy; the same command continues a search that was stopped\n"
                "  posthoc-ema search --sigma-rel 0.05:0.2 --at 40k,60k,80k --keep none \\\n"
                "      --shell --exec './fid.sh {} | tail -n 1' ckpts/\n"
                "      width and time, in a shell\n"
                "  posthoc-ema search --input-profile raw --line sma:8,sma:4 \\\n"
                "      --exec './evaluate.sh {}' ckpts/\n"
                "      how far to go from one merge over another\n",
    .values_size = sizeof(struct search_values),
    .run = run,
};
