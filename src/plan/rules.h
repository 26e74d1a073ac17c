/* rules.h - tensors with a width of their own: rules read, and which of them each tensor follows.
 */
#ifndef PLAN_RULES_H
#define PLAN_RULES_H

#include "phema/plan.h"

/* plan->rules from 'RE=SIGMA' and 'RE=copy'; the last '=' is the one that counts.
 * PHEMA_ERR_USAGE   not of this form, an expression that is none, too many
 * PHEMA_ERR_TARGET  a width out of range */
PHEMA_FALLIBLE rules_read(struct phema_plan *plan, const char *const *texts, size_t n,
                          struct phema_error *err);

/* plan->rule_of, once the series is open; nothing where it has no tensors (weights of names alone).
 * PHEMA_ERR_INPUTS  a rule that nothing follows: a typo; tensors of one storage under two rules */
PHEMA_FALLIBLE rules_match(struct phema_plan *plan, struct phema_error *err);

/* Tensors that a rule copies become the series' copies. Last of all, so that a rule changes nothing
 * of the weights of other tensors: how snapshots are rated depends on what is averaged in them. */
void rules_mark_copies(struct phema_plan *plan);

/* A target of a rule's width in place of the other's. */
struct phema_target rules_column(const struct phema_plan_rule *rule,
                                 const struct phema_target *target);

/* PHEMA_ERR_INPUTS  codes of a quantised tensor or their scale are averaged; names both. Rules have
 * been matched. */
PHEMA_FALLIBLE rules_check_quantised(const struct phema_plan *plan, struct phema_error *err);

void rules_clear(struct phema_plan *plan);

#endif
