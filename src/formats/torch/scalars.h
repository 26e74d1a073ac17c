/* scalars.h - numbers that a pickle holds beside its tensors. */
#ifndef FORMATS_TORCH_SCALARS_H
#define FORMATS_TORCH_SCALARS_H

#include "pickle/machine.h"

/* Lists integers and floats in dicts, lists and tuples, named by the keys that lead to them; those
 * nearest to the root first, and no more of them than the constants in torch_values.c allow.
 *   pickle_size  of the pickle that root is of [bytes]: bounds the work */
PHEMA_FALLIBLE torch_list_values(struct phema_checkpoint *checkpoint,
                                 const struct pickle_node *root, size_t pickle_size,
                                 struct phema_error *err);

#endif
