// SPDX-License-Identifier: Apache-2.0
/* draw.c - draws titles, axes, marks and the legend; curves.c draws the contents of the boxes. */
#include "curves.h"

static void draw_text(struct canvas *canvas, double x, double y, double size, uint32_t color,
                      enum anchor anchor, const char *text)
{
    canvas->text(canvas, (struct point){x, y}, &(struct type){size, color, false, anchor, false},
                 text);
}

static void draw_bold(struct canvas *canvas, double x, double y, double size, double width,
                      const char *text)
{
    char fitted[FITTED_SIZE];
    canvas->text(canvas, (struct point){x, y},
                 &(struct type){size, COLOR_TEXT, true, ANCHOR_START, false},
                 text_fit(fitted, text, size, true, width));
}

static void draw_segment(struct canvas *canvas, double x1, double y1, double x2, double y2,
                         const struct pen *pen)
{
    const struct point ends[] = {{x1, y1}, {x2, y2}};
    canvas->line(canvas, ends, ARRAY_LEN(ends), pen);
}

/* ---- Axes ---- */

static const struct pen grid = {.color = COLOR_GRID, .width = 1, .opacity = 1};
static const struct pen frame = {.color = 0x888888, .width = 1, .opacity = 1};

static void draw_y_axis(struct canvas *canvas, const struct panel *panel,
                        const struct panel_layout *where)
{
    const struct box *box = &where->box;
    struct ticks ticks = layout_ticks_y(panel);
    for (size_t i = 0; i < ticks.n; i++) {
        double y = box->y + box->height * (1 - axis_share(&panel->y, ticks.values[i]));
        char label[TICKS_LABEL_SIZE];
        ticks_label(label, &ticks, i, panel->y.has_suffixes);
        draw_segment(canvas, box->x, y, box->x + box->width, y,
                     ticks.values[i] == 0 && !panel->y.is_log ? &frame : &grid);
        draw_text(canvas, box->x - 6, y + 4, SIZE_SMALL, COLOR_TEXT, ANCHOR_END, label);
    }
    if (!panel->y.label)
        return;
    struct type type = {SIZE_LABEL, COLOR_TEXT, false, ANCHOR_MIDDLE, true};
    canvas->text(canvas, (struct point){EDGE + SIZE_LABEL - 4, box->y + box->height / 2}, &type,
                 panel->y.label);
}

static void draw_categories(struct canvas *canvas, const struct panel *panel,
                            const struct panel_layout *where)
{
    const struct axis *axis = &panel->x;
    double width = where->box.width / (double)axis->n_categories;
    for (size_t i = 0; i < axis->n_categories; i++) {
        char fitted[FITTED_SIZE];
        double x = where->box.x + width * ((double)i + 0.5);
        draw_text(canvas, x, where->numbers, SIZE_LABEL, COLOR_TEXT, ANCHOR_MIDDLE,
                  text_fit(fitted, axis->categories[i], SIZE_LABEL, false, width - 4));
        if (axis->notes)
            draw_text(canvas, x, where->notes, SIZE_SMALL, COLOR_FAINT, ANCHOR_MIDDLE,
                      text_fit(fitted, axis->notes[i], SIZE_SMALL, false, width - 4));
    }
}

static void draw_x_axis(struct canvas *canvas, const struct panel *panel,
                        const struct panel_layout *where)
{
    const struct box *box = &where->box;
    double bottom = box->y + box->height;
    if (panel->x.n_categories) {
        draw_categories(canvas, panel, where);
    } else {
        struct ticks ticks = layout_ticks_x(panel);
        for (size_t i = 0; i < ticks.n; i++) {
            double x = box->x + box->width * axis_share(&panel->x, ticks.values[i]);
            char label[TICKS_LABEL_SIZE];
            ticks_label(label, &ticks, i, panel->x.has_suffixes);
            draw_segment(canvas, x, bottom, x, bottom + 4, &frame);
            if (panel->x.label)
                draw_text(canvas, x, where->numbers, SIZE_SMALL, COLOR_TEXT, ANCHOR_MIDDLE, label);
        }
    }
    if (panel->x.label && *panel->x.label)
        draw_text(canvas, box->x + box->width / 2, where->label, SIZE_LABEL, COLOR_TEXT,
                  ANCHOR_MIDDLE, panel->x.label);
}

