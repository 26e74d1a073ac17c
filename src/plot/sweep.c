// SPDX-License-Identifier: Apache-2.0
/* sweep.c - scores of averages by width, with the best one marked. */
#include "figure.h"
#include "scores.h"

#define SWEEP_BOX 320

/* The first one of equal best scores. */
static size_t find_best(const struct scores *scores, bool maximizes)
{
    size_t best = 0;
    for (size_t i = 1; i < scores->n; i++) {
        double here = scores->items[i].score;
        double there = scores->items[best].score;
        if (maximizes ? here > there : here < there)
            best = i;
    }
    return best;
}

/* Adds a tenth of the spread around the scores; the range need not include 0. */
static void fit(struct panel *panel, const struct scores *scores)
{
    double min = HUGE_VAL, max = -HUGE_VAL;
    for (size_t i = 0; i < scores->n; i++) {
        min = fmin(min, scores->items[i].score);
        max = fmax(max, scores->items[i].score);
    }
    double size = fmax(fabs(min), fabs(max));
    double border = max > min ? (max - min) / 10 : size > 1e-280 ? size / 10 : 1;
    border = fmax(border, size * 1e-9); /* ticks must stay distinct as doubles */
    panel->y.min = min - border;
    panel->y.max = max + border;
    double first = scores->items[0].sigma_rel;
    double last = scores->items[scores->n - 1].sigma_rel;
    double margin = fmax(last > first ? (last - first) / 20 : last / 10, 1e-280);
    panel->x.min = fmax(first - margin, 0);
    panel->x.max = last + margin;
}

static void draw(struct phema_picture *picture, const struct scores *scores, bool maximizes)
{
    struct panel *panel = picture_panel(picture, "score", SWEEP_BOX);
    struct series *line = panel_series(picture, panel, SERIES_LINE, NULL, scores->n);
    struct series *points = panel_series(picture, panel, SERIES_POINTS, "scores", scores->n);
    struct series *best = panel_series(picture, panel, SERIES_POINTS, "best", 1);
    if (!panel || !line || !points || !best)
        return;
    for (size_t i = 0; i < scores->n; i++) {
        line->x[i] = points->x[i] = scores->items[i].sigma_rel;
        line->y[i] = points->y[i] = scores->items[i].score;
    }
    size_t at = find_best(scores, maximizes);
    best->x[0] = scores->items[at].sigma_rel;
    best->y[0] = scores->items[at].score;
    line->pen = (struct pen){.color = COLOR_BLUE, .width = 1.4, .opacity = 0.6};
    points->pen = (struct pen){.color = COLOR_BLUE, .opacity = 1};
    points->radius = 3.4;
    points->legend = "averages that were scored";
    best->pen = (struct pen){.color = COLOR_RED, .opacity = 1};
    best->radius = 5.5;
    best->marker = MARKER_DIAMOND;
    struct phema_name_buffer width, score;
    best->legend = picture_text(picture, "best: sigma_rel %s, score %s",
                                phema_number_format(&width, best->x[0]),
                                phema_number_format(&score, best->y[0]));
    panel->x.label = "sigma_rel [standard deviation in time / training time]";
    panel->y.label = maximizes ? "score (higher is better)" : "score (lower is better)";
    fit(panel, scores);
}

PHEMA_FALLIBLE phema_plot_sweep(struct phema_picture **out, size_t *n_left_out,
                                const struct phema_plot_sweep *sweep, struct phema_error *err)
{
    struct scores scores;
    enum phema_status status = scores_read(&scores, sweep->csv, err);
    if (status)
        return status;
    struct phema_picture *picture = picture_new(sweep->title);
    if (picture)
        draw(picture, &scores, sweep->maximizes);
    size_t left_out = scores.n_left_out;
    scores_clear(&scores);
    status = picture_finish(out, picture, PHEMA_OK, err);
    if (!status)
        *n_left_out = left_out;
    return status;
}
