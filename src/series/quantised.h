/* scales.h - quantised tensors: codes, and the scale that they are to be multiplied by. Averages of
 * the two apart are no average of the tensor. */
#ifndef PLAN_SCALES_H
#define PLAN_SCALES_H

#include "tensor_table.h"

/* Once the table of the first snapshot is there: fills in series->scaled, told by names and dtypes
 * of all tensors of the file, whether they take part or not. */
PHEMA_FALLIBLE scales_find(const struct agreement *agreement, struct phema_error *err);

#endif
