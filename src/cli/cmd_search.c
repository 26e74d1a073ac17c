// SPDX-License-Identifier: Apache-2.0
/* cmd_search.c - finds the average that a command scores best. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "phema/number.h"
#include "phema/report.h"
#include "phema/sort.h"
#include "remedy/remedy.h"
#include "replay_options.h"

#define SEARCH_JOURNAL "scores.csv"

#define DEFAULT_OUT       "search"
#define DEFAULT_TOLERANCE PHEMA_SEARCH_TOLERANCE
#define DEFAULT_BATCH     4

/* Widths of the coarse grid: at one time, at each of several. */
#define DEFAULT_COARSE       PHEMA_SEARCH_GRID
#define DEFAULT_COARSE_TIMES 5

/* The newest snapshot, and what refining takes from 0.02:0.25 to the least tolerance where scores
 * are smooth. */
#define DEFAULT_REFINING 17

struct search_values {
    struct cli_common common;
    struct cli_run_values run;
    const char *sigma_rel, *exec, *score_regex;
    enum search_keep keep;
    bool is_shell, minimizes, maximizes;
    uint64_t coarse, evaluations, batch;
    double tolerance, noise, timeout;
};

struct search_setup {
    const struct search_values *values;
    struct search_options options;
    struct cli_commands commands;
    struct searching searching;
};

/* ---- The range ---- */

static size_t count_coarse(const struct search_setup *setup, double first, double last)
{
    const struct search_values *values = setup->values;
    bool has_times = values->run.plan.options.n_ats > 1;
    size_t n = has_times ? DEFAULT_COARSE_TIMES : DEFAULT_COARSE;
    if (values->coarse)
        return (size_t)values->coarse;
    return phema_search_grid_size(n, first, last, setup->searching.search.tolerance);
}

/* "0.02:0.25": equal ratios */
static enum phema_status use_range(struct search_setup *setup, double first, double last,
                                   struct phema_error *err)
{
    double gamma = 0;
    if (!(last - first >= PHEMA_SEARCH_RESOLUTION))
        return cli_suggest(
            err,
            cli_fail_option(err, PHEMA_ERR_USAGE, "sigma-rel",
                            "expected a range from a lower to a higher width, found %g to %g",
                            first, last),
            "sigma-rel", "0.02:0.25");
    if (phema_gamma_from_sigma_rel(&gamma, first, err) ||
        phema_gamma_from_sigma_rel(&gamma, last, err))
        return cli_fail_in_option(err, PHEMA_ERR_TARGET, "sigma-rel");
    size_t n = count_coarse(setup, first, last);
    if (n < 2 || n > PHEMA_SEARCH_MOST_GRID ||
        phema_search_grid_gap(n, first, last) < PHEMA_SEARCH_RESOLUTION)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "coarse",
                               "expected from 2 to %d widths, at least %g apart, found %zu "
                               "from %g to %g",
                               PHEMA_SEARCH_MOST_GRID, PHEMA_SEARCH_RESOLUTION, n, first, last);
    double *widths = phema_arena_array(&setup->searching.arena, n, sizeof(*widths));
    if (!widths)
        return phema_fail_memory(err);
    phema_search_grid(widths, n, first, last);
    setup->searching.search.widths = widths;
    setup->searching.search.n_widths = n;
    return PHEMA_OK;
}

static enum phema_status use_list(struct search_setup *setup, const char *text,
                                  struct phema_error *err)
{
    struct cli_reals list = {0};
    enum phema_status status = cli_parse_reals(&list, &setup->searching.arena, text, err);
    if (status)
        return cli_fail_in_option(err, status, "sigma-rel");
    if (setup->values->coarse)
        return cli_suggest(
            err,
            cli_fail_option(err, PHEMA_ERR_USAGE, "coarse",
                            "goes with a range such as 0.02:0.25; the list is the grid"),
            "coarse", "");
    qsort(list.items, list.n, sizeof(*list.items), phema_compare_doubles);
    size_t kept = 0;
    for (size_t i = 0; i < list.n; i++)
        if (kept == 0 || list.items[i] > list.items[kept - 1])
            list.items[kept++] = list.items[i];
    if (kept < 2)
        return cli_suggest(err,
                           cli_fail_option(err, PHEMA_ERR_USAGE, "sigma-rel",
                                           "expected a range such as 0.02:0.25, or several widths"),
                           "sigma-rel", "0.02:0.25");
    setup->searching.search.widths = list.items;
    setup->searching.search.n_widths = kept;
    return PHEMA_OK;
}

