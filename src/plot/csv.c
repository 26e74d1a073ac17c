// SPDX-License-Identifier: Apache-2.0
/* csv.c - what a picture draws, as numbers. */
#include <string.h>

#include "figure.h"

static void put_field(struct phema_strbuf *out, const char *text)
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

/* What is no number has none. */
static void put_number(struct phema_strbuf *out, double value)
{
    struct phema_name_buffer shown;
    if (isfinite(value))
        phema_strbuf_puts(out, phema_number_format(&shown, value));
}

static void put_series(struct phema_strbuf *out, const struct panel *panel,
                       const struct series *series)
{
    for (size_t i = 0; i < series->n; i++) {
        put_field(out, panel->name);
        phema_strbuf_puts(out, ",");
        put_field(out, series->name);
        phema_strbuf_puts(out, ",");
        if (panel->x.n_categories)
            put_field(out, panel->x.categories[(size_t)series->x[i]]);
        else
            put_number(out, series->x[i]);
        phema_strbuf_puts(out, ",");
        put_number(out, series->y[i]);
        phema_strbuf_puts(out, "\n");
    }
}

void csv_write(struct phema_strbuf *out, const struct phema_picture *picture)
{
    phema_strbuf_puts(out, "panel,series,x,y\n");
    for (const struct panel *panel = picture->panels; panel; panel = panel->next)
        for (const struct series *series = panel->series; series; series = series->next)
            if (series->name)
                put_series(out, panel, series);
}
