/* weights_file.h - weights from a file instead of from the solver. */
#ifndef PLAN_WEIGHTS_FILE_H
#define PLAN_WEIGHTS_FILE_H

#include "phema/plan.h"

/* Reads what `weights --json` prints, or a plain list of "file weight" lines, into plan->targets:
 * weights are used exactly as given; snapshots the file does not name get 0. The JSON's own targets
 * give sigma_rel and time; a plain list has none of its own (NaN, the newest snapshot).
 * PHEMA_ERR_FILE    not readable, not what is expected
 * PHEMA_ERR_INPUTS  names a file that is not among the snapshots, or one twice */
PHEMA_FALLIBLE weights_file_read(struct phema_plan *plan, const char *path,
                                 struct phema_error *err);

#endif
