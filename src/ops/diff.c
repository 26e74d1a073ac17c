// SPDX-License-Identifier: Apache-2.0
/* diff.c - walks two checkpoints in step, a chunk of one tensor at a time. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "listener.h"
#include "phema/accumulate.h"

/* Elements per chunk; even, because two F4 elements share a byte. */
#define CHUNK_ELEMS ((size_t)16384)

/* Pages that were read are released in steps of this many chunks. */
#define RELEASE_CHUNKS 256

struct side {
    const struct phema_checkpoint *checkpoint;
    const struct phema_tensor *tensor;
    struct phema_reader *reader;
    uint8_t *scratch; /* [CHUNK_ELEMS * 16 bytes] */
    double *values;   /* [2 * CHUNK_ELEMS] */
};

/* Complex numbers are compared part by part. */
static bool is_numeric(enum phema_dtype dtype)
{
    return dtype == PHEMA_C64 || dtype == PHEMA_C128 || phema_can_accumulate(dtype);
}

static bool are_comparable(const struct phema_tensor *a, const struct phema_tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (unsigned d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d])
            return false;
    return a->dtype == b->dtype || (is_numeric(a->dtype) && is_numeric(b->dtype) &&
                                    phema_dtype_n_parts(a->dtype) == phema_dtype_n_parts(b->dtype));
}

/* The larger of two sizes; NaN is larger than all. */
static double larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

/* n elements of some parts each. */
static void compare_numbers(struct phema_difference *out, const double *a, const double *b,
                            size_t n, size_t parts)
{
    long double sum_diff2 = 0, sum_b2 = 0;
    size_t last_unequal = SIZE_MAX;
    for (size_t i = 0; i < n * parts; i++) {
        if (isfinite(b[i])) /* next to an infinity every other difference would vanish */
            sum_b2 += (long double)b[i] * (long double)b[i];
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
            continue; /* also infinity and infinity, whose difference is NaN */
        double difference = fabs(a[i] - b[i]);
        out->n_unequal += i / parts != last_unequal;
        last_unequal = i / parts;
        out->max_abs = larger(out->max_abs, difference);
        sum_diff2 += (long double)difference * (long double)difference;
    }
    out->sum_diff2 += sum_diff2;
    out->sum_b2 += sum_b2;
}

/* Never 0 for unequal tensors, although squares of tiny differences are 0. */
static double relative_l2(double max_abs, long double sum_diff2, long double sum_b2)
{
    if (isnan(max_abs))
        return (double)NAN;
    double relative = sum_b2 > 0 ? (double)sqrtl(sum_diff2 / sum_b2) : HUGE_VAL;
    return larger(relative, DBL_MIN);
}

static void compare_bytes(struct phema_difference *out, const uint8_t *a, const uint8_t *b,
                          size_t n_elems, size_t elem_bytes)
{
    if (elem_bytes == 0) { /* sub-byte: count bytes */
        n_elems = (n_elems * 3 + 3) / 4;
        elem_bytes = 1;
    }
    for (size_t i = 0; i < n_elems; i++)
        out->n_unequal += memcmp(a + i * elem_bytes, b + i * elem_bytes, elem_bytes) != 0;
}

/* How far the comparison is, in bytes of the first checkpoint. */
struct extent {
    const struct phema_listener *listener;
    uint64_t done_bytes, total_bytes;
};

static enum phema_status compare_tensor(struct phema_difference *out, struct side *a,
                                        struct side *b, const struct extent *extent,
                                        struct phema_error *err)
{
    uint64_t total = a->tensor->n_elems;
    bool as_numbers = is_numeric(a->tensor->dtype) && is_numeric(b->tensor->dtype);
    size_t parts = phema_dtype_n_parts(a->tensor->dtype);
    for (uint64_t first = 0, released = 0; first < total;) {
        size_t n = total - first < CHUNK_ELEMS ? (size_t)(total - first) : CHUNK_ELEMS;
        const uint8_t *left = NULL, *right = NULL;
        enum phema_status status =
            phema_reader_read(&left, a->reader, a->tensor, first, n, a->scratch, err);
        if (!status)
            status = phema_reader_read(&right, b->reader, b->tensor, first, n, b->scratch, err);
        if (status)
            return status;
        if (as_numbers) {
            phema_widen(a->values, phema_dtype_of_parts(a->tensor->dtype), left, n * parts);
            phema_widen(b->values, phema_dtype_of_parts(b->tensor->dtype), right, n * parts);
            compare_numbers(out, a->values, b->values, n, parts);
        } else {
            compare_bytes(out, left, right, n, phema_dtype_bits(a->tensor->dtype) / 8);
        }
        first += n;
        if (first - released >= RELEASE_CHUNKS * CHUNK_ELEMS || first == total) {
            phema_tensor_release(a->checkpoint, a->tensor, released, first - released);
            phema_tensor_release(b->checkpoint, b->tensor, released, first - released);
            released = first;
            double share = (double)first / (double)total;
            listener_advance(extent->listener,
                             extent->done_bytes + (uint64_t)(share * (double)a->tensor->size_bytes),
                             extent->total_bytes);
        }
    }
    out->is_equal = out->n_unequal == 0;
    if (!as_numbers && !out->is_equal)
        out->max_abs = out->rel_l2 = HUGE_VAL; /* bytes that differ have no distance */
    else if (!out->is_equal)
        out->rel_l2 = relative_l2(out->max_abs, out->sum_diff2, out->sum_b2);
    return PHEMA_OK;
}

