/* table.h - tables for people: aligned columns, bold heads, cut into blocks where the line is too
 * short for all columns. */
#ifndef PHEMA_TABLE_H
#define PHEMA_TABLE_H

#include "phema/strbuf.h"

/* More rows are counted only: "29 more (-v)". */
#define TABLE_MOST_ROWS 12

/* Of a cell; TABLE_LEFT and TABLE_NEAR of the first row hold for the column. */
enum {
    TABLE_LEFT = 1, /* numbers stand at the right of their columns, texts at the left */
    TABLE_NEAR = 2, /* belongs to the column before: one space between them */
    TABLE_BOLD = 4,
    TABLE_DIM = 8,
    TABLE_ALARM = 16,
    TABLE_KEYS = 32 /* the text of a first key stands below all keys; their cells are empty */
};

/* Starts as {.n_columns = n}, or without columns where table_add_titles adds them. Lack of memory marks it as failed: nothing is then written. */
struct table {
    size_t n_columns;
    size_t n_keys; /* first columns that each block repeats */
    struct table_cell {
        size_t at; /* in text */
        unsigned flags;
    } * cells; /* row after row; the first is the heading */
    size_t n_cells, capacity;
    struct phema_strbuf text; /* of all cells, escaped, each with a NUL */
    bool is_failed;
};

/* The next cell of the row; the row ends with its last column. */
void table_add(struct table *table, unsigned flags, const char *format, ...) PHEMA_PRINTF(3, 4);
/* Adds columns with their cells of the heading: "a|<b|~c", of which b is left and c near. */
void table_add_titles(struct table *table, const char *titles);
/* The next cell, without flags; clears the text. */
void table_add_text(struct table *table, struct phema_strbuf *text);

/* Appends the lines, of at most so many columns where the keys and one column fit in them.
 * indent: spaces before each line */
void table_write(struct phema_strbuf *out, const struct table *table, size_t indent,
                 size_t n_columns, bool has_color);

void table_clear(struct table *table);

#endif
