// SPDX-License-Identifier: Apache-2.0
/* profiles.c - a stem for each weight; and densities over the training: of the snapshots, of the
 * target and of the weighted sum of the snapshots, and ten times the residual. A point of a curve is the mean density over one of
 * CELLS equal intervals, which is finite for every profile. */
#include <stdlib.h>
#include <string.h>

#include "figure.h"

#define CELLS        720 /* about one per unit of the picture */
#define MAX_INPUTS   8   /* curves of each kind of snapshot */
#define TENFOLD      10
#define DENSITY_BOX  260
#define RESIDUAL_BOX 96
#define WEIGHTS_BOX  230

/* ---- What both pictures share ---- */

/* The kinds of snapshot in a series. */
struct kinds {
    const char **names; /* [n] in the order of their first snapshot */
    size_t n;
    size_t *of; /* [series->n] index of each snapshot's kind */
};

/* false: no memory */
static bool find_kinds(struct kinds *out, struct phema_arena *arena,
                       const struct phema_plot_series *series)
{
    out->n = 0;
    out->names = phema_arena_array(arena, series->n + 1, sizeof(*out->names));
    out->of = phema_arena_array(arena, series->n + 1, sizeof(*out->of));
    if (!out->names || !out->of)
        return false;
    for (size_t k = 0; k < series->n; k++) {
        size_t i = 0;
        while (i < out->n && strcmp(out->names[i], series->kinds[k]) != 0)
            i++;
        if (i == out->n) {
            out->names[out->n] =
                phema_arena_copy(arena, series->kinds[k], strlen(series->kinds[k]));
            if (!out->names[out->n++])
                return false;
        }
        out->of[k] = i;
    }
    return true;
}

static enum phema_status check_targets(const char *kind, size_t m, struct phema_error *err)
{
    if (m <= PHEMA_PLOT_MAX_TARGETS)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "plot %s: draws at most %d targets below each other, found %zu", kind,
                      PHEMA_PLOT_MAX_TARGETS, m);
}

/* ---- Densities ---- */

struct work {
    const struct phema_plot_series *series;
    struct phema_picture *picture;
    struct kinds kinds;
    double end;        /* the last time that is drawn */
    double factor;     /* densities of all panels are weights per this many steps */
    const char *label; /* of their axes */
    double edges[CELLS + 1];
    double cumulative[CELLS + 1]; /* scratch */
    double *densities;            /* [series->n x CELLS] */
};

static void add_density(double *sums, struct work *work, const struct phema_profile *profile,
                        double factor)
{
    phema_profile_cumulative(work->cumulative, profile, work->edges, CELLS + 1);
    for (size_t i = 0; i < CELLS; i++)
        sums[i] += factor * (work->cumulative[i + 1] - work->cumulative[i]) /
                   (work->edges[i + 1] - work->edges[i]);
}

static enum phema_status prepare(struct work *work, struct phema_error *err)
{
    const struct phema_plot_series *series = work->series;
    work->densities = calloc(series->n + 1, CELLS * sizeof(*work->densities));
    if (!work->picture || !work->densities ||
        !find_kinds(&work->kinds, &work->picture->arena, series))
        return phema_fail_memory(err);
    for (size_t i = 0; i <= CELLS; i++)
        work->edges[i] = work->end * (double)i / CELLS;
    for (size_t k = 0; k < series->n; k++)
        add_density(work->densities + k * CELLS, work, &series->snapshots[k], 1);
    return PHEMA_OK;
}

static struct series *add_curve(struct work *work, struct panel *panel, const struct series *shown,
                                const double *densities, double factor)
{
    struct series *series = panel_series(work->picture, panel, shown);
    for (size_t i = 0; series && i < CELLS; i++)
        series->points[i] =
            (struct point){(work->edges[i] + work->edges[i + 1]) / 2, densities[i] * factor};
    return series;
}

