/* dcp_metadata.h - what the file .metadata of a distributed checkpoint says: which tensors there
 * are, the boxes they are cut into, and where each is stored. Nothing is checked against the files
 * it speaks of. */
#ifndef FORMATS_TORCH_DCP_METADATA_H
#define FORMATS_TORCH_DCP_METADATA_H

#include "phema/arena.h"
#include "phema/formats.h"

struct dcp_metadata;

/* Bytes [offset, offset + size) of a file; views of the content. */
struct dcp_place {
    struct phema_span path;
    uint64_t offset, size;
};

/* The content must stay as long as it is open. */
PHEMA_FALLIBLE dcp_metadata_open(struct dcp_metadata **out, struct phema_span content,
                                 const struct phema_checkpoint_options *options,
                                 struct phema_error *err);
void dcp_metadata_close(struct dcp_metadata *metadata); /* takes NULL */

/* Values of the state dict, in its order: tensors, and pickled objects that are none. */
size_t dcp_n_values(const struct dcp_metadata *metadata);
struct phema_span dcp_name(const struct dcp_metadata *metadata, size_t number);
bool dcp_is_tensor(const struct dcp_metadata *metadata, size_t number);

/* Name, dtype and dimensions of a tensor, which go to the arena, and the number of its boxes. */
PHEMA_FALLIBLE dcp_read_tensor(struct phema_tensor *tensor, size_t *n_chunks,
                               struct dcp_metadata *metadata, size_t number,
                               struct phema_arena *arena, struct phema_error *err);

/* A box of a tensor that was read, and where it is stored.
 *   start, size  out: [rank]
 *   is_repeated  out: it is empty and the same as one before, as ranks without a share have them */
PHEMA_FALLIBLE dcp_read_chunk(uint64_t *start, uint64_t *size, struct dcp_place *place,
                              bool *is_repeated, struct dcp_metadata *metadata, size_t number,
                              size_t chunk, struct phema_error *err);

#endif
