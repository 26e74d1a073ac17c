// SPDX-License-Identifier: Apache-2.0
/* cmd_weights.c - prints the weights, how good they are, and which snapshots could be deleted. Only
 * a sample of each tensor is read. */
#include "cli.h"
#include "print_summary.h"
#include "series_options.h"

struct weights_values {
    struct cli_common common;
    struct cli_plan_values plan;
    bool is_advice;
};

/* The result, on stdout. */
static enum phema_status print_plan(const struct weights_values *given,
                                    const struct phema_plan *plan,
                                    const struct phema_plan_advice *advice, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (given->common.is_json)
        report_weights_json(&text, plan, advice, given->plan.max_error);
    else if (advice)
        report_advice_list(&text, plan, advice);
    else
        report_weights_table(&text, plan);
    enum phema_status status = cli_print(&text, err);
    phema_strbuf_clear(&text);
    return status;
}

static enum phema_status print_advice(const struct weights_values *given,
                                      const struct phema_plan *plan, struct phema_error *err)
{
    struct phema_plan_advice advice;
    enum phema_status status = phema_plan_advise(&advice, plan, given->plan.max_error, err);
    if (status)
        return status;
    report_advice(&given->common, plan, &advice, given->plan.max_error);
    status = print_plan(given, plan, &advice, err);
    phema_plan_advice_clear(&advice);
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct weights_values *given = values;
    struct phema_plan_options options;
    enum phema_status status = cli_plan_options(&options, &given->common, &given->plan, err);
    if (status)
        return status;
    options.series.needs_no_tensors = true;
    struct phema_plan *plan = NULL;
    status = phema_plan_make(&plan, &options, err);
    if (status)
        return status;
    report_series(&given->common, plan->series);
    report_plan(&given->common, plan, PHEMA_F64, true); /* nothing is written, so that no dtype
                                                         * rounds the result */
    status = given->is_advice ? print_advice(given, plan, err) : print_plan(given, plan, NULL, err);
    if (!status)
        status = cli_check_error(plan, given->plan.max_error, err);
    phema_plan_free(plan);
    return status;
}

#define FIELD(member) offsetof(struct weights_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_series_rows, FIELD(plan)),
    CLI_INCLUDE(cli_target_rows, FIELD(plan)),
    {"advise", TARGET, CLI_FLAG, FIELD(is_advice),
     .help = "which snapshots could be deleted, and how often to\nsave, for --max-error in all "
             "targets"},
    CLI_INCLUDE(cli_common_rows, 0),
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
                "      how good weights from elsewhere are\n"
                "  posthoc-ema weights --advise --max-error 1e-3 --sigma-rel 0.05,0.2 ckpts/\n"
                "      which snapshots could go if 1e-3 is good enough for these widths\n",
    .values_size = sizeof(struct weights_values),
    .run = run,
};
