/* tile.h - the steps of one tile, by one worker. */
#ifndef SYNTH_TILE_H
#define SYNTH_TILE_H

#include "worker.h"

/* Copies or sums a tile of all outputs. */
PHEMA_FALLIBLE tile_process(struct worker *worker, uint64_t tile, const struct tile_range *range,
                            struct phema_error *err);

/* ---- tile_sum.c ---- */

/* The averages of all targets, summed by the CPU. */
PHEMA_FALLIBLE tile_sum(struct worker *worker, uint64_t tile, const struct tile_range *range,
                        struct phema_error *err);

/* ---- tile_read.c: one tile of one snapshot ---- */

/* The tile in snapshot k: a view, or a copy in the slot where a view is impossible. */
PHEMA_FALLIBLE tile_read(const uint8_t **data, const struct worker *worker, size_t k,
                         const struct tile_range *range, size_t slot, struct phema_error *err);

/* As tile_read, in decode order, and hashed. A compressed snapshot's turn is released even when the
 * tile is not needed. *data stays as it is for a tile that is not needed, and for a worker that is
 * abandoned. */
PHEMA_FALLIBLE tile_read_in_order(const uint8_t **data, struct worker *worker, size_t k,
                                  uint64_t tile, bool is_needed, const struct tile_range *range,
                                  size_t slot, struct phema_error *err);

/* Whether snapshot k is the next input of some group. The groups count it as read. */
bool tile_claim_input(struct worker *worker, size_t k);

/* Releases the tile's turn at all compressed snapshots, for which other workers wait. */
PHEMA_FALLIBLE tile_skip(struct worker *worker, uint64_t tile, struct phema_error *err);

/* ---- tile_write.c: one tile of an output ---- */

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

/* ---- tile_blocks.c: blocks equal in all inputs, which are copied instead of summed ---- */

/* Lists the blocks of a tile in the worker. */
void tile_blocks_list(struct worker *worker, const struct tile_range *range);

/* The elements of one tensor, from block *b on. *b moves to the next tensor's first block. */
struct block tile_blocks_next_tensor(const struct worker *worker, size_t *b);

/* Of group g no input is known yet. */
void tile_blocks_start_group(struct worker *worker, size_t g);

/* Clears group g's equals[x] of the blocks that differ between a and b, which both hold this
 * tile. */
void tile_blocks_compare(const struct worker *worker, size_t g, const struct tile_range *range,
                         const uint8_t *a, const uint8_t *b);

/* Compares an input of group g with its first one, which is copied when it comes. */
void tile_blocks_compare_copy(struct worker *worker, size_t g, const struct tile_range *range,
                              const uint8_t *data);

/* Marks the tensors of group g's unequal blocks as varying. */
void tile_blocks_mark_varying(const struct worker *worker, size_t g);

#endif