static enum phema_status init_side(struct side *side, struct phema_error *err)
{
    side->scratch = malloc(CHUNK_ELEMS * 16);
    side->values = malloc(2 * CHUNK_ELEMS * sizeof(double));
    if (!side->scratch || !side->values)
        return phema_fail_memory(err);
    return phema_reader_open(&side->reader, side->checkpoint, err);
}

static void clear_side(struct side *side)
{
    phema_reader_close(side->reader);
    free(side->scratch);
    free(side->values);
}

/* Scales that are read with their codes do not count. */
static const struct phema_tensor *find_tensor(const struct phema_checkpoint *checkpoint,
                                              const char *name, size_t size)
{
    const struct phema_tensor *found = phema_checkpoint_find(checkpoint, name, size);
    return found && found->kind != PHEMA_KIND_SCALE ? found : NULL;
}

/* Trainers wrap a model, and the names of its tensors get the wrapper's. */
static const char *const wrappers[] = {"ema_model.", "online_model.", "module.",    "_orig_mod.",
                                       "model.",     "ema.",          "state_dict."};

/* The tensor of the name with a prefix, or without it. */
static const struct phema_tensor *find_twin(const struct phema_checkpoint *checkpoint,
                                            const struct phema_tensor *tensor, const char *prefix,
                                            bool is_added)
{
    char name[1024];
    size_t size = prefix ? strlen(prefix) : 0;
    if (!prefix)
        return find_tensor(checkpoint, tensor->name, tensor->name_size);
    if (!is_added && tensor->name_size > size && memcmp(tensor->name, prefix, size) == 0)
        return find_tensor(checkpoint, tensor->name + size, tensor->name_size - size);
    int length =
        snprintf(name, sizeof(name), "%s%.*s", prefix, (int)tensor->name_size, tensor->name);
    if (!is_added || length < 0 || (size_t)length >= sizeof(name))
        return NULL;
    return find_tensor(checkpoint, name, (size_t)length);
}

static bool has_twin(const struct phema_checkpoint *a, const struct phema_checkpoint *b,
                     const char *prefix, bool is_added)
{
    for (size_t i = 0; i < phema_checkpoint_n_tensors(a); i++)
        if (phema_checkpoint_tensors(a)[i].kind != PHEMA_KIND_SCALE &&
            find_twin(b, &phema_checkpoint_tensors(a)[i], prefix, is_added))
            return true;
    return false;
}

/* Where no name is in both, a wrapper's prefix of all names of one side. */
static void find_prefix(struct phema_comparison *out, const struct phema_checkpoint *a,
                        const struct phema_checkpoint *b)
{
    if (has_twin(a, b, NULL, false))
        return;
    for (size_t i = 0; i < ARRAY_LEN(wrappers) && !out->prefix; i++) {
        out->is_prefix_of_a = has_twin(a, b, wrappers[i], false);
        if (out->is_prefix_of_a || has_twin(a, b, wrappers[i], true))
            out->prefix = wrappers[i];
    }
}

/* The tensor as it is compared: fp8 codes as numbers, which take memory of the comparison. NULL: no
 * memory. */
static const struct phema_tensor *as_numbers(struct phema_comparison *out,
                                             const struct phema_tensor *tensor)
{
    if (!tensor || !tensor->scaling)
        return tensor;
    struct phema_tensor *values = phema_arena_alloc(&out->memory, sizeof(*values));
    if (values)
        *values = phema_tensor_values(tensor);
    return values;
}

/* Pairs the tensors: those of a in order, then those only in b. */
static enum phema_status pair_tensors(struct phema_comparison *out,
                                      const struct phema_checkpoint *a,
                                      const struct phema_checkpoint *b, struct phema_error *err)
{
    size_t n_a = phema_checkpoint_n_tensors(a);
    size_t n_b = phema_checkpoint_n_tensors(b);
    const struct phema_tensor *tensors_a = phema_checkpoint_tensors(a);
    const struct phema_tensor *tensors_b = phema_checkpoint_tensors(b);
    find_prefix(out, a, b);
    for (size_t i = 0; i < n_a; i++) {
        if (tensors_a[i].kind == PHEMA_KIND_SCALE)
            continue;
        const struct phema_tensor *other =
            find_twin(b, &tensors_a[i], out->prefix, !out->is_prefix_of_a);
        struct phema_difference *item = &out->tensors[out->n++];
        item->a = as_numbers(out, &tensors_a[i]);
        item->b = as_numbers(out, other);
        if (!item->a || (other && !item->b))
            return phema_fail_memory(err);
        item->is_comparable = item->b && are_comparable(item->a, item->b);
    }
    for (size_t i = 0; i < n_b; i++)
        if (tensors_b[i].kind != PHEMA_KIND_SCALE &&
            !find_twin(a, &tensors_b[i], out->prefix, out->is_prefix_of_a))
            out->tensors[out->n++].b = &tensors_b[i];
    return PHEMA_OK;
}

