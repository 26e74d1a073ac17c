// SPDX-License-Identifier: Apache-2.0
/* worker.c - tiles: n spans in, K spans out. No lock is taken in the loop. */
#include "worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/text.h"

/* Chunks in which tensors are compared for being equal in all snapshots. */
#define COMPARED_ELEMS ((uint64_t)1 << 20)

/* Complex numbers are averaged part by part. */
static enum phema_dtype part_dtype(enum phema_dtype dtype)
{
    return dtype == PHEMA_C64 ? PHEMA_F32 : dtype;
}

static size_t parts_of(enum phema_dtype dtype)
{
    return dtype == PHEMA_C64 ? 2 : 1;
}

/* Sums in float would overflow where doubles do not, and lose what only a double holds. */
static enum phema_accumulator accumulator_of(const struct run *run, size_t i)
{
    return run->plan->series->tensors[i].tensor.dtype == PHEMA_F64 ? PHEMA_ACCUMULATE_F64
                                                                   : run->options->accumulator;
}

static uint64_t bytes_of(enum phema_dtype dtype, uint64_t n_elems)
{
    return n_elems / 8 * phema_dtype_bits(dtype) + n_elems % 8 * phema_dtype_bits(dtype) / 8;
}

PHEMA_FALLIBLE worker_init(struct worker *worker, struct run *run, struct phema_error *err)
{
    *worker = (struct worker){.run = run, .nan_tensor = SIZE_MAX};
    size_t n_rows = 0;
    for (size_t g = 0; g < run->n_groups; g++)
        if (run->groups[g].n_targets > n_rows)
            n_rows = run->groups[g].n_targets;
    size_t row_bytes = run->sum_elems * sizeof(double);
    worker->sums = aligned_alloc(64, n_rows * row_bytes);
    worker->scratch = aligned_alloc(64, row_bytes);
    worker->written = aligned_alloc(64, row_bytes);
    worker->inputs = calloc(run->plan->series->n, sizeof(*worker->inputs));
    if (worker->sums && worker->scratch && worker->written && worker->inputs)
        return PHEMA_OK;
    worker_clear(worker);
    return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the sums of a tile");
}

void worker_clear(struct worker *worker)
{
    free(worker->sums);
    free(worker->scratch);
    free(worker->written);
    free(worker->inputs);
    worker->sums = NULL;
    worker->scratch = worker->written = NULL;
    worker->inputs = NULL;
}

static const uint8_t *read_piece(const struct run *run, size_t k, size_t i, uint64_t first,
                                 uint64_t n_elems, void *scratch)
{
    struct phema_tensor tensor = phema_series_tensor_in(run->plan->series, k, i);
    const struct phema_checkpoint *checkpoint = run->plan->series->snapshots[k].checkpoint;
    return phema_tensor_read(phema_tensor_start(checkpoint, &tensor), &tensor, first, n_elems,
                             scratch);
}

static bool is_strided(const struct run *run, const struct group *group, size_t i)
{
    for (size_t x = 0; x < group->n_inputs; x++)
        if (run->plan->series->snapshots[group->inputs[x]].places[i].stride)
            return true;
    return false;
}

