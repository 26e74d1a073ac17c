/* html_writer.h - text as HTML. All text from files goes through html_text, so that no name can
 * become a tag, end an attribute, or reverse the text after it. */
#ifndef CLI_HTML_HTML_WRITER_H
#define CLI_HTML_HTML_WRITER_H

#include "phema/strbuf.h"

/* Escapes the text. Control characters, characters that reverse or hide text, and bytes that are
 * not UTF-8 become \x.. and \u..... */
void html_text(struct phema_strbuf *out, const char *text);
void html_printf(struct phema_strbuf *out, const char *format, ...) PHEMA_PRINTF(2, 3);

/* Writes <!DOCTYPE html> to <body>; no script, no reference to other files. */
void html_begin(struct phema_strbuf *out, const char *title);
void html_end(struct phema_strbuf *out);

/* <h2>; id: of the section, a word of ours */
void html_section(struct phema_strbuf *out, const char *id, const char *title);

void html_warning(struct phema_strbuf *out, const char *text);

/* A table that scrolls when it is too wide. columns: titles, ends with NULL. A title that begins
 * with '>' marks a column of numbers, aligned to the right; one that begins with '~' or "~>" a
 * column that narrow screens leave out. */
void html_table(struct phema_strbuf *out, const char *const *columns);
void html_row(struct phema_strbuf *out, const char *const *columns, const char *const *cells);
void html_table_end(struct phema_strbuf *out);

#endif
