/* scalars.h - Numbers that a pickle holds next to its tensors. */
#ifndef FORMATS_TORCH_SCALARS_H
#define FORMATS_TORCH_SCALARS_H

#include "pickle/machine.h"

/* Lists integers and floats in dicts, lists and tuples, named by the keys that lead to them. Those
 * nearest to the root come first; the constants in scalars.c limit their number.
 *   pickle_size  size of the pickle [bytes]: bounds the work */
PHEMA_FALLIBLE torch_list_values(struct phema_checkpoint *checkpoint,
                                 const struct pickle_node *root, size_t pickle_size,
                                 struct phema_error *err);

#endif
