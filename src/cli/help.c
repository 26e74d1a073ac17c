// SPDX-License-Identifier: Apache-2.0
/* help.c - the verbs and their options, as help and as what may stand in the place of a word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "phema/terminal.h"
#include "remedy/remedy.h"

#define ADDRESS(name) &cli_##name,
const struct cli_verb *const cli_verbs[] = {CLI_VERBS(ADDRESS) NULL};

const struct cli_verb *cli_find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}

/* ---- Texts ---- */

/* Lines of help are at most 80 columns wide. Narrower terminals get the text of an option below its
 * name. */
#define MOST_COLUMNS  80
#define HELP_COLUMN   30
#define NARROW_COLUMN 10

static size_t help_columns(void)
{
    size_t n_columns = terminal_columns(STDOUT_FILENO);
    return n_columns < MOST_COLUMNS ? n_columns : MOST_COLUMNS;
}

/* Appends lines of help, broken at words where the terminal is narrower; commands stay whole. */
static void fit_help(struct phema_strbuf *out, const char *text)
{
    bool is_continued = false;
    for (const char *at = text; *at;) {
        size_t size = strcspn(at, "\n");
        char *line = strndup(at, size);
        bool is_command =
            is_continued ||
            (line && (strncmp(line, "  posthoc-ema", 13) == 0 || strncmp(line, "  srun", 6) == 0));
        if (line)
            terminal_wrap(out, line, is_command ? SIZE_MAX : help_columns());
        out->is_failed |= !line;
        phema_strbuf_puts(out, "\n");
        is_continued = is_command && size > 0 && at[size - 1] == '\\';
        at += size + (at[size] == '\n');
        free(line);
    }
}

/* Appends a text whose lines begin at a column, the first of which is there already. Texts in the
 * tables are broken for HELP_COLUMN; other columns break them at words. */
static void write_text(struct phema_strbuf *out, const char *text, size_t column)
{
    size_t left = help_columns() > column ? help_columns() - column : 1, used = 0;
    for (const char *at = text; *at;) {
        size_t size = strcspn(at, " \n");
        bool is_broken = column == HELP_COLUMN ? at > text && at[-1] == '\n'
                                               : used > 0 && used + 1 + size > left;
        if (is_broken)
            phema_strbuf_printf(out, "\n%*s", (int)column, "");
        else if (at > text)
            phema_strbuf_puts(out, " ");
        used = is_broken ? size : used + (at > text) + size;
        phema_strbuf_append(out, at, size);
        at += size + (at[size] != '\0');
    }
}

/* ---- Help ---- */

static void write_verb(struct phema_strbuf *out, const char *name, const char *summary)
{
    phema_strbuf_printf(out, "  %-9s ", name);
    write_text(out, summary, 12);
    phema_strbuf_puts(out, "\n");
}

