/* against.h - an output that is there already, held against what a run makes: where sinks take
 * tensors, this compares them. */
#ifndef SYNTH_AGAINST_H
#define SYNTH_AGAINST_H

#include "phema/output.h"

struct against;
struct piece;

/* checkpoint: the output, with its listing; compared with the only one of outputs.
 * PHEMA_NO  it has other tensors than it should have, or of other dtypes or shapes: the message
 *           names the first */
PHEMA_FALLIBLE against_open(struct against **out, const struct phema_plan *plan,
                            const struct phema_outputs *outputs,
                            const struct phema_checkpoint *checkpoint, struct phema_error *err);
void against_close(struct against *against); /* takes NULL */

/* Elements [first, first + n) of tensor i, as sink_put has them; from any thread, but where the
 * output is compressed: from one at a time. */
PHEMA_FALLIBLE against_compare(struct against *against, size_t i, uint64_t first, uint64_t n,
                               const void *data, struct phema_error *err);
/* The same of several tensors, as sink_put_stretch has them. */
PHEMA_FALLIBLE against_compare_stretch(struct against *against, const size_t *tensors,
                                       size_t n_tensors, uint64_t first, uint64_t n,
                                       const void *data, struct phema_error *err);

/* When all are: what a compressed output holds behind them; in a copy all that is no replaced
 * tensor, byte for byte, and the checksums of what is. */
PHEMA_FALLIBLE against_finish(struct against *against, struct phema_error *err);

/* Elements of tensor i that were compared and differ, and bytes of a copy that are no tensor's. */
uint64_t against_n_different(const struct against *against, size_t i);
uint64_t against_n_compared(const struct against *against);
uint64_t against_n_other_bytes(const struct against *against);

#endif
