// SPDX-License-Identifier: Apache-2.0
/* blocking.c - splits a tile into blocks whose sums fit the second-level cache. Splits blocks into
 * groups of inputs and sets of targets that fit the registers of the kernels. Elements of 8 bits
 * and less are looked up in a table and stored in a panel of floats in the first-level cache. Other
 * elements are converted again for each set, which overlaps with the sums and costs less than a
 * panel. The order in which an element is summed stays the same. */
#include "backend.h"

#include <string.h>

/* Half of the second-level cache of common machines. */
#define SUMS_BYTES ((size_t)512 * 1024)
/* Space in a first-level cache of 32 KiB next to the sums and weights of a set. */
#define PANEL_BYTES ((size_t)24 * 1024)
/* Inputs of a group, which every set reads again: a quarter of the second-level cache. */
#define FILES_BYTES ((size_t)256 * 1024)
/* Padding of rows of a panel: at a distance of a power of two they would compete for the same sets
 * of the cache. */
#define PANEL_GAP_BYTES 64
/* Targets whose weights are laid out at a time: three sets of the widest kernels. */
#define SPAN_TARGETS ((size_t)3 * PHEMA_GROUP_TARGETS)

/* For so few targets memory is the limit. A few inputs at a time are then read fastest: as many as
 * a first-level cache has ways. */
#define FEW_TARGETS 6
#define FEW_INPUTS  8
/* Shorter ranges of an input are read slowly. */
#define MIN_BLOCK_ELEMS ((size_t)1024)

struct pass {
    const struct phema_kernels *kernels;
    enum phema_accumulator accumulator;
    size_t scalar_bytes; /* of the accumulator */
    const struct phema_tile *tile;
    const void *small_values; /* [PHEMA_N_CODES] of the accumulator's type for dtypes of 8 bits or
                               * less, else NULL */
};

/* Some inputs of a tile and some of its targets. */
struct group {
    const uint8_t *inputs[PHEMA_GROUP_INPUTS];
    size_t n_inputs;
    uint8_t *sums; /* of the first target */
    size_t row_bytes;
    size_t n_targets, n_sets;
    size_t set_starts[SPAN_TARGETS + 1]; /* set i has the targets [starts[i], starts[i + 1]) */
    _Alignas(64) union {
        double f64[SPAN_TARGETS * PHEMA_GROUP_INPUTS];
        float f32[SPAN_TARGETS * PHEMA_GROUP_INPUTS];
    } weights; /* set by set, as the kernels want them: [n_inputs x targets of the set] */
};

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Splits n items evenly into parts of at most max. An uneven split costs more: the last of 25
 * targets alone would cost as much as 6. */
static size_t n_parts(size_t n, size_t max)
{
    return n / max + (n % max != 0);
}

static size_t part_start(size_t n, size_t max, size_t i)
{
    size_t parts = n_parts(n, max);
    return n / parts * i + min_size(i, n % parts);
}

static void lay_out_weights(const struct pass *pass, struct group *group, size_t first_input,
                            size_t first_target)
{
    const struct phema_tile *tile = pass->tile;
    size_t at = 0;
    for (size_t set = 0; set < group->n_sets; set++) {
        for (size_t k = 0; k < group->n_inputs; k++) {
            const double *from = tile->weights + (first_input + k) * tile->n_targets + first_target;
            for (size_t m = group->set_starts[set]; m < group->set_starts[set + 1]; m++, at++) {
                if (pass->accumulator == PHEMA_ACCUMULATE_F64)
                    group->weights.f64[at] = from[m];
                else
                    group->weights.f32[at] = (float)from[m];
            }
        }
    }
}

static void fill_doubles(double *out, const double *values, bool is_f4, const uint8_t *data,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = values[!is_f4 ? data[i] : i % 2 ? data[i / 2] >> 4 : data[i / 2] & 15];
}

static void fill_floats(float *out, const float *values, bool is_f4, const uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = values[!is_f4 ? data[i] : i % 2 ? data[i / 2] >> 4 : data[i / 2] & 15];
}

