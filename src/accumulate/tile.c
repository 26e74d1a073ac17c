// SPDX-License-Identifier: Apache-2.0
/* tile.c - cuts a tile into blocks whose sums stay in the second-level cache, and those into groups
 * of inputs and targets that fit the registers of the kernels. Dtypes of 8 bits and less are first
 * looked up in a table and laid into a panel of numbers in the first-level cache; for the others a
 * panel does not pay (measured: 5 to 45 % slower than converting again for every 4 targets).
 * Nothing of this changes the order in which an element is summed. */
#include "backend.h"

#include "convert.h"

/* Half of the second-level cache of common machines. */
#define SUMS_BYTES ((size_t)512 * 1024)
/* With 8 inputs a panel takes half of the first-level cache. */
#define PANEL_ELEMS 256

struct pass {
    const struct phema_kernels *kernels;
    enum phema_accumulator accumulator;
    uint8_t *sums;
    size_t row_bytes;
    const struct phema_tile *tile;
    const double *small_values; /* of dtypes of 8 bits and less, else NULL */
};

/* Targets in groups of 4, 2 and 1: the widths that the kernels have. */
static size_t group_targets(size_t n_left)
{
    return n_left >= 4 ? 4 : n_left >= 2 ? 2 : 1;
}

/* Add block->inputs, which are the tile's inputs first_input..., into all targets at first_elem. */
static void add_group(const struct pass *pass, struct phema_block *block, enum phema_dtype dtype,
                      size_t first_input, size_t first_elem)
{
    const struct phema_tile *tile = pass->tile;
    for (size_t m = 0; m < tile->n_targets; m += block->n_targets) {
        block->n_targets = group_targets(tile->n_targets - m);
        for (size_t k = 0; k < block->n_inputs; k++) {
            for (size_t j = 0; j < block->n_targets; j++) {
                double weight = tile->weights[(first_input + k) * tile->n_targets + m + j];
                size_t at = k * PHEMA_GROUP_TARGETS + j;
                if (pass->accumulator == PHEMA_ACCUMULATE_F64)
                    block->weights.f64[at] = weight;
                else
                    block->weights.f32[at] = (float)weight;
            }
        }
        block->sums = pass->sums + m * pass->row_bytes +
                      first_elem * phema_accumulator_size(pass->accumulator);
        pass->kernels->add(dtype, block);
    }
}

static void fill_doubles(double *out, const double *values, bool is_f4, const uint8_t *data,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = values[!is_f4 ? data[i] : i % 2 ? data[i / 2] >> 4 : data[i / 2] & 15];
}

static void fill_floats(float *out, const double *values, bool is_f4, const uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)values[!is_f4 ? data[i] : i % 2 ? data[i / 2] >> 4 : data[i / 2] & 15];
}

/* Elements [first, end) of a group of inputs, by way of a panel. */
static void add_panels(const struct pass *pass, struct phema_block *block, size_t first_input,
                       size_t first, size_t end)
{
    _Alignas(64) union {
        double f64[PANEL_ELEMS];
        float f32[PANEL_ELEMS];
    } panel[PHEMA_GROUP_INPUTS];
    const struct phema_tile *tile = pass->tile;
    unsigned bits = phema_dtype_bits(tile->dtype);
    for (size_t i = first; i < end; i += block->n_elems) {
        block->n_elems = end - i < PANEL_ELEMS ? end - i : PANEL_ELEMS;
        for (size_t k = 0; k < block->n_inputs; k++) {
            const uint8_t *data = tile->inputs[first_input + k] + i * bits / 8;
            if (pass->accumulator == PHEMA_ACCUMULATE_F64)
                fill_doubles(panel[k].f64, pass->small_values, bits == 4, data, block->n_elems);
            else
                fill_floats(panel[k].f32, pass->small_values, bits == 4, data, block->n_elems);
            block->inputs[k] = (const uint8_t *)&panel[k];
        }
        add_group(pass, block, pass->accumulator == PHEMA_ACCUMULATE_F64 ? PHEMA_F64 : PHEMA_F32,
                  first_input, i);
    }
}

static void add_block(const struct pass *pass, size_t first, size_t end)
{
    const struct phema_tile *tile = pass->tile;
    unsigned bits = phema_dtype_bits(tile->dtype);
    struct phema_block block = {.row_bytes = pass->row_bytes};
    for (size_t k = 0; k < tile->n_inputs; k += block.n_inputs) {
        size_t n_left = tile->n_inputs - k;
        block.n_inputs = n_left < PHEMA_GROUP_INPUTS ? n_left : PHEMA_GROUP_INPUTS;
        if (pass->small_values) {
            add_panels(pass, &block, k, first, end);
            continue;
        }
        for (size_t j = 0; j < block.n_inputs; j++)
            block.inputs[j] = tile->inputs[k + j] + first * bits / 8;
        block.n_elems = end - first;
        add_group(pass, &block, tile->dtype, k, first);
    }
}

void phema_tile_accumulate(const struct phema_kernels *kernels, enum phema_accumulator accumulator,
                           void *sums, size_t row_bytes, const struct phema_tile *tile)
{
    double small_values[PHEMA_N_CODES];
    bool is_small = !phema_is_wide(tile->dtype);
    if (is_small)
        phema_small_values(small_values, tile->dtype);
    struct pass pass = {kernels,   accumulator, sums,
                        row_bytes, tile,        is_small ? small_values : NULL};

    size_t n_whole = tile->n_elems - tile->n_elems % PHEMA_STEP_ELEMS;
    size_t row_elems = SUMS_BYTES / phema_accumulator_size(accumulator);
    size_t block_elems = PANEL_ELEMS;
    if (tile->n_targets && row_elems / tile->n_targets > PANEL_ELEMS)
        block_elems = row_elems / tile->n_targets / PANEL_ELEMS * PANEL_ELEMS;
    for (size_t i = 0; i < n_whole; i += block_elems)
        add_block(&pass, i, n_whole - i < block_elems ? n_whole : i + block_elems);
    phema_ref_accumulate(accumulator, sums, row_bytes, tile, n_whole);
}
