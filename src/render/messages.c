// SPDX-License-Identifier: Apache-2.0
/* messages.c - the result on standard output, messages on standard error. */
#include "parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/terminal.h"

static bool has_printed;

bool render_has_printed(void)
{
    return has_printed;
}

PHEMA_FALLIBLE render_print_as_is(struct phema_strbuf *text, struct phema_error *err)
{
    has_printed = has_printed || text->size;
    enum phema_status status = phema_strbuf_check(text, err);
    size_t written = status || !text->size ? 0 : fwrite(text->data, 1, text->size, stdout);
    if (!status && (written != text->size || fflush(stdout)))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    phema_strbuf_clear(text);
    return status;
}

PHEMA_FALLIBLE render_print(struct phema_strbuf *text, struct phema_error *err)
{
    struct phema_strbuf shown = {.is_failed = text->is_failed};
    if (text->size)
        phema_strbuf_append_lines(&shown, text->data, text->size);
    phema_strbuf_clear(text);
    return render_print_as_is(&shown, err);
}

void render_write_path(struct phema_strbuf *out, const char *path)
{
    if (isatty(STDOUT_FILENO))
        phema_strbuf_puts_escaped(out, path);
    else
        phema_strbuf_puts(out, path);
}

void render_json_begin(struct phema_json_out *out, struct phema_strbuf *text, bool is_pretty)
{
    *out = (struct phema_json_out){.text = text, .is_pretty = is_pretty};
    phema_json_out_open(out, NULL, '{');
    phema_json_out_u64(out, "version", 1);
}

void render_json_end(struct phema_json_out *out)
{
    phema_json_out_close(out, '}');
    phema_strbuf_puts(out->text, "\n");
}

/* Without memory every byte outside printable ASCII becomes a question mark. */
static void PHEMA_PRINTF(1, 0) say_plainly(const char *format, va_list args)
{
    char line[1024];
    int size = vsnprintf(line, sizeof(line), format, args);
    for (char *at = line; size >= 0 && *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    if (size >= 0)
        (void)fprintf(stderr, "%s\n", line);
}

/* Beginnings of lines that are coloured. */
static const struct {
    const char *text, *style;
} prefixes[] = {{"posthoc-ema:", TERMINAL_ALARM}, {"warning:", TERMINAL_ALARM},
                {"  ! ", TERMINAL_ALARM},         {"note:", TERMINAL_BOLD},
                {"  try:", TERMINAL_BOLD},        {"next:", TERMINAL_BOLD}};

static void write_colored(struct phema_strbuf *out, const char *line, int stream)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes) && terminal_has_color(stream); i++) {
        size_t size = strlen(prefixes[i].text);
        if (strncmp(line, prefixes[i].text, size) != 0)
            continue;
        phema_strbuf_puts(out, prefixes[i].style);
        phema_strbuf_append(out, line, size);
        phema_strbuf_puts(out, TERMINAL_PLAIN);
        line += size;
    }
    phema_strbuf_puts(out, line);
}

/* n_columns: SIZE_MAX for a line that is not broken */
static void PHEMA_PRINTF(4, 0) write_line(struct phema_strbuf *out, size_t n_columns, int stream,
                                          const char *format, va_list args)
{
    char *line = NULL;
    struct phema_strbuf escaped = {0}, wrapped = {0};
    if (vasprintf(&line, format, args) < 0) {
        out->is_failed = true;
        return;
    }
    phema_strbuf_puts_escaped(&escaped, line);
    if (escaped.data)
        terminal_wrap(&wrapped, escaped.data, n_columns);
    if (wrapped.data)
        write_colored(out, wrapped.data, stream);
    phema_strbuf_puts(out, "\n");
    phema_strbuf_clear_part(&escaped, out);
    phema_strbuf_clear_part(&wrapped, out);
    free(line);
}

