/* dcp_metadata.h - The file .metadata of a distributed checkpoint: tensors, their chunks, and the
 * place of each chunk. Nothing is checked against the files that it names. */
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

/* Values of the state dict, in its order: tensors, and other pickled objects. */
size_t dcp_n_values(const struct dcp_metadata *metadata);
struct phema_span dcp_name(const struct dcp_metadata *metadata, size_t number);
bool dcp_is_tensor(const struct dcp_metadata *metadata, size_t number);

/* Reads name, dtype and dimensions of a tensor into the arena, and the number of its chunks. */
PHEMA_FALLIBLE dcp_read_tensor(struct phema_tensor *tensor, size_t *n_chunks,
                               struct dcp_metadata *metadata, size_t number,
                               struct phema_arena *arena, struct phema_error *err);

/* Reads a chunk of a tensor that was read, and its place.
 *   start, size  out: [rank]
 *   is_repeated  out: an empty chunk that equals an earlier one, as ranks without a share have
 * them */
PHEMA_FALLIBLE dcp_read_chunk(uint64_t *start, uint64_t *size, struct dcp_place *place,
                              bool *is_repeated, struct dcp_metadata *metadata, size_t number,
                              size_t chunk, struct phema_error *err);

#endif
