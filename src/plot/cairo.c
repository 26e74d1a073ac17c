// SPDX-License-Identifier: Apache-2.0
/* cairo.c - pictures as PNG and PDF. The one user of cairo. */
#include <cairo-pdf.h>
#include <cairo.h>

#include "canvas.h"
#include "figure.h"

#define PNG_SCALE 2.0  /* pixels a unit: letters stay clear on dense screens, and on paper */
#define PDF_SCALE 0.75 /* points a unit, as browsers have it: 600 points are 21 cm */

struct drawing {
    struct canvas canvas;
    cairo_t *cairo;
};

static cairo_t *of(struct canvas *canvas)
{
    return ((struct drawing *)canvas)->cairo;
}

static void set_color(cairo_t *cairo, uint32_t color, double opacity)
{
    cairo_set_source_rgba(cairo, (color >> 16 & 0xFF) / 255.0, (color >> 8 & 0xFF) / 255.0,
                          (color & 0xFF) / 255.0, opacity);
}

static void add_path(cairo_t *cairo, const struct point *points, size_t n)
{
    cairo_new_path(cairo); /* a text leaves a point behind */
    for (size_t i = 0; i < n; i++)
        cairo_line_to(cairo, points[i].x, points[i].y);
}

static void draw_line(struct canvas *canvas, const struct point *points, size_t n,
                      const struct pen *pen)
{
    cairo_t *cairo = of(canvas);
    double dashes[] = {pen->dash, pen->gap};
    set_color(cairo, pen->color, pen->opacity);
    cairo_set_line_width(cairo, pen->width);
    cairo_set_dash(cairo, dashes, pen->dash > 0 ? 2 : 0, 0);
    add_path(cairo, points, n);
    cairo_stroke(cairo);
}

static void draw_fill(struct canvas *canvas, struct box box, uint32_t color, double opacity)
{
    set_color(of(canvas), color, opacity);
    cairo_rectangle(of(canvas), box.x, box.y, box.width, box.height);
    cairo_fill(of(canvas));
}

static void draw_mark(struct canvas *canvas, enum marker marker, struct point at, double radius,
                      const struct pen *pen)
{
    struct point corners[MARKER_MOST_CORNERS];
    size_t n = marker_corners(corners, marker, at, radius);
    set_color(of(canvas), pen->color, pen->opacity);
    if (n) {
        add_path(of(canvas), corners, n);
    } else {
        cairo_new_path(of(canvas));
        cairo_arc(of(canvas), at.x, at.y, radius, 0, 6.283185307179586);
    }
    cairo_fill(of(canvas));
}

static void draw_text(struct canvas *canvas, struct point at, const struct type *type,
                      const char *text)
{
    cairo_t *cairo = of(canvas);
    cairo_save(cairo);
    cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           type->is_bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo, type->size);
    set_color(cairo, type->color, 1);
    cairo_translate(cairo, at.x, at.y);
    if (type->is_upward)
        cairo_rotate(cairo, -1.5707963267948966);
    cairo_text_extents_t extents;
    cairo_text_extents(cairo, text, &extents);
    double shift = type->anchor == ANCHOR_START    ? 0
                   : type->anchor == ANCHOR_MIDDLE ? extents.x_advance / 2
                                                   : extents.x_advance;
    cairo_move_to(cairo, -shift, 0);
    cairo_show_text(cairo, text);
    cairo_restore(cairo);
}

static void clip(struct canvas *canvas, struct box box)
{
    cairo_save(of(canvas));
    cairo_rectangle(of(canvas), box.x, box.y, box.width, box.height);
    cairo_clip(of(canvas));
}

static void unclip(struct canvas *canvas)
{
    cairo_restore(of(canvas));
}

static cairo_status_t append(void *context, const unsigned char *data, unsigned int size)
{
    struct phema_text *out = context;
    phema_text_append(out, (const char *)data, size);
    return out->is_failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

static cairo_status_t draw(cairo_surface_t *surface, const struct phema_picture *picture,
                           double scale)
{
    struct drawing drawing = {
        .canvas = {draw_line, draw_fill, draw_mark, draw_text, clip, unclip},
        .cairo = cairo_create(surface),
    };
    /* glyphs at their places, not at whole pixels: widths are then the same at every scale */
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_set_font_options(drawing.cairo, options);
    cairo_font_options_destroy(options);
    cairo_scale(drawing.cairo, scale, scale);
    picture_draw(picture, &drawing.canvas);
    cairo_status_t status = cairo_status(drawing.cairo);
    cairo_destroy(drawing.cairo);
    return status ? status : cairo_surface_status(surface);
}

static enum phema_status check(cairo_status_t status, struct phema_error *err)
{
    if (!status)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_RESOURCE, "cairo cannot draw it: %s",
                      cairo_status_to_string(status));
}

PHEMA_FALLIBLE cairo_write_png(struct phema_text *out, const struct phema_picture *picture,
                               struct phema_error *err)
{
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(PICTURE_WIDTH * PNG_SCALE),
                                   (int)(picture_height(picture) * PNG_SCALE));
    cairo_status_t status = draw(surface, picture, PNG_SCALE);
    if (!status)
        status = cairo_surface_write_to_png_stream(surface, append, out);
    cairo_surface_destroy(surface);
    return check(status, err);
}

PHEMA_FALLIBLE cairo_write_pdf(struct phema_text *out, const struct phema_picture *picture,
                               struct phema_error *err)
{
    cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(
        append, out, PICTURE_WIDTH * PDF_SCALE, picture_height(picture) * PDF_SCALE);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, picture->title);
    /* no date: the same picture, the same bytes */
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "");
    cairo_status_t status = draw(surface, picture, PDF_SCALE);
    cairo_surface_finish(surface);
    if (!status)
        status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return check(status, err);
}
