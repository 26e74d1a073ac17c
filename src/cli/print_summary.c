// SPDX-License-Identifier: Apache-2.0
/* print_summary.c - on stderr: the series that was found, the metric, and the predicted errors; and
 * the JSON of profiles, predictions, snapshots and rules. */
#include "print_summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

/* Predictions above this, or weights this large, deserve a warning. */
#define LARGE_ERROR 1e-2
#define LARGE_NORM  10.0

const char *report_named_unit(const struct phema_series *series)
{
    return strcmp(series->layout, "edm2") == 0 ? "kimg" : series->unit;
}

static void write_times(struct phema_strbuf *out, const struct phema_series *series)
{
    size_t n_times = 0;
    for (size_t k = 0; k < series->n; k++)
        n_times += k == 0 || series->snapshots[k].named_time != series->snapshots[k - 1].named_time;
    const char *named_in = report_named_unit(series);
    struct phema_name_buffer from, to;
    (void)phema_number_format(&from, series->snapshots[0].named_time);
    if (n_times == 1)
        phema_strbuf_printf(out, "one time, %s %s", from.text, named_in);
    else
        phema_strbuf_printf(out, "%zu times, %s to %s %s", n_times, from.text,
                            phema_number_format(&to, series->snapshots[series->n - 1].named_time),
                            named_in);
}

static void write_widths(struct phema_strbuf *out, const struct phema_series *series)
{
    double shown[8];
    size_t n = 0;
    for (size_t k = 0; k < series->n; k++) {
        double width = series->snapshots[k].sigma_rel;
        bool is_new = !isnan(width);
        for (size_t i = 0; i < n && is_new; i++)
            is_new = shown[i] != width;
        if (!is_new)
            continue;
        if (n == ARRAY_LEN(shown)) {
            phema_strbuf_puts(out, ", ...");
            return;
        }
        shown[n++] = width;
        phema_strbuf_printf(out, "%s%.6g", n == 1 ? "; sigma_rel " : ", ", width);
    }
}

/* The profiles that are not power functions, each once. */
static void write_shapes(struct phema_strbuf *out, const struct phema_series *series)
{
    const char *shown[8];
    size_t n = 0;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        bool is_new = snapshot->spec && isnan(snapshot->gamma);
        for (size_t i = 0; i < n && is_new; i++)
            is_new = strcmp(shown[i], snapshot->spec) != 0;
        if (!is_new)
            continue;
        if (n == ARRAY_LEN(shown)) {
            phema_strbuf_puts(out, ", ...");
            return;
        }
        shown[n++] = snapshot->spec;
        phema_strbuf_printf(out, "%s%s", n == 1 ? "; " : ", ", snapshot->spec);
    }
}

static uint64_t bytes_of_tensors(const struct phema_series *series, size_t *n_averaged)
{
    uint64_t bytes = 0;
    *n_averaged = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        bytes += series->tensors[i].tensor.size_bytes;
        *n_averaged += series->tensors[i].rule == PHEMA_RULE_AVERAGE;
    }
    return bytes;
}

void report_series(const struct cli_common *common, const struct phema_series *series)
{
    if (common->is_quiet)
        return;
    struct phema_strbuf text = {0};
    phema_strbuf_printf(&text, "%s: %zu snapshot%s, layout %s, ", series->root, series->n,
                        series->n == 1 ? "" : "s", series->layout);
    write_times(&text, series);
    write_widths(&text, series);
    if (series->n && series->snapshots[0].profile.update_every > 1)
        phema_strbuf_printf(&text, ", updated every %llu steps",
                            (unsigned long long)series->snapshots[0].profile.update_every);
    write_shapes(&text, series);
    size_t n_averaged = 0;
    struct phema_name_buffer shown;
    uint64_t bytes = bytes_of_tensors(series, &n_averaged);
    if (series->n_tensors)
        phema_strbuf_printf(&text, "; %zu tensors (%zu averaged), %s each", series->n_tensors,
                            n_averaged, phema_size_format(&shown, bytes));
    if (text.data && !text.is_failed)
        cli_say("%s", text.data);
    phema_strbuf_clear(&text);
    for (size_t i = 0; i < series->n_notes; i++)
        cli_say("%s", series->notes[i]);
    for (size_t i = 0; common->is_verbose && i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        if (entry->rule == PHEMA_RULE_COPY)
            cli_say("copied from the newest: '%s' (%s)",
                    phema_name_escape(&shown, entry->tensor.name, entry->tensor.name_size),
                    entry->reason);
    }
}

