// SPDX-License-Identifier: Apache-2.0
/* design.c - the choices of a design, from the JSON that the verb design writes: errors by disk,
 * and the times and widths of the chosen one. */
#include <math.h>

#include "figure.h"
#include "phema/json.h"

#define ERRORS_BOX 260
#define TIMES_BOX  170
#define MOST_ITEMS 64
#define GIB        0x1p30

struct design_picture {
    struct phema_picture *picture;
    struct point items[MOST_ITEMS]; /* [n] choices: disk [GiB] and error */
    size_t n, chosen;
    const struct phema_json *design; /* the chosen one */
    const struct phema_json *others; /* NULL: none */
    double until;
    const char *unit;
};

static enum phema_status fail(const char *what, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE, "expected the JSON of the verb design with %s", what);
}

static enum phema_status read_choice(struct point *out, const struct phema_json *item,
                                     struct phema_error *err)
{
    double bytes = 0;
    if (!phema_json_number(&bytes, phema_json_get(item, "disk_bytes")) ||
        !phema_json_number(&out->y, phema_json_get(item, "worst_error")) ||
        !(bytes > 0 && out->y > 0))
        return fail("disk_bytes and worst_error above 0", err);
    out->x = bytes / GIB;
    return PHEMA_OK;
}

/* --json has choices; the file of -o is one. */
static enum phema_status read_design(struct design_picture *out, const struct phema_json *json,
                                     struct phema_error *err)
{
    const struct phema_json *choices = phema_json_get(json, "choices");
    uint64_t chosen = 0;
    out->unit = phema_json_string(phema_json_get(json, "unit"), NULL);
    out->n = choices ? phema_json_length(choices) : 1;
    if (!phema_json_number(&out->until, phema_json_get(json, "until")) || !(out->until > 0))
        return fail("until", err);
    if (choices && (!phema_json_u64(&chosen, phema_json_get(json, "chosen")) || chosen >= out->n ||
                    out->n > MOST_ITEMS))
        return fail("the index chosen", err);
    for (size_t i = 0; i < out->n; i++) {
        const struct phema_json *item = choices ? phema_json_at(choices, i) : json;
        enum phema_status status = read_choice(&out->items[i], item, err);
        if (status)
            return status;
    }
    out->chosen = (size_t)chosen;
    out->design = choices ? phema_json_at(choices, out->chosen) : json;
    out->others = phema_json_get(json, "others");
    return PHEMA_OK;
}

/* ---- Errors by disk ---- */

/* What the chosen disk gives otherwise. */
static void add_others(struct design_picture *drawn, struct panel *panel)
{
    size_t n = drawn->others ? phema_json_length(drawn->others) : 0;
    for (size_t i = 0; i < n && i < MOST_ITEMS; i++) {
        const struct phema_json *item = phema_json_at(drawn->others, i);
        const char *name = phema_json_string(phema_json_get(item, "name"), NULL);
        struct point other;
        struct phema_error ignored = {0};
        if (!name || read_choice(&other, item, &ignored))
            continue;
        const struct series point = {.kind = SERIES_POINTS,
                                     .name = picture_text(drawn->picture, "%s", name),
                                     .legend =
                                         picture_text(drawn->picture, "%s: %.1e", name, other.y),
                                     .pen = {.color = palette_color(i, n), .opacity = 1},
                                     .marker = MARKER_SQUARE,
                                     .radius = 4,
                                     .points = &other,
                                     .n = 1};
        (void)panel_series(drawn->picture, panel, &point);
    }
}

static void draw_errors(struct design_picture *drawn)
{
    const struct choices choices = {.items = drawn->items,
                                    .n = drawn->n,
                                    .color = COLOR_BLUE,
                                    .name = "choices",
                                    .legend = "choices: worst error of all averages"};
    const struct point chosen = drawn->items[drawn->chosen];
    double least = HUGE_VAL, most = 0;
    for (size_t i = 0; i < drawn->n; i++) {
        least = fmin(least, drawn->items[i].x);
        most = fmax(most, drawn->items[i].x);
    }
    const struct panel shown = {.name = "error",
                                .height = ERRORS_BOX,
                                .x = {.label = "disk of all snapshots [GiB]",
                                      .min = least / 1.3,
                                      .max = most * 1.3,
                                      .is_log = true},
                                .y = {.label = "worst error", .is_log = true}};
    struct panel *panel = picture_panel(drawn->picture, &shown);
    panel_choices(drawn->picture, panel, &choices);
    panel_best(drawn->picture, panel, chosen, "chosen",
               picture_text(drawn->picture, "chosen: %.1e", chosen.y));
    add_others(drawn, panel);
    panel_fit_y(panel);
}

/* ---- Times and widths ---- */

static enum phema_status draw_width(struct design_picture *drawn, struct panel *panel, size_t k,
                                    size_t n_widths, double sigma_rel, struct phema_error *err)
{
    const struct phema_json *times = phema_json_get(drawn->design, "times");
    size_t n = times ? phema_json_length(times) : 0;
    const struct series shown = {
        .kind = SERIES_POINTS,
        .name = picture_text(drawn->picture, "sigma_rel %.4g", sigma_rel),
        .legend = picture_text(drawn->picture, "%zu snapshots of sigma_rel %.4g", n, sigma_rel),
        .pen = {.color = palette_color(k, n_widths), .opacity = 1},
        .radius = 3,
        .n = n};
    struct series *series = panel_series(drawn->picture, panel, &shown);
    for (size_t i = 0; series && i < n; i++) {
        series->points[i].y = sigma_rel;
        if (!phema_json_number(&series->points[i].x, phema_json_at(times, i)))
            return fail("times that are numbers", err);
    }
    return PHEMA_OK;
}

static enum phema_status draw_times(struct design_picture *drawn, struct phema_error *err)
{
    const struct phema_json *widths = phema_json_get(drawn->design, "widths");
    size_t n = widths ? phema_json_length(widths) : 0;
    const struct panel shown = {.name = "times",
                                .height = TIMES_BOX,
                                .x = {.label = picture_text(drawn->picture, "training time [%s]",
                                                            drawn->unit ? drawn->unit : "steps"),
                                      .max = drawn->until,
                                      .has_suffixes = true},
                                .y = {.label = "sigma_rel"}};
    struct panel *panel = picture_panel(drawn->picture, &shown);
    for (size_t k = 0; k < n; k++) {
        double sigma_rel = 0;
        if (!phema_json_number(&sigma_rel, phema_json_at(widths, k)))
            return fail("widths that are numbers", err);
        enum phema_status status = draw_width(drawn, panel, k, n, sigma_rel, err);
        if (status)
            return status;
    }
    panel_fit_y(panel);
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_plot_design(struct phema_picture **out, const char *title,
                                 struct phema_span text, struct phema_error *err)
{
    struct design_picture drawn = {.picture = picture_new(title)};
    struct phema_json *json = NULL;
    if (!drawn.picture)
        return phema_fail_memory(err);
    enum phema_status status = phema_json_parse(&json, text, err);
    if (!status)
        status = read_design(&drawn, json, err);
    if (!status) {
        draw_errors(&drawn);
        status = draw_times(&drawn, err);
    }
    phema_json_free(json);
    return picture_finish(out, drawn.picture, status, err);
}
