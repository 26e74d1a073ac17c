// SPDX-License-Identifier: Apache-2.0
/* cli.c - the table of verbs, --help, --version, and the exit status. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/cli.h"
#include "phema/ops.h"
#include "phema/path.h"
#include "phema/render.h"
#include "phema/terminal.h"
#include "remedy/remedy.h"
#include "shared_options.h"

static const char *verb_name(const void *table, size_t index)
{
    const struct cli_verb *const *verbs = table;
    return verbs[index] ? verbs[index]->name : NULL;
}

#define DELETABLE "weights --advise --max-error 1e-3 --sigma-rel 0.1"

/* What to say for the words of other programs; "check" of a directory shows the series.
 *   operand  the first one, or NULL */
static const char *find_usual_verb(const char *name, const char *operand)
{
    static const char *const names[][2] = {
        {"average", "synth"},   {"merge", "synth"},       {"make", "synth"},
        {"ema", "synth"},       {"reconstruct", "synth"}, {"synthesize", "synth"},
        {"run", "synth"},       {"sweep", "synth"},       {"info", "inspect"},
        {"show", "inspect"},    {"list", "inspect"},      {"ls", "inspect"},
        {"stat", "inspect"},    {"solve", "weights"},     {"compare", "diff"},
        {"check", "verify"},    {"generate", "gen"},      {"demo", "gen"},
        {"draw", "plot"},       {"html", "report"},       {"tune", "search"},
        {"optimize", "search"}, {"prune", DELETABLE},     {"clean", DELETABLE}};
    if (strcmp(name, "check") == 0 && operand && phema_path_is_directory(operand))
        return "inspect";
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    return NULL;
}

static enum phema_status fail_verb(int argc, char **argv, int at, struct phema_error *err)
{
    const struct cli_line line = {.argc = argc, .argv = argv};
    const char *usual = find_usual_verb(argv[at], at + 1 < argc ? argv[at + 1] : NULL);
    const char *nearest = usual ? usual : cli_nearest(argv[at], verb_name, cli_verbs);
    enum phema_status status = phema_fail(err, PHEMA_ERR_USAGE, "unknown verb '%s'", argv[at]);
    if (nearest)
        cli_suggest_words(err, &line, at, 1, nearest);
    else
        cli_set_command(err, "posthoc-ema --help");
    return status;
}

/* Options before the verb: the same with the verb in front. */
static enum phema_status fail_order(int argc, char **argv, struct phema_error *err)
{
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "the verb comes before the options, '%s' here", argv[1]);
    int at = 2;
    while (at < argc && !cli_find_verb(argv[at]))
        at++;
    if (at < argc) {
        struct editing command = {.line = &(struct cli_line){.verb = cli_find_verb(argv[at])}};
        for (int k = 1; k < argc; k++)
            if (k != at)
                command_add_word(&command, argv[k]);
        command_set_remedy(err, &command);
    } else if (strncmp(argv[1], "--completion", 12) == 0) {
        cli_set_command(err, "posthoc-ema help --completions bash");
    } else {
        cli_set_command(err, "posthoc-ema --help");
    }
    return status;
}

/* verb: NULL for the overview */
static enum phema_status print_help(const struct cli_verb *verb, enum cli_extent extent,
                                    struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (verb)
        cli_write_help(&text, verb, extent);
    else
        cli_write_overview(&text);
    return render_print(&text, err);
}

/* Without a verb: the overview on standard error. */
static enum phema_status print_overview(struct phema_error *err)
{
    struct phema_strbuf text = {0};
    cli_write_overview(&text);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status)
        (void)fputs(text.data, stderr);
    phema_strbuf_clear(&text);
    return status ? status : PHEMA_ERR_USAGE;
}

/* A word behind a command that is whole: the command without it. */
static enum phema_status fail_extra(int argc, char **argv, int at, struct phema_error *err)
{
    const struct cli_line line = {.argc = argc, .argv = argv};
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "%s: unexpected argument '%s'", argv[1], argv[at]);
    cli_suggest_words(err, &line, at, argc - at, "");
    return status;
}

/* "help", "help VERB", "help --all VERB", "help VERB --all", "help --completions SHELL", or "help --complete WORDS", for
 * those scripts. */
static enum phema_status help(int argc, char **argv, struct phema_error *err)
{
    int at = argc > 2 && strcmp(argv[2], "--all") == 0 ? 3 : 2;
    bool has_all = at == 3 || (argc > 3 && strcmp(argv[3], "--all") == 0);
    const struct cli_verb *verb = argc > at ? cli_find_verb(argv[at]) : NULL;
    if (verb && argc > 3 + has_all)
        return fail_extra(argc, argv, 3 + has_all, err);
    if (verb)
        return print_help(verb, has_all ? CLI_HELP_ALL : CLI_HELP_USUAL, err);
    if (argc <= at || strcmp(argv[2], "help") == 0 || strcmp(argv[2], "-h") == 0 ||
        strcmp(argv[2], "--help") == 0)
        return print_help(NULL, CLI_HELP_USUAL, err);
    struct phema_strbuf text = {0};
    enum phema_status status = PHEMA_OK;
    if (strcmp(argv[2], "--complete") == 0)
        cli_write_candidates(&text, argc - 2, argv + 2);
    else if (strcmp(argv[2], "--completions") == 0)
        status = cli_write_completions(&text, argc > 3 ? argv[3] : NULL, err);
    else
        status = fail_verb(argc, argv, at, err);
    return status ? status : render_print(&text, err);
}

