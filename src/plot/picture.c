// SPDX-License-Identifier: Apache-2.0
/* picture.c - writes pictures as SVG, PNG, PDF or CSV. */
#include <string.h>

#include "figure.h"

/* ---- CSV ---- */

static void append_csv_field(struct phema_strbuf *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        phema_strbuf_puts(out, text);
        return;
    }
    phema_strbuf_puts(out, "\"");
    for (; *text; text++)
        phema_strbuf_append(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    phema_strbuf_puts(out, "\"");
}

/* NaN and infinities become empty fields. */
static void append_csv_number(struct phema_strbuf *out, double value)
{
    struct phema_name_buffer shown;
    if (isfinite(value))
        phema_strbuf_puts(out, phema_number_format(&shown, value));
}

static void append_csv_series(struct phema_strbuf *out, const struct panel *panel,
                              const struct series *series)
{
    for (size_t i = 0; i < series->n; i++) {
        append_csv_field(out, panel->name);
        phema_strbuf_puts(out, ",");
        append_csv_field(out, series->name);
        phema_strbuf_puts(out, ",");
        if (panel->x.n_categories)
            append_csv_field(out, panel->x.categories[(size_t)series->x[i]]);
        else
            append_csv_number(out, series->x[i]);
        phema_strbuf_puts(out, ",");
        append_csv_number(out, series->y[i]);
        phema_strbuf_puts(out, "\n");
    }
}

static enum phema_status write_csv(struct phema_strbuf *out, const struct phema_picture *picture,
                                   struct phema_error *err)
{
    phema_strbuf_puts(out, "panel,series,x,y\n");
    for (const struct panel *panel = picture->panels; panel; panel = panel->next)
        for (const struct series *series = panel->series; series; series = series->next)
            if (series->name)
                append_csv_series(out, panel, series);
    return phema_strbuf_check(out, err);
}

/* ---- All formats ---- */

static const struct {
    const char *extension;
    enum phema_status (*write)(struct phema_strbuf *out, const struct phema_picture *picture,
                               struct phema_error *err);
} formats[] = {
    [PHEMA_PICTURE_SVG] = {".svg", svg_write},
    [PHEMA_PICTURE_PNG] = {".png", cairo_write_png},
    [PHEMA_PICTURE_PDF] = {".pdf", cairo_write_pdf},
    [PHEMA_PICTURE_CSV] = {".csv", write_csv},
};

PHEMA_FALLIBLE phema_picture_format(enum phema_picture_format *out, const char *path,
                                    struct phema_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (phema_ends_with(path, formats[i].extension)) {
            *out = (enum phema_picture_format)i;
            return PHEMA_OK;
        }
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "'%s' does not say what to draw; expected a name that ends in .svg, .png, "
                      ".pdf or .csv",
                      path);
}

PHEMA_FALLIBLE phema_picture_write(struct phema_strbuf *out, const struct phema_picture *picture,
                                   enum phema_picture_format format, struct phema_error *err)
{
    enum phema_status status = formats[format].write(out, picture, err);
    return status ? status : phema_strbuf_check(out, err);
}
