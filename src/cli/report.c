// SPDX-License-Identifier: Apache-2.0
/* report.c - summaries on stderr, tables and JSON for stdout. */
#include "report.h"

#include "advice_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule_report.h"

/* Predictions above this, or weights this large, deserve a warning. */
#define LARGE_ERROR 1e-2
#define LARGE_NORM  10.0

/* A line on stderr; names of files in it cannot move the cursor. line: NULL for none */
static void say(const char *line)
{
    struct phema_text text = {0};
    if (line)
        phema_text_puts_shown(&text, line);
    if (text.data && !text.is_failed)
        (void)fprintf(stderr, "%s\n", text.data);
    phema_text_clear(&text);
}

static void say_prefixed(const char *prefix, const char *sentence)
{
    struct phema_text text = {0};
    phema_text_puts(&text, prefix);
    phema_text_puts(&text, sentence);
    say(text.is_failed ? NULL : text.data);
    phema_text_clear(&text);
}

const char *report_named_unit(const struct phema_series *series)
{
    return strcmp(series->layout, "edm2") == 0 ? "kimg" : series->unit;
}

static void write_times(struct phema_text *out, const struct phema_series *series)
{
    size_t n_times = 0;
    for (size_t k = 0; k < series->n; k++)
        n_times += k == 0 || series->snapshots[k].named_time != series->snapshots[k - 1].named_time;
    const char *named_in = report_named_unit(series);
    struct phema_name_buffer from, to;
    (void)phema_number_shown(&from, series->snapshots[0].named_time);
    (void)phema_number_shown(&to, series->snapshots[series->n - 1].named_time);
    if (n_times == 1)
        phema_text_printf(out, "one time, %s %s", from.text, named_in);
    else
        phema_text_printf(out, "%zu times, %s to %s %s", n_times, from.text, to.text, named_in);
}

static void write_widths(struct phema_text *out, const struct phema_series *series)
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
            phema_text_puts(out, ", ...");
            return;
        }
        shown[n++] = width;
        phema_text_printf(out, "%s%.6g", n == 1 ? "; sigma_rel " : ", ", width);
    }
}

/* Those that are no power functions, each once. */
static void write_shapes(struct phema_text *out, const struct phema_series *series)
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
            phema_text_puts(out, ", ...");
            return;
        }
        shown[n++] = snapshot->spec;
        phema_text_printf(out, "%s%s", n == 1 ? "; " : ", ", snapshot->spec);
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
    struct phema_text text = {0};
    phema_text_printf(&text, "%s: %zu snapshot%s, layout %s, ", series->root, series->n,
                      series->n == 1 ? "" : "s", series->layout);
    write_times(&text, series);
    write_widths(&text, series);
    if (series->n && series->snapshots[0].profile.update_every > 1)
        phema_text_printf(&text, ", updated every %llu steps",
                          (unsigned long long)series->snapshots[0].profile.update_every);
    write_shapes(&text, series);
    size_t n_averaged = 0;
    struct phema_name_buffer shown;
    uint64_t bytes = bytes_of_tensors(series, &n_averaged);
    if (series->n_tensors)
        phema_text_printf(&text, "; %zu tensors (%zu averaged), %s each", series->n_tensors,
                          n_averaged, phema_size_shown(&shown, bytes));
    say(text.data);
    phema_text_clear(&text);
    for (size_t i = 0; i < series->n_notes; i++)
        say(series->notes[i]);
    for (size_t i = 0; common->is_verbose && i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        if (entry->rule == PHEMA_RULE_COPY)
            (void)fprintf(stderr, "copied from the newest: '%s' (%s)\n",
                          phema_name_shown(&shown, entry->tensor.name, entry->tensor.name_size),
                          entry->reason);
    }
}

void report_conversion(const struct cli_common *common, const struct phema_series *series)
{
    if (common->is_quiet)
        return;
    size_t n_averaged = 0;
    struct phema_name_buffer shown;
    (void)fprintf(stderr, "%s: %s, %zu tensors, %s, as they are\n", series->root,
                  phema_checkpoint_format(series->snapshots[0].checkpoint), series->n_tensors,
                  phema_size_shown(&shown, bytes_of_tensors(series, &n_averaged)));
    for (size_t i = 0; i < series->n_notes; i++)
        say(series->notes[i]);
}

