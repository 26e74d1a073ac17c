/* backend.h - what a set of kernels is made of, and how the rooms' files share the work: backend.c
 * chooses, tile.c cuts a tile into blocks that stay in the caches, simd_*.c do the inner loops. */
#ifndef ACCUMULATE_BACKEND_H
#define ACCUMULATE_BACKEND_H

#include "phema/accumulate.h"
#include "phema/cpu.h"

/* Kernels work on whole steps; what is left over goes element by element. */
#define PHEMA_STEP_ELEMS 64
/* The most that one call of a kernel may have: inputs, because a panel of them shall stay in the
 * first-level cache; targets, because of the registers (of AVX-512; others have less). */
#define PHEMA_GROUP_INPUTS  32
#define PHEMA_GROUP_TARGETS 13

/* To which cache a kernel asks for its inputs ahead. Files that are laid out alike begin alike in
 * their pages, so that lines of many inputs compete for the same few places of the first one, and
 * push each other out before they are used. */
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
    size_t
        max_inputs; /* of a block with many targets: more read and write the sums less often, fewer
                     * keep their places in the first-level cache where files are laid out alike */
    void (*add)(enum phema_dtype dtype, const struct phema_block *block);
    /* out: [n_elems] of the accumulator's type, n_elems a multiple of the step */
    void (*widen)(void *out, enum phema_dtype dtype, const uint8_t *data, size_t n_elems);
    /* any n_elems; as phema_ref_narrow */
    void (*narrow)(uint8_t *out, enum phema_dtype dtype, const void *sums, size_t n_elems,
                   enum phema_overflow overflow, struct phema_narrow_counts *counts);
};

struct phema_backend {
    const char *name;
    enum phema_cpu_level level;          /* that this needs */
    const struct phema_kernels *kernels; /* [2] by accumulator, or NULL: */
    void (*accumulate)(enum phema_accumulator accumulator, void *sums, size_t row_bytes,
                       const struct phema_tile *tile);
};

extern const struct phema_kernels phema_avx2_kernels[2];
extern const struct phema_kernels phema_avx512_kernels[2];
extern const struct phema_kernels phema_neon_kernels[2];

static inline size_t phema_accumulator_size(enum phema_accumulator accumulator)
{
    return accumulator == PHEMA_ACCUMULATE_F64 ? sizeof(double) : sizeof(float);
}

/* Those that the kernels read and write themselves. */
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

#endif
