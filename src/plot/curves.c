// SPDX-License-Identifier: Apache-2.0
/* curves.c - draws the series of a panel, and their samples in the legend. */
#include "curves.h"

#include <stdio.h>

/* Positions far outside the box are clamped, so that numbers in files stay short. */
static double y_at(const struct panel *panel, const struct box *box, double y)
{
    double share = axis_share(&panel->y, y);
    return box->y + box->height * (1 - fmin(fmax(share, -20), 20));
}

static struct point point_at(const struct panel *panel, const struct box *box, double x, double y)
{
    return (struct point){box->x + box->width * axis_share(&panel->x, x), y_at(panel, box, y)};
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
        bool is_there =
            i < series->n && isfinite(series->y[i]) && (!panel->y.is_log || series->y[i] > 0);
        if (is_there) {
            points[n++] = point_at(panel, box, series->x[i], series->y[i]);
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
        double apart =
            fabs(axis_share(&panel->x, series->x[i]) - axis_share(&panel->x, series->x[i - 1])) *
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
        struct point at = point_at(panel, box, series->x[i], series->y[i]);
        at.x += shift;
        const struct point stem[] = {{at.x, zero}, at};
        canvas->line(canvas, stem, ARRAY_LEN(stem), &series->pen);
        canvas->mark(canvas, series->marker, at, radius, &series->pen);
    }
}

static void draw_points(struct canvas *canvas, const struct panel *panel,
                        const struct series *series, const struct box *box)
{
    for (size_t i = 0; i < series->n; i++)
        if (isfinite(series->y[i]) && (!panel->y.is_log || series->y[i] > 0))
            canvas->mark(canvas, series->marker, point_at(panel, box, series->x[i], series->y[i]),
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
        if (!isfinite(series->y[i]))
            continue;
        double middle = box->x + category * (series->x[i] + 0.5) + column_shift(series, width);
        double top = y_at(panel, box, series->y[i]);
        if (series->kind == SERIES_ENDS) {
            const struct point ends[] = {{middle - width / 2, top}, {middle + width / 2, top}};
            canvas->line(canvas, ends, ARRAY_LEN(ends), &series->pen);
            continue;
        }
        canvas->fill(canvas, (struct box){middle - width / 2 + 1, top, width - 2, zero - top},
                     series->pen.color, series->pen.opacity);
        char value[TICKS_LABEL_SIZE];
        (void)snprintf(value, sizeof(value), "%.3g", series->y[i]);
        if (series->has_values && text_width(value, SIZE_VALUE, false) <= width + 6)
            canvas->text(canvas, (struct point){middle, top - 4},
                         &(struct type){SIZE_VALUE, COLOR_TEXT, false, ANCHOR_MIDDLE, false},
                         value);
    }
}

void curves_draw(struct canvas *canvas, const struct panel *panel, const struct box *box)
{
    canvas->clip(canvas, *box);
    for (const struct series *series = panel->series; series; series = series->next)
        if (series->kind == SERIES_LINE)
            draw_line(canvas, panel, series, box);
    canvas->unclip(canvas);
    for (const struct series *series = panel->series; series; series = series->next) {
        if (series->kind == SERIES_STEMS)
            draw_stems(canvas, panel, series, box);
        else if (series->kind == SERIES_POINTS)
            draw_points(canvas, panel, series, box);
        else if (series->kind != SERIES_LINE)
            draw_bars(canvas, panel, series, box);
    }
}

void curves_draw_sample(struct canvas *canvas, const struct series *series, struct point at)
{
    double y = at.y - SIZE_LABEL * 0.35;
    const struct point ends[] = {{at.x, y}, {at.x + LEGEND_SAMPLE, y}};
    struct point middle = {at.x + LEGEND_SAMPLE / 2, y};
    struct pen pen = series->pen;
    pen.opacity = fmax(pen.opacity, 0.7); /* a single line looks fainter than many */
    switch (series->kind) {
    case SERIES_LINE:
    case SERIES_ENDS:
        canvas->line(canvas, ends, ARRAY_LEN(ends), &pen);
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
