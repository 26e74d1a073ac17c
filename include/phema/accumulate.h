/* accumulate.h - sum += weight * tensor, for n inputs and K targets, one tile at a time.
 * Each element is summed over the inputs in their order, with one fused multiply-add each. Results
 * are the same bits for any tile size, number of targets, thread count and CPU level; ref.c defines
 * them. No state: safe from any thread. */
#ifndef PHEMA_ACCUMULATE_H
#define PHEMA_ACCUMULATE_H

#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/span.h"

enum phema_accumulator {
    PHEMA_ACCUMULATE_F64, /* sums in double: fma(weight, (double)x, sum) */
    PHEMA_ACCUMULATE_F32  /* sums in float: fmaf((float)weight, (float)x, sum) */
};

/* Bytes of a sum. */
static inline size_t phema_accumulator_size(enum phema_accumulator accumulator)
{
    return accumulator == PHEMA_ACCUMULATE_F64 ? sizeof(double) : sizeof(float);
}

struct phema_tile {
    const uint8_t *const *inputs; /* [n_inputs] first element of each, at any address */
    const double *weights;        /* [n_inputs x n_targets] row-major */
    size_t n_inputs, n_targets;
    size_t n_elems; /* even for F4 */
    enum phema_dtype dtype;
};

/* A set of kernels: "ref", "avx2", "avx512", "neon". */
struct phema_backend;
const struct phema_backend *phema_backend_for_cpu(void); /* the best that cpu.h allows */
/* NULL when unknown, not compiled in, or not runnable on this machine */
const struct phema_backend *phema_backend_named(const char *name);
const char *phema_backend_name(const struct phema_backend *backend);

/* true for floats of every width except F6, whose packing is not settled and which nobody
 * writes. */
bool phema_can_accumulate(enum phema_dtype dtype);

/* sums[m][0..n_elems) += sum_k weights[k][m] * inputs[k]; sums: [n_targets] rows of double or
 * float, row m at (char *)sums + m * row_bytes, aligned to 64 bytes. */
void phema_accumulate(const struct phema_backend *backend, enum phema_accumulator accumulator,
                      void *sums, size_t row_bytes, const struct phema_tile *tile);

/* Counts of rounding sums to the dtype of the output. */
struct phema_narrow_counts {
    uint64_t n_overflow; /* finite sums beyond the dtype's largest finite number */
    uint64_t n_nan, n_inf;
};
enum phema_overflow {
    PHEMA_OVERFLOW_INF,     /* to infinity (E4M3 has none: NaN) */
    PHEMA_OVERFLOW_SATURATE /* to the largest finite number of that sign */
};

/* Round n sums once, to nearest even, into dtype; NaN becomes the canonical quiet NaN. Adds to
 * counts. The same bits from every backend. out: any address. */
void phema_narrow(const struct phema_backend *backend, void *out, enum phema_dtype dtype,
                  enum phema_accumulator accumulator, const void *sums, size_t n,
                  enum phema_overflow overflow, struct phema_narrow_counts *counts);

/* Converts n elements of a floating dtype to double, exactly (F4: n even). For comparing and
 * sampling. */
void phema_widen(double *out, enum phema_dtype dtype, const uint8_t *data, size_t n);

#endif
