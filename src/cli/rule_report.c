// SPDX-License-Identifier: Apache-2.0
/* rule_report.c - see rule_report.h. */
#include "rule_report.h"

#include "print_summary.h"

#include <math.h>
#include <string.h>

/* A column is as wide as its title; a longer one is called by its number. */
#define MIN_COLUMN 13
#define MAX_TITLE  32

/* Targets of one time share the solutions of the rules: the first of them speaks for all. */
static bool is_first_of_time(const struct phema_plan *plan, size_t j)
{
    return j == 0 || plan->targets[j].ruled != plan->targets[j - 1].ruled;
}

/* Of all times. */
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

void rule_report_write(struct phema_strbuf *out, const struct phema_plan *plan)
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

void rule_report_json(struct phema_json_out *out, const struct phema_plan *plan,
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

/* ---- The table of weights ---- */

static void write_column(struct phema_strbuf *out, const struct phema_plan *plan, size_t r,
                         const double *weight)
{
    const struct phema_plan_rule *rule = &plan->rules[r];
    struct phema_strbuf title = {0};
    phema_strbuf_puts_escaped(&title, rule->expression);
    phema_strbuf_printf(&title, "=%.6g", rule->sigma_rel);
    if (title.size > MAX_TITLE) {
        phema_strbuf_clear(&title);
        phema_strbuf_printf(&title, "rule %zu: %.6g", r + 1, rule->sigma_rel);
    }
    int width = title.size < MIN_COLUMN ? MIN_COLUMN : (int)title.size;
    if (weight)
        phema_strbuf_printf(out, " %*.6e", width, *weight);
    else
        phema_strbuf_printf(out, " %*s", width, title.is_failed ? "" : title.data);
    phema_strbuf_clear(&title);
}

void rule_report_titles(struct phema_strbuf *out, const struct phema_plan *plan)
{
    for (size_t j = 0; j < plan->m; j++)
        for (size_t r = 0; r < plan->n_rules && is_first_of_time(plan, j); r++)
            if (!plan->rules[r].is_copy)
                write_column(out, plan, r, NULL);
}

void rule_report_weights(struct phema_strbuf *out, const struct phema_plan *plan, size_t k)
{
    for (size_t j = 0; j < plan->m; j++)
        for (size_t r = 0; r < plan->n_rules && is_first_of_time(plan, j); r++)
            if (!plan->rules[r].is_copy)
                write_column(out, plan, r, &plan->targets[j].ruled[r].weights[k]);
}
