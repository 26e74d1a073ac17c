/* rules.h - --rule RE=SIGMA and RE=copy: tensors with a separate width. */
#ifndef PLAN_RULES_H
#define PLAN_RULES_H

#include "phema/plan.h"

/* Fills in plan->rules from 'RE=SIGMA' and 'RE=copy', split at the last '='.
 * PHEMA_ERR_USAGE     another form, an invalid expression, too many
 * PHEMA_ERR_TARGET    a width out of range
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE rules_read(struct phema_plan *plan, const char *const *texts, size_t n,
                          struct phema_error *err);

/* Fills in plan->rule_of, once the series is open. Rules stay unchecked where the series has no
 * tensors (weights from names alone).
 * PHEMA_ERR_USAGE     a search meets the limits of the regular expressions
 * PHEMA_ERR_INPUTS    a rule that no tensor follows: a typo; tensors of one storage under two rules
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE rules_match(struct phema_plan *plan, struct phema_error *err);

/* Marks the tensors that a rule copies as copies of the series. Must come last: the weights of
 * other tensors depend on which tensors are averaged. */
void rules_mark_copies(struct phema_plan *plan);

/* A copy of a target with the rule's width. */
struct phema_target rules_column(const struct phema_plan_rule *rule,
                                 const struct phema_target *target);

/* Rules have been matched.
 * PHEMA_ERR_INPUTS  codes of a quantised tensor or their scale are averaged; the message has both
 *                   names */
PHEMA_FALLIBLE rules_check_quantised(const struct phema_plan *plan, struct phema_error *err);

/* Frees rules and their weights. */
void rules_clear(struct phema_plan *plan);

#endif
