// SPDX-License-Identifier: Apache-2.0
/* sample.c - reads about 2000 elements of every snapshot, and widens them exactly. Sums are in one
 * fixed order, so that they are the same on every machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/dtype.h"
#include "phema/memory.h"
#include "phema/parallel.h"
#include "phema/series.h"
#include "sampling.h"
#include "tensor_table.h"

/* Distances are accumulated in this many independent sums, for vector instructions. */
#define N_LANES 8

/* ---- Preconditions ---- */

static enum phema_status check_files(const struct phema_series *series, struct phema_error *err)
{
    if (series->unsampled)
        return phema_fail(err, PHEMA_NO, "%s", series->unsampled);
    size_t n_open = 0, closed = 0;
    for (size_t k = 0; k < series->n; k++) {
        if (series->snapshots[k].checkpoint)
            n_open++;
        else
            closed = k;
    }
    if (n_open == 0)
        return phema_fail(err, PHEMA_NO, "the snapshots have no files to look at");
    if (n_open < series->n)
        return phema_fail(err, PHEMA_NO, "snapshot '%s' has no file to look at",
                          series->snapshots[closed].label);
    for (size_t k = 0; k < series->n; k++)
        if (!phema_checkpoint_can_seek(series->snapshots[k].checkpoint))
            return phema_fail(err, PHEMA_NO,
                              "%s is compressed without a seek table of small frames, so that a "
                              "look at some elements would decompress the whole file",
                              series->snapshots[k].path);
    return PHEMA_OK;
}

/* ---- Reading ---- */

/* Falls back to one thread where memory is short. */
static enum phema_status check_memory(struct sampling *sampling, uint64_t values_bytes,
                                      uint64_t max_ram_bytes, struct phema_error *err)
{
    static const char what[] = "to look at some elements of the snapshots";
    uint64_t decoder = 0; /* the largest: a thread reads one snapshot at a time */
    for (size_t k = 0; k < sampling->series->n; k++) {
        uint64_t bytes = phema_checkpoint_decoder_bytes(sampling->series->snapshots[k].checkpoint);
        decoder = bytes > decoder ? bytes : decoder;
    }
    uint64_t part = sampling->scratch_bytes + decoder;
    uint64_t least = values_bytes + part;
    uint64_t others = (sampling->n_parts - 1) * (part + PHEMA_PARALLEL_BYTES);
    struct phema_error ignored;
    if (phema_memory_check(max_ram_bytes, least + others, what, &ignored))
        sampling->n_parts = 1;
    return phema_memory_check(max_ram_bytes, least, what, err);
}

static enum phema_status allocate(struct sampling *sampling, uint64_t max_ram_bytes,
                                  struct phema_error *err)
{
    const struct sample_positions *choice = &sampling->choice;
    struct phema_sample *sample = sampling->sample;
    size_t scratch = 0;
    for (size_t i = 0; i < choice->n; i++) {
        const struct tensor_run *run = &choice->runs[i];
        enum phema_dtype dtype = sampling->series->tensors[run->tensor].tensor.dtype;
        size_t bytes = (size_t)phema_dtype_bytes(dtype, run->n);
        scratch = bytes > scratch ? bytes : scratch;
    }
    scratch = (scratch / PHEMA_INPUT_ALIGNMENT + 1) * PHEMA_INPUT_ALIGNMENT + PHEMA_INPUT_ROOM;
    sampling->scratch_bytes = scratch;
    sampling->n_parts = sparse_count_parts(sampling->series);
    sample->n = sampling->series->n;
    sample->n_elems = choice->n_numbers;
    uint64_t values;
    if (!phema_size_mul(&values, sample->n, sample->n_elems * sizeof(double)))
        return phema_fail_memory(err);
    enum phema_status status = check_memory(sampling, values, max_ram_bytes, err);
    if (status)
        return status;
    struct phema_arena *kept = &sample->memory, *memory = &sampling->memory;
    size_t n = sample->n_elems;
    sample->values = phema_arena_array(kept, sample->n * n, sizeof(double));
    phema_memory_will_fill(sample->values, values);
    sample->rounding = phema_arena_array(kept, sample->n, sizeof(double));
    sample->sizes = phema_arena_array(kept, sample->n, sizeof(double));
    sample->tensors = phema_arena_array(kept, n, sizeof(*sample->tensors));
    sample->spacings = phema_arena_array(kept, n, sizeof(*sample->spacings));
    sampling->columns = phema_arena_array(memory, n, sizeof(*sampling->columns));
    sampling->parts = phema_arena_array(memory, sampling->n_parts, sizeof(*sampling->parts));
    for (size_t p = 0; sampling->parts && p < sampling->n_parts; p++) {
        struct sample_part *part = &sampling->parts[p];
        part->sampling = sampling;
        part->ordered = phema_arena_array(memory, choice->n, sizeof(*part->ordered));
        part->spacings = phema_arena_array(memory, n, sizeof(double));
        part->largest = phema_arena_array(memory, n, sizeof(double));
        part->scratch = aligned_alloc(PHEMA_INPUT_ALIGNMENT, scratch);
        memory->is_failed |= !part->scratch;
    }
    return kept->is_failed || memory->is_failed ? phema_fail_memory(err) : PHEMA_OK;
}