/* A curve that ends at the profile's end: one that fell to 0 there would cross all others. */
static void add_input(struct work *work, struct panel *panel, const struct series *shown, size_t k)
{
    const struct phema_profile *profile = &work->series->snapshots[k];
    struct series *curve = add_curve(work, panel, shown, work->densities + k * CELLS, work->factor);
    while (curve && curve->n > 1 && work->edges[curve->n - 1] >= profile->t)
        curve->n--;
    if (!curve || profile->shape == PHEMA_SHAPE_RAW)
        return;
    size_t last = curve->n - 1; /* the profile may end within this interval */
    double part = profile->t - work->edges[last];
    double whole = work->edges[last + 1] - work->edges[last];
    if (part < whole) {
        curve->points[last].x = work->edges[last] + part / 2;
        curve->points[last].y *= whole / part;
    }
}

/* The newest snapshot of a kind, and every n-th one before it, each fainter than the next. */
static void add_inputs(struct work *work, struct panel *panel, size_t kind)
{
    const struct phema_plot_series *series = work->series;
    size_t n = 0;
    for (size_t k = 0; k < series->n; k++)
        n += work->kinds.of[k] == kind && series->snapshots[k].t <= work->end;
    size_t every = (n + MAX_INPUTS - 1) / MAX_INPUTS;
    size_t seen = 0;
    for (size_t k = series->n; k-- > 0;) {
        if (work->kinds.of[k] != kind || series->snapshots[k].t > work->end || seen++ % every != 0)
            continue;
        double age = (double)(seen - 1) / (double)n; /* 0: the newest */
        const struct series shown = {
            .name = picture_text(work->picture, "input %s at %.17g", series->kinds[k],
                                 series->snapshots[k].t),
            .legend = every == 1 ? picture_text(work->picture, "snapshots, %s", series->kinds[k])
                                 : picture_text(work->picture, "snapshots, %s (one of %zu)",
                                                series->kinds[k], every),
            .pen = {.color = palette_color(kind, work->kinds.n),
                    .width = 1.4,
                    .opacity = 1 - 0.75 * age},
            .n = CELLS};
        add_input(work, panel, &shown, k);
    }
}

struct range {
    double min, max;
};

static struct range range_of(const double *densities)
{
    struct range range = {0, 0};
    for (size_t i = 0; i < CELLS; i++) {
        range.min = fmin(range.min, densities[i]);
        range.max = fmax(range.max, densities[i]);
    }
    return range;
}

/* The range shows all of the target, and of the weighted sum as much again on either side. Early
 * snapshots may make that sum many times as high at the start. Below 0 it ends where the curves do. */
static void fit_panel(struct panel *panel, const double *wanted, const double *made, double factor)
{
    struct range target = range_of(wanted);
    struct range result = range_of(made);
    double span = target.max - target.min;
    if (span > 0) {
        result.min = fmax(result.min, target.min - span / 2);
        result.max = fmin(result.max, target.max + span);
    }
    struct point bounds[] = {{0, 1.15 * factor * fmin(target.min, result.min)},
                             {0, 1.15 * factor * fmax(target.max, result.max)}};
    struct series *all = panel->series;
    struct series both = {.points = bounds, .n = ARRAY_LEN(bounds)};
    panel->series = &both;
    panel_fit_y(panel);
    panel->series = all;
    panel->y.min = fmax(panel->y.min, bounds[0].y);
}

/* The same scale as the panel above, where ten times the residual fits. Otherwise the range is
 * extended for the part that the panel above shows. */
static void fit_residual(struct panel *panel, const struct panel *above, const struct series *made)
{
    double half = (above->y.max - above->y.min) / above->height * panel->height / 2;
    const struct series *rest = panel->series;
    for (size_t i = 0; i < CELLS; i++)
        if (made->points[i].y >= above->y.min && made->points[i].y <= above->y.max)
            half = fmax(half, fabs(rest->points[i].y) * 1.05);
    panel->y.max = half;
    panel->y.min = -half;
}

/* [CELLS] each: of the target, and of the weighted sum of snapshots. */
struct densities {
    double *wanted, *made;
};

static bool find_densities(struct densities *out, struct work *work,
                           const struct phema_plot_target *target)
{
    struct phema_arena *arena = &work->picture->arena;
    out->wanted = phema_arena_array(arena, CELLS, sizeof(*out->wanted));
    out->made = phema_arena_array(arena, CELLS, sizeof(*out->made));
    if (!out->wanted || !out->made)
        return false;
    for (size_t p = 0; p < target->mix.n_parts; p++)
        add_density(out->wanted, work, &target->mix.parts[p],
                    target->mix.factors ? target->mix.factors[p] : 1);
    for (size_t k = 0; k < work->series->n; k++)
        for (size_t i = 0; target->weights[k] != 0 && i < CELLS; i++)
            out->made[i] += target->weights[k] * work->densities[k * CELLS + i];
    return true;
}