/* Of a team synth and verify share their work; other verbs are run by rank 0, and all processes get
 * its status. */
static enum phema_status call_verb(const struct cli_verb *verb, void *values,
                                   struct phema_error *err)
{
    struct cli_common *common = values;
    const struct phema_team *team = common->team;
    if (!team || team->size == 1 || verb == &cli_synth || verb == &cli_verify)
        return verb->run(values, err);
    enum phema_status status = team->rank == 0 ? verb->run(values, err) : PHEMA_OK;
    return phema_team_share_status(team, status, err);
}

/* "synth inspect DIR": the word is a verb, and neither a file nor a choice such as "plot
 * weights". */
static bool is_other_verb(const struct cli_line *line, const char *word)
{
    for (const struct cli_opt *o = line->options.items; o->name; o++)
        if (cli_is_operand(o) && cli_find_choice(o->value, word) != SIZE_MAX)
            return false;
    return cli_find_verb(word) && access(word, F_OK) != 0;
}

static void warn_of_deprecated(const struct cli_common *common)
{
    const struct cli_line *line = &common->line;
    for (size_t i = 0; i < line->options.n; i++) {
        const struct cli_opt *option = &line->options.items[i];
        if (line->is_given[i] && option->flags & CLI_DEPRECATED)
            render_warn(&common->style, "--%s is deprecated, say %s", option->name, option->help);
    }
}

static enum phema_status run_verb(const struct cli_verb *verb, const struct phema_team *team,
                                  int argc, char **argv, struct phema_error *err)
{
    void *values = calloc(1, verb->values_size);
    if (!values)
        return phema_fail_memory(err);
    struct cli_common *common = values;
    struct phema_strbuf warnings = {0};
    enum phema_status status = cli_parse(verb, values, argc, argv, err);
    common->team = team;
    common->style.warnings = &warnings;
    terminal_set_color(common->has_no_color ? TERMINAL_COLOR_NEVER : common->color);
    if (!status)
        warn_of_deprecated(common);
    if (!status && common->is_help)
        status = print_help(verb, common->is_short_help ? CLI_HELP_SHORT : CLI_HELP_USUAL, err);
    else if (!status)
        status = cli_check_snapshots(&common->line, err);
    if (!status && !common->is_help)
        status = call_verb(verb, values, err);
    if (status)
        cli_complete_remedy(err, status, &common->line);
    if (status && argc > 3 && is_other_verb(&common->line, argv[2]))
        cli_suggest_words(err, &common->line, 1, 1, "");
    phema_strbuf_clear(&warnings);
    phema_arena_clear(&common->arena);
    free(values);
    return status;
}

static enum phema_status run(int argc, char **argv, const struct phema_team *team,
                             struct phema_error *err)
{
    if (argc < 2)
        return print_overview(err);
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_help(NULL, CLI_HELP_USUAL, err);
    if (strcmp(word, "help") == 0)
        return help(argc, argv, err);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 || strcmp(word, "version") == 0) {
        if (argc > 2)
            return fail_extra(argc, argv, 2, err);
        struct phema_strbuf text = {0};
        phema_strbuf_puts(&text, "posthoc-ema " PHEMA_VERSION "\n");
        return render_print(&text, err);
    }
    const struct cli_verb *verb = cli_find_verb(word);
    if (word[0] == '-')
        return fail_order(argc, argv, err);
    return verb ? run_verb(verb, team, argc, argv, err) : fail_verb(argc, argv, 1, err);
}

/* Opens closed standard streams. Otherwise the next file that is opened would get the descriptor of
 * the stream, and messages would be written into it. Writing to a standard output that was opened
 * for reading still fails. */
static void fill_streams(void)
{
    for (int stream = 0; stream < 3; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Of a team rank 0 speaks: results of the others, which are the same, go nowhere. */
static void silence_results(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0)
        return;
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)close(nowhere);
}

/* Whether --json is an option of the command line, which may have a mistake before it. */
static bool asks_for_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

/* With --json, where no result is there. It was said on stderr, and the status is that of the failure,
 * even where memory or a disk is too full for the object. */
static void print_error(const struct phema_error *err, enum phema_status status)
{
    struct phema_strbuf text = {0};
    struct phema_json_out json;
    struct phema_error ignored = {0};
    render_json_begin(&json, &text, true);
    cli_write_error(&json, err, status);
    render_json_end(&json);
    enum phema_status unprinted = render_print(&text, &ignored);
    (void)unprinted;
}

int phema_cli_main_in_team(int argc, char **argv, const struct phema_team *team)
{
    struct phema_error err = {0};
    bool is_other = team && team->rank > 0;
    fill_streams();
    if (is_other)
        silence_results();
    phema_cleanup_install_handlers();
    enum phema_status status = is_other && argc < 2 ? PHEMA_ERR_USAGE : run(argc, argv, team, &err);
    bool is_told = status && err.message[0] && !is_other;
    if (is_told)
        cli_say_error(&err);
    if (is_told && asks_for_json(argc, argv) && !render_has_printed())
        print_error(&err, status);
    return (int)status;
}

int phema_cli_main(int argc, char **argv)
{
    return phema_cli_main_in_team(argc, argv, NULL);
}