void report_target_name(struct phema_text *out, const struct phema_target *target)
{
    struct phema_name_buffer at, spec;
    if (!target->kind)
        phema_text_printf(out, "given weights at %s", phema_number_shown(&at, target->named_time));
    else if (isnan(target->sigma_rel))
        phema_text_printf(out, "%s at %s",
                          phema_name_shown(&spec, target->spec, strlen(target->spec)),
                          phema_number_shown(&at, target->named_time));
    else
        phema_text_printf(out, "sigma_rel %.6g at %s", target->sigma_rel,
                          phema_number_shown(&at, target->named_time));
}

/* Why it is large, and what would help. */
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
                     "sigma_rel, "
                     "or more times, would help (weights --advise says how many)";
    if (solution->predicted.rounding > solution->predicted.profile)
        return is_halved
                   ? "most of the error is rounding of the 16-bit files: snapshots in F32, or "
                     "a wider target, would help"
                   : "most of the error is rounding of the files, which large weights "
                     "multiply: a wider target would help";
    return "there are too few snapshots for it: more times, or widths nearer to the target's, "
           "would "
           "help (weights --advise says how many times)";
}

bool report_write_warning(struct phema_text *out, const struct phema_plan *plan,
                          const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    bool is_wrong = solution->predicted.total > LARGE_ERROR;
    if (!is_wrong && !(solution->norm2 > LARGE_NORM))
        return false;
    report_target_name(out, target);
    phema_text_printf(out, ": %s; %s",
                      is_wrong ? "the error to expect is large" : "the weights are large",
                      remedy(plan, target));
    return true;
}

static void warn(const struct phema_plan *plan, const struct phema_target *target)
{
    struct phema_text text = {0};
    if (report_write_warning(&text, plan, target) && !text.is_failed)
        (void)fprintf(stderr, "warning: %s\n", text.data);
    phema_text_clear(&text);
}

/* target: any of the time in question */
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
    struct phema_text text = {0};
    report_target_name(&text, target);
    phema_text_puts(&text, ": ");
    if (!isnan(predicted->total))
        phema_text_printf(&text,
                          "predicted error %.1e of |theta| (profile %.0e, rounding %.0e), gain |w| "
                          "%.2f, ",
                          predicted->total, predicted->profile, predicted->rounding,
                          solution->norm2);
    if (!isnan(predicted->paper_weights) && strcmp(plan->metric, "profile") != 0)
        phema_text_printf(&text, "paper's weights would give %.1e, ", predicted->paper_weights);
    if (!isnan(target->label_predicted_error))
        phema_text_printf(&text, "believing the labels would give %.1e, ",
                          target->label_predicted_error);
    if (!isnan(solution->profile_error))
        phema_text_printf(&text, "profile error %.2e, ", solution->profile_error);
    if (written_error > 0)
        phema_text_printf(&text, "the dtype written adds %.1e, ", written_error);
    double wanted_sum = strcmp(target->kind ? target->kind : "", "difference") == 0 ? 0 : 1;
    if (fabs(solution->sum - wanted_sum) > 1e-9)
        phema_text_printf(&text, "weights sum to %.9g, ", solution->sum);
    if (target->n_left_out)
        phema_text_printf(&text, "%zu later snapshot%s left out, ", target->n_left_out,
                          target->n_left_out == 1 ? "" : "s");
    if (plan->series->snapshots[target->newest].time < target->time && !plan->has_given_weights)
        phema_text_puts(&text, "between two snapshots: later ones are used, ");
    if (target->n_repeated)
        phema_text_printf(&text, "%zu snapshot%s left out that repeat%s another, ",
                          target->n_repeated, target->n_repeated == 1 ? "" : "s",
                          target->n_repeated == 1 ? "s" : "");
    if (!text.is_failed)
        (void)fprintf(stderr, "%.*s\n", (int)text.size - 2, text.data);
    phema_text_clear(&text);
}

