/* terminal.h - what the terminal at standard error can show. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "phema/strbuf.h"

/* One that moves its cursor: not a pipe, and TERM is neither unset nor dumb. */
bool terminal_can_draw(void);

/* Of its lines; 80 where it does not say. */
size_t terminal_columns(void);

/* Whether texts may hold more than ASCII, as the environment's locale says; not when TERM is dumb,
 * which may be an editor's or a console's of long ago. */
bool terminal_is_utf8(void);

/* Bytes of the text's first characters, one column each. */
size_t terminal_cut(const char *text, size_t n_columns);

/* "3 s", "2 min 05 s", "1 h 20 min", "3 d 4 h" */
struct phema_name_buffer;
const char *terminal_duration(struct phema_name_buffer *buffer, double seconds);

#endif