void report_conversion(const struct cli_common *common, const struct phema_series *series)
{
    if (common->is_quiet)
        return;
    size_t n_averaged = 0;
    struct phema_name_buffer shown;
    cli_say("%s: %s, %zu tensors, %s, as they are", series->root,
            phema_checkpoint_format(series->snapshots[0].checkpoint), series->n_tensors,
            phema_size_format(&shown, bytes_of_tensors(series, &n_averaged)));
    for (size_t i = 0; i < series->n_notes; i++)
        cli_say("%s", series->notes[i]);
}

void report_target_name(struct phema_strbuf *out, const struct phema_target *target)
{
    struct phema_name_buffer at, spec;
    if (!target->kind)
        phema_strbuf_puts(out, "given weights");
    else if (isnan(target->sigma_rel))
        phema_strbuf_puts(out, phema_name_escape(&spec, target->spec, strlen(target->spec)));
    else
        phema_strbuf_printf(out, "sigma_rel %.6g", target->sigma_rel);
    phema_strbuf_printf(out, " at %s", phema_number_format(&at, target->named_time));
}

/* The reason for a large error, and a remedy. */
static const char *remedy(const struct phema_plan *plan, const struct phema_target *target)
{
    const struct phema_series *series = plan->series;
    const struct phema_solution *solution = &target->solution;
    double narrowest = HUGE_VAL;
    bool is_halved = false; /* files of 16 bits or less */
    for (size_t k = 0; k < series->n; k++) {
        if (!isnan(series->snapshots[k].sigma_rel))
            narrowest = fmin(narrowest, series->snapshots[k].sigma_rel);
        is_halved |= series->snapshots[k].rounding > 1e-5;
    }
    if (target->sigma_rel < narrowest)
        return solution->predicted.rounding > solution->predicted.profile && is_halved
                   ? "the target is narrower than every snapshot, so that large weights multiply "
                     "the rounding of the 16-bit files: snapshots of a smaller sigma_rel, or in "
                     "F32, would help"
                   : "the target is narrower than every snapshot: snapshots of a smaller "
                     "sigma_rel, or more times, would help (weights --advise says how many)";
    if (solution->predicted.rounding > solution->predicted.profile)
        return is_halved
                   ? "most of the error is rounding of the 16-bit files: snapshots in F32, or "
                     "a wider target, would help"
                   : "most of the error is rounding of the files, which large weights "
                     "multiply: a wider target would help";
    return "there are too few snapshots for it: more times, or widths nearer to the target's, "
           "would help (weights --advise says how many times)";
}

bool report_write_warning(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    bool is_wrong = solution->predicted.total > LARGE_ERROR;
    if (!is_wrong && !(solution->norm2 > LARGE_NORM))
        return false;
    report_target_name(out, target);
    phema_strbuf_printf(out, ": %s; %s",
                        is_wrong ? "the error to expect is large" : "the weights are large",
                        remedy(plan, target));
    return true;
}

static void warn(const struct phema_plan *plan, const struct phema_target *target)
{
    struct phema_strbuf text = {0};
    if (report_write_warning(&text, plan, target) && !text.is_failed)
        cli_say("warning: %s", text.data);
    phema_strbuf_clear(&text);
}

/* target: any target of that time */
static void warn_of_rules(const struct phema_plan *plan, const struct phema_target *target)
{
    for (size_t r = 0; r < plan->n_rules; r++) {
        struct phema_target column = *target;
        column.sigma_rel = plan->rules[r].sigma_rel;
        column.solution = target->ruled[r];
        if (!plan->rules[r].is_copy)
            warn(plan, &column);
    }
}

