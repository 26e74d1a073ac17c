/* torch_tensors.h - from what a pickle of torch holds to the tensors of a checkpoint. */
#ifndef PHEMA_FORMATS_TORCH_TENSORS_H
#define PHEMA_FORMATS_TORCH_TENSORS_H

#include "pickle.h"

/* Lists every tensor below root, named by the keys that lead to it; modules as their state_dict.
 *   pickle_size  bounds how much a tree of shared containers may unfold into */
PHEMA_FALLIBLE torch_list_tensors(struct phema_checkpoint *checkpoint, struct pickle_node *root,
                                  size_t pickle_size, struct phema_error *err);

/* Dtype, dimensions and place of one; shape and stride lie in the arena. */
PHEMA_FALLIBLE torch_place_tensor(struct phema_tensor *tensor, struct phema_arena *arena,
                                  const struct pickle_tensor *view, struct phema_error *err);

#endif
