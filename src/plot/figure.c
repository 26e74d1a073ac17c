// SPDX-License-Identifier: Apache-2.0
/* figure.c - builds pictures from panels, series and marks. */
#include "figure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ticks.h"

static void *alloc(struct phema_picture *picture, size_t n, size_t size)
{
    if (picture->is_failed)
        return NULL;
    void *memory = phema_arena_array(&picture->arena, n, size);
    picture->is_failed = memory == NULL;
    return memory;
}

struct phema_picture *picture_new(const char *title)
{
    struct phema_picture *picture = calloc(1, sizeof(*picture));
    if (picture)
        picture->title = picture_text(picture, "%s", title);
    return picture;
}

PHEMA_FALLIBLE picture_finish(struct phema_picture **out, struct phema_picture *picture,
                              enum phema_status status, struct phema_error *err)
{
    if (!status && (!picture || picture->is_failed))
        status = phema_fail_memory(err);
    if (status) {
        phema_picture_free(picture);
        return status;
    }
    *out = picture;
    return PHEMA_OK;
}

void phema_picture_free(struct phema_picture *picture)
{
    if (!picture)
        return;
    phema_arena_clear(&picture->arena);
    free(picture);
}

char *picture_text(struct phema_picture *picture, const char *format, ...)
{
    char text[1024]; /* longer texts do not fit into a picture either */
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct phema_strbuf shown = {0}; /* it may contain names of files */
    if (length >= 0)
        phema_strbuf_puts_escaped(&shown, text);
    bool is_made = length >= 0 && !shown.is_failed;
    char *copy = is_made
                     ? phema_arena_copy(&picture->arena, shown.data ? shown.data : "", shown.size)
                     : NULL;
    phema_strbuf_clear(&shown);
    picture->is_failed = picture->is_failed || !copy;
    return copy;
}

struct panel *picture_panel(struct phema_picture *picture, const char *name, double height)
{
    struct panel *panel = alloc(picture, 1, sizeof(*panel));
    if (!panel)
        return NULL;
    panel->name = name;
    panel->height = height;
    if (picture->last_panel)
        picture->last_panel->next = panel;
    else
        picture->panels = panel;
    picture->last_panel = panel;
    return panel;
}

struct series *panel_series(struct phema_picture *picture, struct panel *panel,
                            enum series_kind kind, const char *name, size_t n)
{
    struct series *series = alloc(picture, 1, sizeof(*series));
    double *x = alloc(picture, n + 1, sizeof(*x));
    double *y = alloc(picture, n + 1, sizeof(*y));
    struct point *drawn = alloc(picture, n + 1, sizeof(*drawn));
    if (!panel || !series || !x || !y || !drawn)
        return NULL;
    *series = (struct series){.kind = kind, .name = name, .x = x, .y = y, .n = n, .drawn = drawn};
    series->pen = (struct pen){.color = COLOR_BLACK, .width = 1.2, .opacity = 1};
    if (panel->last_series)
        panel->last_series->next = series;
    else
        panel->series = series;
    panel->last_series = series;
    return series;
}

void panel_mark(struct phema_picture *picture, struct panel *panel, const struct mark *mark)
{
    struct mark *copy = alloc(picture, 1, sizeof(*copy));
    if (!panel || !copy)
        return;
    *copy = *mark;
    copy->next = NULL;
    if (panel->last_mark)
        panel->last_mark->next = copy;
    else
        panel->marks = copy;
    panel->last_mark = copy;
}

/* Larger values are left out of the range, so that no difference overflows. */
#define FARTHEST 1e150

/* The lowest value of a logarithmic axis, relative to the largest. Smaller values count as zero,
 * such as the error of a target that is a snapshot. */
#define LOWEST 1e-10

void panel_fit_y(struct panel *panel)
{
    double min = panel->y.is_log ? HUGE_VAL : 0;
    double max = panel->y.is_log ? 0 : -HUGE_VAL;
    for (const struct series *series = panel->series; series; series = series->next)
        for (size_t i = 0; i < series->n; i++) {
            double y = series->y[i];
            if (!(fabs(y) < FARTHEST) || (panel->y.is_log && y < 1 / FARTHEST))
                continue;
            min = fmin(min, y);
            max = fmax(max, y);
        }
    for (const struct mark *mark = panel->marks; mark; mark = mark->next)
        if (!mark->is_vertical)
            max = fmax(max, mark->at);
    if (!(max >= min)) /* no values */
        min = max = panel->y.is_log ? 1 : 0;
    if (panel->y.is_log) {
        min = fmax(min, max * LOWEST);
        ticks_widen_log(&min, &max);
        if (!(max > min))
            max = min * 10;
    } else {
        if (!(max > min))
            max = min + 1;
        ticks_widen(&min, &max, 7);
    }
    panel->y.min = min;
    panel->y.max = max;
}
