/* tile.h - one tile of all outputs, by one worker. */
#ifndef SYNTH_TILE_H
#define SYNTH_TILE_H

#include "worker_state.h"

PHEMA_FALLIBLE tile_process(struct worker *worker, uint64_t tile, const struct tile_range *range,
                            struct phema_error *err);

/* The averages of all targets, summed by the CPU (tile_sum.c). */
PHEMA_FALLIBLE tile_sum(struct worker *worker, uint64_t tile, const struct tile_range *range,
                        struct phema_error *err);

#endif
