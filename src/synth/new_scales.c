// SPDX-License-Identifier: Apache-2.0
/* new_scales.c - measures the scales of fp8 outputs, and makes codes with them. */
#include "new_scales.h"

#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "phema/file_reader.h"

/* Scales that are read, and codes that are made, at once. */
#define N_AT_ONCE ((size_t)512)

struct new_scales {
    size_t *at; /* [n_tensors] of codes and scales: the first scale of the tensor; else SIZE_MAX */
    size_t n;   /* scales of an output */
    _Atomic uint32_t *largest; /* [outputs of a pass x n] bits of the largest float of each block */
    float *scales;             /* [outputs of a pass x n] as the dtype of the scale holds them */
};

static const struct phema_scaling *scaling_of(const struct run *run, size_t codes)
{
    return run->plan->series->tensors[codes].tensor.scaling;
}

static uint64_t count_scales(const struct run *run)
{
    uint64_t n = 0;
    for (size_t i = 0; i < run->plan->series->n_tensors; i++)
        if (run_makes_codes(run, i))
            n += scaling_of(run, i)->n_elems;
    return n;
}

uint64_t new_scales_bytes(const struct run *run, size_t n_targets)
{
    return count_scales(run) * n_targets * (sizeof(uint32_t) + sizeof(float));
}

uint64_t new_scales_read_bytes(const struct run *run)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->plan->series->n_tensors; i++)
        if (run_measures(run, i))
            bytes += run->plan->series->tensors[i].tensor.n_elems * run_rule_of(run, i)->n_used;
    return bytes;
}

PHEMA_FALLIBLE new_scales_open(struct new_scales **out, const struct run *run,
                               struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    if (!run->outputs->has_new_scales)
        return PHEMA_OK;
    struct new_scales *new_scales = calloc(1, sizeof(*new_scales));
    if (!new_scales)
        return phema_fail_memory(err);
    *out = new_scales; /* the run closes it */
    new_scales->n = (size_t)count_scales(run);
    size_t n_all = new_scales->n * run->budget.targets_per_pass + 1;
    new_scales->at = calloc(series->n_tensors + 1, sizeof(*new_scales->at));
    new_scales->largest = calloc(n_all, sizeof(*new_scales->largest));
    new_scales->scales = calloc(n_all, sizeof(*new_scales->scales));
    if (!new_scales->at || !new_scales->largest || !new_scales->scales)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++)
        new_scales->at[i] = SIZE_MAX;
    size_t at = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        if (!run_makes_codes(run, i))
            continue;
        new_scales->at[i] = new_scales->at[series->tensors[i].scale] = at;
        at += (size_t)scaling_of(run, i)->n_elems;
    }
    return PHEMA_OK;
}

void new_scales_close(struct new_scales *new_scales)
{
    if (!new_scales)
        return;
    free(new_scales->at);
    free(new_scales->largest);
    free(new_scales->scales);
    free(new_scales);
}

/* The first scale of a tensor in an output of the pass. */
static size_t scales_at(const struct run *run, size_t output, size_t tensor)
{
    const struct new_scales *new_scales = run->new_scales;
    return (output - run->first_output) * new_scales->n + new_scales->at[tensor];
}

/* ---- Measuring ---- */

static float number_at(const void *row, enum phema_accumulator accumulator, size_t i)
{
    return accumulator == PHEMA_ACCUMULATE_F64 ? (float)((const double *)row)[i]
                                               : ((const float *)row)[i];
}

/* Bits of floats from 0 on are ordered as these are. */
static void raise_to(_Atomic uint32_t *largest, float number)
{
    uint32_t bits = 0;
    memcpy(&bits, &number, sizeof(bits));
    uint32_t before = atomic_load_explicit(largest, memory_order_relaxed);
    while (before < bits && !atomic_compare_exchange_weak_explicit(
                                largest, &before, bits, memory_order_relaxed, memory_order_relaxed))
        continue;
}

void new_scales_note(const struct run *run, size_t output, const struct tile_range *range,
                     const void *row, enum phema_accumulator accumulator)
{
    const struct phema_scaling *scaling = scaling_of(run, range->tensor);
    _Atomic uint32_t *largest = run->new_scales->largest + scales_at(run, output, range->tensor);
    for (uint64_t i = 0; i < range->n_elems;) {
        uint64_t first = 0, end = 0;
        uint64_t scale = phema_scaling_find(&first, &end, scaling, range->first + i);
        end = end - range->first < range->n_elems ? end - range->first : range->n_elems;
        float most = 0;
        for (; i < end; i++) {
            float size = fabsf(number_at(row, accumulator, (size_t)i));
            if (size > most && isfinite(size))
                most = size;
        }
        raise_to(&largest[scale], most);
    }
}

static double largest_code(enum phema_dtype codes)
{
    return codes == PHEMA_F8_E4M3 ? 448 : 57344;
}

/* The scale in the precision of its dtype. Blocks of zeros have 1. Never 0, infinity or NaN. */
static float scale_of_block(const struct run *run, const struct phema_scaling *scaling,
                            float largest)
{
    struct phema_narrow_counts counts = {0, 0, 0};
    alignas(16) uint8_t stored[sizeof(double)];
    double scale = largest > 0 ? (double)largest / largest_code(scaling->codes) : 1;
    if (scaling->is_power_of_two)
        scale = exp2(ceil(log2(scale)));
    phema_narrow(run->backend, stored, scaling->dtype, PHEMA_ACCUMULATE_F64, &scale, 1,
                 PHEMA_OVERFLOW_SATURATE, &counts);
    double rounded = 0;
    phema_widen(&rounded, scaling->dtype, stored, 1);
    if (rounded == 0) /* the smallest number of F16, BF16 and F32 has the code 1 */
        phema_widen(&rounded, scaling->dtype, (const uint8_t[sizeof(double)]){1}, 1);
    return (float)rounded;
}

