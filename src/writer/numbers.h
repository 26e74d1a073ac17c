/* numbers.h - private to writer/: lists of numbers for messages, "2, 5-7". */
#ifndef WRITER_NUMBERS_H
#define WRITER_NUMBERS_H

#include "phema/strbuf.h"

struct numbers {
    struct phema_strbuf text; /* the caller clears it */
    uint64_t first, last, n;
};

void numbers_add(struct numbers *numbers, uint64_t number); /* larger than those before */
void numbers_end(struct numbers *numbers);                  /* text is complete */

#endif
