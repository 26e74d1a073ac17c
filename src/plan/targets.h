/* targets.h - what a plan is made for: targets, rules for some tensors, or given weights. */
#ifndef PLAN_TARGETS_H
#define PLAN_TARGETS_H

#include "phema/plan.h"

/* ---- targets.c: --sigma-rel, --gamma, --profile and --at ---- */

/* PHEMA_ERR_TARGET: the target is later than every snapshot, or before the first. */
PHEMA_FALLIBLE target_check_time(const struct phema_target *target,
                                 const struct phema_series *series, struct phema_error *err);

/* Number of targets at each time. */
size_t targets_per_time(const struct phema_plan_options *options);

/* Fills in plan->targets, without weights. The series is open.
 * PHEMA_ERR_USAGE     an invalid SPEC
 * PHEMA_ERR_TARGET    an average that does not exist, or not at that time
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE targets_make(struct phema_plan *plan, const struct phema_plan_options *options,
                            struct phema_error *err);

/* Gives a target without profile the only one of the options. */
PHEMA_FALLIBLE target_resolve(struct phema_target *target, struct phema_plan *plan,
                              const struct phema_plan_options *options, struct phema_error *err);

/* Gives a target the SPEC of a file of weights. */
PHEMA_FALLIBLE target_resolve_spec(struct phema_target *target, struct phema_plan *plan,
                                   const char *text, struct phema_error *err);

/* Gives a target, whose time is known, the width of a file of weights. */
PHEMA_FALLIBLE target_resolve_width(struct phema_target *target, struct phema_plan *plan,
                                    double sigma_rel, struct phema_error *err);

/* ---- rules.c: --rule RE=SIGMA and RE=copy, tensors with a separate width ---- */

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

/* Marks the tensors that a rule copies as copies of the series, which have no part in its motion. */
void rules_mark_copies(struct phema_plan *plan);

/* Rules have been matched.
 * PHEMA_ERR_INPUTS  codes of a quantised tensor or their scale are averaged; the message has both
 *                   names */
PHEMA_FALLIBLE rules_check_quantised(const struct phema_plan *plan, struct phema_error *err);

/* Frees the patterns. */
void rules_clear(struct phema_plan *plan);

/* ---- variances.c ---- */

/* Gives a rule to variances that some target would make negative. All weights are known. Reads
 * these tensors of all snapshots where there are negative weights.
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE variances_keep_positive(struct phema_plan *plan, struct phema_error *err);

/* ---- weights_file.c: weights that are used as given instead of solved for ---- */

/* Reads the output of `weights --json`, or a plain list of "file weight" lines, into plan->targets.
 * Snapshots that the file does not name get 0. The JSON's own targets give sigma_rel and time; a
 * plain list has neither (NaN, the newest snapshot).
 * PHEMA_ERR_FILE      not readable, or not in either form
 * PHEMA_ERR_INPUTS    names a file that is not among the snapshots, or one twice
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE weights_file_read(struct phema_plan *plan, const char *path,
                                 struct phema_error *err);

/* The targets of --weights, with predicted errors where the file or the options give a target.
 * PHEMA_ERR_USAGE   the options contradict the file
 * PHEMA_ERR_TARGET  a time outside the series
 * and the failures of weights_file_read and motion_find */
PHEMA_FALLIBLE weights_file_use(struct phema_plan *plan, const struct phema_plan_options *options,
                                struct phema_error *err);

/* One target of weight 1, for a conversion of a single checkpoint. */
PHEMA_FALLIBLE weights_use_one(struct phema_plan *plan, struct phema_error *err);

#endif
