/* tile_blocks.h - a tile block by block: what of it is of which tensor, and which blocks are equal
 * in all inputs, so that they are copied instead of summed. Blocks are counted from the start of
 * each tensor, whatever the tiles are. */
#ifndef SYNTH_TILE_BLOCKS_H
#define SYNTH_TILE_BLOCKS_H

#include "worker.h"

/* The blocks of a tile become the worker's. */
void tile_blocks_list(struct worker *worker, const struct tile_range *piece);

/* What of the tile is of one tensor, beginning with block *b, which becomes that of the next. */
struct block tile_blocks_next_part(const struct worker *worker, size_t *b);

/* Clears equals[i] of the blocks that differ between a and b, which are both this tile. */
void tile_blocks_compare(const struct worker *worker, uint8_t *equals, enum phema_dtype dtype,
                         const uint8_t *a, const uint8_t *b);

/* The tensors of blocks that are not equal are no constants. */
void tile_blocks_mark_varying(const struct worker *worker, const uint8_t *equals);

/* A block of data into the row of sums, so that it is converted and counted like all others. */
void block_restore(void *row, enum phema_accumulator accumulator, enum phema_dtype dtype,
                   const struct block *block, const uint8_t *data);

#endif
