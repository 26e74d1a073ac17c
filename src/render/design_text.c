// SPDX-License-Identifier: Apache-2.0
/* design_text.c - the answer for people: a table of choices, the chosen one beside others, lines for the
 * trainer. */
#include <ctype.h>
#include <math.h>

#include "phema/report.h"

/* Another motion matters if its best design is so many times better than the chosen one there. */
#define MOTION_MATTERS 2.0

/* ---- Designs in words ---- */

static void write_dtype_name(struct phema_strbuf *out, enum phema_dtype dtype)
{
    for (const char *c = phema_dtype_name(dtype); *c; c++)
        phema_strbuf_printf(out, "%c", tolower((unsigned char)*c));
}

static void write_dtype(struct phema_strbuf *out, const struct phema_design *design)
{
    write_dtype_name(out, design->widths[0].dtype);
}

void design_write_widths(struct phema_strbuf *out, const struct phema_design *design)
{
    for (size_t k = 0; k < design->n_widths; k++) {
        phema_strbuf_puts(out, k ? ", " : "");
        if (design->widths[k].profile.shape == PHEMA_SHAPE_RAW)
            phema_strbuf_puts(out, "raw");
        else
            phema_strbuf_printf(out, "%g", design->widths[k].sigma_rel);
    }
}

static bool is_even(const struct phema_design *design)
{
    for (size_t i = 0; i < design->n_times; i++)
        if (design->times[i] != design->times[0] * (double)(i + 1))
            return false;
    return true;
}

void design_write_times(struct phema_strbuf *out, const struct phema_design *design)
{
    struct phema_name_buffer first, last;
    if (design->n_times == 1)
        phema_strbuf_printf(out, "at %s", phema_number_format(&first, design->times[0]));
    else if (is_even(design))
        phema_strbuf_printf(out, "every %s", phema_number_format(&first, design->times[0]));
    else
        phema_strbuf_printf(out, "%s to %s", phema_number_format(&first, design->times[0]),
                            phema_number_format(&last, design->times[design->n_times - 1]));
}

static void write_target(struct phema_strbuf *out, const struct design_asked *asked,
                         const struct phema_design *design)
{
    struct phema_name_buffer end;
    double sigma_rel = asked->sigma_rels[design->worst_target];
    if (isnan(sigma_rel))
        phema_strbuf_puts(out, asked->specs[design->worst_target]);
    else
        phema_strbuf_printf(out, "%.3g", sigma_rel);
    if (asked->question.n_ends > 1 || asked->question.after > 0)
        phema_strbuf_printf(out, " at %s", phema_number_format(&end, design->worst_end));
}

static void add_target(struct table *table, const struct design_asked *asked,
                       const struct phema_design *design)
{
    struct phema_strbuf text = {0};
    write_target(&text, asked, design);
    table_add(table, TABLE_LEFT, "%s", text.data ? text.data : "");
    phema_strbuf_clear(&text);
}

static void add_written(struct table *table, const struct phema_design *design,
                        void (*write)(struct phema_strbuf *, const struct phema_design *))
{
    struct phema_strbuf text = {0};
    write(&text, design);
    table_add(table, TABLE_LEFT, "%s", text.data ? text.data : "");
    phema_strbuf_clear(&text);
}

/* ---- Tables ---- */

/* The columns that all tables share. */
static void add_design(struct table *table, const struct phema_design *design)
{
    add_written(table, design, design_write_widths);
    add_written(table, design, write_dtype);
    table_add(table, 0, "%zu", design->n_times);
}

static void add_titles(struct table *table)
{
    table_add(table, TABLE_LEFT, "widths");
    table_add(table, TABLE_LEFT, "dtype");
    table_add(table, 0, "times");
}

