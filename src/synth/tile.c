// SPDX-License-Identifier: Apache-2.0
/* tile.c - one tile: n inputs in, a sum for every target out. Where all inputs are views of mapped
 * files they are added up together; where one has to be copied first (strided, in parts,
 * decompressed) they are added one after another, and each is read once for all targets. Both give
 * the same bits. Blocks that are equal in all inputs are copied instead, provided that the weights
 * sum to 1: masks, frozen layers and infinities stay what they are. */
#include <math.h>
#include <string.h>

#include "phema/text.h"
#include "worker.h"

/* Sums in float would overflow where doubles do not, and lose what only a double holds. */
static enum phema_accumulator accumulator_of(const struct run *run, size_t i)
{
    return run->plan->series->tensors[i].tensor.dtype == PHEMA_F64 ? PHEMA_ACCUMULATE_F64
                                                                   : run->options.accumulator;
}

static size_t row_bytes_of(const struct run *run, size_t i)
{
    return run->budget.sum_elems *
           (accumulator_of(run, i) == PHEMA_ACCUMULATE_F64 ? sizeof(double) : sizeof(float));
}

/* ---- Reading ---- */

static enum phema_status read_view(const uint8_t **data, const struct worker *worker, size_t k,
                                   const struct piece *piece, struct phema_error *err)
{
    const struct run *run = worker->run;
    struct phema_tensor tensor = phema_series_tensor_in(run->plan->series, k, piece->tensor);
    return phema_reader_read(data, run->readers[k], &tensor, piece->first, piece->n_elems,
                             worker->scratch, err);
}

/* The tile in snapshot k; one that is decoded is passed in turn even when it is not needed. A
 * worker that is abandoned has no data. */
static enum phema_status take(const uint8_t **data, struct worker *worker, size_t k, uint64_t tile,
                              bool is_needed, const struct piece *piece, struct phema_error *err)
{
    struct run *run = worker->run;
    bool is_decoded = run->plan->series->snapshots[k].is_decoded;
    if (is_decoded && !turns_wait(run->turns, k, tile)) {
        worker->is_abandoned = true;
        return PHEMA_OK;
    }
    enum phema_status status = is_needed ? read_view(data, worker, k, piece, err) : PHEMA_OK;
    if (is_decoded && !status)
        turns_pass(run->turns, k, tile);
    return status;
}

/* ---- Writing ---- */

/* To the tensor's place in the output, and to those of its aliases. */
static enum phema_status put(const struct worker *worker, size_t output, const struct piece *piece,
                             const void *data, struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_status status = PHEMA_OK;
    for (size_t i = piece->tensor; i != SIZE_MAX && !status; i = run->next_alias[i])
        status = sink_put(run->sinks[output], i, piece->first, piece->n_elems, data, err);
    return status;
}

static enum phema_status fail_overflow(const struct worker *worker, size_t output,
                                       const struct piece *piece, uint64_t n,
                                       struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct phema_tensor *tensor = &run->plan->series->tensors[piece->tensor].tensor;
    enum phema_dtype dtype = run->outputs->dtypes[piece->tensor];
    bool is_widened_by_f32 = phema_dtype_bits(part_dtype(dtype)) < 32;
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: tensor '%s': %llu averages are too large for %s; %sallow --overflow "
                      "saturate",
                      run->outputs->items[output].path,
                      phema_name_shown(&shown, tensor->name, tensor->name_size),
                      (unsigned long long)n, phema_dtype_name(dtype),
                      is_widened_by_f32 ? "write --dtype f32, or " : "");
}

/* worker->written becomes the row as the output has it. */
static enum phema_status narrow(struct worker *worker, size_t output, const struct piece *piece,
                                const void *row, enum phema_accumulator accumulator,
                                struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->outputs->dtypes[piece->tensor];
    struct phema_narrow_counts counts = {0, 0, 0};
    phema_narrow(run->backend, worker->written, part_dtype(dtype), accumulator, row,
                 (size_t)piece->n_elems * parts_of(dtype),
                 run->options.overflow == PHEMA_OVERFLOW_SATURATES ? PHEMA_OVERFLOW_SATURATE
                                                                   : PHEMA_OVERFLOW_INF,
                 &counts);
    worker->counts.n_overflow += counts.n_overflow;
    worker->counts.n_nan += counts.n_nan;
    worker->counts.n_inf += counts.n_inf;
    if ((counts.n_nan || counts.n_inf) && piece->tensor < worker->nan_tensor)
        worker->nan_tensor = piece->tensor;
    if (counts.n_overflow && run->options.overflow == PHEMA_OVERFLOW_IS_ERROR)
        return fail_overflow(worker, output, piece, counts.n_overflow, err);
    return PHEMA_OK;
}

/* ---- Tensors that are copied ---- */

