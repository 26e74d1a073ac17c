// SPDX-License-Identifier: Apache-2.0
/* plan_messages.c - what is told of a plan: records in JSON; remarks on its targets, and warnings
 * that its averages may not be what was asked for. What several targets have in common is said
 * once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/json.h"
#include "phema/plan.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

/* Predictions above this, or weights this large, deserve a warning. */
#define LARGE_ERROR 1e-2
#define LARGE_NORM  10.0

/* Snapshots of a smaller R^2 do not lie on a line. */
#define LEAST_R_SQUARED 0.7

#define MOST_NAMES 4 /* more targets of a remark are counted only */

void phema_target_write_name(struct phema_strbuf *out, const struct phema_target *target)
{
    struct phema_name_buffer at, spec;
    if (!target->kind)
        phema_strbuf_puts(out, "given weights");
    else if (isnan(target->sigma_rel))
        phema_strbuf_puts(out, phema_name_show(&spec, target->spec));
    else
        phema_strbuf_printf(out, "sigma_rel %.6g", target->sigma_rel);
    phema_strbuf_printf(out, " at %s", phema_number_format(&at, target->named_time));
}

/* ---- Warnings ---- */

static bool is_halved(const struct phema_series *series) /* files of 16 bits or less */
{
    for (size_t k = 0; k < series->n; k++)
        if (series->snapshots[k].rounding > 1e-5)
            return true;
    return false;
}

/* The reason for a large error, and what helps. */
static void write_remedy(struct phema_strbuf *out, const struct phema_plan *plan,
                         const struct phema_target *target)
{
    const struct phema_series *series = plan->series;
    const struct phema_prediction *predicted = &target->solution.predicted;
    bool is_rounding = predicted->rounding > predicted->profile;
    bool is_doubt = predicted->doubt > 2 * hypot(predicted->profile, predicted->rounding);
    if (target->mix.n_fits && target->r_squared < LEAST_R_SQUARED)
        phema_strbuf_printf(out,
                            "the snapshots do not lie on a line: R^2 %.2f; choose a window in "
                            "which they do, or an average",
                            target->r_squared);
    else if (target->mix.n_fits)
        phema_strbuf_puts(out,
                          "the snapshots scatter around the line, and it goes far beyond them; "
                          "choose an earlier time or a longer window");
    else if (is_doubt)
        phema_strbuf_printf(out, "the profile that was found may be off; give the true one by %s",
                            phema_setting_dashed(PHEMA_SET_INPUT_PROFILE));
    if (target->mix.n_fits || is_doubt)
        return;
    double narrowest = HUGE_VAL;
    for (size_t k = 0; k < series->n; k++)
        if (!isnan(series->snapshots[k].sigma_rel))
            narrowest = fmin(narrowest, series->snapshots[k].sigma_rel);
    const char *advise = phema_setting_dashed(PHEMA_SET_ADVISE);
    if (target->sigma_rel < narrowest && is_rounding && is_halved(series))
        phema_strbuf_puts(out, "narrower than every snapshot, so that large weights multiply the "
                               "rounding of the 16-bit files; store a smaller sigma_rel, or F32");
    else if (target->sigma_rel < narrowest)
        phema_strbuf_printf(out,
                            "narrower than every snapshot; store a smaller sigma_rel, or more "
                            "times (weights %s says how many)",
                            advise);
    else if (is_rounding)
        phema_strbuf_puts(out, is_halved(series)
                                   ? "most of the error is rounding of the 16-bit files; store "
                                     "F32, or choose a wider target"
                                   : "large weights multiply the rounding of the files; choose a "
                                     "wider target");
    else
        phema_strbuf_printf(out,
                            "too few snapshots for this width; store more times, or widths nearer "
                            "to it (weights %s says how many times)",
                            advise);
}

/* "expect a large error: ..."; false: no warning. Weights of wrong labels are wrong whatever their
 * size. */
