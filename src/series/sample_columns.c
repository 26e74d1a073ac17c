// SPDX-License-Identifier: Apache-2.0
/* sample_columns.c - which columns of a sample count, and how much: numbers that are finite everywhere,
 * of tensors that move, each for as many of the model. Sums are in one fixed order, so that they are
 * the same on every machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/dtype.h"
#include "phema/parallel.h"
#include "phema/sort.h"
#include "sampling.h"

/* Squares of numbers between these, and sums and quotients of the squares, are finite. Only F64 has
 * numbers beyond. */
#define LARGEST_NUMBER       1e100
#define SMALLEST_MEAN_SQUARE 1e-100

/* Tensors of a few elements (data means, counters) whose rms is so many times that of all others, and
 * which have most of the squared norm. In LayerNorm's gains and statistics of BatchNorm it is below. */
#define MUCH_LARGER 100.0
#define FEW         0.1 /* of the elements */

/* ---- Which columns count ---- */

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
        sampling->is_left_out[sampling->columns[i].tensor] = is_constant;
        for (size_t e = i; e < end && !is_constant; e++)
            n_moving += is_usable[e];
    }
    sampling->sample->is_plain = n_moving == 0 || n_moving == n;
    if (n_moving == 0)
        memset(sampling->is_left_out, false, sampling->series->n_tensors);
    for (size_t i = 0; i < sample->n_elems && n_moving; i++)
        is_usable[i] = is_usable[i] && !sampling->is_left_out[sampling->columns[i].tensor];
    return n_moving ? n_moving : n;
}

PHEMA_FALLIBLE sampling_drop_columns(struct sampling *sampling, struct phema_error *err)
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

/* ---- How much they count ---- */

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

PHEMA_FALLIBLE sampling_weigh(struct sampling *sampling, struct phema_error *err)
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
    return scale_sums(sampling, err);
}
