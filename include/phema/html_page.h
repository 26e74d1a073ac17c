/* html_page.h - a series and its averages as one page. */
#ifndef PHEMA_HTML_PAGE_H
#define PHEMA_HTML_PAGE_H

#include "phema/inspect.h"
#include "phema/plan.h"
#include "phema/plot.h"
#include "phema/render.h"
#include "phema/strbuf.h"

/* A picture as SVG, for a desk and for a phone. Empty texts: none. */
struct html_picture {
    struct phema_strbuf wide, narrow;
};

/* The contents of the page. */
struct html_report {
    const char *command, *command_tail;   /* of the page: the verb, and its words */
    struct phema_plan *plan;              /* of the targets; NULL: none */
    const struct phema_plan *errors_plan; /* of widths in ascending order; borrowed; NULL: none */
    const struct phema_sweep_facts *scores_facts; /* NULL: no scores */
    const struct phema_series *series;
    struct inspect_summary summary; /* of no tensor where no file is open */
    struct inspect_times times;
    const char *title;
    struct html_picture profiles, weights, errors, scores, memory;
    bool is_cut; /* pictures have the first targets only */
};

/* The same report gives the same bytes. */
void html_report_write(struct phema_strbuf *out, const struct html_report *report);
void html_report_clear(struct html_report *report);

#endif
