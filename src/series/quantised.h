/* quantised.h - quantised tensors: codes, and the scale that they are to be multiplied by. Averages
 * of the two apart are no average of the tensor. */
#ifndef SERIES_QUANTISED_H
#define SERIES_QUANTISED_H

#include "tensor_table.h"

/* Once the table of the first snapshot is there: fills in series->scaled, told by names and dtypes
 * of all tensors of the file, whether they take part or not. */
PHEMA_FALLIBLE quantised_find(const struct tensor_table *tensor_table, struct phema_error *err);

#endif
