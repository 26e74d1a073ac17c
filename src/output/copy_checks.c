// SPDX-License-Identifier: Apache-2.0
/* copy_checks.c - Refuse copies that would change other tensors: those that share storage with a
 * replaced one, and expanded tensors, whose rows are one row in the file. */
#include <stdlib.h>
#include <string.h>

#include "outputs.h"

static struct phema_tensor tensor_at(const struct phema_series *series,
                                     const struct phema_tensor_location *location, uint64_t shift,
                                     enum phema_dtype dtype, size_t i)
{
    struct phema_tensor tensor = series->tensors[i].tensor;
    tensor.dtype = dtype;
    tensor.offset = location->offset + shift;
    tensor.stride = location->stride;
    tensor.file = location->file;
    return tensor;
}

static bool same_view(const struct phema_tensor *a, const struct phema_tensor *b)
{
    if (a->offset != b->offset || a->dtype != b->dtype || a->rank != b->rank ||
        !a->stride != !b->stride)
        return false;
    for (unsigned d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d] || (a->stride && a->stride[d] != b->stride[d]))
            return false;
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const struct phema_tensor *left = a, *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* Marks the tensors of the template that are replaced, other names of a replaced tensor as well.
 *   is_replaced  [n of the template's tensors]
 *   written      [n_written] the replaced tensors, sorted by offset */
static void mark_replaced(bool *is_replaced, const struct phema_checkpoint *template,
                          const struct phema_tensor *written, size_t n_written)
{
    const struct phema_tensor *listed = phema_checkpoint_tensors(template);
    for (size_t t = 0; t < phema_checkpoint_n_tensors(template); t++) {
        size_t low = 0, high = n_written; /* the first at this offset or later */
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (written[middle].offset < listed[t].offset)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < n_written && written[low].offset == listed[t].offset; low++)
            is_replaced[t] = is_replaced[t] || same_view(&written[low], &listed[t]);
    }
}

static enum phema_status fail_overlap(const struct phema_checkpoint *template, const size_t pair[2],
                                      bool is_kept, struct phema_error *err)
{
    const struct phema_tensor *a = &phema_checkpoint_tensors(template)[pair[0]];
    const struct phema_tensor *b = &phema_checkpoint_tensors(template)[pair[1]];
    struct phema_name_buffer first, second;
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: tensor '%s': shares storage with '%s', %s; write .safetensors instead",
        phema_checkpoint_path(template), phema_name_escape(&first, a->name, a->name_size),
        phema_name_escape(&second, b->name, b->name_size),
        is_kept ? "which is not replaced" : "and the snapshots do not all share it alike");
}

/* Whether all snapshots have the same overlaps: overlapping views then get the same averages. The
 * exception are elements of a block that is equal in all snapshots: one view copies them, the other
 * sums them. */
static bool are_alike(const struct phema_series *series, const struct phema_tensor *written,
                      const size_t *index, size_t n)
{
    for (size_t k = 0; k < series->n; k++)
        for (size_t x = 0; x < n; x++) {
            const struct phema_tensor here = phema_series_tensor_in(series, k, index[x]);
            const struct phema_tensor first = phema_series_tensor_in(series, k, index[0]);
            struct phema_tensor moved = written[x];
            moved.offset += first.offset - written[0].offset; /* may wrap around, and back */
            moved.dtype = here.dtype;
            if (here.chunks || !same_view(&here, &moved))
                return false;
        }
    return true;
}

static enum phema_status check_overlaps(bool *is_in_order, const struct phema_series *series,
                                        const struct phema_checkpoint *template,
                                        const struct phema_tensor *written, const size_t *index,
                                        size_t n, struct phema_error *err)
{
    size_t n_listed = phema_checkpoint_n_tensors(template);
    bool *is_replaced = calloc(n_listed + 1, sizeof(*is_replaced));
    struct phema_tensor *sorted = calloc(n + 1, sizeof(*sorted));
    size_t pair[2] = {0, 0};
    bool found = false;
    enum phema_status status = is_replaced && sorted ? PHEMA_OK : phema_fail_memory(err);
    if (!status) {
        memcpy(sorted, written, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), by_offset);
        mark_replaced(is_replaced, template, sorted, n);
        status = phema_find_overlap(pair, &found, PHEMA_OVERLAP_KEPT,
                                    phema_checkpoint_tensors(template), is_replaced, n_listed, err);
    }
    if (!status && found)
        status = fail_overlap(template, pair, true, err);
    if (!status)
        status = phema_find_overlap(pair, &found, PHEMA_OVERLAP_REPLACED,
                                    phema_checkpoint_tensors(template), is_replaced, n_listed, err);
    if (!status && found && !are_alike(series, written, index, n))
        status = fail_overlap(template, pair, false, err);
    *is_in_order = *is_in_order || found;
    free(is_replaced);
    free(sorted);
    return status;
}

/* A tensor that is expanded in the template must be expanded in every snapshot. */
static enum phema_status check_expanded(bool *is_in_order, const struct phema_series *series,
                                        const struct phema_checkpoint *template,
                                        const struct phema_tensor *written, size_t i,
                                        struct phema_error *err)
{
    for (unsigned d = 0; written->stride && d < written->rank; d++) {
        if (written->stride[d] != 0 || written->shape[d] <= 1)
            continue;
        *is_in_order = true;
        for (size_t k = 0; k < series->n; k++) {
            const uint64_t *stride = series->snapshots[k].locations[i].stride;
            struct phema_name_buffer shown;
            if (!stride || stride[d] != 0)
                return phema_fail(
                    err, PHEMA_ERR_INPUTS,
                    "%s: tensor '%s': is expanded (its rows are one row in the file), but not in "
                    "%s; write .safetensors instead",
                    phema_checkpoint_path(template),
                    phema_name_escape(&shown, written->name, written->name_size),
                    series->snapshots[k].label);
        }
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE copy_check_locations(const struct draft *draft,
                                    const struct phema_checkpoint *template,
                                    const struct phema_tensor_location *locations, uint64_t shift,
                                    struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    struct phema_tensor *written = calloc(series->n_tensors + 1, sizeof(*written));
    size_t *index = calloc(series->n_tensors + 1, sizeof(*index));
    size_t n = 0;
    bool *is_in_order = &draft->outputs->is_in_order;
    enum phema_status status = written && index ? PHEMA_OK : phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors && !status; i++) {
        if (!draft->outputs->is_replaced[i])
            continue;
        written[n] = tensor_at(series, &locations[i], shift, draft->outputs->dtypes[i], i);
        index[n] = i;
        status = check_expanded(is_in_order, series, template, &written[n++], i, err);
    }
    if (!status)
        status = check_overlaps(is_in_order, series, template, written, index, n, err);
    free(written);
    free(index);
    return status;
}
