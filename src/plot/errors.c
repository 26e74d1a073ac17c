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
     "predicted error of the average",
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

/* Without any number the curve is left out, of the CSV as well.
 *   of_targets  points on the curve, in place of all of it */
static void add_curve(struct phema_picture *picture, struct panel *panel,
                      const struct phema_plot_errors *errors, const struct curve *curve,
                      bool of_targets)
{
    struct point *points = phema_arena_array(&picture->arena, errors->n, sizeof(*points));
    struct series series = {.kind = of_targets ? SERIES_POINTS : SERIES_LINE,
                            .name = of_targets ? curve->points : curve->name,
                            .pen = curve->pen,
                            .marker = curve->marker,
                            .radius = 4.5,
                            .points = points};
    bool has_values = false;
    for (size_t i = 0; points && i < errors->n; i++) {
        double value = value_of(curve, &errors->widths[i]);
        has_values |= !isnan(value);
        if (of_targets && !errors->widths[i].is_marked)
            continue;
        points[series.n++] = (struct point){errors->widths[i].sigma_rel, value};
        if (!of_targets && value > 0)
            series.legend = curve->legend;
    }
    if (has_values && series.n)
        (void)panel_series(picture, panel, &series);
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
    const struct panel shown = {.name = "error",
                                .note =
                                    errors->note ? picture_text(picture, "%s", errors->note) : NULL,
                                .height = ERRORS_BOX,
                                .x = {.label = WIDTH_LABEL, .max = 0.3},
                                .y = {.label = "relative error", .is_log = true}};
    struct panel *panel = picture_panel(picture, &shown);
    for (size_t i = 0; i < ARRAY_LEN(curves); i++)
        add_curve(picture, panel, errors, &curves[i], false);
    for (size_t i = 0; i < ARRAY_LEN(curves); i++)
        if (curves[i].points)
            add_curve(picture, panel, errors, &curves[i], true);
    add_marks(picture, panel, errors);
    panel_fit_y(panel);
    return picture_finish(out, picture, PHEMA_OK, err);
}
