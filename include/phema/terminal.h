/* terminal.h - width, locale and colours of the terminal, and texts that fit it. */
#ifndef PHEMA_TERMINAL_H
#define PHEMA_TERMINAL_H

#include "phema/strbuf.h"

/* True for a terminal that can move its cursor: not a pipe, and TERM is set and not dumb. */
bool terminal_can_draw(void);

/* Columns of a line on the stream, STDOUT_FILENO or STDERR_FILENO: COLUMNS of the environment, else
 * those of the terminal, else 80. */
size_t terminal_columns(int stream);

/* --color. auto: NO_COLOR and CLICOLOR_FORCE of the environment decide, else a terminal that is not
 * dumb has colours. */
enum terminal_color { TERMINAL_COLOR_AUTO, TERMINAL_COLOR_ALWAYS, TERMINAL_COLOR_NEVER };

/* For the whole process, once the command line is read. */
void terminal_set_color(enum terminal_color color);
bool terminal_has_color(int stream);

#define TERMINAL_BOLD  "\033[1m"
#define TERMINAL_DIM   "\033[2m"
#define TERMINAL_ALARM "\033[31m"
#define TERMINAL_PLAIN "\033[0m"

/* True when the locale of the environment is UTF-8; not when TERM is dumb, which may be an editor
 * or an old console. */
bool terminal_is_utf8(void);

/* Bytes of the first characters of the text, one column each. */
size_t terminal_cut(const char *text, size_t n_columns);

/* Columns of the text, one for each character. */
size_t terminal_width(const char *text);

/* Appends the line broken at spaces, without a line feed at its end. Later lines are indented by
 * two columns more than the first. Longer words stay whole. */
void terminal_wrap(struct phema_strbuf *out, const char *line, size_t n_columns);

/* "3 s", "2 min 05 s", "1 h 20 min", "3 d 4 h" */
const char *terminal_duration(struct phema_name_buffer *buffer, double seconds);

#endif
