/* new_scales.h - fp8 outputs with scales of their own. A scale is the largest finite number of its
 * block over the largest of the codes, so that it is known after all numbers of the block were
 * summed: each pass through the snapshots is preceded by one that measures. Codes are then the
 * numbers, rounded to float32, over the scale, rounded to nearest even. */
#ifndef SYNTH_NEW_SCALES_H
#define SYNTH_NEW_SCALES_H

#include "run.h"

/* Memory of the scales of a pass. */
uint64_t new_scales_bytes(const struct run *run, size_t n_targets);
/* What the measuring passes read. */
uint64_t new_scales_read_bytes(const struct run *run);

/* NULL where the outputs have no such tensors. */
PHEMA_FALLIBLE new_scales_open(struct new_scales **out, const struct run *run,
                               struct phema_error *err);
void new_scales_close(struct new_scales *new_scales); /* takes NULL */

/* Before and after a measuring pass. Codes that are copied, or are equal in all snapshots, keep the
 * scales of the newest snapshot, and so their bytes. */
void new_scales_begin(struct run *run);
PHEMA_FALLIBLE new_scales_end(struct run *run, struct phema_error *err);

/* In a measuring pass: the numbers of a tile. row: of sums */
void new_scales_note(const struct run *run, size_t output, const struct tile_range *range,
                     const void *row, enum phema_accumulator accumulator);

/* The codes of a tile. out: any address */
void new_scales_narrow(const struct run *run, size_t output, const struct tile_range *range,
                       const void *row, enum phema_accumulator accumulator, uint8_t *out,
                       struct phema_narrow_counts *counts);

/* Whether a tensor is a new scale; then fills in a tile of it. */
bool new_scales_fill(const struct run *run, size_t output, const struct tile_range *range,
                     uint8_t *out);

#endif
