/* rule_report.h - tensors with a width of their own, in what other reports say. All of it is
 * nothing where there are no rules. */
#ifndef CLI_RULE_REPORT_H
#define CLI_RULE_REPORT_H

#include "options.h"
#include "phema/json.h"
#include "phema/plan.h"

/* Lines: how many tensors follow each rule, and the error to expect of them. */
void rule_report_write(struct phema_strbuf *out, const struct phema_plan *plan);

/* A member of the object of a target: "rules", one for each, with their weights or without. */
void rule_report_json(struct phema_json_out *out, const struct phema_plan *plan,
                      const struct phema_target *target, bool has_weights);

/* A column for each rule and time, behind those of the targets: titles, and snapshot k's weights.
 */
void rule_report_titles(struct phema_strbuf *out, const struct phema_plan *plan);
void rule_report_weights(struct phema_strbuf *out, const struct phema_plan *plan, size_t k);

#endif
