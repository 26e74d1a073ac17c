/* worker.h - one thread of a run: claims jobs, processes their tiles, releases pages. */
#ifndef SYNTH_WORKER_H
#define SYNTH_WORKER_H

#include "worker_state.h"

/* index: of this thread among all */
PHEMA_FALLIBLE worker_init(struct worker *worker, struct run *run, unsigned index,
                           struct phema_error *err);
void worker_clear(struct worker *worker);

/* Runs jobs until none is left or one fails. The status is in the worker. */
void worker_run(struct worker *worker);

#endif
