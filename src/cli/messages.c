// SPDX-License-Identifier: Apache-2.0
/* messages.c - the result on standard output, messages on standard error. */
#include "messages.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

PHEMA_FALLIBLE cli_print_as_is(struct phema_strbuf *text, struct phema_error *err)
{
    enum phema_status status = phema_strbuf_check(text, err);
    size_t written = status || !text->size ? 0 : fwrite(text->data, 1, text->size, stdout);
    if (!status && (written != text->size || fflush(stdout)))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    phema_strbuf_clear(text);
    return status;
}

PHEMA_FALLIBLE cli_print(struct phema_strbuf *text, struct phema_error *err)
{
    struct phema_strbuf shown = {.is_failed = text->is_failed};
    if (text->size)
        phema_strbuf_append_lines(&shown, text->data, text->size);
    phema_strbuf_clear(text);
    return cli_print_as_is(&shown, err);
}

void cli_write_path(struct phema_strbuf *out, const char *path)
{
    if (isatty(STDOUT_FILENO))
        phema_strbuf_puts_escaped(out, path);
    else
        phema_strbuf_puts(out, path);
}

void cli_json_begin(struct phema_json_out *out, struct phema_strbuf *text, bool is_pretty)
{
    *out = (struct phema_json_out){.text = text, .is_pretty = is_pretty};
    phema_json_out_open(out, NULL, '{');
    phema_json_out_u64(out, "version", 1);
}

void cli_json_end(struct phema_json_out *out)
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

void cli_say(const char *format, ...)
{
    char *line = NULL;
    struct phema_strbuf shown = {0};
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    if (vasprintf(&line, format, args) < 0)
        line = NULL;
    if (line)
        phema_strbuf_puts_escaped(&shown, line);
    if (!line || shown.is_failed)
        say_plainly(format, again);
    else
        (void)fprintf(stderr, "%s\n", shown.data ? shown.data : "");
    va_end(again);
    va_end(args);
    phema_strbuf_clear(&shown);
    free(line);
}