/* The scales of a tensor in snapshot k. */
static enum phema_status read_scales(const struct run *run, float *scales, size_t k, size_t codes,
                                     struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    alignas(PHEMA_INPUT_ALIGNMENT) uint8_t scratch[N_AT_ONCE * sizeof(double) + PHEMA_INPUT_ROOM];
    struct phema_tensor tensor = phema_series_tensor_in(series, k, series->tensors[codes].scale);
    tensor.dtype = scaling_of(run, codes)->dtype;
    struct phema_reader *reader = NULL;
    enum phema_status status = phema_reader_open(&reader, series->snapshots[k].checkpoint, err);
    for (uint64_t i = 0; i < tensor.n_elems && !status; i += N_AT_ONCE) {
        uint64_t n = tensor.n_elems - i < N_AT_ONCE ? tensor.n_elems - i : N_AT_ONCE;
        const uint8_t *data = NULL;
        status = phema_reader_read(&data, reader, &tensor, i, n, scratch, err);
        double values[N_AT_ONCE];
        if (!status)
            phema_widen(values, tensor.dtype, data, (size_t)n);
        for (uint64_t x = 0; x < n && !status; x++)
            scales[i + x] = (float)values[x];
    }
    phema_reader_close(reader);
    return status;
}

static enum phema_status set_scales(const struct run *run, size_t output, size_t codes,
                                    struct phema_error *err)
{
    const struct new_scales *new_scales = run->new_scales;
    const struct phema_scaling *scaling = scaling_of(run, codes);
    size_t at = scales_at(run, output, codes);
    if (!run_measures(run, codes) || !atomic_load(&run->varies[codes])) /* it is copied */
        return read_scales(run, &new_scales->scales[at], run->plan->targets[output].newest, codes,
                           err);
    for (uint64_t s = 0; s < scaling->n_elems; s++) {
        uint32_t bits = atomic_load_explicit(&new_scales->largest[at + s], memory_order_relaxed);
        float largest = 0;
        memcpy(&largest, &bits, sizeof(largest));
        new_scales->scales[at + s] = scale_of_block(run, scaling, largest);
    }
    return PHEMA_OK;
}

void new_scales_begin(struct run *run)
{
    struct new_scales *new_scales = run->new_scales;
    for (size_t s = 0; s < new_scales->n * (run->end_output - run->first_output); s++)
        atomic_store_explicit(&new_scales->largest[s], 0, memory_order_relaxed);
}

PHEMA_FALLIBLE new_scales_end(struct run *run, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t j = run->first_output; j < run->end_output; j++)
        for (size_t i = 0; i < run->plan->series->n_tensors && !status; i++)
            if (run_makes_codes(run, i))
                status = set_scales(run, j, i, err);
    return status;
}

/* ---- Writing ---- */

/* Quotients beyond the largest code by the rounding of a scale alone. */
static double limit(double quotient, double most)
{
    double size = fabs(quotient);
    return size > most && size < most * (1 + 1.0 / 16) ? copysign(most, quotient) : quotient;
}

void new_scales_narrow(const struct run *run, size_t output, const struct tile_range *range,
                       const void *row, enum phema_accumulator accumulator, uint8_t *out,
                       struct phema_narrow_counts *counts)
{
    const struct phema_scaling *scaling = scaling_of(run, range->tensor);
    const float *scales = run->new_scales->scales + scales_at(run, output, range->tensor);
    double quotients[N_AT_ONCE], most = largest_code(scaling->codes);
    for (uint64_t i = 0; i < range->n_elems;) {
        uint64_t first = 0, end = 0;
        double scale = (double)scales[phema_scaling_find(&first, &end, scaling, range->first + i)];
        uint64_t n = end - range->first - i;
        n = n < range->n_elems - i ? n : range->n_elems - i;
        n = n < N_AT_ONCE ? n : N_AT_ONCE;
        for (uint64_t x = 0; x < n; x++) {
            double number = (double)number_at(row, accumulator, (size_t)(i + x));
            quotients[x] = scale == 0 ? number : limit(number / scale, most);
        }
        phema_narrow(run->backend, out + i, scaling->codes, PHEMA_ACCUMULATE_F64, quotients,
                     (size_t)n, run_overflow(run), counts);
        i += n;
    }
}

bool new_scales_fill(const struct run *run, size_t output, const struct tile_range *range,
                     uint8_t *out)
{
    const struct phema_series_tensor *entry = &run->plan->series->tensors[range->tensor];
    if (!run->new_scales || entry->tensor.kind != PHEMA_KIND_SCALE || entry->scale == SIZE_MAX)
        return false;
    struct phema_narrow_counts counts = {0, 0, 0};
    phema_narrow(run->backend, out, scaling_of(run, entry->scale)->dtype, PHEMA_ACCUMULATE_F32,
                 run->new_scales->scales + scales_at(run, output, range->tensor) + range->first,
                 (size_t)range->n_elems, PHEMA_OVERFLOW_SATURATE, &counts);
    return true;
}
