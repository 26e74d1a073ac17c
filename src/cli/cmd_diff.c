// SPDX-License-Identifier: Apache-2.0
/* cmd_diff.c - compares two checkpoints tensor by tensor. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "phema/json.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "remedy/remedy.h"
#include "shared_options.h"

/* Rows of the table, worst first; -v shows all. */
#define SHOWN_ROWS 20

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

/* True for tensors that are compared as numbers, so that distances mean something; others are
 * compared as bytes. */
static bool is_numeric(const struct phema_difference *difference)
{
    if (!difference->is_comparable)
        return false;
    enum phema_dtype dtype = difference->a->dtype;
    return phema_dtype_is_float(dtype) || dtype == PHEMA_C64 || dtype == PHEMA_C128;
}

static double known_distance(const struct phema_difference *difference, double distance)
{
    return is_numeric(difference) ? distance : PHEMA_UNKNOWN;
}

static bool has_numbers(const struct phema_comparison *comparison)
{
    for (size_t i = 0; i < comparison->n; i++)
        if (is_numeric(&comparison->tensors[i]))
            return true;
    return false;
}

static void write_names(struct phema_json_out *out, const char *key,
                        const struct phema_comparison *comparison, bool is_a)
{
    phema_json_out_open(out, key, '[');
    for (size_t i = 0; i < comparison->n; i++) {
        const struct phema_difference *difference = &comparison->tensors[i];
        const struct phema_tensor *here = is_a ? difference->a : difference->b;
        const struct phema_tensor *there = is_a ? difference->b : difference->a;
        if (here && !there)
            phema_json_out_bytes(out, NULL, here->name, here->name_size);
    }
    phema_json_out_close(out, ']');
}

static void write_json(struct phema_strbuf *text, const struct phema_comparison *comparison,
                       bool is_equal)
{
    struct phema_json_out out = {.text = text, .is_pretty = true};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_bool(&out, "equal", is_equal);
    bool is_known = has_numbers(comparison);
    phema_json_out_number(&out, "max_abs", is_known ? comparison->max_abs : PHEMA_UNKNOWN);
    phema_json_out_number(&out, "rel_l2", is_known ? comparison->rel_l2 : PHEMA_UNKNOWN);
    phema_json_out_open(&out, "tensors", '[');
    for (size_t i = 0; i < comparison->n; i++) {
        const struct phema_difference *difference = &comparison->tensors[i];
        if (!difference->a || !difference->b)
            continue;
        phema_json_out_open(&out, NULL, '{');
        phema_json_out_bytes(&out, "name", difference->a->name, difference->a->name_size);
        phema_json_out_bool(&out, "comparable", difference->is_comparable);
        phema_json_out_u64(&out, "unequal", difference->n_unequal);
        phema_json_out_number(&out, "max_abs", known_distance(difference, difference->max_abs));
        phema_json_out_number(&out, "rel_l2", known_distance(difference, difference->rel_l2));
        phema_json_out_close(&out, '}');
    }
    phema_json_out_close(&out, ']');
    write_names(&out, "only_in_a", comparison, true);
    write_names(&out, "only_in_b", comparison, false);
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(text, "\n");
}

/* Larger is worse: missing tensors and other shapes come first, then by rel_l2. */
static double badness(const struct phema_difference *difference)
{
    if (!difference->is_comparable)
        return HUGE_VAL;
    if (difference->is_equal)
        return 0;
    return isnan(difference->rel_l2) ? 1e300 : difference->rel_l2;
}

static int compare_badness(const void *a, const void *b, void *table)
{
    const struct phema_difference *tensors = table;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    double left = badness(&tensors[i]), right = badness(&tensors[j]);
    if (left != right)
        return left > right ? -1 : 1;
    return (i > j) - (i < j);
}

static void write_row(struct phema_strbuf *out, const struct phema_difference *difference)
{
    struct phema_name_buffer name;
    const struct phema_tensor *tensor = difference->a ? difference->a : difference->b;
    (void)phema_name_escape(&name, tensor->name, tensor->name_size);
    if (!difference->b)
        phema_strbuf_printf(out, "%-12s %-12s %s\n", "only in A", "", name.text);
    else if (!difference->a)
        phema_strbuf_printf(out, "%-12s %-12s %s\n", "only in B", "", name.text);
    else if (!difference->is_comparable)
        phema_strbuf_printf(out, "%-12s %-12s %s\n", "other shape", "or dtype", name.text);
    else if (!is_numeric(difference))
        phema_strbuf_printf(out, "%-25s %s  (%llu of %llu elements differ)\n",
                            difference->is_equal ? "equal" : "not equal", name.text,
                            (unsigned long long)difference->n_unequal,
                            (unsigned long long)tensor->n_elems);
    else
        phema_strbuf_printf(out, "%-12.4g %-12.4g %s\n", difference->rel_l2, difference->max_abs,
                            name.text);
}

static enum phema_status write_table(struct phema_strbuf *out,
                                     const struct phema_comparison *comparison, bool is_verbose,
                                     struct phema_error *err)
{
    size_t *order = calloc(comparison->n + 1, sizeof(*order));
    if (!order)
        return phema_fail_memory(err);
    size_t n_different = 0;
    for (size_t i = 0; i < comparison->n; i++) {
        order[i] = i;
        n_different += badness(&comparison->tensors[i]) > 0;
    }
    qsort_r(order, comparison->n, sizeof(*order), compare_badness, comparison->tensors);
    if (n_different == 0) {
        phema_strbuf_printf(out, "equal: %zu tensor%s\n", comparison->n,
                            comparison->n == 1 ? "" : "s");
    } else {
        size_t n_shown = is_verbose                 ? comparison->n
                         : n_different < SHOWN_ROWS ? n_different
                                                    : SHOWN_ROWS;
        phema_strbuf_printf(out, "%-12s %-12s tensor\n", "rel_l2", "max_abs");
        for (size_t i = 0; i < n_shown; i++)
            write_row(out, &comparison->tensors[order[i]]);
        if (n_shown < n_different)
            phema_strbuf_printf(out, "... and %zu more (-v shows all)\n", n_different - n_shown);
        if (has_numbers(comparison))
            phema_strbuf_printf(out, "%-12.4g %-12.4g ", comparison->rel_l2, comparison->max_abs);
        else
            phema_strbuf_printf(out, "%-12s %-12s ", "-", "-");
        phema_strbuf_printf(out, "all; %zu of %zu tensors differ\n", n_different, comparison->n);
    }
    free(order);
    return PHEMA_OK;
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
        write_json(&text, comparison, is_equal);
    else if (!args->common.style.is_quiet)
        status = write_table(&text, comparison, args->common.style.is_verbose, err);
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