static void report_target(const struct phema_plan *plan, const struct phema_target *target,
                          double written_error)
{
    const struct phema_solution *solution = &target->solution;
    const struct phema_prediction *predicted = &solution->predicted;
    struct phema_strbuf text = {0};
    report_target_name(&text, target);
    phema_strbuf_puts(&text, ": ");
    if (!isnan(predicted->total))
        phema_strbuf_printf(
            &text,
            "predicted error %.1e of |theta| (profile %.0e, rounding %.0e), gain |w| "
            "%.2f, ",
            predicted->total, predicted->profile, predicted->rounding, solution->norm2);
    if (!isnan(predicted->paper_weights) && strcmp(plan->metric, "profile") != 0)
        phema_strbuf_printf(&text, "paper's weights would give %.1e, ", predicted->paper_weights);
    if (!isnan(target->label_predicted_error))
        phema_strbuf_printf(&text, "believing the labels would give %.1e, ",
                            target->label_predicted_error);
    if (!isnan(solution->profile_error))
        phema_strbuf_printf(&text, "profile error %.2e, ", solution->profile_error);
    if (written_error > 0)
        phema_strbuf_printf(&text, "the dtype written adds %.1e, ", written_error);
    double wanted_sum = strcmp(target->kind ? target->kind : "", "difference") == 0 ? 0 : 1;
    if (fabs(solution->sum - wanted_sum) > 1e-9)
        phema_strbuf_printf(&text, "weights sum to %.9g, ", solution->sum);
    if (target->n_left_out)
        phema_strbuf_printf(&text, "%zu later snapshot%s left out, ", target->n_left_out,
                            target->n_left_out == 1 ? "" : "s");
    if (plan->series->snapshots[target->newest].time < target->time && !plan->has_given_weights)
        phema_strbuf_puts(&text, "between two snapshots: later ones are used, ");
    if (target->n_repeated)
        phema_strbuf_printf(&text, "%zu snapshot%s left out that repeat%s another, ",
                            target->n_repeated, target->n_repeated == 1 ? "" : "s",
                            target->n_repeated == 1 ? "s" : "");
    if (!text.is_failed)
        cli_say("%.*s", (int)text.size - 2, text.data);
    phema_strbuf_clear(&text);
}

bool report_write_checks(struct phema_strbuf *out, const struct phema_plan *plan)
{
    const struct phema_series_checks *checks = &plan->checks;
    if (checks->verdict <= PHEMA_SERIES_FITS)
        return false;
    bool is_wrong = checks->verdict == PHEMA_SERIES_WRONG;
    phema_strbuf_printf(out, "%s%s%s", is_wrong ? "the snapshots do not fit their labels: " : "",
                        checks->reason, is_wrong ? "; the error is unknown" : "");
    return true;
}

void report_plan(const struct cli_common *common, const struct phema_plan *plan,
                 enum phema_dtype output_dtype, bool has_dtype)
{
    if (common->is_quiet)
        return;
    if (plan->unmoved && plan->checks.verdict != PHEMA_SERIES_WRONG)
        cli_say("how the parameters moved cannot be seen: %s", plan->unmoved);
    const char *solver = plan->targets[0].solution.solver;
    const char *ridge =
        plan->targets[0].solution.ridge > 0 ? ", with a ridge for the rounding of the files" : "";
    if (strcmp(plan->metric, "motion") == 0)
        cli_say("metric motion: as a sample of the tensors was seen to move%s (--metric profile "
                "gives the paper's weights), solved in %s",
                ridge, solver);
    else if (strcmp(plan->metric, "walk") == 0)
        cli_say("metric walk%s (--metric profile gives the paper's weights), solved in %s", ridge,
                solver);
    else if (strcmp(plan->metric, "profile") == 0)
        cli_say("metric profile: the paper's and EDM2's weights, solved in %s", solver);
    else
        cli_say("weights as given in the file");
    const struct phema_series *series = plan->series;
    double stored = series->snapshots[series->n - 1].rounding;
    double written = has_dtype ? phema_dtype_rounding(output_dtype) : stored;
    for (size_t j = 0; j < plan->m; j++)
        report_target(plan, &plan->targets[j], series->n_tensors && written > 1e-7 ? written : 0);
    struct phema_strbuf rules = {0};
    report_rules(&rules, plan);
    if (rules.data && !rules.is_failed)
        (void)fputs(rules.data, stderr);
    phema_strbuf_clear(&rules);
    struct phema_strbuf checks = {0};
    if (report_write_checks(&checks, plan) && !checks.is_failed)
        cli_say("%s: %s", plan->checks.verdict == PHEMA_SERIES_WRONG ? "warning" : "note",
                checks.data);
    phema_strbuf_clear(&checks);
    for (size_t j = 0; j < plan->m; j++)
        warn(plan, &plan->targets[j]);
    for (size_t j = 0; j < plan->m; j++)
        if (j == 0 || plan->targets[j].ruled != plan->targets[j - 1].ruled)
            warn_of_rules(plan, &plan->targets[j]);
}

void report_into(const struct cli_common *common, const char *into,
                 const struct phema_outputs *outputs)
{
    if (common->is_quiet || !outputs->into_key)
        return;
    bool is_all = !*outputs->into_key;
    cli_say("replacing the tensors %s%s%s of a copy of %s%s", is_all ? "" : "below '",
            outputs->into_key, is_all ? "at the root" : "'", into,
            is_all ? "" : " (--key names another)");
}

/* ---- Parts of JSON ---- */

void report_profile_json(struct phema_json_out *out, const char *kind, const char *spec)
{
    if (kind)
        phema_json_out_string(out, "profile", kind);
    else
        phema_json_out_null(out, "profile");
    if (spec)
        phema_json_out_path(out, "spec", spec);
}

