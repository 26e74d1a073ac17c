/* parts.h - what the files of render/ share: tables, lines, and parts of reports. */
#ifndef RENDER_PARTS_H
#define RENDER_PARTS_H

#include "phema/report.h"

/* ---- table.c: aligned columns, bold heads, cut into blocks where the line is too short for all
 * columns ---- */

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

/* ---- messages.c ---- */

/* render_say of a text, which it clears. Nothing of one that has failed. */
void render_say_text(struct phema_strbuf *text);
/* All sentences of a text, each ended by a NUL; clears the text. */
void render_warn_all(const struct render_style *style, struct phema_strbuf *sentences);
/* Says the warnings so far once more, beside the result of a long run. */
void render_repeat_warnings(const struct render_style *style);
/* A table on stderr, indented by two columns; clears it. */
void render_say_table(struct table *table);

/* Appends a paragraph for standard output: escaped, and broken at words. */
void render_write_wrapped(struct phema_strbuf *out, const char *format, ...) PHEMA_PRINTF(2, 3);
/* The same of a text, which it clears. */
void render_write_text(struct phema_strbuf *out, struct phema_strbuf *text);
/* Lines that are escaped and not broken; clears them. */
void render_write_lines(struct phema_strbuf *out, struct phema_strbuf *lines);
/* The same for a line that somebody copies: never broken. */
void render_write_whole(struct phema_strbuf *out, const char *format, ...) PHEMA_PRINTF(2, 3);
/* Appends a table for standard output; clears it. The text is then printed with render_print_as_is. */
void render_write_table(struct phema_strbuf *out, struct table *table, size_t indent);

/* ---- report_series.c, report_plan.c ---- */

/* To stderr: warnings of elements that are NaN, infinite or too large. */
void report_elements(const struct render_style *style, const struct phema_series *series,
                     const struct phema_synth_result *result);
/* "recognised": {...}: what the directory was taken to hold. */
void report_recognised_json(struct phema_json_out *out, const struct phema_series *series);
/* The first target of the largest or least error, among those from first on; NULL: every error is
 * unknown. */
const struct phema_target *report_find_error(const struct phema_plan *plan, size_t first,
                                             bool is_least);
/* A cell: the error to expect, "! " before a large one. */
void report_add_error(struct table *table, double error);
/* Digits after the point that show all values as %.6g does; -1: many, or some have an exponent or
 * are NaN.
 * stride: bytes from one value to the next */
int report_decimals(const double *values, size_t n, size_t stride);
/* The unit of named times: kimg for EDM2, whose clock counts images. */
const char *report_named_unit(const struct phema_series *series);
/* Lines: how many tensors follow each rule, and the error to expect of them. */
void report_rules(struct phema_strbuf *out, const struct phema_plan *plan);
/* A member of the object of a target: "rules", an object for each, with its weights or without. */
void report_rules_json(struct phema_json_out *out, const struct phema_plan *plan,
                       const struct phema_target *target, bool has_weights);

/* ---- inspect_series.c ---- */

/* Lines about gaps, missing and duplicate snapshots after an empty line; or no line. */
void inspect_write_remarks(struct phema_strbuf *out, const struct inspect_times *times);
/* "1024 to 4096"; "0.05, 0.1"; of a run */
void inspect_show_range(struct phema_strbuf *out, const struct inspect_run *run);
void inspect_show_kinds(struct phema_strbuf *out, const struct inspect_times *times,
                        uint64_t kinds);
/* "256", "~137" of one that names have rounded, "uneven", or "" of a time alone */
void inspect_show_step(struct phema_name_buffer *out, double every);

/* ---- inspect_tensors.c ---- */

extern const struct phema_field inspect_total_fields[];
/* "copied (buffer)" of a rule; the prefix of a component, or "(no prefix)". */
void inspect_show_rule(struct phema_name_buffer *out, const struct inspect_total *rule);
void inspect_show_component(struct phema_name_buffer *out, const struct inspect_total *component);

/* Tables of the sums, with an empty line before each; and as members of an object. */
void inspect_write_summary(struct phema_strbuf *out, const struct inspect_summary *summary);
void inspect_write_summary_json(struct phema_json_out *out, const struct inspect_summary *summary);

/* ---- design_lines.c, design_report.c ---- */

/* Appends the lines that make a trainer store the design. */
void design_write_lines(struct phema_strbuf *out, const struct design_answer *answer,
                        const struct phema_design *design);
/* Each time is a multiple of the first. */
bool design_is_even(const struct phema_design *design);

#endif
