// SPDX-License-Identifier: Apache-2.0
/* overlap.c - Which tensors of a checkpoint share bytes. Views of one storage may be interleaved
 * without sharing bytes (columns of a matrix, every other element). The general problem is hard, so
 * three tests follow each other: compare the ranges; prove by the common step of the strides that
 * the views never meet; mark the bytes themselves where they are few. Tensors that no test
 * separates count as shared. */
#include <stdlib.h>
#include <string.h>

#include "format.h"

/* Size of the map in which bytes are marked, and so of the largest range that is compared. */
#define MAX_MARKED_BYTES (16u << 20)

/* Bytes marked and pairs of strides tried in one call: some seconds. A file with a hundred thousand
 * interleaved views would have 10^10 pairs. */
#define MAX_WORK ((uint64_t)1 << 28)

/* The bytes of a tensor: runs that start at start + sum i_k step_k, 0 <= i_k < n_k. */
struct runs {
    size_t file;
    uint64_t start, run_bytes; /* 0: an empty tensor */
    uint64_t end;              /* after the last byte of the last run */
    unsigned rank;             /* number of steps, which ascend and are above run_bytes */
    uint64_t n[PHEMA_MAX_RANK], step[PHEMA_MAX_RANK];
};

static void insert_dimension(struct runs *runs, uint64_t n, uint64_t step)
{
    unsigned at = runs->rank++;
    for (; at > 0 && runs->step[at - 1] > step; at--) {
        runs->n[at] = runs->n[at - 1];
        runs->step[at] = runs->step[at - 1];
    }
    runs->n[at] = n;
    runs->step[at] = step;
}

/* Merges runs that touch or overlap. */
static void merge_dimensions(struct runs *runs)
{
    unsigned n_merged = 0;
    while (n_merged < runs->rank && runs->step[n_merged] <= runs->run_bytes) {
        runs->run_bytes += (runs->n[n_merged] - 1) * runs->step[n_merged];
        n_merged++;
    }
    runs->rank -= n_merged;
    memmove(runs->n, runs->n + n_merged, runs->rank * sizeof(*runs->n));
    memmove(runs->step, runs->step + n_merged, runs->rank * sizeof(*runs->step));
}

