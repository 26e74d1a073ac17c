/* html_page.h - a series and its averages as one page. */
#ifndef CLI_HTML_HTML_PAGE_H
#define CLI_HTML_HTML_PAGE_H

#include "inspect/inspect.h"
#include "messages.h"
#include "phema/plan.h"
#include "phema/plot.h"
#include "phema/strbuf.h"

/* The contents of the page. Pictures are SVG; an empty text means no picture. */
struct html_report {
    const struct cli_common *common;
    struct phema_plan *plan; /* of the targets; NULL: none */
    const struct phema_series *series;
    struct inspect_summary summary; /* of no tensor where no file is open */
    struct inspect_times times;
    const char *title;
    struct phema_strbuf profiles, weights, errors, scores, memory;
    bool is_cut; /* pictures have the first targets only */
};

/* The same report gives the same bytes. */
void html_report_write(struct phema_strbuf *out, const struct html_report *report);
void html_report_clear(struct html_report *report);

#endif
