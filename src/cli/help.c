// SPDX-License-Identifier: Apache-2.0
/* help.c - prints the help of a verb from its option table. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "phema/terminal.h"

static void write_usage(struct phema_strbuf *out, const struct cli_verb *verb,
                        const struct cli_options *options)
{
    phema_strbuf_printf(out, "usage: posthoc-ema %s [options]", verb->name);
    for (const struct cli_opt *o = options->items; o->name; o++) {
        if (!cli_is_operand(o))
            continue;
        bool is_optional = (o->flags & CLI_OPTIONAL) != 0;
        phema_strbuf_printf(out, " %s%s%s%s", is_optional ? "[" : "", o->name,
                            o->kind == CLI_OPERANDS ? "..." : "", is_optional ? "]" : "");
    }
    phema_strbuf_printf(out, "\n\n%s\n", verb->summary);
}

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

void cli_fit_help(struct phema_strbuf *out, const char *text)
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

/* Texts in the tables are broken for HELP_COLUMN; other columns break them at words. */
void cli_write_help_text(struct phema_strbuf *out, const char *text, size_t column)
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
    cli_write_help_text(out, option->help, column);
    phema_strbuf_puts(out, "\n");
}

/* The short help of a verb with few options has them all. */
#define SHORT_HELP 16

static bool is_shown(const struct cli_opt *option, bool is_short)
{
    return !is_short || cli_is_operand(option) || (option->flags & CLI_EVERYDAY);
}

void cli_write_help(struct phema_strbuf *out, const struct cli_verb *verb, bool is_short)
{
    static const char *const names[] = {"Input",   "Target",    "Output",
                                        "Numbers", "Resources", "Messages"};
    struct cli_options options;
    cli_list_options(&options, verb);
    bool is_cut = is_short && options.n > SHORT_HELP;
    write_usage(out, verb, &options);
    phema_strbuf_puts(out, "\nExamples\n");
    cli_fit_help(out, verb->examples);
    for (size_t group = 0; group < ARRAY_LEN(names); group++) {
        bool has_title = false;
        for (const struct cli_opt *o = options.items; o->name; o++) {
            if ((size_t)o->group != group || !is_shown(o, is_cut))
                continue;
            if (!has_title)
                phema_strbuf_printf(out, "\n%s\n", names[group]);
            has_title = true;
            write_option(out, o);
        }
    }
    if (is_cut)
        phema_strbuf_printf(out, "\nall options: posthoc-ema %s --help\n", verb->name);
}