static enum phema_status put_copy(struct worker *worker, const struct group *group,
                                  const struct piece *piece, const uint8_t *data,
                                  struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    bool is_converted = run->outputs->dtypes[piece->tensor] != dtype;
    if (is_converted)
        phema_widen(worker->sums, part_dtype(dtype), data,
                    (size_t)piece->n_elems * parts_of(dtype));
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < group->n_targets && !status; j++) {
        if (is_converted)
            status =
                narrow(worker, group->targets[j], piece, worker->sums, PHEMA_ACCUMULATE_F64, err);
        if (!status)
            status =
                put(worker, group->targets[j], piece, is_converted ? worker->written : data, err);
    }
    return status;
}

static enum phema_status copy_tile(struct worker *worker, uint64_t tile, const struct piece *piece,
                                   struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < run->plan->series->n && !status && !worker->is_abandoned; k++) {
        bool is_needed = false;
        for (size_t g = 0; g < run->n_groups; g++)
            is_needed = is_needed || run->groups[g].newest == k;
        const uint8_t *data = NULL;
        if (is_needed || run->plan->series->snapshots[k].is_decoded)
            status = take(&data, worker, k, tile, is_needed, piece, err);
        for (size_t g = 0; g < run->n_groups && data && !status; g++)
            if (run->groups[g].newest == k)
                status = put_copy(worker, &run->groups[g], piece, data, err);
    }
    return status;
}

/* ---- Blocks that are equal in all inputs ---- */

static size_t n_blocks_of(const struct piece *piece)
{
    return (size_t)((piece->n_elems + BLOCK_ELEMS - 1) / BLOCK_ELEMS);
}

/* Block b of the tile. */
static struct piece block_of(const struct piece *piece, size_t b)
{
    struct piece block = {piece->tensor, b * BLOCK_ELEMS, BLOCK_ELEMS};
    if (block.first + block.n_elems > piece->n_elems)
        block.n_elems = piece->n_elems - block.first;
    return block;
}

/* Most blocks differ in their first bytes, and cost one look. */
static void note_differences(uint8_t *equals, const struct piece *piece, enum phema_dtype dtype,
                             const uint8_t *a, const uint8_t *b)
{
    if (a == b)
        return;
    for (size_t x = 0; x < n_blocks_of(piece); x++) {
        if (!equals[x])
            continue;
        struct piece block = block_of(piece, x);
        uint64_t at = phema_dtype_bytes(dtype, block.first);
        equals[x] = memcmp(a + at, b + at, (size_t)phema_dtype_bytes(dtype, block.n_elems)) == 0;
    }
}

static void mark_varying(struct run *run, const struct piece *piece, const uint8_t *equals)
{
    _Atomic uint8_t *varies = &run->varies[piece->tensor];
    if (!atomic_load_explicit(varies, memory_order_relaxed) &&
        memchr(equals, false, n_blocks_of(piece)))
        atomic_store_explicit(varies, true, memory_order_relaxed);
}

/* Into the row of sums, so that it is converted and counted like all others. */
static void restore_block(void *row, enum phema_accumulator accumulator, enum phema_dtype dtype,
                          const struct piece *block, const uint8_t *data)
{
    double values[2 * BLOCK_ELEMS];
    size_t n = (size_t)block->n_elems * parts_of(dtype);
    size_t at = (size_t)block->first * parts_of(dtype);
    phema_widen(values, part_dtype(dtype), data + phema_dtype_bytes(dtype, block->first), n);
    if (accumulator == PHEMA_ACCUMULATE_F64) {
        memcpy((double *)row + at, values, n * sizeof(*values));
        return;
    }
    for (size_t i = 0; i < n; i++)
        ((float *)row)[at + i] = (float)values[i];
}

/* A row of sums to its output; blocks that are equal keep even the bits of their NaNs. */
static enum phema_status put_row(struct worker *worker, size_t output, const struct piece *piece,
                                 void *row, const struct group_state *state,
                                 struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    enum phema_accumulator accumulator = accumulator_of(run, piece->tensor);
    for (size_t b = 0; b < n_blocks_of(piece); b++) {
        struct piece block = block_of(piece, b);
        if (state->equals[b] && state->data)
            restore_block(row, accumulator, dtype, &block, state->data);
    }
    enum phema_status status = narrow(worker, output, piece, row, accumulator, err);
    if (status)
        return status;
    for (size_t b = 0; b < n_blocks_of(piece) && run->outputs->dtypes[piece->tensor] == dtype;
         b++) {
        struct piece block = block_of(piece, b);
        uint64_t at = phema_dtype_bytes(dtype, block.first);
        if (state->equals[b] && state->data)
            memcpy(worker->written + at, state->data + at,
                   (size_t)phema_dtype_bytes(dtype, block.n_elems));
    }
    return put(worker, output, piece, worker->written, err);
}

/* ---- Averages ---- */

