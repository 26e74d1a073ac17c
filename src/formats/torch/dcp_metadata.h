/* dcp_metadata.h - what the .metadata of a distributed checkpoint says: the tensors, their chunks,
 * and the place of each chunk's archive. */
#ifndef FORMATS_TORCH_DCP_METADATA_H
#define FORMATS_TORCH_DCP_METADATA_H

#include "name_table.h"
#include "phema/arena.h"
#include "phema/formats.h"
#include "pickle/machine.h"

/* An entry of storage_data. */
struct dcp_stored {
    size_t number;                    /* of the value */
    const struct pickle_node *offset; /* start of the chunk: a tuple of sizes */
    const struct pickle_node *info;   /* record */
    bool is_claimed;
};

/* Bytes [offset, offset + size) of a file. */
struct dcp_place {
    struct phema_span path;
    uint64_t offset, size;
};

/* The object in which torchtitan counts its steps. */
#define DCP_COUNTER "train_state.step"

struct dcp_metadata {
    struct phema_arena nodes;
    const struct pickle_node *values; /* dict from names to records: the state dict */
    struct name_table names;          /* values are numbers in it */
    struct dcp_stored *stored;        /* [n_stored] sorted by number, then by offset */
    size_t n_stored, stored_capacity;
    struct dcp_stored counter; /* the entry of DCP_COUNTER; info NULL: none */
};

/* All entries of storage_data have been checked but for their places. To be cleared in any case. */
PHEMA_FALLIBLE dcp_metadata_read(struct dcp_metadata *metadata, struct phema_span content,
                                 const struct phema_checkpoint_options *options,
                                 struct phema_error *err);
void dcp_metadata_clear(struct dcp_metadata *metadata);

/* Values of the state dict are numbered from 0. Those that are no tensors are pickled objects. */
static inline size_t dcp_metadata_n_values(const struct dcp_metadata *metadata)
{
    return metadata->values->items.n / 2;
}
struct phema_span dcp_metadata_name(const struct dcp_metadata *metadata, size_t number);
bool dcp_metadata_is_tensor(const struct dcp_metadata *metadata, size_t number);

/* Sets dtype, shape and sizes of a tensor; chunks: its list. */
PHEMA_FALLIBLE dcp_tensor_read(struct phema_tensor *tensor, const struct pickle_items **chunks,
                               const struct dcp_metadata *metadata, size_t number,
                               struct phema_arena *arena, struct phema_error *err);

/* Reads start and size of a chunk into the arena. */
PHEMA_FALLIBLE dcp_bounds_read(struct phema_chunk *chunk, const struct pickle_node *node,
                               size_t rank, struct phema_arena *arena, struct phema_error *err);

/* The entry of a chunk whose bounds have been read; NULL: none. */
struct dcp_stored *dcp_metadata_find(const struct dcp_metadata *metadata, size_t number,
                                     const struct pickle_node *chunk);

PHEMA_FALLIBLE dcp_place_read(struct dcp_place *place, const struct dcp_stored *stored,
                              struct phema_error *err);

#endif
