/* assembly.h - Tensors put together from pieces, in one file or in many. A format names the pieces
 * and their places; here they are checked and become the chunks of the tensor.
 *
 * Where one file lists the pieces of all tensors, assembly_join takes those of one tensor. Where
 * each file has a list of its own, struct assembly collects them. */
#ifndef FORMATS_ASSEMBLY_H
#define FORMATS_ASSEMBLY_H

#include "format.h"
#include "phema/strbuf.h"

/* Chunks of one tensor. Real tensors have at most one chunk for each process of a training, and the
 * largest trainings have some tens of thousands of processes. The worst choice of disjoint chunks
 * makes the check compare n^2 / 8 pairs, which takes about a second. */
#define MAX_CHUNKS 65536u

/* An index or a shape as text: "[3, 0]". Valid as long as the buffer. */
const char *format_index(struct phema_name_buffer *buffer, const uint64_t *index, unsigned rank);

/* Whether two indices or shapes are equal; NULL only where rank is 0. */
bool are_equal_sizes(const uint64_t *a, const uint64_t *b, unsigned rank);

/* Sets n_elems and size_bytes by dtype and shape.
 * PHEMA_ERR_FILE  they overflow */
PHEMA_FALLIBLE assembly_set_size(struct phema_tensor *tensor, struct phema_error *err);

/* Checks that a piece lies inside its tensor.
 *   shape  [rank] of the tensor
 * PHEMA_ERR_FILE  the piece runs over the end of the tensor */
PHEMA_FALLIBLE assembly_check_inside(const struct phema_chunk *piece, const uint64_t *shape,
                                     unsigned rank, struct phema_error *err);

/* Checks that every element lies in exactly one piece. Empty pieces are ignored.
 *   pieces   [n] inside the tensor, n at most MAX_CHUNKS
 *   n_elems  of the tensor */
PHEMA_FALLIBLE assembly_check(const struct phema_chunk *pieces, size_t n, unsigned rank,
                              uint64_t n_elems, struct phema_error *err);

/* Checks the pieces of a tensor as assembly_check does, and makes them its chunks, in this order.
 * A tensor of one piece is an ordinary tensor. The chunks are a copy that outlives the listing.
 *   tensor  dtype, shape and sizes are set; it is not in the checkpoint yet
 *   pieces  [n] as assembly_check; their numbers lie in the checkpoint's arena */
PHEMA_FALLIBLE assembly_join(struct phema_tensor *tensor, struct phema_checkpoint *checkpoint,
                             const struct phema_chunk *pieces, size_t n, struct phema_error *err);

struct assembled;
struct piece;

/* Starts as {.checkpoint}. Its files must be open before their pieces are added. */
struct assembly {
    struct phema_checkpoint *checkpoint;
    size_t source; /* of the pieces that are added next: it holds one of each tensor at most */
    struct assembled *tensors; /* in the order of their first mention */
    size_t n_tensors, tensors_capacity;
    struct piece *pieces;
    size_t n_pieces, pieces_capacity;
    struct name_table names; /* values are indices in tensors */
};

/* Adds a piece. Its pointers, start and shape lead into the checkpoint's arena.
 *   piece  named like its tensor; its shape is that of the piece; of a later file than those before
 *   start  [rank] first index of the piece; NULL: 0
 *   shape  [rank] of the tensor, in which the piece lies; NULL: known by its pieces alone
 * PHEMA_ERR_FILE  it does not fit the pieces before; names the tensor */
PHEMA_FALLIBLE assembly_add(struct assembly *assembly, const struct phema_tensor *piece,
                            const uint64_t *start, const uint64_t *shape, struct phema_error *err);

/* Adds the tensors to the checkpoint. Of pieces that begin at the same index and have the same
 * shape, as replicas have them, the first one counts.
 * PHEMA_ERR_FILE  pieces overlap or leave elements out; names tensor and files */
PHEMA_FALLIBLE assembly_list(struct assembly *assembly, struct phema_error *err);

void assembly_clear(struct assembly *assembly);

#endif
