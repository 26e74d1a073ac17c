// SPDX-License-Identifier: Apache-2.0
/* design_report.c - the answer for people: a table of choices, the chosen one beside others, lines for
 * the trainer. The same as JSON. */
#include <ctype.h>
#include <math.h>

#include "parts.h"

/* Another motion matters if its best design is so many times better than the chosen one there. */
#define MOTION_MATTERS 2.0

/* ---- Designs in words ---- */

/* "bf16" */
static const char *show_dtype(struct phema_name_buffer *out, enum phema_dtype dtype)
{
    const char *upper = phema_dtype_name(dtype);
    size_t i = 0;
    for (; upper[i]; i++)
        out->text[i] = (char)tolower((unsigned char)upper[i]);
    out->text[i] = '\0';
    return out->text;
}

/* "0.025, 0.173, raw" */
static void write_widths(struct phema_strbuf *out, const struct phema_design *design)
{
    for (size_t k = 0; k < design->n_widths; k++) {
        phema_strbuf_puts(out, k ? ", " : "");
        if (design->widths[k].profile.shape == PHEMA_SHAPE_RAW)
            phema_strbuf_puts(out, "raw");
        else
            phema_strbuf_printf(out, "%g", design->widths[k].sigma_rel);
    }
}

/* "every 6250", "64 times, 7815 to 1000000" */
static void write_times(struct phema_strbuf *out, const struct phema_design *design)
{
    struct phema_name_buffer first, last;
    if (design->n_times == 1)
        phema_strbuf_printf(out, "at %s", phema_number_format(&first, design->times[0]));
    else if (design_is_even(design))
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

/* ---- Tables ---- */

/* The columns that all tables share. */
static void add_design(struct table *table, const struct phema_design *design)
{
    struct phema_strbuf widths = {0};
    struct phema_name_buffer dtype;
    write_widths(&widths, design);
    table_add_text(table, &widths);
    table_add(table, TABLE_LEFT, "%s", show_dtype(&dtype, design->widths[0].dtype));
    table_add(table, 0, "%zu", design->n_times);
}

static void write_choices(struct phema_strbuf *out, const struct design_answer *answer)
{
    struct table table = {.n_keys = 2};
    table_add_titles(&table, "disk|~|error|<worst at|<widths|<dtype|times");
    for (size_t i = 0; i < answer->choices.n; i++) {
        const struct phema_design *design = &answer->choices.items[i];
        struct phema_name_buffer size;
        struct phema_strbuf target = {0};
        table_add(&table, 0, "%s", phema_size_format(&size, design->disk_bytes));
        table_add(&table, 0, "%s", i == answer->choices.chosen ? "*" : "");
        table_add(&table, 0, "%.1e", design->worst_error);
        write_target(&target, answer->asked, design);
        table_add_text(&table, &target);
        add_design(&table, design);
    }
    render_write_table(out, &table, 2);
}

static void write_others(struct phema_strbuf *out, const struct design_answer *answer)
{
    const struct phema_design *chosen = &answer->choices.items[answer->choices.chosen];
    struct table table = {.n_keys = 1};
    if (!answer->n_others)
        return;
    render_write_wrapped(out, "the same disk otherwise");
    table_add_titles(&table, "<|error|factor|<widths|<dtype|times");
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
    struct phema_name_buffer size, dtype;
    write_params(&text, question->model_elems);
    phema_strbuf_puts(&text, " parameters; a snapshot takes ");
    for (size_t d = question->n_dtypes; d-- > 0;) {
        uint64_t bytes = phema_dtype_bytes(question->dtypes[d], question->model_elems);
        phema_strbuf_printf(&text, "%s in %s%s", phema_size_format(&size, bytes),
                            show_dtype(&dtype, question->dtypes[d]), d ? ", " : "");
    }
    if (question->other_bytes)
        phema_strbuf_printf(&text, "; each file also has the optimizer's state, %s with Adam",
                            phema_size_format(&size, question->other_bytes));
    render_write_text(out, &text);
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
    render_write_text(out, &text);
}

/* Rounding of a result that is stored as f16. */
#define F16_HIDES 2e-4

static void write_chosen(struct phema_strbuf *out, const struct design_asked *asked,
                         const struct phema_design *chosen)
{
    struct phema_strbuf times = {0}, target = {0};
    write_times(&times, chosen);
    write_target(&target, asked, chosen);
    render_write_wrapped(
        out,
        "* chosen: %zu time%s, %s; its worst average, %s, is expected to be off by "
        "%.1e of the norm of all parameters%s",
        chosen->n_times, chosen->n_times == 1 ? "" : "s", times.data ? times.data : "",
        target.data ? target.data : "", chosen->worst_error,
        chosen->worst_error < F16_HIDES ? "; a result in f16 hides errors below 2e-4" : "");
    phema_strbuf_clear_part(&times, out);
    phema_strbuf_clear_part(&target, out);
}

/* Files to delete, as weights --advise lists them. */
static void list_kept(struct phema_strbuf *out, const struct design_asked *asked)
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
    for (size_t m = 0; m < answer->n_motions; m++) {
        const struct design_motion *motion = &answer->motions[m];
        if (motion->worst_error < MOTION_MATTERS * motion->best.worst_error)
            continue;
        phema_strbuf_printf(&text, "%sunder --motion %s it gives %.1e, and widths ",
                            n_matter++ ? "; " : "", motion->name, motion->worst_error);
        write_widths(&text, &motion->best);
        phema_strbuf_printf(&text, " give %.1e", motion->best.worst_error);
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
    phema_strbuf_clear_part(&text, out);
}

void design_write_text(struct phema_strbuf *out, const struct design_answer *answer)
{
    const struct phema_design *chosen = &answer->choices.items[answer->choices.chosen];
    write_model(out, &answer->asked->question);
    write_question(out, answer->asked);
    write_choices(out, answer);
    write_chosen(out, answer->asked, chosen);
    if (answer->asked->is_deleted)
        list_kept(out, answer->asked);
    write_others(out, answer);
    write_motions(out, answer);
    phema_strbuf_puts(out, "\n");
    struct phema_strbuf lines = {0};
    design_write_lines(&lines, answer, chosen);
    render_write_lines(out, &lines);
}

/* ---- JSON ---- */

static const struct phema_field width_fields[] = {
    PHEMA_FIELD(NUMBER, ALWAYS, "sigma_rel", struct phema_design_width, sigma_rel),
    PHEMA_FIELD(NUMBER, ALWAYS, "half_life", struct phema_design_width, profile.half_life),
    PHEMA_FIELD(NUMBER, ALWAYS, "gamma", struct phema_design_width, profile.gamma),
    {0},
};

static void write_averages_json(struct phema_json_out *out, const struct phema_design *design)
{
    struct phema_name_buffer dtype;
    bool has_raw = design->widths[design->n_widths - 1].profile.shape == PHEMA_SHAPE_RAW;
    bool is_ema = design->widths[0].profile.shape == PHEMA_SHAPE_EMA;
    size_t n = design->n_widths - has_raw;
    phema_json_out_open(out, "widths", '[');
    for (size_t k = 0; k < n; k++)
        phema_json_out_number(out, NULL, design->widths[k].sigma_rel);
    phema_json_out_close(out, ']');
    phema_json_out_bool(out, "raw", has_raw);
    phema_json_out_open(out, "times", '[');
    for (size_t i = 0; i < design->n_times; i++)
        phema_json_out_u64(out, NULL, (uint64_t)design->times[i]);
    phema_json_out_close(out, ']');
    phema_json_out_string(out, "dtype", show_dtype(&dtype, design->widths[0].dtype));
    phema_record_write_list(out, "averages", width_fields,
                            is_ema ? "sigma_rel half_life" : "sigma_rel gamma", design->widths, n,
                            sizeof(*design->widths));
}

static void write_design_json(struct phema_json_out *out, const struct design_asked *asked,
                              const struct phema_design *design)
{
    phema_json_out_u64(out, "disk_bytes", design->disk_bytes);
    write_averages_json(out, design);
    phema_json_out_number(out, "worst_error", design->worst_error);
    phema_json_out_open(out, "worst_target", '{');
    double sigma_rel = asked->sigma_rels[design->worst_target];
    phema_json_out_number(out, "sigma_rel", sigma_rel);
    if (asked->specs[design->worst_target])
        phema_json_out_string(out, "profile", asked->specs[design->worst_target]);
    phema_json_out_u64(out, "time", (uint64_t)design->worst_end);
    phema_json_out_close(out, '}');
}

static void write_head_json(struct phema_json_out *out, const struct design_asked *asked)
{
    phema_json_out_u64(out, "until", (uint64_t)asked->question.until);
    phema_json_out_string(out, "unit", asked->unit);
    phema_json_out_string(out, "motion",
                          asked->question.motion.moving == PHEMA_MOVING_SEEN
                              ? "seen"
                              : phema_moving_names[asked->question.motion.moving]);
    phema_json_out_u64(out, "model_elements", asked->question.model_elems);
    if (!isnan(asked->wishes->raw_every))
        phema_json_out_u64(out, "raw_every", (uint64_t)asked->wishes->raw_every);
}

/* Bytes of a snapshot in each dtype that may be chosen. */
static void write_sizes_json(struct phema_json_out *out,
                             const struct phema_design_question *question)
{
    phema_json_out_open(out, "snapshot_bytes", '{');
    for (size_t d = question->n_dtypes; d-- > 0;) {
        struct phema_name_buffer dtype;
        phema_json_out_u64(out, show_dtype(&dtype, question->dtypes[d]),
                           phema_dtype_bytes(question->dtypes[d], question->model_elems));
    }
    phema_json_out_close(out, '}');
}

/* Files of --keep-existing. */
static void write_kept_json(struct phema_json_out *out, const struct design_asked *asked)
{
    const struct phema_series *series = asked->run->series;
    static const char *const keys[] = {"keep", "delete"};
    for (size_t is_deleted = 0; is_deleted < 2; is_deleted++) {
        phema_json_out_open(out, keys[is_deleted], '[');
        for (size_t k = 0; k < series->n; k++)
            if (asked->is_deleted[k] == (is_deleted == 1))
                phema_json_out_string(out, NULL, series->snapshots[k].label);
        phema_json_out_close(out, ']');
    }
}

static const struct phema_field motion_fields[] = {
    PHEMA_FIELD(TEXT, ALWAYS, "motion", struct design_motion, name),
    PHEMA_FIELD(NUMBER, ALWAYS, "worst_error", struct design_motion, worst_error),
    PHEMA_FIELD(NUMBER, ALWAYS, "least_worst_error", struct design_motion, best.worst_error),
    {0},
};

void design_write_json(struct phema_strbuf *out, const struct render_style *style,
                       const struct design_answer *answer)
{
    struct phema_json_out json;
    struct phema_strbuf lines = {0};
    render_json_begin(&json, out, true);
    write_head_json(&json, answer->asked);
    write_sizes_json(&json, &answer->asked->question);
    phema_json_out_open(&json, "choices", '[');
    for (size_t i = 0; i < answer->choices.n; i++) {
        phema_json_out_open(&json, NULL, '{');
        write_design_json(&json, answer->asked, &answer->choices.items[i]);
        phema_json_out_close(&json, '}');
    }
    phema_json_out_close(&json, ']');
    phema_json_out_u64(&json, "chosen", answer->choices.chosen);
    if (answer->asked->is_deleted)
        write_kept_json(&json, answer->asked);
    phema_json_out_open(&json, "others", '[');
    for (size_t i = 0; i < answer->n_others; i++) {
        phema_json_out_open(&json, NULL, '{');
        phema_json_out_string(&json, "name", answer->others[i].name);
        write_design_json(&json, answer->asked, &answer->others[i].design);
        phema_json_out_close(&json, '}');
    }
    phema_json_out_close(&json, ']');
    phema_record_write_list(&json, "motions", motion_fields, NULL, answer->motions,
                            answer->n_motions, sizeof(*answer->motions));
    design_write_lines(&lines, answer, &answer->choices.items[answer->choices.chosen]);
    phema_json_out_string(&json, "lines", lines.data ? lines.data : "");
    phema_strbuf_clear_part(&lines, out);
    if (answer->asked->run)
        report_checks_json(&json, style, answer->asked->run);
    render_json_end(&json);
}

void design_write_file(struct phema_strbuf *out, const struct design_answer *answer)
{
    struct phema_json_out json;
    render_json_begin(&json, out, true);
    write_head_json(&json, answer->asked);
    write_design_json(&json, answer->asked, &answer->choices.items[answer->choices.chosen]);
    render_json_end(&json);
}