static bool write_warning(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_target *target)
{
    const struct phema_solution *solution = &target->solution;
    bool is_wrong = solution->predicted.total > LARGE_ERROR;
    bool is_bent = target->mix.n_fits && target->r_squared < LEAST_R_SQUARED;
    if (plan->checks.verdict == PHEMA_SERIES_WRONG ||
        (!is_wrong && !is_bent && !(solution->norm2 > LARGE_NORM)))
        return false;
    const char *unless_wrong = is_bent ? "" : "the weights are large: ";
    phema_strbuf_puts(out, is_wrong ? "expect a large error: " : unless_wrong);
    write_remedy(out, plan, target);
    return true;
}

bool phema_target_write_warning(struct phema_strbuf *out, const struct phema_plan *plan,
                                const struct phema_target *target)
{
    struct phema_strbuf warning = {0};
    bool is_any = write_warning(&warning, plan, target);
    if (is_any && warning.data) {
        phema_target_write_name(out, target);
        phema_strbuf_printf(out, ": %s", warning.data);
    }
    phema_strbuf_clear(&warning);
    return is_any;
}

/* "the snapshots do not fit their labels: ..." */
static void write_wrong(struct phema_strbuf *out, const struct phema_series *series,
                        const struct phema_series_checks *checks)
{
    phema_strbuf_puts(out, "the snapshots do not fit ");
    if (series->assumed)
        phema_strbuf_printf(out,
                            "%s, the default of %s, which was assumed since the files do not say "
                            "it",
                            series->assumed, series->trainer);
    else
        phema_strbuf_puts(out, "their labels");
    phema_strbuf_printf(out, ": %s", checks->reason);
}

bool phema_series_write_doubt(struct phema_strbuf *out, const struct phema_series *series,
                              const struct phema_series_checks *checks)
{
    if (checks->verdict == PHEMA_SERIES_DOUBTFUL)
        phema_strbuf_puts(out, checks->reason);
    if (checks->verdict != PHEMA_SERIES_WRONG)
        return checks->verdict == PHEMA_SERIES_DOUBTFUL;
    write_wrong(out, series, checks);
    phema_strbuf_puts(out, "; the error is unknown");
    return true;
}

PHEMA_FALLIBLE phema_series_fail_wrong(const struct phema_series *series,
                                       const struct phema_series_checks *checks,
                                       struct phema_error *err)
{
    struct phema_strbuf text = {0};
    write_wrong(&text, series, checks);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status)
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s", text.data);
    phema_strbuf_clear(&text);
    if (status != PHEMA_ERR_INPUTS)
        return status;
    struct phema_name_buffer from;
    if (checks->setting)
        (void)phema_suggest(err, status, checks->setting, checks->value);
    else if (series->assumed)
        (void)phema_suggest(err, status, PHEMA_SET_INPUT_PROFILE, series->to_fill);
    if (checks->decays.reason && !isnan(checks->decays.from))
        (void)phema_suggest(err, status, PHEMA_SET_FROM,
                            phema_number_format(&from, checks->decays.from));
    return status;
}

void phema_series_write_warnings(struct phema_strbuf *out, const struct phema_series *series,
                                 const struct phema_series_checks *checks)
{
    bool is_open =
        checks->verdict == PHEMA_SERIES_UNKNOWN || checks->verdict == PHEMA_SERIES_DOUBTFUL;
    for (size_t i = series->n_notes - series->n_warnings; i < series->n_notes; i++)
        phema_strbuf_append(out, series->notes[i], strlen(series->notes[i]) + 1);
    if (series->assumption && is_open)
        phema_strbuf_append(out, series->assumption, strlen(series->assumption) + 1);
    if (phema_series_write_doubt(out, series, checks))
        phema_strbuf_append(out, "", 1);
}

/* ---- Remarks ---- */

/* Between two remarks of one target. */
static struct phema_strbuf *separate(struct phema_strbuf *out)
{
    phema_strbuf_puts(out, out->size ? ", " : "");
    return out;
}

