// SPDX-License-Identifier: Apache-2.0
/* cmd_diff.c - compares two checkpoints tensor by tensor. */
#include <math.h>

#include "cli.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "remedy/remedy.h"
#include "shared_options.h"

struct diff_values {
    struct cli_common common;
    const char *a, *b;
    struct phema_checkpoint_options checkpoint;
    double tolerance;
};

static bool is_within(const struct phema_difference *difference, double tolerance)
{
    return difference->is_comparable && (difference->is_equal || difference->rel_l2 <= tolerance);
}

static enum phema_status report(const struct diff_values *args,
                                const struct phema_comparison *comparison, struct phema_error *err)
{
    double tolerance = isnan(args->tolerance) ? 0 : args->tolerance;
    bool is_equal = true;
    for (size_t i = 0; i < comparison->n; i++)
        is_equal = is_equal && is_within(&comparison->tensors[i], tolerance);
    if (comparison->prefix && !args->common.style.is_quiet)
        render_say("names are compared without the prefix '%s' that %s has", comparison->prefix,
                   comparison->is_prefix_of_a ? args->a : args->b);
    struct phema_strbuf text = {0};
    enum phema_status status = PHEMA_OK;
    if (args->common.style.is_json)
        comparison_write_json(&text, comparison, is_equal);
    else if (!args->common.style.is_quiet)
        status = comparison_write_table(&text, comparison, args->common.style.is_verbose, err);
    if (!status)
        status = render_print(&text, err);
    return status ? status : is_equal ? PHEMA_OK : PHEMA_NO;
}

static enum phema_status compare(const struct diff_values *args, const struct phema_checkpoint *a,
                                 const struct phema_checkpoint *b, struct phema_error *err)
{
    struct phema_comparison comparison;
    struct render_listener listener;
    render_listen(&listener, &args->common.style);
    enum phema_status status = phema_compare(&comparison, a, b, &listener.heard, err);
    if (status)
        return status;
    status = report(args, &comparison, err);
    phema_comparison_clear(&comparison);
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct diff_values *args = values;
    if (args->tolerance < 0)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "tolerance", "%g is below 0", args->tolerance);
    struct phema_checkpoint *a = NULL, *b = NULL;
    enum phema_status status = phema_checkpoint_open(&a, args->a, &args->checkpoint, err);
    if (status)
        return status;
    status = phema_checkpoint_open(&b, args->b, &args->checkpoint, err);
    if (!status)
        status = compare(args, a, b, err);
    phema_checkpoint_close(a);
    phema_checkpoint_close(b);
    return status;
}

#define FIELD(member) offsetof(struct diff_values, member)

static const struct cli_opt rows[] = {
    {"A", INPUT, CLI_OPERAND, FIELD(a), .help = "a checkpoint"},
    {"B", INPUT, CLI_OPERAND, FIELD(b),
     .help = "what it is compared with: errors are relative to B"},
    CLI_INCLUDE(cli_pickle_rows, FIELD(checkpoint)),
    {"tolerance", NUMBERS, CLI_REAL, FIELD(tolerance), "REL",
     .help = "tensors count as equal up to this |A - B| / |B|\n(default 0)"},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_diff = {
    .name = "diff",
    .summary = "compare two checkpoints tensor by tensor",
    .options = rows,
    .examples = "  posthoc-ema diff out.safetensors truth.safetensors\n"
                "      the tensors that differ, worst first; status 1 when any does\n"
                "  posthoc-ema diff --tolerance 1e-3 a.safetensors b.pt && echo close\n"
                "      floats of different dtypes are compared as numbers\n",
    .values_size = sizeof(struct diff_values),
    .run = run,
};
