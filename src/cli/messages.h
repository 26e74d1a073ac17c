/* messages.h - the result on standard output, messages on standard error. */
#ifndef CLI_MESSAGES_H
#define CLI_MESSAGES_H

#include "phema/json.h"
#include "table.h"

struct cli_common;

/* Prints the result, lines for people or JSON, and clears the text. No character in it can move the
 * cursor or turn the text.
 * PHEMA_ERR_OUTPUT  not all of it could be written */
PHEMA_FALLIBLE cli_print(struct phema_strbuf *text, struct phema_error *err);

/* Paths that scripts read are written with their own bytes, unless stdout is a terminal. */
void cli_write_path(struct phema_strbuf *out, const char *path);
PHEMA_FALLIBLE cli_print_as_is(struct phema_strbuf *text, struct phema_error *err);

/* The object of a result, with its version, and its end. */
void cli_json_begin(struct phema_json_out *out, struct phema_strbuf *text, bool is_pretty);
void cli_json_end(struct phema_json_out *out);

/* A line on stderr, broken at words where the terminal is narrower, or at 80 columns. Names in it
 * are escaped as phema_strbuf_puts_escaped does. */
void cli_say(const char *format, ...) PHEMA_PRINTF(1, 2);
/* The same for a line that somebody copies or a program reads: never broken. */
void cli_say_whole(const char *format, ...) PHEMA_PRINTF(1, 2);
/* ---- Warnings ---- */

/* A warning says that the result may not be what was asked for, or that its error is large or
 * unknown. All other messages are about the run, and --quiet leaves them out. */

/* "warning: ..." on stderr, with --quiet as well; also a sentence of "warnings" in the JSON of the
 * result. The same sentence is said once. */
void cli_warn(const struct cli_common *common, const char *format, ...) PHEMA_PRINTF(2, 3);
/* All sentences of a text, each ended by a NUL. */
void cli_warn_all(const struct cli_common *common, const struct phema_strbuf *sentences);
/* Says the warnings so far once more, beside the result of a long run. */
void cli_repeat_warnings(const struct cli_common *common);
/* "warnings": [...], those so far. */
void cli_write_warnings(struct phema_json_out *out, const struct cli_common *common);

/* ---- Lines and tables ---- */

/* A table on stderr, indented by two columns; clears it. */
void cli_say_table(struct table *table);

/* The error, and its remedy on a line of its own. Only a terminal gets the error broken into
 * lines. */
void cli_say_error(const struct phema_error *err);

/* Appends a paragraph for standard output: escaped, and broken at words. */
void cli_write_wrapped(struct phema_strbuf *out, const char *format, ...) PHEMA_PRINTF(2, 3);
/* The same for a line that somebody copies: never broken. */
void cli_write_whole(struct phema_strbuf *out, const char *format, ...) PHEMA_PRINTF(2, 3);
/* Appends a table for standard output; clears it. The text is then printed with cli_print_as_is. */
void cli_write_table(struct phema_strbuf *out, struct table *table, size_t indent);

#endif
