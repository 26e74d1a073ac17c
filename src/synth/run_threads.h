/* run_threads.h - starts the workers, reports progress, collects failures. */
#ifndef SYNTH_RUN_THREADS_H
#define SYNTH_RUN_THREADS_H

#include "run_state.h"

/* One pass through the snapshots, by budget.n_threads workers. The calling thread reports progress
 * ten times a second and writes the journals. Counts and the peak of memory are added to
 * run->result. Of several failures the one of the first worker, by index, is returned. */
PHEMA_FALLIBLE run_pass(struct run *run, size_t pass, struct phema_error *err);

/* PHEMA_ERR_FILE names a snapshot or template that is no longer the file that was opened. */
PHEMA_FALLIBLE run_check_inputs_unchanged(const struct run *run, struct phema_error *err);

/* Finishes an output: checksums, compression. Progress is reported as in run_pass. */
PHEMA_FALLIBLE run_finish_output(struct run *run, size_t output, struct phema_error *err);

#endif
