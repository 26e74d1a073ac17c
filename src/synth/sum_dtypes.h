/* sum_dtypes.h - in which precision a tile is added up: a matter of the tensor's dtypes and of one
 * target's weights alone, so that an output's bytes do not depend on what else is made. */
#ifndef SYNTH_SUM_DTYPES_H
#define SYNTH_SUM_DTYPES_H

#include "phema/synth.h"

struct run;
struct group;

/* Whatever the weights are. */
bool sums_need_float64(const struct run *run, size_t tensor);

/* Of a target with these weights [n], one for each snapshot: whether the sums of all tensors that
 * do not need float64 are of float32. */
bool sums_fit_float32(enum phema_sums sums, const double *weights, size_t n);

enum phema_accumulator sum_dtype_of(const struct run *run, const struct group *group,
                                    size_t tensor);

#endif
