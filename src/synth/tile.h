/* tile.h - one tile of all outputs, by one worker. */
#ifndef SYNTH_TILE_H
#define SYNTH_TILE_H

#include "worker.h"

PHEMA_FALLIBLE tile_process(struct worker *worker, uint64_t tile, const struct tile_range *piece,
                            struct phema_error *err);
/* One that is not taken: others wait for its turn at decompressed snapshots. */
PHEMA_FALLIBLE tile_skip(struct worker *worker, uint64_t tile, struct phema_error *err);

/* ---- Its parts ---- */

/* The tile in snapshot k: a view, or a copy in the slot where it has to be one. */
PHEMA_FALLIBLE tile_read(const uint8_t **data, const struct worker *worker, size_t k,
                         const struct tile_range *piece, size_t slot, struct phema_error *err);
/* The same in turn, counted and hashed; one that is decoded is passed even when it is not needed. A
 * worker that is abandoned has no data. */
PHEMA_FALLIBLE tile_read_in_order(const uint8_t **data, struct worker *worker, size_t k,
                                  uint64_t tile, bool is_needed, const struct tile_range *piece,
                                  size_t slot, struct phema_error *err);

/* All targets' averages (tile_average.c). */
PHEMA_FALLIBLE tile_average(struct worker *worker, uint64_t tile, const struct tile_range *piece,
                            struct phema_error *err);

/* worker->written becomes the row as the output has it (tile_write.c). */
PHEMA_FALLIBLE tile_narrow(struct worker *worker, size_t output, const struct tile_range *piece,
                           const void *row, enum phema_accumulator accumulator,
                           struct phema_error *err);
/* What counts of a tensor mean for the run. */
PHEMA_FALLIBLE tile_check_values(struct worker *worker, size_t output, size_t tensor,
                                 const struct phema_narrow_counts *counts, struct phema_error *err);
/* To the tensors' places in the output, or to that of the only one and those of its aliases. */
PHEMA_FALLIBLE tile_write(const struct worker *worker, size_t output,
                          const struct tile_range *piece, const void *data,
                          struct phema_error *err);

#endif
