/* last_line.h - lines of texts that programs print and people edit. */
#ifndef SEARCH_LAST_LINE_H
#define SEARCH_LAST_LINE_H

#include "phema/span.h"
#include "phema/strbuf.h"

/* The last nonempty line of the first *end bytes, without blanks around it; *end moves before the
 * line. A carriage return also ends a line, as in progress bars. */
struct phema_span last_line_find(const struct phema_strbuf *text, size_t *end);

#endif