static enum phema_status read_widths(struct search_setup *setup, const char *text,
                                     struct phema_error *err)
{
    const char *colon = strchr(text, ':');
    double first = 0, last = 0;
    if (!colon || strchr(colon + 1, ':') || strchr(text, ','))
        return use_list(setup, text, err);
    const char *start = phema_arena_copy(&setup->searching.arena, text, (size_t)(colon - text));
    enum phema_status status =
        start ? phema_number_parse(&first, start, err) : phema_fail_memory(err);
    if (!status)
        status = phema_number_parse(&last, colon + 1, err);
    return status ? cli_fail_in_option(err, status, "sigma-rel")
                  : use_range(setup, first, last, err);
}

static enum phema_status read_range(struct search_setup *setup, struct phema_error *err)
{
    const char *text = setup->values->sigma_rel;
    double gamma = 0;
    if (!text)
        return cli_suggest(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "search: --sigma-rel is missing; give a range such as 0.02:0.25"),
            "sigma-rel", "0.02:0.25");
    enum phema_status status = read_widths(setup, text, err);
    for (size_t i = 0; !status && i < setup->searching.search.n_widths; i++)
        if (phema_gamma_from_sigma_rel(&gamma, setup->searching.search.widths[i], err))
            return cli_fail_in_option(err, PHEMA_ERR_TARGET, "sigma-rel");
    return status;
}

/* ---- Directory of the candidates ---- */

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum phema_status fail_out(const char *out, const char *what, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_USAGE, "%s: %s", out, what);
}

static enum phema_status check_template(const char *name, const char *out, bool has_times,
                                        struct phema_error *err)
{
    if (memchr(out, '{', (size_t)(name - out)))
        return fail_out(out, "only the last part of OUT may hold {sigma} and {time}", err);
    if (!strstr(name, "{sigma}") && !strstr(name, "{profile}"))
        return fail_out(out, "expected {sigma} in the names of candidates", err);
    if (has_times && !strstr(name, "{time}"))
        return fail_out(out, "expected {time} in the names of candidates, which are of several",
                        err);
    return PHEMA_OK;
}

/* A copy of the first text, of this size, with the second after it. */
static const char *join_texts(struct phema_arena *arena, const char *first, size_t size,
                              const char *second)
{
    size_t size_second = strlen(second) + 1;
    char *joined = phema_arena_alloc(arena, size + size_second);
    if (joined) {
        memcpy(joined, first, size);
        memcpy(joined + size, second, size_second);
    }
    return joined;
}

/* OUT is a directory, or names whose directory also holds the scores. */
static enum phema_status read_out(struct search_setup *setup, struct phema_error *err)
{
    const struct search_values *values = setup->values;
    const char *out = values->run.outputs.out ? values->run.outputs.out : DEFAULT_OUT;
    const char *slash = strrchr(out, '/'), *directory = out;
    size_t size = strlen(out);
    if (!size)
        return phema_fail(err, PHEMA_ERR_USAGE, "OUT is empty");
    if (strchr(out, '{')) {
        enum phema_status status =
            check_template(slash ? slash + 1 : out, out, values->run.plan.options.n_ats > 1, err);
        if (status)
            return status;
        directory = slash ? out : ".";
        size = slash && slash > out ? (size_t)(slash - out) : 1;
        setup->options.out = out;
    } else {
        if (phema_format_from_path(NULL, out, PHEMA_NAMES_SNAPSHOT) && !is_directory(out))
            return cli_suggest(err,
                               fail_out(out,
                                        "expected a directory for the candidates, or names such "
                                        "as search/{time}-{sigma}.pt",
                                        err),
                               "OUT", "search/");
        while (size > 1 && out[size - 1] == '/')
            size--;
        setup->options.out = join_texts(&setup->searching.arena, out, size, "/");
    }
    setup->options.directory = join_texts(&setup->searching.arena, directory, size, "");
    setup->options.scores_path =
        join_texts(&setup->searching.arena, directory, size, "/" SEARCH_JOURNAL);
    return setup->options.out && setup->options.directory && setup->options.scores_path
               ? PHEMA_OK
               : phema_fail_memory(err);
}

/* ---- The rest ---- */

static enum phema_status check_command(struct search_setup *setup, struct phema_error *err)
{
    const struct search_values *values = setup->values;
    char **words = NULL;
    if (!values->exec)
        return cli_suggest_command(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "search: --exec is missing; give the command that scores an average, "
                       "such as './evaluate.sh {}'"),
            "posthoc-ema search", "-h");
    enum phema_status status = values->is_shell
                                   ? phema_command_shell(&words, values->exec, "x", err)
                                   : phema_command_split(&words, values->exec, "x", err);
    if (status)
        return cli_fail_in_option(err, status, "exec");
    free(words);
    return PHEMA_OK;
}

