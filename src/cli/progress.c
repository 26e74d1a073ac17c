// SPDX-License-Identifier: Apache-2.0
/* progress.c - a bar on a terminal, lines elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/json.h"
#include "report.h"

#define PLAIN_EVERY_S 10.0
#define BAR_EVERY_S   0.1
#define BAR_WIDTH     24

void progress_init(struct progress *progress, const struct cli_common *common)
{
    *progress = (struct progress){.style = PROGRESS_NONE};
    const char *style = common->progress ? common->progress : "auto";
    if (common->is_quiet)
        return;
    const char *terminal = getenv("TERM");
    bool can_draw = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    if (strcmp(style, "json") == 0)
        progress->style = PROGRESS_JSON;
    else if (strcmp(style, "bar") == 0 || (strcmp(style, "auto") == 0 && can_draw))
        progress->style = PROGRESS_BAR;
    else if (strcmp(style, "none") != 0)
        progress->style = PROGRESS_PLAIN;
}

static void draw_bar(struct progress *progress, const struct phema_progress *state, double share,
                     double left_s)
{
    char bar[BAR_WIDTH + 1];
    int full = (int)(share * BAR_WIDTH + 0.5);
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '-';
    bar[BAR_WIDTH] = '\0';
    struct phema_name_buffer rate, name;
    double per_s = state->elapsed_s > 0 ? (double)state->done_bytes / state->elapsed_s : 0;
    (void)phema_name_shown(&name, state->tensor, state->tensor_size < 24 ? state->tensor_size : 24);
    (void)fprintf(stderr, "\r[%s] %3.0f%% %8s/s %4.0f s left  %-24.24s", bar, 100 * share,
                  phema_size_shown(&rate, (uint64_t)per_s), left_s, name.text);
    (void)fflush(stderr);
    progress->is_drawn = true;
}

static void write_json(const struct phema_progress *state, double left_s)
{
    struct phema_text text = {0};
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
    phema_text_clear(&text);
}

void progress_report(void *context, const struct phema_progress *state)
{
    struct progress *progress = context;
    if (progress->style == PROGRESS_NONE)
        return;
    double every_s = progress->style == PROGRESS_PLAIN ? PLAIN_EVERY_S : BAR_EVERY_S;
    if (state->elapsed_s - progress->last_s < every_s)
        return;
    progress->last_s = state->elapsed_s;
    double share =
        state->total_bytes ? (double)state->done_bytes / (double)state->total_bytes : 1.0;
    double left_s = share > 0 ? state->elapsed_s * (1 - share) / share : 0;
    struct phema_name_buffer done, total;
    if (progress->style == PROGRESS_BAR)
        draw_bar(progress, state, share, left_s);
    else if (progress->style == PROGRESS_JSON)
        write_json(state, left_s);
    else
        (void)fprintf(stderr, "%3.0f %%  %s of %s read, %.0f s left\n", 100 * share,
                      phema_size_shown(&done, state->done_bytes),
                      phema_size_shown(&total, state->total_bytes), left_s);
}

void progress_finish(struct progress *progress)
{
    if (progress->is_drawn)
        (void)fprintf(stderr, "\r%79s\r", "");
    progress->is_drawn = false;
}
