/* plan_report.h - prints a forecast as text and as JSON. */
#ifndef CLI_PLAN_REPORT_H
#define CLI_PLAN_REPORT_H

#include "inspect/inspect.h"
#include "phema/synth.h"

struct plan_report {
    const struct phema_plan *plan;
    const struct phema_outputs *outputs;
    const struct phema_synth_options *options;
    const struct phema_forecast *forecast;
    const struct inspect_summary *summary;
    bool has_out; /* OUT was given */
};

void plan_report_write(struct phema_strbuf *out, const struct plan_report *report);
void plan_report_write_json(struct phema_strbuf *out, const struct plan_report *report);

#endif
