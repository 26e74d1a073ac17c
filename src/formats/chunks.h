/* chunks.h - Tensors stored as chunks: parts of a tensor, each at its own place in a file. */
#ifndef FORMATS_CHUNKS_H
#define FORMATS_CHUNKS_H

#include "phema/formats.h"
#include "phema/strbuf.h"

/* Chunks of one tensor. Real tensors have at most one chunk for each process of a training, and the
 * largest trainings have some tens of thousands of processes. The worst choice of disjoint chunks
 * makes the check compare n^2 / 8 pairs, which takes about a second. */
#define MAX_CHUNKS 65536u

/* Checks that a chunk lies inside its tensor.
 *   shape  [rank] of the tensor
 * PHEMA_ERR_FILE  the chunk runs over the end of the tensor */
PHEMA_FALLIBLE chunks_check_inside(const struct phema_chunk *chunk, const uint64_t *shape,
                                   unsigned rank, struct phema_error *err);

/* Checks that every element lies in exactly one chunk. Empty chunks are ignored.
 *   chunks   [n] inside the tensor, n at most MAX_CHUNKS
 *   n_elems  of the tensor */
PHEMA_FALLIBLE chunks_check(const struct phema_chunk *chunks, size_t n, unsigned rank,
                            uint64_t n_elems, struct phema_error *err);

/* An index as text: "[3, 0]". Valid as long as the buffer. */
const char *chunks_format_index(struct phema_name_buffer *buffer, const uint64_t *index,
                                unsigned rank);

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
