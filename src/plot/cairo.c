// SPDX-License-Identifier: Apache-2.0
/* cairo.c - pictures as PNG and PDF; the only file that uses cairo. cairo is loaded for the first
 * picture: with the libraries for X11 and fonts, loading it takes longer than loading everything
 * else that the program needs. */
#include <cairo-pdf.h>
#include <cairo.h>

#include "layout.h"
#include "phema/library.h"

#define PNG_SCALE 2.0  /* pixels per unit: letters stay sharp on dense screens and on paper */
#define PDF_SCALE 0.75 /* points per unit, as in browsers: 600 points are 21 cm */

/* The functions of cairo that are used here. */
#define FUNCTIONS(FUNCTION)                                                                        \
    FUNCTION(arc)                                                                                  \
    FUNCTION(clip)                                                                                 \
    FUNCTION(create)                                                                               \
    FUNCTION(destroy)                                                                              \
    FUNCTION(fill)                                                                                 \
    FUNCTION(font_options_create)                                                                  \
    FUNCTION(font_options_destroy)                                                                 \
    FUNCTION(font_options_set_antialias)                                                           \
    FUNCTION(font_options_set_hint_metrics)                                                        \
    FUNCTION(font_options_set_hint_style)                                                          \
    FUNCTION(image_surface_create)                                                                 \
    FUNCTION(line_to)                                                                              \
    FUNCTION(move_to)                                                                              \
    FUNCTION(new_path)                                                                             \
    FUNCTION(pdf_surface_create_for_stream)                                                        \
    FUNCTION(pdf_surface_set_metadata)                                                             \
    FUNCTION(rectangle)                                                                            \
    FUNCTION(restore)                                                                              \
    FUNCTION(rotate)                                                                               \
    FUNCTION(save)                                                                                 \
    FUNCTION(scale)                                                                                \
    FUNCTION(select_font_face)                                                                     \
    FUNCTION(set_dash)                                                                             \
    FUNCTION(set_font_options)                                                                     \
    FUNCTION(set_font_size)                                                                        \
    FUNCTION(set_line_width)                                                                       \
    FUNCTION(set_source_rgba)                                                                      \
    FUNCTION(show_text)                                                                            \
    FUNCTION(status)                                                                               \
    FUNCTION(status_to_string)                                                                     \
    FUNCTION(stroke)                                                                               \
    FUNCTION(surface_destroy)                                                                      \
    FUNCTION(surface_finish)                                                                       \
    FUNCTION(surface_status)                                                                       \
    FUNCTION(surface_write_to_png_stream)                                                          \
    FUNCTION(text_extents)                                                                         \
    FUNCTION(translate)

#define MEMBER(name) __typeof__(cairo_##name) *name; // NOLINT: a member cannot be in parentheses
static struct {
    FUNCTIONS(MEMBER)
} api;

#ifdef PHEMA_CAIRO_LINKED /* cairo is part of the program */

#define SET(name) api.name = cairo_##name;
static enum phema_status load(struct phema_error *err)
{
    (void)err;
    FUNCTIONS(SET)
    return PHEMA_OK;
}

#else

#define ROW(name) {"cairo_" #name, (void *)&api.name, false},
static enum phema_status load(struct phema_error *err)
{
    static const struct phema_library_function functions[] = {FUNCTIONS(ROW)};
    return phema_library_load_functions("libcairo.so.2", functions, ARRAY_LEN(functions), err);
}

#endif

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
    api.set_source_rgba(cairo, (color >> 16 & 0xFF) / 255.0, (color >> 8 & 0xFF) / 255.0,
                        (color & 0xFF) / 255.0, opacity);
}

static void add_path(cairo_t *cairo, const struct point *points, size_t n)
{
    api.new_path(cairo); /* drawing text leaves a current point */
    for (size_t i = 0; i < n; i++)
        api.line_to(cairo, points[i].x, points[i].y);
}

static void draw_line(struct canvas *canvas, const struct point *points, size_t n,
                      const struct pen *pen)
{
    cairo_t *cairo = of(canvas);
    double dashes[] = {pen->dash, pen->gap};
    set_color(cairo, pen->color, pen->opacity);
    api.set_line_width(cairo, pen->width);
    api.set_dash(cairo, dashes, pen->dash > 0 ? 2 : 0, 0);
    add_path(cairo, points, n);
    api.stroke(cairo);
}