void report_plan(const struct cli_common *common, const struct phema_plan *plan,
                 enum phema_dtype output_dtype, bool has_dtype)
{
    if (common->is_quiet)
        return;
    if (plan->series->unmoved)
        say_prefixed("how the parameters moved cannot be seen: ", plan->series->unmoved);
    const char *ridge =
        plan->targets[0].solution.ridge > 0 ? ", with a ridge for the rounding of the files" : "";
    if (strcmp(plan->metric, "motion") == 0)
        (void)fprintf(stderr,
                      "metric motion: as a sample of the tensors was seen to move%s (--metric "
                      "profile gives the paper's weights), solved in %s\n",
                      ridge, plan->targets[0].solution.solver);
    else if (strcmp(plan->metric, "walk") == 0)
        (void)fprintf(stderr,
                      "metric walk%s (--metric profile gives the paper's weights), solved "
                      "in %s\n",
                      ridge, plan->targets[0].solution.solver);
    else if (strcmp(plan->metric, "profile") == 0)
        (void)fprintf(stderr, "metric profile: the paper's and EDM2's weights, solved in %s\n",
                      plan->targets[0].solution.solver);
    else
        (void)fprintf(stderr, "weights as given in the file\n");
    const struct phema_series *series = plan->series;
    double stored = series->snapshots[series->n - 1].rounding;
    double written = has_dtype ? phema_dtype_rounding(output_dtype) : stored;
    for (size_t j = 0; j < plan->m; j++)
        report_target(plan, &plan->targets[j], series->n_tensors && written > 1e-7 ? written : 0);
    struct phema_text rules = {0};
    rule_report_write(&rules, plan);
    if (rules.data && !rules.is_failed)
        (void)fputs(rules.data, stderr);
    phema_text_clear(&rules);
    if (series->doubts)
        say_prefixed("warning: ", series->doubts);
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
    (void)fprintf(stderr, "replacing the tensors %s%s%s of a copy of %s%s\n",
                  is_all ? "" : "below '", outputs->into_key, is_all ? "at the root" : "'", into,
                  is_all ? "" : " (--key names another)");
}

static size_t directory_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* What is left to do: outputs beside each other are joined by the directory that holds them. */
static void report_join(const struct phema_outputs *outputs, uint64_t n_parts)
{
    const char *first = outputs->items[0].path;
    size_t size = directory_size(first);
    bool is_beside = outputs->m > 1;
    for (size_t j = 1; j < outputs->m; j++)
        is_beside = is_beside && directory_size(outputs->items[j].path) == size &&
                    memcmp(outputs->items[j].path, first, size) == 0;
    struct phema_text text = {0};
    char *directory = size ? strndup(first, size) : strdup("./");
    for (size_t j = 0; j < outputs->m && !is_beside; j++) {
        phema_text_puts(&text, " ");
        cli_shell_quote(&text, outputs->items[j].path);
    }
    if (is_beside && directory) {
        phema_text_puts(&text, " ");
        cli_shell_quote(&text, directory);
    }
    if (text.data && !text.is_failed)
        (void)fprintf(stderr, "when all %llu parts are written: posthoc-ema join%s\n",
                      (unsigned long long)n_parts, text.data);
    free(directory);
    phema_text_clear(&text);
}

static void report_io(const struct phema_synth_result *result)
{
    const char *between = "snapshots: ";
    if (result->n_mapped)
        (void)fprintf(stderr, "%s%zu file%s mapped", between, result->n_mapped,
                      result->n_mapped == 1 ? "" : "s");
    between = result->n_mapped ? ", " : between;
    if (result->n_read)
        (void)fprintf(stderr, "%s%zu file%s read", between, result->n_read,
                      result->n_read == 1 ? "" : "s");
    if (result->n_read && result->filesystem)
        (void)fprintf(stderr, " (on %s)", result->filesystem);
    between = result->n_read ? ", " : between;
    if (result->n_direct)
        (void)fprintf(stderr, "%s%zu file%s read past the page cache", between, result->n_direct,
                      result->n_direct == 1 ? "" : "s");
    (void)fprintf(stderr, "\n");
}

