// SPDX-License-Identifier: Apache-2.0
/* sample.c - reads about 2000 elements of every snapshot, widens them exactly and drops non-finite
 * ones. Sums are in one fixed order, so that they are the same on every machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/dtype.h"
#include "phema/memory.h"
#include "phema/parallel.h"
#include "phema/series.h"
#include "phema/sort.h"
#include "sparse_read.h"
#include "tensor_table.h"

/* Squares of numbers between these, and sums and quotients of the squares, are finite. Only F64 has
 * numbers beyond. */
#define LARGEST_NUMBER       1e100
#define SMALLEST_MEAN_SQUARE 1e-100

/* Tensors of a few elements (data means, counters) whose rms is so many times that of all others, and
 * which have most of the squared norm. In LayerNorm's gains and statistics of BatchNorm it is below. */
#define MUCH_LARGER 100.0
#define FEW         0.1 /* of the elements */

/* Distances are accumulated in this many independent sums, for vector instructions. */
#define N_LANES 8

struct column {
    size_t tensor;
    enum phema_dtype dtype;
    double scaled_spacing; /* of fp8 with a scale: typical, relative to the number; else 0 */
    double weight, root;   /* of the weight, once its mean is 1 */
};

struct sampling {
    const struct phema_series *series;
    struct sample_positions choice;
    struct phema_sample *sample;
    bool is_plain;             /* all tensors take part, by their elements alone */
    bool *is_constant;         /* [n_tensors] does not take part */
    struct column *columns;    /* [n_elems] */
    size_t scratch_bytes;      /* for the longest run */
    struct sample_part *parts; /* [n_parts] */
    size_t n_parts;
    struct phema_arena memory;
};

/* Consecutive snapshots, which one thread reads. */
struct sample_part {
    struct sampling *sampling;
    struct tensor_run *ordered; /* [choice.n] in the order of locations */
    const struct phema_tensor_location *locations;
    uint8_t *scratch;
    double *spacings; /* [n_elems] of the snapshot that is looked at */
    double *largest;  /* [n_elems] of those of its snapshots */
    struct phema_reader *reader;
};

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
        size_t end = run->column + (size_t)(run->n * numbers_per_element(dtype));
        for (size_t i = run->column; i < end; i++)
            sampling->columns[i] =
                (struct column){run->tensor, number_dtype(dtype), scaled, run->weight, 1};
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
    enum phema_dtype dtype = number_dtype(tensor.dtype);
    size_t n = (size_t)(run->n * numbers_per_element(tensor.dtype));
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

/* ---- Values ---- */

static bool is_number(const struct phema_sample *sample, size_t k, size_t column)
{
    return fabs(sample->values[k * sample->n_elems + column]) <= LARGEST_NUMBER;
}

/* Counts the columns that are numbers in every snapshot, row by row, as memory is read fastest.
 *   is_usable  out: [n_elems] */
static size_t find_usable(bool *is_usable, const struct phema_sample *sample)
{
    size_t n = 0;
    memset(is_usable, true, sample->n_elems);
    for (size_t k = 0; k < sample->n; k++)
        for (size_t i = 0; i < sample->n_elems; i++)
            is_usable[i] = is_usable[i] & is_number(sample, k, i);
    for (size_t i = 0; i < sample->n_elems; i++)
        n += is_usable[i];
    return n;
}

/* The first snapshot without any usable number; n: none. */
static size_t find_without_numbers(const struct phema_sample *sample)
{
    for (size_t k = 0; k < sample->n; k++) {
        size_t column = 0;
        while (column < sample->n_elems && !is_number(sample, k, column))
            column++;
        if (column == sample->n_elems)
            return k;
    }
    return sample->n;
}

/* Moves the usable columns to the front of every row, and the rows together. */
static void keep_columns(struct sampling *sampling, const bool *is_usable, size_t n)
{
    struct phema_sample *sample = sampling->sample;
    double *to = sample->values;
    for (size_t k = 0; k < sample->n; k++)
        for (size_t i = 0; i < sample->n_elems; i++)
            if (is_usable[i])
                *to++ = sample->values[k * sample->n_elems + i];
    size_t kept = 0;
    for (size_t i = 0; i < sample->n_elems; i++)
        if (is_usable[i])
            sampling->columns[kept++] = sampling->columns[i];
    sample->n_elems = n;
}

static size_t tensor_end(const struct sampling *sampling, size_t first)
{
    size_t end = first + 1;
    while (end < sampling->sample->n_elems &&
           sampling->columns[end].tensor == sampling->columns[first].tensor)
        end++;
    return end;
}

