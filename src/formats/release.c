// SPDX-License-Identifier: Apache-2.0
/* release.c - letting go of the mapped pages behind a reader, wherever a tensor's elements lie. */
#include "format.h"

/* Bytes from the first element to the end of the last one. */
static uint64_t extent(const struct phema_tensor *tensor)
{
    uint64_t last = 0; /* inside the storage: checked when the tensor was listed */
    for (unsigned d = 0; d < tensor->rank; d++)
        last += (tensor->shape[d] - 1) * tensor->stride[d];
    return phema_dtype_bytes(tensor->dtype, last + 1);
}

/* Rows [row, end) of the first dimension, as far as they are in the box. */
static void release_rows(const struct phema_checkpoint *checkpoint,
                         const struct phema_tensor *tensor, const struct phema_chunk *part,
                         uint64_t row, uint64_t end)
{
    uint64_t first = part->start[0], last = part->start[0] + part->size[0];
    row = row > first ? row : first;
    end = end < last ? end : last;
    if (part->stride || row >= end)
        return;
    uint64_t row_elems = 1;
    for (unsigned d = 1; d < tensor->rank; d++)
        row_elems *= part->size[d];
    phema_file_evict(phema_checkpoint_file(checkpoint, part->file),
                     part->offset + phema_dtype_bytes(tensor->dtype, (row - first) * row_elems),
                     phema_dtype_bytes(tensor->dtype, (end - row) * row_elems));
}

void phema_tensor_release(const struct phema_checkpoint *checkpoint,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n)
{
    if (tensor->is_compressed || n == 0)
        return;
    if (tensor->parts) {
        uint64_t row_elems = tensor->n_elems / tensor->shape[0]; /* rank 0 has no parts */
        for (size_t p = 0; p < tensor->n_parts; p++)
            release_rows(checkpoint, tensor, &tensor->parts[p], first / row_elems,
                         (first + n - 1) / row_elems + 1);
        return;
    }
    const struct phema_file *file = phema_checkpoint_file(checkpoint, tensor->file);
    if (!tensor->stride)
        phema_file_evict(file, tensor->offset + phema_dtype_bytes(tensor->dtype, first),
                         phema_dtype_bytes(tensor->dtype, n));
    else if (first + n == tensor->n_elems) /* elements lie all over its extent */
        phema_file_evict(file, tensor->offset, extent(tensor));
}
