/* sharding_info.h - Private to safetensors/: DCP_SHARDING_INFO, the metadata of a safetensors file
 * whose tensors are parts of tensors (docs/formats/dcp-safetensors.md). */
#ifndef FORMATS_SAFETENSORS_SHARDING_INFO_H
#define FORMATS_SAFETENSORS_SHARDING_INFO_H

#include "format.h"

#define SHARDING_INFO_KEY "DCP_SHARDING_INFO"

/* Where the tensors of one file begin in the tensors that they are parts of.
 *   starts   out: [n] of as many numbers as the tensor has dimensions, in the arena
 *   tensors  [n] of the file
 *   text     the value of the key
 * PHEMA_ERR_FILE  it is no JSON as torch writes it, or does not fit the tensors */
PHEMA_FALLIBLE sharding_info_read(const uint64_t **starts, struct phema_arena *arena,
                                  const struct phema_tensor *tensors, size_t n,
                                  struct phema_span text, struct phema_error *err);

/* Checks that the checkpoint's tensors from first on begin at 0: then each can be whole. */
PHEMA_FALLIBLE sharding_info_check_whole(struct phema_checkpoint *checkpoint, size_t first,
                                         struct phema_span text, struct phema_error *err);

/* shard-RRRRR-model-FFFFF-of-NNNNN with an extension: file F of N of rank R, all from 1. */
struct shard_name {
    const char *name;
    uint64_t rank, file, n_files;
};
/* False when the name is another one. */
bool shard_name_read(struct shard_name *out, const char *name);

#endif