/* Whether usable columns [first, end) are the same in every snapshot. */
static bool stands_still(const struct phema_sample *sample, const bool *is_usable, size_t first,
                         size_t end)
{
    for (size_t k = 1; k < sample->n; k++) {
        const double *row = sample->values + k * sample->n_elems, *before = row - sample->n_elems;
        for (size_t i = first; i < end; i++)
            if (is_usable[i] && row[i] != before[i])
                return false;
    }
    return true;
}

/* An average of equal values is that value: tensors that stand still, such as masks and frozen layers,
 * have no error. So they have no part in norms and rounding, unless all of them stand still. Returns
 * how many columns are usable without them. */
static size_t leave_out_constants(struct sampling *sampling, bool *is_usable, size_t n)
{
    const struct phema_sample *sample = sampling->sample;
    size_t n_moving = 0;
    for (size_t i = 0, end; i < sample->n_elems; i = end) {
        end = tensor_end(sampling, i);
        bool is_constant = stands_still(sample, is_usable, i, end);
        sampling->is_constant[sampling->columns[i].tensor] = is_constant;
        for (size_t e = i; e < end && !is_constant; e++)
            n_moving += is_usable[e];
    }
    sampling->sample->is_plain = n_moving == 0 || n_moving == n;
    if (n_moving == 0)
        memset(sampling->is_constant, false, sampling->series->n_tensors);
    for (size_t i = 0; i < sample->n_elems && n_moving; i++)
        is_usable[i] = is_usable[i] && !sampling->is_constant[sampling->columns[i].tensor];
    return n_moving ? n_moving : n;
}

/* Removes the columns that are not usable in every snapshot, and those of constant tensors. */
static enum phema_status drop_columns(struct sampling *sampling, struct phema_error *err)
{
    struct phema_sample *sample = sampling->sample;
    bool *is_usable = phema_arena_array(&sampling->memory, sample->n_elems, sizeof(*is_usable));
    if (!is_usable)
        return phema_fail_memory(err);
    size_t empty = find_without_numbers(sample), n = find_usable(is_usable, sample);
    sample->is_plain = true;
    if (!sampling->is_plain)
        n = leave_out_constants(sampling, is_usable, n);
    if (n < sample->n_elems)
        keep_columns(sampling, is_usable, n);
    if (empty < sample->n)
        return phema_fail(err, PHEMA_NO, "no element of snapshot '%s' that was looked at is finite",
                          sampling->series->snapshots[empty].label);
    if (n == 0)
        return phema_fail(err, PHEMA_NO, "no element that was looked at is finite");
    return PHEMA_OK;
}

/* Of snapshot k, tensor by tensor. */
static void find_spacings(struct sample_part *part, size_t k)
{
    const struct sampling *sampling = part->sampling;
    size_t n = sampling->sample->n_elems;
    const double *row = sampling->sample->values + k * n;
    const struct phema_tensor_location *locations = sampling->series->snapshots[k].locations;
    for (size_t i = 0, end; i < n; i = end) {
        const struct column *column = &sampling->columns[i];
        const struct phema_tensor_location *location = &locations[column->tensor];
        enum phema_dtype dtype = location->is_widened ? location->stored_dtype : column->dtype;
        end = tensor_end(sampling, i);
        if (column->scaled_spacing > 0)
            for (size_t e = i; e < end; e++)
                part->spacings[e] = column->scaled_spacing * fabs(row[e]);
        else
            phema_element_spacings(part->spacings + i, dtype, row + i, end - i);
    }
}

/* Multiplies the values of some snapshots. Sets the sums of the squares of their values and of their
 * spacings, and raises the largest spacings. */
static void weigh_part(void *context, size_t index)
{
    const struct sampling *sampling = context;
    const struct phema_sample *sample = sampling->sample;
    struct sample_part *part = &sampling->parts[index];
    size_t n_parts = sampling->n_parts;
    for (size_t k = index * sample->n / n_parts; k < (index + 1) * sample->n / n_parts; k++) {
        double *row = sample->values + k * sample->n_elems, squares = 0, rounding = 0;
        double scale = phema_profile_scale(&sampling->series->snapshots[k].profile);
        find_spacings(part, k);
        for (size_t i = 0; i < sample->n_elems; i++) {
            double root = sampling->columns[i].root, spacing = part->spacings[i] * root;
            part->largest[i] = spacing > part->largest[i] ? spacing : part->largest[i];
            rounding += spacing * spacing;
            row[i] *= root / scale;
            squares += row[i] * row[i];
        }
        sample->rounding[k] = rounding;
        sample->sizes[k] = squares;
    }
}

