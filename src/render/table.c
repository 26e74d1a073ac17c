// SPDX-License-Identifier: Apache-2.0
/* table.c - tables for people. */
#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/terminal.h"

#define GAP 2 /* spaces between columns */

void table_add(struct table *table, unsigned flags, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0 ||
        !phema_array_grow(&table->cells, &table->capacity, table->n_cells, sizeof(*table->cells))) {
        table->is_failed = true;
    } else {
        table->cells[table->n_cells++] = (struct table_cell){table->text.size, flags};
        phema_strbuf_puts_escaped(&table->text, text);
        phema_strbuf_append(&table->text, "", 1);
    }
    if (size >= 0)
        free(text);
}

void table_add_titles(struct table *table, const char *titles)
{
    for (;; titles++) {
        unsigned flags = 0;
        for (; *titles == '<' || *titles == '~'; titles++)
            flags |= *titles == '<' ? TABLE_LEFT : TABLE_NEAR;
        size_t size = strcspn(titles, "|");
        table_add(table, flags, "%.*s", (int)size, titles);
        table->n_columns++;
        titles += size;
        if (!*titles)
            return;
    }
}

void table_add_text(struct table *table, struct phema_strbuf *text)
{
    table_add(table, 0, "%s", text->data ? text->data : "");
    table->is_failed |= text->is_failed;
    phema_strbuf_clear(text);
}

static const char *text_of(const struct table *table, size_t row, size_t column)
{
    return table->text.data + table->cells[row * table->n_columns + column].at;
}

static size_t find_width(const struct table *table, size_t column)
{
    size_t width = 0;
    for (size_t row = 0; row < table->n_cells / table->n_columns; row++) {
        if (table->cells[row * table->n_columns + column].flags & TABLE_KEYS)
            continue;
        size_t own = terminal_width(text_of(table, row, column));
        width = own > width ? own : width;
    }
    return width;
}

/* Spaces before the column in a line that has columns before it. */
static size_t find_gap(const struct table *table, size_t column)
{
    return table->cells[column].flags & TABLE_NEAR ? 1 : GAP;
}

/* The end of the block that begins with column first. Columns that are near stay with the one
 * before them. */
static size_t find_end(const struct table *table, const size_t *widths, size_t first, size_t used,
                       size_t n_columns)
{
    size_t end = first;
    while (end < table->n_columns) {
        size_t next = end, wanted = used;
        do {
            wanted += (wanted ? find_gap(table, next) : 0) + widths[next];
            next++;
        } while (next < table->n_columns && (table->cells[next].flags & TABLE_NEAR));
        if (wanted > n_columns && end > first)
            break;
        used = wanted;
        end = next;
    }
    return end;
}

static void write_styled(struct phema_strbuf *out, const char *text, unsigned flags, bool has_color)
{
    const char *style = flags & TABLE_ALARM  ? TERMINAL_ALARM
                        : flags & TABLE_BOLD ? TERMINAL_BOLD
                        : flags & TABLE_DIM  ? TERMINAL_DIM
                                             : NULL;
    bool is_styled = has_color && style && *text;
    if (is_styled)
        phema_strbuf_puts(out, style);
    phema_strbuf_puts(out, text);
    if (is_styled)
        phema_strbuf_puts(out, TERMINAL_PLAIN);
}

/* The columns of the keys; the last key is widened where a text below all of them is longer. */
static size_t find_keys(const struct table *table, size_t *widths)
{
    size_t keys = 0;
    for (size_t column = 0; column < table->n_keys; column++)
        keys += (keys ? find_gap(table, column) : 0) + widths[column];
    for (size_t row = 0; table->n_keys && row < table->n_cells / table->n_columns; row++) {
        bool is_label = (table->cells[row * table->n_columns].flags & TABLE_KEYS) != 0;
        size_t own = is_label ? terminal_width(text_of(table, row, 0)) : 0;
        size_t over = own > keys ? own - keys : 0;
        widths[table->n_keys - 1] += over;
        keys += over;
    }
    return keys;
}

/* Spaces are written before a text only, so that no line ends with them. */
static void write_cell(struct phema_strbuf *out, const struct table *table, size_t row,
                       size_t column, size_t width, size_t *pending, bool has_color)
{
    const char *text = text_of(table, row, column);
    unsigned flags = table->cells[row * table->n_columns + column].flags;
    size_t left = width - terminal_width(text);
    bool is_left = (table->cells[column].flags & TABLE_LEFT) != 0;
    *pending += is_left ? 0 : left;
    if (*text) {
        phema_strbuf_printf(out, "%*s", (int)*pending, "");
        write_styled(out, text, row ? flags : flags | TABLE_BOLD, has_color);
        *pending = 0;
    }
    *pending += is_left ? left : 0;
}

static void write_row(struct phema_strbuf *out, const struct table *table, const size_t *widths,
                      size_t keys, size_t row, size_t first, size_t end, size_t indent,
                      bool has_color)
{
    size_t pending = indent, column = 0;
    bool has_any = false;
    if (table->cells[row * table->n_columns].flags & TABLE_KEYS) {
        write_cell(out, table, row, 0, keys, &pending, has_color);
        column = table->n_keys;
        has_any = true;
    }
    for (; column < end; column++) {
        if (column >= table->n_keys && column < first)
            continue;
        pending += has_any ? find_gap(table, column) : 0;
        write_cell(out, table, row, column, widths[column], &pending, has_color);
        has_any = true;
    }
    phema_strbuf_puts(out, "\n");
}

void table_write(struct phema_strbuf *out, const struct table *table, size_t indent,
                 size_t n_columns, bool has_color)
{
    size_t n_rows = table->n_cells / table->n_columns;
    size_t *widths = calloc(table->n_columns, sizeof(*widths));
    if (!widths || table->is_failed || table->text.is_failed) {
        out->is_failed = true;
        free(widths);
        return;
    }
    for (size_t column = 0; column < table->n_columns && n_rows; column++)
        widths[column] = find_width(table, column);
    size_t keys = find_keys(table, widths);
    size_t most = n_columns > indent ? n_columns - indent : 0;
    for (size_t first = table->n_keys, end; n_rows && first < table->n_columns; first = end) {
        end = find_end(table, widths, first, keys, most);
        if (first > table->n_keys)
            phema_strbuf_puts(out, "\n");
        for (size_t row = 0; row < n_rows; row++)
            write_row(out, table, widths, keys, row, first, end, indent, has_color);
    }
    free(widths);
}

void table_clear(struct table *table)
{
    free(table->cells);
    phema_strbuf_clear(&table->text);
    *table = (struct table){.n_columns = table->n_columns, .n_keys = table->n_keys};
}
