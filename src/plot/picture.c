// SPDX-License-Identifier: Apache-2.0
/* picture.c - pictures as files. */
#include "figure.h"

static const struct {
    const char *end;
    enum phema_picture_format format;
} known[] = {{".svg", PHEMA_PICTURE_SVG},
             {".png", PHEMA_PICTURE_PNG},
             {".pdf", PHEMA_PICTURE_PDF},
             {".csv", PHEMA_PICTURE_CSV}};

PHEMA_FALLIBLE phema_picture_format(enum phema_picture_format *out, const char *path,
                                    struct phema_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (phema_ends_with(path, known[i].end)) {
            *out = known[i].format;
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
    enum phema_status status = PHEMA_OK;
    switch (format) {
    case PHEMA_PICTURE_SVG:
        return svg_write(out, picture, err);
    case PHEMA_PICTURE_PNG:
        status = cairo_write_png(out, picture, err);
        break;
    case PHEMA_PICTURE_PDF:
        status = cairo_write_pdf(out, picture, err);
        break;
    case PHEMA_PICTURE_CSV:
        csv_write(out, picture);
        break;
    }
    return status ? status : phema_strbuf_check(out, err);
}