static void report_resumed(const struct phema_synth_result *result)
{
    struct phema_name_buffer read;
    if (result->n_resumed)
        (void)fprintf(stderr,
                      "went on with %zu output%s of an ended run: %s need not be read again\n",
                      result->n_resumed, result->n_resumed == 1 ? "" : "s",
                      phema_size_shown(&read, result->resumed_bytes));
    if (result->n_others)
        (void)fprintf(stderr,
                      "%zu output%s begun by a run with other snapshots, weights or options, and "
                      "%s made anew\n",
                      result->n_others, result->n_others == 1 ? " was" : "s were",
                      result->n_others == 1 ? "is" : "are");
    if (result->n_unresumable)
        (void)fprintf(stderr,
                      "%zu output%s of a form that is always made in one go: a copy whose tensors "
                      "are strided or overlap\n",
                      result->n_unresumable, result->n_unresumable == 1 ? " is" : "s are");
}

void report_synth(const struct cli_common *common, const struct phema_plan *plan,
                  const struct phema_outputs *outputs, const struct phema_synth_result *result)
{
    if (common->is_quiet)
        return;
    struct phema_name_buffer written, read, rate, memory, name;
    const struct phema_series *series = plan->series;
    if (result->n_nan + result->n_inf)
        (void)fprintf(stderr,
                      "warning: %llu NaN and %llu infinite elements, the first in tensor '%s'\n",
                      (unsigned long long)result->n_nan, (unsigned long long)result->n_inf,
                      phema_name_shown(&name, series->tensors[result->nan_tensor].tensor.name,
                                       series->tensors[result->nan_tensor].tensor.name_size));
    if (result->n_overflow)
        (void)fprintf(stderr, "warning: %llu averages were too large for the dtype\n",
                      (unsigned long long)result->n_overflow);
    if (result->n_leftovers)
        (void)fprintf(stderr, "%zu output%s begun by a run that was killed, and %s made anew\n",
                      result->n_leftovers, result->n_leftovers == 1 ? " was" : "s were",
                      result->n_leftovers == 1 ? "is" : "are");
    report_resumed(result);
    double worst = 0;
    for (size_t j = 0; j < plan->m; j++)
        worst = fmax(worst, plan->targets[j].solution.profile_error);
    if (result->n_parts)
        (void)fprintf(stderr, "part %llu of %llu of ", (unsigned long long)result->part,
                      (unsigned long long)result->n_parts);
    (void)fprintf(stderr, "%zu output%s, %s, in %.2f s: read %s (%s/s), peak anonymous memory %s",
                  outputs->m, outputs->m == 1 ? "" : "s",
                  phema_size_shown(&written, result->written_bytes), result->elapsed_s,
                  phema_size_shown(&read, result->read_bytes),
                  phema_size_shown(&rate, (uint64_t)((double)result->read_bytes /
                                                     fmax(result->elapsed_s, 1e-6))),
                  phema_size_shown(&memory, result->peak_anonymous_bytes));
    if (!isnan(plan->targets[0].solution.profile_error))
        (void)fprintf(stderr, ", profile error %.2e%s", worst, plan->m > 1 ? " at most" : "");
    (void)fprintf(stderr, "\n");
    if (common->is_verbose)
        report_io(result);
    if (common->is_verbose)
        (void)fprintf(stderr,
                      "%zu tensors averaged, %zu copied, %zu equal in all snapshots and copied; "
                      "kernels %s, %u thread%s\n",
                      result->n_averaged, result->n_copied, result->n_constant, result->backend,
                      result->n_threads, result->n_threads == 1 ? "" : "s");
    if (result->n_parts)
        report_join(outputs, result->n_parts);
}

/* ---- weights ---- */

void report_profile_json(struct phema_json_out *out, const char *kind, const char *spec)
{
    if (kind)
        phema_json_out_string(out, "profile", kind);
    else
        phema_json_out_null(out, "profile");
    if (spec)
        phema_json_out_string(out, "spec", spec);
}