static void look_up(const struct pass *pass, void *out, const uint8_t *data, size_t n)
{
    bool is_f4 = pass->tile->dtype == PHEMA_F4;
    if (pass->accumulator == PHEMA_ACCUMULATE_F64)
        fill_doubles(out, pass->small_values, is_f4, data, n);
    else
        fill_floats(out, pass->small_values, is_f4, data, n);
}

/* Adds block->inputs, of this dtype, to the sums of a set from element i on. */
static void add_set(const struct pass *pass, const struct group *group, size_t set, size_t i,
                    enum phema_dtype dtype, struct phema_block *block)
{
    size_t first = group->set_starts[set];
    block->n_targets = group->set_starts[set + 1] - first;
    block->weights =
        (const uint8_t *)&group->weights + first * group->n_inputs * pass->scalar_bytes;
    block->n_inputs = group->n_inputs;
    block->sums = group->sums + first * group->row_bytes + i * pass->scalar_bytes;
    block->row_bytes = group->row_bytes;
    pass->kernels->add(dtype, block);
}

/* Adds elements [first, end) of a group, which fit a panel. */
static void add_panel(const struct pass *pass, const struct group *group, size_t first, size_t end)
{
    _Alignas(64) uint8_t panel[PANEL_BYTES + (size_t)PHEMA_GROUP_INPUTS * PANEL_GAP_BYTES];
    size_t row_bytes = (end - first) * pass->scalar_bytes + PANEL_GAP_BYTES;
    unsigned bits = phema_dtype_bits(pass->tile->dtype);
    const uint8_t *rows[PHEMA_GROUP_INPUTS];
    for (size_t k = 0; k < group->n_inputs; k++) {
        look_up(pass, panel + k * row_bytes, group->inputs[k] + first * bits / 8, end - first);
        rows[k] = panel + k * row_bytes;
    }
    struct phema_block block = {.inputs = rows, .n_elems = end - first};
    enum phema_dtype wide = pass->accumulator == PHEMA_ACCUMULATE_F64 ? PHEMA_F64 : PHEMA_F32;
    for (size_t set = 0; set < group->n_sets; set++)
        add_set(pass, group, set, first, wide, &block);
}

/* Adds elements [first, end) of a group as the file has them. */
static void add_files(const struct pass *pass, const struct group *group, size_t first, size_t end)
{
    const uint8_t *inputs[PHEMA_GROUP_INPUTS];
    for (size_t k = 0; k < group->n_inputs; k++)
        inputs[k] = group->inputs[k] + first * phema_dtype_bits(pass->tile->dtype) / 8;
    struct phema_block block = {.inputs = inputs, .n_elems = end - first};
    for (size_t set = 0; set < group->n_sets; set++) {
        block.prefetch = set > 0                        ? PHEMA_PREFETCH_NONE
                         : group->n_inputs > FEW_INPUTS ? PHEMA_PREFETCH_L2
                                                        : PHEMA_PREFETCH_L1;
        add_set(pass, group, set, first, pass->tile->dtype, &block);
    }
}

/* Adds elements [first, end) of a group, a whole number of steps. */
static void add_group(const struct pass *pass, const struct group *group, size_t first, size_t end)
{
    size_t n_bytes = pass->small_values ? PANEL_BYTES : FILES_BYTES;
    size_t elem_bytes =
        pass->small_values ? pass->scalar_bytes : phema_dtype_bits(pass->tile->dtype) / 8;
    size_t n_inputs = group->n_inputs ? group->n_inputs : 1;
    size_t n_elems = n_bytes / elem_bytes / n_inputs;
    n_elems -= n_elems % PHEMA_STEP_ELEMS;
    if (!pass->small_values && group->n_sets == 1)
        n_elems = end - first;
    for (size_t i = first; i < end; i += n_elems) {
        if (pass->small_values)
            add_panel(pass, group, i, min_size(end, i + n_elems));
        else
            add_files(pass, group, i, min_size(end, i + n_elems));
    }
}

