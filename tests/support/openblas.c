// SPDX-License-Identifier: Apache-2.0
/* openblas.c - sums of tiles by OpenBLAS, as a reference for tests and benchmarks. */
#include "openblas.h"

#include <cblas.h>

/* A panel of inputs in the accumulator's type, and their weights. */
#define PANEL_INPUTS  ((size_t)32)
#define PANEL_ELEMS   ((size_t)512)
#define PANEL_TARGETS ((size_t)64)

struct panel {
    _Alignas(64) double numbers[PANEL_INPUTS * PANEL_ELEMS];   /* or floats; rows of PANEL_ELEMS */
    _Alignas(64) double weights[PANEL_INPUTS * PANEL_TARGETS]; /* likewise; rows of PANEL_TARGETS */
};

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Converts elements [first, first + n) of inputs [k, k + n_inputs). */
static void fill_panel(struct panel *panel, enum phema_accumulator accumulator,
                       const struct phema_tile *tile, size_t k, size_t n_inputs, size_t first,
                       size_t n)
{
    float *floats = (void *)panel->numbers;
    for (size_t j = 0; j < n_inputs; j++) {
        const uint8_t *data = tile->inputs[k + j] + first * phema_dtype_bits(tile->dtype) / 8;
        double wide[PANEL_ELEMS];
        phema_widen(wide, tile->dtype, data, n);
        for (size_t i = 0; i < n; i++) {
            if (accumulator == PHEMA_ACCUMULATE_F64)
                panel->numbers[j * PANEL_ELEMS + i] = wide[i];
            else
                floats[j * PANEL_ELEMS + i] = (float)wide[i];
        }
    }
}

/* Adds the panel to the sums of targets [m, m + n_targets). */
static void add_panel(struct panel *panel, enum phema_accumulator accumulator, uint8_t *sums,
                      size_t row_bytes, const struct phema_tile *tile, size_t k, size_t n_inputs,
                      size_t m, size_t n_targets, size_t n_elems)
{
    float *floats = (void *)panel->weights;
    for (size_t j = 0; j < n_inputs; j++) {
        for (size_t i = 0; i < n_targets; i++) {
            double weight = tile->weights[(k + j) * tile->n_targets + m + i];
            if (accumulator == PHEMA_ACCUMULATE_F64)
                panel->weights[j * PANEL_TARGETS + i] = weight;
            else
                floats[j * PANEL_TARGETS + i] = (float)weight;
        }
    }
    blasint rows = (blasint)n_targets, columns = (blasint)n_elems, depth = (blasint)n_inputs;
    blasint apart = (blasint)(row_bytes / phema_accumulator_size(accumulator));
    if (accumulator == PHEMA_ACCUMULATE_F64)
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, columns, depth, 1,
                    panel->weights, (blasint)PANEL_TARGETS, panel->numbers, (blasint)PANEL_ELEMS, 1,
                    (double *)(void *)sums, apart);
    else
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, columns, depth, 1, floats,
                    (blasint)PANEL_TARGETS, (float *)(void *)panel->numbers, (blasint)PANEL_ELEMS,
                    1, (float *)(void *)sums, apart);
}

/* OpenBLAS has one number of threads for the whole process; it is restored afterwards. */
static void accumulate(enum phema_accumulator accumulator, void *sums, size_t row_bytes,
                       const struct phema_tile *tile)
{
    int n_threads = openblas_get_num_threads();
    openblas_set_num_threads(1);
    struct panel panel;
    for (size_t i = 0; i < tile->n_elems; i += PANEL_ELEMS) {
        size_t n = min_size(tile->n_elems - i, PANEL_ELEMS);
        for (size_t k = 0; k < tile->n_inputs; k += PANEL_INPUTS) {
            size_t n_inputs = min_size(tile->n_inputs - k, PANEL_INPUTS);
            fill_panel(&panel, accumulator, tile, k, n_inputs, i, n);
            for (size_t m = 0; m < tile->n_targets; m += PANEL_TARGETS)
                add_panel(&panel, accumulator,
                          (uint8_t *)sums + m * row_bytes + i * phema_accumulator_size(accumulator),
                          row_bytes, tile, k, n_inputs, m,
                          min_size(tile->n_targets - m, PANEL_TARGETS), n);
        }
    }
    openblas_set_num_threads(n_threads);
}

const struct phema_backend openblas_backend = {"openblas", PHEMA_CPU_REF, NULL, accumulate};
