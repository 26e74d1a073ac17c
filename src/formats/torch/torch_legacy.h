/* torch_legacy.h - The format of torch.save before 1.6: five pickles, then the storages. An EDM2
 * pickle keeps each of its storages in a whole file of this format. */
#ifndef FORMATS_TORCH_TORCH_LEGACY_H
#define FORMATS_TORCH_TORCH_LEGACY_H

#include "pickle/machine.h"
#include "torch/storages.h"

struct torch_legacy {
    struct phema_arena arena; /* nodes and storages */
    struct torch_storages storages;
    struct pickle_node *root;
    size_t object_size; /* of the object's pickle */
    size_t used;        /* up to the end of the last storage */
};

/* True when the bytes begin with torch's magic number, in a pickle of protocol 2 to 5. */
bool torch_legacy_probe(struct phema_span bytes);

/* Reads such a file inside file 0 of the checkpoint, from start on. The caller clears the file,
 * even after a failure. */
PHEMA_FALLIBLE torch_legacy_read(struct torch_legacy *legacy, struct phema_span bytes,
                                 uint64_t start, const struct phema_checkpoint_options *options,
                                 struct phema_error *err);
void torch_legacy_clear(struct torch_legacy *legacy);

#endif
