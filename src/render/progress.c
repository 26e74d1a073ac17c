// SPDX-License-Identifier: Apache-2.0
/* progress.c - a bar on a terminal, lines elsewhere. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/json.h"
#include "phema/progress.h"
#include "phema/render.h"
#include "phema/report.h"
#include "phema/terminal.h"

#define PLAIN_EVERY_S 10.0
#define BAR_EVERY_S   0.1

/* The bar takes a third of the line, within these limits; the name of the tensor takes the rest. */
#define LEAST_BAR  8
#define MOST_BAR   24
#define LEAST_NAME 8

/* Columns of sizes, rate and time left at their widest */
#define NUMBERS 52

void progress_init(struct progress *progress, const struct render_style *style)
{
    *progress = (struct progress){.style = PROGRESS_NONE, .is_utf8 = terminal_is_utf8()};
    if (!style->is_quiet)
        progress->style = style->progress;
    if (progress->style == PROGRESS_AUTO)
        progress->style = terminal_can_draw() ? PROGRESS_BAR : PROGRESS_PLAIN;
}

void progress_set_farewell(struct progress *progress, const char *text)
{
    char *own = progress->farewells[progress->n_farewells++ % ARRAY_LEN(progress->farewells)];
    if (progress->style == PROGRESS_NONE)
        return;
    (void)snprintf(own, sizeof(progress->farewells[0]), "%sstopped%s%s\n",
                   progress->n_drawn ? "\n" : "", *text ? "; " : "", text);
    phema_cleanup_set_farewell(own);
}

static void update_farewell(struct progress *progress, const struct phema_progress *state)
{
    char text[64] = "nothing was written";
    double done = (double)(state->resumed_bytes + state->done_bytes);
    double total = (double)(state->resumed_bytes + state->total_bytes);
    if (progress->kept == PHEMA_WRITES_NOTHING)
        text[0] = '\0';
    else if (progress->kept == PHEMA_KEEPS_PART)
        (void)snprintf(text, sizeof(text), "run the same part again");
    else if (progress->kept == PHEMA_KEEPS_TILES && state->stage)
        (void)snprintf(text, sizeof(text), "run the same command to continue");
    else if (progress->kept == PHEMA_KEEPS_TILES)
        (void)snprintf(text, sizeof(text), "run the same command to continue (%.0f %% done)",
                       total > 0 ? floor(100 * done / total) : 0);
    else if (state->n_published)
        (void)snprintf(text, sizeof(text), "%zu of %zu outputs were written", state->n_published,
                       state->n_items);
    progress_set_farewell(progress, text);
}

/* Replaces the current line. The last column stays free, because some terminals wrap there. */
static void draw_line(struct progress *progress, const char *text)
{
    size_t columns = terminal_columns(STDERR_FILENO) - 1;
    size_t size = terminal_cut(text, columns), n_shown = 0;
    for (size_t i = 0; i < size; i++)
        n_shown += ((unsigned char)text[i] & 0xC0) != 0x80;
    int over = (int)(progress->n_drawn > n_shown ? progress->n_drawn - n_shown : 0);
    (void)fprintf(stderr, "\r%.*s%*s", (int)size, text, over, "");
    if (over) /* the cursor stays after the text */
        (void)fprintf(stderr, "\r%.*s", (int)size, text);
    (void)fflush(stderr);
    progress->n_drawn = n_shown;
}

void progress_line(struct progress *progress, const char *text)
{
    if (progress->style == PROGRESS_BAR && text)
        draw_line(progress, text);
}

static void write_bar(struct phema_strbuf *out, const struct progress *progress, double share,
                      size_t size)
{
    size_t full = (size_t)(share * (double)size + 0.5);
    phema_strbuf_puts(out, "[");
    for (size_t i = 0; i < size; i++)
        if (progress->is_utf8)
            phema_strbuf_puts(out, i < full ? "█" : "░");
        else
            phema_strbuf_puts(out, i < full ? "#" : "-");
    phema_strbuf_puts(out, "]");
}

static void write_label(struct phema_strbuf *out, const struct progress *progress,
                        const char *separator)
{
    if (progress->label)
        phema_strbuf_printf(out, "%s%s", progress->label, separator);
}

/* "reading", "compressing 1/2" */
static void write_stage(struct phema_strbuf *out, const struct phema_progress *state)
{
    phema_strbuf_puts(out, state->stage ? state->stage : "reading");
    if (state->stage && state->n_items > 1)
        phema_strbuf_printf(out, " %zu/%zu", state->item, state->n_items);
}

static double share_of(const struct phema_progress *state)
{
    return state->total_bytes ? (double)state->done_bytes / (double)state->total_bytes : 1.0;
}

/* "  0.55 GiB of 1.19 GiB  877 MiB/s  3 s left"; the sizes only on wide terminals */
static void write_numbers(struct phema_strbuf *out, const struct phema_progress *state,
                          double left_s, bool has_sizes)
{
    struct phema_name_buffer text, total;
    double per_s = state->elapsed_s > 0 ? (double)state->done_bytes / state->elapsed_s : 0;
    if (!state->is_other_unit && has_sizes)
        phema_strbuf_printf(out, "  %s of %s", phema_size_format(&text, state->done_bytes),
                            phema_size_format(&total, state->total_bytes));
    if (!state->is_other_unit)
        phema_strbuf_printf(out, "  %s/s", phema_size_format(&text, (uint64_t)per_s));
    if (state->elapsed_s >= PROGRESS_KNOWN_AFTER_S && isfinite(left_s))
        phema_strbuf_printf(out, "  %s left", terminal_duration(&text, left_s));
}

