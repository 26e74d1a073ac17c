/* sharding.h - Private to torch/: the part of a DTensor that one process has. */
#ifndef FORMATS_TORCH_SHARDING_H
#define FORMATS_TORCH_SHARDING_H

#include "pickle/machine.h"

#define MAX_MESH_RANK 16u

/* Part number `part` of n along one dimension of the mesh of processes. */
struct mesh_cut {
    uint64_t n, part;
    bool is_shard;      /* else a replica */
    uint64_t dimension; /* of the tensor, for a shard */
};

/* How a tensor is spread over processes, and the place of one of them. */
struct sharding {
    struct mesh_cut cuts[MAX_MESH_RANK]; /* in the order of the mesh */
    size_t n_cuts;
    uint64_t process;      /* number of this process in the training */
    const uint64_t *shape; /* [rank] of the whole tensor */
    unsigned rank;
};

/* A place, which is a tuple or list of at most max integers of 0 or more. */
bool sharding_holds_sizes(const struct pickle_node *node, size_t max);
/* Copies its numbers into the arena; NULL: no memory. */
uint64_t *sharding_copy_sizes(struct phema_arena *arena, const struct pickle_node *node);

/* Reads the specification of a DTensor. */
PHEMA_FALLIBLE sharding_read(struct sharding *out, struct phema_arena *arena,
                             const struct pickle_tensor *view, struct phema_error *err);

/* Checks that the process has a part of this shape, and finds its place.
 *   start  out: [rank] in the arena */
PHEMA_FALLIBLE sharding_find_part(const uint64_t **start, struct phema_arena *arena,
                                  const struct sharding *sharding, const struct phema_tensor *part,
                                  struct phema_error *err);

#endif