void report_snapshot_json(struct phema_json_out *out, const struct phema_snapshot *snapshot)
{
    phema_json_out_open(out, NULL, '{');
    phema_json_out_path(out, "file", snapshot->label);
    phema_json_out_number(out, "time", snapshot->time);
    phema_json_out_number(out, "sigma_rel", snapshot->sigma_rel);
    phema_json_out_number(out, "gamma", snapshot->gamma);
    report_profile_json(out, snapshot->kind, snapshot->spec);
    if (snapshot->profile.update_every > 1)
        phema_json_out_u64(out, "update_every", snapshot->profile.update_every);
    if (snapshot->profile.reset > 0)
        phema_json_out_number(out, "reset_at", snapshot->profile.reset);
    if (snapshot->profile.origin > 0)
        phema_json_out_number(out, "counted_from", snapshot->profile.origin);
    phema_json_out_close(out, '}');
}

void report_prediction_json(struct phema_json_out *out, const struct phema_prediction *predicted)
{
    phema_json_out_open(out, "predicted_error", '{');
    phema_json_out_number(out, "total", predicted->total);
    phema_json_out_number(out, "profile", predicted->profile);
    phema_json_out_number(out, "rounding", predicted->rounding);
    phema_json_out_number(out, "paper_weights", predicted->paper_weights);
    phema_json_out_close(out, '}');
}

/* ---- Rules: tensors with a width of their own ---- */

/* The largest predicted error over all times. */
static const struct phema_solution *worst_of(const struct phema_plan *plan, size_t r)
{
    const struct phema_solution *worst = &plan->targets[0].ruled[r];
    for (size_t j = 1; j < plan->m; j++)
        if (plan->targets[j].ruled[r].predicted.total > worst->predicted.total)
            worst = &plan->targets[j].ruled[r];
    return worst;
}

static void write_width(struct phema_strbuf *out, const struct phema_plan_rule *rule)
{
    phema_strbuf_puts(out, "rule '");
    phema_strbuf_puts_escaped(out, rule->expression);
    phema_strbuf_puts(out, "' (");
    if (rule->is_copy)
        phema_strbuf_puts(out, "copied from the newest)");
    else
        phema_strbuf_printf(out, "sigma_rel %.6g)", rule->sigma_rel);
}

void report_rules(struct phema_strbuf *out, const struct phema_plan *plan)
{
    for (size_t r = 0; r < plan->n_rules; r++) {
        const struct phema_plan_rule *rule = &plan->rules[r];
        const struct phema_solution *worst = worst_of(plan, r);
        if (rule->n_tensors)
            phema_strbuf_printf(out, "%zu tensor%s ", rule->n_tensors,
                                rule->n_tensors == 1 ? " follows" : "s follow");
        write_width(out, rule);
        if (!rule->is_copy && !isnan(worst->predicted.total))
            phema_strbuf_printf(out, ": predicted error %.1e of |theta|, gain |w| %.2f",
                                worst->predicted.total, worst->norm2);
        phema_strbuf_puts(out, "\n");
    }
}

static void write_solution_json(struct phema_json_out *out, const struct phema_solution *solution)
{
    phema_json_out_number(out, "profile_error", solution->profile_error);
    phema_json_out_number(out, "norm1", solution->norm1);
    phema_json_out_number(out, "norm2", solution->norm2);
    phema_json_out_number(out, "condition", solution->condition);
    phema_json_out_number(out, "ridge", solution->ridge);
    report_prediction_json(out, &solution->predicted);
}

void report_rules_json(struct phema_json_out *out, const struct phema_plan *plan,
                       const struct phema_target *target, bool has_weights)
{
    if (!plan->n_rules)
        return;
    phema_json_out_open(out, "rules", '[');
    for (size_t r = 0; r < plan->n_rules; r++) {
        const struct phema_plan_rule *rule = &plan->rules[r];
        phema_json_out_open(out, NULL, '{');
        phema_json_out_string(out, "pattern", rule->expression);
        if (plan->series->n_tensors)
            phema_json_out_u64(out, "tensors", rule->n_tensors);
        if (rule->is_copy) {
            phema_json_out_bool(out, "copy", true);
        } else {
            phema_json_out_number(out, "sigma_rel", rule->sigma_rel);
            phema_json_out_number(out, "gamma", rule->gamma);
            if (has_weights)
                phema_json_out_numbers(out, "weights", target->ruled[r].weights, plan->series->n);
            write_solution_json(out, &target->ruled[r]);
        }
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}
