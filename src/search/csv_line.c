// SPDX-License-Identifier: Apache-2.0
/* csv_line.c - see csv_line.h. */
#include "csv_line.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_SIZE 64 /* of a double with room to spare; longer ones are none */

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct phema_span csv_line_last(const struct phema_strbuf *text, size_t *end)
{
    const char *data = text->data;
    size_t size = *end;
    while (size && (is_end(data[size - 1]) || is_blank(data[size - 1])))
        size--;
    size_t first = size;
    while (first && !is_end(data[first - 1]))
        first--;
    *end = first;
    while (first < size && is_blank(data[first]))
        first++;
    return (struct phema_span){(const uint8_t *)data + first, size - first};
}

/* strtod takes hexadecimal and blanks as well: what is none of a decimal is none. */
bool csv_line_number(double *out, struct phema_span text)
{
    char copy[NUMBER_SIZE];
    if (text.size == 0 || text.size >= sizeof(copy))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (strlen(copy) != text.size || strspn(copy, "0123456789+-.eEinfatyINFATY") != text.size)
        return false;
    char *end = NULL;
    *out = strtod(copy, &end);
    return end == copy + text.size;
}
