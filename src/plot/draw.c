// SPDX-License-Identifier: Apache-2.0
/* draw.c - draws a picture: titles, axes, the series of each panel, marks and the legend. */
#include <stdio.h>

#include "layout.h"

/* Positions far outside the box are clamped, so that numbers in files stay short. */
static double y_at(const struct panel *panel, const struct box *box, double y)
{
    double share = axis_share(&panel->y, y);
    return box->y + box->height * (1 - fmin(fmax(share, -20), 20));
}

static double x_at(const struct panel *panel, const struct box *box, double x)
{
    return box->x + box->width * axis_share(&panel->x, x);
}

static struct point point_at(const struct panel *panel, const struct box *box, struct point at)
{
    return (struct point){x_at(panel, box, at.x), y_at(panel, box, at.y)};
}

/* Logarithmic axes have no zero. */
static bool is_drawn(const struct panel *panel, double y)
{
    return isfinite(y) && (!panel->y.is_log || y > 0);
}

static void draw_text(struct canvas *canvas, double x, double y, double size, uint32_t color,
                      enum anchor anchor, const char *text)
{
    canvas->text(canvas, (struct point){x, y}, &(struct type){size, color, false, anchor, false},
                 text);
}

static void draw_bold(struct canvas *canvas, double x, double y, double size, double width,
                      const char *text)
{
    char fitted[FITTED_SIZE];
    canvas->text(canvas, (struct point){x, y},
                 &(struct type){size, COLOR_TEXT, true, ANCHOR_START, false},
                 text_fit(fitted, text, size, true, width));
}

static void draw_segment(struct canvas *canvas, double x1, double y1, double x2, double y2,
                         const struct pen *pen)
{
    const struct point ends[] = {{x1, y1}, {x2, y2}};
    canvas->line(canvas, ends, ARRAY_LEN(ends), pen);
}

/* ---- Axes ---- */

static const struct pen grid = {.color = COLOR_GRID, .width = 1, .opacity = 1};
static const struct pen frame = {.color = 0x888888, .width = 1, .opacity = 1};

static void draw_y_axis(struct canvas *canvas, const struct panel *panel,
                        const struct panel_layout *where)
{
    const struct box *box = &where->box;
    struct ticks ticks = layout_ticks_y(panel);
    for (size_t i = 0; i < ticks.n; i++) {
        double y = y_at(panel, box, ticks.values[i]);
        char label[TICKS_LABEL_SIZE];
        ticks_label(label, &ticks, i, panel->y.has_suffixes);
        draw_segment(canvas, box->x, y, box->x + box->width, y,
                     ticks.values[i] == 0 && !panel->y.is_log ? &frame : &grid);
        draw_text(canvas, box->x - 6, y + 4, SIZE_SMALL, COLOR_TEXT, ANCHOR_END, label);
    }
    if (!panel->y.label)
        return;
    struct type type = {SIZE_LABEL, COLOR_TEXT, false, ANCHOR_MIDDLE, true};
    canvas->text(canvas, (struct point){EDGE + SIZE_LABEL - 4, box->y + box->height / 2}, &type,
                 panel->y.label);
}

static void draw_categories(struct canvas *canvas, const struct panel *panel,
                            const struct panel_layout *where)
{
    const struct axis *axis = &panel->x;
    double width = where->box.width / (double)axis->n_categories;
    for (size_t i = 0; i < axis->n_categories; i++) {
        char fitted[FITTED_SIZE];
        double x = where->box.x + width * ((double)i + 0.5);
        draw_text(canvas, x, where->numbers, SIZE_LABEL, COLOR_TEXT, ANCHOR_MIDDLE,
                  text_fit(fitted, axis->categories[i], SIZE_LABEL, false, width - 4));
        if (axis->notes)
            draw_text(canvas, x, where->notes, SIZE_SMALL, COLOR_FAINT, ANCHOR_MIDDLE,
                      text_fit(fitted, axis->notes[i], SIZE_SMALL, false, width - 4));
    }
}

static void draw_x_axis(struct canvas *canvas, const struct panel *panel,
                        const struct panel_layout *where)
{
    const struct box *box = &where->box;
    double bottom = box->y + box->height;
    if (panel->x.n_categories) {
        draw_categories(canvas, panel, where);
    } else {
        struct ticks ticks = layout_ticks_x(panel, box->width);
        for (size_t i = 0; i < ticks.n; i++) {
            double x = x_at(panel, box, ticks.values[i]);
            char label[TICKS_LABEL_SIZE];
            ticks_label(label, &ticks, i, panel->x.has_suffixes);
            draw_segment(canvas, x, bottom, x, bottom + 4, &frame);
            if (panel->x.label)
                draw_text(canvas, x, where->numbers, SIZE_SMALL, COLOR_TEXT, ANCHOR_MIDDLE, label);
        }
    }
    if (panel->x.label && *panel->x.label)
        draw_text(canvas, box->x + box->width / 2, where->label, SIZE_LABEL, COLOR_TEXT,
                  ANCHOR_MIDDLE, panel->x.label);
}

