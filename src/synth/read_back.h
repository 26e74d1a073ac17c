/* read_back.h - what was written, read again before it is published. */
#ifndef SYNTH_READ_BACK_H
#define SYNTH_READ_BACK_H

#include "run_state.h"

/* Where options.verifies, of an output that is finished: PHEMA_ERR_OUTPUT names it, and a tensor in
 * it that is not what was written. */
PHEMA_FALLIBLE output_reread(struct run *run, size_t output, struct phema_error *err);

/* A tile from the places that tile_write.c puts it to, as sink_write has it without data. */
PHEMA_FALLIBLE tile_reread(const struct run *run, size_t output, const struct tile_range *piece,
                           uint64_t *sum, struct phema_error *err);

#endif
