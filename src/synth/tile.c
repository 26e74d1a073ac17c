// SPDX-License-Identifier: Apache-2.0
/* tile.c - one tile: n inputs in, a sum for every target out. Where all inputs are views of mapped
 * files they are added up together; where one has to be copied first (strided, in parts,
 * decompressed, read) they are taken a few at a time, each once for all targets. Both give
 * the same bits. Blocks that are equal in all inputs are copied instead, provided that the weights
 * sum to 1: masks, frozen layers and infinities stay what they are. */
#include <math.h>
#include <string.h>

#include "against.h"
#include "blocks.h"
#include "digests.h"
#include "feed.h"
#include "feeder.h"
#include "phema/text.h"
#include "sums.h"
#include "worker.h"

/* Views that are hashed when they have been added up, for which they came from memory with their
 * lines asked for ahead: so few that tile and sums are still in the second-level cache. */
#define FEW_VIEWS ((size_t)4)

/* ---- Reading ---- */

/* Tensor by tensor, so that what is damaged is called by its name. */
static enum phema_status read_decoded(const struct worker *worker, size_t k,
                                      const struct piece *piece, uint8_t *slot,
                                      struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_status status = PHEMA_OK;
    for (size_t b = 0; b < worker->n_blocks && !status;) {
        struct block part = blocks_next_part(worker, &b);
        struct phema_tensor tensor = phema_series_tensor_in(run->plan->series, k, part.tensor);
        const uint8_t *copy = NULL; /* in the slot */
        status = phema_reader_read(&copy, run->readers[k], &tensor,
                                   part.tensor == piece->tensor ? piece->first : 0, part.n_elems,
                                   slot + phema_dtype_bytes(tensor.dtype, part.first), err);
    }
    return status;
}

/* slot: for the copy, where it has to be one. */
static enum phema_status read_input(const uint8_t **data, const struct worker *worker, size_t k,
                                    const struct piece *piece, size_t slot, struct phema_error *err)
{
    const struct run *run = worker->run;
    struct phema_tensor tensor = phema_series_tensor_in(run->plan->series, k, piece->tensor);
    uint8_t *copy = worker->slots + slot * run->budget.buffers.slot;
    if (tensor.is_decoded) {
        *data = copy;
        return read_decoded(worker, k, piece, copy, err);
    }
    if (piece->n_tensors > 1) { /* the stretch, as far as the tile goes, is one tensor */
        tensor.n_elems = piece->first + piece->n_elems;
        tensor.size_bytes = phema_dtype_bytes(tensor.dtype, tensor.n_elems);
    }
    return phema_reader_read(data, run->readers[k], &tensor, piece->first, piece->n_elems, copy,
                             err);
}

/* The tile in snapshot k; one that is decoded is passed in turn even when it is not needed. A
 * worker that is abandoned has no data. */
static enum phema_status take(const uint8_t **data, struct worker *worker, size_t k, uint64_t tile,
                              bool is_needed, const struct piece *piece, size_t slot,
                              struct phema_error *err)
{
    struct run *run = worker->run;
    bool is_decoded = run->plan->series->snapshots[k].is_decoded;
    if (is_decoded && !turns_wait(run->turns, k, tile)) {
        worker->is_abandoned = true;
        return PHEMA_OK;
    }
    enum phema_status status = is_needed ? read_input(data, worker, k, piece, slot, err) : PHEMA_OK;
    if (is_decoded && !status)
        turns_pass(run->turns, k, tile);
    if (is_needed && !status) /* what was copied is still in the cache */
        digests_add(worker, k, piece, *data);
    return status;
}

/* ---- Writing ---- */

static enum phema_status compare(const struct worker *worker, const struct piece *piece,
                                 const void *data, struct phema_error *err)
{
    const struct run *run = worker->run;
    if (piece->n_tensors > 1)
        return against_compare_stretch(run->against, piece->tensors, piece->n_tensors, piece->first,
                                       piece->n_elems, data, err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = piece->tensor; i != SIZE_MAX && !status; i = run->next_alias[i])
        status = against_compare(run->against, i, piece->first, piece->n_elems, data, err);
    return status;
}