static void draw_fill(struct canvas *canvas, struct box box, uint32_t color, double opacity)
{
    set_color(of(canvas), color, opacity);
    api.rectangle(of(canvas), box.x, box.y, box.width, box.height);
    api.fill(of(canvas));
}

static void draw_mark(struct canvas *canvas, enum marker marker, struct point at, double radius,
                      const struct pen *pen)
{
    struct point corners[MARKER_MAX_CORNERS];
    size_t n = marker_corners(corners, marker, at, radius);
    set_color(of(canvas), pen->color, pen->opacity);
    if (n) {
        add_path(of(canvas), corners, n);
    } else {
        api.new_path(of(canvas));
        api.arc(of(canvas), at.x, at.y, radius, 0, 6.283185307179586);
    }
    api.fill(of(canvas));
}

static void draw_text(struct canvas *canvas, struct point at, const struct type *type,
                      const char *text)
{
    cairo_t *cairo = of(canvas);
    api.save(cairo);
    api.select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         type->is_bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    api.set_font_size(cairo, type->size);
    set_color(cairo, type->color, 1);
    api.translate(cairo, at.x, at.y);
    if (type->is_upward)
        api.rotate(cairo, -1.5707963267948966);
    cairo_text_extents_t extents;
    api.text_extents(cairo, text, &extents);
    double shift = type->anchor == ANCHOR_START    ? 0
                   : type->anchor == ANCHOR_MIDDLE ? extents.x_advance / 2
                                                   : extents.x_advance;
    api.move_to(cairo, -shift, 0);
    api.show_text(cairo, text);
    api.restore(cairo);
}

static void clip(struct canvas *canvas, struct box box)
{
    api.save(of(canvas));
    api.rectangle(of(canvas), box.x, box.y, box.width, box.height);
    api.clip(of(canvas));
}

static void unclip(struct canvas *canvas)
{
    api.restore(of(canvas));
}

static cairo_status_t append(void *context, const unsigned char *data, unsigned int size)
{
    struct phema_strbuf *out = context;
    phema_strbuf_append(out, (const char *)data, size);
    return out->is_failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

static cairo_status_t draw(cairo_surface_t *surface, const struct phema_picture *picture,
                           double scale)
{
    struct drawing drawing = {
        .canvas = {draw_line, draw_fill, draw_mark, draw_text, clip, unclip},
        .cairo = api.create(surface),
    };
    /* unhinted glyph positions, so that widths are the same at every scale */
    cairo_font_options_t *options = api.font_options_create();
    api.font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    api.font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    api.font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    api.set_font_options(drawing.cairo, options);
    api.font_options_destroy(options);
    api.scale(drawing.cairo, scale, scale);
    picture_draw(picture, &drawing.canvas);
    cairo_status_t status = api.status(drawing.cairo);
    api.destroy(drawing.cairo);
    return status ? status : api.surface_status(surface);
}

static enum phema_status check(cairo_status_t status, struct phema_error *err)
{
    if (!status)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_RESOURCE, "cairo cannot draw it: %s",
                      api.status_to_string(status));
}

PHEMA_FALLIBLE cairo_write_png(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err)
{
    enum phema_status loaded = load(err);
    if (loaded)
        return loaded;
    cairo_surface_t *surface =
        api.image_surface_create(CAIRO_FORMAT_RGB24, (int)(picture->width * PNG_SCALE),
                                 (int)(picture_height(picture) * PNG_SCALE));
    cairo_status_t status = draw(surface, picture, PNG_SCALE);
    if (!status)
        status = api.surface_write_to_png_stream(surface, append, out);
    api.surface_destroy(surface);
    return check(status, err);
}

PHEMA_FALLIBLE cairo_write_pdf(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err)
{
    enum phema_status loaded = load(err);
    if (loaded)
        return loaded;
    cairo_surface_t *surface = api.pdf_surface_create_for_stream(
        append, out, picture->width * PDF_SCALE, picture_height(picture) * PDF_SCALE);
    api.pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, picture->title);
    /* no date, so that equal pictures have equal bytes */
    api.pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "");
    cairo_status_t status = draw(surface, picture, PDF_SCALE);
    api.surface_finish(surface);
    if (!status)
        status = api.surface_status(surface);
    api.surface_destroy(surface);
    return check(status, err);
}
