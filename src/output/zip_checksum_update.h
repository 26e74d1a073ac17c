/* zip_checksum_update.h - checksums of a copied zip archive whose tensors were replaced. */
#ifndef OUTPUT_ZIP_CHECKSUM_UPDATE_H
#define OUTPUT_ZIP_CHECKSUM_UPDATE_H

#include "phema/series.h"
#include "phema/writer.h"

/* State of each thread of zip_checksums_update. */
#define ZIP_CHECKSUMS_THREAD_BYTES ((size_t)1 << 20)

/* Recomputes the CRC-32 of every record of the template that holds a replaced tensor, from what was
 * written, on n_threads threads.
 *   locations    [n] of the tensors, offsets without shift
 *   is_replaced  [n] tensors that were written
 * PHEMA_ERR_FILE      the template was changed since it was opened, and is damaged
 * PHEMA_ERR_OUTPUT    the copy cannot be read or written
 * PHEMA_ERR_RESOURCE  out of memory */
PHEMA_FALLIBLE zip_checksums_update(struct phema_writer *writer,
                                    const struct phema_checkpoint *template,
                                    const struct phema_tensor_location *locations, uint64_t shift,
                                    const bool *is_replaced, size_t n, unsigned n_threads,
                                    struct phema_error *err);

/* Whether such a copy has checksums at all. */
bool zip_has_checksums(const struct phema_checkpoint *template);

#endif