/* Adds the last elements of a tile, less than a step, as one step filled with zeros. */
static void add_rest(const struct pass *pass, const struct group *group, size_t first)
{
    struct group rest = *group;
    _Alignas(64) uint8_t data[PHEMA_GROUP_INPUTS][PHEMA_STEP_ELEMS * sizeof(double)];
    _Alignas(64) uint8_t sums[SPAN_TARGETS][PHEMA_STEP_ELEMS * sizeof(double)];
    unsigned bits = phema_dtype_bits(pass->tile->dtype);
    size_t n = pass->tile->n_elems - first;
    for (size_t k = 0; k < group->n_inputs; k++) {
        memset(data[k], 0, PHEMA_STEP_ELEMS * bits / 8);
        memcpy(data[k], group->inputs[k] + first * bits / 8, n * bits / 8);
        rest.inputs[k] = data[k];
    }
    uint8_t *rows = group->sums + first * pass->scalar_bytes;
    size_t row_bytes = group->row_bytes;
    memset(sums, 0, group->n_targets * sizeof(sums[0]));
    for (size_t m = 0; m < group->n_targets; m++)
        memcpy(sums[m], rows + m * row_bytes, n * pass->scalar_bytes);
    rest.sums = sums[0];
    rest.row_bytes = sizeof(sums[0]);
    add_group(pass, &rest, 0, PHEMA_STEP_ELEMS);
    for (size_t m = 0; m < group->n_targets; m++)
        memcpy(rows + m * row_bytes, sums[m], n * pass->scalar_bytes);
}

/* Adds elements [first, end) of all inputs to all targets. */
static void add_block(const struct pass *pass, uint8_t *sums, size_t row_bytes, size_t first,
                      size_t end)
{
    const struct phema_tile *tile = pass->tile;
    size_t max_inputs = tile->n_targets < FEW_TARGETS ? FEW_INPUTS : pass->kernels->max_inputs;
    for (size_t i = 0; i < n_parts(tile->n_inputs, max_inputs); i++) {
        size_t k = part_start(tile->n_inputs, max_inputs, i);
        for (size_t j = 0; j < n_parts(tile->n_targets, SPAN_TARGETS); j++) {
            size_t m = part_start(tile->n_targets, SPAN_TARGETS, j);
            struct group group;
            group.n_inputs = part_start(tile->n_inputs, max_inputs, i + 1) - k;
            memcpy(group.inputs, tile->inputs + k, group.n_inputs * sizeof(group.inputs[0]));
            group.n_targets = part_start(tile->n_targets, SPAN_TARGETS, j + 1) - m;
            group.n_sets = n_parts(group.n_targets, pass->kernels->max_targets);
            for (size_t set = 0; set <= group.n_sets; set++)
                group.set_starts[set] =
                    part_start(group.n_targets, pass->kernels->max_targets, set);
            group.sums = sums + m * row_bytes;
            group.row_bytes = row_bytes;
            lay_out_weights(pass, &group, k, m);
            if (end - first >= PHEMA_STEP_ELEMS)
                add_group(pass, &group, first, end);
            else
                add_rest(pass, &group, first);
        }
    }
}

void phema_tile_accumulate(const struct phema_kernels *kernels, enum phema_accumulator accumulator,
                           void *sums, size_t row_bytes, const struct phema_tile *tile)
{
    if (!tile->n_elems || !tile->n_inputs || !tile->n_targets)
        return;
    double small_values[PHEMA_N_CODES];
    float small_floats[PHEMA_N_CODES];
    struct pass pass = {kernels, accumulator, phema_accumulator_size(accumulator), tile, NULL};
    if (!phema_is_wide(tile->dtype)) {
        phema_small_values(small_values, tile->dtype);
        for (size_t i = 0; i < PHEMA_N_CODES; i++)
            small_floats[i] = (float)small_values[i];
        pass.small_values =
            accumulator == PHEMA_ACCUMULATE_F64 ? (const void *)small_values : small_floats;
    }

    size_t n_whole = tile->n_elems - tile->n_elems % PHEMA_STEP_ELEMS;
    size_t block_elems = SUMS_BYTES / pass.scalar_bytes / tile->n_targets;
    block_elems -= block_elems % PHEMA_STEP_ELEMS;
    if (block_elems < MIN_BLOCK_ELEMS)
        block_elems = MIN_BLOCK_ELEMS;
    for (size_t i = 0; i < n_whole; i += block_elems)
        add_block(&pass, sums, row_bytes, i, min_size(n_whole, i + block_elems));
    if (n_whole < tile->n_elems)
        add_block(&pass, sums, row_bytes, n_whole, tile->n_elems);
}