/* Weights, snapshots and times of a target that are not as usual; false: all are. */
static bool write_remarks(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_target *target)
{
    double wanted_sum = strcmp(target->kind ? target->kind : "", "difference") == 0 ? 0 : 1;
    if (fabs(target->solution.sum - wanted_sum) > 1e-9)
        phema_strbuf_printf(out, "weights sum to %.9g", target->solution.sum);
    if (!isnan(target->r_squared))
        phema_strbuf_printf(separate(out), "R^2 of the line %.4f", target->r_squared);
    else if (target->mix.n_fits)
        phema_strbuf_puts(separate(out), "whether the snapshots lie on a line is unknown");
    if (target->n_left_out)
        phema_strbuf_printf(separate(out), "%zu later snapshot%s left out", target->n_left_out,
                            target->n_left_out == 1 ? "" : "s");
    if (plan->series->snapshots[target->newest].time < target->time && !plan->has_given_weights)
        phema_strbuf_puts(separate(out), "between two snapshots: later ones are used");
    if (target->n_repeated)
        phema_strbuf_printf(separate(out), "%zu snapshot%s left out that repeat%s another",
                            target->n_repeated, target->n_repeated == 1 ? "" : "s",
                            target->n_repeated == 1 ? "s" : "");
    double initial = target->solution.predicted.initial;
    if (initial > 0)
        phema_strbuf_printf(separate(out),
                            "%.2g %% are the parameters before training, which no snapshot shows: "
                            "they may add up to %.1e to the error",
                            100 * initial, initial);
    return out->size > 0;
}

/* One column of weights: a target, or a rule at the time of a target. */
struct column {
    struct phema_target target;
    struct phema_strbuf text;
    bool is_done;
};

static bool has_text(const struct column *column, const char *text)
{
    return column->text.data && strcmp(column->text.data, text) == 0;
}

/* "sigma_rel 0.02, 0.04 and 3 more at 64" of all columns with that text; the names of other shapes
 * and times are written out. */
static void write_names(struct phema_strbuf *out, const struct column *columns, size_t n,
                        const char *text)
{
    struct phema_name_buffer at;
    const struct phema_target *first = NULL;
    bool is_short = true;
    size_t n_equal = 0, n_written = 0;
    for (size_t i = 0; i < n; i++) {
        const struct phema_target *target = &columns[i].target;
        if (!has_text(&columns[i], text))
            continue;
        first = first ? first : target;
        n_equal++;
        is_short = is_short && target->kind && !isnan(target->sigma_rel) &&
                   target->named_time == first->named_time;
    }
    for (size_t i = 0; i < n && n_written < MOST_NAMES; i++) {
        if (!has_text(&columns[i], text))
            continue;
        phema_strbuf_puts(out, n_written ? ", " : is_short ? "sigma_rel " : "");
        if (is_short)
            phema_strbuf_printf(out, "%.6g", columns[i].target.sigma_rel);
        else
            phema_target_write_name(out, &columns[i].target);
        n_written++;
    }
    if (n_equal > n_written)
        phema_strbuf_printf(out, " and %zu more", n_equal - n_written);
    if (first && is_short)
        phema_strbuf_printf(out, " at %s", phema_number_format(&at, first->named_time));
}

/* A sentence for each text that differs from all before it. */
static void write_columns(struct phema_strbuf *out, struct column *columns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = columns[i].text.data;
        if (!text || columns[i].is_done)
            continue;
        write_names(out, columns, n, text);
        phema_strbuf_printf(out, ": %s", text);
        phema_strbuf_append(out, "", 1);
        for (size_t k = i; k < n; k++)
            columns[k].is_done |= has_text(&columns[k], text);
    }
    for (size_t i = 0; i < n; i++)
        phema_strbuf_clear(&columns[i].text);
}

bool phema_plan_is_first_of_time(const struct phema_plan *plan, size_t j)
{
    return j == 0 || plan->targets[j].time != plan->targets[j - 1].time;
}

size_t phema_target_variance_rule(const struct phema_plan *plan, const struct phema_target *target)
{
    size_t r = phema_plan_n_given_rules(plan);
    while (r < plan->n_rules && target->ruled[r].weights == target->solution.weights)
        r++;
    return r;
}

