// SPDX-License-Identifier: Apache-2.0
/* help.c - prints the help of a verb from its option table. */
#include "options.h"

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

#define HELP_COLUMN 30

/* Words of a choice; lines end between words. */
static void write_words(struct phema_strbuf *out, size_t line_start, const char *words)
{
    for (const char *at = words; at;) {
        struct phema_span word = cli_next_choice(&at);
        if (out->size - line_start + word.size + 1 > 80) {
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
    if (width + 2 > HELP_COLUMN)
        phema_strbuf_printf(out, "\n%*s", HELP_COLUMN, "");
    else
        phema_strbuf_printf(out, "%*s", (int)(HELP_COLUMN - width), "");
    for (const char *at = option->help; *at; at++) {
        phema_strbuf_append(out, at, 1);
        if (*at == '\n')
            phema_strbuf_printf(out, "%*s", HELP_COLUMN, "");
    }
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
    phema_strbuf_printf(out, "\nExamples\n%s", verb->examples);
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
