/* csv_line.h - texts that programs print and people edit. */
#ifndef SEARCH_CSV_LINE_H
#define SEARCH_CSV_LINE_H

#include "phema/span.h"
#include "phema/strbuf.h"

/* The last line of the first *end bytes without blanks around it, and *end moved before it. Lines
 * end at a carriage return as well, as those of progress bars do. */
struct phema_span csv_line_last(const struct phema_strbuf *text, size_t *end);

/* A decimal, nan or inf and nothing else. */
bool csv_line_number(double *out, struct phema_span text);

#endif