static enum phema_status read_numbers(struct search_setup *setup, struct phema_error *err)
{
    const struct search_values *values = setup->values;
    if (values->minimizes && values->maximizes)
        return phema_fail(err, PHEMA_ERR_USAGE, "--minimize and --maximize: give one of them");
    setup->searching.search.maximizes = values->maximizes;
    setup->searching.search.tolerance =
        isnan(values->tolerance) ? DEFAULT_TOLERANCE : values->tolerance;
    if (!(setup->searching.search.tolerance >= PHEMA_SEARCH_MIN_TOLERANCE) ||
        !(setup->searching.search.tolerance < 1))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "tolerance", "expected %g or more, found %g",
                               PHEMA_SEARCH_MIN_TOLERANCE, values->tolerance);
    if (!isnan(values->noise) && (!(values->noise > 0) || !isfinite(values->noise)))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "noise",
                               "expected the standard deviation of one score, above 0, found %g",
                               values->noise);
    setup->searching.search.noise = isnan(values->noise) ? 0 : values->noise;
    if (!isnan(values->timeout) && !(values->timeout > 0))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "timeout",
                               "expected more than 0 seconds, found %g", values->timeout);
    setup->options.batch = values->batch ? values->batch : DEFAULT_BATCH;
    if (setup->options.batch > PHEMA_SEARCH_MOST_BATCH)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "batch", "expected at most %d, found %llu",
                               PHEMA_SEARCH_MOST_BATCH, (unsigned long long)values->batch);
    enum phema_status status = read_range(setup, err);
    if (status)
        return status;
    size_t n_times = values->run.plan.options.n_ats ? values->run.plan.options.n_ats : 1;
    uint64_t n_coarse = (uint64_t)setup->searching.search.n_widths * n_times;
    setup->options.most = values->evaluations ? values->evaluations : n_coarse + DEFAULT_REFINING;
    if (setup->options.most < n_coarse)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "evaluations",
                               "%llu are fewer than the %llu of the coarse grid (%zu "
                               "width%s at %zu time%s)",
                               (unsigned long long)setup->options.most,
                               (unsigned long long)n_coarse, setup->searching.search.n_widths,
                               setup->searching.search.n_widths == 1 ? "" : "s", n_times,
                               n_times == 1 ? "" : "s");
    return PHEMA_OK;
}

static enum phema_status read_request(struct search_setup *setup, struct phema_error *err)
{
    const struct search_values *values = setup->values;
    struct search_options *options = &setup->options;
    cli_commands_init(&setup->commands, &cli_synth, &values->run);
    enum phema_status status =
        cli_read_request(&options->request, &values->common, &values->run, err);
    options->request.commands = &setup->commands.commands;
    options->exec = values->exec;
    options->score_regex = values->score_regex;
    options->is_shell = values->is_shell;
    options->shows_errors = values->common.style.is_verbose;
    options->timeout_s = isnan(values->timeout) ? 0 : values->timeout;
    options->keep = values->keep;
    options->accepts_wrong = cli_is_given(&values->common, "checks");
    options->command_options = values->common.repeated_options;
    return status;
}

static enum phema_status read(struct search_setup *setup, struct phema_error *err)
{
    enum phema_status (*const steps[])(struct search_setup *, struct phema_error *) = {
        check_command, read_numbers, read_out, read_request};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < ARRAY_LEN(steps) && !status; i++)
        status = steps[i](setup, err);
    return status;
}

static enum phema_status print(const struct render_style *style, const struct searching *searching,
                               struct phema_error *err)
{
    struct phema_strbuf text = {0};
    search_report_end(style, searching);
    search_write(&text, style, searching);
    enum phema_status status =
        style->is_json ? render_print(&text, err) : render_print_as_is(&text, err);
    phema_strbuf_clear(&text);
    return status;
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
    enum phema_status status = read(&setup, err);
    search_show(&shown, &listener, style, setup.options.accepts_wrong);
    searching->options = &setup.options;
    searching->listener = &listener;
    searching->passes = &passes.heard;
    if (!status)
        status = search_run(searching, err);
    if (!status)
        status = print(style, searching, err);
    search_clear(searching);
    return status;
}

#define FIELD(member) offsetof(struct search_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_series_rows, FIELD(run.plan)),
    {"sigma-rel", TARGET, CLI_TEXT, FIELD(sigma_rel), "RANGE",
     .help = "where to search: 0.02:0.25; or the first widths:\n0.05,0.1,0.2 or 0.02:0.26:0.03",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
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
     .help = "first widths, in equal ratios (default 6; 5 at\neach of several times)",
     .flags = CLI_POSITIVE},
    {"tolerance", NUMBERS, CLI_REAL, FIELD(tolerance), "D",
     .help = "how near the best width must be to the optimum\n(default 0.005)",
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
                "      width and time, in a shell\n",
    .values_size = sizeof(struct search_values),
    .run = run,
};
