// SPDX-License-Identifier: Apache-2.0
/* tile_write.c - rounds a tile, checks it for NaN and overflow, writes or compares it. */
#include "tile.h"

#include <string.h>

#include "compare_output.h"
#include "new_scales.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

PHEMA_FALLIBLE tile_transfer(const struct run *run, size_t output, const struct tile_range *range,
                             const void *data, uint64_t *sum, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = range->tensor; i != SIZE_MAX && !status; i = run->next_alias[i]) {
        /* tensors with aliases have tiles of their own */
        const size_t *tensors = i == range->tensor ? range->tensors : &i;
        status = run->comparison
                     ? compare_output_tensors(run->comparison, tensors, range->n_tensors,
                                              range->first, range->n_elems, data, err)
                     : sink_write(run->sinks[output], tensors, range->n_tensors, range->first,
                                  range->n_elems, data, sum, err);
    }
    return status;
}

/* Copies each tensor's part of the tile to its own place. */
static void put_in_memory(const struct run *run, size_t output, const struct tile_range *range,
                          const uint8_t *data)
{
    const struct phema_series *series = run->plan->series;
    void *const *places = run->memory + output * series->n_tensors;
    enum phema_dtype dtype = run->outputs->dtypes[range->tensor];
    uint64_t first = range->first, n_left = range->n_elems;
    for (size_t t = 0; t < range->n_tensors && n_left; t++) {
        uint64_t n = series->tensors[range->tensors[t]].tensor.n_elems;
        if (first >= n) { /* this one belongs to other tiles */
            first -= n;
            continue;
        }
        n = n - first < n_left ? n - first : n_left;
        size_t size = (size_t)phema_dtype_bytes(dtype, n);
        /* with aliases the tile has no other tensor */
        for (size_t i = range->tensors[t]; i != SIZE_MAX; i = run->next_alias[i])
            if (places[i])
                memcpy((uint8_t *)places[i] + phema_dtype_bytes(dtype, first), data, size);
        data += size;
        n_left -= n;
        first = 0;
    }
}

PHEMA_FALLIBLE tile_write(const struct worker *worker, size_t output, const void *data,
                          struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct tile_range *range = &worker->range;
    if (run->memory) {
        put_in_memory(run, output, range, data);
        return PHEMA_OK;
    }
    uint64_t *sum = worker->accounts ? &worker->accounts[output].sum : NULL;
    return tile_transfer(run, output, range, data, sum, err);
}

/* Rounds elements [first, first + n) of a row into worker->written. */
static struct phema_narrow_counts narrow_elems(struct worker *worker, enum phema_dtype dtype,
                                               enum phema_accumulator accumulator, const void *row,
                                               size_t first, size_t n)
{
    const struct run *run = worker->run;
    struct phema_narrow_counts counts = {0, 0, 0};
    phema_narrow(run->backend, worker->written + phema_dtype_bytes(dtype, first),
                 phema_dtype_of_parts(dtype), accumulator,
                 (const char *)row +
                     first * phema_dtype_n_parts(dtype) * phema_accumulator_size(accumulator),
                 n * phema_dtype_n_parts(dtype), run_overflow(run), &counts);
    return counts;
}

PHEMA_FALLIBLE tile_check_values(struct worker *worker, size_t output, size_t tensor,
                                 const struct phema_narrow_counts *counts, struct phema_error *err)
{
    const struct run *run = worker->run;
    const struct phema_tensor *found = &run->plan->series->tensors[tensor].tensor;
    enum phema_dtype dtype = run->outputs->dtypes[tensor];
    const char *path = run->outputs->items[output].path;
    struct phema_name_buffer shown;
    const char *name = phema_name_escape(&shown, found->name, found->name_size);
    bool has_nan = counts->n_nan || counts->n_inf;
    bool is_small = phema_dtype_bits(phema_dtype_of_parts(dtype)) < 32;
    if (has_nan && tensor < worker->nan_tensor)
        worker->nan_tensor = tensor;
    if (has_nan && run->options.refuses_nan)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "%s: tensor '%s': %llu averages are NaN and %llu infinite, as elements "
                          "of snapshots are; %s writes them",
                          path, name, (unsigned long long)counts->n_nan,
                          (unsigned long long)counts->n_inf, phema_setting_keeping_nan());
    if (counts->n_overflow && run->options.overflow == PHEMA_OVERFLOW_IS_ERROR)
        return phema_fail(
            err, PHEMA_ERR_OUTPUT,
            "%s: tensor '%s': %llu averages are too large for %s; %s%s%sallow %ssaturate", path,
            name, (unsigned long long)counts->n_overflow, phema_dtype_name(dtype),
            is_small ? "write " : "", is_small ? phema_setting_equals(PHEMA_SET_DTYPE) : "",
            is_small ? "f32, or " : "", phema_setting_equals(PHEMA_SET_OVERFLOW));
    return PHEMA_OK;
}

/* Finds the tensors of the tile with NaN, infinity or overflow. This is rare, so each tensor is
 * rounded again by itself, to the same bytes. */
static enum phema_status check_each_tensor(struct worker *worker, size_t output,
                                           const struct phema_narrow_counts *found,
                                           enum phema_accumulator accumulator, const void *row,
                                           struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t b = 0; b < worker->n_blocks && !status;) {
        struct block slice = next_tensor(worker, &b);
        enum phema_dtype dtype = worker->run->outputs->dtypes[slice.tensor];
        struct phema_narrow_counts counts = *found;
        if (slice.n_elems < worker->range.n_elems)
            counts = narrow_elems(worker, dtype, accumulator, row, slice.first, slice.n_elems);
        status = tile_check_values(worker, output, slice.tensor, &counts, err);
    }
    return status;
}

PHEMA_FALLIBLE tile_narrow(struct worker *worker, size_t output, const void *row,
                           enum phema_accumulator accumulator, struct phema_error *err)
{
    const struct tile_range *range = &worker->range;
    enum phema_dtype dtype = worker->run->outputs->dtypes[range->tensor];
    struct phema_narrow_counts counts = {0, 0, 0};
    if (run_makes_codes(worker->run, range->tensor))
        new_scales_narrow(worker->run, output, range, row, accumulator, worker->written, &counts);
    else
        counts = narrow_elems(worker, dtype, accumulator, row, 0, (size_t)range->n_elems);
    if (!counts_any(&counts))
        return PHEMA_OK;
    counts_add(&worker->counts, &counts);
    if (worker->accounts)
        counts_add(&worker->accounts[output].counts, &counts);
    return check_each_tensor(worker, output, &counts, accumulator, row, err);
}
