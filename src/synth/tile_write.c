// SPDX-License-Identifier: Apache-2.0
/* tile_write.c - a tile of an output: narrowed, judged, and put to its place, or compared with what
 * is there. */
#include "compare_output.h"
#include "phema/strbuf.h"
#include "tile.h"
#include "tile_blocks.h"

static enum phema_status compare(const struct worker *worker, const struct tile_range *piece,
                                 const void *data, struct phema_error *err)
{
    const struct run *run = worker->run;
    if (piece->n_tensors > 1)
        return compare_output_run(run->against, piece->tensors, piece->n_tensors, piece->first,
                                  piece->n_elems, data, err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = piece->tensor; i != SIZE_MAX && !status; i = run->next_alias[i])
        status = compare_output_compare(run->against, i, piece->first, piece->n_elems, data, err);
    return status;
}

PHEMA_FALLIBLE tile_write(const struct worker *worker, size_t output,
                          const struct tile_range *piece, const void *data, struct phema_error *err)
{
    const struct run *run = worker->run;
    if (run->against)
        return compare(worker, piece, data, err);
    uint64_t *sum = worker->accounts ? &worker->accounts[output].sum : NULL;
    if (piece->n_tensors > 1)
        return sink_write_run(run->sinks[output], piece->tensors, piece->n_tensors, piece->first,
                              piece->n_elems, data, sum, err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = piece->tensor; i != SIZE_MAX && !status; i = run->next_alias[i])
        status = sink_write(run->sinks[output], i, piece->first, piece->n_elems, data, sum, err);
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
                      phema_name_escape(&shown, tensor->name, tensor->name_size),
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
                      phema_name_escape(&shown, tensor->name, tensor->name_size),
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

PHEMA_FALLIBLE tile_check_values(struct worker *worker, size_t output, size_t tensor,
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
static enum phema_status blame(struct worker *worker, size_t output, const struct tile_range *piece,
                               const struct phema_narrow_counts *found,
                               enum phema_accumulator accumulator, const void *row,
                               struct phema_error *err)
{
    const struct run *run = worker->run;
    for (size_t b = 0; b < worker->n_blocks;) {
        struct block part = tile_blocks_next_part(worker, &b);
        enum phema_dtype dtype = run->outputs->dtypes[part.tensor];
        struct phema_narrow_counts counts = *found;
        if (part.n_elems < piece->n_elems)
            counts = narrow_elems(worker, dtype, accumulator, row, part.first, part.n_elems);
        enum phema_status status = tile_check_values(worker, output, part.tensor, &counts, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE tile_narrow(struct worker *worker, size_t output, const struct tile_range *piece,
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
