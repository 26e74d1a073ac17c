// SPDX-License-Identifier: Apache-2.0
/* progress.c - a bar on a terminal, lines elsewhere. */
#include <stdio.h>
#include <string.h>

#include "phema/json.h"
#include "print_summary.h"
#include "terminal.h"

#define PLAIN_EVERY_S 10.0
#define BAR_EVERY_S   0.1

/* The bar takes a third of the line, within these limits; the name of the tensor takes the rest. */
#define LEAST_BAR  8
#define MOST_BAR   24
#define LEAST_NAME 8

/* The first second says little about the others. */
#define KNOWN_AFTER_S 1.0

void progress_init(struct progress *progress, const struct cli_common *common)
{
    *progress = (struct progress){.style = CLI_PROGRESS_NONE, .is_utf8 = terminal_is_utf8()};
    if (!common->is_quiet)
        progress->style = common->progress;
    if (progress->style == CLI_PROGRESS_AUTO)
        progress->style = terminal_can_draw() ? CLI_PROGRESS_BAR : CLI_PROGRESS_PLAIN;
}

/* Replaces the current line. The last column stays free, because some terminals wrap there. */
static void draw_line(struct progress *progress, const char *text)
{
    size_t columns = terminal_columns() - 1;
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
    if (progress->style == CLI_PROGRESS_BAR && text)
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

static void draw_bar(struct progress *progress, const struct phema_progress *state, double share,
                     double left_s)
{
    struct phema_name_buffer rate, left, name;
    struct phema_strbuf text = {0}, behind = {0};
    size_t columns = terminal_columns() - 1;
    size_t bar = columns / 3 < LEAST_BAR  ? LEAST_BAR
                 : columns / 3 > MOST_BAR ? MOST_BAR
                                          : columns / 3;
    double per_s = state->elapsed_s > 0 ? (double)state->done_bytes / state->elapsed_s : 0;
    phema_strbuf_printf(&behind, " %3.0f%%  %s/s", 100 * share,
                        phema_size_format(&rate, (uint64_t)per_s));
    if (state->elapsed_s >= KNOWN_AFTER_S)
        phema_strbuf_printf(&behind, "  %s left", terminal_duration(&left, left_s));
    size_t used = bar + 2 + behind.size + 2;
    write_bar(&text, progress, share, bar);
    if (behind.data)
        phema_strbuf_puts(&text, behind.data);
    if (used + LEAST_NAME <= columns) {
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
    phema_json_out_u64(&out, "done_bytes", state->done_bytes);
    phema_json_out_u64(&out, "total_bytes", state->total_bytes);
    phema_json_out_number(&out, "elapsed_seconds", state->elapsed_s);
    phema_json_out_number(&out, "remaining_seconds", left_s);
    phema_json_out_bytes(&out, "tensor", state->tensor, state->tensor_size);
    phema_json_out_close(&out, '}');
    if (!text.is_failed)
        (void)fprintf(stderr, "%s\n", text.data);
    phema_strbuf_clear(&text);
}

void progress_report(void *context, const struct phema_progress *state)
{
    struct progress *progress = context;
    if (progress->style == CLI_PROGRESS_NONE)
        return;
    double every_s = progress->style == CLI_PROGRESS_PLAIN ? PLAIN_EVERY_S : BAR_EVERY_S;
    if (state->elapsed_s - progress->last_s < every_s)
        return;
    progress->last_s = state->elapsed_s;
    double share =
        state->total_bytes ? (double)state->done_bytes / (double)state->total_bytes : 1.0;
    double left_s = share > 0 ? state->elapsed_s * (1 - share) / share : 0;
    struct phema_name_buffer done, total, left;
    if (progress->style == CLI_PROGRESS_BAR)
        draw_bar(progress, state, share, left_s);
    else if (progress->style == CLI_PROGRESS_JSON)
        write_json(state, left_s);
    else
        (void)fprintf(stderr, "%3.0f %%  %s of %s read, %s left\n", 100 * share,
                      phema_size_format(&done, state->done_bytes),
                      phema_size_format(&total, state->total_bytes),
                      terminal_duration(&left, left_s));
}

void progress_finish(struct progress *progress)
{
    if (progress->n_drawn)
        (void)fprintf(stderr, "\r%*s\r", (int)progress->n_drawn, "");
    progress->n_drawn = 0;
    progress->last_s = 0;
}
