/* tensors.h - from what a pickle of torch holds to the tensors of a checkpoint. */
#ifndef FORMATS_TORCH_TENSORS_H
#define FORMATS_TORCH_TENSORS_H

#include "pickle/machine.h"

/* A value of the root dict: the network of EDM2. */
struct torch_model {
    const char *name; /* its key */
    struct pickle_node *node;
};

/* Lists every tensor below root, named by the keys that lead to it; modules as their state_dict.
 * Behind them come tensors in attributes of dicts, modules and objects, and in what stands beside
 * the model, of PHEMA_KIND_ATTRIBUTE, but none that is listed already.
 *   model        NULL: the root is
 *   pickle_size  bounds how much a tree of shared containers may unfold into */
PHEMA_FALLIBLE torch_list_tensors(struct phema_checkpoint *checkpoint, struct pickle_node *root,
                                  const struct torch_model *model, size_t pickle_size,
                                  struct phema_error *err);

/* Dtype, dimensions and place of one; shape and stride lie in the arena. */
PHEMA_FALLIBLE torch_place_tensor(struct phema_tensor *tensor, struct phema_arena *arena,
                                  const struct pickle_tensor *view, struct phema_error *err);

#endif