void cli_write_overview(struct phema_strbuf *out)
{
    struct phema_strbuf text = {0};
    phema_strbuf_puts(
        &text, "usage: posthoc-ema VERB [options] ...\n\n"
               "Makes an EMA of any length after the training is over, from stored snapshots.\n\n"
               "Examples\n"
               "  posthoc-ema synth --sigma-rel 0.1 ckpts/ out.safetensors\n"
               "      one averaged checkpoint from a directory of snapshots\n"
               "  posthoc-ema inspect ckpts/\n"
               "      what is in that directory\n\n"
               "Verbs\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        write_verb(&text, cli_verbs[i]->name, cli_verbs[i]->summary);
    write_verb(&text, "help", "this text, or help on a verb: posthoc-ema help VERB");
    phema_strbuf_puts(&text, "\nposthoc-ema VERB -h      examples, options of every day\n"
                             "posthoc-ema VERB --help  all options but rare ones\n"
                             "posthoc-ema --version    the version\n");
    if (text.data)
        fit_help(out, text.data);
    out->is_failed |= text.is_failed;
    phema_strbuf_clear(&text);
}

static void write_usage(struct phema_strbuf *out, const struct cli_verb *verb,
                        const struct cli_opt *options)
{
    phema_strbuf_printf(out, "usage: posthoc-ema %s [options]", verb->name);
    for (const struct cli_opt *o = options; o->name; o++) {
        if (!cli_is_operand(o))
            continue;
        bool is_optional = (o->flags & CLI_OPTIONAL) != 0;
        phema_strbuf_printf(out, " %s%s%s%s", is_optional ? "[" : "", o->name,
                            o->kind == CLI_OPERANDS ? "..." : "", is_optional ? "]" : "");
    }
    phema_strbuf_printf(out, "\n\n%s\n", verb->summary);
}

/* Words of a choice; lines end between words. */
static void write_words(struct phema_strbuf *out, size_t line_start, const char *words)
{
    for (const char *at = words; at;) {
        struct phema_span word = cli_next_choice(&at);
        if (out->size - line_start + word.size + 1 > help_columns()) {
            phema_strbuf_printf(out, "\n%*s", 10, "");
            line_start = out->size - 10;
        }
        phema_strbuf_append(out, (const char *)word.data, word.size);
        if (at)
            phema_strbuf_puts(out, "|");
    }
}

static void write_option(struct phema_strbuf *out, const struct cli_opt *option)
{
    size_t start = out->size;
    if (cli_is_operand(option))
        phema_strbuf_printf(out, "  %s", option->name);
    else if (option->letter)
        phema_strbuf_printf(out, "  -%c, --%s", option->letter, option->name);
    else
        phema_strbuf_printf(out, "      --%s", option->name);
    if (option->value && !cli_is_operand(option)) {
        phema_strbuf_puts(out, " ");
        write_words(out, start, option->value);
    }
    size_t width = out->size - start;
    size_t column = help_columns() < MOST_COLUMNS ? NARROW_COLUMN : HELP_COLUMN;
    if (width + 2 > column)
        phema_strbuf_printf(out, "\n%*s", (int)column, "");
    else
        phema_strbuf_printf(out, "%*s", (int)(column - width), "");
    write_text(out, option->help, column);
    phema_strbuf_puts(out, "\n");
}

/* The short help of a verb with few options has them all. */
#define SHORT_HELP     16
#define SHORT_EXAMPLES 3

/* The first examples of a verb. They begin with two blanks, their other lines with more. */
static void write_few_examples(struct phema_strbuf *out, const char *text)
{
    size_t n = 0, size = 0;
    while (text[size]) {
        n += text[size + 2] != ' ';
        if (n > SHORT_EXAMPLES)
            break;
        size += strcspn(text + size, "\n") + 1;
    }
    char *few = strndup(text, size);
    if (few)
        fit_help(out, few);
    out->is_failed |= !few;
    free(few);
}

static bool is_shown(const struct cli_opt *option, bool is_cut, enum cli_extent extent)
{
    if (option->flags & CLI_DEPRECATED || (option->flags & CLI_RARE && extent != CLI_HELP_ALL))
        return false;
    return !is_cut || cli_is_operand(option) || option->flags & CLI_EVERYDAY;
}

void cli_write_help(struct phema_strbuf *out, const struct cli_verb *verb, enum cli_extent extent)
{
    static const char *const names[] = {"Input",   "Target",    "Output",
                                        "Numbers", "Resources", "Messages"};
    struct cli_options options;
    cli_list_options(&options, verb->options);
    bool is_cut = extent == CLI_HELP_SHORT && options.n > SHORT_HELP, has_rare = false;
    write_usage(out, verb, options.items);
    phema_strbuf_puts(out, "\nExamples\n");
    (is_cut ? write_few_examples : fit_help)(out, verb->examples);
    for (size_t group = 0; group < ARRAY_LEN(names); group++) {
        bool has_title = false;
        for (const struct cli_opt *o = options.items; o->name; o++) {
            has_rare |= (o->flags & CLI_RARE) != 0;
            if ((size_t)o->group != group || !is_shown(o, is_cut, extent))
                continue;
            if (!has_title)
                phema_strbuf_printf(out, "\n%s\n", names[group]);
            has_title = true;
            write_option(out, o);
        }
    }
    if (is_cut)
        phema_strbuf_printf(out, "\nall options: posthoc-ema %s --help\n", verb->name);
    else if (has_rare && extent != CLI_HELP_ALL)
        phema_strbuf_printf(out, "\nrare options, too: posthoc-ema help --all %s\n", verb->name);
}

/* ---- Completions ---- */

/* For the scripts in completions/. The placeholder of a value tells the words: lower-case words
 * between bars are offered as they are; FILE and DIR stand for names of files; other values are not
 * completed. */

/* The candidates that begin with what was typed. */
struct offer {
    struct phema_strbuf *out;
    const char *typed;
};

/* help: a description behind a TAB, on one line; NULL: none */
static void offer_word(const struct offer *offer, struct phema_span word, const char *help)
{
    size_t size = strlen(offer->typed);
    if (word.size < size || memcmp(word.data, offer->typed, size) != 0)
        return;
    phema_strbuf_append(offer->out, (const char *)word.data, word.size);
    for (const char *at = help, *separator = "\t"; at; separator = " ") {
        size = strcspn(at, "\n");
        phema_strbuf_puts(offer->out, separator);
        phema_strbuf_append(offer->out, at, size);
        at = at[size] ? at + size + 1 : NULL;
    }
    phema_strbuf_puts(offer->out, "\n");
}

static void offer_text(const struct offer *offer, const char *word, const char *help)
{
    offer_word(offer, (struct phema_span){(const uint8_t *)word, strlen(word)}, help);
}

static bool is_word(struct phema_span part)
{
    for (size_t i = 0; i < part.size; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", part.data[i]))
            return false;
    return part.size > 0;
}

/* value: NULL is names of files, which the line FILE stands for: words are lower-case. */
static void offer_value(const struct offer *offer, const char *value)
{
    if (!value || cli_find_choice(value, "FILE") != SIZE_MAX ||
        cli_find_choice(value, "DIR") != SIZE_MAX) {
        phema_strbuf_puts(offer->out, "FILE\n");
        return;
    }
    for (const char *at = value; at;) {
        struct phema_span part = cli_next_choice(&at);
        if (is_word(part))
            offer_word(offer, part, NULL);
    }
}

static void offer_options(const struct offer *offer, const struct cli_opt *options)
{
    for (const struct cli_opt *o = options; o->name; o++) {
        if (cli_is_operand(o) || o->flags & CLI_DEPRECATED)
            continue;
        char name[64], letter[] = {'-', o->letter, '\0'};
        (void)snprintf(name, sizeof(name), "--%s", o->name);
        offer_text(offer, name, o->help);
        if (o->letter)
            offer_text(offer, letter, o->help);
    }
}

/* n_before: operands in front of this one */
static void offer_operand(const struct offer *offer, const struct cli_opt *options, size_t n_before)
{
    for (const struct cli_opt *o = options; o->name; o++) {
        if (!cli_is_operand(o))
            continue;
        if (n_before == 0 || o->kind == CLI_OPERANDS) {
            offer_value(offer, o->value);
            return;
        }
        n_before--;
    }
}

/* argv: argv[2] is the first word after the verb */
static void offer_after_verb(struct phema_strbuf *out, const struct cli_opt *rows, int argc,
                             char **argv)
{
    struct offer offer = {out, argv[argc - 1]};
    struct cli_line line = {.argc = argc - 1, .argv = argv};
    struct cli_word word = {0};
    const struct cli_opt *valued = NULL;
    size_t n_operands = 0;
    cli_list_options(&line.options, rows);
    while (cli_next_word(&word, &line)) {
        n_operands += word.is_operand;
        valued = word.takes_next && word.at + 1 == line.argc ? word.option : NULL;
    }
    if (valued)
        offer_value(&offer, valued->value);
    else if (offer.typed[0] == '-' && !word.are_options_over)
        offer_options(&offer, line.options.items);
    else
        offer_operand(&offer, line.options.items, n_operands);
}

static void offer_verbs(const struct offer *offer)
{
    if (offer->typed[0] == '-') {
        offer_text(offer, "--help", "the verbs");
        offer_text(offer, "--version", "the version");
        return;
    }
    for (size_t i = 0; cli_verbs[i]; i++)
        offer_text(offer, cli_verbs[i]->name, cli_verbs[i]->summary);
    offer_text(offer, "help", "how to use a verb");
}

void cli_write_candidates(struct phema_strbuf *out, int argc, char **argv)
{
#define NAME_AND_BAR(name) #name "|"
    static const struct cli_opt of_help[] = {
        {"VERB", INPUT, CLI_OPERAND, 0, CLI_VERBS(NAME_AND_BAR), .help = ""},
        {"completions", INPUT, CLI_TEXT, 0, "bash|zsh|fish", .help = "a script for this shell"},
        {"all", INPUT, CLI_FLAG, 0, .help = "rare options of the verb, too"},
        {0},
    };
    if (argc < 3) {
        offer_verbs(&(struct offer){out, argc > 1 ? argv[1] : ""});
        return;
    }
    const struct cli_verb *verb = cli_find_verb(argv[1]);
    if (verb)
        offer_after_verb(out, verb->options, argc, argv);
    else if (strcmp(argv[1], "help") == 0)
        offer_after_verb(out, of_help, argc, argv);
}

PHEMA_FALLIBLE cli_write_completions(struct phema_strbuf *out, const char *shell,
                                     struct phema_error *err)
{
    if (!shell)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "completions",
                               "expected bash, zsh or fish after it");
    for (size_t i = 0; cli_completion_scripts[i][0]; i++) {
        if (strcmp(shell, cli_completion_scripts[i][0]) == 0) {
            phema_strbuf_puts(out, cli_completion_scripts[i][1]);
            return PHEMA_OK;
        }
    }
    return cli_fail_option(err, PHEMA_ERR_USAGE, "completions",
                           "'%s' is not one of bash, zsh, fish", shell);
}