static void fill_columns(struct sampling *sampling)
{
    const struct sample_positions *choice = &sampling->choice;
    for (size_t r = 0; r < choice->n; r++) {
        const struct tensor_run *run = &choice->runs[r];
        const struct phema_tensor *tensor = &sampling->series->tensors[run->tensor].tensor;
        enum phema_dtype dtype = tensor->dtype;
        /* where the powers of two lie among scaled numbers is not known: the spacing whose rounding
         * errors are those of numbers of any size */
        double scaled =
            tensor->scaling ? phema_dtype_rounding(tensor->scaling->codes) * sqrt(12) : 0;
        size_t end = run->column + (size_t)(run->n * phema_dtype_n_parts(dtype));
        for (size_t i = run->column; i < end; i++)
            sampling->columns[i] =
                (struct column){run->tensor, phema_dtype_of_parts(dtype), scaled, run->weight, 1};
    }
}

static int compare_runs(const void *a, const void *b, void *context)
{
    const struct tensor_run *left = a, *right = b;
    const struct sample_part *part = context;
    int order =
        tensor_locations_compare(&part->locations[left->tensor], &part->locations[right->tensor]);
    return order ? order : (left->column > right->column) - (left->column < right->column);
}

static enum phema_status read_run(struct sample_part *part, size_t k, const struct tensor_run *run,
                                  struct phema_error *err)
{
    const struct sampling *sampling = part->sampling;
    struct phema_tensor tensor = phema_series_tensor_in(sampling->series, k, run->tensor);
    const uint8_t *data = NULL;
    enum phema_status status =
        phema_reader_read(&data, part->reader, &tensor, run->first, run->n, part->scratch, err);
    if (status)
        return status;
    enum phema_dtype dtype = phema_dtype_of_parts(tensor.dtype);
    size_t n = (size_t)(run->n * phema_dtype_n_parts(tensor.dtype));
    double *row = sampling->sample->values + k * sampling->sample->n_elems;
    phema_elements_widen(row + run->column, dtype, data, n);
    return PHEMA_OK;
}

static enum phema_status read_snapshot(struct sample_part *part, size_t k, struct phema_error *err)
{
    const struct sampling *sampling = part->sampling;
    const struct phema_snapshot *snapshot = &sampling->series->snapshots[k];
    const struct sample_positions *choice = &sampling->choice;
    if (snapshot->locations != part->locations) { /* disks and decoders read forward */
        part->locations = snapshot->locations;
        memcpy(part->ordered, choice->runs, choice->n * sizeof(*part->ordered));
        qsort_r(part->ordered, choice->n, sizeof(*part->ordered), compare_runs, part);
    }
    enum phema_status status = sparse_reader_open(&part->reader, snapshot->checkpoint, err);
    for (size_t i = 0; !status && i < choice->n; i++)
        status = read_run(part, k, &part->ordered[i], err);
    phema_reader_close(part->reader);
    part->reader = NULL;
    sparse_evict(snapshot->checkpoint);
    if (status || snapshot->is_checkpoint_shared)
        return status;
    return phema_checkpoint_check_unchanged(snapshot->checkpoint, err);
}

static enum phema_status read_part(void *context, size_t index, struct phema_error *err)
{
    struct sampling *sampling = context;
    size_t n = sampling->series->n, end = (index + 1) * n / sampling->n_parts;
    enum phema_status status = PHEMA_OK;
    const struct sample_positions *choice = &sampling->choice;
    size_t first = index * n / sampling->n_parts;
    sparse_prefetch_compressed(sampling->series, first, choice->runs, choice->n);
    for (size_t k = first; !status && k < end; k++) {
        sparse_prefetch_compressed(sampling->series, k + 1, choice->runs, choice->n);
        status = read_snapshot(&sampling->parts[index], k, err);
    }
    return status;
}

/* ---- Public functions ---- */

