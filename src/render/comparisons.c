// SPDX-License-Identifier: Apache-2.0
/* comparisons.c - what diff and verify have found, as text and as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "phema/json.h"

/* ---- Two checkpoints ---- */

/* Rows of the table, worst first; -v shows all. */
#define SHOWN_ROWS 20

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

void comparison_write_json(struct phema_strbuf *text, const struct phema_comparison *comparison,
                           bool is_equal)
{
    struct phema_json_out out;
    render_json_begin(&out, text, true);
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
    render_json_end(&out);
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

PHEMA_FALLIBLE comparison_write_table(struct phema_strbuf *out,
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

/* ---- An output and what its provenance says ---- */

/* The text names at most this many tensors and snapshots. */
#define MAX_NAMED 10

static void write_checks_json(struct phema_json_out *json, const struct phema_provenance *recorded)
{
    if (!recorded->verdict) {
        phema_json_out_null(json, "recorded_checks");
        return;
    }
    phema_json_out_open(json, "recorded_checks", '{');
    phema_json_out_string(json, "verdict", recorded->verdict);
    phema_json_out_string(json, "reason", recorded->reason);
    phema_json_out_close(json, '}');
}

/* What synth said of the snapshots when it made the output. */
static void write_checks_line(struct phema_strbuf *text, const struct phema_provenance *recorded)
{
    bool is_wrong = recorded->verdict && strcmp(recorded->verdict, "wrong") == 0;
    bool is_doubtful = recorded->verdict && strcmp(recorded->verdict, "doubtful") == 0;
    if (!is_wrong && !is_doubtful)
        return;
    phema_strbuf_puts(text, is_wrong ? "  made of snapshots that do not fit their labels: "
                                     : "  made of snapshots in doubt: ");
    phema_strbuf_puts_escaped(text,
                              recorded->reason ? recorded->reason : "the reason is not recorded");
    phema_strbuf_puts(text, "\n");
}

void verification_write_json(struct phema_json_out *json, const struct render_style *style,
                             const struct phema_verifying *verifying)
{
    const struct phema_verification *found = &verifying->found;
    const struct phema_series *series = verifying->prepared.plan->series;
    phema_json_out_path(json, "file", verifying->options->out);
    phema_json_out_bool(json, "equal", phema_verification_is_equal(found));
    phema_json_out_bool(json, "same_weights", verifying->are_weights_same);
    write_checks_json(json, verifying->recorded);
    phema_json_out_u64(json, "snapshots", verifying->recorded->n_inputs);
    phema_json_out_u64(json, "elements", found->n_elems);
    phema_json_out_u64(json, "tiles", found->n_tiles);
    phema_json_out_u64(json, "tiles_compared", found->n_taken);
    phema_json_out_open(json, "differences", '[');
    for (size_t x = 0; x < found->n; x++) {
        const struct phema_tensor *tensor = &series->tensors[found->differences[x].tensor].tensor;
        phema_json_out_open(json, NULL, '{');
        phema_json_out_bytes(json, "name", tensor->name, tensor->name_size);
        phema_json_out_u64(json, "elements", found->differences[x].n_elems);
        phema_json_out_close(json, '}');
    }
    phema_json_out_close(json, ']');
    phema_json_out_u64(json, "other_bytes", found->n_other_bytes);
    if (found->sums) {
        phema_json_out_open(json, "changed_snapshots", '[');
        for (size_t x = 0; x < verifying->n_changed; x++)
            phema_json_out_string(json, NULL,
                                  verifying->recorded->inputs[verifying->changed[x]].file);
        phema_json_out_close(json, ']');
    }
    phema_json_out_u64(json, "read_bytes", found->read_bytes);
    phema_json_out_number(json, "seconds", found->elapsed_s);
    render_write_warnings(json, style);
}

void verification_write_text(struct phema_strbuf *text, const struct phema_verifying *verifying)
{
    const struct phema_verification *found = &verifying->found;
    const struct phema_series *series = verifying->prepared.plan->series;
    const char *out = verifying->options->out;
    phema_strbuf_puts_escaped(text, out);
    phema_strbuf_puts(text, phema_verification_is_equal(found) ? ": equal" : ": differs");
    phema_strbuf_printf(text, ": %llu elements compared, recomputed from %zu snapshots",
                        (unsigned long long)found->n_elems, verifying->recorded->n_inputs);
    if (found->n_taken < found->n_tiles)
        phema_strbuf_printf(text, " (%llu of %llu tiles)", (unsigned long long)found->n_taken,
                            (unsigned long long)found->n_tiles);
    phema_strbuf_puts(text, "\n");
    for (size_t x = 0; x < found->n && x < MAX_NAMED; x++) {
        const struct phema_tensor *tensor = &series->tensors[found->differences[x].tensor].tensor;
        struct phema_name_buffer shown;
        phema_strbuf_printf(text, "  tensor '%s': %llu of %llu elements differ\n",
                            phema_name_escape(&shown, tensor->name, tensor->name_size),
                            (unsigned long long)found->differences[x].n_elems,
                            (unsigned long long)tensor->n_elems);
    }
    if (found->n > MAX_NAMED)
        phema_strbuf_printf(text, "  and %zu more tensors\n", found->n - MAX_NAMED);
    if (found->n_other_bytes)
        phema_strbuf_printf(text, "  %llu bytes differ that are no replaced tensor's\n",
                            (unsigned long long)found->n_other_bytes);
    for (size_t x = 0; x < verifying->n_changed && x < MAX_NAMED; x++) {
        const char *file = verifying->recorded->inputs[verifying->changed[x]].file;
        struct phema_name_buffer shown;
        phema_strbuf_printf(
            text,
            "  snapshot '%s': its tensor data are not those that the output was made "
            "of\n",
            phema_name_show(&shown, file));
    }
    if (verifying->n_changed > MAX_NAMED)
        phema_strbuf_printf(text, "  and %zu more snapshots\n", verifying->n_changed - MAX_NAMED);
    write_checks_line(text, verifying->recorded);
}
