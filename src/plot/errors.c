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

/* of_targets: points on the curve, in place of all of it */
static void add_curve(struct phema_picture *picture, struct panel *panel,
                      const struct phema_plot_errors *errors, const struct curve *curve,
                      bool of_targets)
{
    size_t n = 0;
    for (size_t i = 0; i < errors->n; i++)
        n += !of_targets || errors->widths[i].is_marked;
    struct series *series =
        n ? panel_series(picture, panel, of_targets ? SERIES_POINTS : SERIES_LINE,
                         of_targets ? curve->points : curve->name, n)
          : NULL;
    if (!series)
        return;
    n = 0;
    for (size_t i = 0; i < errors->n; i++) {
        if (of_targets && !errors->widths[i].is_marked)
            continue;
        series->x[n] = errors->widths[i].sigma_rel;
        series->y[n] = value_of(curve, &errors->widths[i]);
        if (!of_targets && series->y[n] > 0)
            series->legend = curve->legend;
        n++;
    }
    series->pen = curve->pen;
    series->marker = curve->marker;
    series->radius = 4.5;
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
        for (size_t i = 0; i < 2 * ARRAY_LEN(curves); i++) {
            const struct curve *curve = &curves[i % ARRAY_LEN(curves)];
            bool of_targets = i >= ARRAY_LEN(curves);
            if ((curve->points || !of_targets) && has_values(curve, errors))
                add_curve(picture, panel, errors, curve, of_targets);
        }
        add_marks(picture, panel, errors);
        panel_fit_y(panel);
    }
    return picture_finish(out, picture, PHEMA_OK, err);
}
