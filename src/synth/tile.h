/* tile.h - the steps of one tile, the current one of a worker. */
#ifndef SYNTH_TILE_H
#define SYNTH_TILE_H

#include "worker.h"

/* Copies or sums the tile of all outputs. A tile that is left out only has its turns at compressed
 * snapshots released, for which other workers wait. */
PHEMA_FALLIBLE tile_process(struct worker *worker, bool is_included, struct phema_error *err);

/* ---- tile_inputs.c: the tile of one snapshot ---- */

/* Sets the rule and the blocks of the tile. */
void tile_begin(struct worker *worker);

/* The tile in snapshot k: a view, or a copy in the slot where a view is impossible. */
PHEMA_FALLIBLE tile_read(const uint8_t **data, const struct worker *worker, size_t k, size_t slot,
                         struct phema_error *err);

/* As tile_read, in decode order, and hashed. A compressed snapshot's turn is released even when the
 * tile is not needed. *data stays as it is for a tile that is not needed, and for a worker that is
 * abandoned. */
PHEMA_FALLIBLE tile_read_in_order(const uint8_t **data, struct worker *worker, size_t k,
                                  bool is_needed, size_t slot, struct phema_error *err);

/* The state of group g of the tile's rule, of which no input is known yet. */
struct group_state *tile_start_group(struct worker *worker, size_t g);

/* Whether snapshot k is the next input of some group. The groups count it as read. */
bool tile_claim_input(struct worker *worker, size_t k);

/* ---- Blocks equal in all inputs, which are copied instead of summed ---- */

/* Clears equals[x] of the blocks that differ between a and b, which both hold this tile. */
void tile_compare(const struct worker *worker, const struct group_state *state, const uint8_t *a,
                  const uint8_t *b);

/* Compares an input of the group with its first one, which is copied when it comes. */
void tile_compare_copy(const struct worker *worker, struct group_state *state, const uint8_t *data);

/* Marks the tensors of the group's unequal blocks as varying. */
void tile_mark_varying(const struct worker *worker, const struct group_state *state);

/* ---- tile_write.c: one tile of an output ---- */

/* Rounds a row of sums to the output's dtype, in worker->written. */
PHEMA_FALLIBLE tile_narrow(struct worker *worker, size_t output, const void *row,
                           enum phema_accumulator accumulator, struct phema_error *err);

/* Notes the first tensor with NaN or infinity. PHEMA_ERR_FILE, PHEMA_ERR_OUTPUT: the options refuse
 * such values. */
PHEMA_FALLIBLE tile_check_values(struct worker *worker, size_t output, size_t tensor,
                                 const struct phema_narrow_counts *counts, struct phema_error *err);

/* Puts the tile into the output, or into run->memory. */
PHEMA_FALLIBLE tile_write(const struct worker *worker, size_t output, const void *data,
                          struct phema_error *err);

/* Writes a tile to its tensors and to their aliases, rereads it from there where data is NULL, or
 * compares it with run->comparison.
 *   sum  as of sink_write */
PHEMA_FALLIBLE tile_transfer(const struct run *run, size_t output, const struct tile_range *range,
                             const void *data, uint64_t *sum, struct phema_error *err);

#endif
