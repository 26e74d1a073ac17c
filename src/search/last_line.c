// SPDX-License-Identifier: Apache-2.0
/* last_line.c - lines of texts that programs print and people edit. */
#include "last_line.h"

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct phema_span last_line_find(const struct phema_strbuf *text, size_t *end)
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