void report_snapshot_json(struct phema_json_out *out, const struct phema_snapshot *snapshot)
{
    phema_json_out_open(out, NULL, '{');
    phema_json_out_string(out, "file", snapshot->label);
    phema_json_out_number(out, "time", snapshot->time);
    phema_json_out_number(out, "sigma_rel", snapshot->sigma_rel);
    phema_json_out_number(out, "gamma", snapshot->gamma);
    report_profile_json(out, snapshot->kind, snapshot->spec);
    if (snapshot->profile.update_every > 1)
        phema_json_out_u64(out, "update_every", snapshot->profile.update_every);
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

static void write_target_json(struct phema_json_out *out, const struct phema_plan *plan,
                              const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    phema_json_out_open(out, NULL, '{');
    phema_json_out_number(out, "sigma_rel", target->sigma_rel);
    phema_json_out_number(out, "gamma", target->gamma);
    phema_json_out_number(out, "time", target->time);
    if (target->named_time != target->time)
        phema_json_out_number(out, "named_time", target->named_time);
    report_profile_json(out, target->kind, target->spec);
    phema_json_out_numbers(out, "weights", solution->weights, plan->series->n);
    phema_json_out_number(out, "sum", solution->sum);
    phema_json_out_number(out, "profile_error", solution->profile_error);
    if (!isnan(target->label_profile_error)) {
        phema_json_out_number(out, "label_profile_error", target->label_profile_error);
        phema_json_out_number(out, "label_predicted_error", target->label_predicted_error);
    }
    phema_json_out_number(out, "norm1", solution->norm1);
    phema_json_out_number(out, "norm2", solution->norm2);
    phema_json_out_number(out, "condition", solution->condition);
    phema_json_out_string(out, "metric", plan->metric);
    phema_json_out_number(out, "ridge", solution->ridge);
    phema_json_out_string(out, "solver", solution->solver);
    report_prediction_json(out, &solution->predicted);
    rule_report_json(out, plan, target, true);
    phema_json_out_close(out, '}');
}

void report_weights_json(struct phema_text *out, const struct phema_plan *plan,
                         const struct phema_plan_advice *advice, double max_error)
{
    struct phema_json_out json = {.text = out, .is_pretty = true};
    phema_json_out_open(&json, NULL, '{');
    phema_json_out_u64(&json, "version", 1);
    phema_json_out_string(&json, "unit", plan->series->unit);
    phema_json_out_open(&json, "snapshots", '[');
    for (size_t k = 0; k < plan->series->n; k++)
        report_snapshot_json(&json, &plan->series->snapshots[k]);
    phema_json_out_close(&json, ']');
    phema_series_write_motion(&json, plan->series);
    phema_json_out_open(&json, "targets", '[');
    for (size_t j = 0; j < plan->m; j++)
        write_target_json(&json, plan, &plan->targets[j]);
    phema_json_out_close(&json, ']');
    if (advice)
        advice_report_json(&json, plan, advice, max_error);
    phema_json_out_close(&json, '}');
    phema_text_puts(out, "\n");
}

/* sigma_rel, or the text of another shape: 13 characters or more. */
static int write_title(struct phema_text *out, const struct phema_target *target)
{
    char width[32] = "weight";
    if (!isnan(target->sigma_rel))
        (void)snprintf(width, sizeof(width), "%.6g", target->sigma_rel);
    struct phema_name_buffer spec;
    const char *title = target->kind && isnan(target->sigma_rel)
                            ? phema_name_shown(&spec, target->spec, strlen(target->spec))
                            : width;
    if (out)
        phema_text_printf(out, " %13s", title);
    return strlen(title) > 13 ? (int)strlen(title) : 13;
}

void report_weights_table(struct phema_text *out, const struct phema_plan *plan)
{
    const struct phema_series *series = plan->series;
    int width = 4;
    for (size_t k = 0; k < series->n; k++)
        if ((int)strlen(series->snapshots[k].label) > width)
            width = (int)strlen(series->snapshots[k].label);
    phema_text_printf(out, "%-*s", width, "file");
    for (size_t j = 0; j < plan->m; j++)
        (void)write_title(out, &plan->targets[j]);
    rule_report_titles(out, plan);
    phema_text_puts(out, "\n");
    for (size_t k = 0; k < series->n; k++) {
        struct phema_name_buffer label;
        phema_text_printf(out, "%-*s", width,
                          phema_name_shown(&label, series->snapshots[k].label,
                                           strlen(series->snapshots[k].label)));
        for (size_t j = 0; j < plan->m; j++)
            phema_text_printf(out, " %*.6e", write_title(NULL, &plan->targets[j]),
                              plan->targets[j].solution.weights[k]);
        rule_report_weights(out, plan, k);
        phema_text_puts(out, "\n");
    }
}
