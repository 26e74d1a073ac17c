// SPDX-License-Identifier: Apache-2.0
/* terminal.c - width and locale of the terminal. The locale is read from the environment and never
 * set: numbers stay as they are. */
#include "terminal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_COLUMNS 80
#define LEAST_COLUMNS   20 /* narrower lines wrap */

static bool is_dumb(void)
{
    const char *name = getenv("TERM");
    return !name || !*name || strcmp(name, "dumb") == 0;
}

bool terminal_can_draw(void)
{
    return isatty(STDERR_FILENO) && !is_dumb();
}

size_t terminal_columns(void)
{
    struct winsize size = {0};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0)
        return DEFAULT_COLUMNS;
    return size.ws_col < LEAST_COLUMNS ? LEAST_COLUMNS : size.ws_col;
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
