// SPDX-License-Identifier: Apache-2.0
/* errors.c - predicted errors of averages of one series, by width. */
#include <stddef.h>
#include <string.h>

#include "figure.h"

#define ERRORS_BOX 360

/* Curves over the width, and for some of them points at the targets. A curve without values is not
 * in the legend. */
static const struct curve {
    const char *name, *legend;
    size_t offset; /* of its value in struct phema_plot_error */
    struct pen pen;
    const char *points; /* NULL: none */
    enum marker marker;
} curves[] = {
    {"predicted error",
     "predicted error of the average [of |theta|]",
     offsetof(struct phema_plot_error, predicted),
     {.color = COLOR_RED, .width = 2.2, .opacity = 1},
     "target predicted error",
     MARKER_CIRCLE},
    {"rounding",
     "the part that rounding of the snapshots causes",
     offsetof(struct phema_plot_error, rounding),
     {.color = COLOR_RED, .width = 1.2, .opacity = 1, .dash = 1.5, .gap = 3},
     NULL,
     0},
    {"paper's weights",
     "predicted error with the paper's weights",
     offsetof(struct phema_plot_error, paper_weights),
     {.color = COLOR_FAINT, .width = 1.4, .opacity = 1, .dash = 7, .gap = 4},
     NULL,
     0},
    {"profile error",
     "profile error [of the profile's norm]",
     offsetof(struct phema_plot_error, profile_error),
     {.color = COLOR_BLUE, .width = 1.8, .opacity = 1, .dash = 7, .gap = 4},
     "target profile error",
     MARKER_SQUARE},
};

static double value_of(const struct curve *curve, const struct phema_plot_error *at)
{
    double value;
    memcpy(&value, (const char *)at + curve->offset, sizeof(value));
    return value;
}

/* Without any number the curve is left out, of the CSV as well. */
static bool has_values(const struct curve *curve, const struct phema_plot_errors *errors)
{
    for (size_t i = 0; i < errors->n; i++)
        if (!isnan(value_of(curve, &errors->widths[i])))
            return true;
    return false;
}

static void add_curve(struct phema_picture *picture, struct panel *panel,
                      const struct phema_plot_errors *errors, const struct curve *curve)
{
    struct series *line = panel_series(picture, panel, SERIES_LINE, curve->name, errors->n);
    bool is_anywhere = false;
    for (size_t i = 0; line && i < errors->n; i++) {
        line->x[i] = errors->widths[i].sigma_rel;
        line->y[i] = value_of(curve, &errors->widths[i]);
        is_anywhere = is_anywhere || line->y[i] > 0;
    }
    if (!line)
        return;
    line->pen = curve->pen;
    line->legend = is_anywhere ? curve->legend : NULL;
}

/* The targets, as points on the curve. */
static void add_points(struct phema_picture *picture, struct panel *panel,
                       const struct phema_plot_errors *errors, const struct curve *curve)
{
    size_t n = 0;
    for (size_t i = 0; i < errors->n; i++)
        n += errors->widths[i].is_marked;
    struct series *points =
        n ? panel_series(picture, panel, SERIES_POINTS, curve->points, n) : NULL;
    if (!points)
        return;
    size_t at = 0;
    for (size_t i = 0; i < errors->n; i++)
        if (errors->widths[i].is_marked) {
            points->x[at] = errors->widths[i].sigma_rel;
            points->y[at++] = value_of(curve, &errors->widths[i]);
        }
    points->pen = (struct pen){.color = curve->pen.color, .opacity = 1};
    points->marker = curve->marker;
    points->radius = 4.5;
}

static void add_marks(struct phema_picture *picture, struct panel *panel,
                      const struct phema_plot_errors *errors)
{
    struct mark mark = {
        .is_vertical = true,
        .pen = {.color = COLOR_FAINT, .width = 1, .opacity = 1, .dash = 2, .gap = 3}};
    for (size_t i = 0; i < errors->n_inputs; i++) {
        mark.at = errors->inputs[i];
        mark.label = picture_text(picture, i ? "%g" : "snapshots: %g", errors->inputs[i]);
        panel_mark(picture, panel, &mark);
    }
    mark.at = PHEMA_SIGMA_REL_LIMIT;
    mark.label = picture_text(picture, "limit: %g", PHEMA_SIGMA_REL_LIMIT);
    mark.pen = (struct pen){.color = COLOR_BLACK, .width = 1.2, .opacity = 1};
    panel_mark(picture, panel, &mark);
}

PHEMA_FALLIBLE phema_plot_errors(struct phema_picture **out, const struct phema_plot_errors *errors,
                                 struct phema_error *err)
{
    struct phema_picture *picture = picture_new(errors->title);
    if (!picture)
        return phema_fail_memory(err);
    struct panel *panel = picture_panel(picture, "error", ERRORS_BOX);
    if (panel) {
        panel->note = errors->note ? picture_text(picture, "%s", errors->note) : NULL;
        panel->x = (struct axis){.label = WIDTH_LABEL, .max = 0.3};
        panel->y = (struct axis){.label = "relative error", .is_log = true};
        for (size_t i = 0; i < ARRAY_LEN(curves); i++)
            if (has_values(&curves[i], errors))
                add_curve(picture, panel, errors, &curves[i]);
        for (size_t i = 0; i < ARRAY_LEN(curves); i++)
            if (curves[i].points && has_values(&curves[i], errors))
                add_points(picture, panel, errors, &curves[i]);
        add_marks(picture, panel, errors);
        panel_fit_y(panel);
    }
    return picture_finish(out, picture, PHEMA_OK, err);
}