/* Weights per 1, 1000, 1000000, ... units of time, so that numbers are not much below 1 in the panel
 * that has the largest. */
static void choose_factor(struct work *work, const struct densities *densities, size_t m)
{
    double most = 0;
    for (size_t j = 0; j < m; j++)
        for (size_t i = 0; i < CELLS; i++)
            most = fmax(most, fmax(fabs(densities[j].wanted[i]), fabs(densities[j].made[i])));
    size_t power = 0;
    for (work->factor = 1; most > 0 && most * work->factor < 0.5 && power < 4; power++)
        work->factor *= 1000;
    static const char *const thousands[] = {"1000", "1M", "1G", "1T"};
    const char *unit = work->series->unit;
    bool is_plural =
        strcmp(unit, "steps") == 0 || strcmp(unit, "images") == 0 || strcmp(unit, "tokens") == 0;
    work->label = power == 0 ? picture_text(work->picture, "weight per %.*s",
                                            (int)strlen(unit) - is_plural, unit)
                             : picture_text(work->picture, "weight per %s %s", thousands[power - 1],
                                            work->series->unit);
}

/* The solid curve lies below the dashed one, so both are visible where they agree. */
static bool add_result(struct work *work, struct panel *panel, struct panel *below,
                       const struct densities *densities)
{
    static const struct series shown[] = {
        {.name = "made",
         .legend = "what the weights make",
         .pen = {.color = COLOR_RED, .width = 2.4, .opacity = 1},
         .n = CELLS},
        {.name = "target",
         .legend = "target",
         .pen = {.color = COLOR_BLACK, .width = 1.2, .opacity = 1, .dash = 5, .gap = 4},
         .n = CELLS},
        {.name = "10 x (made - target)",
         .pen = {.color = COLOR_RED, .width = 1.4, .opacity = 1},
         .n = CELLS},
    };
    struct series *made = add_curve(work, panel, &shown[0], densities->made, work->factor);
    struct series *wanted = add_curve(work, panel, &shown[1], densities->wanted, work->factor);
    struct series *rest = add_curve(work, below, &shown[2], densities->made, 1);
    if (!made || !wanted || !rest)
        return false;
    for (size_t i = 0; i < CELLS; i++)
        rest->points[i].y = TENFOLD * work->factor * (densities->made[i] - densities->wanted[i]);
    fit_panel(panel, densities->wanted, densities->made, work->factor);
    fit_residual(below, panel, made);
    return true;
}

/* "weight per 1000 steps, up to 15" where a curve of the panel is higher than its range. */
static void name_range(struct work *work, struct panel *panel)
{
    bool is_cut = false;
    for (const struct series *curve = panel->series; curve; curve = curve->next)
        for (size_t i = 0; i < curve->n && !is_cut; i++)
            is_cut = curve->points[i].y > panel->y.max;
    if (is_cut)
        panel->y.label =
            picture_text(work->picture, "%s, up to %.3g", panel->y.label, panel->y.max);
}

static enum phema_status add_target(struct work *work, const struct phema_plot_target *target,
                                    const struct densities *densities, struct phema_error *err)
{
    struct phema_picture *picture = work->picture;
    const char *title = picture_text(picture, "%s", target->title);
    const struct panel shown = {.name = title,
                                .heading = title,
                                .note =
                                    target->note ? picture_text(picture, "%s", target->note) : NULL,
                                .height = DENSITY_BOX,
                                .x = {.max = work->end, .has_suffixes = true},
                                .y = {.label = work->label}};
    const struct panel residual = {
        .name = title,
        .height = RESIDUAL_BOX,
        .x = {.label = picture_text(picture, "training time [%s]", work->series->unit),
              .max = work->end,
              .has_suffixes = true},
        .y = {.label = "10 x residual"}};
    struct panel *panel = picture_panel(picture, &shown),
                 *below = picture_panel(picture, &residual);
    for (size_t kind = 0; kind < work->kinds.n; kind++)
        add_inputs(work, panel, kind);
    if (!add_result(work, panel, below, densities))
        return phema_fail_memory(err);
    name_range(work, panel);
    return PHEMA_OK;
}

