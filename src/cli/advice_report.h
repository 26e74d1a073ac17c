/* advice_report.h - what people read of advice: which snapshots could go, how often to save. */
#ifndef CLI_ADVICE_REPORT_H
#define CLI_ADVICE_REPORT_H

#include "options.h"
#include "phema/json.h"
#include "phema/plan.h"

/* To stderr: in words. */
void advice_report(const struct cli_common *common, const struct phema_plan *plan,
                   const struct phema_plan_advice *advice, double max_error);
/* A line for each snapshot: keep or delete, and its file. */
void advice_report_list(struct phema_strbuf *out, const struct phema_plan *plan,
                        const struct phema_plan_advice *advice);
/* "advice": {...} */
void advice_report_json(struct phema_json_out *out, const struct phema_plan *plan,
                        const struct phema_plan_advice *advice, double max_error);

#endif
