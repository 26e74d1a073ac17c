// SPDX-License-Identifier: Apache-2.0
/* backend.c - the table of kernel sets and the choice among them. A new set is a file with its
 * kernels and a line here. */
#include "phema/accumulate.h"

#include <string.h>

#include "backend.h"

/* Best first. */
static const struct phema_backend backends[] = {
#if defined(__x86_64__)
    {"avx512", PHEMA_CPU_AVX512, phema_avx512_kernels, NULL},
    {"avx2", PHEMA_CPU_AVX2, phema_avx2_kernels, NULL},
#elif defined(__aarch64__)
    {"neon", PHEMA_CPU_NEON, phema_neon_kernels, NULL},
#endif
    {"ref", PHEMA_CPU_REF, NULL, phema_ref_accumulate},
};

const struct phema_backend *phema_backend_for_cpu(void)
{
    enum phema_cpu_level level = phema_cpu_level();
    size_t i = 0;
    while (backends[i].level > level)
        i++;
    return &backends[i];
}

const struct phema_backend *phema_backend_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(backends); i++) {
        if (strcmp(backends[i].name, name) == 0)
            return backends[i].level <= phema_cpu_level() ? &backends[i] : NULL;
    }
    return NULL;
}

const char *phema_backend_name(const struct phema_backend *backend)
{
    return backend->name;
}

bool phema_can_accumulate(enum phema_dtype dtype)
{
    return phema_dtype_is_float(dtype) && dtype != PHEMA_F6_E2M3 && dtype != PHEMA_F6_E3M2;
}

void phema_accumulate(const struct phema_backend *backend, enum phema_accumulator accumulator,
                      void *sums, size_t row_bytes, const struct phema_tile *tile)
{
    if (backend->kernels)
        phema_tile_accumulate(&backend->kernels[accumulator], accumulator, sums, row_bytes, tile);
    else
        backend->accumulate(accumulator, sums, row_bytes, tile);
}

void phema_narrow(const struct phema_backend *backend, void *out, enum phema_dtype dtype,
                  enum phema_accumulator accumulator, const void *sums, size_t n,
                  enum phema_overflow overflow, struct phema_narrow_counts *counts)
{
    if (backend->kernels && phema_is_wide(dtype))
        backend->kernels[accumulator].narrow(out, dtype, sums, n, overflow, counts);
    else
        phema_ref_narrow(out, dtype, accumulator, sums, n, overflow, counts);
}

static void widen_small(double *out, enum phema_dtype dtype, const uint8_t *data, size_t n)
{
    double values[PHEMA_N_CODES];
    phema_small_values(values, dtype);
    for (size_t i = 0; i < n; i++) {
        if (dtype == PHEMA_F4)
            out[i] = values[i % 2 ? data[i / 2] >> 4 : data[i / 2] & 15];
        else
            out[i] = values[data[i]];
    }
}

void phema_widen(double *out, enum phema_dtype dtype, const uint8_t *data, size_t n)
{
    if (!phema_is_wide(dtype)) {
        widen_small(out, dtype, data, n);
        return;
    }
    const struct phema_kernels *kernels = phema_backend_for_cpu()->kernels;
    size_t n_whole = kernels ? n - n % PHEMA_STEP_ELEMS : 0;
    if (n_whole)
        kernels[PHEMA_ACCUMULATE_F64].widen(out, dtype, data, n_whole);
    for (size_t i = n_whole; i < n; i++)
        out[i] = phema_element_widen(dtype, data, i);
}