/* Write to the tensor's place in the output, and to those of its aliases. */
static enum phema_status put(struct worker *worker, size_t output, const struct piece *piece,
                             const void *data, struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->outputs->dtypes[piece->tensor];
    for (size_t i = piece->tensor; i != SIZE_MAX; i = run->next_alias[i]) {
        uint64_t offset = run->outputs->items[output].header_size + run->outputs->offsets[i] +
                          bytes_of(dtype, piece->first);
        enum phema_status status = phema_writer_put(run->writers[output], offset, data,
                                                    (size_t)bytes_of(dtype, piece->n_elems), err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Equal in all snapshots ---- */

static bool is_equal_chunk(struct worker *worker, const struct group *group, size_t i,
                           uint64_t first, uint64_t n_elems)
{
    const struct run *run = worker->run;
    size_t size = (size_t)bytes_of(run->plan->series->tensors[i].tensor.dtype, n_elems);
    bool is_gathered = is_strided(run, group, i);
    const uint8_t *wanted =
        read_piece(run, group->inputs[group->n_inputs - 1], i, first, n_elems, worker->scratch);
    for (size_t x = 0; x + 1 < group->n_inputs; x++) {
        const uint8_t *found = read_piece(run, group->inputs[x], i, first, n_elems,
                                          is_gathered ? worker->written : worker->scratch);
        if (memcmp(wanted, found, size) != 0)
            return false;
    }
    return true;
}

/* Most tensors differ in their first bytes, and cost one look. Workers that ask at the same time
 * come to the same answer. */
static bool is_equal_in_all(struct worker *worker, const struct group *group, size_t i)
{
    struct run *run = worker->run;
    const struct phema_series *series = run->plan->series;
    if (!group->sums_to_one || group->n_inputs == 0)
        return false;
    _Atomic uint8_t *known = &run->equal[(size_t)(group - run->groups) * series->n_tensors + i];
    uint8_t answer = atomic_load_explicit(known, memory_order_relaxed);
    if (answer != EQUALITY_UNKNOWN)
        return answer == EQUALITY_ALL;

    const struct phema_tensor *tensor = &series->tensors[i].tensor;
    uint64_t chunk = is_strided(run, group, i) ? run->cut.tile_elems : COMPARED_ELEMS;
    answer = EQUALITY_ALL;
    for (uint64_t first = 0; first < tensor->n_elems && answer == EQUALITY_ALL; first += chunk) {
        uint64_t n_elems = tensor->n_elems - first < chunk ? tensor->n_elems - first : chunk;
        if (!is_equal_chunk(worker, group, i, first, n_elems))
            answer = EQUALITY_NONE;
        for (size_t x = 0; first && x < group->n_inputs; x++) {
            struct phema_tensor here = phema_series_tensor_in(series, group->inputs[x], i);
            if (!here.stride)
                phema_file_release(phema_checkpoint_file(
                                       series->snapshots[group->inputs[x]].checkpoint, here.file),
                                   here.offset + bytes_of(here.dtype, first),
                                   bytes_of(here.dtype, n_elems));
        }
    }
    atomic_store_explicit(known, answer, memory_order_relaxed);
    return answer == EQUALITY_ALL;
}

/* ---- Tiles ---- */

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

static enum phema_status narrow_and_put(struct worker *worker, size_t output,
                                        const struct piece *piece, const void *sums,
                                        enum phema_accumulator accumulator, struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->outputs->dtypes[piece->tensor];
    struct phema_narrow_counts counts = {0, 0, 0};
    phema_narrow(run->backend, worker->written, part_dtype(dtype), accumulator, sums,
                 (size_t)piece->n_elems * parts_of(dtype),
                 run->options->overflow == PHEMA_OVERFLOW_SATURATES ? PHEMA_OVERFLOW_SATURATE
                                                                    : PHEMA_OVERFLOW_INF,
                 &counts);
    worker->counts.n_overflow += counts.n_overflow;
    worker->counts.n_nan += counts.n_nan;
    worker->counts.n_inf += counts.n_inf;
    if ((counts.n_nan || counts.n_inf) && piece->tensor < worker->nan_tensor)
        worker->nan_tensor = piece->tensor;
    if (counts.n_overflow && run->options->overflow == PHEMA_OVERFLOW_IS_ERROR)
        return fail_overflow(worker, output, piece, counts.n_overflow, err);
    return put(worker, output, piece, worker->written, err);
}

/* What rounding counts, of data that are copied as they are. */
static void count_special(struct worker *worker, const struct piece *piece, const uint8_t *data,
                          size_t n_copies)
{
    enum phema_dtype dtype = worker->run->outputs->dtypes[piece->tensor];
    if (!phema_can_accumulate(part_dtype(dtype)))
        return;
    double *values = worker->sums;
    size_t n = (size_t)piece->n_elems * parts_of(dtype), n_nan = 0, n_inf = 0;
    phema_widen(values, part_dtype(dtype), data, n);
    for (size_t i = 0; i < n; i++) {
        n_nan += isnan(values[i]) != 0;
        n_inf += isinf(values[i]) != 0;
    }
    worker->counts.n_nan += n_nan * n_copies;
    worker->counts.n_inf += n_inf * n_copies;
    if ((n_nan || n_inf) && piece->tensor < worker->nan_tensor)
        worker->nan_tensor = piece->tensor;
}

/* The tile of one snapshot as it is, or converted to the output's dtype. */
static enum phema_status copy_tile(struct worker *worker, const struct group *group, size_t k,
                                   const struct piece *piece, struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    const uint8_t *data =
        read_piece(run, k, piece->tensor, piece->first, piece->n_elems, worker->scratch);
    bool is_converted = run->outputs->dtypes[piece->tensor] != dtype;
    if (is_converted)
        phema_widen(worker->sums, dtype, data, (size_t)piece->n_elems);
    else if (run->plan->series->tensors[piece->tensor].rule == PHEMA_RULE_AVERAGE)
        count_special(worker, piece, data, group->n_targets);
    for (size_t j = 0; j < group->n_targets; j++) {
        enum phema_status status = is_converted
                                       ? narrow_and_put(worker, group->targets[j], piece,
                                                        worker->sums, PHEMA_ACCUMULATE_F64, err)
                                       : put(worker, group->targets[j], piece, data, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static void add_up(struct worker *worker, const struct group *group, const struct piece *piece,
                   size_t row_bytes)
{
    const struct run *run = worker->run;
    enum phema_dtype dtype = run->plan->series->tensors[piece->tensor].tensor.dtype;
    enum phema_accumulator accumulator = accumulator_of(run, piece->tensor);
    struct phema_tile tile = {.inputs = worker->inputs,
                              .weights = group->weights,
                              .n_inputs = group->n_inputs,
                              .n_targets = group->n_targets,
                              .n_elems = (size_t)piece->n_elems * parts_of(dtype),
                              .dtype = part_dtype(dtype)};
    bool is_gathered = is_strided(run, group, piece->tensor);
    for (size_t x = 0; x < group->n_inputs; x++) {
        worker->inputs[x] = read_piece(run, group->inputs[x], piece->tensor, piece->first,
                                       piece->n_elems, worker->scratch);
        if (is_gathered) { /* there is one scratch: one input at a time, in the same order */
            tile.inputs = &worker->inputs[x];
            tile.weights = group->weights + x * group->n_targets;
            tile.n_inputs = 1;
            phema_accumulate(run->backend, accumulator, worker->sums, row_bytes, &tile);
        }
    }
    if (!is_gathered)
        phema_accumulate(run->backend, accumulator, worker->sums, row_bytes, &tile);
}

static enum phema_status average_tile(struct worker *worker, const struct group *group,
                                      const struct piece *piece, struct phema_error *err)
{
    const struct run *run = worker->run;
    enum phema_accumulator accumulator = accumulator_of(run, piece->tensor);
    size_t row_bytes =
        run->sum_elems * (accumulator == PHEMA_ACCUMULATE_F64 ? sizeof(double) : sizeof(float));
    memset(worker->sums, 0, group->n_targets * row_bytes);
    add_up(worker, group, piece, row_bytes);
    for (size_t j = 0; j < group->n_targets; j++) {
        enum phema_status status =
            narrow_and_put(worker, group->targets[j], piece, (char *)worker->sums + j * row_bytes,
                           accumulator, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static enum phema_status do_tile(struct worker *worker, const struct piece *piece,
                                 struct phema_error *err)
{
    struct run *run = worker->run;
    for (size_t g = 0; g < run->n_groups; g++) {
        const struct group *group = &run->groups[g];
        enum phema_status status = PHEMA_OK;
        if (run->plan->series->tensors[piece->tensor].rule == PHEMA_RULE_COPY)
            status = copy_tile(worker, group, group->newest, piece, err);
        else if (is_equal_in_all(worker, group, piece->tensor))
            status = copy_tile(worker, group, group->inputs[group->n_inputs - 1], piece, err);
        else
            status = average_tile(worker, group, piece, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Jobs ---- */

/* Let go of what a job has read, of one snapshot, in stretches as long as the files allow. */
static void release_job(const struct run *run, uint64_t first_tile, uint64_t end_tile, size_t k)
{
    const struct phema_series *series = run->plan->series;
    const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
    uint64_t start = 0, end = 0;
    size_t file = 0, hint = 0;
    for (uint64_t t = first_tile; t < end_tile; t++) {
        struct piece piece = cut_tile(&run->cut, t, &hint);
        struct phema_tensor tensor = phema_series_tensor_in(series, k, piece.tensor);
        if (tensor.stride)
            continue;
        uint64_t at = tensor.offset + bytes_of(tensor.dtype, piece.first);
        bool follows = end != 0 && tensor.file == file && at >= end && at - end <= 4096;
        if (!follows) {
            if (end)
                phema_file_release(phema_checkpoint_file(checkpoint, file), start, end - start);
            start = at;
            file = tensor.file;
        }
        end = at + bytes_of(tensor.dtype, piece.n_elems);
    }
    if (end)
        phema_file_release(phema_checkpoint_file(checkpoint, file), start, end - start);
}

static enum phema_status do_job(struct worker *worker, uint64_t job, struct phema_error *err)
{
    struct run *run = worker->run;
    uint64_t first = job * run->cut.tiles_per_job;
    uint64_t end = first + run->cut.tiles_per_job;
    if (end > cut_n_tiles(&run->cut))
        end = cut_n_tiles(&run->cut);
    uint64_t read_bytes = 0;
    size_t hint = 0;
    for (uint64_t t = first; t < end; t++) {
        struct piece piece = cut_tile(&run->cut, t, &hint);
        enum phema_status status = do_tile(worker, &piece, err);
        if (status)
            return status;
        read_bytes +=
            bytes_of(run->plan->series->tensors[piece.tensor].tensor.dtype, piece.n_elems);
        if (t == first)
            atomic_store_explicit(&run->tensor, piece.tensor, memory_order_relaxed);
    }
    for (size_t k = 0; k < run->plan->series->n; k++)
        release_job(run, first, end, k);
    atomic_fetch_add_explicit(&run->done_bytes, read_bytes, memory_order_relaxed);
    return PHEMA_OK;
}

void worker_run(struct worker *worker)
{
    struct run *run = worker->run;
    while (!worker->status && !atomic_load_explicit(&run->is_stopped, memory_order_relaxed)) {
        uint64_t job = atomic_fetch_add_explicit(&run->next_job, 1, memory_order_relaxed);
        if (job >= run->cut.n_jobs)
            return;
        worker->status = do_job(worker, job, &worker->err);
    }
    if (worker->status)
        atomic_store_explicit(&run->is_stopped, true, memory_order_relaxed);
}
