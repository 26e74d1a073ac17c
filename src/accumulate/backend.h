/* backend.h - private to accumulate/: a set of kernels. backend.c chooses one, blocking.c splits a
 * tile into blocks that fit the caches, simd_*.c have the inner loops. */
#ifndef ACCUMULATE_BACKEND_H
#define ACCUMULATE_BACKEND_H

#include "phema/accumulate.h"
#include "phema/cpu.h"
#include "phema/dtype.h"

/* Elements of one step of the kernels: blocking.c fills the last step of a tile with zeros. */
#define PHEMA_STEP_ELEMS 64
/* Limits of one call of a kernel. Inputs: a panel of them must fit the first-level cache. Targets:
 * the registers of AVX-512; other instruction sets have fewer. */
#define PHEMA_GROUP_INPUTS  32
#define PHEMA_GROUP_TARGETS 13

/* The cache to which a kernel prefetches its inputs. Tensors of files with equal headers begin at
 * the same offset of a page. Lines of many inputs then compete for the same few sets of the
 * first-level cache, and evict each other before use. */
enum phema_prefetch { PHEMA_PREFETCH_NONE, PHEMA_PREFETCH_L1, PHEMA_PREFETCH_L2 };

/* sums[m] += sum_k weights[k][m] * inputs[k] for a whole number of steps, in the order of k */
struct phema_block {
    uint8_t *sums; /* n_targets rows, row_bytes apart */
    size_t row_bytes;
    const uint8_t *const *inputs; /* [n_inputs] */
    const void *weights;          /* row-major [n_inputs x n_targets], of the accumulator's type */
    size_t n_inputs, n_targets, n_elems;
    enum phema_prefetch prefetch;
};

/* The kernels of one instruction set for one accumulator. dtype: F16, BF16, F32 or F64. */
struct phema_kernels {
    size_t max_targets; /* of a block */
    /* Of a block with many targets. More inputs read and write the sums less often. Fewer stay in
     * the first-level cache where files have equal headers. */
    size_t max_inputs;
    void (*add)(enum phema_dtype dtype, const struct phema_block *block);
    /* out: [n_elems] of the accumulator's type, n_elems a multiple of the step */
    void (*widen)(void *out, enum phema_dtype dtype, const uint8_t *data, size_t n_elems);
    /* any n_elems; as phema_ref_narrow */
    void (*narrow)(uint8_t *out, enum phema_dtype dtype, const void *sums, size_t n_elems,
                   enum phema_overflow overflow, struct phema_narrow_counts *counts);
};

struct phema_backend {
    const char *name;
    enum phema_cpu_level level;          /* required */
    const struct phema_kernels *kernels; /* [2] by accumulator; NULL: accumulate does all */
    void (*accumulate)(enum phema_accumulator accumulator, void *sums, size_t row_bytes,
                       const struct phema_tile *tile);
};

extern const struct phema_kernels phema_avx2_kernels[2];
extern const struct phema_kernels phema_avx512_kernels[2];
extern const struct phema_kernels phema_neon_kernels[2];

/* true for dtypes that kernels read and write; others go through tables. */
static inline bool phema_is_wide(enum phema_dtype dtype)
{
    return dtype == PHEMA_F16 || dtype == PHEMA_BF16 || dtype == PHEMA_F32 || dtype == PHEMA_F64;
}

void phema_ref_accumulate(enum phema_accumulator accumulator, void *sums, size_t row_bytes,
                          const struct phema_tile *tile);
void phema_ref_narrow(uint8_t *out, enum phema_dtype dtype, enum phema_accumulator accumulator,
                      const void *sums, size_t n, enum phema_overflow overflow,
                      struct phema_narrow_counts *counts);

void phema_tile_accumulate(const struct phema_kernels *kernels, enum phema_accumulator accumulator,
                           void *sums, size_t row_bytes, const struct phema_tile *tile);

/* ---- round.c: scalar conversion from double to every dtype, with one rounding to nearest even ----
 * phema/dtype.h has the reverse. It is the reference for the vector kernels, and converts the
 * elements that they leave. NaN becomes the positive quiet NaN. F4 has neither NaN nor infinity:
 * NaN and numbers that are too large become its largest number, as in ONNX. F8_E8M0 has powers of
 * two only. There zero becomes the smallest, ties go up as in PyTorch, and a negative number becomes
 * NaN and counts as overflow. */

/* Writes x to element i of out. Odd elements of F4 are written after their even neighbours. */
void phema_element_narrow(uint8_t *out, enum phema_dtype dtype, size_t i, double x,
                          enum phema_overflow overflow, struct phema_narrow_counts *counts);

/* The values of all codes of a dtype of 4 or 8 bits. */
#define PHEMA_N_CODES 256
void phema_small_values(double *values, enum phema_dtype dtype);

#endif
