// SPDX-License-Identifier: Apache-2.0
/* progress.c - what is shown while ops work: a bar on a terminal, lines elsewhere; stages that take
 * longer than a second; notes, warnings, the plan. */
#include "phema/progress.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "parts.h"
#include "phema/cleanup.h"
#include "phema/clock.h"
#include "phema/parallel.h"
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
    *progress =
        (struct progress){.style = PROGRESS_NONE, .is_utf8 = terminal_is_utf8(), .with = ""};
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
    if (progress->farewell)
        text = progress->farewell;
    (void)snprintf(own, sizeof(progress->farewells[0]), "%sstopped%s%s\n",
                   progress->n_drawn ? "\n" : "", *text ? "; " : "", text);
    phema_cleanup_set_farewell(own);
}

static void update_farewell(struct progress *progress, const struct phema_progress *state)
{
    char text[PROGRESS_FAREWELL] = "nothing was written";
    double done = (double)(state->resumed_bytes + state->done_bytes);
    double total = (double)(state->resumed_bytes + state->total_bytes);
    if (progress->kept == PHEMA_WRITES_NOTHING)
        text[0] = '\0';
    else if (progress->kept == PHEMA_KEEPS_PART)
        (void)snprintf(text, sizeof(text), "run the same part again");
    else if (progress->kept == PHEMA_KEEPS_TILES && state->stage)
        (void)snprintf(text, sizeof(text), "run the same command%s to continue", progress->with);
    else if (progress->kept == PHEMA_KEEPS_TILES)
        (void)snprintf(text, sizeof(text), "run the same command%s to continue (%.0f %% done)",
                       progress->with, total > 0 ? floor(100 * done / total) : 0);
    else if (state->n_published)
        (void)snprintf(text, sizeof(text), "%zu of %zu outputs were written", state->n_published,
                       state->n_items);
    progress_set_farewell(progress, text);
}

/* Replaces the current line. The last column stays free, because some terminals wrap there. */
void progress_line(struct progress *progress, const char *text)
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
    if (state->next)
        phema_strbuf_printf(out, ", then %s", state->next);
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
        progress_line(progress, text.data);
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
        progress_line(progress, text.data);
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
    if (state->next)
        phema_strbuf_printf(&text, ", then %s", state->next);
    render_say_text(&text);
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
    progress->n_drawn = 0;
    if (progress->farewell)
        progress_set_farewell(progress, "");
    else
        phema_cleanup_set_farewell(NULL);
    progress->last_s = 0;
}

/* ---- Stages ---- */

/* A thread of its own draws, so that no solver has to report. */
#define STAGE_EVERY_S 0.2

struct watch {
    struct progress progress;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    const char *stage; /* guarded by lock, as the others are */
    uint64_t done_bytes, total_bytes;
    bool is_over;
    double start_s;
};

/* With the lock; returns after so many seconds, or when the plan is made. */
static void wait_for(struct watch *watch, double seconds)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    double wanted = (double)end.tv_nsec * 1e-9 + seconds;
    end.tv_sec += (time_t)wanted;
    end.tv_nsec = (long)((wanted - (double)(time_t)wanted) * 1e9);
    (void)pthread_cond_timedwait(&watch->wake, &watch->lock, &end);
}