/* To the tensors' places in the output, or to that of the only one and those of its aliases. */
static enum phema_status put(const struct worker *worker, size_t output, const struct piece *piece,
                             const void *data, struct phema_error *err)
{
    const struct run *run = worker->run;
    if (run->against)
        return compare(worker, piece, data, err);
    uint64_t *sum = worker->accounts ? &worker->accounts[output].sum : NULL;
    if (piece->n_tensors > 1)
        return sink_put_stretch(run->sinks[output], piece->tensors, piece->n_tensors, piece->first,
                                piece->n_elems, data, sum, err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = piece->tensor; i != SIZE_MAX && !status; i = run->next_alias[i])
        status = sink_put(run->sinks[output], i, piece->first, piece->n_elems, data, sum, err);
    return status;
}

static enum phema_status fail_overflow(const struct worker *worker, size_t output, size_t i,
                                       uint64_t n, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct phema_tensor *tensor = &run->plan->series->tensors[i].tensor;
    enum phema_dtype dtype = run->outputs->dtypes[i];
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

static enum phema_status fail_nan(const struct worker *worker, size_t output, size_t i,
                                  const struct phema_narrow_counts *counts, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct phema_tensor *tensor = &run->plan->series->tensors[i].tensor;
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_FILE,
                      "%s: tensor '%s': %llu averages are NaN and %llu infinite, as elements of "
                      "snapshots are; --nan keep writes them",
                      run->outputs->items[output].path,
                      phema_name_shown(&shown, tensor->name, tensor->name_size),
                      (unsigned long long)counts->n_nan, (unsigned long long)counts->n_inf);
}

/* Elements [first, first + n) of a row, to their places in worker->written. */
static struct phema_narrow_counts narrow_elems(struct worker *worker, enum phema_dtype dtype,
                                               enum phema_accumulator accumulator, const void *row,
                                               size_t first, size_t n)
{
    const struct run *run = worker->run;
    size_t sum_bytes = accumulator == PHEMA_ACCUMULATE_F64 ? sizeof(double) : sizeof(float);
    struct phema_narrow_counts counts = {0, 0, 0};
    phema_narrow(run->backend, worker->written + phema_dtype_bytes(dtype, first), part_dtype(dtype),
                 accumulator, (const char *)row + first * parts_of(dtype) * sum_bytes,
                 n * parts_of(dtype),
                 run->options.overflow == PHEMA_OVERFLOW_SATURATES ? PHEMA_OVERFLOW_SATURATE
                                                                   : PHEMA_OVERFLOW_INF,
                 &counts);
    return counts;
}

enum phema_status tile_judge(struct worker *worker, size_t output, size_t tensor,
                             const struct phema_narrow_counts *counts, struct phema_error *err)
{
    const struct run *run = worker->run;
    if ((counts->n_nan || counts->n_inf) && tensor < worker->nan_tensor)
        worker->nan_tensor = tensor;
    if ((counts->n_nan || counts->n_inf) && run->options.refuses_nan)
        return fail_nan(worker, output, tensor, counts, err);
    if (counts->n_overflow && run->options.overflow == PHEMA_OVERFLOW_IS_ERROR)
        return fail_overflow(worker, output, tensor, counts->n_overflow, err);
    return PHEMA_OK;
}

/* Which tensor of the tile it is that holds NaN, infinities, or what the dtype cannot: rare, so
 * that only then is each narrowed again by itself, to the same bytes. */
