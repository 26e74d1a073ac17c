/* canvas.h - the few things a picture is drawn with, in units of which a picture is 800 wide, from
 * the upper left. svg.c writes them as text, cairo.c draws them. */
#ifndef PLOT_CANVAS_H
#define PLOT_CANVAS_H

#include "phema/error.h"
#include "phema/span.h"
#include "phema/strbuf.h"

struct pen {
    uint32_t color; /* 0xRRGGBB */
    double width;
    double opacity;
    double dash, gap; /* dash 0: a whole line */
};

enum marker { MARKER_CIRCLE, MARKER_SQUARE, MARKER_DIAMOND, MARKER_TRIANGLE, N_MARKERS };

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

struct type {
    double size;
    uint32_t color;
    bool is_bold;
    enum anchor anchor;
    bool is_upward; /* turned by a quarter: read from below */
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
    void (*clip)(struct canvas *canvas, struct box box); /* until unclip; not within another */
    void (*unclip)(struct canvas *canvas);
};

/* Corners of markers that are polygons: n, 0 for a circle. */
#define MARKER_MOST_CORNERS 4
size_t marker_corners(struct point corners[MARKER_MOST_CORNERS], enum marker marker,
                      struct point at, double radius);

/* How wide a text is in DejaVu Sans, wider than most that may stand in for it: layouts do not
 * depend on the fonts of a machine. */
double text_width(const char *text, double size, bool is_bold);
/* As much of a text as is not wider, with "..." where some is missing; of at most 255 bytes. */
#define FITTED_SIZE 256
const char *text_fitted(char fitted[FITTED_SIZE], const char *text, double size, bool is_bold,
                        double width);

struct phema_picture;

PHEMA_FALLIBLE svg_write(struct phema_strbuf *out, const struct phema_picture *picture,
                         struct phema_error *err);
PHEMA_FALLIBLE cairo_write_png(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err);
PHEMA_FALLIBLE cairo_write_pdf(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err);
void csv_write(struct phema_strbuf *out, const struct phema_picture *picture);

/* draw.c */
double picture_height(const struct phema_picture *picture);
void picture_draw(const struct phema_picture *picture, struct canvas *canvas);

#endif
