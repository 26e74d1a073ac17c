// SPDX-License-Identifier: Apache-2.0
/* figure.c - builds pictures from panels, series and marks, and writes them as SVG, PNG, PDF or
 * CSV; the colours that all pictures share. */
#include "figure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ticks.h"

struct phema_picture *picture_new(const char *title)
{
    struct phema_picture *picture = calloc(1, sizeof(*picture));
    if (!picture)
        return NULL;
    picture->panels_end = &picture->panels;
    picture->width = WIDE_PICTURE;
    picture->title = picture_text(picture, "%s", title);
    return picture;
}

PHEMA_FALLIBLE picture_finish(struct phema_picture **out, struct phema_picture *picture,
                              enum phema_status status, struct phema_error *err)
{
    if (!status && (!picture || picture->arena.is_failed))
        status = phema_fail_memory(err);
    if (status) {
        phema_picture_free(picture);
        return status;
    }
    *out = picture;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_picture_set_title(struct phema_picture *picture, const char *title,
                                       struct phema_error *err)
{
    if (title)
        picture->title = picture_text(picture, "%s", title);
    return picture->title ? PHEMA_OK : phema_fail_memory(err);
}

void phema_picture_keep(struct phema_picture *picture, size_t first, size_t n)
{
    for (size_t i = 0; i < first && picture->panels; i++)
        picture->panels = picture->panels->next;
    struct panel **end = &picture->panels;
    for (size_t i = 0; i < n && *end; i++)
        end = &(*end)->next;
    *end = NULL;
}

void phema_picture_make_narrow(struct phema_picture *picture)
{
    picture->width = NARROW_PICTURE;
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
    picture->arena.is_failed |= !is_made;
    char *copy = is_made
                     ? phema_arena_copy(&picture->arena, shown.data ? shown.data : "", shown.size)
                     : NULL;
    phema_strbuf_clear(&shown);
    return copy;
}

struct panel *picture_panel(struct phema_picture *picture, const struct panel *panel)
{
    struct panel *copy = phema_arena_alloc(&picture->arena, sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = *panel;
    copy->series_end = &copy->series;
    copy->marks_end = &copy->marks;
    *picture->panels_end = copy;
    picture->panels_end = &copy->next;
    return copy;
}

struct series *panel_series(struct phema_picture *picture, struct panel *panel,
                            const struct series *series)
{
    struct phema_arena *arena = &picture->arena;
    size_t n = series->n;
    struct series *copy = phema_arena_alloc(arena, sizeof(*copy));
    struct point *points = phema_arena_array(arena, n, sizeof(*points));
    struct point *drawn = phema_arena_array(arena, n, sizeof(*drawn));
    if (!panel || !copy || !points || !drawn)
        return NULL;
    if (series->points)
        memcpy(points, series->points, n * sizeof(*points));
    *copy = *series;
    copy->points = points;
    copy->drawn = drawn;
    *panel->series_end = copy;
    panel->series_end = &copy->next;
    return copy;
}

void panel_choices(struct phema_picture *picture, struct panel *panel,
                   const struct choices *choices)
{
    const struct series line = {.pen = {.color = choices->color, .width = 1.4, .opacity = 0.6},
                                .points = choices->items,
                                .n = choices->n};
    const struct series points = {.kind = SERIES_POINTS,
                                  .name = choices->name,
                                  .legend = choices->legend,
                                  .pen = {.color = choices->color, .opacity = 1},
                                  .radius = 3.4,
                                  .points = choices->items,
                                  .n = choices->n};
    (void)panel_series(picture, panel, &line);
    (void)panel_series(picture, panel, &points);
}

void panel_best(struct phema_picture *picture, struct panel *panel, struct point best,
                const char *name, const char *legend)
{
    const struct series series = {.kind = SERIES_POINTS,
                                  .name = name,
                                  .legend = legend,
                                  .pen = {.color = COLOR_RED, .opacity = 1},
                                  .radius = 5.5,
                                  .marker = MARKER_DIAMOND,
                                  .points = &best,
                                  .n = 1};
    (void)panel_series(picture, panel, &series);
}

void panel_mark(struct phema_picture *picture, struct panel *panel, const struct mark *mark)
{
    struct mark *copy = phema_arena_alloc(&picture->arena, sizeof(*copy));
    if (!panel || !copy)
        return;
    *copy = *mark;
    *panel->marks_end = copy;
    panel->marks_end = &copy->next;
}

/* Larger values are left out of the range, so that no difference overflows. */
#define FARTHEST 1e150

/* The lowest value of a logarithmic axis, relative to the largest. Smaller values count as zero,
 * such as the error of a target that is a snapshot. */
#define LOWEST 1e-10

void panel_fit_y(struct panel *panel)
{
    if (!panel)
        return;
    double min = panel->y.is_log ? HUGE_VAL : 0;
    double max = panel->y.is_log ? 0 : -HUGE_VAL;
    for (const struct series *series = panel->series; series; series = series->next)
        for (size_t i = 0; i < series->n; i++) {
            double y = series->points[i].y;
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

/* ---- Colours ---- */

static uint32_t between(uint32_t a, uint32_t b, double share)
{
    uint32_t color = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        double from = (double)(a >> shift & 0xFF);
        double to = (double)(b >> shift & 0xFF);
        color |= (uint32_t)(from + (to - from) * share + 0.5) << shift;
    }
    return color;
}

uint32_t palette_color(size_t i, size_t n)
{
    static const uint32_t hues[] = {COLOR_BLUE, COLOR_GREEN, COLOR_PURPLE, COLOR_SKY, COLOR_ORANGE};
    /* cividis without its light end, which is too light for lines on white */
    static const uint32_t ramp[] = {0x00224E, 0x35456C, 0x666970, 0x948E77, 0xC8B866, 0xE3CE53};
    if (n <= ARRAY_LEN(hues))
        return hues[i % ARRAY_LEN(hues)];
    size_t last = ARRAY_LEN(ramp) - 1;
    double at = (double)i / (double)(n - 1) * (double)last;
    size_t below = (size_t)at;
    if (below >= last)
        return ramp[last];
    return between(ramp[below], ramp[below + 1], at - (double)below);
}

/* ---- CSV ---- */

static void append_csv_field(struct phema_strbuf *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        phema_strbuf_puts(out, text);
        return;
    }
    phema_strbuf_puts(out, "\"");
    for (; *text; text++)
        phema_strbuf_append(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    phema_strbuf_puts(out, "\"");
}

/* NaN and infinities become empty fields. */
static void append_csv_number(struct phema_strbuf *out, double value)
{
    struct phema_name_buffer shown;
    if (isfinite(value))
        phema_strbuf_puts(out, phema_number_format(&shown, value));
}

static void append_csv_series(struct phema_strbuf *out, const struct panel *panel,
                              const struct series *series)
{
    for (size_t i = 0; i < series->n; i++) {
        append_csv_field(out, panel->name);
        phema_strbuf_puts(out, ",");
        append_csv_field(out, series->name);
        phema_strbuf_puts(out, ",");
        if (panel->x.n_categories)
            append_csv_field(out, panel->x.categories[(size_t)series->points[i].x]);
        else
            append_csv_number(out, series->points[i].x);
        phema_strbuf_puts(out, ",");
        append_csv_number(out, series->points[i].y);
        phema_strbuf_puts(out, "\n");
    }
}

static enum phema_status write_csv(struct phema_strbuf *out, const struct phema_picture *picture,
                                   struct phema_error *err)
{
    phema_strbuf_puts(out, "panel,series,x,y\n");
    for (const struct panel *panel = picture->panels; panel; panel = panel->next)
        for (const struct series *series = panel->series; series; series = series->next)
            if (series->name)
                append_csv_series(out, panel, series);
    return phema_strbuf_check(out, err);
}

/* ---- All formats ---- */

static const struct {
    const char *extension;
    enum phema_status (*write)(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err);
} formats[] = {
    [PHEMA_PICTURE_SVG] = {".svg", svg_write},
    [PHEMA_PICTURE_PNG] = {".png", cairo_write_png},
    [PHEMA_PICTURE_PDF] = {".pdf", cairo_write_pdf},
    [PHEMA_PICTURE_CSV] = {".csv", write_csv},
};

PHEMA_FALLIBLE phema_picture_format(enum phema_picture_format *out, const char *path,
                                    struct phema_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (phema_ends_with(path, formats[i].extension)) {
            *out = (enum phema_picture_format)i;
            return PHEMA_OK;
        }
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "'%s' does not say what to draw; expected a name that ends in .svg, .png, "
                      ".pdf or .csv",
                      path);
}

PHEMA_FALLIBLE phema_picture_write(struct phema_strbuf *out, const struct phema_picture *picture,
                                   enum phema_picture_format format, struct phema_error *err)
{
    enum phema_status status = formats[format].write(out, picture, err);
    return status ? status : phema_strbuf_check(out, err);
}
