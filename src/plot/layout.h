/* layout.h - where everything in a picture goes. */
#ifndef PLOT_LAYOUT_H
#define PLOT_LAYOUT_H

#include "figure.h"
#include "ticks.h"

#define SIZE_TITLE   16.0
#define SIZE_HEADING 13.0
#define SIZE_LABEL   12.0 /* of axes and legends */
#define SIZE_SMALL   11.0 /* ticks, notes, marks */
#define SIZE_VALUE   10.0 /* above bars */
#define LINE_HEIGHT  16.0
#define EDGE         16.0 /* around the picture */
#define MOST_NOTES   3    /* lines of a note */

struct layout {
    double left, right; /* of all boxes */
    double below;       /* of what was placed so far */
};

struct place {
    double heading, note; /* baselines of the first lines */
    double marks;         /* of the lowest row of words at vertical marks */
    struct box box;
    double numbers, notes, label; /* baselines below it */
};

/* Below title and legend. */
struct layout layout_begin(const struct phema_picture *picture);
/* The next panel's. */
struct place layout_next(struct layout *layout, const struct panel *panel);

struct ticks layout_ticks_x(const struct panel *panel);
struct ticks layout_ticks_y(const struct panel *panel);

/* 0 at the axis' min, 1 at its max; NaN where a logarithm has no place for it. */
double axis_share(const struct axis *axis, double value);

/* The next line of a text at *rest that is not wider, and what is left behind it. */
bool layout_line(char line[FITTED_SIZE], const char **rest, double width);

/* ---- The legend: entries flow into rows ---- */

struct legend {
    const struct phema_picture *picture;
    const struct panel *panel;
    const struct series *series;
    double x, y;
};
struct legend legend_begin(const struct phema_picture *picture);
/* false behind the last one; x, y: where its sample begins, and the baseline */
bool legend_next(struct legend *legend, const struct series **series, struct point *at);
#define LEGEND_SAMPLE 24.0

/* ---- Words at vertical marks: in rows, so that they do not overlap ---- */

#define MARK_ROWS 4
size_t layout_mark_row(const struct panel *panel, const struct mark *mark,
                       const struct layout *layout);
double layout_mark_x(const struct panel *panel, const struct mark *mark,
                     const struct layout *layout);

#endif
