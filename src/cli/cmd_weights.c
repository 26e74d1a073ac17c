// SPDX-License-Identifier: Apache-2.0
/* cmd_weights.c - prints the weights, how good they are, and which snapshots could be deleted. Only
 * a sample of each tensor is read. */

#include "cli.h"
#include "phema/progress.h"
#include "phema/render.h"
#include "phema/report.h"
#include "remedy/remedy.h"
#include "shared_options.h"

struct weights_values {
    struct cli_common common;
    struct cli_plan_values plan;
    bool is_advice;
};

/* ---- The verb ---- */

/* The result, on stdout. */
static enum phema_status print_plan(const struct weights_values *args,
                                    const struct phema_plan *plan,
                                    const struct phema_plan_advice *advice, struct phema_error *err)
{
    const struct render_style *style = &args->common.style;
    struct phema_strbuf text = {0};
    if (style->is_json)
        weights_write_json(&text, style, plan, advice, args->plan.max_error);
    else if (advice)
        weights_write_advice(&text, plan, advice, style->is_verbose);
    else
        weights_write_table(&text, plan, style->is_verbose);
    return cli_print(&text, style, err);
}

static enum phema_status print_advice(const struct weights_values *args,
                                      const struct phema_plan *plan, struct phema_error *err)
{
    struct phema_plan_advice advice;
    enum phema_status status = phema_plan_advise(&advice, plan, args->plan.max_error, err);
    if (status)
        return status;
    report_advice(&args->common.style, plan, &advice, args->plan.max_error);
    status = print_plan(args, plan, &advice, err);
    phema_advice_clear(&advice.found);
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct weights_values *args = values;
    struct phema_plan_options options;
    if (args->is_advice && !(args->plan.max_error > 0))
        return cli_suggest(err,
                           cli_fail_option(err, PHEMA_ERR_USAGE, "advise",
                                           "give --max-error, the largest error that is "
                                           "good enough, above 0"),
                           "max-error", "1e-3");
    enum phema_status status = cli_plan_options(&options, &args->common, &args->plan, err);
    if (status)
        return status;
    options.series.needs_no_tensors = true;
    options.solve.finds_condition = args->common.style.is_json;
    struct phema_plan *plan = NULL;
    status = watch_make_plan(&plan, &args->common.style, &options, err);
    if (status)
        return status;
    report_series(&args->common.style, plan->series, &plan->checks);
    bool is_table = !args->common.style.is_json && !args->is_advice; /* which has the errors */
    /* nothing is written, so that no dtype rounds the result */
    report_plan(&args->common.style, plan, PHEMA_F64, true,
                !is_table || args->common.style.is_verbose);
    status = args->is_advice ? print_advice(args, plan, err) : print_plan(args, plan, NULL, err);
    if (!status)
        status = phema_plan_check_error(plan, args->plan.max_error, err);
    phema_plan_free(plan);
    return status;
}

#define FIELD(member) offsetof(struct weights_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_series_rows, FIELD(plan)),
    CLI_INCLUDE(cli_target_rows, FIELD(plan)),
    {"advise", TARGET, CLI_FLAG, FIELD(is_advice),
     .help =
         "which snapshots can be deleted, and how often to\nsave, for --max-error in all targets",
     .flags = CLI_EVERYDAY},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_weights = {
    .name = "weights",
    .summary = "print the weights of averages and the errors to expect",
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