/* Numbers of a tensor, and the median over the snapshots of their mean square: one that is damaged does
 * not change it. */
struct tensor_size {
    size_t first, end;
    double weight, mean_square;
};

/*   scratch  [snapshots] */
static struct tensor_size measure_tensor(const struct sampling *sampling, size_t first,
                                         double *scratch)
{
    const struct phema_sample *sample = sampling->sample;
    struct tensor_size size = {.first = first, .end = tensor_end(sampling, first)};
    for (size_t k = 0; k < sample->n; k++) {
        const double *row = sample->values + k * sample->n_elems;
        scratch[k] = 0;
        for (size_t i = first; i < size.end; i++)
            scratch[k] += sampling->columns[i].weight * row[i] * row[i];
    }
    for (size_t i = first; i < size.end; i++)
        size.weight += sampling->columns[i].weight;
    qsort(scratch, sample->n, sizeof(*scratch), phema_compare_doubles);
    size.mean_square = scratch[(sample->n - 1) / 2] / size.weight;
    return size;
}

static int compare_sizes(const void *a, const void *b)
{
    const struct tensor_size *left = a, *right = b;
    if (left->mean_square != right->mean_square)
        return left->mean_square < right->mean_square ? 1 : -1;
    return (left->first > right->first) - (left->first < right->first);
}

/* Norms would be those of a few numbers, whose rounding and motion hide all others. So these get the rms
 * of the others.
 *   sizes   [n] the largest first
 *   weight  of all */
static void shrink_largest(struct sampling *sampling, const struct tensor_size *sizes, size_t n,
                           double weight)
{
    double all = 0, rest = 0, n_rest = 0;
    size_t t = n;
    for (size_t i = n; i-- > 0;)
        all += sizes[i].weight * sizes[i].mean_square;
    for (; t > 0; t--) { /* sizes[t - 1] is the smallest of the largest */
        bool is_minority = n_rest >= (1 - FEW) * weight && all > 2 * rest;
        if (is_minority && rest > 0 &&
            sizes[t - 1].mean_square > MUCH_LARGER * MUCH_LARGER * (rest / n_rest))
            break;
        n_rest += sizes[t - 1].weight;
        rest += sizes[t - 1].weight * sizes[t - 1].mean_square;
    }
    sampling->sample->is_plain = sampling->sample->is_plain && t == 0;
    while (t-- > 0)
        for (size_t i = sizes[t].first; i < sizes[t].end; i++)
            sampling->columns[i].root *= sqrt(rest / n_rest / sizes[t].mean_square);
}

static enum phema_status shrink_outliers(struct sampling *sampling, double weight,
                                         struct phema_error *err)
{
    size_t n = 0, n_elems = sampling->sample->n_elems;
    struct phema_arena *memory = &sampling->memory;
    struct tensor_size *sizes = phema_arena_array(memory, n_elems, sizeof(*sizes));
    double *scratch = phema_arena_array(memory, sampling->sample->n, sizeof(*scratch));
    if (memory->is_failed)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n_elems; i = sizes[n++].end)
        sizes[n] = measure_tensor(sampling, i, scratch);
    qsort(sizes, n, sizeof(*sizes), compare_sizes);
    shrink_largest(sampling, sizes, n, weight);
    return PHEMA_OK;
}

/* Multiplies the values by the roots of their weights, with which plain means over the sample
 * estimate those over the model. */
static enum phema_status weigh_values(struct sampling *sampling, struct phema_error *err)
{
    struct phema_sample *sample = sampling->sample;
    size_t n = sample->n_elems;
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += sampling->columns[i].weight;
    for (size_t i = 0; i < n; i++) {
        sample->tensors[i] = sampling->columns[i].tensor;
        sampling->columns[i].root = sqrt(sampling->columns[i].weight * ((double)n / total));
    }
    enum phema_status status =
        sampling->is_plain ? PHEMA_OK : shrink_outliers(sampling, total, err);
    if (status)
        return status;
    phema_parallel(sampling->n_parts, (unsigned)sampling->n_parts, weigh_part, sampling);
    for (size_t p = 0; p < sampling->n_parts; p++)
        for (size_t i = 0; i < n; i++)
            sample->spacings[i] = fmax(sample->spacings[i], sampling->parts[p].largest[i]);
    return PHEMA_OK;
}

