/* html_writer.h - text as HTML: everything that comes from files goes through html_text, so that no
 * name can become a tag, leave an attribute, or turn the direction of what follows it. */
#ifndef CLI_HTML_HTML_WRITER_H
#define CLI_HTML_HTML_WRITER_H

#include "phema/strbuf.h"

/* Escaped; control characters, those that turn or hide text, and bytes that are not UTF-8 are shown
 * as \x.. and \u..... */
void html_text(struct phema_strbuf *out, const char *text);
void html_printf(struct phema_strbuf *out, const char *format, ...) PHEMA_PRINTF(2, 3);

/* <!DOCTYPE html> to <body>; no script, no reference to anything outside. */
void html_begin(struct phema_strbuf *out, const char *title);
void html_end(struct phema_strbuf *out);

/* <h2>; id: of the section, a word of ours */
void html_section(struct phema_strbuf *out, const char *id, const char *title);

/* A table that is scrolled where it is too wide. Columns: their titles, one that begins with '>' is
 * of numbers, aligned at their right; ends with NULL. */
void html_table(struct phema_strbuf *out, const char *const *columns);
void html_row(struct phema_strbuf *out, const char *const *columns, const char *const *cells);
void html_table_end(struct phema_strbuf *out);

#endif
