// SPDX-License-Identifier: Apache-2.0
/* cmd_weights.c - the weights and how good they are, and what could be
 * deleted; of tensors a few elements are looked at. */
#include "commands.h"
#include "report.h"
#include "shared.h"

struct weights_values {
    struct cli_common common;
    struct cli_series_values series;
    struct cli_target_values target;
};

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct weights_values *given = values;
    struct phema_plan_options options;
    enum phema_status status =
        cli_plan_options(&options, &given->common, &given->series, &given->target, err);
    if (status)
        return status;
    options.series.needs_no_tensors = true;
    struct phema_plan *plan = NULL;
    status = phema_plan_make(&plan, &options, err);
    if (status)
        return status;
    report_series(&given->common, plan->series);
    report_plan(&given->common, plan, PHEMA_F64, true); /* nothing is written: no rounding of it */
    struct phema_text text = {0};
    if (given->common.is_json)
        report_weights_json(&text, plan);
    else
        report_weights_table(&text, plan);
    status = cli_print(&text, err);
    phema_text_clear(&text);
    if (!status)
        status = cli_check_error(plan, given->target.max_error, err);
    phema_plan_free(plan);
    return status;
}

static const struct cli_opt rows[] = {
    CLI_SERIES_ROWS(weights_values, ),
    CLI_TARGET_ROWS(weights_values, ),
    CLI_COMMON_ROWS(weights_values),
    {0},
};

const struct cli_verb cli_weights = {
    .name = "weights",
    .summary = "print the weights and how good they are",
    .options = rows,
    .examples = "  posthoc-ema weights --sigma-rel 0.05,0.1 ckpts/\n"
                "      a table: one line for each snapshot, one column for each target\n"
                "  posthoc-ema weights --sigma-rel 0.1 --json ckpts/ > weights.json\n"
                "      to look at, to edit, and to use with synth --weights\n"
                "  posthoc-ema weights --weights theirs.txt --sigma-rel 0.1 ckpts/\n"
                "      how good weights from elsewhere are\n",
    .values_size = sizeof(struct weights_values),
    .run = run,
};