/* Where the end of a stage is unknown, the time since it began. */
static void draw_stage(struct progress *progress, const struct phema_progress *state)
{
    struct phema_name_buffer took;
    struct phema_strbuf text = {0};
    write_label(&text, progress, ", ");
    write_stage(&text, state);
    phema_strbuf_printf(&text, ", %s", terminal_duration(&took, state->elapsed_s));
    if (!text.is_failed)
        draw_line(progress, text.data);
    phema_strbuf_clear(&text);
}

static void draw_bar(struct progress *progress, const struct phema_progress *state, double left_s)
{
    struct phema_name_buffer name;
    struct phema_strbuf text = {0}, behind = {0};
    size_t columns = terminal_columns(STDERR_FILENO) - 1;
    write_label(&text, progress, state->stage ? ", " : "  ");
    if (state->stage) {
        write_stage(&text, state);
        phema_strbuf_puts(&text, "  ");
    }
    phema_strbuf_printf(&text, "%3.0f %%  ", 100 * share_of(state));
    size_t least = text.size + LEAST_BAR + 2;
    write_numbers(&behind, state, left_s, least + NUMBERS <= columns);
    size_t n_free =
        columns > text.size + 2 + behind.size ? columns - text.size - 2 - behind.size : 0;
    size_t bar = n_free < columns / 3 ? n_free : columns / 3;
    bar = bar < LEAST_BAR ? LEAST_BAR : bar > MOST_BAR ? MOST_BAR : bar;
    size_t used = text.size + bar + 2 + behind.size + 2;
    write_bar(&text, progress, share_of(state), bar);
    if (behind.data)
        phema_strbuf_puts(&text, behind.data);
    if (state->tensor && used + LEAST_NAME <= columns) {
        (void)phema_name_escape(&name, state->tensor, state->tensor_size);
        phema_strbuf_puts(&text, "  ");
        phema_strbuf_append(&text, name.text, terminal_cut(name.text, columns - used));
    }
    if (!text.is_failed)
        draw_line(progress, text.data);
    phema_strbuf_clear(&text);
    phema_strbuf_clear(&behind);
}

static void write_json(const struct phema_progress *state, double left_s)
{
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_string(&out, "stage", state->stage ? state->stage : "reading");
    phema_json_out_u64(&out, state->is_other_unit ? "done" : "done_bytes", state->done_bytes);
    phema_json_out_u64(&out, state->is_other_unit ? "total" : "total_bytes", state->total_bytes);
    phema_json_out_number(&out, "elapsed_seconds", state->elapsed_s);
    phema_json_out_number(&out, "remaining_seconds",
                          state->total_bytes && isfinite(left_s) ? left_s : PHEMA_UNKNOWN);
    if (state->tensor)
        phema_json_out_bytes(&out, "tensor", state->tensor, state->tensor_size);
    if (state->n_items)
        phema_json_out_u64(&out, "output", state->item);
    phema_json_out_close(&out, '}');
    if (!text.is_failed)
        (void)fprintf(stderr, "%s\n", text.data);
    phema_strbuf_clear(&text);
}

static void write_plain(const struct progress *progress, const struct phema_progress *state,
                        double left_s)
{
    struct phema_name_buffer done, total, took;
    struct phema_strbuf text = {0};
    if (state->total_bytes)
        phema_strbuf_printf(&text, "%3.0f %%  ", 100 * share_of(state));
    write_label(&text, progress, ", ");
    write_stage(&text, state);
    if (state->total_bytes && !state->is_other_unit)
        phema_strbuf_printf(&text, ": %s of %s", phema_size_format(&done, state->done_bytes),
                            phema_size_format(&total, state->total_bytes));
    if (!state->total_bytes)
        phema_strbuf_printf(&text, ", %s", terminal_duration(&took, state->elapsed_s));
    else if (isfinite(left_s))
        phema_strbuf_printf(&text, ", %s left", terminal_duration(&took, left_s));
    if (!text.is_failed)
        render_say("%s", text.data);
    phema_strbuf_clear(&text);
}

void progress_report(void *context, const struct phema_progress *state)
{
    struct progress *progress = context;
    if (progress->style == PROGRESS_NONE)
        return;
    double every_s = progress->style == PROGRESS_PLAIN ? PLAIN_EVERY_S : BAR_EVERY_S;
    update_farewell(progress, state);
    if (state->elapsed_s < progress->last_s) /* a stage has begun */
        progress->last_s = 0;
    if (state->elapsed_s - progress->last_s < every_s)
        return;
    progress->last_s = state->elapsed_s;
    double share = share_of(state);
    double left_s = share > 0 ? state->elapsed_s * (1 - share) / share : HUGE_VAL;
    if (progress->style == PROGRESS_JSON)
        write_json(state, left_s);
    else if (progress->style == PROGRESS_PLAIN)
        write_plain(progress, state, left_s);
    else if (state->stage && !state->total_bytes)
        draw_stage(progress, state);
    else
        draw_bar(progress, state, left_s);
}

void progress_finish(struct progress *progress)
{
    if (progress->n_drawn)
        (void)fprintf(stderr, "\r%*s\r", (int)progress->n_drawn, "");
    phema_cleanup_set_farewell(NULL);
    progress->n_drawn = 0;
    progress->last_s = 0;
}
