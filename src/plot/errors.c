// SPDX-License-Identifier: Apache-2.0
/* errors.c - predicted errors of averages of one series, by width. */
#include "figure.h"

#define ERRORS_BOX 360

static double value_of(const struct phema_plot_error *at, size_t which)
{
    const double values[] = {at->predicted, at->rounding, at->profile_error};
    return values[which];
}

static void add_curve(struct phema_picture *picture, struct panel *panel,
                      const struct phema_plot_errors *errors, size_t which)
{
    static const struct {
        const char *name, *legend;
        struct pen pen;
    } curves[] = {
        {"predicted error",
         "predicted error of the average [of |theta|]",
         {.color = COLOR_RED, .width = 2.2, .opacity = 1}},
        {"rounding",
         "what rounding of the snapshots makes of it",
         {.color = COLOR_RED, .width = 1.2, .opacity = 1, .dash = 1.5, .gap = 3}},
        {"profile error",
         "profile error [of the profile's norm]",
         {.color = COLOR_BLUE, .width = 1.8, .opacity = 1, .dash = 7, .gap = 4}},
    };
    struct series *curve = panel_series(picture, panel, SERIES_LINE, curves[which].name, errors->n);
    bool is_anywhere = false;
    for (size_t i = 0; curve && i < errors->n; i++) {
        curve->x[i] = errors->widths[i].sigma_rel;
        curve->y[i] = value_of(&errors->widths[i], which);
        is_anywhere = is_anywhere || curve->y[i] > 0;
    }
    if (!curve)
        return;
    curve->pen = curves[which].pen;
    curve->legend = is_anywhere ? curves[which].legend : NULL;
}

/* The targets, as points on the curves. */
static void add_marked(struct phema_picture *picture, struct panel *panel,
                       const struct phema_plot_errors *errors)
{
    size_t n = 0;
    for (size_t i = 0; i < errors->n; i++)
        n += errors->widths[i].is_marked;
    for (size_t which = 0; n && which < 3; which += 2) {
        struct series *points =
            panel_series(picture, panel, SERIES_POINTS,
                         which ? "target profile error" : "target predicted error", n);
        if (!points)
            return;
        size_t at = 0;
        for (size_t i = 0; i < errors->n; i++)
            if (errors->widths[i].is_marked) {
                points->x[at] = errors->widths[i].sigma_rel;
                points->y[at++] = value_of(&errors->widths[i], which);
            }
        points->pen = (struct pen){.color = which ? COLOR_BLUE : COLOR_RED, .opacity = 1};
        points->marker = which ? MARKER_SQUARE : MARKER_CIRCLE;
        points->radius = 4.5;
    }
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
        panel->x = (struct axis){.label = "sigma_rel [standard deviation in time / training time]",
                                 .max = 0.3};
        panel->y = (struct axis){.label = "relative error", .is_log = true};
        for (size_t which = 0; which < 3; which++)
            add_curve(picture, panel, errors, which);
        add_marked(picture, panel, errors);
        add_marks(picture, panel, errors);
        panel_fit_y(panel);
    }
    return picture_finish(out, picture, PHEMA_OK, err);
}
