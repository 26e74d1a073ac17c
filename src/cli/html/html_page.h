/* html_page.h - a series and its averages as one page. */
#ifndef CLI_HTML_HTML_PAGE_H
#define CLI_HTML_HTML_PAGE_H

#include "inspect/inspect.h"
#include "phema/plan.h"
#include "phema/plot.h"
#include "phema/strbuf.h"
#include "series_options.h"

/* What the page is made of. Pictures are SVG, an empty text: none of that kind. */
struct html_report {
    const struct cli_common *common;
    const struct phema_plan *plan; /* of the targets; NULL: none */
    const struct phema_series *series;
    const struct inspect_summary *summary; /* NULL: no file is open */
    const struct inspect_times *times;
    const char *title;
    struct phema_strbuf profiles, weights, errors, scores, memory;
    bool is_cut; /* pictures have the first targets only */
};

/* The same bytes for the same report. */
void html_report_write(struct phema_strbuf *out, const struct html_report *report);
void html_report_clear(struct html_report *report); /* the pictures */

/* html_targets.c: the sections of the targets, of the snapshots with their weights, and of what
 * they were made with */
void html_write_targets(struct phema_strbuf *out, const struct html_report *report);
void html_write_snapshots(struct phema_strbuf *out, const struct html_report *report);

#endif
