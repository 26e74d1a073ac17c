/* chunks.h - Reads of tensors stored as chunks: parts of a tensor, each at its own place in a
 * file. */
#ifndef FORMATS_CHUNKS_H
#define FORMATS_CHUNKS_H

#include "phema/formats.h"

/* Elements [first, first + n) in C order of a tensor in chunks: a view where one chunk holds them
 * contiguously, else a copy in scratch. */
const uint8_t *chunks_read(const struct phema_checkpoint *checkpoint,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                           void *scratch);

/* The place of one element. */
void chunks_find_element(size_t *file, uint64_t *offset, const struct phema_tensor *tensor,
                         uint64_t element);

/* Requests the pages of these elements, except of chunks that are not contiguous. */
void chunks_prefetch(const struct phema_checkpoint *checkpoint, const struct phema_tensor *tensor,
                     uint64_t first, uint64_t n);

/* Whether one chunk holds these elements contiguously; then the place of the first one. */
bool chunks_find(size_t *file, uint64_t *offset, const struct phema_checkpoint *checkpoint,
                 const struct phema_tensor *tensor, uint64_t first, uint64_t n);

#endif
