// SPDX-License-Identifier: Apache-2.0
/* layout.c - positions of everything in a picture. Widths of texts are estimates for all fonts
 * (canvas.h), so a picture has the same layout in every format and on every machine. */
#include "layout.h"

#include <stdio.h>
#include <string.h>

/* ---- Texts and markers ---- */

size_t marker_corners(struct point corners[MARKER_MAX_CORNERS], enum marker marker, struct point at,
                      double radius)
{
    static const double shapes[N_MARKERS][MARKER_MAX_CORNERS][2] = {
        [MARKER_SQUARE] = {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
        [MARKER_DIAMOND] = {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
        [MARKER_TRIANGLE] = {{0, -1.3}, {1.15, 0.8}, {-1.15, 0.8}},
    };
    size_t n = marker == MARKER_CIRCLE ? 0 : marker == MARKER_TRIANGLE ? 3 : 4;
    for (size_t i = 0; i < n; i++)
        corners[i] = (struct point){at.x + radius * shapes[marker][i][0],
                                    at.y + radius * shapes[marker][i][1]};
    return n;
}

/* Widths in thousandths of an em of the characters from ' ' to '~' in DejaVu Sans 2.37. */
static const uint16_t widths[] = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838,
};
#define WIDTH_OF_OTHERS 700
#define BOLD            1.13

double text_width(const char *text, double size, bool is_bold)
{
    double sum = 0;
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        bool is_known = byte >= ' ' && byte <= '~', is_continued = (byte & 0xC0) == 0x80;
        sum += is_known ? widths[byte - ' '] : is_continued ? 0 : WIDTH_OF_OTHERS; /* UTF-8 */
    }
    return sum / 1000 * size * (is_bold ? BOLD : 1);
}

const char *text_fit(char fitted[FITTED_SIZE], const char *text, double size, bool is_bold,
                     double width)
{
    size_t length = strlen(text);
    if (length < FITTED_SIZE && text_width(text, size, is_bold) <= width) {
        memcpy(fitted, text, length + 1);
        return fitted;
    }
    if (length > FITTED_SIZE - 4)
        length = FITTED_SIZE - 4;
    for (;; length--) {
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
        (void)snprintf(fitted, FITTED_SIZE, "%.*s...", (int)length, text);
        if (length == 0 || text_width(fitted, size, is_bold) <= width)
            return fitted;
    }
}

/* ---- Axes and panels ---- */

#define ROW 12.0 /* height of a row of labels at marks */

double axis_share(const struct axis *axis, double value)
{
    if (axis->is_log)
        return value > 0 ? log(value / axis->min) / log(axis->max / axis->min) : PHEMA_UNKNOWN;
    return (value - axis->min) / (axis->max - axis->min);
}

struct ticks layout_ticks_y(const struct panel *panel)
{
    size_t most = panel->height < 120 ? 5 : 7;
    if (panel->y.is_log)
        return ticks_log(panel->y.min, panel->y.max, most + 2);
    return ticks_linear(panel->y.min, panel->y.max, most);
}

struct ticks layout_ticks_x(const struct panel *panel, double width)
{
    size_t most = width < WIDE_PICTURE / 2 ? 4 : 9;
    return panel->x.is_log ? ticks_log(panel->x.min, panel->x.max, most)
                           : ticks_linear(panel->x.min, panel->x.max, most);
}

static double widest_number(const struct panel *panel)
{
    struct ticks ticks = layout_ticks_y(panel);
    double widest = 0;
    for (size_t i = 0; i < ticks.n; i++) {
        char label[TICKS_LABEL_SIZE];
        ticks_label(label, &ticks, i, panel->y.has_suffixes);
        widest = fmax(widest, text_width(label, SIZE_SMALL, false));
    }
    return widest;
}

struct layout layout_begin(const struct phema_picture *picture)
{
    double widest = 0;
    for (const struct panel *panel = picture->panels; panel; panel = panel->next)
        widest = fmax(widest, widest_number(panel));
    struct legend legend = legend_begin(picture);
    double below = legend.y - LINE_HEIGHT; /* below the title, if there is no legend */
    const struct series *series;
    struct point at;
    while (legend_next(&legend, &series, &at))
        below = at.y;
    return (struct layout){.left = floor(EDGE + SIZE_LABEL + 10 + widest + 7),
                           .right = picture->width - EDGE - 4,
                           .below = below};
}

static double mark_rows(const struct panel *panel, const struct layout *layout)
{
    double rows = 0;
    for (const struct mark *mark = panel->marks; mark; mark = mark->next)
        if (mark->is_vertical && mark->label)
            rows = fmax(rows, (double)layout_mark_row(panel, mark, layout) + 1);
    return rows;
}

