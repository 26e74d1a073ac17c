/* html_findings.h - the first sentence of the page. */
#ifndef CLI_HTML_HTML_FINDINGS_H
#define CLI_HTML_HTML_FINDINGS_H

#include "phema/html_page.h"

/* A paragraph: which widths come out well, which one scored best, or that the series is wrong; then
 * what the checks of the series say. Nothing where neither errors nor scores are known. */
void html_findings(struct phema_strbuf *out, const struct html_report *report);

#endif
