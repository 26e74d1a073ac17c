/* csv_line.h - lines and decimal numbers of texts that programs print and people edit. */
#ifndef SEARCH_CSV_LINE_H
#define SEARCH_CSV_LINE_H

#include "phema/span.h"
#include "phema/strbuf.h"

/* The last nonempty line of the first *end bytes, without blanks around it; *end moves before the
 * line. A carriage return also ends a line, as in progress bars. */
struct phema_span csv_line_last(const struct phema_strbuf *text, size_t *end);

/* Parses a decimal number, nan or inf; false for anything else. */
bool csv_line_number(double *out, struct phema_span text);

#endif
