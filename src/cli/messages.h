/* messages.h - the result on standard output, messages on standard error. */
#ifndef CLI_MESSAGES_H
#define CLI_MESSAGES_H

#include "phema/error.h"
#include "phema/strbuf.h"

/* Prints the result: lines for people, or JSON. No character in it can move the cursor or turn the
 * text.
 * PHEMA_ERR_OUTPUT  not all of it could be written */
PHEMA_FALLIBLE cli_print(const struct phema_strbuf *text, struct phema_error *err);

/* Paths that scripts read are written with their own bytes, unless stdout is a terminal. */
void cli_write_path(struct phema_strbuf *out, const char *path);
PHEMA_FALLIBLE cli_print_as_is(const struct phema_strbuf *text, struct phema_error *err);

/* A line on stderr. Names in it are escaped as phema_strbuf_puts_escaped does. */
void cli_say(const char *format, ...) PHEMA_PRINTF(1, 2);

#endif
