/* run_threads.h - the workers of a run, while the calling thread watches them. */
#ifndef SYNTH_RUN_THREADS_H
#define SYNTH_RUN_THREADS_H

#include "run_state.h"

/* Starts as many workers as the options say, tells how far they are ten times a second, waits for
 * all. Counts and the peak of memory are added to the result. The first failure is that of all. */
PHEMA_FALLIBLE run_threads_execute(struct run *run, struct phema_synth_result *result,
                                   double start_s, struct phema_error *err);

/* One pass through the snapshots. */
PHEMA_FALLIBLE run_pass(struct run *run, size_t pass, struct phema_synth_result *result,
                        double start_s, struct phema_error *err);

/* Snapshots and templates are the files that were opened: PHEMA_ERR_FILE names one that is not. */
PHEMA_FALLIBLE run_check_inputs_unchanged(const struct run *run, struct phema_error *err);

/* Finishes an output: checksums, compression. Watched in the same way. */
PHEMA_FALLIBLE run_finish_outputs(struct run *run, size_t output, struct phema_synth_result *result,
                                  double start_s, struct phema_error *err);

#endif