struct panel_layout layout_next(struct layout *layout, const struct panel *panel)
{
    struct panel_layout where = {0};
    double width = layout->right - layout->left;
    double y = layout->below + (panel->heading ? 14 : 8);
    if (panel->heading) {
        y += LINE_HEIGHT;
        where.heading = y;
    }
    const char *rest = panel->note;
    char line[FITTED_SIZE];
    where.note = y + LINE_HEIGHT;
    for (int i = 0; rest && i < MAX_NOTE_LINES && layout_line(line, &rest, width); i++)
        y += LINE_HEIGHT;
    y += ROW * mark_rows(panel, layout);
    where.marks = y + 4;
    y += 8;
    where.box = (struct box){layout->left, y, width, panel->height};
    y += panel->height;
    if (panel->x.label) {
        y += LINE_HEIGHT;
        where.numbers = y;
        if (panel->x.notes) {
            y += LINE_HEIGHT - 2;
            where.notes = y;
        }
        y += *panel->x.label ? LINE_HEIGHT + 3 : 0;
        where.label = y;
    }
    layout->below = y + 4;
    return where;
}

double picture_height(const struct phema_picture *picture)
{
    struct layout layout = layout_begin(picture);
    for (const struct panel *panel = picture->panels; panel; panel = panel->next)
        (void)layout_next(&layout, panel);
    return ceil(layout.below + EDGE / 2);
}

bool layout_line(char line[FITTED_SIZE], const char **rest, double width)
{
    const char *text = *rest;
    size_t used = 0;
    if (!*text)
        return false;
    for (size_t i = 1; i < FITTED_SIZE; i++) { /* up to the last space that fits the width */
        bool is_end = !text[i - 1];
        if (!is_end && text[i] != ' ' && text[i])
            continue;
        memcpy(line, text, i);
        line[i] = '\0';
        if (text_width(line, SIZE_SMALL, false) > width)
            break;
        used = i;
        if (!text[i])
            break;
    }
    if (used == 0) { /* a single word that is too wide */
        (void)text_fit(line, text, SIZE_SMALL, false, width);
        *rest = text + strlen(text);
        return true;
    }
    memcpy(line, text, used);
    line[used] = '\0';
    *rest = text + used + strspn(text + used, " ");
    return true;
}

/* ---- The legend ---- */

struct legend legend_begin(const struct phema_picture *picture)
{
    return (struct legend){.picture = picture,
                           .panel = picture->panels,
                           .series = picture->panels ? picture->panels->series : NULL,
                           .x = EDGE,
                           .y = EDGE + SIZE_TITLE - 3 + LINE_HEIGHT + 8};
}

static bool is_repeated(const struct legend *legend)
{
    for (const struct panel *panel = legend->picture->panels; panel; panel = panel->next)
        for (const struct series *series = panel->series; series; series = series->next) {
            if (series == legend->series)
                return false;
            if (series->legend && strcmp(series->legend, legend->series->legend) == 0)
                return true;
        }
    return false;
}

static void step(struct legend *legend)
{
    legend->series = legend->series->next;
    while (!legend->series && legend->panel->next) {
        legend->panel = legend->panel->next;
        legend->series = legend->panel->series;
    }
}

bool legend_next(struct legend *legend, const struct series **series, struct point *at)
{
    while (legend->series && (!legend->series->legend || is_repeated(legend)))
        step(legend);
    if (!legend->series)
        return false;
    double width = LEGEND_SAMPLE + 6 + text_width(legend->series->legend, SIZE_LABEL, false);
    if (legend->x > EDGE && legend->x + width > legend->picture->width - EDGE) {
        legend->x = EDGE;
        legend->y += LINE_HEIGHT + 2;
    }
    *series = legend->series;
    *at = (struct point){legend->x, legend->y};
    legend->x += width + 18;
    step(legend);
    return true;
}

/* ---- Marks ---- */

double layout_mark_x(const struct panel *panel, const struct mark *mark,
                     const struct layout *layout)
{
    double x = layout->left + axis_share(&panel->x, mark->at) * (layout->right - layout->left);
    double half = text_width(mark->label, SIZE_SMALL, false) / 2;
    return fmin(fmax(x, layout->left + half), layout->right + EDGE - half);
}

/* The lowest row in which the label overlaps none of the earlier labels. */
size_t layout_mark_row(const struct panel *panel, const struct mark *mark,
                       const struct layout *layout)
{
    double edges[MARK_ROWS]; /* right end of the row's last label */
    for (size_t row = 0; row < MARK_ROWS; row++)
        edges[row] = -HUGE_VAL;
    for (const struct mark *other = panel->marks;; other = other->next) {
        if (!other->is_vertical || !other->label)
            continue;
        double x = layout_mark_x(panel, other, layout);
        double half = text_width(other->label, SIZE_SMALL, false) / 2 + 4;
        size_t row = 0;
        while (row + 1 < MARK_ROWS && x - half < edges[row])
            row++;
        edges[row] = x + half;
        if (other == mark)
            return row;
    }
}