static void draw_frame(struct canvas *canvas, const struct box *box)
{
    const struct point corners[] = {{box->x, box->y},
                                    {box->x, box->y + box->height},
                                    {box->x + box->width, box->y + box->height}};
    canvas->line(canvas, corners, ARRAY_LEN(corners), &frame);
}

/* ---- Lines ---- */

#define FLAT       0.02 /* an invisible deviation, in units */
#define FLAT_STEPS 16   /* in a row; the total deviation stays below FLAT * FLAT_STEPS / 4 */

static double distance(struct point from, struct point at, struct point to)
{
    double dx = to.x - from.x;
    double dy = to.y - from.y;
    double length = hypot(dx, dy);
    if (!(length > 0))
        return hypot(at.x - from.x, at.y - from.y);
    return fabs(dx * (at.y - from.y) - dy * (at.x - from.x)) / length;
}

/* Removes points that lie on the line between their neighbours, in place. Returns the number of
 * points left. */
static size_t straighten(struct point *points, size_t n)
{
    size_t kept = 0;
    size_t run = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_inner = kept > 0 && i + 1 < n;
        double off = is_inner ? distance(points[kept - 1], points[i], points[i + 1]) : HUGE_VAL;
        if (off < 1e-9 || (off < FLAT && run < FLAT_STEPS)) {
            run++;
            continue;
        }
        run = 0;
        points[kept++] = points[i];
    }
    return kept;
}

static void draw_line(struct canvas *canvas, const struct panel *panel, const struct series *series,
                      const struct box *box)
{
    struct point *points = series->drawn;
    size_t n = 0;
    for (size_t i = 0; i <= series->n; i++) {
        if (i < series->n && is_drawn(panel, series->points[i].y)) {
            points[n++] = point_at(panel, box, series->points[i]);
            continue;
        }
        n = straighten(points, n);
        if (n > 1)
            canvas->line(canvas, points, n, &series->pen);
        n = 0;
    }
}

/* ---- Stems and points ---- */

/* The smallest horizontal distance between two neighbouring points, in units. */
static double spacing(const struct panel *panel, const struct series *series, const struct box *box)
{
    double least = box->width;
    for (size_t i = 1; i < series->n; i++) {
        double apart = fabs(axis_share(&panel->x, series->points[i].x) -
                            axis_share(&panel->x, series->points[i - 1].x)) *
                       box->width;
        if (apart > 0)
            least = fmin(least, apart);
    }
    return least;
}

static double column_shift(const struct series *series, double column)
{
    if (series->n_columns == 0)
        return 0;
    return ((double)series->column - ((double)series->n_columns - 1) / 2) * column;
}

static void draw_stems(struct canvas *canvas, const struct panel *panel,
                       const struct series *series, const struct box *box)
{
    double column = spacing(panel, series, box) / (double)(series->n_columns + 1);
    double radius = fmin(fmax(column * 0.45, 1.3), series->radius);
    double shift = column_shift(series, fmin(column, 5));
    double zero = y_at(panel, box, 0);
    for (size_t i = 0; i < series->n; i++) {
        struct point at = point_at(panel, box, series->points[i]);
        at.x += shift;
        draw_segment(canvas, at.x, zero, at.x, at.y, &series->pen);
        canvas->mark(canvas, series->marker, at, radius, &series->pen);
    }
}

static void draw_points(struct canvas *canvas, const struct panel *panel,
                        const struct series *series, const struct box *box)
{
    for (size_t i = 0; i < series->n; i++)
        if (is_drawn(panel, series->points[i].y))
            canvas->mark(canvas, series->marker, point_at(panel, box, series->points[i]),
                         series->radius, &series->pen);
}

/* ---- Bars ---- */

static void draw_bars(struct canvas *canvas, const struct panel *panel, const struct series *series,
                      const struct box *box)
{
    double category = box->width / (double)panel->x.n_categories;
    double width = fmin(category * 0.78 / (double)series->n_columns, 60);
    double zero = y_at(panel, box, 0);
    for (size_t i = 0; i < series->n; i++) {
        struct point at = series->points[i];
        if (!isfinite(at.y))
            continue;
        double middle = box->x + category * (at.x + 0.5) + column_shift(series, width);
        double top = y_at(panel, box, at.y);
        if (series->kind == SERIES_ENDS) {
            draw_segment(canvas, middle - width / 2, top, middle + width / 2, top, &series->pen);
            continue;
        }
        canvas->fill(canvas, (struct box){middle - width / 2 + 1, top, width - 2, zero - top},
                     series->pen.color, series->pen.opacity);
        char value[TICKS_LABEL_SIZE];
        (void)snprintf(value, sizeof(value), "%.3g", at.y);
        if (series->has_values && text_width(value, SIZE_VALUE, false) <= width + 6)
            draw_text(canvas, middle, top - 4, SIZE_VALUE, COLOR_TEXT, ANCHOR_MIDDLE, value);
    }
}