static enum phema_status blame(struct worker *worker, size_t output, const struct piece *piece,
                               const struct phema_narrow_counts *found,
                               enum phema_accumulator accumulator, const void *row,
                               struct phema_error *err)
{
    const struct run *run = worker->run;
    for (size_t b = 0; b < worker->n_blocks;) {
        struct block part = blocks_next_part(worker, &b);
        enum phema_dtype dtype = run->outputs->dtypes[part.tensor];
        struct phema_narrow_counts counts = *found;
        if (part.n_elems < piece->n_elems)
            counts = narrow_elems(worker, dtype, accumulator, row, part.first, part.n_elems);
        enum phema_status status = tile_judge(worker, output, part.tensor, &counts, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* worker->written becomes the row as the output has it. */
static enum phema_status narrow(struct worker *worker, size_t output, const struct piece *piece,
                                const void *row, enum phema_accumulator accumulator,
                                struct phema_error *err)
{
    enum phema_dtype dtype = worker->run->outputs->dtypes[piece->tensor];
    struct phema_narrow_counts counts =
        narrow_elems(worker, dtype, accumulator, row, 0, (size_t)piece->n_elems);
    if (!counts.n_overflow && !counts.n_nan && !counts.n_inf)
        return PHEMA_OK;
    counts_add(&worker->counts, &counts);
    if (worker->accounts)
        counts_add(&worker->accounts[output].counts, &counts);
    return blame(worker, output, piece, &counts, accumulator, row, err);
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
    const struct ruled *ruled = worker->ruled;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < run->plan->series->n && !status && !worker->is_abandoned; k++) {
        bool is_needed = false;
        for (size_t g = 0; g < ruled->n_groups; g++)
            is_needed = is_needed || ruled->groups[g].newest == k;
        const uint8_t *data = NULL;
        if (is_needed || run->plan->series->snapshots[k].is_decoded)
            status = take(&data, worker, k, tile, is_needed, piece, 0, err);
        for (size_t g = 0; g < ruled->n_groups && data && !status; g++)
            if (ruled->groups[g].newest == k)
                status = put_copy(worker, &ruled->groups[g], piece, data, err);
    }
    return status;
}

/* A row of sums to its output; blocks that are equal keep even the bits of their NaNs. */
static enum phema_status put_row(struct worker *worker, size_t output, const struct piece *piece,
                                 void *row, const struct group_state *state,
                                 struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    for (size_t b = 0; b < worker->n_blocks && state->data; b++)
        if (state->equals[b])
            block_restore(row, state->accumulator, dtype, &worker->blocks[b], state->data);
    enum phema_status status = narrow(worker, output, piece, row, state->accumulator, err);
    if (status)
        return status;
    bool is_same_dtype = run->outputs->dtypes[piece->tensor] == dtype;
    for (size_t b = 0; b < worker->n_blocks && state->data && is_same_dtype; b++) {
        const struct block *block = &worker->blocks[b];
        uint64_t at = phema_dtype_bytes(dtype, block->first);
        if (state->equals[b])
            memcpy(worker->written + at, state->data + at,
                   (size_t)phema_dtype_bytes(dtype, block->n_elems));
    }
    return put(worker, output, piece, worker->written, err);
}

/* ---- Averages ---- */

static void start_group(struct worker *worker, size_t g, const struct piece *piece, void *sums)
{
    const struct group *group = &worker->ruled->groups[g];
    struct group_state *state = &worker->states[g];
    state->accumulator = sums_of(worker->run, group, piece->tensor);
    state->row_bytes =
        worker->run->budget.sum_elems *
        (state->accumulator == PHEMA_ACCUMULATE_F64 ? sizeof(double) : sizeof(float));
    state->sums = sums;
    memset(state->sums, 0, group->n_rows * state->row_bytes);
    memset(state->equals, group->sums_to_one && group->n_inputs > 0, worker->n_blocks);
    state->n_taken = state->n_added = 0;
    state->data = NULL;
}

static enum phema_status finish_group(struct worker *worker, size_t g, const struct piece *piece,
                                      struct phema_error *err)
{
    const struct group *group = &worker->ruled->groups[g];
    const struct group_state *state = &worker->states[g];
    blocks_mark_varying(worker, state->equals);
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < group->n_targets && !status; j++)
        status = put_row(worker, group->targets[j], piece,
                         (char *)state->sums + group->rows[j] * state->row_bytes, state, err);
    return status;
}

/* Adds n inputs, which follow those that the group has. */
static void add(struct worker *worker, size_t g, const struct piece *piece,
                const uint8_t *const *inputs, size_t n)
{
    const struct run *run = worker->run;
    const struct group *group = &worker->ruled->groups[g];
    struct group_state *state = &worker->states[g];
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    struct phema_tile tile = {.inputs = inputs,
                              .weights = group->weights + state->n_added * group->n_rows,
                              .n_inputs = n,
                              .n_targets = group->n_rows,
                              .n_elems = (size_t)piece->n_elems * parts_of(dtype),
                              .dtype = part_dtype(dtype)};
    phema_accumulate(run->backend, state->accumulator, state->sums, state->row_bytes, &tile);
    state->n_added += n;
}

/* Views are hashed once, for the first group that takes them. */
static bool is_taken_before(const struct worker *worker, size_t g, size_t k)
{
    for (size_t h = 0; h < g; h++) {
        const struct group *group = &worker->ruled->groups[h];
        size_t low = 0, high = group->n_inputs; /* the first that is not below k */
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (group->inputs[middle] < k)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < group->n_inputs && group->inputs[low] == k)
            return true;
    }
    return false;
}

