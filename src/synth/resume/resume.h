/* resume.h - finds which tiles of a pass are already on disk and match the journal. They are read
 * again before they are relied on. So a run syncs nothing before its end, and tiles that were torn
 * or replaced since are recomputed. */
#ifndef SYNTH_RESUME_RESUME_H
#define SYNTH_RESUME_RESUME_H

#include "resume/done_ranges.h"
#include "run_state.h"

/* Reads the journals of outputs [first, end) to their ends.
 *   done  out: tiles that all outputs of the pass have; their counts are added to run->result,
 *         and their varying tensors are marked in the run
 * PHEMA_ERR_OUTPUT    a journal cannot be read
 * PHEMA_ERR_RESOURCE  out of memory */
PHEMA_FALLIBLE resume_pass(struct done_ranges *done, struct run *run, size_t first, size_t end,
                           struct phema_error *err);

#endif