static enum phema_status fill_sample(struct sampling *sampling, uint64_t max_ram_bytes,
                                     struct phema_error *err)
{
    enum phema_status status = check_files(sampling->series, err);
    if (status)
        return status;
    status = sample_positions_make(&sampling->choice, sampling->series, sampling->is_left_out, err);
    if (status)
        return status;
    status = allocate(sampling, max_ram_bytes, err);
    if (status)
        return status;
    fill_columns(sampling);
    sparse_prefetch(sampling->series, sampling->choice.runs, sampling->choice.n);
    status = phema_parallel_try(sampling->n_parts, (unsigned)sampling->n_parts, read_part, sampling,
                                err);
    if (status)
        return status;
    status = sampling_drop_columns(sampling, err);
    return status ? status : sampling_weigh(sampling, err);
}

static void clear(struct sampling *sampling)
{
    sample_positions_clear(&sampling->choice);
    for (size_t p = 0; sampling->parts && p < sampling->n_parts; p++)
        free(sampling->parts[p].scratch);
    phema_arena_clear(&sampling->memory);
}

/* Notes the statistics, unless nothing else is averaged. Returns whether there are any. */
static bool leave_out_statistics(bool *is_left_out, const struct phema_series *series)
{
    size_t n_left_out = 0, n = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        bool is_averaged = entry->rule == PHEMA_RULE_AVERAGE && entry->tensor.n_elems;
        is_left_out[i] = is_averaged && tensor_is_statistic(&entry->tensor);
        n += is_averaged;
        n_left_out += is_left_out[i];
    }
    if (n_left_out == n)
        memset(is_left_out, false, series->n_tensors);
    return n_left_out > 0 && n_left_out < n;
}

/*   is_left_out  [n_tensors] from the start; then with those that stand still */
static enum phema_status try_sample(struct phema_sample *out, const struct phema_series *series,
                                    bool is_plain, bool *is_left_out, uint64_t max_ram_bytes,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    bool is_thin = true;
    for (unsigned attempt = 0; attempt < (is_plain ? 1 : 2) && !status && is_thin; attempt++) {
        struct sampling sampling = {
            .series = series, .sample = out, .is_plain = is_plain, .is_left_out = is_left_out};
        phema_sample_clear(out);
        status = fill_sample(&sampling, max_ram_bytes, err);
        /* most were constant: others are looked at in their place */
        is_thin = 2 * out->n_elems < sampling.choice.n_numbers;
        out->is_plain = out->is_plain && attempt == 0;
        clear(&sampling);
    }
    return status;
}

static enum phema_status read_sample(struct phema_sample *out, const struct phema_series *series,
                                     bool is_plain, bool is_of_parameters, uint64_t max_ram_bytes,
                                     struct phema_error *err)
{
    struct phema_sample sample = {0};
    bool *is_left_out = calloc(series->n_tensors + 1, sizeof(*is_left_out));
    if (!is_left_out)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    if (!is_of_parameters || leave_out_statistics(is_left_out, series))
        status = try_sample(&sample, series, is_plain, is_left_out, max_ram_bytes, err);
    free(is_left_out);
    if (status)
        phema_sample_clear(&sample);
    else
        *out = sample;
    return status;
}

PHEMA_FALLIBLE phema_sample_read(struct phema_sample *out, const struct phema_series *series,
                                 bool is_plain, uint64_t max_ram_bytes, struct phema_error *err)
{
    return read_sample(out, series, is_plain, false, max_ram_bytes, err);
}

PHEMA_FALLIBLE phema_sample_read_parameters(struct phema_sample *out,
                                            const struct phema_series *series,
                                            uint64_t max_ram_bytes, struct phema_error *err)
{
    enum phema_status status = read_sample(out, series, false, true, max_ram_bytes, err);
    return status == PHEMA_NO ? PHEMA_OK : status; /* nothing of them can be compared */
}

void phema_sample_clear(struct phema_sample *sample)
{
    phema_arena_clear(&sample->memory);
    *sample = (struct phema_sample){0};
}

double phema_sample_distance(const struct phema_sample *sample, size_t i, size_t j)
{
    const double *a = sample->values + i * sample->n_elems;
    const double *b = sample->values + j * sample->n_elems;
    double lanes[N_LANES] = {0}, sum = 0;
    for (size_t e = 0; e < sample->n_elems; e++) {
        double difference = a[e] - b[e];
        lanes[e % N_LANES] += difference * difference;
    }
    for (size_t lane = 0; lane < N_LANES; lane++)
        sum += lanes[lane];
    return sum / (double)sample->n_elems / sample->mean_square;
}
