// SPDX-License-Identifier: Apache-2.0
/* advice_report.c - see advice_report.h. */
#include "advice_report.h"

#include <stdio.h>
#include <string.h>

static bool is_removed(const struct phema_plan_advice *advice, size_t snapshot)
{
    for (size_t r = 0; r < advice->n_removed; r++)
        if (advice->removed[r] == snapshot)
            return true;
    return false;
}

static void report_saving(const struct phema_plan *plan, const struct phema_saving *saving,
                          double max_error)
{
    if (saving->n_times)
        (void)fprintf(stderr,
                      "for an error of %.2g, saving every %.6g %s would do (%zu time%s x %zu "
                      "profile%s: predicted %.1e)\n",
                      max_error, saving->every, plan->series->unit, saving->n_times,
                      saving->n_times == 1 ? "" : "s", saving->n_per_time,
                      saving->n_per_time == 1 ? "" : "s", saving->error);
    else
        (void)fprintf(stderr,
                      "no number of evenly spaced times with these profiles would give an error "
                      "of %.2g; other widths, a wider target or files of more digits might\n",
                      max_error);
}

void advice_report(const struct cli_common *common, const struct phema_plan *plan,
                   const struct phema_plan_advice *advice, double max_error)
{
    if (common->is_quiet)
        return;
    const char *of = plan->m > 1 ? "the worst predicted error" : "the predicted error";
    if (advice->error_before > max_error)
        (void)fprintf(stderr, "no snapshot should go: %s is %.1e already, above %.2g\n", of,
                      advice->error_before, max_error);
    else if (advice->n_removed == 0)
        (void)fprintf(stderr, "no snapshot may go: %s is %.1e, and would be above %.2g\n", of,
                      advice->error_before, max_error);
    else
        (void)fprintf(stderr,
                      "%zu of %zu snapshots could be deleted: %s would go from %.1e to %.1e, "
                      "within %.2g\n",
                      advice->n_removed, advice->n_considered, of, advice->error_before,
                      advice->error_after, max_error);
    report_saving(plan, &advice->saving, max_error);
}

void advice_report_list(struct phema_strbuf *out, const struct phema_plan *plan,
                        const struct phema_plan_advice *advice)
{
    for (size_t k = 0; k < plan->series->n; k++) {
        struct phema_name_buffer shown;
        const char *label = plan->series->snapshots[k].label;
        phema_strbuf_printf(out, "%s  %s\n", is_removed(advice, k) ? "delete" : "keep  ",
                            phema_name_escape(&shown, label, strlen(label)));
    }
}

void advice_report_json(struct phema_json_out *out, const struct phema_plan *plan,
                        const struct phema_plan_advice *advice, double max_error)
{
    const struct phema_saving *saving = &advice->saving;
    phema_json_out_open(out, "advice", '{');
    phema_json_out_number(out, "max_error", max_error);
    phema_json_out_open(out, "delete", '[');
    for (size_t k = 0; k < plan->series->n; k++)
        if (is_removed(advice, k))
            phema_json_out_string(out, NULL, plan->series->snapshots[k].label);
    phema_json_out_close(out, ']');
    phema_json_out_number(out, "error_before", advice->error_before);
    phema_json_out_number(out, "error_after", advice->error_after);
    phema_json_out_open(out, "save", '{');
    phema_json_out_u64(out, "times", saving->n_times);
    phema_json_out_u64(out, "profiles", saving->n_per_time);
    phema_json_out_number(out, "every", saving->n_times ? saving->every : PHEMA_UNKNOWN);
    phema_json_out_number(out, "error", saving->n_times ? saving->error : PHEMA_UNKNOWN);
    phema_json_out_close(out, '}');
    phema_json_out_close(out, '}');
}