static void PHEMA_PRINTF(2, 0) say(size_t n_columns, const char *format, va_list args)
{
    struct phema_strbuf shown = {0};
    va_list again;
    va_copy(again, args);
    write_line(&shown, n_columns, STDERR_FILENO, format, args);
    if (shown.is_failed)
        say_plainly(format, again);
    else
        (void)fputs(shown.data, stderr);
    va_end(again);
    phema_strbuf_clear(&shown);
}

void render_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(terminal_columns(STDERR_FILENO), format, args);
    va_end(args);
}

void render_say_whole(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(SIZE_MAX, format, args);
    va_end(args);
}

void render_say_text(struct phema_strbuf *text)
{
    if (text->data && !text->is_failed)
        render_say("%s", text->data);
    phema_strbuf_clear(text);
}

/* ---- Warnings ---- */

static bool is_said(const struct phema_strbuf *said, const char *sentence)
{
    for (size_t at = 0; at < said->size; at += strlen(said->data + at) + 1)
        if (strcmp(said->data + at, sentence) == 0)
            return true;
    return false;
}

void render_warn(const struct render_style *style, const char *format, ...)
{
    char *sentence = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&sentence, format, args) < 0)
        sentence = NULL;
    va_end(args);
    struct phema_strbuf *said = style->warnings;
    if (style->is_mute || (sentence && said && is_said(said, sentence))) {
        free(sentence);
        return;
    }
    render_say("warning: %s", sentence ? sentence : "out of memory");
    if (said && sentence)
        phema_strbuf_append(said, sentence, strlen(sentence) + 1);
    free(sentence);
}

void render_warn_all(const struct render_style *style, struct phema_strbuf *sentences)
{
    for (size_t at = 0; at < sentences->size; at += strlen(sentences->data + at) + 1)
        render_warn(style, "%s", sentences->data + at);
    phema_strbuf_clear(sentences);
}

void render_repeat_warnings(const struct render_style *style)
{
    const struct phema_strbuf *said = style->warnings;
    for (size_t at = 0; said && at < said->size; at += strlen(said->data + at) + 1)
        render_say("warning: %s", said->data + at);
}

void render_write_warnings(struct phema_json_out *out, const struct render_style *style)
{
    const struct phema_strbuf *said = style->warnings;
    phema_json_out_open(out, "warnings", '[');
    for (size_t at = 0; said && at < said->size; at += strlen(said->data + at) + 1)
        phema_json_out_string(out, NULL, said->data + at);
    phema_json_out_close(out, ']');
    out->text->is_failed |= said && said->is_failed;
}

/* ---- Lines and tables ---- */

void render_say_table(struct table *table)
{
    struct phema_strbuf text = {0};
    table_write(&text, table, 2, terminal_columns(STDERR_FILENO),
                terminal_has_color(STDERR_FILENO));
    if (text.data && !text.is_failed)
        (void)fputs(text.data, stderr);
    phema_strbuf_clear(&text);
    table_clear(table);
}

void render_write_wrapped(struct phema_strbuf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(out, terminal_columns(STDOUT_FILENO), STDOUT_FILENO, format, args);
    va_end(args);
}

void render_write_text(struct phema_strbuf *out, struct phema_strbuf *text)
{
    render_write_wrapped(out, "%s", text->data ? text->data : "");
    phema_strbuf_clear_part(text, out);
}

void render_write_lines(struct phema_strbuf *out, struct phema_strbuf *lines)
{
    if (lines->data)
        phema_strbuf_append_lines(out, lines->data, lines->size);
    phema_strbuf_clear_part(lines, out);
}

void render_write_whole(struct phema_strbuf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(out, SIZE_MAX, STDOUT_FILENO, format, args);
    va_end(args);
}

void render_write_table(struct phema_strbuf *out, struct table *table, size_t indent)
{
    table_write(out, table, indent, terminal_columns(STDOUT_FILENO),
                terminal_has_color(STDOUT_FILENO));
    table_clear(table);
}
