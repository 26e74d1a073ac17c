/* resume.h - what an ended run has left of the outputs of a pass, as far as it is what its journals
 * say: it is read again before it is relied on, so that nothing has to be synced while a run goes
 * on, and what was torn, cut or replaced meanwhile is made again. */
#ifndef SYNTH_RESUME_RESUME_H
#define SYNTH_RESUME_RESUME_H

#include "resume/done_ranges.h"
#include "run_state.h"

/* Reads the journals of outputs [first, end) to their ends. done: what is there of all of them;
 * its counts are added to the result, and its tensors that vary are marked.
 * PHEMA_ERR_OUTPUT, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE resume_pass(struct done_ranges *done, struct run *run, size_t first, size_t end,
                           struct phema_synth_result *result, struct phema_error *err);

#endif
