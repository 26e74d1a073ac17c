// SPDX-License-Identifier: Apache-2.0
/* sparse_read.c - reads of a few elements of a snapshot, for samples and fingerprints. */
#include "sparse_read.h"

/* Standard streams and other files that are open meanwhile. */
#define OTHER_DESCRIPTORS 32

PHEMA_FALLIBLE sparse_reader_open(struct phema_reader **reader,
                                  const struct phema_checkpoint *checkpoint,
                                  struct phema_error *err)
{
    static const struct phema_reading reading = {.io = PHEMA_IO_READ};
    uint64_t limit;
    enum phema_status status = phema_reader_open(reader, checkpoint, err);
    if (!status &&
        phema_raise_fd_limit(phema_checkpoint_n_files(checkpoint) + OTHER_DESCRIPTORS, &limit))
        status = phema_reader_use(*reader, &reading, err);
    return status;
}

void sparse_reader_prefetch(struct phema_reader *reader, const struct phema_series *series,
                            size_t k, const struct tensor_run *runs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tensor_run *run = &runs[(n / 2 + i) % n];
        struct phema_tensor tensor = phema_series_tensor_in(series, k, run->tensor);
        if (tensor.is_compressed || tensor.stride || tensor.chunks)
            continue;
        uint64_t first = tensor.offset + phema_dtype_bytes(tensor.dtype, run->first);
        if (i == 0 && phema_reader_is_cached(reader, tensor.file, first))
            return;
        phema_reader_prefetch(reader, tensor.file, first, phema_dtype_bytes(tensor.dtype, run->n));
    }
}

void sparse_evict(const struct phema_checkpoint *checkpoint)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++) {
        const struct phema_file *file = phema_checkpoint_file(checkpoint, f);
        phema_file_evict(file, 0, phema_file_span(file).size);
    }
}