/* The columns of all targets, and of the rules of every time: borrowed views of the plan. */
static size_t list_columns(struct column *out, const struct phema_plan *plan, bool has_rules)
{
    size_t n = 0;
    for (size_t j = 0; j < plan->m; j++)
        out[n++] = (struct column){.target = plan->targets[j]};
    for (size_t j = 0; j < plan->m && has_rules; j++)
        for (size_t r = 0;
             r < phema_plan_n_given_rules(plan) && phema_plan_is_first_of_time(plan, j); r++) {
            if (plan->rules[r].is_copy)
                continue;
            out[n] = (struct column){.target = plan->targets[j]};
            out[n].target.sigma_rel = plan->rules[r].sigma_rel;
            out[n].target.mix.n_fits = 0;
            out[n++].target.solution = plan->targets[j].ruled[r];
        }
    return n;
}

/* What write has to say of each column. */
static void write_sentences(struct phema_strbuf *out, const struct phema_plan *plan, bool has_rules,
                            bool (*write)(struct phema_strbuf *out, const struct phema_plan *plan,
                                          const struct phema_target *target))
{
    struct column *columns = calloc(plan->m * (plan->n_rules + 1), sizeof(*columns));
    if (!columns) {
        out->is_failed = true;
        return;
    }
    size_t n = list_columns(columns, plan, has_rules);
    for (size_t i = 0; i < n; i++)
        (void)write(&columns[i].text, plan, &columns[i].target);
    write_columns(out, columns, n);
    free(columns);
}

void phema_plan_write_remarks(struct phema_strbuf *out, const struct phema_plan *plan)
{
    write_sentences(out, plan, false, write_remarks);
}

void phema_plan_write_warnings(struct phema_strbuf *out, const struct phema_plan *plan)
{
    phema_series_write_warnings(out, plan->series, &plan->checks);
    if (plan->other_labels)
        phema_strbuf_append(out, plan->other_labels, strlen(plan->other_labels) + 1);
    write_sentences(out, plan, true, write_warning);
}

/* ---- Records ---- */

#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct phema_snapshot, member)

const struct phema_field phema_snapshot_fields[] = {
    FIELD(PATH, ALWAYS, "file", label),
    FIELD(NUMBER, ALWAYS, "time", time),
    FIELD(NUMBER, ALWAYS, "sigma_rel", sigma_rel),
    FIELD(NUMBER, ALWAYS, "gamma", gamma),
    FIELD(TEXT, ALWAYS, "profile", kind),
    FIELD(PATH, IF_KNOWN, "spec", spec),
    FIELD(COUNT, IF_ABOVE_1, "update_every", profile.update_every),
    FIELD(NUMBER, IF_ABOVE_0, "reset_at", profile.reset),
    FIELD(NUMBER, IF_ABOVE_0, "counted_from", profile.origin),
    FIELD(TEXT, IF_KNOWN, "run", run),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member)                                                            \
    PHEMA_FIELD(kind, rule, name, struct phema_prediction, member)

const struct phema_field phema_prediction_fields[] = {
    FIELD(NUMBER, ALWAYS, "total", total),
    FIELD(NUMBER, ALWAYS, "profile", profile),
    FIELD(NUMBER, ALWAYS, "rounding", rounding),
    FIELD(NUMBER, ALWAYS, "paper_weights", paper_weights),
    FIELD(NUMBER, IF_ABOVE_0, "initial", initial),
    FIELD(NUMBER, IF_ABOVE_0, "scatter", scatter),
    FIELD(NUMBER, IF_ABOVE_0, "doubt", doubt),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct phema_solution, member)

const struct phema_field phema_solution_fields[] = {
    FIELD(NUMBER, ALWAYS, "sum", sum),
    FIELD(NUMBER, ALWAYS, "profile_error", profile_error),
    FIELD(NUMBER, ALWAYS, "norm1", norm1),
    FIELD(NUMBER, ALWAYS, "norm2", norm2),
    FIELD(NUMBER, ALWAYS, "condition", condition),
    FIELD(NUMBER, ALWAYS, "ridge", ridge),
    FIELD(TEXT, ALWAYS, "solver", solver),
    PHEMA_FIELD_OF(phema_prediction_fields, "predicted_error", struct phema_solution, predicted),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member) PHEMA_FIELD(kind, rule, name, struct phema_target, member)

