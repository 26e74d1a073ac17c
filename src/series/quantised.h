/* quantised.h - quantised tensors: codes and the scale that multiplies them. Codes and scale
 * averaged separately are not the average of the tensor. */
#ifndef SERIES_QUANTISED_H
#define SERIES_QUANTISED_H

#include "tensor_table.h"

/* Fills in series->quantised from names and dtypes of all tensors of the first file, whether they
 * take part or not. The table of the first snapshot is complete. */
PHEMA_FALLIBLE quantised_find(const struct tensor_table *tensor_table, struct phema_error *err);

#endif
