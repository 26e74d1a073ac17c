/* tile_write.h - one tile of an output: rounded, checked for NaN and overflow, written or compared,
 * and reread. */
#ifndef SYNTH_TILE_WRITE_H
#define SYNTH_TILE_WRITE_H

#include "worker_state.h"

/* Rounds a row of sums to the output's dtype, in worker->written. */
PHEMA_FALLIBLE tile_narrow(struct worker *worker, size_t output, const struct tile_range *range,
                           const void *row, enum phema_accumulator accumulator,
                           struct phema_error *err);

/* Notes the first tensor with NaN or infinity. PHEMA_ERR_FILE, PHEMA_ERR_OUTPUT: the options refuse
 * such values. */
PHEMA_FALLIBLE tile_check_values(struct worker *worker, size_t output, size_t tensor,
                                 const struct phema_narrow_counts *counts, struct phema_error *err);

/* Writes the tile to its tensors and to their aliases, or compares it with run->comparison. */
PHEMA_FALLIBLE tile_write(const struct worker *worker, size_t output,
                          const struct tile_range *range, const void *data,
                          struct phema_error *err);

/* Rereads a tile from the places that tile_write has written, as sink_write does without data. */
PHEMA_FALLIBLE tile_reread(const struct run *run, size_t output, const struct tile_range *range,
                           uint64_t *sum, struct phema_error *err);

/* Rereads a finished output before it is published, if options.verifies. PHEMA_ERR_OUTPUT names the
 * output and a tensor that differs from the written data. */
PHEMA_FALLIBLE output_reread(struct run *run, size_t output, struct phema_error *err);

#endif
