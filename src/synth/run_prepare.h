/* run_prepare.h - builds the state of a run, starts and ends its passes. */
#ifndef SYNTH_RUN_PREPARE_H
#define SYNTH_RUN_PREPARE_H

#include "run_state.h"

/* result: NULL for a forecast */
void run_init(struct run *run, const struct phema_plan *plan, struct phema_outputs *outputs,
              const struct phema_synth_options *options, struct phema_synth_result *result);

/* The memory budget and the tiling. The run has to be cleared after a failure as well. */
PHEMA_FALLIBLE run_prepare(struct run *run, struct phema_error *err);

/* Allocates device memory, if devices sum. Tiles shrink as far as that needs. */
PHEMA_FALLIBLE run_start_gpus(struct run *run, struct phema_error *err);

/* Groups and readers of a pass, from 0 to budget.n_passes - 1, after the pass before has ended. */
PHEMA_FALLIBLE run_begin_pass(struct run *run, size_t pass, struct phema_error *err);
/* After the workers have ended. PHEMA_ERR_FILE: decompressed content is incomplete. */
PHEMA_FALLIBLE run_end_pass(struct run *run, struct phema_error *err);

void run_clear(struct run *run);

#endif
