/* tensors.h - From the unpickled root of a torch file to the tensors of a checkpoint. */
#ifndef FORMATS_TORCH_TENSORS_H
#define FORMATS_TORCH_TENSORS_H

#include "pickle/machine.h"

/* The value of the root dict that is the model: the network of EDM2. */
struct torch_model {
    const char *name; /* its key */
    struct pickle_node *node;
};

/* Lists every tensor below root, named by the keys that lead to it; modules as their state_dict.
 * Tensors of PHEMA_KIND_ATTRIBUTE follow: those in attributes of dicts, modules and objects, and
 * those next to the model. No tensor is listed twice.
 *   model        NULL: the root is the model
 *   pickle_size  [bytes] bounds the unfolding of a tree of shared containers */
PHEMA_FALLIBLE torch_list_tensors(struct phema_checkpoint *checkpoint, struct pickle_node *root,
                                  const struct torch_model *model, size_t pickle_size,
                                  struct phema_error *err);

/* Dtype, dimensions and place of one tensor; shape and stride lie in the arena. */
PHEMA_FALLIBLE torch_place_tensor(struct phema_tensor *tensor, struct phema_arena *arena,
                                  const struct pickle_tensor *view, struct phema_error *err);

#endif