/* Inputs [first, end) of a group. */
static enum phema_status take_views(struct worker *worker, size_t g, const struct piece *piece,
                                    size_t first, size_t end, struct phema_error *err)
{
    const struct group *group = &worker->ruled->groups[g];
    enum phema_dtype dtype = worker->run->plan->series->tensors[piece->tensor].tensor.dtype;
    enum phema_status status = PHEMA_OK;
    for (size_t x = first; x < end && !status; x++) {
        size_t k = group->inputs[x];
        status = read_input(&worker->inputs[x], worker, k, piece, 0, err);
        if (!status)
            blocks_compare(worker, worker->states[g].equals, dtype, worker->inputs[0],
                           worker->inputs[x]);
    }
    return status;
}

/* All inputs are views. */
static enum phema_status average_together(struct worker *worker, const struct piece *piece,
                                          struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t g = 0; g < worker->ruled->n_groups && !status; g++) {
        const struct group *group = &worker->ruled->groups[g];
        size_t most = group->n_rows > FEW_TARGETS ? MAX_SLOTS : FEW_VIEWS;
        size_t n_at_once = worker->digests && most < group->n_inputs ? most : group->n_inputs;
        start_group(worker, g, piece, worker->sums); /* one group after another */
        for (size_t x = 0; x < group->n_inputs && !status; x += n_at_once) {
            size_t n = group->n_inputs - x < n_at_once ? group->n_inputs - x : n_at_once;
            status = take_views(worker, g, piece, x, x + n, err);
            if (!status)
                add(worker, g, piece, worker->inputs + x, n);
            for (size_t i = x; i < x + n && worker->digests && !status; i++)
                if (!is_taken_before(worker, g, group->inputs[i]))
                    digests_add(worker, group->inputs[i], piece, worker->inputs[i]);
        }
        if (status)
            return status;
        worker->states[g].data = worker->inputs[0];
        status = finish_group(worker, g, piece, err);
    }
    return status;
}

/* Inputs that wait to be added together. */
struct batch {
    size_t snapshots[MAX_SLOTS];
    const uint8_t *data[MAX_SLOTS];
    size_t n;
};

/* The group's first input is kept, to compare the others with. */
static void keep_first(struct worker *worker, size_t g, const struct piece *piece,
                       const uint8_t *data)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    uint8_t *reference =
        worker->references + worker->ruled->reference_of[g] * run->budget.buffers.reference;
    memcpy(reference, data, (size_t)phema_dtype_bytes(dtype, piece->n_elems));
    worker->states[g].data = reference;
}

/* To each group those of the batch that are its next inputs; in the order of the series. */
static void add_batch(struct worker *worker, const struct piece *piece, struct batch *batch)
{
    struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    for (size_t g = 0; g < worker->ruled->n_groups; g++) {
        const struct group *group = &worker->ruled->groups[g];
        struct group_state *state = &worker->states[g];
        const uint8_t *inputs[MAX_SLOTS];
        size_t n = 0;
        for (size_t x = 0; x < batch->n; x++) {
            size_t at = state->n_added + n;
            if (at == group->n_inputs || group->inputs[at] != batch->snapshots[x])
                continue;
            if (at == 0)
                keep_first(worker, g, piece, batch->data[x]);
            else
                blocks_compare(worker, state->equals, dtype, state->data, batch->data[x]);
            inputs[n++] = batch->data[x];
        }
        if (n)
            add(worker, g, piece, inputs, n);
    }
    batch->n = 0;
}

