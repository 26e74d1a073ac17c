// SPDX-License-Identifier: Apache-2.0
/* weights.c - a stem for each weight, at the time of its snapshot. */
#include "figure.h"

#define WEIGHTS_BOX 230

static void add_kind(struct phema_picture *picture, struct panel *panel,
                     const struct phema_plot_series *series, const struct kinds *kinds,
                     const double *weights, size_t kind)
{
    size_t n = 0;
    for (size_t k = 0; k < series->n; k++)
        n += kinds->of[k] == kind;
    struct series *stems = panel_series(picture, panel, SERIES_STEMS, kinds->names[kind], n);
    if (!stems)
        return;
    n = 0;
    for (size_t k = 0; k < series->n; k++)
        if (kinds->of[k] == kind) {
            stems->x[n] = series->snapshots[k].t;
            stems->y[n++] = weights[k];
        }
    stems->legend = picture_text(picture, "snapshots, %s", kinds->names[kind]);
    stems->pen = (struct pen){.color = palette_color(kind, kinds->n), .width = 1.2, .opacity = 1};
    stems->marker = (enum marker)(kind % N_MARKERS);
    stems->radius = 3.6;
    stems->column = kind;
    stems->n_columns = kinds->n;
}

/* From 0, unless all times are late; then with a margin around them. */
static void fit_x(struct axis *axis, const struct phema_plot_series *series)
{
    double first = HUGE_VAL, last = 0;
    for (size_t k = 0; k < series->n; k++) {
        first = fmin(first, series->snapshots[k].t);
        last = fmax(last, series->snapshots[k].t);
    }
    axis->min = 0;
    axis->max = last > 0 ? last * 1.02 : 1;
    if (first > last / 2 && first < last) {
        axis->min = first - (last - first) * 0.05;
        axis->max = last + (last - first) * 0.05;
    }
    axis->has_suffixes = true;
}

static void add_target(struct phema_picture *picture, const struct phema_plot_series *series,
                       const struct kinds *kinds, const struct phema_plot_target *target,
                       bool is_last)
{
    struct panel *panel = picture_panel(picture, "", WEIGHTS_BOX);
    if (!panel)
        return;
    panel->name = panel->heading = picture_text(picture, "%s", target->title);
    panel->note = target->note ? picture_text(picture, "%s", target->note) : NULL;
    panel->y.label = "weight";
    panel->x.label = is_last ? picture_text(picture, "training time [%s]", series->unit) : "";
    for (size_t kind = 0; kind < kinds->n; kind++)
        add_kind(picture, panel, series, kinds, target->weights, kind);
    fit_x(&panel->x, series);
    panel_fit_y(panel);
}

PHEMA_FALLIBLE phema_plot_weights(struct phema_picture **out,
                                  const struct phema_plot_series *series,
                                  const struct phema_plot_target *targets, size_t m,
                                  struct phema_error *err)
{
    enum phema_status status = plot_check_targets("weights", m, err);
    if (status)
        return status;
    struct phema_picture *picture = picture_new(series->title);
    struct kinds kinds = {0};
    if (!picture || !kinds_find(&kinds, &picture->arena, series))
        status = phema_fail_memory(err);
    for (size_t j = 0; j < m && !status; j++)
        add_target(picture, series, &kinds, &targets[j], j + 1 == m);
    return picture_finish(out, picture, status, err);
}