static void draw_frame(struct canvas *canvas, const struct box *box)
{
    const struct point corners[] = {{box->x, box->y},
                                    {box->x, box->y + box->height},
                                    {box->x + box->width, box->y + box->height}};
    canvas->line(canvas, corners, ARRAY_LEN(corners), &frame);
}

/* ---- Marks ---- */

static void draw_marks(struct canvas *canvas, const struct panel *panel,
                       const struct panel_layout *where, const struct layout *layout)
{
    const struct box *box = &where->box;
    for (const struct mark *mark = panel->marks; mark; mark = mark->next) {
        double share = axis_share(mark->is_vertical ? &panel->x : &panel->y, mark->at);
        if (!(share >= 0 && share <= 1))
            continue;
        if (mark->is_vertical) {
            double x = box->x + box->width * share;
            draw_segment(canvas, x, box->y, x, box->y + box->height, &mark->pen);
            if (!mark->label)
                continue;
            double row = (double)layout_mark_row(panel, mark, layout);
            draw_text(canvas, layout_mark_x(panel, mark, layout), where->marks - row * 12,
                      SIZE_SMALL, COLOR_FAINT, ANCHOR_MIDDLE, mark->label);
        } else {
            double y = box->y + box->height * (1 - share);
            draw_segment(canvas, box->x, y, box->x + box->width, y, &mark->pen);
            draw_text(canvas, box->x + box->width - 4, y - 4, SIZE_SMALL, mark->pen.color,
                      ANCHOR_END, mark->label);
        }
    }
}

/* ---- Panels and the picture ---- */

static void draw_panel(struct canvas *canvas, const struct panel *panel,
                       const struct panel_layout *where, const struct layout *layout)
{
    double width = layout->right - layout->left;
    if (panel->heading)
        draw_bold(canvas, layout->left, where->heading, SIZE_HEADING, width, panel->heading);
    const char *rest = panel->note;
    char line[FITTED_SIZE];
    for (int i = 0; rest && i < MAX_NOTE_LINES && layout_line(line, &rest, width); i++)
        draw_text(canvas, layout->left, where->note + i * LINE_HEIGHT, SIZE_SMALL, COLOR_FAINT,
                  ANCHOR_START, line);
    draw_y_axis(canvas, panel, where);
    draw_x_axis(canvas, panel, where);
    draw_marks(canvas, panel, where, layout);
    curves_draw(canvas, panel, &where->box);
    draw_frame(canvas, &where->box);
}

static void draw_legend(struct canvas *canvas, const struct phema_picture *picture)
{
    struct legend legend = legend_begin(picture);
    const struct series *series;
    struct point at;
    while (legend_next(&legend, &series, &at)) {
        curves_draw_sample(canvas, series, at);
        draw_text(canvas, at.x + LEGEND_SAMPLE + 6, at.y, SIZE_LABEL, COLOR_TEXT, ANCHOR_START,
                  series->legend);
    }
}

void picture_draw(const struct phema_picture *picture, struct canvas *canvas)
{
    struct layout layout = layout_begin(picture);
    canvas->fill(canvas, (struct box){0, 0, PICTURE_WIDTH, picture_height(picture)}, 0xFFFFFF, 1);
    draw_bold(canvas, EDGE, EDGE + SIZE_TITLE - 3, SIZE_TITLE, PICTURE_WIDTH - 2 * EDGE,
              picture->title);
    draw_legend(canvas, picture);
    for (const struct panel *panel = picture->panels; panel; panel = panel->next) {
        struct panel_layout where = layout_next(&layout, panel);
        draw_panel(canvas, panel, &where, &layout);
    }
}
