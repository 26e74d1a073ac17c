// SPDX-License-Identifier: Apache-2.0
/* copied_buffers.c - tensors that an averaging class copies as they are: running statistics, where
 * it averages the parameters alone. Two snapshots of one time have the same bytes of them, and other
 * bytes at other times, while their averaged tensors differ. */
#include "series_builder.h"

#include <stdlib.h>
#include <string.h>

#include "phema/file_reader.h"
#include "sparse_read.h"

/* Larger tensors are parameters. */
#define MOST_BYTES ((uint64_t)1 << 20)
/* Elements of a read. */
#define READ_ELEMS ((uint64_t)1024)
#define READ_BYTES ((size_t)READ_ELEMS * 16 + PHEMA_INPUT_ROOM)

struct pair {
    size_t left, right; /* snapshots */
};

struct comparison {
    const struct phema_series *series;
    bool *is_copy;    /* [n_tensors] as far as the pairs so far tell */
    bool *is_equal;   /* [n_tensors] in the current pair, of those that may be copies */
    uint8_t *scratch; /* [2 READ_BYTES] */
};

static bool may_be_copy(const struct phema_series_tensor *entry, bool is_beside_raw)
{
    const struct phema_tensor *tensor = &entry->tensor;
    bool is_wide = phema_dtype_bits(tensor->dtype) >= 32;
    return (tensor_is_statistic(tensor) || (is_wide && is_beside_raw)) &&
           entry->rule == PHEMA_RULE_AVERAGE && !entry->tied_to && !tensor->scaling &&
           tensor->n_elems && tensor->size_bytes <= MOST_BYTES;
}

/* Two averages may round to the same narrow numbers, but not of several statistics, which jitter. */
#define LEAST_NARROW ((uint64_t)8)

static bool is_sure(const struct phema_tensor *tensor)
{
    return phema_dtype_bits(tensor->dtype) >= 32 || tensor->n_elems >= LEAST_NARROW;
}

/* Whether the first n elements have the same bytes in both snapshots. */
static enum phema_status compare_tensor(bool *are_equal, const struct comparison *comparison,
                                        struct pair pair, struct phema_reader *const readers[2],
                                        size_t i, uint64_t n, struct phema_error *err)
{
    struct phema_tensor left = phema_series_tensor_in(comparison->series, pair.left, i);
    struct phema_tensor right = phema_series_tensor_in(comparison->series, pair.right, i);
    enum phema_status status = PHEMA_OK;
    *are_equal = true;
    for (uint64_t first = 0; first < n && *are_equal && !status; first += READ_ELEMS) {
        uint64_t size = n - first < READ_ELEMS ? n - first : READ_ELEMS;
        const uint8_t *a = NULL, *b = NULL;
        status = phema_reader_read(&a, readers[0], &left, first, size, comparison->scratch, err);
        if (!status)
            status = phema_reader_read(&b, readers[1], &right, first, size,
                                       comparison->scratch + READ_BYTES, err);
        *are_equal = !status && memcmp(a, b, phema_dtype_bytes(left.dtype, size)) == 0;
    }
    return status;
}

static void prefetch(const struct phema_series *series, size_t k, size_t i)
{
    struct phema_tensor tensor = phema_series_tensor_in(series, k, i);
    uint64_t n = tensor.n_elems < READ_ELEMS ? tensor.n_elems : READ_ELEMS;
    phema_tensor_prefetch(series->snapshots[k].checkpoint, &tensor, 0, n);
}

/* Compares what may be copied, and of other averaged tensors as much as shows whether anything is
 * different. */
static enum phema_status compare(bool *is_any_different, struct comparison *comparison,
                                 struct pair pair, struct phema_error *err)
{
    const struct phema_series *series = comparison->series;
    struct phema_reader *readers[2] = {NULL, NULL};
    enum phema_status status =
        sparse_reader_open(&readers[0], series->snapshots[pair.left].checkpoint, err);
    if (!status)
        status = sparse_reader_open(&readers[1], series->snapshots[pair.right].checkpoint, err);
    *is_any_different = false;
    for (size_t i = 0; i < series->n_tensors && !status; i++) {
        if (comparison->is_copy[i]) {
            prefetch(series, pair.left, i);
            prefetch(series, pair.right, i);
        }
    }
    for (size_t i = 0; i < series->n_tensors && !status; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        bool is_copy = comparison->is_copy[i], is_equal = true;
        uint64_t n =
            is_copy || entry->tensor.n_elems < READ_ELEMS ? entry->tensor.n_elems : READ_ELEMS;
        if (entry->rule != PHEMA_RULE_AVERAGE || (!is_copy && *is_any_different))
            continue;
        status = compare_tensor(&is_equal, comparison, pair, readers, i, n, err);
        comparison->is_equal[i] = is_equal;
        *is_any_different = *is_any_different || !is_equal;
    }
    phema_reader_close(readers[0]);
    phema_reader_close(readers[1]);
    return status;
}

