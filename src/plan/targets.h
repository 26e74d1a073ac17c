/* targets.h - what the options want: widths, exponents and SPECs, each at every time. */
#ifndef PLAN_TARGETS_H
#define PLAN_TARGETS_H

#include "phema/plan.h"

/* How many there are at each time. */
size_t targets_per_time(const struct phema_plan_options *options);

/* plan->targets, of its series, without weights.
 * PHEMA_ERR_USAGE   a SPEC that is none
 * PHEMA_ERR_TARGET  an average that does not exist, or not at that time */
PHEMA_FALLIBLE targets_make(struct phema_plan *plan, const struct phema_plan_options *options,
                            struct phema_error *err);

/* What the options want of weights that came without a target; they want one thing. */
PHEMA_FALLIBLE target_resolve(struct phema_target *target, struct phema_plan *plan,
                              const struct phema_plan_options *options, struct phema_error *err);

/* The SPEC of a file of weights. */
PHEMA_FALLIBLE target_resolve_spec(struct phema_target *target, struct phema_plan *plan,
                                   const char *text, struct phema_error *err);

/* The width of a file of weights; the target's time is known. */
PHEMA_FALLIBLE target_resolve_width(struct phema_target *target, struct phema_plan *plan,
                                    double sigma_rel, struct phema_error *err);

#endif
