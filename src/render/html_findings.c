// SPDX-License-Identifier: Apache-2.0
/* html_findings.c - what the page has found, as one sentence. */
#include "html_findings.h"

#include "html_writer.h"
#include "phema/report.h"

/* Averages with a smaller expected error, relative to the norm of the parameters, are good enough
 * for most uses. */
#define GOOD_ERROR 1e-3

static double error_of(const struct phema_plan *plan, size_t j)
{
    return plan->targets[j].solution.predicted.total;
}

/* The width of the least error; SIZE_MAX: none is known. */
static size_t find_least(const struct phema_plan *plan)
{
    size_t least = SIZE_MAX;
    for (size_t j = 0; j < plan->m; j++)
        if (!isnan(error_of(plan, j)) &&
            (least == SIZE_MAX || error_of(plan, j) < error_of(plan, least)))
            least = j;
    return least;
}

/* "Averages of sigma_rel 0.04 to 0.25 have ...": the widths around the least error. */
static void write_widths(struct phema_strbuf *out, const struct phema_plan *plan)
{
    size_t least = find_least(plan);
    if (least == SIZE_MAX)
        return;
    if (error_of(plan, least) > GOOD_ERROR) {
        html_printf(out, "Expect large errors: the least is %.1e, at sigma_rel %.3g.",
                    error_of(plan, least), plan->targets[least].sigma_rel);
        return;
    }
    size_t first = least, last = least;
    while (first > 0 && error_of(plan, first - 1) <= GOOD_ERROR)
        first--;
    while (last + 1 < plan->m && error_of(plan, last + 1) <= GOOD_ERROR)
        last++;
    html_printf(out, "Averages of sigma_rel %.3g to %.3g have an expected error below 0.1 %%.",
                plan->targets[first].sigma_rel, plan->targets[last].sigma_rel);
}

void html_findings(struct phema_strbuf *out, const struct html_report *report)
{
    const struct phema_plan *plan = report->errors_plan ? report->errors_plan : report->plan;
    const struct phema_sweep_facts *scores = report->scores_facts;
    bool is_wrong = plan && plan->checks.verdict == PHEMA_SERIES_WRONG;
    if (!scores && !is_wrong && !report->errors_plan)
        return;
    phema_strbuf_puts(out, "<p class=\"found\">");
    if (scores)
        html_printf(out, "The best score, %.6g, is that of sigma_rel %.4g. ", scores->best_score,
                    scores->best_sigma_rel);
    if (is_wrong)
        html_printf(out, "The snapshots do not fit their labels, so errors are unknown.");
    else if (report->errors_plan)
        write_widths(out, report->errors_plan);
    if (plan && plan->checks.verdict == PHEMA_SERIES_FITS)
        html_printf(out, " The snapshots fit their labels.");
    phema_strbuf_puts(out, "</p>\n");
    struct phema_strbuf checks = {0};
    if (plan && phema_series_write_doubt(&checks, plan->series, &plan->checks) && !checks.is_failed)
        html_warning(out, checks.data);
    phema_strbuf_clear(&checks);
}
