// SPDX-License-Identifier: Apache-2.0
/* svg.c - pictures as SVG 1.1, written as text. cairo would turn letters into shapes, which cannot
 * be searched or edited, and its bytes change with fonts and versions. The SVG has no ids, scripts
 * or references, so it can be embedded in an HTML file. In a dark browser it is dark. */

#include "layout.h"

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

/* The text with numbers in place of '@'. */
static void append(struct phema_strbuf *out, const char *text, const double *numbers)
{
    for (; *text; text++)
        if (*text == '@')
            append_number(out, *numbers++);
        else
            phema_strbuf_append(out, text, 1);
}

/* XML forbids control characters, even as references. */
static void append_escaped(struct phema_strbuf *out, const char *text)
{
    for (; *text; text++) {
        bool is_control = (unsigned char)*text < ' ' || *text == 0x7F;
        const char shown[] = {(char)(is_control ? '?' : *text), '\0'};
        phema_strbuf_puts_markup(out, shown, "<>&\"");
    }
}

static void append_points(struct phema_strbuf *out, const struct point *points, size_t n)
{
    for (size_t i = 0; i < n; i++)
        append(out, i ? " @,@" : " points=\"@,@", (double[]){points[i].x, points[i].y});
    phema_strbuf_puts(out, n ? "\"" : " points=\"\"");
}

static void svg_line(struct canvas *canvas, const struct point *points, size_t n,
                     const struct pen *pen)
{
    struct phema_strbuf *out = ((struct svg *)canvas)->out;
    phema_strbuf_puts(out, "<polyline");
    append_points(out, points, n);
    phema_strbuf_printf(out, " fill=\"none\" stroke=\"#%06X\"", (unsigned)pen->color);
    append(out, " stroke-width=\"@\"", &pen->width);
    if (pen->opacity < 1)
        append(out, " stroke-opacity=\"@\"", &pen->opacity);
    if (pen->dash > 0)
        append(out, " stroke-dasharray=\"@ @\"", (double[]){pen->dash, pen->gap});
    phema_strbuf_puts(out, "/>\n");
}

/* The last attributes of a filled shape. */
static void append_fill(struct phema_strbuf *out, uint32_t color, double opacity)
{
    phema_strbuf_printf(out, " fill=\"#%06X\"", (unsigned)color);
    if (opacity < 1)
        append(out, " fill-opacity=\"@\"", &opacity);
    phema_strbuf_puts(out, "/>\n");
}

static void svg_fill(struct canvas *canvas, struct box box, uint32_t color, double opacity)
{
    struct phema_strbuf *out = ((struct svg *)canvas)->out;
    append(out, "<rect x=\"@\" y=\"@\" width=\"@\" height=\"@\"",
           (double[]){box.x, box.y, box.width, box.height});
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
        append(out, "<circle cx=\"@\" cy=\"@\" r=\"@\"", (double[]){at.x, at.y, radius});
    }
    append_fill(out, pen->color, pen->opacity);
}

static void svg_text(struct canvas *canvas, struct point at, const struct type *type,
                     const char *text)
{
    static const char *const anchors[] = {
        [ANCHOR_MIDDLE] = "middle", [ANCHOR_END] = "end", [ANCHOR_START] = "start"};
    struct phema_strbuf *out = ((struct svg *)canvas)->out;
    append(out, "<text x=\"@\" y=\"@\" font-size=\"@\"", (double[]){at.x, at.y, type->size});
    phema_strbuf_printf(out, " fill=\"#%06X\"", (unsigned)type->color);
    if (type->anchor != ANCHOR_START)
        phema_strbuf_printf(out, " text-anchor=\"%s\"", anchors[type->anchor]);
    if (type->is_bold)
        phema_strbuf_puts(out, " font-weight=\"bold\"");
    if (type->is_upward)
        append(out, " transform=\"rotate(-90 @ @)\"", (double[]){at.x, at.y});
    phema_strbuf_puts(out, ">");
    append_escaped(out, text);
    phema_strbuf_puts(out, "</text>\n");
}

/* A nested svg element clips its contents; a clip path would need an id. */
static void svg_clip(struct canvas *canvas, struct box box)
{
    append(((struct svg *)canvas)->out,
           "<svg x=\"@\" y=\"@\" width=\"@\" height=\"@\" viewBox=\"@ @ @ @\">\n",
           (double[]){box.x, box.y, box.width, box.height, box.x, box.y, box.width, box.height});
}

static void svg_unclip(struct canvas *canvas)
{
    phema_strbuf_puts(((struct svg *)canvas)->out, "</svg>\n");
}

/* Colours of the same meaning on a dark page; the others are seen on both. */
static void write_style(struct phema_strbuf *out)
{
    static const struct {
        uint32_t light, dark;
    } colors[] = {{COLOR_PAGE, 0x1E2126},  {COLOR_TEXT, 0xE3E5E8}, {COLOR_BLACK, 0xE3E5E8},
                  {COLOR_FAINT, 0xA9AEB6}, {COLOR_GRID, 0x3A3F47}, {COLOR_BLUE, 0x3D9FDC}};
    phema_strbuf_puts(out, "<style>@media(prefers-color-scheme:dark){");
    for (size_t i = 0; i < ARRAY_LEN(colors); i++)
        phema_strbuf_printf(out, "[fill='#%06X']{fill:#%06x}[stroke='#%06X']{stroke:#%06x}",
                            (unsigned)colors[i].light, (unsigned)colors[i].dark,
                            (unsigned)colors[i].light, (unsigned)colors[i].dark);
    phema_strbuf_puts(out, "}</style>\n");
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
    write_style(out);
    picture_draw(picture, &svg.canvas);
    phema_strbuf_puts(out, "</svg>\n");
    return phema_strbuf_check(out, err);
}