/* The last snapshot with a weight, or the end of a target if that is later. */
static double last_time(const struct phema_plot_series *series,
                        const struct phema_plot_target *targets, size_t m)
{
    double last = 0;
    for (size_t j = 0; j < m; j++) {
        for (size_t k = 0; k < series->n; k++)
            if (targets[j].weights[k] != 0)
                last = fmax(last, series->snapshots[k].t);
        for (size_t p = 0; p < targets[j].mix.n_parts; p++)
            last = fmax(last, targets[j].mix.parts[p].t);
    }
    return last > 0 ? last : 1;
}

PHEMA_FALLIBLE phema_plot_profiles(struct phema_picture **out,
                                   const struct phema_plot_series *series,
                                   const struct phema_plot_target *targets, size_t m,
                                   struct phema_error *err)
{
    enum phema_status status = check_targets("profiles", m, err);
    if (status)
        return status;
    struct work work = {.series = series,
                        .picture = picture_new(series->title),
                        .end = last_time(series, targets, m)};
    struct densities densities[PHEMA_PLOT_MAX_TARGETS];
    status = prepare(&work, err);
    for (size_t j = 0; j < m && !status; j++)
        if (!find_densities(&densities[j], &work, &targets[j]))
            status = phema_fail_memory(err);
    if (!status)
        choose_factor(&work, densities, m);
    for (size_t j = 0; j < m && !status; j++)
        status = add_target(&work, &targets[j], &densities[j], err);
    free(work.densities);
    return picture_finish(out, work.picture, status, err);
}

/* ---- Weights ---- */

static void add_stems(struct phema_picture *picture, struct panel *panel,
                      const struct phema_plot_series *series, const struct kinds *kinds,
                      const double *weights, size_t kind)
{
    struct point *points = phema_arena_array(&picture->arena, series->n, sizeof(*points));
    struct series stems = {
        .kind = SERIES_STEMS,
        .name = kinds->names[kind],
        .legend = picture_text(picture, "snapshots, %s", kinds->names[kind]),
        .pen = {.color = palette_color(kind, kinds->n), .width = 1.2, .opacity = 1},
        .marker = (enum marker)(kind % N_MARKERS),
        .radius = 3.6,
        .column = kind,
        .n_columns = kinds->n,
        .points = points};
    for (size_t k = 0; points && k < series->n; k++)
        if (kinds->of[k] == kind)
            points[stems.n++] = (struct point){series->snapshots[k].t, weights[k]};
    (void)panel_series(picture, panel, &stems);
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

static void add_weights(struct phema_picture *picture, const struct phema_plot_series *series,
                        const struct kinds *kinds, const struct phema_plot_target *target,
                        bool is_last)
{
    const char *title = picture_text(picture, "%s", target->title);
    struct panel shown = {
        .name = title,
        .heading = title,
        .note = target->note ? picture_text(picture, "%s", target->note) : NULL,
        .height = WEIGHTS_BOX,
        .x = {.label = is_last ? picture_text(picture, "training time [%s]", series->unit) : ""},
        .y = {.label = "weight"}};
    fit_x(&shown.x, series);
    struct panel *panel = picture_panel(picture, &shown);
    for (size_t kind = 0; kind < kinds->n; kind++)
        add_stems(picture, panel, series, kinds, target->weights, kind);
    panel_fit_y(panel);
}

PHEMA_FALLIBLE phema_plot_weights(struct phema_picture **out,
                                  const struct phema_plot_series *series,
                                  const struct phema_plot_target *targets, size_t m,
                                  struct phema_error *err)
{
    enum phema_status status = check_targets("weights", m, err);
    if (status)
        return status;
    struct phema_picture *picture = picture_new(series->title);
    struct kinds kinds = {0};
    if (!picture || !find_kinds(&kinds, &picture->arena, series))
        status = phema_fail_memory(err);
    for (size_t j = 0; j < m && !status; j++)
        add_weights(picture, series, &kinds, &targets[j], j + 1 == m);
    return picture_finish(out, picture, status, err);
}
