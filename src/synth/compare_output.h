/* compare_output.h - an output that is there already, held against what a run makes: where sinks
 * take tensors, this compares them. */
#ifndef SYNTH_COMPARE_OUTPUT_H
#define SYNTH_COMPARE_OUTPUT_H

#include "phema/output.h"

struct compare_output;
struct tile_range;

/* checkpoint: the output, with its listing; compared with the only one of outputs.
 * PHEMA_NO  it has other tensors than it should have, or of other dtypes or shapes: the message
 *           names the first */
PHEMA_FALLIBLE compare_output_open(struct compare_output **out, const struct phema_plan *plan,
                                   const struct phema_outputs *outputs,
                                   const struct phema_checkpoint *checkpoint,
                                   struct phema_error *err);
void compare_output_close(struct compare_output *against); /* takes NULL */

/* Elements [first, first + n) of tensor i, as sink_write has them; from any thread, but where the
 * output is compressed: from one at a time. */
PHEMA_FALLIBLE compare_output_compare(struct compare_output *against, size_t i, uint64_t first,
                                      uint64_t n, const void *data, struct phema_error *err);
/* The same of several tensors, as sink_write_run has them. */
PHEMA_FALLIBLE compare_output_run(struct compare_output *against, const size_t *tensors,
                                  size_t n_tensors, uint64_t first, uint64_t n, const void *data,
                                  struct phema_error *err);

/* When all are: what a compressed output holds behind them; in a copy all that is no replaced
 * tensor, byte for byte, and the checksums of what is. */
PHEMA_FALLIBLE compare_output_finish(struct compare_output *against, struct phema_error *err);

/* Elements of tensor i that were compared and differ, and bytes of a copy that are no tensor's. */
uint64_t compare_output_n_different(const struct compare_output *against, size_t i);
uint64_t compare_output_n_compared(const struct compare_output *against);
uint64_t compare_output_n_other_bytes(const struct compare_output *against);

#endif
