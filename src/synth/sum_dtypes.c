// SPDX-License-Identifier: Apache-2.0
/* sum_dtypes.c - see sum_dtypes.h. Adding up n products w x in float32 is off by at most u times
 * the sum of (n - i + 2) |w_i x_i|, i from 1, to first order in u = 2^-24: w_i is rounded once, and
 * each addition from the i-th on rounds what is there (Higham, Accuracy and Stability of Numerical
 * Algorithms, section 3.1). Snapshots of one training are nearly equal, and so the x. */
#include "sum_dtypes.h"

#include <math.h>

#include "run_state.h"

/* Rounding to F16 is off by up to 2^-11 of a number, to narrower types and BF16 by more. Sums whose
 * own error stays below 2^-18, which is 2^-24 times this, change one in a hundred roundings at
 * most, in the last bit. Narrow targets have large weights and need more. */
#define MAX_ROUNDINGS 64.0

/* At most 16 bits, and numbers up to 65504: their sums stay far inside the range of float32. That
 * of BF16 is as large, and a sum of large numbers could leave it though the average would not. */
static bool is_of_small_range(enum phema_dtype dtype)
{
    switch (dtype) {
    case PHEMA_F16:
    case PHEMA_F8_E4M3:
    case PHEMA_F8_E5M2:
    case PHEMA_F8_E4M3FNUZ:
    case PHEMA_F8_E5M2FNUZ:
    case PHEMA_F4:
        return true;
    default:
        return false;
    }
}

bool sums_need_float64(const struct run *run, size_t tensor)
{
    enum phema_dtype dtype = run->plan->series->tensors[tensor].tensor.dtype;
    switch (run->options.sums) {
    case PHEMA_SUMS_F32: /* would overflow where doubles do not, and lose what only a double holds
                          */
        return dtype == PHEMA_F64;
    case PHEMA_SUMS_AUTO:
        return !is_of_small_range(dtype) || phema_dtype_bits(run->outputs->dtypes[tensor]) > 16;
    case PHEMA_SUMS_F64:
        break;
    }
    return true;
}

bool sums_fit_float32(enum phema_sums sums, const double *weights, size_t n)
{
    if (sums != PHEMA_SUMS_AUTO)
        return sums == PHEMA_SUMS_F32;
    double roundings = 0, behind = 2;
    for (size_t k = n; k-- > 0;) {
        if (weights[k] == 0) /* takes no part */
            continue;
        roundings += behind * fabs(weights[k]);
        behind++;
    }
    return roundings <= MAX_ROUNDINGS;
}

enum phema_accumulator sum_dtype_of(const struct run *run, const struct group *group, size_t tensor)
{
    return group->fits_float32 && !sums_need_float64(run, tensor) ? PHEMA_ACCUMULATE_F32
                                                                  : PHEMA_ACCUMULATE_F64;
}