static void write_choices(struct phema_strbuf *out, const struct design_answer *answer)
{
    struct table table = {.n_columns = 7, .n_keys = 2};
    table_add(&table, 0, "disk");
    table_add(&table, TABLE_NEAR, "%s", "");
    table_add(&table, 0, "error");
    table_add(&table, TABLE_LEFT, "worst at");
    add_titles(&table);
    for (size_t i = 0; i < answer->choices.n; i++) {
        const struct phema_design *design = &answer->choices.items[i];
        struct phema_name_buffer size;
        table_add(&table, 0, "%s", phema_size_format(&size, design->disk_bytes));
        table_add(&table, 0, "%s", i == answer->choices.chosen ? "*" : "");
        table_add(&table, 0, "%.1e", design->worst_error);
        add_target(&table, answer->asked, design);
        add_design(&table, design);
    }
    render_write_table(out, &table, 2);
}

static void write_others(struct phema_strbuf *out, const struct design_answer *answer)
{
    const struct phema_design *chosen = &answer->choices.items[answer->choices.chosen];
    struct table table = {.n_columns = 6, .n_keys = 1};
    if (!answer->n_others)
        return;
    render_write_wrapped(out, "the same disk otherwise");
    table_add(&table, TABLE_LEFT, "%s", "");
    table_add(&table, 0, "error");
    table_add(&table, 0, "factor");
    add_titles(&table);
    for (size_t i = 0; i < answer->n_others; i++) {
        const struct phema_design *design = &answer->others[i].design;
        double factor = design->worst_error / chosen->worst_error;
        table_add(&table, TABLE_LEFT, "%s", answer->others[i].name);
        table_add(&table, 0, "%.1e", design->worst_error);
        table_add(&table, 0, "%.*f", factor < 10 ? 1 : 0, factor);
        add_design(&table, design);
    }
    render_write_table(out, &table, 2);
}

/* ---- Sentences ---- */

/* "650M": four digits, as models are called. */
static void write_params(struct phema_strbuf *out, uint64_t n)
{
    static const char letters[] = "kMBT";
    double value = (double)n;
    size_t i = 0;
    for (; value >= 999.95 && i < sizeof(letters) - 1; i++)
        value /= 1000;
    phema_strbuf_printf(out, "%.4g", value);
    if (i)
        phema_strbuf_printf(out, "%c", letters[i - 1]);
}

static void write_model(struct phema_strbuf *out, const struct phema_design_question *question)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer size;
    write_params(&text, question->model_elems);
    phema_strbuf_puts(&text, " parameters; a snapshot takes ");
    for (size_t d = question->n_dtypes; d-- > 0;) {
        uint64_t bytes = phema_dtype_bytes(question->dtypes[d], question->model_elems);
        phema_strbuf_printf(&text, "%s in ", phema_size_format(&size, bytes));
        write_dtype_name(&text, question->dtypes[d]);
        phema_strbuf_puts(&text, d ? ", " : "");
    }
    if (question->other_bytes)
        phema_strbuf_printf(&text, "; each file also has the optimizer's state, %s with Adam",
                            phema_size_format(&size, question->other_bytes));
    render_write_wrapped(out, "%s", text.data ? text.data : "");
    phema_strbuf_clear(&text);
}

static void write_question(struct phema_strbuf *out, const struct design_asked *asked)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer every, until, after;
    const struct phema_design_question *question = &asked->question;
    phema_strbuf_printf(&text, "%zu average%s up to %s %s", asked->finer.n_targets,
                        asked->finer.n_targets == 1 ? "" : "s",
                        phema_number_format(&until, question->until), asked->unit);
    if (asked->wishes->range_text)
        phema_strbuf_printf(&text, ", sigma_rel %s", asked->wishes->range_text);
    if (question->n_ends > 1)
        phema_strbuf_printf(&text, ", at %zu times", question->n_ends);
    if (question->after > 0)
        phema_strbuf_printf(&text, ", at any time from %s on",
                            phema_number_format(&after, question->after));
    if (!isnan(asked->wishes->raw_every))
        phema_strbuf_printf(&text, "; %zu raw checkpoint%s, every %s, %s kept anyway",
                            question->n_kept, question->n_kept == 1 ? "" : "s",
                            phema_number_format(&every, asked->wishes->raw_every),
                            question->n_kept == 1 ? "is" : "are");
    if (question->n_useless)
        phema_strbuf_puts(&text, "; the disk includes those that are saved before the first step");
    render_write_wrapped(out, "%s", text.data ? text.data : "");
    phema_strbuf_clear(&text);
}

