/* tile_blocks.h - the blocks of a tile. Blocks that are equal in all inputs are copied instead of
 * summed. They are counted from the start of each tensor, whatever the tiles are. */
#ifndef SYNTH_TILE_BLOCKS_H
#define SYNTH_TILE_BLOCKS_H

#include "worker_state.h"

/* Lists the blocks of a tile in the worker. */
void tile_blocks_list(struct worker *worker, const struct tile_range *range);

/* The elements of one tensor, from block *b on. *b moves to the next tensor's first block. */
struct block tile_blocks_next_tensor(const struct worker *worker, size_t *b);

/* Clears equals[x] of the blocks that differ between a and b, which both hold this tile. */
void tile_blocks_compare(const struct worker *worker, uint8_t *equals, enum phema_dtype dtype,
                         const uint8_t *a, const uint8_t *b);

/* Marks the tensors of unequal blocks as varying. */
void tile_blocks_mark_varying(const struct worker *worker, const uint8_t *equals);

/* Puts a block of data into a row of sums, so that it is converted and counted like all others. */
void block_restore(void *row, enum phema_accumulator accumulator, enum phema_dtype dtype,
                   const struct block *block, const uint8_t *data);

#endif
