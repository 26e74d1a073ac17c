// SPDX-License-Identifier: Apache-2.0
/* strided.c - Gather and scatter of strided elements, row by row. No alignment is assumed. */
#include "format.h"

#include <string.h>

const uint8_t *phema_tensor_start(const struct phema_checkpoint *checkpoint,
                                  const struct phema_tensor *tensor)
{
    if (!tensor->n_elems || tensor->chunks || tensor->is_compressed)
        return NULL;
    return checkpoint_content(checkpoint, tensor->file).data + tensor->offset;
}

static inline void copy_elements(uint8_t *to, uint64_t to_step, const uint8_t *from,
                                 uint64_t from_step, uint64_t n, size_t size)
{
    for (uint64_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, size);
}

/* Copies n elements from one distance [bytes] to another; one of both is the size of an element. In
 * each case the size is a compile-time constant. */
static inline void copy_row(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step,
                            uint64_t n, size_t size)
{
    if (to_step == from_step) {
        memcpy(to, from, n * size);
        return;
    }
    switch (size) {
    case 1:
        copy_elements(to, to_step, from, from_step, n, 1);
        break;
    case 2:
        copy_elements(to, to_step, from, from_step, n, 2);
        break;
    case 4:
        copy_elements(to, to_step, from, from_step, n, 4);
        break;
    case 8:
        copy_elements(to, to_step, from, from_step, n, 8);
        break;
    default:
        copy_elements(to, to_step, from, from_step, n, size);
        break;
    }
}

void strided_gather_row(uint8_t *out, const uint8_t *from, uint64_t n, uint64_t step, size_t size)
{
    copy_row(out, size, from, step, n, size);
}

/* Offset of the first element of a row [elements]. */
static uint64_t row_offset(const struct phema_tensor *tensor, uint64_t row)
{
    uint64_t offset = 0; /* within the storage: checked when the tensor was listed */
    for (unsigned k = tensor->rank - 1; k-- > 0;) {
        offset += row % tensor->shape[k] * tensor->stride[k];
        row /= tensor->shape[k];
    }
    return offset;
}

/* Limits *n elements from first on to those in the row of first. Returns the place of the first
 * [elements]. */
static uint64_t part_of_row(uint64_t *n, const struct phema_tensor *tensor, uint64_t first)
{
    uint64_t row_size = tensor->shape[tensor->rank - 1]; /* strided: rank > 0, no size is 0 */
    uint64_t column = first % row_size;
    if (*n > row_size - column)
        *n = row_size - column;
    return row_offset(tensor, first / row_size) + column * tensor->stride[tensor->rank - 1];
}

const uint8_t *phema_tensor_read(const uint8_t *start, const struct phema_tensor *tensor,
                                 uint64_t first, uint64_t n, void *scratch)
{
    if (!tensor->stride || n == 0)
        return start ? start + phema_dtype_bytes(tensor->dtype, first) : NULL;
    size_t size = phema_dtype_bits(tensor->dtype) / 8;
    uint64_t step = tensor->stride[tensor->rank - 1];
    uint8_t *out = scratch;
    for (uint64_t at = first; at < first + n;) {
        uint64_t taken = first + n - at;
        uint64_t place = part_of_row(&taken, tensor, at);
        strided_gather_row(out, start + place * size, taken, step * size, size);
        out += taken * size;
        at += taken;
    }
    return scratch;
}

void phema_tensor_write(uint8_t *start, const struct phema_tensor *tensor, uint64_t first,
                        uint64_t n, const void *data)
{
    if (n == 0)
        return;
    if (!tensor->stride) {
        memcpy(start + phema_dtype_bytes(tensor->dtype, first), data,
               phema_dtype_bytes(tensor->dtype, n));
        return;
    }
    size_t size = phema_dtype_bits(tensor->dtype) / 8;
    uint64_t step = tensor->stride[tensor->rank - 1];
    const uint8_t *from = data;
    for (uint64_t at = first; at < first + n;) {
        uint64_t taken = first + n - at;
        uint64_t place = part_of_row(&taken, tensor, at);
        copy_row(start + place * size, step * size, from, size, taken, size);
        from += taken * size;
        at += taken;
    }
}
