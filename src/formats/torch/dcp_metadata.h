/* dcp_metadata.h - the pickle .metadata of a distributed checkpoint (docs/formats/dcp.md): names,
 * shapes and pieces of the tensors, and where these are stored. */
#ifndef FORMATS_TORCH_DCP_METADATA_H
#define FORMATS_TORCH_DCP_METADATA_H

#include "torch/torch.h"

#define DCP_METADATA_CLASS(name) "torch.distributed.checkpoint.metadata." name
#define DCP_OLD_PROPERTIES       "torch.distributed._shard.sharded_tensor.metadata.TensorProperties"

/* The object in which torchtitan counts its steps. */
#define DCP_COUNTER_NAME "train_state.step"

/* An entry of storage_data. */
struct dcp_stored {
    size_t number;                    /* of the value in the state dict */
    const struct pickle_node *offset; /* start of the chunk: a tuple of sizes */
    const struct pickle_node *info;   /* record */
    bool is_claimed;
};

/* Bytes [offset, offset + size) of a file. */
struct dcp_place {
    struct phema_span path;
    uint64_t offset, size;
};

/* What .metadata says. Its objects are records, identified by their class and read by the names of
 * their fields. A field that is None by default may be missing. */
struct dcp_metadata {
    struct phema_arena nodes;
    const struct pickle_node *values; /* dict from names to records: the state dict */
    const struct pickle_node *paths;  /* dict from names to their keys, outer ones first; or NULL */
    struct name_table names;          /* values are numbers in it, from 0 */
    struct dcp_stored *stored;        /* [n_stored] sorted by number, then by offset */
    size_t n_stored, stored_capacity;
    struct dcp_stored counter; /* the entry of DCP_COUNTER_NAME; info NULL: none */
};

/* All entries of storage_data are checked but for their places. The caller clears the metadata,
 * even after a failure. */
PHEMA_FALLIBLE dcp_read_metadata(struct dcp_metadata *metadata, struct phema_span content,
                                 const struct phema_checkpoint_options *options,
                                 struct phema_error *err);
void dcp_clear_metadata(struct dcp_metadata *metadata);

/* The name of a value of the state dict, and whether it is a tensor: others are pickled objects. */
struct phema_span dcp_name_of(const struct dcp_metadata *metadata, size_t number);
bool dcp_is_tensor(const struct dcp_metadata *metadata, size_t number);
/* A torch.Size. */
bool dcp_is_size(const struct pickle_node *node);

/* The entry of a piece; NULL: there is none. */
struct dcp_stored *dcp_find_stored(const struct dcp_metadata *metadata, size_t number,
                                   const struct pickle_node *offset);
PHEMA_FALLIBLE dcp_read_place(struct dcp_place *place, const struct dcp_stored *stored,
                              struct phema_error *err);

/* The state dict was flattened. If it held one dict alone, as {"model": ...}, all names begin with
 * that key, which is no part of theirs. {NULL, 0}: it held several. */
struct phema_span dcp_root_key(const struct dcp_metadata *metadata);

#endif
