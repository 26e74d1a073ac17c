/* device_report.h - who adds up, and why: for summaries, plans and JSON. */
#ifndef CLI_DEVICE_REPORT_H
#define CLI_DEVICE_REPORT_H

#include "options.h"
#include "phema/json.h"
#include "phema/synth.h"

/* On stderr, after a run; is_asked: the user said something of devices. */
void device_report(const struct cli_common *common, const struct phema_device_choice *choice,
                   bool is_asked);

/* "on the CPU", "on cuda:0 (NVIDIA H200)" */
void device_report_place(struct phema_strbuf *out, const struct phema_device_choice *choice);
/* Lines of a plan. */
void device_report_plan(struct phema_strbuf *out, const struct phema_forecast *forecast);
void device_report_json(struct phema_json_out *out, const struct phema_forecast *forecast);

#endif
