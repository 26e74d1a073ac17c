/* tied_tensors.h - parameters that a model has under several names, and that its trainer averages
 * under one of them. */
#ifndef SERIES_TIED_TENSORS_H
#define SERIES_TIED_TENSORS_H

#include "series_builder.h"

/* Fills in builder->filter.ties from all containers of the series; the first one is open and
 * listed. Two raw parameters are tied if they have the same bytes, dtype and shape in every
 * checkpoint, and these bytes change between checkpoints or are not all alike: parameters that are
 * ones or zeros from the first step on are equal by chance.
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE tied_tensors_find(struct series_builder *builder, struct phema_error *err);

#endif
