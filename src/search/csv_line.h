/* lines.h - texts that programs print and people edit. */
#ifndef SEARCH_LINES_H
#define SEARCH_LINES_H

#include "phema/span.h"
#include "phema/strbuf.h"

/* The last line of the first *end bytes without blanks around it, and *end moved before it. Lines
 * end at a carriage return as well, as those of progress bars do. */
struct phema_span lines_last(const struct phema_text *text, size_t *end);

/* A decimal, nan or inf and nothing else. */
bool lines_number(double *out, struct phema_span text);

#endif