static bool is_cheap(const struct phema_snapshot *snapshot)
{
    return snapshot->checkpoint && phema_checkpoint_can_seek(snapshot->checkpoint);
}

/* Whether a snapshot and the one before it are of one time, and cheap to look at. */
static bool is_pair(const struct phema_series *series, size_t k)
{
    const struct phema_snapshot *left = &series->snapshots[k - 1], *right = &series->snapshots[k];
    return left->named_time == right->named_time && is_cheap(left) && is_cheap(right);
}

/* Sets is_copy of what may be copied. Returns whether there is any, and a pair that can tell. */
static bool find_candidates(struct comparison *comparison)
{
    const struct phema_series *series = comparison->series;
    bool has_raw = false, has_pair = false, is_any = false;
    for (size_t k = 0; k < series->n; k++) {
        has_raw = has_raw || series->snapshots[k].profile.shape == PHEMA_SHAPE_RAW;
        has_pair = has_pair || (k && is_pair(series, k));
    }
    for (size_t i = 0; i < series->n_tensors; i++) {
        comparison->is_copy[i] = has_pair && may_be_copy(&series->tensors[i], has_raw);
        is_any = is_any || comparison->is_copy[i];
    }
    return is_any;
}

/* The newest snapshot that is cheap to look at, and the oldest. */
static struct pair find_ends(const struct phema_series *series)
{
    struct pair ends = {0, series->n};
    for (size_t k = 0; k < series->n; k++) {
        if (!is_cheap(&series->snapshots[k]))
            continue;
        ends.right = ends.right < series->n ? ends.right : k;
        ends.left = k;
    }
    return ends;
}

/* Two times tell a buffer from a parameter that was frozen. One time does not. */
#define LEAST_PAIRS 2

/* Leaves is_copy of those that are equal in each pair, where anything differs, and not the same in
 * the newest and the oldest snapshot. The newest pair comes first: it leaves few.
 *   is_told  out: two averages differ, so that they tell what is copied */
static enum phema_status compare_all(bool *is_told, struct comparison *comparison,
                                     struct phema_error *err)
{
    const struct phema_series *series = comparison->series;
    bool is_any_different, has_copies = find_candidates(comparison);
    size_t n_different = 0;
    for (size_t k = series->n - 1; k > 0 && has_copies; k--) {
        if (!is_pair(series, k))
            continue;
        enum phema_status status =
            compare(&is_any_different, comparison, (struct pair){k - 1, k}, err);
        if (status)
            return status;
        has_copies = false;
        for (size_t i = 0; i < series->n_tensors; i++) {
            if (is_any_different && !comparison->is_equal[i])
                comparison->is_copy[i] = false;
            has_copies = has_copies || comparison->is_copy[i];
        }
        /* raw parameters differ from an average's copies of them, too, between two updates */
        *is_told = *is_told ||
                   (is_any_different && series->snapshots[k - 1].profile.shape != PHEMA_SHAPE_RAW &&
                    series->snapshots[k].profile.shape != PHEMA_SHAPE_RAW);
        n_different += is_any_different;
    }
    enum phema_status status =
        has_copies ? compare(&is_any_different, comparison, find_ends(series), err) : PHEMA_OK;
    for (size_t i = 0; i < series->n_tensors && has_copies && !status; i++) {
        const struct phema_tensor *tensor = &series->tensors[i].tensor;
        comparison->is_copy[i] = comparison->is_copy[i] && !comparison->is_equal[i] &&
                                 is_sure(tensor) &&
                                 (n_different >= LEAST_PAIRS || tensor_is_statistic(tensor));
    }
    return status;
}

PHEMA_FALLIBLE copied_buffers_find(struct series_builder *builder, struct phema_error *err)
{
    struct phema_series *series = builder->series;
    const struct phema_series_options *options = builder->options;
    if (options->averages_buffers || options->is_conversion || options->is_alone ||
        !series->n_tensors)
        return PHEMA_OK;
    struct comparison comparison = {
        .series = series,
        .is_copy = phema_arena_array(&builder->scratch, series->n_tensors, sizeof(bool)),
        .is_equal = phema_arena_array(&builder->scratch, series->n_tensors, sizeof(bool)),
        .scratch = aligned_alloc(PHEMA_INPUT_ALIGNMENT, 2 * READ_BYTES)};
    bool is_told = false;
    enum phema_status status = comparison.is_copy && comparison.is_equal && comparison.scratch
                                   ? compare_all(&is_told, &comparison, err)
                                   : phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors && !status; i++) /* tied tensors are one */
        if (comparison.is_copy[i])
            comparison.is_copy[series->tensors[i].same_as] = true;
    for (size_t i = 0; i < series->n_tensors && !status; i++)
        if (comparison.is_copy[series->tensors[i].same_as]) {
            series->tensors[i].rule = PHEMA_RULE_COPY;
            series->tensors[i].reason = "buffer";
        }
    free(comparison.scratch);
    return status ? status : tensor_notes_add_buffers(builder, is_told, err);
}