static void *run_watch(void *argument)
{
    struct watch *watch = argument;
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_over) {
        double elapsed_s = phema_clock_s() - watch->start_s;
        if (elapsed_s >= PHEMA_SILENT_S) {
            const struct phema_progress state = {.stage = watch->stage,
                                                 .done_bytes = watch->done_bytes,
                                                 .total_bytes = watch->total_bytes,
                                                 .elapsed_s = elapsed_s};
            progress_report(&watch->progress, &state);
        }
        wait_for(watch, elapsed_s < PHEMA_SILENT_S ? PHEMA_SILENT_S - elapsed_s : STAGE_EVERY_S);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

struct watch *watch_start(const struct render_style *style, const char *stage)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return NULL;
    watch->stage = stage;
    watch->start_s = phema_clock_s();
    progress_init(&watch->progress, style);
    watch->progress.kept = PHEMA_WRITES_NOTHING;
    pthread_condattr_t attributes;
    (void)pthread_mutex_init(&watch->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&watch->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    watch->is_started = watch->progress.style != PROGRESS_NONE &&
                        phema_thread_start(&watch->thread, run_watch, watch) == 0;
    return watch;
}

void watch_stop(struct watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->is_over = true;
    (void)pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    if (watch->is_started)
        (void)pthread_join(watch->thread, NULL);
    (void)pthread_cond_destroy(&watch->wake);
    (void)pthread_mutex_destroy(&watch->lock);
    progress_finish(&watch->progress);
    free(watch);
}

/* ---- What ops tell ---- */

static void note(void *context, const char *sentence)
{
    const struct render_listener *listener = context;
    if (!listener->style.is_quiet)
        render_say("%s", sentence);
}

static void detail(void *context, const char *sentence)
{
    const struct render_listener *listener = context;
    if (listener->style.is_verbose)
        note(context, sentence);
}

static void warn(void *context, const char *sentence)
{
    const struct render_listener *listener = context;
    render_warn(&listener->style, "%s", sentence);
}

static void stage(void *context, const char *name)
{
    struct render_listener *listener = context;
    if (!name) {
        watch_stop(listener->watch);
        listener->watch = NULL;
    } else if (listener->watch) {
        pthread_mutex_lock(&listener->watch->lock);
        listener->watch->stage = name;
        pthread_mutex_unlock(&listener->watch->lock);
    } else {
        listener->watch = watch_start(&listener->style, name);
    }
}

static void advance(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct watch *watch = ((const struct render_listener *)context)->watch;
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->done_bytes = done_bytes;
    watch->total_bytes = total_bytes;
    pthread_mutex_unlock(&watch->lock);
}

static void begin(void *context, enum phema_kept kept)
{
    struct render_listener *listener = context;
    progress_init(&listener->progress, &listener->style);
    listener->progress.label = listener->label;
    listener->progress.kept = kept;
    listener->progress.with = listener->with;
    listener->progress.farewell = listener->farewell;
    char again[PROGRESS_FAREWELL];
    (void)snprintf(again, sizeof(again), "run the same command%s to continue",
                   kept == PHEMA_KEEPS_TILES ? listener->with : "");
    progress_set_farewell(&listener->progress, kept == PHEMA_KEEPS_NOTHING ? "nothing was written"
                                               : kept == PHEMA_WRITES_NOTHING ? ""
                                                                              : again);
}

static void report(void *context, const struct phema_progress *state)
{
    struct render_listener *listener = context;
    progress_report(&listener->progress, state);
}

static void end(void *context)
{
    struct render_listener *listener = context;
    progress_finish(&listener->progress);
}

static void planned(void *context, const struct phema_request *request,
                    const struct phema_plan *plan)
{
    struct render_listener *listener = context;
    const struct phema_outputs_options *naming = &request->outputs;
    struct phema_name_buffer time;
    const struct render_style *style = &listener->style;
    if (request->plan.is_conversion) {
        report_conversion(style, plan->series);
        return;
    }
    /* a training that goes on adds snapshots, and the newest is another one then */
    if (!request->plan.n_ats && plan->series->n)
        (void)snprintf(
            listener->with, sizeof(listener->with), " with --at %s",
            phema_number_format(&time, plan->series->snapshots[plan->series->n - 1].named_time));
    bool is_auto = !naming->has_dtype && !naming->keeps_dtypes;
    bool is_bf16 = is_auto && phema_series_n_scaled(plan->series) > 0;
    report_series(style, plan->series, &plan->checks);
    report_plan(style, plan, is_bf16 ? PHEMA_BF16 : naming->dtype, naming->has_dtype || is_bf16,
                !listener->hides_errors);
}

static void named(void *context, const struct phema_request *request,
                  const struct phema_prepared *prepared)
{
    const struct render_listener *listener = context;
    report_into(&listener->style, request->outputs.into, &prepared->outputs);
    report_scaled(&listener->style, prepared->plan->series, &prepared->outputs);
}

void render_listen(struct render_listener *out, const struct render_style *style)
{
    *out = (struct render_listener){.style = *style,
                                    .heard = {.context = out,
                                              .note = note,
                                              .detail = detail,
                                              .warn = warn,
                                              .stage = stage,
                                              .advance = advance,
                                              .begin = begin,
                                              .report = report,
                                              .end = end,
                                              .planned = planned,
                                              .named = named}};
    progress_init(&out->progress, style);
}

PHEMA_FALLIBLE watch_make_plan(struct phema_plan **out, const struct render_style *style,
                               const struct phema_plan_options *options, struct phema_error *err)
{
    struct render_listener listener;
    render_listen(&listener, style);
    return phema_plan_make_heard(out, options, &listener.heard, err);
}
