// SPDX-License-Identifier: Apache-2.0
/* csv_line.c - lines and decimal numbers of texts that programs print and people edit. */
#include "csv_line.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_SIZE 64 /* longer texts are not numbers */

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

/* strtod also accepts hexadecimal numbers and leading blanks, so other characters are refused
 * first. */
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
