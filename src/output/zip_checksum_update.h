/* mend.h - checksums of a copy whose tensors were replaced. */
#ifndef SYNTH_MEND_H
#define SYNTH_MEND_H

#include "phema/series.h"
#include "phema/writer.h"

/* The CRC-32 of every record of the template in which one of the places lies, computed from what
 * was written, on n_threads threads.
 *   places       [n] of the tensors, offsets without shift
 *   is_replaced  [n] those that were written
 * PHEMA_ERR_FILE, PHEMA_ERR_OUTPUT, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE mend_checksums(struct phema_writer *writer, const struct phema_checkpoint *template,
                              const struct phema_place *places, uint64_t shift,
                              const bool *is_replaced, size_t n, unsigned n_threads,
                              struct phema_error *err);

/* Whether such a copy has checksums at all. */
bool mend_is_needed(const struct phema_checkpoint *template);

#endif