/* in_b: a bool, true for the order of the file of b */
static int compare_places(const void *left, const void *right, void *in_b)
{
    const struct phema_difference *first = *(struct phema_difference *const *)left;
    const struct phema_difference *second = *(struct phema_difference *const *)right;
    uint64_t x = *(bool *)in_b ? first->b->offset : first->a->offset;
    uint64_t y = *(bool *)in_b ? second->b->offset : second->a->offset;
    return (x > y) - (x < y);
}

/* In file order when one side can only be decompressed forward, otherwise in the order of the
 * listing. */
static enum phema_status compare_pairs(struct phema_comparison *out, struct side *a, struct side *b,
                                       const struct phema_listener *listener,
                                       struct phema_error *err)
{
    struct phema_difference **order = calloc(out->n + 1, sizeof(struct phema_difference *));
    if (!order)
        return phema_fail_memory(err);
    size_t n = 0;
    struct extent extent = {.listener = listener};
    for (size_t i = 0; i < out->n; i++) {
        if (!out->tensors[i].is_comparable)
            continue;
        order[n++] = &out->tensors[i];
        extent.total_bytes += out->tensors[i].a->size_bytes;
    }
    bool in_b = phema_checkpoint_can_seek(a->checkpoint);
    if (!in_b || !phema_checkpoint_can_seek(b->checkpoint))
        qsort_r(order, n, sizeof(struct phema_difference *), compare_places, &in_b);
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < n && !status; i++) {
        a->tensor = order[i]->a;
        b->tensor = order[i]->b;
        status = compare_tensor(order[i], a, b, &extent, err);
        extent.done_bytes += a->tensor->size_bytes;
    }
    free(order);
    return status;
}

static void sum_up(struct phema_comparison *out)
{
    long double sum_diff2 = 0, sum_b2 = 0;
    out->is_equal = true;
    for (size_t i = 0; i < out->n; i++) {
        const struct phema_difference *item = &out->tensors[i];
        out->is_equal = out->is_equal && item->is_equal;
        if (!item->is_comparable || !is_numeric(item->a->dtype))
            continue;
        out->max_abs = larger(out->max_abs, item->max_abs);
        sum_diff2 += item->sum_diff2;
        sum_b2 += item->sum_b2;
    }
    out->rel_l2 = out->max_abs == 0 ? 0 : relative_l2(out->max_abs, sum_diff2, sum_b2);
}

static enum phema_status compare_sides(struct phema_comparison *out, struct side *a, struct side *b,
                                       const struct phema_listener *listener,
                                       struct phema_error *err)
{
    enum phema_status status = init_side(a, err);
    if (status)
        return status;
    status = init_side(b, err);
    if (status)
        return status;
    status = pair_tensors(out, a->checkpoint, b->checkpoint, err);
    if (status)
        return status;
    status = compare_pairs(out, a, b, listener, err);
    if (status)
        return status;
    status = phema_reader_finish(a->reader, err);
    if (status)
        return status;
    return phema_reader_finish(b->reader, err);
}

PHEMA_FALLIBLE phema_compare(struct phema_comparison *out, const struct phema_checkpoint *a,
                             const struct phema_checkpoint *b,
                             const struct phema_listener *listener, struct phema_error *err)
{
    struct phema_comparison comparison = {0};
    struct side left = {.checkpoint = a}, right = {.checkpoint = b};
    comparison.tensors = calloc(phema_checkpoint_n_tensors(a) + phema_checkpoint_n_tensors(b) + 1,
                                sizeof(*comparison.tensors));
    if (!comparison.tensors)
        return phema_fail_memory(err);
    listener_stage(listener, "comparing");
    enum phema_status status = compare_sides(&comparison, &left, &right, listener, err);
    listener_stage(listener, NULL);
    clear_side(&left);
    clear_side(&right);
    if (!status)
        status = phema_checkpoint_check_unchanged(a, err);
    if (!status)
        status = phema_checkpoint_check_unchanged(b, err);
    if (status) {
        phema_comparison_clear(&comparison);
        return status;
    }
    sum_up(&comparison);
    *out = comparison;
    return PHEMA_OK;
}

void phema_comparison_clear(struct phema_comparison *comparison)
{
    free(comparison->tensors);
    phema_arena_clear(&comparison->memory);
    *comparison = (struct phema_comparison){0};
}
