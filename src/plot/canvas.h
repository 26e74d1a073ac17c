/* canvas.h - the drawing operations of a picture. Units: a picture is 800 wide, with the origin at
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

/* Corners of a marker that is a polygon. Returns their number, 0 for a circle. */
#define MARKER_MAX_CORNERS 4
size_t marker_corners(struct point corners[MARKER_MAX_CORNERS], enum marker marker, struct point at,
                      double radius);

/* Width of a text in DejaVu Sans, which is wider than most fonts that may replace it. So layouts do
 * not depend on the fonts of a machine. */
double text_width(const char *text, double size, bool is_bold);
/* The text, truncated with "..." to this width and to at most 255 bytes. */
#define FITTED_SIZE 256
const char *text_fit(char fitted[FITTED_SIZE], const char *text, double size, bool is_bold,
                     double width);

struct phema_picture;

PHEMA_FALLIBLE svg_write(struct phema_strbuf *out, const struct phema_picture *picture,
                         struct phema_error *err);
PHEMA_FALLIBLE cairo_write_png(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err);
PHEMA_FALLIBLE cairo_write_pdf(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err);

/* draw.c */
double picture_height(const struct phema_picture *picture);
void picture_draw(const struct phema_picture *picture, struct canvas *canvas);

#endif