/* A rounding error is uniform over the spacing of numbers, so its variance is spacing^2 / 12. */
static enum phema_status scale_sums(struct sampling *sampling, struct phema_error *err)
{
    struct phema_sample *sample = sampling->sample;
    double n = (double)sample->n_elems;
    sample->mean_square = sample->sizes[sample->n - 1] / n;
    if (sample->mean_square < SMALLEST_MEAN_SQUARE)
        return phema_fail(err, PHEMA_NO,
                          "all elements that were looked at are zero in the newest snapshot, '%s'",
                          sampling->series->snapshots[sample->n - 1].label);
    for (size_t k = 0; k < sample->n; k++) {
        sample->rounding[k] = sqrt(sample->rounding[k] / (12 * n) / sample->mean_square);
        sample->sizes[k] = sqrt(sample->sizes[k] / n / sample->mean_square);
    }
    return PHEMA_OK;
}

/* ---- Public functions ---- */

static enum phema_status fill_sample(struct sampling *sampling, uint64_t max_ram_bytes,
                                     struct phema_error *err)
{
    enum phema_status status = check_files(sampling->series, err);
    if (status)
        return status;
    status = sample_positions_make(&sampling->choice, sampling->series, sampling->is_constant, err);
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
    status = drop_columns(sampling, err);
    if (!status)
        status = weigh_values(sampling, err);
    return status ? status : scale_sums(sampling, err);
}

static void clear(struct sampling *sampling)
{
    sample_positions_clear(&sampling->choice);
    for (size_t p = 0; sampling->parts && p < sampling->n_parts; p++)
        free(sampling->parts[p].scratch);
    phema_arena_clear(&sampling->memory);
}

/* Of the data that pass a normalisation: they jitter with every batch, as parameters do not. */
static bool is_statistic(const struct phema_tensor *tensor)
{
    static const char *const names[] = {"running_mean",     "running_var", "running_std",
                                        "running_variance", "moving_mean", "moving_var",
                                        "moving_variance"};
    const char *dot = memrchr(tensor->name, '.', tensor->name_size);
    const char *last = dot ? dot + 1 : tensor->name;
    size_t size = tensor->name_size - (size_t)(last - tensor->name);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (phema_bytes_are(last, size, names[i]))
            return true;
    return false;
}

/* Notes the statistics, unless nothing else is averaged. Returns whether there are any. */
static bool leave_out_statistics(bool *is_left_out, const struct phema_series *series)
{
    size_t n_left_out = 0, n = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        bool is_averaged = entry->rule == PHEMA_RULE_AVERAGE && entry->tensor.n_elems;
        is_left_out[i] = is_averaged && is_statistic(&entry->tensor);
        n += is_averaged;
        n_left_out += is_left_out[i];
    }
    if (n_left_out == n)
        memset(is_left_out, false, series->n_tensors);
    return n_left_out > 0 && n_left_out < n;
}

/* is_left_out: [n_tensors] */
static enum phema_status read_sample(struct phema_sample *out, const struct phema_series *series,
                                     bool is_plain, bool *is_left_out, uint64_t max_ram_bytes,
                                     struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    bool is_thin = true;
    for (unsigned attempt = 0; attempt < (is_plain ? 1 : 2) && !status && is_thin; attempt++) {
        struct sampling sampling = {
            .series = series, .sample = out, .is_plain = is_plain, .is_constant = is_left_out};
        phema_sample_clear(out);
        status = fill_sample(&sampling, max_ram_bytes, err);
        /* most were constant: others are looked at in their place */
        is_thin = 2 * out->n_elems < sampling.choice.n_numbers;
        out->is_plain = out->is_plain && attempt == 0;
        clear(&sampling);
    }
    return status;
}

PHEMA_FALLIBLE phema_sample_read(struct phema_sample *out, const struct phema_series *series,
                                 bool is_plain, uint64_t max_ram_bytes, struct phema_error *err)
{
    struct phema_sample sample = {0};
    bool *is_left_out = calloc(series->n_tensors + 1, sizeof(*is_left_out));
    if (!is_left_out)
        return phema_fail_memory(err);
    enum phema_status status =
        read_sample(&sample, series, is_plain, is_left_out, max_ram_bytes, err);
    free(is_left_out);
    if (status)
        phema_sample_clear(&sample);
    else
        *out = sample;
    return status;
}

PHEMA_FALLIBLE phema_sample_read_parameters(struct phema_sample *out,
                                            const struct phema_series *series,
                                            uint64_t max_ram_bytes, struct phema_error *err)
{
    struct phema_sample sample = {0};
    bool *is_left_out = calloc(series->n_tensors + 1, sizeof(*is_left_out));
    if (!is_left_out)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    if (leave_out_statistics(is_left_out, series))
        status = read_sample(&sample, series, false, is_left_out, max_ram_bytes, err);
    free(is_left_out);
    if (status)
        phema_sample_clear(&sample);
    else
        *out = sample;
    return status;
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
