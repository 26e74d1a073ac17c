// SPDX-License-Identifier: Apache-2.0
/* terminal.c - width, locale and colours of the terminal. The locale is read from the environment
 * and never set: numbers stay as they are. */
#include "phema/terminal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_COLUMNS 80
#define LEAST_COLUMNS   20 /* narrower lines wrap */
#define MOST_COLUMNS    100000

static bool is_dumb(void)
{
    const char *name = getenv("TERM");
    return !name || !*name || strcmp(name, "dumb") == 0;
}

bool terminal_can_draw(void)
{
    return isatty(STDERR_FILENO) && !is_dumb();
}

/* COLUMNS, or 0. */
static size_t columns_of_environment(void)
{
    const char *text = getenv("COLUMNS");
    char *end = NULL;
    unsigned long columns = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    return end && !*end && columns <= MOST_COLUMNS ? columns : 0;
}

size_t terminal_columns(int stream)
{
    struct winsize size = {0};
    size_t columns = columns_of_environment();
    if (!columns && !ioctl(stream, TIOCGWINSZ, &size))
        columns = size.ws_col;
    if (!columns)
        return DEFAULT_COLUMNS;
    return columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns;
}

static enum terminal_color wanted_color;

void terminal_set_color(enum terminal_color color)
{
    wanted_color = color;
}

bool terminal_has_color(int stream)
{
    if (wanted_color != TERMINAL_COLOR_AUTO)
        return wanted_color == TERMINAL_COLOR_ALWAYS;
    const char *refused = getenv("NO_COLOR"), *forced = getenv("CLICOLOR_FORCE");
    if (refused && *refused)
        return false;
    if (forced && *forced && strcmp(forced, "0") != 0)
        return true;
    return isatty(stream) && !is_dumb();
}

bool terminal_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value) /* the first that is set decides */
            return !is_dumb() && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
    }
    return false;
}

size_t terminal_cut(const char *text, size_t n_columns)
{
    size_t at = 0;
    for (; text[at]; at++) {
        bool begins = ((unsigned char)text[at] & 0xC0) != 0x80;
        if (begins && n_columns-- == 0)
            break;
    }
    return at;
}

/* Columns of the bytes. */
static size_t width_of(const char *text, size_t size)
{
    size_t width = 0;
    for (size_t i = 0; i < size; i++)
        width += ((unsigned char)text[i] & 0xC0) != 0x80;
    return width;
}

size_t terminal_width(const char *text)
{
    return width_of(text, strlen(text));
}

void terminal_wrap(struct phema_strbuf *out, const char *line, size_t n_columns)
{
    size_t indent = strspn(line, " "), used = indent;
    phema_strbuf_append(out, line, indent);
    for (const char *at = line + indent; *at;) {
        size_t gap = strspn(at, " "), size = strcspn(at + gap, " ");
        size_t width = width_of(at + gap, size);
        if (gap && size && used + gap + width > n_columns) {
            phema_strbuf_printf(out, "\n%*s", (int)indent + 2, "");
            used = indent + 2;
        } else {
            phema_strbuf_append(out, at, gap);
            used += gap;
        }
        phema_strbuf_append(out, at + gap, size);
        used += width;
        at += gap + size;
    }
}

const char *terminal_duration(struct phema_name_buffer *buffer, double seconds)
{
    static const double most = 1e9;
    unsigned long s = (unsigned long)(isfinite(seconds) ? fmin(fmax(seconds, 0), most) : most);
    if (s < 60)
        (void)snprintf(buffer->text, sizeof(buffer->text), "%lu s", s);
    else if (s < 3600)
        (void)snprintf(buffer->text, sizeof(buffer->text), "%lu min %02lu s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(buffer->text, sizeof(buffer->text), "%lu h %02lu min", s / 3600,
                       s / 60 % 60);
    else
        (void)snprintf(buffer->text, sizeof(buffer->text), "%lu d %lu h", s / 86400, s / 3600 % 24);
    return buffer->text;
}
