/* layout.h - positions of everything in a picture. */
#ifndef PLOT_LAYOUT_H
#define PLOT_LAYOUT_H

#include "figure.h"
#include "ticks.h"

#define SIZE_TITLE     16.0
#define SIZE_NARROW    13.0 /* the title of a narrow picture */
#define SIZE_HEADING   13.0
#define SIZE_LABEL     12.0 /* of axes and legends */
#define SIZE_SMALL     11.0 /* ticks, notes, marks */
#define SIZE_VALUE     10.0 /* above bars */
#define LINE_HEIGHT    16.0
#define EDGE           16.0 /* around the picture */
#define MAX_NOTE_LINES 5    /* lines of a note */

/* ---- Texts and markers ---- */

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

/* ---- Positions ---- */

struct layout {
    double left, right; /* of all boxes */
    double below;       /* lower end of everything placed so far */
};

struct panel_layout {
    double heading, note; /* baselines of the first lines */
    double marks;         /* baseline of the lowest row of labels at vertical marks */
    struct box box;
    double numbers, notes, label; /* baselines below the box */
};

/* Starts below title and legend. */
struct layout layout_begin(const struct phema_picture *picture);
/* The positions of the next panel. */
struct panel_layout layout_next(struct layout *layout, const struct panel *panel);

struct ticks layout_ticks_y(const struct panel *panel);
/* width: of the panel's box */
struct ticks layout_ticks_x(const struct panel *panel, double width);

/* 0 at the axis' min, 1 at its max; NaN for values <= 0 on a logarithmic axis. */
double axis_share(const struct axis *axis, double value);

/* Splits the next line that fits the width off *rest; false: nothing is left. */
bool layout_line(char line[FITTED_SIZE], const char **rest, double width);

/* ---- The legend, whose entries flow into rows ---- */

struct legend {
    const struct phema_picture *picture;
    const struct panel *panel;
    const struct series *series;
    double x, y;
};
struct legend legend_begin(const struct phema_picture *picture);
/* false after the last entry; at: the start of its sample, on the baseline */
bool legend_next(struct legend *legend, const struct series **series, struct point *at);
#define LEGEND_SAMPLE 24.0

/* ---- Labels of vertical marks, in rows so that they do not overlap ---- */

#define MARK_ROWS 4
size_t layout_mark_row(const struct panel *panel, const struct mark *mark,
                       const struct layout *layout);
double layout_mark_x(const struct panel *panel, const struct mark *mark,
                     const struct layout *layout);

#endif
