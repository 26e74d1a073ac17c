// SPDX-License-Identifier: Apache-2.0
/* extents.c - The bytes of a copy that replaced tensors hold. */
#include <stdlib.h>

#include "outputs.h"
#include "phema/array.h"

static int compare_extents(const void *a, const void *b)
{
    const struct phema_extent *left = a, *right = b;
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

PHEMA_FALLIBLE extents_add(struct extent_list *list, const struct phema_tensor *tensor,
                           struct phema_error *err)
{
    const struct phema_chunk whole = {.size = tensor->shape,
                                      .stride = tensor->stride,
                                      .file = tensor->file,
                                      .offset = tensor->offset};
    const struct phema_chunk *chunks = tensor->chunks ? tensor->chunks : &whole;
    size_t n = tensor->chunks ? tensor->n_chunks : 1;
    for (size_t c = 0; c < n; c++) {
        const struct phema_chunk *chunk = &chunks[c];
        uint64_t n_elems = 1; /* from the first to the last, with the gaps of strides */
        bool is_empty = false;
        for (unsigned d = 0; d < tensor->rank; d++) {
            is_empty = is_empty || chunk->size[d] == 0;
            n_elems = chunk->stride ? n_elems + (chunk->size[d] - 1) * chunk->stride[d]
                                    : n_elems * chunk->size[d];
        }
        if (is_empty)
            continue;
        if (!phema_array_grow(&list->items, &list->capacity, list->n, sizeof(*list->items)))
            return phema_fail_memory(err);
        list->items[list->n++] = (struct phema_extent){
            chunk->file, chunk->offset, chunk->offset + phema_dtype_bytes(tensor->dtype, n_elems)};
    }
    return PHEMA_OK;
}

void extents_sort(struct extent_list *list)
{
    if (list->n)
        qsort(list->items, list->n, sizeof(*list->items), compare_extents);
}

PHEMA_FALLIBLE phema_output_extents(struct phema_extent **out, size_t *n,
                                    const struct phema_plan *plan,
                                    const struct phema_outputs *outputs, size_t output,
                                    struct phema_error *err)
{
    const struct phema_output *item = &outputs->items[output];
    struct extent_list list = {0};
    for (size_t i = 0; i < plan->series->n_tensors; i++) {
        if (!outputs->is_replaced[i])
            continue;
        struct phema_tensor tensor = output_tensor(plan, outputs, item, i);
        enum phema_status status = extents_add(&list, &tensor, err);
        if (status) {
            free(list.items);
            return status;
        }
    }
    extents_sort(&list);
    *out = list.items;
    *n = list.n;
    return PHEMA_OK;
}
