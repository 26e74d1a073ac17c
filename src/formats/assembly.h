/* assembly.h - Tensors put together from parts in several files, none of which lists all. */
#ifndef FORMATS_ASSEMBLY_H
#define FORMATS_ASSEMBLY_H

#include "format.h"

struct assembled;
struct part;

/* Starts as {.checkpoint}. Its files must be open before their parts are added. */
struct assembly {
    struct phema_checkpoint *checkpoint;
    size_t source; /* of the parts that are added next: it holds one part of each tensor at most */
    struct assembled *tensors; /* in the order of their first mention */
    size_t n_tensors, tensors_capacity;
    struct part *parts;
    size_t n_parts, parts_capacity;
    struct name_table names; /* values are indices in tensors */
};

/* Adds a part. Its pointers, start and shape lead into the checkpoint's arena.
 *   part   named like its tensor; its shape is that of the part
 *   start  [rank] first index of the part; NULL: 0
 *   shape  [rank] of the tensor; NULL: known by its parts alone
 * PHEMA_ERR_FILE  it does not fit the parts before; names the tensor */
PHEMA_FALLIBLE assembly_add(struct assembly *assembly, const struct phema_tensor *part,
                            const uint64_t *start, const uint64_t *shape, struct phema_error *err);

/* Adds the tensors to the checkpoint. Of parts that begin at the same index and have the same
 * shape, as replicas have them, the first one counts.
 * PHEMA_ERR_FILE  parts overlap, leave elements out, or lie outside; names tensor and files */
PHEMA_FALLIBLE assembly_list(struct assembly *assembly, struct phema_error *err);

void assembly_clear(struct assembly *assembly);

#endif
