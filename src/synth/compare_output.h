/* compare_output.h - compares tiles with an existing output, in place of a sink. */
#ifndef SYNTH_COMPARE_OUTPUT_H
#define SYNTH_COMPARE_OUTPUT_H

#include "phema/synth.h"

struct compare_output;

/* checkpoint: the output, with its listing; compared with the only one of outputs.
 * PHEMA_NO  a tensor is missing or unexpected, or its dtype or shape differs: the message names the
 *           first */
PHEMA_FALLIBLE compare_output_open(struct compare_output **out, const struct phema_plan *plan,
                                   const struct phema_outputs *outputs,
                                   const struct phema_checkpoint *checkpoint,
                                   struct phema_error *err);
void compare_output_close(struct compare_output *comparison); /* takes NULL */

/* Compares tensors, given as to sink_write. Safe from any thread; a compressed output allows one
 * thread at a time. */
PHEMA_FALLIBLE compare_output_tensors(struct compare_output *comparison, const size_t *tensors,
                                      size_t n_tensors, uint64_t first, uint64_t n,
                                      const void *data, struct phema_error *err);

/* After all tensors: checks the rest of a compressed output. In a copy it compares all bytes
 * outside replaced tensors, and checks the checksums of the replaced ones. */
PHEMA_FALLIBLE compare_output_finish(struct compare_output *comparison, struct phema_error *err);

/* Sets differences, n, n_elems and n_other_bytes of the verification. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE compare_output_count(struct phema_verification *out,
                                    const struct compare_output *comparison,
                                    struct phema_error *err);

#endif