static void start_group(struct worker *worker, size_t g, const struct piece *piece)
{
    const struct group *group = &worker->run->groups[g];
    struct group_state *state = &worker->states[g];
    memset(state->sums, 0, group->n_targets * row_bytes_of(worker->run, piece->tensor));
    memset(state->equals, group->sums_to_one && group->n_inputs > 0, n_blocks_of(piece));
    state->n_added = 0;
    state->data = NULL;
}

static enum phema_status finish_group(struct worker *worker, size_t g, const struct piece *piece,
                                      struct phema_error *err)
{
    struct run *run = worker->run;
    const struct group *group = &run->groups[g];
    const struct group_state *state = &worker->states[g];
    mark_varying(run, piece, state->equals);
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < group->n_targets && !status; j++)
        status = put_row(worker, group->targets[j], piece,
                         (char *)state->sums + j * row_bytes_of(run, piece->tensor), state, err);
    return status;
}

/* Adds n inputs, which follow those that the group has. */
static void add(struct worker *worker, size_t g, const struct piece *piece,
                const uint8_t *const *inputs, size_t n)
{
    const struct run *run = worker->run;
    const struct group *group = &run->groups[g];
    struct group_state *state = &worker->states[g];
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    struct phema_tile tile = {.inputs = inputs,
                              .weights = group->weights + state->n_added * group->n_targets,
                              .n_inputs = n,
                              .n_targets = group->n_targets,
                              .n_elems = (size_t)piece->n_elems * parts_of(dtype),
                              .dtype = part_dtype(dtype)};
    phema_accumulate(run->backend, accumulator_of(run, piece->tensor), state->sums,
                     row_bytes_of(run, piece->tensor), &tile);
    state->n_added += n;
}

/* All inputs are views. */
static enum phema_status average_together(struct worker *worker, const struct piece *piece,
                                          struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    for (size_t g = 0; g < run->n_groups; g++) {
        const struct group *group = &run->groups[g];
        struct group_state *state = &worker->states[g];
        start_group(worker, g, piece);
        enum phema_status status = PHEMA_OK;
        for (size_t x = 0; x < group->n_inputs && !status; x++) {
            status = read_view(&worker->inputs[x], worker, group->inputs[x], piece, err);
            if (!status)
                note_differences(state->equals, piece, dtype, worker->inputs[0], worker->inputs[x]);
        }
        if (status)
            return status;
        state->data = worker->inputs[0];
        add(worker, g, piece, worker->inputs, group->n_inputs);
        status = finish_group(worker, g, piece, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* The groups' next input, if it is snapshot k. The first one is kept to compare the others with. */
static void add_snapshot(struct worker *worker, size_t k, const struct piece *piece,
                         const uint8_t *data)
{
    struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    for (size_t g = 0; g < run->n_groups; g++) {
        const struct group *group = &run->groups[g];
        struct group_state *state = &worker->states[g];
        if (state->n_added == group->n_inputs || group->inputs[state->n_added] != k)
            continue;
        if (state->n_added == 0) {
            uint8_t *reference =
                worker->references + run->reference_of[g] * run->budget.buffers.reference;
            memcpy(reference, data, (size_t)phema_dtype_bytes(dtype, piece->n_elems));
            state->data = reference;
        }
        note_differences(state->equals, piece, dtype, state->data, data);
        add(worker, g, piece, &data, 1);
    }
}

static enum phema_status average_in_turn(struct worker *worker, uint64_t tile,
                                         const struct piece *piece, struct phema_error *err)
{
    const struct run *run = worker->run;
    for (size_t g = 0; g < run->n_groups; g++)
        start_group(worker, g, piece);
    for (size_t k = 0; k < run->plan->series->n; k++) {
        bool is_needed = false;
        for (size_t g = 0; g < run->n_groups; g++)
            is_needed = is_needed || (worker->states[g].n_added < run->groups[g].n_inputs &&
                                      run->groups[g].inputs[worker->states[g].n_added] == k);
        const uint8_t *data = NULL;
        enum phema_status status = take(&data, worker, k, tile, is_needed, piece, err);
        if (status || worker->is_abandoned)
            return status;
        if (data)
            add_snapshot(worker, k, piece, data);
    }
    enum phema_status status = PHEMA_OK;
    for (size_t g = 0; g < run->n_groups && !status; g++)
        status = finish_group(worker, g, piece, err);
    return status;
}

static bool are_views(const struct run *run, size_t i)
{
    const struct phema_series *series = run->plan->series;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_place *place = &series->snapshots[k].places[i];
        if (series->snapshots[k].is_decoded || place->stride || place->parts)
            return false;
    }
    return true;
}

PHEMA_FALLIBLE tile_do(struct worker *worker, uint64_t tile, const struct piece *piece,
                       struct phema_error *err)
{
    if (worker->run->plan->series->tensors[piece->tensor].rule == PHEMA_RULE_COPY)
        return copy_tile(worker, tile, piece, err);
    return are_views(worker->run, piece->tensor) ? average_together(worker, piece, err)
                                                 : average_in_turn(worker, tile, piece, err);
}
