/* figure.h - what a picture shows, before it is drawn: panels below each other, each with its axes
 * and series of points. Everything lives in the picture's arena. */
#ifndef PLOT_FIGURE_H
#define PLOT_FIGURE_H

#include "canvas.h"
#include "phema/arena.h"
#include "phema/plot.h"

#define PICTURE_WIDTH 800.0
#define PLOT_WIDTH    706.0 /* of a panel's box, about: a point of a curve for each unit */

enum series_kind {
    SERIES_LINE,
    SERIES_POINTS,
    SERIES_STEMS, /* from 0 to a marker */
    SERIES_BARS,  /* from 0; x is the category */
    SERIES_ENDS   /* a stroke across the bar of the same shift */
};

struct series {
    const char *name;   /* in the CSV; NULL: not in it */
    const char *legend; /* NULL: not in it; of several with one text the first one is shown */
    enum series_kind kind;
    struct pen pen;
    enum marker marker;
    double radius;            /* of markers */
    size_t column, n_columns; /* of what stands beside each other at one x; 0: it stands alone */
    bool has_values;          /* written above bars */
    double *x, *y;            /* [n]; a y that is not finite interrupts a line */
    size_t n;
    struct point *drawn; /* [n] room for what is drawn of a line */
    struct series *next;
};

/* A line across the panel, with words. */
struct mark {
    bool is_vertical;
    double at;
    const char *label;
    struct pen pen;
    struct mark *next;
};

struct axis {
    const char *label; /* "": numbers alone; NULL: not even those, the panel below has them */
    double min, max;
    bool is_log, has_suffixes;
    const char **categories; /* [n_categories] at 0, 1, ... instead of numbers */
    const char **notes;      /* [n_categories] below them, or NULL */
    size_t n_categories;
};

struct panel {
    const char *name;           /* in the CSV */
    const char *heading, *note; /* above it; NULL: none */
    double height;              /* of the box */
    struct axis x, y;
    struct series *series, *last_series;
    struct mark *marks, *last_mark;
    struct panel *next;
};

struct phema_picture {
    struct phema_arena arena;
    bool is_failed; /* no memory: looked at once, at the end */
    const char *title;
    struct panel *panels, *last_panel;
};

/* NULL and is_failed where there is no memory; figure_* take what is NULL and do nothing. */
struct phema_picture *picture_new(const char *title);
PHEMA_FALLIBLE picture_finish(struct phema_picture **out, struct phema_picture *picture,
                              enum phema_status status, struct phema_error *err);
char *picture_text(struct phema_picture *picture, const char *format, ...) PHEMA_PRINTF(2, 3);
struct panel *picture_panel(struct phema_picture *picture, const char *name, double height);
/* x and y [n], zero */
struct series *panel_series(struct phema_picture *picture, struct panel *panel,
                            enum series_kind kind, const char *name, size_t n);
void panel_mark(struct phema_picture *picture, struct panel *panel, const struct mark *mark);

/* Takes in what the series of a panel have along y, and 0 where it is not logarithmic; then moves
 * the ends to round numbers. */
void panel_fit_y(struct panel *panel);

/* ---- palette.c: Okabe and Ito's colours, which all kinds of eyes tell apart ---- */

#define COLOR_BLACK  0x000000u
#define COLOR_TEXT   0x222222u
#define COLOR_FAINT  0x666666u
#define COLOR_GRID   0xE4E4E4u
#define COLOR_RED    0xD55E00u
#define COLOR_BLUE   0x0072B2u
#define COLOR_GREEN  0x009E73u
#define COLOR_PURPLE 0xCC79A7u
#define COLOR_SKY    0x56B4E9u
#define COLOR_ORANGE 0xE69F00u

/* Of the i-th of n kinds: up to five hues, else from dark blue to yellow (cividis). Never the red
 * of results. */
uint32_t palette_color(size_t i, size_t n);

/* ---- kinds.c: the different texts of a series' kinds ---- */

struct kinds {
    const char **names; /* [n] in the order of their first snapshot */
    size_t n;
    size_t *of; /* [series->n] */
};
bool kinds_find(struct kinds *out, struct phema_arena *arena,
                const struct phema_plot_series *series);

/* "step" of "steps": as in "weight per step" */
const char *unit_of_one(struct phema_picture *picture, const char *unit);
/* "training time [steps]" */
const char *unit_label(struct phema_picture *picture, const char *unit);

PHEMA_FALLIBLE plot_check_targets(const char *kind, size_t m, struct phema_error *err);

#endif