const struct phema_field phema_target_fields[] = {
    FIELD(NUMBER, ALWAYS, "sigma_rel", sigma_rel),
    FIELD(NUMBER, ALWAYS, "gamma", gamma),
    FIELD(NUMBER, ALWAYS, "time", time),
    FIELD(TEXT, ALWAYS, "profile", kind),
    FIELD(PATH, IF_KNOWN, "spec", spec),
    FIELD(NUMBER, IF_KNOWN, "r_squared", r_squared),
    FIELD(NUMBER, ALWAYS, "label_profile_error", label_profile_error),
    FIELD(NUMBER, ALWAYS, "label_predicted_error", label_predicted_error),
    {0},
};

#undef FIELD
#define FIELD(kind, rule, name, member)                                                            \
    PHEMA_FIELD(kind, rule, name, struct phema_plan_rule, member)

const struct phema_field phema_rule_fields[] = {
    FIELD(TEXT, ALWAYS, "pattern", expression), FIELD(COUNT, ALWAYS, "tensors", n_tensors),
    FIELD(BOOL, IF_ABOVE_0, "copy", is_copy),   FIELD(NUMBER, IF_KNOWN, "sigma_rel", sigma_rel),
    FIELD(NUMBER, IF_KNOWN, "gamma", gamma),    {0},
};

void phema_plan_write_motion(struct phema_json_out *out, const struct phema_plan *plan)
{
    const struct phema_series *series = plan->series;
    const struct phema_motion *motion = plan->motion;
    if (!motion)
        return;
    phema_json_out_open(out, "motion", '{');
    phema_json_out_numbers(out, "ends", motion->ends, motion->n_intervals);
    phema_json_out_numbers(out, "wander", motion->wander, motion->n_intervals);
    phema_json_out_numbers(out, "jitter", motion->jitter, motion->n_intervals);
    if (motion->speed)
        phema_json_out_numbers(out, "speed", motion->speed, motion->n_intervals);
    phema_json_out_open(out, "rounding", '[');
    for (size_t k = 0; k < series->n; k++)
        phema_json_out_number(out, NULL, series->snapshots[k].rounding);
    phema_json_out_close(out, ']');
    phema_json_out_number(out, "misfit", motion->misfit);
    phema_json_out_close(out, '}');
}

void phema_series_checks_write(struct phema_json_out *out, const struct phema_series_checks *checks,
                               const struct phema_series *series)
{
    static const char *const verdicts[] = {[PHEMA_SERIES_UNKNOWN] = "unknown",
                                           [PHEMA_SERIES_UNCHECKED] = "unchecked",
                                           [PHEMA_SERIES_FITS] = "fits",
                                           [PHEMA_SERIES_DOUBTFUL] = "doubtful",
                                           [PHEMA_SERIES_WRONG] = "wrong"};
    phema_json_out_open(out, "checks", '{');
    phema_json_out_string(out, "verdict", verdicts[checks->verdict]);
    phema_json_out_number(out, "max_z", checks->verdict ? checks->max_z : PHEMA_UNKNOWN);
    phema_json_out_number(out, "median_z", checks->verdict ? checks->median_z : PHEMA_UNKNOWN);
    phema_json_out_string(out, "reason", checks->reason);
    phema_json_out_open(out, "suspects", '[');
    for (size_t k = 0; checks->verdict > PHEMA_SERIES_FITS && k < series->n; k++) {
        double z = checks->z ? checks->z[k] : PHEMA_UNKNOWN;
        if (k != checks->suspect && !(z > PHEMA_SUSPECT_Z))
            continue;
        phema_json_out_open(out, NULL, '{');
        phema_json_out_path(out, "file", series->snapshots[k].label);
        phema_json_out_number(out, "z", z);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
    phema_json_out_close(out, '}');
}
