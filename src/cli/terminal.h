/* terminal.h - capabilities of the terminal at standard error. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "phema/strbuf.h"

/* True for a terminal that can move its cursor: not a pipe, and TERM is set and not dumb. */
bool terminal_can_draw(void);

/* Columns of a line; 80 when unknown. */
size_t terminal_columns(void);

/* True when the locale of the environment is UTF-8; not when TERM is dumb, which may be an editor
 * or an old console. */
bool terminal_is_utf8(void);

/* Bytes of the first characters of the text, one column each. */
size_t terminal_cut(const char *text, size_t n_columns);

/* "3 s", "2 min 05 s", "1 h 20 min", "3 d 4 h" */
const char *terminal_duration(struct phema_name_buffer *buffer, double seconds);

#endif
