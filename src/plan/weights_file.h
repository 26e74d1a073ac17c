/* weights_file.h - weights that are used as given instead of solved for. */
#ifndef PLAN_WEIGHTS_FILE_H
#define PLAN_WEIGHTS_FILE_H

#include "phema/plan.h"

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
