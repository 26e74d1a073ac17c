// SPDX-License-Identifier: Apache-2.0
/* html_writer.c - escaping, tables and the style sheet of HTML pages. */
#include "html_writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* One column on a phone, where wide columns and pictures give way to narrow ones. In the dark
 * scheme the inks of pictures are replaced where they would not show: their colours are attributes,
 * which any rule overrides. What is still too wide scrolls in its own box. */
static const char style[] =
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--line:#e2e5ea;--text:#222;"
    "--dim:#595959;--link:#0072b2;--warn:#fff4ec}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 'DejaVu Sans',Verdana,"
    "Helvetica,Arial,sans-serif}\n"
    "main{max-width:900px;margin:0 auto;padding:24px 16px 48px}\n"
    "h1{font-size:26px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}\n"
    "h2{font-size:19px;margin:0 0 12px}\n"
    "p{margin:0 0 12px}\n"
    ".lead{color:var(--dim)}\n"
    ".found{font-size:18px;margin:0 0 4px;overflow-wrap:anywhere}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:18px "
    "20px;margin:18px 0}\n"
    ".scroll{overflow-x:auto;margin:0 0 12px}\n"
    ".picture{margin:0 0 12px}\n"
    ".picture svg{display:block;width:100%;height:auto}\n"
    ".narrow{display:none}\n"
    "table{border-collapse:collapse;font-size:14px;min-width:50%}\n"
    "th,td{padding:4px 14px 4px 0;text-align:left;vertical-align:baseline;border-bottom:1px solid "
    "var(--line);white-space:nowrap;unicode-bidi:isolate}\n"
    "th{color:var(--dim);font-weight:600;border-bottom:2px solid var(--line)}\n"
    ".n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "td:last-child,th:last-child{padding-right:0}\n"
    "ul{margin:0 0 12px;padding-left:20px}\n"
    "li,.warning{overflow-wrap:anywhere}\n"
    ".warning{border-left:4px solid #d55e00;background:var(--warn);padding:8px 12px;margin:0 0 "
    "12px}\n"
    "details{margin:0 0 12px}\n"
    "summary{cursor:pointer;color:var(--link);padding:4px 0}\n"
    "pre{font:13px/1.5 'DejaVu Sans Mono',Menlo,Consolas,monospace;background:var(--page);"
    "border:1px solid var(--line);border-radius:6px;padding:10px 12px;margin:0 0 12px;"
    "white-space:pre-wrap;overflow-wrap:anywhere}\n"
    "section>:last-child{margin-bottom:0}\n"
    "@media(max-width:600px){section{padding:14px 12px;margin:12px 0}main{padding:16px 8px "
    "32px}h1{font-size:21px}.w,.wide{display:none}.narrow{display:block}td{white-space:normal;"
    "overflow-wrap:anywhere}td.n{white-space:nowrap;overflow-wrap:normal}table{font-size:13px;"
    "min-width:100%}th,td{padding-right:10px}th{white-space:normal}}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#14161a;--card:#1e2126;--line:#3a3f47;"
    "--text:#e3e5e8;--dim:#a9aeb6;--link:#6db8e8;--warn:#33241a}}\n"
    "@media print{body{background:#fff}section{break-inside:avoid}}\n";

void html_text(struct phema_strbuf *out, const char *text)
{
    struct phema_strbuf shown = {0};
    phema_strbuf_puts_escaped(&shown, text);
    if (shown.data && !shown.is_failed)
        phema_strbuf_puts_markup(out, shown.data, "<>&\"'");
    phema_strbuf_clear_part(&shown, out);
}

void html_printf(struct phema_strbuf *out, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        out->is_failed = true;
        text = NULL;
    }
    va_end(args);
    if (text)
        html_text(out, text);
    free(text);
}

void html_begin(struct phema_strbuf *out, const char *title)
{
    phema_strbuf_puts(out,
                      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                      "style-src 'unsafe-inline'\"/>\n<title>");
    html_text(out, title);
    phema_strbuf_puts(out, "</title>\n<style>\n");
    phema_strbuf_puts(out, style);
    phema_strbuf_puts(out, "</style>\n</head>\n<body>\n<main>\n");
}

void html_end(struct phema_strbuf *out)
{
    phema_strbuf_puts(out, "</main>\n</body>\n</html>\n");
}

void html_section(struct phema_strbuf *out, const char *id, const char *title)
{
    phema_strbuf_printf(out, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

void html_warning(struct phema_strbuf *out, const char *text)
{
    phema_strbuf_puts(out, "<p class=\"warning\">");
    html_text(out, text);
    phema_strbuf_puts(out, "</p>\n");
}

static void write_cells(struct phema_strbuf *out, const char *tag, const char *const *columns,
                        const char *const *cells)
{
    phema_strbuf_puts(out, "<tr>");
    static const char *const classes[] = {"", " class=\"n\"", " class=\"w\"", " class=\"n w\""};
    for (size_t i = 0; columns[i]; i++) {
        bool is_wide = columns[i][0] == '~';
        bool is_number = columns[i][is_wide] == '>';
        phema_strbuf_printf(out, "<%s%s>", tag, classes[is_number + 2 * is_wide]);
        html_text(out, cells ? cells[i] : columns[i] + is_wide + is_number);
        phema_strbuf_printf(out, "</%s>", tag);
    }
    phema_strbuf_puts(out, "</tr>\n");
}

void html_table(struct phema_strbuf *out, const char *const *columns)
{
    phema_strbuf_puts(out, "<div class=\"scroll\"><table>\n<thead>");
    write_cells(out, "th", columns, NULL);
    phema_strbuf_puts(out, "</thead>\n<tbody>\n");
}

void html_row(struct phema_strbuf *out, const char *const *columns, const char *const *cells)
{
    write_cells(out, "td", columns, cells);
}

void html_table_end(struct phema_strbuf *out)
{
    phema_strbuf_puts(out, "</tbody>\n</table></div>\n");
}
