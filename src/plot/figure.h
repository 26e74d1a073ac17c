/* figure.h - the contents of a picture before it is drawn: a column of panels, each with its axes
 * and series of points. Everything lives in the picture's arena. And the canvas that it is drawn
 * on: svg.c writes text, cairo.c draws. Units: a picture is 800 wide, with the origin at the upper
 * left. */
#ifndef PLOT_FIGURE_H
#define PLOT_FIGURE_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/plot.h"
#include "phema/span.h"
#include "phema/strbuf.h"

#define WIDE_PICTURE   800.0
#define NARROW_PICTURE 380.0

#define WIDTH_LABEL "sigma_rel (standard deviation / training time)"

/* ---- The canvas ---- */

struct pen {
    uint32_t color; /* 0xRRGGBB */
    double width;
    double opacity;
    double dash, gap; /* dash 0: a solid line */
};

enum marker { MARKER_CIRCLE, MARKER_SQUARE, MARKER_DIAMOND, MARKER_TRIANGLE, N_MARKERS };

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

struct type {
    double size;
    uint32_t color;
    bool is_bold;
    enum anchor anchor;
    bool is_upward; /* turned by 90 degrees: reads from bottom to top */
};

struct box {
    double x, y, width, height;
};

struct point {
    double x, y;
};

struct canvas {
    void (*line)(struct canvas *canvas, const struct point *points, size_t n,
                 const struct pen *pen);
    void (*fill)(struct canvas *canvas, struct box box, uint32_t color, double opacity);
    void (*mark)(struct canvas *canvas, enum marker marker, struct point at, double radius,
                 const struct pen *pen); /* filled with the pen's colour */
    void (*text)(struct canvas *canvas, struct point at, const struct type *type,
                 const char *text);                      /* at: the baseline */
    void (*clip)(struct canvas *canvas, struct box box); /* until unclip; clips do not nest */
    void (*unclip)(struct canvas *canvas);
};

/* ---- The picture ---- */

enum series_kind {
    SERIES_LINE,
    SERIES_POINTS,
    SERIES_STEMS, /* from 0 to a marker */
    SERIES_BARS,  /* from 0; x is the category */
    SERIES_ENDS   /* a stroke across the bar of the same shift */
};

struct series {
    const char *name;   /* in the CSV; NULL: not in the CSV */
    const char *legend; /* NULL: not in the legend; equal texts appear once */
    enum series_kind kind;
    struct pen pen;
    enum marker marker;
    double radius;            /* of markers */
    size_t column, n_columns; /* position among series side by side at one x; n_columns 0: alone */
    bool has_values;          /* values are written above bars */
    struct point *points;     /* [n]; a y that is not finite interrupts a line */
    size_t n;
    struct point *drawn; /* [n] scratch for drawing a line */
    struct series *next;
};

/* A line across the panel, with a label. */
struct mark {
    bool is_vertical;
    double at;
    const char *label;
    struct pen pen;
    struct mark *next;
};

struct axis {
    const char *label; /* "": numbers only; NULL: neither, the panel below has them */
    double min, max;
    bool is_log, has_suffixes;
    const char **categories; /* [n_categories] at 0, 1, ... instead of numbers */
    const char **notes;      /* [n_categories] below the categories, or NULL */
    size_t n_categories;
};

struct panel {
    const char *name;           /* in the CSV */
    const char *heading, *note; /* above it; NULL: none */
    double height;              /* of the box */
    struct axis x, y;
    struct series *series, **series_end;
    struct mark *marks, **marks_end;
    struct panel *next;
};

struct phema_picture {
    struct phema_arena arena; /* whether it failed is checked once, at the end */
    const char *title;
    double width;
    struct panel *panels, **panels_end;
};

/* Without memory these return NULL. A NULL panel is allowed, and nothing is added. */
struct phema_picture *picture_new(const char *title);
PHEMA_FALLIBLE picture_finish(struct phema_picture **out, struct phema_picture *picture,
                              enum phema_status status, struct phema_error *err);
char *picture_text(struct phema_picture *picture, const char *format, ...) PHEMA_PRINTF(2, 3);
/* Copies, without what was added to it: a panel; a series and its points, which are zero where it
 * has none. */
struct panel *picture_panel(struct phema_picture *picture, const struct panel *panel);
struct series *panel_series(struct phema_picture *picture, struct panel *panel,
                            const struct series *series);
void panel_mark(struct phema_picture *picture, struct panel *panel, const struct mark *mark);
/* Points on a thin line. */
struct choices {
    struct point *items; /* [n] */
    size_t n;
    uint32_t color;
    const char *name, *legend;
};
void panel_choices(struct phema_picture *picture, struct panel *panel,
                   const struct choices *choices);
/* One of them again, as the best. */
void panel_best(struct phema_picture *picture, struct panel *panel, struct point best,
                const char *name, const char *legend);

/* Sets the range of the y axis: all values of the panel's series, with 0 on a linear axis, widened
 * to round numbers. Takes NULL. */
void panel_fit_y(struct panel *panel);

/* ---- Okabe and Ito's colours on white, which remain distinct in colour blindness ---- */

#define COLOR_PAGE   0xFFFFFFu
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

/* The colour of the i-th of n kinds: up to five hues, else from dark blue to yellow (cividis).
 * Never the red of results. */
uint32_t palette_color(size_t i, size_t n);

/* ---- draw.c, svg.c, cairo.c ---- */

PHEMA_FALLIBLE svg_write(struct phema_strbuf *out, const struct phema_picture *picture,
                         struct phema_error *err);
PHEMA_FALLIBLE cairo_write_png(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err);
PHEMA_FALLIBLE cairo_write_pdf(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err);

double picture_height(const struct phema_picture *picture);
void picture_draw(const struct phema_picture *picture, struct canvas *canvas);

#endif
