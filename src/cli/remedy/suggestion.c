// SPDX-License-Identifier: Apache-2.0
/* suggestion.c - failures that name options, and commands that would help, made of words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remedy/remedy.h"

/* ---- Failures and what would help ---- */

enum phema_status(cli_suggest)(struct phema_error *err, enum phema_status status, const char *name,
                               const char *value)
{
    return phema_error_change(err, status, name, value);
}

/* A change of no setting, whose value is the command. */
void cli_set_command(struct phema_error *err, const char *format, ...)
{
    char command[sizeof(err->words)];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    phema_error_clear_changes(err);
    if (size > 0 && (size_t)size < sizeof(command))
        (void)phema_error_change(err, PHEMA_OK, "", command);
}

enum phema_status(cli_suggest_command)(struct phema_error *err, enum phema_status status,
                                       const char *command, const char *word)
{
    struct phema_strbuf whole = {0};
    phema_strbuf_printf(&whole, "%s ", command);
    phema_strbuf_put_word(&whole, word);
    cli_set_command(err, "%s", whole.is_failed ? "" : whole.data);
    phema_strbuf_clear(&whole);
    return status;
}

const char *cli_command(const struct phema_error *err)
{
    return err->n_changes && !*phema_change_name(err, 0) ? phema_change_value(err, 0) : "";
}

enum phema_status(cli_fail_option)(struct phema_error *err, enum phema_status status,
                                   const char *option, const char *format, ...)
{
    char place[sizeof(err->about) + 2];
    va_list args;
    (void)snprintf(place, sizeof(place), "--%s", option);
    va_start(args, format);
    (void)phema_fail_about(err, status, place, option, format, args);
    va_end(args);
    return status;
}

enum phema_status(cli_fail_in_option)(struct phema_error *err, enum phema_status status,
                                      const char *option)
{
    (void)phema_fail_in(err, status, "--%s", option);
    return phema_error_set_about(err, status, option);
}

/* ---- Edited commands ---- */

void command_add_word(struct editing *editing, const char *word)
{
    phema_strbuf_puts(&editing->tail, " ");
    phema_strbuf_put_word(&editing->tail, word);
}

void command_add_operand(struct editing *editing, const char *path)
{
    phema_strbuf_puts(&editing->tail, " ");
    phema_strbuf_put_operand(&editing->tail, path);
}

const struct cli_opt *command_find_operand(const struct cli_line *line, const char *name)
{
    for (const struct cli_opt *o = line->options.items; o->name; o++)
        if (cli_is_operand(o) && strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

size_t command_split_operands(struct editing *editing, const char ***operands)
{
    const struct cli_line *line = editing->line;
    size_t n = 0;
    *operands = calloc((size_t)line->argc, sizeof(**operands));
    for (struct cli_word word = {0}; *operands && cli_next_word(&word, line);) {
        if (word.is_operand)
            (*operands)[n++] = word.text;
        else if (!word.are_options_over) /* operands are quoted instead */
            command_add_word(editing, word.text);
        if (word.takes_next && word.at + 1 < line->argc)
            command_add_word(editing, line->argv[word.at + 1]);
    }
    return n;
}

void command_set_remedy(struct phema_error *err, struct editing *editing)
{
    const struct phema_strbuf *head = &editing->head, *tail = &editing->tail;
    if (head->is_failed || tail->is_failed || (!head->size && !tail->size)) /* the verb alone */
        cli_set_command(err, "%s", "");
    else
        cli_set_command(err, "posthoc-ema %s%s%s", editing->line->verb->name,
                        head->data ? head->data : "", tail->data ? tail->data : "");
    phema_strbuf_clear(&editing->head);
    phema_strbuf_clear(&editing->tail);
}

/* ---- Words ---- */

void cli_suggest_words(struct phema_error *err, const struct cli_line *line, int at, int n,
                       const char *words)
{
    struct editing command = {.line = line};
    for (int i = 1; i <= line->argc; i++) {
        if (i == at && *words)
            phema_strbuf_printf(&command.tail, " %s", words);
        if (i < line->argc && (i < at || i >= at + n))
            command_add_word(&command, line->argv[i]);
    }
    if (!command.tail.is_failed)
        cli_set_command(err, "posthoc-ema%s", command.tail.data ? command.tail.data : "");
    phema_strbuf_clear(&command.tail);
}

void cli_suggest_word(struct phema_error *err, const struct cli_line *line, int at,
                      const char *format, ...)
{
    struct phema_strbuf quoted = {0};
    char *word = NULL;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&word, format, args);
    va_end(args);
    if (size < 0)
        return;
    phema_strbuf_put_word(&quoted, word);
    if (!quoted.is_failed)
        cli_suggest_words(err, line, at, 1, quoted.data);
    phema_strbuf_clear(&quoted);
    free(word);
}

/* ---- What comes next ---- */

void cli_write_next(struct phema_strbuf *out, const struct cli_common *common,
                    const struct phema_series *series,
                    const struct phema_checkpoint_options *checkpoint, const char *options,
                    bool asks_whether_raw)
{
    bool is_raw = asks_whether_raw || phema_series_is_raw(series);
    size_t n_merged = series->n < 4 ? series->n : 4;
    if (asks_whether_raw)
        phema_strbuf_puts(out, "are they raw? ");
    if (is_raw)
        phema_strbuf_printf(out, "posthoc-ema synth %s--profile sma:%zu --profile wsm-cosine:%zu ",
                            asks_whether_raw ? "--input-profile raw " : "", n_merged, n_merged);
    else
        phema_strbuf_puts(out, "posthoc-ema synth --sigma-rel 0.05:0.25:0.05 ");
    phema_strbuf_printf(out, "%s%s%s", options, common->repeated_options,
                        *common->repeated_options ? " " : "");
    if (series->key_to_choose && !is_raw) {
        phema_strbuf_puts(out, "--key ");
        phema_strbuf_put_word(out, series->key_to_choose);
        phema_strbuf_puts(out, " ");
    }
    for (size_t i = 0; i < checkpoint->n_allow_globals; i++) {
        phema_strbuf_puts(out, "--allow-global ");
        phema_strbuf_put_word(out, checkpoint->allow_globals[i]);
        phema_strbuf_puts(out, " ");
    }
    phema_strbuf_put_operand(out, series->root);
    phema_strbuf_puts(out, is_raw ? " merged/" : " sweep/");
}
