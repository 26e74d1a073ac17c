/* tile_read.h - one tile of one snapshot. */
#ifndef SYNTH_TILE_READ_H
#define SYNTH_TILE_READ_H

#include "worker_state.h"

/* The tile in snapshot k: a view, or a copy in the slot where a view is impossible. */
PHEMA_FALLIBLE tile_read(const uint8_t **data, const struct worker *worker, size_t k,
                         const struct tile_range *range, size_t slot, struct phema_error *err);

/* As tile_read, in decode order, and hashed. A compressed snapshot's turn is released even when the
 * tile is not needed. *data stays as it is for a tile that is not needed, and for a worker that is
 * abandoned. */
PHEMA_FALLIBLE tile_read_in_order(const uint8_t **data, struct worker *worker, size_t k,
                                  uint64_t tile, bool is_needed, const struct tile_range *range,
                                  size_t slot, struct phema_error *err);

/* Releases the tile's turn at all compressed snapshots, for which other workers wait. */
PHEMA_FALLIBLE tile_skip(struct worker *worker, uint64_t tile, struct phema_error *err);

#endif