/* Rounding of a result that is stored as f16. */
#define F16_HIDES 2e-4

static void write_chosen(struct phema_strbuf *out, const struct design_asked *asked,
                         const struct phema_design *chosen)
{
    struct phema_strbuf times = {0}, target = {0};
    design_write_times(&times, chosen);
    write_target(&target, asked, chosen);
    render_write_wrapped(
        out,
        "* chosen: %zu time%s, %s; its worst average, %s, is expected to be off by "
        "%.1e of the norm of all parameters%s",
        chosen->n_times, chosen->n_times == 1 ? "" : "s", times.data ? times.data : "",
        target.data ? target.data : "", chosen->worst_error,
        chosen->worst_error < F16_HIDES ? "; a result in f16 hides errors below 2e-4" : "");
    phema_strbuf_clear(&times);
    phema_strbuf_clear(&target);
}

/* Files to delete, as weights --advise lists them. */
static void write_kept(struct phema_strbuf *out, const struct design_asked *asked)
{
    const struct phema_series *series = asked->run->series;
    size_t n_kept = 0;
    for (size_t k = 0; k < series->n; k++)
        n_kept += !asked->is_deleted[k];
    render_write_wrapped(out,
                         "keep %zu of %zu snapshots of %s; the disk of the others is better used "
                         "for new ones",
                         n_kept, series->n, series->root);
    for (size_t k = 0; k < series->n; k++)
        if (asked->is_deleted[k])
            render_write_whole(out, "delete  %s", series->snapshots[k].label);
}

/* Whether the answer depends on how parameters move. */
static void write_motions(struct phema_strbuf *out, const struct design_answer *answer)
{
    struct phema_strbuf text = {0};
    size_t n_matter = 0;
    for (size_t m = 0; m < PHEMA_N_MOVING; m++) {
        double own = answer->in_motion[m], best = answer->best_in_motion[m].worst_error;
        if (isnan(own) || own < MOTION_MATTERS * best)
            continue;
        phema_strbuf_puts(&text, n_matter++ ? "; " : "");
        phema_strbuf_printf(&text, "under --motion %s it gives %.1e, and widths ",
                            design_motion_names[m], own);
        design_write_widths(&text, &answer->best_in_motion[m]);
        phema_strbuf_printf(&text, " give %.1e", best);
    }
    if (n_matter)
        render_write_wrapped(
            out, "the choice depends on how parameters move, which --like RUN shows: %s",
            text.data ? text.data : "");
    else
        render_write_wrapped(out,
                             "the choice is within a factor %g of the best one in other motions "
                             "too (--motion)",
                             MOTION_MATTERS);
    phema_strbuf_clear(&text);
}

void design_write_text(struct phema_strbuf *out, const struct design_answer *answer)
{
    const struct phema_design *chosen = &answer->choices.items[answer->choices.chosen];
    write_model(out, &answer->asked->question);
    write_question(out, answer->asked);
    write_choices(out, answer);
    write_chosen(out, answer->asked, chosen);
    if (answer->asked->is_deleted)
        write_kept(out, answer->asked);
    write_others(out, answer);
    write_motions(out, answer);
    phema_strbuf_puts(out, "\n");
    struct phema_strbuf lines = {0};
    design_write_lines(&lines, answer, chosen);
    phema_strbuf_append_lines(out, lines.data ? lines.data : "", lines.size);
    phema_strbuf_clear(&lines);
}
