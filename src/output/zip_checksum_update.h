/* zip_checksum_update.h - checksums of a copy whose tensors were replaced. */
#ifndef OUTPUT_ZIP_CHECKSUM_UPDATE_H
#define OUTPUT_ZIP_CHECKSUM_UPDATE_H

#include "phema/series.h"
#include "phema/writer.h"

/* The CRC-32 of every record of the template in which one of the places lies, computed from what
 * was written, on n_threads threads.
 *   places       [n] of the tensors, offsets without shift
 *   is_replaced  [n] those that were written
 * PHEMA_ERR_FILE, PHEMA_ERR_OUTPUT, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE zip_checksums_update(struct phema_writer *writer,
                                    const struct phema_checkpoint *template,
                                    const struct phema_tensor_location *places, uint64_t shift,
                                    const bool *is_replaced, size_t n, unsigned n_threads,
                                    struct phema_error *err);

/* Whether such a copy has checksums at all. */
bool zip_has_checksums(const struct phema_checkpoint *template);

#endif
