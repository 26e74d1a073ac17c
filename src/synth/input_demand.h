/* input_demand.h - the files of snapshots that a run of another process' plan opens. */
#ifndef SYNTH_INPUT_DEMAND_H
#define SYNTH_INPUT_DEMAND_H

#include "run.h"

/* Opens the files that hold elements of the run's part, in snapshots that some output needs; and
 * the templates. Does nothing where all files are open. To be called before anything of them is
 * used.
 * PHEMA_ERR_FILE  a file cannot be opened, or is another one; names the path */
PHEMA_FALLIBLE input_demand(const struct run *run, struct phema_error *err);

#endif