/* No product exceeds the size of the file: checked when the tensor was listed. */
static void runs_of_tensor(struct runs *runs, const struct phema_tensor *tensor)
{
    runs->file = tensor->file;
    runs->start = tensor->offset;
    runs->rank = 0;
    runs->run_bytes = tensor->size_bytes;
    if (tensor->stride && tensor->n_elems) {
        runs->run_bytes = phema_dtype_bits(tensor->dtype) / 8;
        for (unsigned k = 0; k < tensor->rank; k++)
            if (tensor->shape[k] > 1 && tensor->stride[k] > 0)
                insert_dimension(runs, tensor->shape[k], tensor->stride[k] * runs->run_bytes);
        merge_dimensions(runs);
    }
    runs->end = runs->start + runs->run_bytes;
    for (unsigned k = 0; k < runs->rank; k++)
        runs->end += (runs->n[k] - 1) * runs->step[k];
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Treats steps below the limit as filled and returns their extent. The other steps enter the common
 * step. */
static uint64_t extent_below(uint64_t *common, const struct runs *runs, uint64_t limit)
{
    uint64_t extent = runs->run_bytes;
    for (unsigned k = 0; k < runs->rank; k++) {
        if (runs->step[k] < limit)
            extent += (runs->n[k] - 1) * runs->step[k];
        else
            *common = gcd(*common, runs->step[k]);
    }
    return extent;
}

/* True when the views provably never meet. Steps below the limit are treated as filled; the
 * remaining steps are multiples of a common step. Two extents that are disjoint modulo that step
 * never meet. */
static bool miss_by_steps(const struct runs *a, const struct runs *b, uint64_t limit)
{
    uint64_t common = 0;
    uint64_t extent_a = extent_below(&common, a, limit);
    uint64_t extent_b = extent_below(&common, b, limit);
    if (common == 0) /* no step remains; the ranges do meet */
        return false;
    uint64_t between = b->start >= a->start ? (b->start - a->start) % common
                                            : (common - (a->start - b->start) % common) % common;
    return between >= extent_a && common - between >= extent_b;
}

static bool are_proved_apart(const struct runs *a, const struct runs *b)
{
    for (unsigned k = 0; k < a->rank; k++)
        if (miss_by_steps(a, b, a->step[k]))
            return true;
    for (unsigned k = 0; k < b->rank; k++)
        if (miss_by_steps(a, b, b->step[k]))
            return true;
    return false;
}

/* Marks the runs in map, which covers [first, first + size), or returns true when one is marked. */
static bool visit(const struct runs *runs, uint8_t *map, uint64_t first, uint64_t size, bool marks)
{
    uint64_t index[PHEMA_MAX_RANK] = {0};
    for (uint64_t start = runs->start;;) {
        uint64_t from = start > first ? start - first : 0;
        uint64_t to = start + runs->run_bytes > first ? start + runs->run_bytes - first : 0;
        if (to > size)
            to = size;
        if (from < to && marks)
            memset(map + from, 1, to - from);
        else if (from < to && memchr(map + from, 1, to - from))
            return true;
        unsigned k = 0;
        for (; k < runs->rank; k++) {
            start += runs->step[k];
            if (++index[k] < runs->n[k])
                break;
            start -= runs->n[k] * runs->step[k];
            index[k] = 0;
        }
        if (k == runs->rank)
            return false;
    }
}

/* False when less work than that is left. */
static bool spend(uint64_t *left, uint64_t amount)
{
    if (amount > *left) {
        *left = 0;
        return false;
    }
    *left -= amount;
    return true;
}

static bool spend_on_runs(uint64_t *left, const struct runs *runs)
{
    uint64_t amount = runs->run_bytes;
    for (unsigned k = 0; k < runs->rank; k++)
        if (!phema_size_mul(&amount, amount, runs->n[k]))
            return false;
    return spend(left, amount);
}

static enum phema_status share_bytes(bool *out, const struct runs *a, const struct runs *b,
                                     uint64_t *work_left, struct phema_error *err)
{
    uint64_t first = a->start > b->start ? a->start : b->start;
    uint64_t end = a->end < b->end ? a->end : b->end;
    *out = false;
    if (a->file != b->file || first >= end || !a->run_bytes || !b->run_bytes)
        return PHEMA_OK;
    *out = true;
    uint64_t amount = 4 * (uint64_t)(a->rank + b->rank + 1) * (a->rank + b->rank + 1);
    if ((!a->rank && !b->rank) || !spend(work_left, amount))
        return PHEMA_OK;
    *out = !are_proved_apart(a, b);
    if (!*out)
        return PHEMA_OK;
    if (end - first > MAX_MARKED_BYTES || !spend_on_runs(work_left, a) ||
        !spend_on_runs(work_left, b))
        return PHEMA_OK;
    uint8_t *map = calloc(1, end - first);
    if (!map)
        return phema_fail_memory(err);
    (void)visit(a, map, first, end - first, true);
    *out = visit(b, map, first, end - first, false);
    free(map);
    return PHEMA_OK;
}

/* True for the same elements in the same order: writing one writes the other. */
static bool are_same_view(const struct phema_tensor *a, const struct phema_tensor *b)
{
    if (a->file != b->file || a->offset != b->offset || a->dtype != b->dtype ||
        a->n_elems != b->n_elems || !a->stride != !b->stride)
        return false;
    if (!a->stride)
        return true;
    if (a->rank != b->rank)
        return false;
    for (unsigned k = 0; k < a->rank; k++)
        if (a->shape[k] != b->shape[k] || (a->shape[k] > 1 && a->stride[k] != b->stride[k]))
            return false;
    return true;
}

/* The range of a tensor, for a sweep in the order of starts. */
struct place {
    size_t file, tensor;
    uint64_t start, end;
};

static int by_start(const void *a, const void *b)
{
    const struct place *left = a;
    const struct place *right = b;
    if (left->file != right->file)
        return left->file > right->file ? 1 : -1;
    if (left->start != right->start)
        return left->start > right->start ? 1 : -1;
    return (left->tensor > right->tensor) - (left->tensor < right->tensor);
}

/* Earlier ranges that have not ended yet. */
struct open_places {
    size_t *places; /* indices */
    size_t n;
};

struct sweep {
    enum phema_overlap sought;
    const struct phema_tensor *tensors;
    const bool *is_replaced;
    struct place *places;
    size_t n_places;
    struct open_places open[2]; /* kept, replaced */
    uint64_t work_left;
};

/* The first open place that shares bytes with this one. Places that have ended are removed.
 *   is_repeated  out: one of them is the same view, where same views are allowed */
static enum phema_status meet(const struct place **met, bool *is_repeated, struct sweep *sweep,
                              struct open_places *open, const struct place *place,
                              struct phema_error *err)
{
    const struct phema_tensor *tensor = &sweep->tensors[place->tensor];
    struct runs runs;
    struct runs other;
    runs_of_tensor(&runs, tensor);
    size_t n_left = 0;
    *met = NULL;
    *is_repeated = false;
    for (size_t i = 0; i < open->n; i++) {
        const struct place *before = &sweep->places[open->places[i]];
        const struct phema_tensor *tensor_before = &sweep->tensors[before->tensor];
        if (before->file != place->file || before->end <= place->start)
            continue;
        open->places[n_left++] = open->places[i];
        if (sweep->sought == PHEMA_OVERLAP_REPLACED && are_same_view(tensor, tensor_before)) {
            *is_repeated = true;
            continue;
        }
        bool is_shared = false;
        runs_of_tensor(&other, tensor_before);
        enum phema_status status = share_bytes(&is_shared, &runs, &other, &sweep->work_left, err);
        if (status)
            return status;
        if (is_shared) {
            *met = before;
            return PHEMA_OK;
        }
    }
    open->n = n_left;
    return PHEMA_OK;
}

static enum phema_status run_sweep(size_t pair[2], bool *found, struct sweep *sweep,
                                   struct phema_error *err)
{
    for (size_t i = 0; i < sweep->n_places; i++) {
        const struct place *place = &sweep->places[i];
        bool is_replaced = sweep->is_replaced[place->tensor];
        bool against_replaced = sweep->sought == PHEMA_OVERLAP_REPLACED || !is_replaced;
        const struct place *met = NULL;
        bool is_repeated = false;
        enum phema_status status =
            meet(&met, &is_repeated, sweep, &sweep->open[against_replaced], place, err);
        if (status)
            return status;
        if (met) {
            pair[0] = is_replaced ? place->tensor : met->tensor;
            pair[1] = is_replaced ? met->tensor : place->tensor;
            *found = true;
            return PHEMA_OK;
        }
        struct open_places *open = &sweep->open[is_replaced];
        if (!is_repeated)
            open->places[open->n++] = i;
    }
    return PHEMA_OK;
}

enum phema_status phema_find_overlap(size_t pair[2], bool *found, enum phema_overlap sought,
                                     const struct phema_tensor *tensors, const bool *is_replaced,
                                     size_t n, struct phema_error *err)
{
    size_t *open = calloc(2 * n + 1, sizeof(*open));
    struct sweep sweep = {.sought = sought,
                          .tensors = tensors,
                          .is_replaced = is_replaced,
                          .places = calloc(n + 1, sizeof(*sweep.places)),
                          .open = {{open, 0}, {open ? open + n : NULL, 0}},
                          .work_left = MAX_WORK};
    enum phema_status status = PHEMA_OK;
    *found = false;
    if (!sweep.places || !open) {
        status = phema_fail_memory(err);
    } else {
        for (size_t i = 0; i < n; i++) {
            struct runs runs;
            runs_of_tensor(&runs, &tensors[i]);
            if (runs.run_bytes && (sought == PHEMA_OVERLAP_KEPT || is_replaced[i]))
                sweep.places[sweep.n_places++] = (struct place){runs.file, i, runs.start, runs.end};
        }
        qsort(sweep.places, sweep.n_places, sizeof(*sweep.places), by_start);
        status = run_sweep(pair, found, &sweep, err);
    }
    free(sweep.places);
    free(open);
    return status;
}