static void draw_series(struct canvas *canvas, const struct panel *panel, const struct box *box)
{
    static void (*const draw[])(struct canvas *, const struct panel *, const struct series *,
                                const struct box *) = {[SERIES_POINTS] = draw_points,
                                                       [SERIES_STEMS] = draw_stems,
                                                       [SERIES_BARS] = draw_bars,
                                                       [SERIES_ENDS] = draw_bars};
    canvas->clip(canvas, *box);
    for (const struct series *series = panel->series; series; series = series->next)
        if (series->kind == SERIES_LINE)
            draw_line(canvas, panel, series, box);
    canvas->unclip(canvas);
    for (const struct series *series = panel->series; series; series = series->next)
        if (series->kind != SERIES_LINE)
            draw[series->kind](canvas, panel, series, box);
}

/* ---- Marks ---- */

static void draw_marks(struct canvas *canvas, const struct panel *panel,
                       const struct panel_layout *where, const struct layout *layout)
{
    const struct box *box = &where->box;
    for (const struct mark *mark = panel->marks; mark; mark = mark->next) {
        double share = axis_share(mark->is_vertical ? &panel->x : &panel->y, mark->at);
        if (!(share >= 0 && share <= 1))
            continue;
        if (mark->is_vertical) {
            double x = x_at(panel, box, mark->at);
            draw_segment(canvas, x, box->y, x, box->y + box->height, &mark->pen);
            if (!mark->label)
                continue;
            double row = (double)layout_mark_row(panel, mark, layout);
            draw_text(canvas, layout_mark_x(panel, mark, layout), where->marks - row * 12,
                      SIZE_SMALL, COLOR_FAINT, ANCHOR_MIDDLE, mark->label);
        } else {
            double y = y_at(panel, box, mark->at);
            draw_segment(canvas, box->x, y, box->x + box->width, y, &mark->pen);
            draw_text(canvas, box->x + box->width - 4, y - 4, SIZE_SMALL, mark->pen.color,
                      ANCHOR_END, mark->label);
        }
    }
}

/* ---- Panels and the picture ---- */

static void draw_panel(struct canvas *canvas, const struct panel *panel,
                       const struct panel_layout *where, const struct layout *layout)
{
    double width = layout->right - layout->left;
    if (panel->heading)
        draw_bold(canvas, layout->left, where->heading, SIZE_HEADING, width, panel->heading);
    const char *rest = panel->note;
    char line[FITTED_SIZE];
    for (int i = 0; rest && i < MAX_NOTE_LINES && layout_line(line, &rest, width); i++)
        draw_text(canvas, layout->left, where->note + i * LINE_HEIGHT, SIZE_SMALL, COLOR_FAINT,
                  ANCHOR_START, line);
    draw_y_axis(canvas, panel, where);
    draw_x_axis(canvas, panel, where);
    draw_marks(canvas, panel, where, layout);
    draw_series(canvas, panel, &where->box);
    draw_frame(canvas, &where->box);
}

static void draw_sample(struct canvas *canvas, const struct series *series, struct point at)
{
    double y = at.y - SIZE_LABEL * 0.35;
    struct point middle = {at.x + LEGEND_SAMPLE / 2, y};
    struct pen pen = series->pen;
    pen.opacity = fmax(pen.opacity, 0.7); /* a single line looks fainter than many */
    switch (series->kind) {
    case SERIES_LINE:
    case SERIES_ENDS:
        draw_segment(canvas, at.x, y, at.x + LEGEND_SAMPLE, y, &pen);
        break;
    case SERIES_STEMS:
    case SERIES_POINTS:
        canvas->mark(canvas, series->marker, middle, fmin(series->radius, 4.5), &series->pen);
        break;
    case SERIES_BARS:
        canvas->fill(canvas, (struct box){middle.x - 7, y - 5, 14, 10}, series->pen.color,
                     series->pen.opacity);
        break;
    }
}

static void draw_legend(struct canvas *canvas, const struct phema_picture *picture)
{
    struct legend legend = legend_begin(picture);
    const struct series *series;
    struct point at;
    while (legend_next(&legend, &series, &at)) {
        draw_sample(canvas, series, at);
        draw_text(canvas, at.x + LEGEND_SAMPLE + 6, at.y, SIZE_LABEL, COLOR_TEXT, ANCHOR_START,
                  series->legend);
    }
}

void picture_draw(const struct phema_picture *picture, struct canvas *canvas)
{
    struct layout layout = layout_begin(picture);
    canvas->fill(canvas, (struct box){0, 0, picture->width, picture_height(picture)}, COLOR_PAGE,
                 1);
    draw_bold(canvas, EDGE, EDGE + SIZE_TITLE - 3,
              picture->width < WIDE_PICTURE ? SIZE_NARROW : SIZE_TITLE, picture->width - 2 * EDGE,
              picture->title);
    draw_legend(canvas, picture);
    for (const struct panel *panel = picture->panels; panel; panel = panel->next) {
        struct panel_layout where = layout_next(&layout, panel);
        draw_panel(canvas, panel, &where, &layout);
    }
}
