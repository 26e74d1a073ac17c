/* targets.h - --sigma-rel, --gamma, --profile and --at to targets. */
#ifndef PLAN_TARGETS_H
#define PLAN_TARGETS_H

#include "phema/plan.h"

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

#endif
