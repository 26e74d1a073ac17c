// SPDX-License-Identifier: Apache-2.0
/* strided.c - Gather and scatter of strided elements, row by row. No alignment is assumed. */
#include "strided.h"

#include <string.h>

#include "format.h"

const uint8_t *phema_tensor_start(const struct phema_checkpoint *checkpoint,
                                  const struct phema_tensor *tensor)
{
    if (!tensor->n_elems || tensor->chunks || tensor->is_compressed)
        return NULL;
    return checkpoint_content(checkpoint, tensor->file).data + tensor->offset;
}

/* In each case the size is a compile-time constant. */
void strided_gather_row(uint8_t *out, const uint8_t *from, uint64_t n, uint64_t step, size_t size)
{
    if (step == size) {
        memcpy(out, from, n * size);
        return;
    }
    switch (size) {
    case 1:
        for (uint64_t i = 0; i < n; i++)
            out[i] = from[i * step];
        return;
    case 2:
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + 2 * i, from + i * step, 2);
        return;
    case 4:
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + 4 * i, from + i * step, 4);
        return;
    case 8:
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + 8 * i, from + i * step, 8);
        return;
    default:
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + size * i, from + i * step, size);
        return;
    }
}

static void scatter_row(uint8_t *to, const uint8_t *data, uint64_t n, uint64_t step, size_t size)
{
    if (step == size) {
        memcpy(to, data, n * size);
        return;
    }
    switch (size) {
    case 2:
        for (uint64_t i = 0; i < n; i++)
            memcpy(to + i * step, data + 2 * i, 2);
        return;
    case 4:
        for (uint64_t i = 0; i < n; i++)
            memcpy(to + i * step, data + 4 * i, 4);
        return;
    case 8:
        for (uint64_t i = 0; i < n; i++)
            memcpy(to + i * step, data + 8 * i, 8);
        return;
    default:
        for (uint64_t i = 0; i < n; i++)
            memcpy(to + i * step, data + size * i, size);
        return;
    }
}

/* Offset of the first element of a row [elements]; the number of the row gives all indices but the
 * last. */
static uint64_t row_offset(const struct phema_tensor *tensor, uint64_t row)
{
    uint64_t offset = 0; /* within the storage: checked when the tensor was listed */
    for (unsigned k = tensor->rank - 1; k-- > 0;) {
        offset += row % tensor->shape[k] * tensor->stride[k];
        row /= tensor->shape[k];
    }
    return offset;
}

/* Bytes of n elements in C order. Groups of 8 elements are whole bytes: the product cannot overflow
 * where data exist. */
static uint64_t bytes_of(uint64_t n, unsigned bits)
{
    return n / 8 * bits + n % 8 * bits / 8;
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
    unsigned bits = phema_dtype_bits(tensor->dtype);
    if (!tensor->stride || n == 0)
        return start ? start + bytes_of(first, bits) : NULL;
    size_t size = bits / 8;
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
    unsigned bits = phema_dtype_bits(tensor->dtype);
    if (n == 0)
        return;
    if (!tensor->stride) {
        memcpy(start + bytes_of(first, bits), data, bytes_of(n, bits));
        return;
    }
    size_t size = bits / 8;
    uint64_t step = tensor->stride[tensor->rank - 1];
    const uint8_t *from = data;
    for (uint64_t at = first; at < first + n;) {
        uint64_t taken = first + n - at;
        uint64_t place = part_of_row(&taken, tensor, at);
        scatter_row(start + place * size, from, taken, step * size, size);
        from += taken * size;
        at += taken;
    }
}
