// SPDX-License-Identifier: Apache-2.0
/* svg.c - pictures as SVG 1.1, written as text. cairo would turn letters into shapes, which cannot
 * be searched or edited, and its bytes change with fonts and versions. The SVG has no ids, scripts
 * or references, so it can be embedded in an HTML file. */
#include <string.h>

#include "figure.h"

struct svg {
    struct canvas canvas;
    struct phema_strbuf *out;
};

/* Up to two decimals, without trailing zeros. */
static void append_number(struct phema_strbuf *out, double value)
{
    double hundredths = floor(value * 100 + 0.5);
    long long whole = (long long)fmax(-1e9, fmin(1e9, hundredths));
    unsigned long long size = (unsigned long long)(whole < 0 ? -whole : whole);
    phema_strbuf_printf(out, "%s%llu", whole < 0 ? "-" : "", size / 100);
    if (size % 100)
        phema_strbuf_printf(out, size % 10 ? ".%02llu" : ".%llu",
                            size % 10 ? size % 100 : size % 100 / 10);
}

static void append_pair(struct phema_strbuf *out, double first, const char *between, double second)
{
    append_number(out, first);
    phema_strbuf_puts(out, between);
    append_number(out, second);
}

static void append_attribute(struct phema_strbuf *out, const char *name, double value)
{
    phema_strbuf_printf(out, " %s=\"", name);
    append_number(out, value);
    phema_strbuf_puts(out, "\"");
}

/* XML forbids control characters, even as references. */
static void append_escaped(struct phema_strbuf *out, const char *text)
{
    static const char special[] = "<>&\"";
    static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    for (; *text; text++) {
        const char *found = strchr(special, *text);
        bool is_control = (unsigned char)*text < ' ' || *text == 0x7F;
        if (found)
            phema_strbuf_puts(out, names[found - special]);
        else
            phema_strbuf_append(out, is_control ? "?" : text, 1);
    }
}

static void append_points(struct phema_strbuf *out, const struct point *points, size_t n)
{
    phema_strbuf_puts(out, " points=\"");
    for (size_t i = 0; i < n; i++) {
        if (i)
            phema_strbuf_puts(out, " ");
        append_pair(out, points[i].x, ",", points[i].y);
    }
    phema_strbuf_puts(out, "\"");
}

static void svg_line(struct canvas *canvas, const struct point *points, size_t n,
                     const struct pen *pen)
{
    struct phema_strbuf *out = ((struct svg *)canvas)->out;
    phema_strbuf_puts(out, "<polyline");
    append_points(out, points, n);
    phema_strbuf_printf(out, " fill=\"none\" stroke=\"#%06X\"", (unsigned)pen->color);
    append_attribute(out, "stroke-width", pen->width);
    if (pen->opacity < 1)
        append_attribute(out, "stroke-opacity", pen->opacity);
    if (pen->dash > 0) {
        phema_strbuf_puts(out, " stroke-dasharray=\"");
        append_pair(out, pen->dash, " ", pen->gap);
        phema_strbuf_puts(out, "\"");
    }
    phema_strbuf_puts(out, "/>\n");
}

static void append_box(struct phema_strbuf *out, struct box box)
{
    append_attribute(out, "x", box.x);
    append_attribute(out, "y", box.y);
    append_attribute(out, "width", box.width);
    append_attribute(out, "height", box.height);
}

/* The last attributes of a filled shape. */
static void append_fill(struct phema_strbuf *out, uint32_t color, double opacity)
{
    phema_strbuf_printf(out, " fill=\"#%06X\"", (unsigned)color);
    if (opacity < 1)
        append_attribute(out, "fill-opacity", opacity);
    phema_strbuf_puts(out, "/>\n");
}

static void svg_fill(struct canvas *canvas, struct box box, uint32_t color, double opacity)
{
    struct phema_strbuf *out = ((struct svg *)canvas)->out;
    phema_strbuf_puts(out, "<rect");
    append_box(out, box);
    append_fill(out, color, opacity);
}

static void svg_mark(struct canvas *canvas, enum marker marker, struct point at, double radius,
                     const struct pen *pen)
{
    struct phema_strbuf *out = ((struct svg *)canvas)->out;
    struct point corners[MARKER_MAX_CORNERS];
    size_t n = marker_corners(corners, marker, at, radius);
    if (n) {
        phema_strbuf_puts(out, "<polygon");
        append_points(out, corners, n);
    } else {
        phema_strbuf_puts(out, "<circle");
        append_attribute(out, "cx", at.x);
        append_attribute(out, "cy", at.y);
        append_attribute(out, "r", radius);
    }
    append_fill(out, pen->color, pen->opacity);
}

static void svg_text(struct canvas *canvas, struct point at, const struct type *type,
                     const char *text)
{
    static const char *const anchors[] = {
        [ANCHOR_MIDDLE] = "middle", [ANCHOR_END] = "end", [ANCHOR_START] = "start"};
    struct phema_strbuf *out = ((struct svg *)canvas)->out;
    phema_strbuf_puts(out, "<text");
    append_attribute(out, "x", at.x);
    append_attribute(out, "y", at.y);
    append_attribute(out, "font-size", type->size);
    phema_strbuf_printf(out, " fill=\"#%06X\"", (unsigned)type->color);
    if (type->anchor != ANCHOR_START)
        phema_strbuf_printf(out, " text-anchor=\"%s\"", anchors[type->anchor]);
    if (type->is_bold)
        phema_strbuf_puts(out, " font-weight=\"bold\"");
    if (type->is_upward) {
        phema_strbuf_puts(out, " transform=\"rotate(-90 ");
        append_pair(out, at.x, " ", at.y);
        phema_strbuf_puts(out, ")\"");
    }
    phema_strbuf_puts(out, ">");
    append_escaped(out, text);
    phema_strbuf_puts(out, "</text>\n");
}

/* A nested svg element clips its contents; a clip path would need an id. */
static void svg_clip(struct canvas *canvas, struct box box)
{
    struct phema_strbuf *out = ((struct svg *)canvas)->out;
    phema_strbuf_puts(out, "<svg");
    append_box(out, box);
    phema_strbuf_puts(out, " viewBox=\"");
    append_pair(out, box.x, " ", box.y);
    phema_strbuf_puts(out, " ");
    append_pair(out, box.width, " ", box.height);
    phema_strbuf_puts(out, "\">\n");
}

static void svg_unclip(struct canvas *canvas)
{
    phema_strbuf_puts(((struct svg *)canvas)->out, "</svg>\n");
}

PHEMA_FALLIBLE svg_write(struct phema_strbuf *out, const struct phema_picture *picture,
                         struct phema_error *err)
{
    struct svg svg = {
        .canvas = {svg_line, svg_fill, svg_mark, svg_text, svg_clip, svg_unclip},
        .out = out,
    };
    int width = (int)picture->width, height = (int)picture_height(picture);
    phema_strbuf_printf(out,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                        "viewBox=\"0 0 %d %d\" role=\"img\" font-family=\"'DejaVu Sans', Verdana, "
                        "Helvetica, Arial, sans-serif\">\n<title>",
                        width, height, width, height);
    append_escaped(out, picture->title);
    phema_strbuf_puts(out, "</title>\n");
    picture_draw(picture, &svg.canvas);
    phema_strbuf_puts(out, "</svg>\n");
    return phema_strbuf_check(out, err);
}