/* Whether snapshot k is the next input of a group; it is taken then. */
static bool take_turn(struct worker *worker, size_t k)
{
    bool is_needed = false;
    for (size_t g = 0; g < worker->ruled->n_groups; g++) {
        const struct group *group = &worker->ruled->groups[g];
        struct group_state *state = &worker->states[g];
        if (state->n_taken < group->n_inputs && group->inputs[state->n_taken] == k) {
            state->n_taken++;
            is_needed = true;
        }
    }
    return is_needed;
}

/* Some inputs have to be copied: as many at a time as there are slots for. */
static enum phema_status average_in_turn(struct worker *worker, uint64_t tile,
                                         const struct piece *piece, struct phema_error *err)
{
    const struct run *run = worker->run;
    struct batch batch = {.n = 0};
    uint8_t *sums = worker->sums; /* all groups are under way at once */
    for (size_t g = 0; g < worker->ruled->n_groups; g++) {
        start_group(worker, g, piece, sums);
        sums += worker->ruled->groups[g].n_rows * worker->states[g].row_bytes;
    }
    for (size_t k = 0; k < run->plan->series->n; k++) {
        const uint8_t *data = NULL;
        enum phema_status status =
            take(&data, worker, k, tile, take_turn(worker, k), piece, batch.n, err);
        if (status || worker->is_abandoned)
            return status;
        if (!data)
            continue;
        batch.snapshots[batch.n] = k;
        batch.data[batch.n++] = data;
        if (batch.n == run->budget.buffers.n_slots)
            add_batch(worker, piece, &batch);
    }
    add_batch(worker, piece, &batch);
    enum phema_status status = PHEMA_OK;
    for (size_t g = 0; g < worker->ruled->n_groups && !status; g++)
        status = finish_group(worker, g, piece, err);
    return status;
}

static bool are_views(const struct run *run, size_t i)
{
    const struct phema_series *series = run->plan->series;
    if (run->n_read + run->n_direct)
        return false;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_place *place = &series->snapshots[k].places[i];
        if (series->snapshots[k].is_decoded || place->stride || place->parts)
            return false;
    }
    return true;
}

PHEMA_FALLIBLE tile_pass(struct worker *worker, uint64_t tile, struct phema_error *err)
{
    const struct phema_series *series = worker->run->plan->series;
    enum phema_status status = PHEMA_OK;
    const uint8_t *data = NULL;
    for (size_t k = 0; k < series->n && !status && !worker->is_abandoned; k++)
        if (series->snapshots[k].is_decoded)
            status = take(&data, worker, k, tile, false, NULL, 0, err);
    return status;
}

PHEMA_FALLIBLE tile_do(struct worker *worker, uint64_t tile, const struct piece *piece,
                       struct phema_error *err)
{
    blocks_list(worker, piece);
    worker->ruled = run_ruled(worker->run, piece->tensor);
    if (worker->run->plan->series->tensors[piece->tensor].rule == PHEMA_RULE_COPY)
        return copy_tile(worker, tile, piece, err);
    if (feeder_takes(worker->run, piece->tensor))
        return feed_tile(worker, tile, piece, err);
    return are_views(worker->run, piece->tensor) ? average_together(worker, piece, err)
                                                 : average_in_turn(worker, tile, piece, err);
}

/* ---- What devices need of this ---- */

PHEMA_FALLIBLE tile_take(const uint8_t **data, struct worker *worker, size_t k, uint64_t tile,
                         bool is_needed, const struct piece *piece, size_t slot,
                         struct phema_error *err)
{
    return take(data, worker, k, tile, is_needed, piece, slot, err);
}

PHEMA_FALLIBLE tile_put(const struct worker *worker, size_t output, const struct piece *piece,
                        const void *data, struct phema_error *err)
{
    return put(worker, output, piece, data, err);
}
